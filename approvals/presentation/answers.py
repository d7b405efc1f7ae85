"""What a reviewer can answer, and the form in which they do."""

from dataclasses import dataclass, field, replace

from approvals.forms import Ballot, EditForm, Field
from approvals.models import Approval
from approvals.policies import Requirements
from approvals.states import Risk, Verdict


@dataclass(frozen=True, slots=True)
class Action:
    """One button. `is_one_click`: it decides at once; `is_careful`: its key only moves the focus there."""

    name: str
    label: str
    key: str
    style: str
    is_one_click: bool = False
    is_careful: bool = False


@dataclass(frozen=True)
class Answer:
    """The open form: `mode` is how arguments are edited, `errors` are by field (`form`, `message`, `password`)."""

    verdict: str
    title: str
    button: str
    style: str
    hint: str = ""
    mode: str = ""
    has_message: bool = True
    message_label: str = "Reason"
    message_required: bool = False
    must_confirm: bool = False
    needs_password: bool = False
    message: str = ""
    errors: dict[str, str] = field(default_factory=dict)
    fields: tuple[Field, ...] = ()

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
        answer = replace(answer, mode=edit.mode, fields=tuple(edit.fields), message_label="Why you changed it")
    return replace(
        answer,
        message=ballot.message if ballot else "",
        message_required=answer.message_required or requirements.reason,
        must_confirm=verdict == Verdict.APPROVE and (has_warnings or requirements.risk == Risk.HIGH),
        needs_password=requirements.reauthentication,
        errors=errors or {},
    )
