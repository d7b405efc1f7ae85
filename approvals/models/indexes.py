"""The approvals' indexes: what each is for. Every list of them is a scan along one of these (docs/decisions/033)."""

from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db.models import DateTimeField, Func, Index, Q, TextField
from django.db.models.functions import Upper

from approvals.states import OPEN, ApprovalKind, ApprovalStatus

IS_OPEN = Q(status__in=sorted(OPEN))
IS_SETTLED = ~IS_OPEN
# What a search looks into. The line feed is in no search: nothing is found across two of them.
SAID = Func(
    *("tool", "title", "description", "args"),
    template="(%(expressions)s)",
    arg_joiner=" || E'\\n' || ",
    output_field=TextField(),
)

# When half the time to decide has passed. Without a time zone, for that is what arithmetic with days depends on, and an
# index may depend on nothing; `services.noticing` asks in the same words.
HALF_TIME = Func(
    Func("expires_at", template="(%(expressions)s AT TIME ZONE 'UTC')"),
    Func(
        Func("expires_at", "created_at", template="(%(expressions)s)", arg_joiner=" - "), template="%(expressions)s / 2"
    ),
    template="(%(expressions)s)",
    arg_joiner=" - ",
    output_field=DateTimeField(),
)

_DUE = ("expires_at", "created_at", "id")
_NEWEST = ("-created_at", "-id")
_LAST = ("-settled_at", "-id")

QUEUES = (  # open cards in the order of the queue, whole and by each of the filters
    Index(fields=("team", *_DUE), condition=IS_OPEN, name="approvals_open_by_due"),
    Index(fields=("agent", *_DUE), condition=IS_OPEN, name="approvals_open_agent"),
    Index(fields=("team", "tool", *_DUE), condition=IS_OPEN, name="approvals_open_tool"),
    Index(fields=("team", "risk", *_DUE), condition=IS_OPEN, name="approvals_open_risk"),
)
HISTORY = (  # the same of settled ones; by agent and tool also for what was decided before about the like
    Index(fields=("team", *_LAST), condition=IS_SETTLED, name="approvals_settled"),
    Index(fields=("agent", *_LAST), condition=IS_SETTLED, name="approvals_settled_agent"),
    Index(fields=("team", "tool", *_LAST), condition=IS_SETTLED, name="approvals_settled_tool"),
    Index(fields=("agent", "tool", *_LAST), condition=IS_SETTLED, name="approvals_settled_both"),
)
# Without the list of pending entries, which every search would have to read through: a row has few words.
SEARCH = tuple(
    GinIndex(OpClass(Upper(SAID), name="gin_trgm_ops"), condition=condition, fastupdate=False, name=name)
    for name, condition in (("approvals_open_search", IS_OPEN), ("approvals_settled_search", IS_SETTLED))
)
SEATS = (  # whose an open card is
    Index(fields=("team", "pools", *_DUE), condition=IS_OPEN, name="approvals_open_pools_by_due"),
    Index(
        fields=("team",), condition=Q(status__in=sorted(OPEN), kind=ApprovalKind.IN_DOUBT), name="approvals_in_doubt"
    ),
    Index(fields=("claimed_until",), condition=Q(claimed_until__isnull=False), name="approvals_claimed"),
    GinIndex(fields=("wanted",), condition=IS_OPEN, fastupdate=False, name="approvals_open_wanted"),
    GinIndex(fields=("voted_by",), condition=IS_OPEN, fastupdate=False, name="approvals_open_voted_by"),
    GinIndex(fields=("pools",), condition=IS_OPEN, fastupdate=False, name="approvals_open_pools"),
)
LISTS = (  # the API's, and what is new on the page
    Index(fields=("run", "created_at"), name="approvals_of_run"),
    Index(fields=("agent", *_NEWEST), name="approvals_of_agent"),
    Index(fields=("team", *_NEWEST), name="approvals_of_team"),
    Index(fields=("team", "tool"), name="approvals_of_tool"),
    Index(fields=("team", "created_at"), condition=IS_OPEN, name="approvals_open_newest"),
)
SWEPT = (  # what the sweeper and the mails look for
    Index(fields=("expires_at",), condition=Q(status=ApprovalStatus.PENDING), name="approvals_due"),
    Index(fields=("held_until",), condition=Q(status=ApprovalStatus.HELD), name="approvals_held"),
    Index(
        fields=("created_at",),
        condition=Q(status=ApprovalStatus.PENDING, automatic__isnull=False),
        name="approvals_for_a_rule",
    ),
    Index(
        fields=("created_at",),
        condition=Q(status=ApprovalStatus.PENDING, announced_at__isnull=True),
        name="approvals_unannounced",
    ),
    Index(
        HALF_TIME,
        condition=Q(status=ApprovalStatus.PENDING, reminded_at__isnull=True, expires_at__isnull=False),
        name="approvals_to_remind",
    ),
)
INDEXES = (*QUEUES, *HISTORY, *SEARCH, *SEATS, *LISTS, *SWEPT)
