"""The table of forms. A rule is tried on a text in which one of its hints occurs; its pattern then decides.

Patterns are RE2's, so a hostile text costs time linear in its length. Hints are chosen so that neither prose nor
base64 has them often: four characters, or one that base64 lacks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import re2

from checkpoints.credentials.names import NAME_HINT, is_placeholder, is_secret_name, looks_random
from checkpoints.credentials.patterns import compiled


@dataclass(frozen=True, slots=True)
class Rule:
    """`pattern` is tried on a text with any of `hints` in it; `secret` is the group that holds the credential."""

    name: str
    hints: tuple[bytes, ...]
    pattern: Any
    secret: int
    holds: Callable[[Any], bool]


def _always(match: Any) -> bool:
    return True


def _not_an_example(match: Any) -> bool:
    return not match.group().endswith(b"EXAMPLE")


def _a_real_password(match: Any) -> bool:
    user, password = match.group(1), match.group(2)
    return password not in (user, *_STAND_INS) and not is_placeholder(password)


def _a_real_value(match: Any) -> bool:
    return is_secret_name(match.group(1).decode()) and looks_random(match.group(2))


def _rule(name: str, hints: str, pattern: bytes, *, secret: int = 0, holds: Callable[[Any], bool] = _always) -> Rule:
    return Rule(name, tuple(hints.encode().split()), compiled(pattern), secret, holds)


_STAND_INS = (b"password", b"passwd", b"pass", b"pwd", b"secret", b"token", b"pw")

RULES = (
    # keys
    _rule(
        "private-key",
        "-----BEGIN",
        rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[\s]|\\[rn])+[A-Za-z0-9+/=\s\\:,-]{32,}",
    ),
    _rule("putty-key", "PuTTY-User-Key-File-", rb"PuTTY-User-Key-File-[23]: "),
    _rule("age-key", "AGE-SECRET-KEY-", rb"\bAGE-SECRET-KEY-1[0-9A-Z]{58}\b"),
    _rule("jwt", ".eyJ", rb"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{16,}"),
    _rule(
        "url-password",
        "://",
        rb"\b[A-Za-z][A-Za-z0-9+.-]{1,30}://([^\s/:@\"'<>]{0,200}):([^\s/@\"'<>]{2,200})@[A-Za-z0-9\[]",
        secret=2,
        holds=_a_real_password,
    ),
    # clouds and infrastructure
    _rule("aws-access-key", "AKIA ASIA ABIA ACCA", rb"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b", holds=_not_an_example),
    _rule("google-api-key", "AIza", rb"\bAIza[0-9A-Za-z_-]{35}"),
    _rule("google-oauth", "GOCSPX- ya29.", rb"\b(?:GOCSPX-[\w-]{28}|ya29\.[\w-]{30,})"),
    _rule("azure-storage-key", "AccountKey=", rb"AccountKey=[A-Za-z0-9+/]{86}=="),
    _rule("azure-signature", "sig=", rb"[?&;]sig=[A-Za-z0-9%/+]{43,60}(?:=|%3[dD])"),
    _rule("azure-client-secret", "Q~", rb"\b[\w.~-]{3}[0-9]Q~[\w.~-]{31,34}"),
    _rule("digitalocean-token", "_v1_", rb"\bdo[opr]_v1_[a-f0-9]{64}\b"),
    _rule("alibaba-access-key", "LTAI", rb"\bLTAI[A-Za-z0-9]{20}\b"),
    _rule("databricks-token", "dapi", rb"\bdapi[a-f0-9]{32}\b"),
    _rule("vault-token", "hvs. hvb. hvr.", rb"\bhv[sbr]\.[\w-]{24,}"),
    _rule("terraform-token", ".atlasv1.", rb"\b[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}"),
    _rule("pulumi-token", "pul-", rb"\bpul-[a-f0-9]{40}\b"),
    _rule("doppler-token", "dp.pt. dp.st. dp.sa.", rb"\bdp\.(?:pt|st|sa)\.[\w.-]{40,}"),
    _rule("planetscale-token", "pscale_", rb"\bpscale_(?:pw|tkn|oauth)_[\w.=-]{32,}"),
    _rule("supabase-key", "sbp_ sb_secret_", rb"\b(?:sbp_[a-f0-9]{40}|sb_secret_[\w-]{20,})"),
    _rule("grafana-token", "glsa_ glc_", rb"\b(?:glsa_[A-Za-z0-9]{32}_[a-fA-F0-9]{8}|glc_[A-Za-z0-9+/]{32,})"),
    _rule("new-relic-key", "NRAK-", rb"\bNRAK-[A-Z0-9]{27}\b"),
    _rule("sentry-token", "sntrys_ sntryu_", rb"\bsntry[su]_[\w+/=-]{40,}"),
    # payment
    _rule("stripe-key", "k_live_ k_test_", rb"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _rule("stripe-webhook-secret", "whsec_", rb"\bwhsec_[A-Za-z0-9+/=]{24,}"),
    _rule("square-token", "sq0atp- sq0csp-", rb"\bsq0(?:atp|csp)-[\w-]{22,43}"),
    _rule("braintree-token", "access_token$", rb"\baccess_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}\b"),
    _rule("shopify-token", "shpat_ shpca_ shppa_ shpss_", rb"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b"),
    # source hosting and package registries
    _rule("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", rb"\bgh[pousr]_[A-Za-z0-9]{36,}"),
    _rule("github-token", "github_pat_", rb"\bgithub_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    _rule(
        "gitlab-token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- glsoat-",
        rb"\bgl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat)-[\w.-]{20,}",
    ),
    _rule("bitbucket-token", "ATBB ATCTT3", rb"\b(?:ATBB[A-Za-z0-9]{32}\b|ATCTT3[\w=-]{60,})"),
    _rule("atlassian-token", "ATATT3", rb"\bATATT3[\w=-]{60,}"),
    _rule("npm-token", "npm_", rb"\bnpm_[A-Za-z0-9]{36}\b"),
    _rule("pypi-token", "pypi-AgE", rb"\bpypi-AgE[\w-]{50,}"),
    _rule("rubygems-key", "rubygems_", rb"\brubygems_[a-f0-9]{48}\b"),
    _rule("docker-token", "dckr_pat_ dckr_oat_", rb"\bdckr_[po]at_[\w-]{27,}"),
    # model providers
    _rule("anthropic-key", "sk-ant-", rb"\bsk-ant-[a-z]{2,8}[0-9]{2}-[\w-]{20,}"),
    _rule("openai-key", "sk-proj- sk-svcacct- sk-admin-", rb"\bsk-(?:proj|svcacct|admin)-[\w-]{20,}"),
    _rule("openai-key", "T3BlbkFJ", rb"\bsk-[\w-]{16,}T3BlbkFJ[\w-]{16,}"),
    _rule("openrouter-key", "sk-or-", rb"\bsk-or-v1-[a-f0-9]{64}\b"),
    _rule("langfuse-key", "sk-lf-", rb"\bsk-lf-[a-f0-9]{8}-[a-f0-9-]{27}\b"),
    _rule("model-provider-key", "sk-", rb"\bsk-[A-Za-z0-9]{32,64}\b"),
    _rule("hugging-face-token", "hf_", rb"\bhf_[A-Za-z0-9]{30,}\b"),
    _rule("groq-key", "gsk_", rb"\bgsk_[A-Za-z0-9]{40,}"),
    _rule("xai-key", "xai-", rb"\bxai-[A-Za-z0-9]{70,}"),
    _rule("perplexity-key", "pplx-", rb"\bpplx-[A-Za-z0-9]{40,}"),
    _rule("replicate-token", "r8_", rb"\br8_[A-Za-z0-9]{37}\b"),
    _rule("nvidia-key", "nvapi-", rb"\bnvapi-[\w-]{60,}"),
    _rule("pinecone-key", "pcsk_", rb"\bpcsk_[\w-]{40,}"),
    _rule("langsmith-key", "lsv2_", rb"\blsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}\b"),
    _rule("tavily-key", "tvly-", rb"\btvly-(?:dev-|prod-)?[A-Za-z0-9]{20,}"),
    # messages and work
    _rule(
        "slack-token",
        "xoxa- xoxb- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xapp-",
        rb"\b(?:xox[abeoprs](?:\.xox[bp])?-[\w-]{10,}|xapp-[0-9]-[\w-]{20,})",
    ),
    _rule("slack-webhook", "hooks.slack.com/", rb"\bhooks\.slack\.com/(?:services|workflows|triggers)/[\w+/-]{40,}"),
    _rule("discord-webhook", "/api/webhooks/", rb"\bdiscord(?:app)?\.com/api/webhooks/[0-9]{17,20}/[\w-]{60,}"),
    _rule("telegram-token", ":AA", rb"\b[0-9]{8,10}:AA[\w-]{33}\b"),
    _rule("sendgrid-key", "SG.", rb"\bSG\.[\w-]{16,32}\.[\w-]{16,64}"),
    _rule("linear-key", "lin_api_", rb"\blin_api_[A-Za-z0-9]{40}\b"),
    _rule("notion-token", "ntn_ secret_", rb"\b(?:ntn|secret)_[A-Za-z0-9]{43,50}\b"),
    _rule("postman-key", "PMAK-", rb"\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}\b"),
    _rule("figma-token", "figd_", rb"\bfigd_[\w-]{40}"),
    _rule("fermata-key", "fmt_", rb"\bfmt_[A-Za-z0-9]{12}_[\w-]{43}"),
    _rule("fermata-token", "fmp_", rb"\bfmp_[A-Za-z0-9]{12}_[\w-]{43}"),
    # by the name beside it, inside one text; `scanning` looks at a dict's keys
    _rule(
        "authorization-header",
        "authorization",
        rb"(?i)\bauthorization[\"'\\]{0,3}\s{0,3}[:=]\s{0,3}[\"'\\]{0,3}(?:bearer|basic|token)\s+[\w.~+/=-]{16,}",
    ),
)
NAMED = _rule(
    "named-secret",
    "",
    rb"(?i)([a-z0-9_-]{0,60}(?:pass(?:word|wd|phrase)|pwd|secret|token|key|credential)s?)[\"'\\]{0,3}"
    rb"\s{0,3}(?::=|=>|[:=])\s{0,3}[\"'\\]{0,3}([^\s\"'\\,;&<>(){}]{8,400})",
    secret=2,
    holds=_a_real_value,
)
# The hints as they stand in encoded data. Those that prose has often are given with what must follow them.
_CUES = {
    b"://": rb"://[^\s/@\"'<>]*:[^\s/@\"'<>]*@",
    b"sk-": rb"\bsk-[A-Za-z0-9]",
    b"authorization": rb"(?i:authorization)[\"'\\]{0,3}\s{0,3}[:=]",
}
_HINTS = {hint for rule in RULES for hint in rule.hints}
NAME_CUE = compiled(NAME_HINT)
# One pass over encoded data says whether anything in it is worth a closer look; almost always, nothing is.
ANY_CUE = compiled(
    b"|".join([*(_CUES.get(hint) or re2.escape(hint) for hint in sorted(_HINTS)), NAME_HINT]), longest=True
)
