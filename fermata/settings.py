"""Settings, from the environment. Every variable is checked here and named in the error when it is wrong."""

import logging
import re
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

from celery.schedules import crontab
from csp.constants import NONCE, NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from environs import Env, validate

from approvals.audit.receivers import Syslog, Webhook
from checkpoints.keys import parse_keys
from fermata.embedded.instance import current_instance
from fermata.embedded.urls import broker_url, database_url, secret_key

env = Env()
HOME = current_instance().home
BASE_DIR = Path(__file__).resolve().parent.parent

# --- where it runs ---------------------------------------------------------------------------------------------

PORT = env.int("PORT", 8000, validate=validate.Range(min=1, max=65535))
BASE_URL = env.str("FERMATA_BASE_URL", f"http://127.0.0.1:{PORT}").rstrip("/")
_base = urlsplit(BASE_URL)
if _base.scheme not in {"http", "https"} or not _base.hostname:
    raise ImproperlyConfigured("FERMATA_BASE_URL must be an http or https URL, such as https://fermata.example")
HTTPS = _base.scheme == "https"
LOCAL = _base.hostname in {"127.0.0.1", "localhost", "::1"}
PRODUCTION = env.bool("FERMATA_PRODUCTION", not LOCAL)
if PRODUCTION and not HTTPS:
    raise ImproperlyConfigured("FERMATA_BASE_URL must be https in production: sessions would travel in the clear")

DEBUG = False
SECRET_KEY = env.str("FERMATA_SECRET_KEY", None) or secret_key() or ""
if not SECRET_KEY:
    if PRODUCTION:
        raise ImproperlyConfigured("FERMATA_SECRET_KEY must be set in production")
    SECRET_KEY = "no-instance-here: nothing signed with this is ever served"  # noqa: S105
ALLOWED_HOSTS = env.list("FERMATA_ALLOWED_HOSTS", [_base.hostname, "127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = [BASE_URL]
DEPLOYMENT = env.str("FERMATA_DEPLOYMENT", "fermata", validate=validate.Regexp(r"^[a-z0-9-]{1,40}$"))
FERMATA_BUILD = env.str("FERMATA_BUILD", "", validate=validate.Length(max=40))

# --- applications ----------------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "checkpoints.apps.CheckpointsConfig",
    "runs.apps.RunsConfig",
    "approvals.apps.ApprovalsConfig",
    "fermata_langgraph.apps.FermataLangGraphConfig",
    "examples.apps.ExamplesConfig",
    "fermata.certify",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "rest_framework",
    "drf_spectacular",
    "drf_standardized_errors",
    "django_htmx",
    "csp",
    "axes",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "fermata.middleware.NoStoreMiddleware",
    "fermata.middleware.UnavailableMiddleware",
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "fermata.urls"
ASGI_APPLICATION = "fermata.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# --- database --------------------------------------------------------------------------------------------------

FERMATA_WEB_THREADS = env.int("FERMATA_WEB_THREADS", 16, validate=validate.Range(min=1, max=200))
_database = env.dj_db_url("DATABASE_URL", database_url())
if not _database["ENGINE"].endswith("postgresql"):
    raise ImproperlyConfigured("DATABASE_URL must name a PostgreSQL database (postgres://…)")
_database.setdefault("OPTIONS", {})
_database["CONN_HEALTH_CHECKS"] = True
if env.str("FERMATA_PROCESS", "") == "web":
    # One for each thread that serves requests, one for the readiness check.
    _database["OPTIONS"]["pool"] = {"min_size": 1, "max_size": FERMATA_WEB_THREADS + 1, "timeout": 3}
else:
    _database["CONN_MAX_AGE"] = None  # one connection per thread, kept
DATABASES = {"default": _database}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- people ----------------------------------------------------------------------------------------------------

AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "inbox"
LOGOUT_REDIRECT_URL = "login"
SESSION_COOKIE_AGE = env.int("FERMATA_SESSION_SECONDS", 12 * 3600)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
# Ports do not separate cookies: two local instances would sign each other's people out.
SESSION_COOKIE_NAME = "__Host-sessionid" if HTTPS else f"sessionid-{PORT}"
CSRF_COOKIE_NAME = "__Host-csrftoken" if HTTPS else f"csrftoken-{PORT}"
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "fermata.handlers.csrf_failure"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_TEMPLATE = "registration/locked_out.html"
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

# --- HTTP security ---------------------------------------------------------------------------------------------

SECURE_SSL_REDIRECT = HTTPS and env.bool("FERMATA_SSL_REDIRECT", True)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env.bool("FERMATA_BEHIND_PROXY", False) else None
SECURE_REDIRECT_EXEMPT = [r"^livez$", r"^readyz$"]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
DATA_UPLOAD_MAX_MEMORY_SIZE = env.int("FERMATA_MAX_REQUEST_BYTES", 24 * 1024 * 1024)

# --- language, time, files -------------------------------------------------------------------------------------

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

# --- agents' API -----------------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["runs.authentication.AgentKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["runs.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["runs.parsers.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "fermata.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "drf_standardized_errors.handler.exception_handler",
    "DATETIME_FORMAT": "%Y-%m-%dT%H:%M:%S.%fZ",
    "UNAUTHENTICATED_USER": None,
    "COERCE_DECIMAL_TO_STRING": True,
}
DRF_STANDARDIZED_ERRORS = {
    "EXCEPTION_HANDLER_CLASS": "fermata.problems.ProblemHandler",
    "EXCEPTION_FORMATTER_CLASS": "fermata.problems.ProblemFormatter",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Fermata",
    "DESCRIPTION": "Pause software agents at a human decision, and resume them afterwards.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {
        "RunStatus": "runs.states.RunStatus.choices",
        "RunKind": "runs.states.RunKind.choices",
        "ApprovalStatus": "approvals.serializers.STATUSES",
        "ApprovalKind": "approvals.states.ApprovalKind.choices",
        "DecisionOutcome": "approvals.states.ApprovalStatus.choices",
        "GrantStatus": "approvals.states.GrantStatus.choices",
        "Outcome": "approvals.serializers.OUTCOMES",
        "Verdict": "approvals.states.Verdict.choices",
        "CheckpointReason": "checkpoints.models.Reason.choices",
    },
}

