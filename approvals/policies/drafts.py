"""What a policy or an automatic rule is to be, before anybody confirmed it: as a value, checked, and as text."""

import re
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Self

from django.contrib.auth.models import Group

from approvals import canonical, schemas
from approvals.errors import FieldErrors
from approvals.states import Risk

TOOL_PATTERN = re.compile(r"[A-Za-z0-9_.:/-]{1,127}\*?|\*")
LONGEST = timedelta(days=3650)


@dataclass(frozen=True)
class Draft:
    """Names and texts, numbers, and durations in whole seconds: what canonical JSON can hold."""

    def to_text(self) -> str:
        return canonical.dumps({name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()})

    @classmethod
    def from_text(cls, text: str) -> Self:
        values = canonical.parse(text)
        known = {field.name for field in fields(cls)}
        return cls(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items() if name in known})


@dataclass(frozen=True)
class PolicyDraft(Draft):
    """The next version of the policy called `name`. `quorum` and `escalation` are tuples of JSON objects, as in
    `PolicyVersion`; durations are seconds."""

    name: str
    quorum: tuple[dict[str, Any], ...]
    is_active: bool = True
    agents: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    risk_at_least: str = ""
    condition: str = ""
    risk: str = ""
    allow_edits: bool = True
    require_reason: bool = False
    require_reauthentication: bool = False
    allow_automatic: bool = False
    rejections: int = 1
    deadline: int | None = None
    minimum_deadline: int | None = None
    grant_life: int | None = None
    deny: bool = False
    escalation: tuple[dict[str, Any], ...] = ()

    def errors(self) -> FieldErrors:
        """What makes no sense, as (field, message) pairs."""
        errors = [*_name_errors(self.name), *_tool_errors(self.tools), *_condition_errors(self.condition)]
        errors += [
            (field, f"must be one of {', '.join(Risk.values)}, or nothing")
            for field in ("risk_at_least", "risk")
            if getattr(self, field) not in ("", *Risk.values)
        ]
        errors += [
            (field, "must be more than nothing and at most ten years")
            for field in ("deadline", "minimum_deadline", "grant_life")
            if not _is_span(getattr(self, field), optional=True)
        ]
        if not self.quorum and not self.deny:
            errors.append(("quorum", "must ask somebody"))
        if not _is_count(self.rejections):
            errors.append(("rejections", "must be 1 or more"))
        if self.escalation and self.deadline is None:
            errors.append(("escalation", "needs a deadline"))
        groups = set(Group.objects.values_list("name", flat=True))
        errors += [
            (f"quorum/{n}", "needs a count of 1 or more, and a group that exists or none")
            for n, part in enumerate(self.quorum)
            if not (part.keys() == {"group", "count"} and _is_count(part["count"]) and part["group"] in {None, *groups})
        ]
        errors += [
            (f"escalation/{n}", "needs seconds, and a group that exists")
            for n, part in enumerate(self.escalation)
            if not (part.keys() == {"group", "seconds"} and _is_span(part["seconds"]) and part["group"] in groups)
        ]
        return errors


@dataclass(frozen=True)
class RuleDraft(Draft):
    """An automatic rule, in place of the active one of that name. `window`: seconds; `max_sum`: decimal digits;
    `ends_at`: RFC 3339 with an offset."""

    name: str
    tools: tuple[str, ...]
    window: int
    max_count: int
    ends_at: str
    is_active: bool = True
    agents: tuple[str, ...] = ()
    condition: str = "{}"
    sum_of: str = ""
    max_sum: str | None = None

    def errors(self) -> FieldErrors:
        """What makes no sense, as (field, message) pairs."""
        errors = [*_name_errors(self.name), *_tool_errors(self.tools), *_condition_errors(self.condition)]
        if not self.tools:
            errors.append(("tools", "must name at least one"))
        if not _is_span(self.window):
            errors.append(("window", "must be more than nothing and at most ten years"))
        if not _is_count(self.max_count):
            errors.append(("max_count", "must be 1 or more"))
        if bool(self.sum_of) != (self.max_sum is not None):
            errors.append(("max_sum", "must come with sum_of, and only with it"))
        elif self.sum_of and not (self.sum_of.startswith("/") and _is_amount(self.max_sum)):
            errors.append(("sum_of", "must be a JSON pointer (/amount), and max_sum a number"))
        if not _is_moment(self.ends_at):
            errors.append(("ends_at", "must be a time with an offset"))
        return errors


def _name_errors(name: str) -> FieldErrors:
    return [] if 1 <= len(name) <= 80 and not canonical.wrong_text(name) else [("name", "must have 1 to 80 characters")]


def _tool_errors(tools: tuple[str, ...]) -> FieldErrors:
    return [
        (f"tools/{n}", "must be a tool's name, or a beginning followed by *")
        for n, pattern in enumerate(tools)
        if not TOOL_PATTERN.fullmatch(pattern)
    ]


def _condition_errors(condition: str) -> FieldErrors:
    return [(f"condition{path}", message) for path, message in schemas.schema_errors(condition or "{}")]


def _is_count(value: Any) -> bool:
    return type(value) is int and 1 <= value <= 1000


def _is_span(value: Any, *, optional: bool = False) -> bool:
    return (optional and value is None) or (type(value) is int and 1 <= value <= LONGEST.total_seconds())


def _is_amount(text: str | None) -> bool:
    return text is not None and re.fullmatch(r"\d{1,20}(\.\d{1,10})?", text) is not None and Decimal(text) > 0


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
