"""Settings under which the engine's promises would not hold, refused when Django starts."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.utils.module_loading import import_string

# A time limit raises an ordinary exception in the middle of a phase, or kills a worker that is at work; a late
# acknowledgement makes the broker deliver a long run again.
REFUSED = {
    "CELERY_TASK_TIME_LIMIT": "a call's deadline is its tool's: @tool(deadline=...)",
    "CELERY_TASK_SOFT_TIME_LIMIT": "a call's deadline is its tool's: @tool(deadline=...)",
    "CELERY_TASK_ACKS_LATE": "the database is the truth; the sweeper finds what a dead worker left",
    "CELERY_RESULT_BACKEND": "nothing reads Celery's results; what came of a run is in the database",
}


@register()
def celery_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    return [
        Error(f"{name} must not be set", hint=why, id=f"runs.E{number:03}")
        for number, (name, why) in enumerate(REFUSED.items(), 1)
        if getattr(settings, name, None)
    ]


@register()
def secrets_provider(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    try:
        import_string(settings.FERMATA_SECRETS)
    except ImportError as error:
        return [Error(f"FERMATA_SECRETS must be the dotted path of a function: {error}", id="runs.E010")]
    return []