# --- Celery: the doorbell --------------------------------------------------------------------------------------

CELERY_BROKER_URL = env.str("CELERY_BROKER_URL", None) or broker_url()
_broker = re.match(r"^(redis|rediss|redis\+socket|amqp|amqps|pyamqp)://", CELERY_BROKER_URL)
if not _broker:
    raise ImproperlyConfigured("CELERY_BROKER_URL must begin with redis://, redis+socket://, rediss:// or amqp(s)://")
_redis = _broker[1].startswith("redis")
BROKER_TIMEOUT = env.float("FERMATA_BROKER_TIMEOUT", 0.5, validate=validate.Range(min=0.1, max=10))
CELERY_TASK_IGNORE_RESULT = True
CELERY_DB_REUSE_MAX = 10_000  # otherwise Django's connection is opened anew for every task
CELERY_TASK_DEFAULT_QUEUE = "runs"
CELERY_TASK_ROUTES = {
    **{name: {"queue": "sweeper"} for name in ("runs.tasks.sweep", "approvals.tasks.sweep", "approvals.tasks.seal")},
    "runs.tasks.post": {"queue": "webhooks"},
}
CELERY_IMPORTS = ["fermata.pulse"]
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_PUBLISH_RETRY_POLICY = {
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0.1,
    "interval_max": 0.1,
}
CELERY_BROKER_CONNECTION_TIMEOUT = BROKER_TIMEOUT
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# RabbitMQ closes the channel of a worker whose next message waited behind a long call: connect anew, do not leave.
CELERY_BROKER_CHANNEL_ERROR_RETRY = True
# How a doorbell connects: at once or not at all. Workers have Celery's own retries.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0.1,
    "interval_max": 0.1,
    **(
        {"socket_connect_timeout": BROKER_TIMEOUT, "socket_timeout": BROKER_TIMEOUT}
        if _redis
        else {
            "confirm_publish": True,
            "confirm_timeout": BROKER_TIMEOUT,
            "read_timeout": BROKER_TIMEOUT,
            "write_timeout": BROKER_TIMEOUT,
        }
    ),
}
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_DISABLE_PREFETCH = _redis
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_BEAT_SCHEDULE = {
    "sweep runs": {"task": "runs.tasks.sweep", "schedule": 2.0, "options": {"expires": 4}},
    "find stranded runs": {"task": "runs.tasks.find_stranded", "schedule": 60.0, "options": {"expires": 60}},
    "forget old requests": {"task": "runs.tasks.forget_old_requests", "schedule": 3600.0, "options": {"expires": 600}},
    "sweep approvals": {"task": "approvals.tasks.sweep", "schedule": 2.0, "options": {"expires": 4}},
    "prune": {"task": "runs.tasks.prune", "schedule": crontab(hour=3, minute=17), "options": {"expires": 3600}},
    "seal the audit trail": {"task": "approvals.tasks.seal", "schedule": 10.0, "options": {"expires": 20}},
}

