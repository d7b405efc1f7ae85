"""What a reviewer can answer, and the form in which they do."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.utils import timezone

from approvals.forms import Ballot, EditForm, Field, Resolution
from approvals.models import Approval
from approvals.policies import Requirements
from approvals.states import Risk, Verdict


@dataclass(frozen=True, slots=True)
class Action:
    """One button. `is_one_click`: it decides at once; `is_careful`: its key only moves the focus there.

    Before `waits_until` it cannot be pressed.
    """

    name: str
    label: str
    key: str
    style: str
    is_one_click: bool = False
    is_careful: bool = False
    waits_until: datetime | None = None

    @property
    def seconds_left(self) -> int:
        left = self.waits_until - timezone.now() if self.waits_until else timedelta(0)
        return max(0, int(left.total_seconds()) + 1)


@dataclass(frozen=True)
class Answer:
    """The open form: `mode` is how arguments are edited, `errors` are by field (`form`, `message`, `password`).

    `route` is the name of the view that takes it. `fields` stand in the card for an edit, else in the form.
    """

    verdict: str
    title: str
    button: str
    style: str
    hint: str = ""
    mode: str = ""
    route: str = "approval-vote"
    message_label: str = "Reason"
    message_required: bool = False
    must_confirm: bool = False
    confirm_label: str = "I have read every argument, and this exact action may run."
    needs_password: bool = False
    message: str = ""
    errors: dict[str, str] = field(default_factory=dict)
    fields: tuple[Field, ...] = ()
    may_be_json: bool = False

    @property
    def is_edit(self) -> bool:
        return self.verdict == Verdict.EDIT


FORMS = {
    Verdict.APPROVE: Answer("approve", "Approve this exact action", "Approve", "button-main"),
    Verdict.EDIT: Answer("edit", "Approve with these arguments", "Save and approve", "button-main"),
    Verdict.REJECT: Answer("reject", "Reject it", "Reject", "button-bad", "The run is told, and goes on without it."),
    Verdict.RESPOND: Answer(
        "respond",
        "Answer in place of the call",
        "Send the answer",
        "button-main",
        "The call is not made. The run gets your text as something a reviewer said.",
        message_label="Your answer",
        message_required=True,
    ),
}


def actions(approval: Approval, requirements: Requirements, *, has_warnings: bool) -> list[Action]:
    """The verdicts that are open on this card, in the order of its buttons."""
    asks_more = requirements.reason or requirements.reauthentication
    is_careful = has_warnings or requirements.risk == Risk.HIGH
    found = {
        Verdict.APPROVE: Action("approve", "Approve", "a", "button-main", not (asks_more or is_careful), is_careful),
        Verdict.EDIT: Action("edit", "Edit", "e", ""),
        Verdict.REJECT: Action("reject", "Reject", "r", ""),
        Verdict.RESPOND: Action("respond", "Respond", "m", ""),
    }
    closed = set() if requirements.edits else {Verdict.EDIT}
    if not requirements.one_suffices:
        closed.add(Verdict.RESPOND)
    return [action for verdict, action in found.items() if verdict in approval.allowed and verdict not in closed]


def answer_form(
    approval: Approval,
    requirements: Requirements,
    verdict: Verdict,
    *,
    has_warnings: bool,
    mode: str = "",
    ballot: Ballot | None = None,
    errors: dict[str, str] | None = None,
) -> Answer:
    """The form for one verdict; with what was typed, when `ballot` was refused."""
    answer = FORMS[verdict]
    if verdict == Verdict.EDIT:
        edit = ballot.edit if ballot else None
        edit = edit or EditForm(args=approval.args, schema=approval.args_schema, mode=mode)
        answer = replace(
            answer,
            mode=edit.mode,
            fields=tuple(edit.fields),
            may_be_json=edit.may_be_json,
            message_label="Why you changed it",
        )
    return replace(
        answer,
        message=ballot.message if ballot else "",
        message_required=answer.message_required or requirements.reason,
        must_confirm=verdict == Verdict.APPROVE and (has_warnings or requirements.risk == Risk.HIGH),
        needs_password=requirements.reauthentication,
        errors=errors or {},
    )


DOUBT_FORMS = {
    "happened": Answer(
        "happened",
        "It happened",
        "Say that it happened",
        "button-main",
        "The run goes on with this as the call's result.",
        route="approval-resolve",
        message_label="How you know",
    ),
    "not_happened": Answer(
        "not_happened",
        "It did not happen: do it",
        "Make the call now",
        "button-main",
        route="approval-resolve",
        message_label="How you know",
        must_confirm=True,
        confirm_label="I have looked in the other system: the call did not happen.",
    ),
    "stop": Answer(
        "stop",
        "Stop the run",
        "Stop the run",
        "button-bad",
        "It ends now, and nothing more is done.",
        route="approval-resolve",
    ),
}


def doubt_actions(safe_at: datetime | None) -> list[Action]:
    """The answers about a call in doubt. That it did not happen can be said from `safe_at` on."""
    waits = safe_at if safe_at is not None and safe_at > timezone.now() else None
    return [
        Action("happened", "It happened", "h", ""),
        Action("not_happened", "It did not: do it", "n", "", waits_until=waits),
        Action("stop", "Stop the run", "s", ""),
    ]


def doubt_form(name: str, *, resolution: Resolution | None = None, errors: dict[str, str] | None = None) -> Answer:
    """The form for one answer about a call in doubt; with what was typed, when `resolution` was refused."""
    answer = DOUBT_FORMS[name]
    if name == "happened":
        typed = resolution.typed if resolution else ""
        error = resolution.error if resolution else ""
        outcome = Field(
            "outcome", "What the call gave", typed, None, True, "as JSON; empty for null", "textarea", error=error
        )
        answer = replace(answer, fields=(outcome,))
    return replace(answer, message=resolution.message if resolution else "", errors=errors or {})
