"""Every event of an approval's life that can meet another: where it can happen, what it does, how it loses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement

from approvals.errors import (
    AlreadyDecided,
    AlreadyVoted,
    ApprovalError,
    ClaimedByOther,
    EditInvalid,
    GrantProblem,
    NotAllowed,
    NothingToUndo,
    NotVisible,
    SettledMeanwhile,
    StaleReview,
)
from approvals.services import claims, sweeping
from runs.errors import RunError, WrongState
from runs.services.external import ClaimedElsewhere
from tests.races.acts import (
    GRANT_LIFE,
    Act,
    apply_rule,
    do_after,
    do_ask,
    do_cancel,
    do_cancel_run,
    do_claims,
    do_doubt,
    do_policy,
    do_revoke,
    do_spend,
    do_undo,
    edit,
    finish,
    leave,
    outcome,
    reapply,
    report,
    resolve,
    resume,
    settle,
    spend_again,
    stop_rules,
    too_late,
    vote,
)
from tests.races.places import DEADLINE, HOLD, PLACES, Scene

Losing = tuple[type[ApprovalError] | type[RunError], ...]


@dataclass(frozen=True)
class Event:
    """`places`: where it can happen. `loses`: what it may be told when another was first."""

    name: str
    places: tuple[str, ...]
    loses: Losing
    prepare: Callable[[Scene, int], Act]


DECIDED: Losing = (AlreadyDecided, StaleReview, NotVisible)
VOTES: Losing = (*DECIDED, NotAllowed, AlreadyVoted)
CONSUMING: Losing = (GrantProblem, ClaimedElsewhere)

P, TWO, RULE, H, R, S, WORK, D = (
    "pending", "one vote of two", "pending, with a rule", "held", "ready", "spent", "performing", "in doubt",
)  # fmt: skip
OTHER_HOLDS = ("held edit", "held rejection", "held answer")

EVENTS = (
    Event("ask the same", (P,), (), do_ask(same=True)),
    Event("ask otherwise", (P, RULE, H, *OTHER_HOLDS, R), (), do_ask(same=False)),
    Event("claim", (P, H, D), (AlreadyDecided, ClaimedByOther, NotVisible), do_claims(claims.claim)),
    Event("release", (P,), (ClaimedByOther, NotVisible), do_claims(claims.release)),
    Event("approve", (P, TWO, RULE, H), VOTES, vote("approve")),
    Event("approve on the page", (P,), VOTES, vote("approve", hold=HOLD)),
    Event("edit", (P, TWO, RULE), (*VOTES, EditInvalid), edit),
    Event("reject", (P, TWO, RULE, R), VOTES, vote("reject")),
    Event("respond", (P,), VOTES, vote("respond", message="paid by hand")),
    Event("undo", (TWO, H, *OTHER_HOLDS, R), (*DECIDED, NothingToUndo), do_undo),
    Event("settle", (H, *OTHER_HOLDS), (), settle),
    Event("deadline", (P, RULE, H), (), do_after(DEADLINE, lambda scene: sweeping.sweep())),
    Event("cancel", (P, RULE, H, R, D), (AlreadyDecided, NotAllowed), do_cancel),
    Event("cancel the run", (P, RULE, H, *OTHER_HOLDS, R, S, WORK, D), (WrongState,), do_cancel_run),
    Event("tighten", (P, TWO, H), (), do_policy(quorum=({"group": None, "count": 3},))),
    Event("deny", (P, RULE, H, R), (), do_policy(quorum=(), deny=True)),
    Event("reapply", (P,), (SettledMeanwhile,), reapply),
    Event("lose the right", (P, TWO, H), (), leave),
    Event("apply the rule", (RULE,), (), apply_rule),
    Event("stop the rules", (RULE,), (), stop_rules),
    Event("resume", (R,), (WrongState, ClaimedElsewhere), resume),
    Event("finish", (R, S), (WrongState, ClaimedElsewhere), finish),
    Event("spend", (R, S), CONSUMING, do_spend),
    Event("spend with the same key", (S,), CONSUMING, spend_again),
    Event("revoke", (R, S, WORK), (GrantProblem,), do_revoke),
    Event("grant expiry", (R, S, WORK, D), (), do_after(GRANT_LIFE, lambda scene: sweeping.sweep())),
    Event("report success", (S,), CONSUMING, report(True)),
    Event("report failure", (S,), CONSUMING, report(False)),
    Event("succeed", (WORK, D), (GrantProblem,), outcome(True)),
    Event("fail", (WORK, D), (GrantProblem,), outcome(False)),
    Event("doubt", (WORK, D), (WrongState,), do_doubt),
    Event("it happened", (D,), DECIDED, resolve("happened", outcome={"receipt": 1})),
    Event("it did not happen", (D,), DECIDED, resolve("not_happened")),
    Event("stop there", (D,), DECIDED, resolve("stop")),
    Event("it did not happen, too late", (D,), DECIDED, too_late),
)
BY_NAME = {event.name: event for event in EVENTS}

# Places that differ from another only for one event: there, what matters is how that one meets the rest.
ONLY_WITH = {RULE: "apply the rule", **dict.fromkeys(OTHER_HOLDS, "settle")}
# The clock in it could come in the middle of another answer; "grant expiry" meets them all.
ONLY_ALONE = "it did not happen, too late"
PAIRS = [
    (place, first.name, second.name)
    for place in PLACES
    for first, second in combinations_with_replacement([event for event in EVENTS if place in event.places], 2)
    if ONLY_ALONE not in (first.name, second.name) and ONLY_WITH.get(place) in (None, first.name, second.name)
]