# --- mail: without a server, nobody is sent any ----------------------------------------------------------------

EMAIL_HOST = env.str("FERMATA_SMTP_HOST", "")
EMAIL_PORT = env.int("FERMATA_SMTP_PORT", 587, validate=validate.Range(min=1, max=65535))
EMAIL_HOST_USER = env.str("FERMATA_SMTP_USER", "")
EMAIL_HOST_PASSWORD = env.str("FERMATA_SMTP_PASSWORD", "")
EMAIL_USE_TLS = env.bool("FERMATA_SMTP_TLS", True)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("FERMATA_MAIL_FROM", f"fermata@{_base.hostname}")
if EMAIL_HOST:
    CELERY_BEAT_SCHEDULE["tell reviewers"] = {
        "task": "approvals.tasks.notify",
        "schedule": 10.0,
        "options": {"expires": 20},
    }

# --- the engine ------------------------------------------------------------------------------------------------

FERMATA_LEASE_SECONDS = env.float("FERMATA_LEASE_SECONDS", 15.0, validate=validate.Range(min=1, max=600))
FERMATA_SLICE_SECONDS = env.float("FERMATA_SLICE_SECONDS", 30.0, validate=validate.Range(min=0))
# Off behind a transaction pooler that does not keep prepared statements (PgBouncer before 1.21): PostgreSQL then plans
# each statement anew.
FERMATA_PREPARED_STATEMENTS = env.bool("FERMATA_PREPARED_STATEMENTS", True)
FERMATA_MAX_CRASHES = env.int("FERMATA_MAX_CRASHES", 5, validate=validate.Range(min=1, max=100))
FERMATA_MAX_FAILURES = env.int("FERMATA_MAX_FAILURES", 5, validate=validate.Range(min=1, max=100))
FERMATA_HOOKS = "approvals.hooks.RunHooks"
FERMATA_SECRETS = env.str("FERMATA_SECRETS", "runs.engine.secrets.from_environment")
FERMATA_SNAPSHOT_LIMIT = env.int("FERMATA_SNAPSHOT_LIMIT", 16 * 1024 * 1024)
try:
    FERMATA_SNAPSHOT_KEYS = parse_keys(env.str("FERMATA_SNAPSHOT_KEYS", ""))
except ValueError as error:
    raise ImproperlyConfigured(f"FERMATA_SNAPSHOT_KEYS: {error}") from None
FERMATA_SNAPSHOT_ENCRYPTION_REQUIRED = env.bool("FERMATA_SNAPSHOT_ENCRYPTION_REQUIRED", False)
if FERMATA_SNAPSHOT_ENCRYPTION_REQUIRED and not FERMATA_SNAPSHOT_KEYS:
    raise ImproperlyConfigured("FERMATA_SNAPSHOT_ENCRYPTION_REQUIRED needs FERMATA_SNAPSHOT_KEYS")
# How long what runs saved is kept, in days; without a number, for ever. The newest checkpoints stay at any age.
_days = validate.Range(min=0)
FERMATA_KEEP_CHECKPOINTS = env.int("FERMATA_KEEP_CHECKPOINTS", 100, validate=validate.Range(min=1))
FERMATA_KEEP_CHECKPOINTS_DAYS = env.int("FERMATA_KEEP_CHECKPOINTS_DAYS", None, validate=_days)
FERMATA_KEEP_FINISHED_RUNS_DAYS = env.int("FERMATA_KEEP_FINISHED_RUNS_DAYS", None, validate=_days)
FERMATA_KEEP_FAILED_RUNS_DAYS = env.int("FERMATA_KEEP_FAILED_RUNS_DAYS", None, validate=_days)
FERMATA_KEEP_POSTS_DAYS = env.int("FERMATA_KEEP_POSTS_DAYS", 90, validate=_days)
# Addresses that webhooks may reach although they are not public, and without TLS: this machine's, while one develops.
try:
    FERMATA_WEBHOOK_NETWORKS = tuple(
        ip_network(text.strip())
        for text in env.list("FERMATA_WEBHOOK_NETWORKS", [] if PRODUCTION else ["127.0.0.0/8", "::1/128"])
    )
except ValueError as error:
    raise ImproperlyConfigured(f"FERMATA_WEBHOOK_NETWORKS: {error}") from None
FERMATA_FAILPOINTS = env.bool("FERMATA_FAILPOINTS", False)
if FERMATA_FAILPOINTS and PRODUCTION:
    raise ImproperlyConfigured("FERMATA_FAILPOINTS kills workers on purpose; it cannot be set in production")

