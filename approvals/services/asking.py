"""Before anything is opened: whether what an agent asks can be asked, and what it will take to decide it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import Group, User

from approvals import canonical, policies, queries, schemas
from approvals.errors import InvalidAsk, TooManyPending
from approvals.models import AutomaticRule
from approvals.policies import Asked, Requirements, automatic
from approvals.secrecy import credentials_in
from approvals.services.premises import newest_rules
from approvals.states import Risk, Verdict
from runs.engine.tools import NAME

MAX_KEY = 200
MAX_TITLE = 200
LONGEST = timedelta(days=3650)


@dataclass(frozen=True)
class Ask:
    """One action to be decided about. `args` and `args_schema` are JSON text.

    `groups` and `users` (names) are people who must approve besides those whom the policies ask. `expires_in` and
    `grant_life` can only shorten what the policies allow. `closes_others`: the first answer at this gate is enough.
    """

    key: str
    tool: str
    args: str
    title: str
    description: str = ""
    risk: str = Risk.LOW
    allowed: tuple[str, ...] = tuple(Verdict)
    args_schema: str = "{}"
    expires_in: timedelta | None = None
    groups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    tool_version: str = ""
    target: str = ""
    grant_life: timedelta | None = None
    closes_others: bool = False


@dataclass(frozen=True)
class RunFacts:
    """Whose run asks. `agent` is the agent's name."""

    run_id: UUID
    team_id: int
    agent_id: UUID
    agent: str


@dataclass(frozen=True)
class PreparedAsk:
    """`automatic`: the id of the automatic rule that will look at it first."""

    ask: Ask
    asked: Asked
    requirements: Requirements
    automatic: int | None

    @property
    def wants_second_approver(self) -> bool:
        """Whether it asks for at least what a rejection of the same would make it ask."""
        return policies.second_approver(self.requirements) == self.requirements


@dataclass(frozen=True)
class PreparedAsks:
    """`rules`: by which state of the team's policies, as `approvals.services.premises` tells them apart."""

    run: RunFacts
    asks: tuple[PreparedAsk, ...]
    rules: int


def prepare(asks: Sequence[Ask], *, run: RunFacts) -> PreparedAsks:
    """Check the asks and find out what each one takes. Reads the database; writes nothing.

    Raises `InvalidAsk`, with every error (`/0/args/amount`), and `TooManyPending`.
    """
    keys = [ask.key for ask in asks]
    errors = [(f"/{index}{path}", message) for index, ask in enumerate(asks) for path, message in _errors(ask)]
    errors += [(f"/{index}/key", "is used twice") for index, key in enumerate(keys) if key in keys[:index]]
    if errors:
        raise InvalidAsk(errors)
    if queries.count_open(agent_id=run.agent_id) + len(asks) > settings.FERMATA_PENDING_CAP:
        raise TooManyPending(agent=run.agent, cap=settings.FERMATA_PENDING_CAP)
    newest, rules = newest_rules(run.team_id), policies.rules_of(run.team_id)
    live = list(automatic.live_rules(run.team_id))
    return PreparedAsks(
        run=run,
        asks=tuple(_prepared(ask, f"/{index}", rules, live, run) for index, ask in enumerate(asks)),
        rules=newest,
    )


def _prepared(
    ask: Ask, at: str, rules: Sequence[policies.Rule], live: Sequence[AutomaticRule], run: RunFacts
) -> PreparedAsk:
    clean = replace(
        ask,
        args=canonical.form(ask.args),
        args_schema=canonical.form(ask.args_schema),
        allowed=tuple(verdict for verdict in Verdict if verdict in ask.allowed or verdict == Verdict.REJECT),
    )
    asked = Asked(
        risk=Risk(ask.risk),
        groups=ask.groups,
        users=_user_ids(ask.users, at),
        expires_in=ask.expires_in,
        grant_life=ask.grant_life,
    )
    requirements = policies.required(rules, agent=run.agent, tool=clean.tool, args=clean.args, asked=asked)
    if queries.rejected_lately(agent_id=run.agent_id, tool=clean.tool, args=clean.args):
        requirements = policies.second_approver(requirements)
    rule = automatic.candidate(live, requirements, agent=run.agent, tool=clean.tool, args=clean.args)
    return PreparedAsk(ask=clean, asked=asked, requirements=requirements, automatic=rule.pk if rule else None)


def _user_ids(names: Sequence[str], at: str) -> tuple[int, ...]:
    known = dict(User.objects.filter(username__in=names, is_active=True).values_list("username", "pk"))
    unknown = [(f"{at}/reviewers/users/{n}", "is nobody here") for n, name in enumerate(names) if name not in known]
    if unknown:
        raise InvalidAsk(unknown)
    return tuple(sorted(known.values()))


def _errors(ask: Ask) -> list[tuple[str, str]]:
    errors = []
    if not 1 <= len(ask.key) <= MAX_KEY:
        errors.append(("/key", f"must have 1 to {MAX_KEY} characters"))
    if not 1 <= len(ask.title) <= MAX_TITLE:
        errors.append(("/title", f"must have 1 to {MAX_TITLE} characters"))
    if not NAME.fullmatch(ask.tool):
        errors.append(("/tool", "must be 1 to 128 of A-Z a-z 0-9 _ . : / -"))
    if ask.risk not in Risk.values:
        errors.append(("/risk", f"must be one of {', '.join(Risk.values)}"))
    errors += [
        (f"/allowed/{index}", f"must be one of {', '.join(Verdict.values)}")
        for index, verdict in enumerate(ask.allowed)
        if verdict not in Verdict.values
    ]
    for field, duration in (("expires_in", ask.expires_in), ("grant_life", ask.grant_life)):
        if duration is not None and not timedelta(0) < duration <= LONGEST:
            errors.append((f"/{field}", "must be more than nothing and at most ten years"))
    known = set(Group.objects.filter(name__in=ask.groups).values_list("name", flat=True))
    errors += [
        (f"/reviewers/groups/{index}", "is no group here") for index, name in enumerate(ask.groups) if name not in known
    ]
    errors += [(f"/args_schema{path}", message) for path, message in schemas.schema_errors(ask.args_schema)]
    wrong = schemas.errors_in(ask.args, "{}") or credentials_in(canonical.parse(ask.args))
    errors += [(f"/args{path}", message) for path, message in wrong]
    for field in ("key", "title", "description"):
        errors += [(f"/{field}", message) for message in canonical.wrong_text(getattr(ask, field))]
    return errors