# --- approvals -------------------------------------------------------------------------------------------------

FERMATA_HOLD_SECONDS = env.float("FERMATA_HOLD_SECONDS", 10.0, validate=validate.Range(min=0, max=120))
FERMATA_CLAIM_SECONDS = env.int("FERMATA_CLAIM_SECONDS", 900)
FERMATA_BASIC_VOTES = env.bool("FERMATA_BASIC_VOTES", not PRODUCTION)
# Somebody who joined a team or a group less than this ago does not count for high risk yet.
FERMATA_PROBATION_HOURS = env.float("FERMATA_PROBATION_HOURS", 24.0 if PRODUCTION else 0.0)
FERMATA_REJECTION_MEMORY_DAYS = env.int("FERMATA_REJECTION_MEMORY_DAYS", 7, validate=validate.Range(min=0, max=365))
FERMATA_PENDING_CAP = env.int("FERMATA_PENDING_CAP", 10_000, validate=validate.Range(min=1))

# --- the audit trail -------------------------------------------------------------------------------------------

# base64 of 32 random bytes; or else in a file:
FERMATA_AUDIT_KEY = env.str("FERMATA_AUDIT_KEY", "", validate=validate.Regexp(r"^([A-Za-z0-9+/]{43}=)?$"))
FERMATA_AUDIT_KEY_FILE = env.str("FERMATA_AUDIT_KEY_FILE", "" if PRODUCTION else str(current_instance().audit_key))
if not (FERMATA_AUDIT_KEY or FERMATA_AUDIT_KEY_FILE):
    raise ImproperlyConfigured("FERMATA_AUDIT_KEY or FERMATA_AUDIT_KEY_FILE must be set in production")
FERMATA_AUDIT_RETIRED_KEYS: list[str] = env.list("FERMATA_AUDIT_RETIRED_KEYS", [])  # public keys, base64
# An anchor belongs to one database; only the embedded one is sure to be the one that was here before.
_own_database = not env.str("DATABASE_URL", "")
FERMATA_AUDIT_ANCHOR = env.str("FERMATA_AUDIT_ANCHOR", str(current_instance().audit_anchor) if _own_database else "")
# Anchors elsewhere are sent every seal: a syslog server (/dev/log, udp://host:port, tcp://host:port, tls://host:port by
# the system's roots or those of a file), an https address.
FERMATA_AUDIT_ANCHOR_SYSLOG = env.str("FERMATA_AUDIT_ANCHOR_SYSLOG", "")
FERMATA_AUDIT_ANCHOR_SYSLOG_CA = env.str("FERMATA_AUDIT_ANCHOR_SYSLOG_CA", "")
FERMATA_AUDIT_ANCHOR_WEBHOOK = env.str("FERMATA_AUDIT_ANCHOR_WEBHOOK", "")
if FERMATA_AUDIT_ANCHOR_SYSLOG or FERMATA_AUDIT_ANCHOR_SYSLOG_CA:
    Syslog.from_setting("FERMATA_AUDIT_ANCHOR_SYSLOG", FERMATA_AUDIT_ANCHOR_SYSLOG, ca=FERMATA_AUDIT_ANCHOR_SYSLOG_CA)
if FERMATA_AUDIT_ANCHOR_WEBHOOK:
    Webhook.from_setting("FERMATA_AUDIT_ANCHOR_WEBHOOK", FERMATA_AUDIT_ANCHOR_WEBHOOK)
if FERMATA_AUDIT_ANCHOR_SYSLOG or FERMATA_AUDIT_ANCHOR_WEBHOOK:
    CELERY_BEAT_SCHEDULE["anchor the audit trail"] = {
        "task": "approvals.tasks.anchor",
        "schedule": 10.0,
        "options": {"expires": 20},
    }

# --- examples --------------------------------------------------------------------------------------------------

PAYMENTS_URL = env.str("PAYMENTS_URL", f"http://127.0.0.1:{PORT}/examples/payments").rstrip("/")

# --- logs ------------------------------------------------------------------------------------------------------


def is_no_known_outage(record: logging.LogRecord) -> bool:
    """A 503 is the answer of a probe, or of a page whose database is away: said elsewhere, and once."""
    return getattr(record, "status_code", 0) != 503


LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": env.log_level("FERMATA_LOG_LEVEL", logging.INFO)},
    "filters": {"known outage": {"()": "django.utils.log.CallbackFilter", "callback": is_no_known_outage}},
    "loggers": {
        "django.server": {"level": "WARNING"},
        "django.request": {"filters": ["known outage"]},
        "axes": {"level": "WARNING"},
    },
}
