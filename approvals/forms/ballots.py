"""A verdict as a page posts it."""

from collections.abc import Mapping
from dataclasses import dataclass

from approvals.forms.edits import EditForm
from approvals.models import Approval
from approvals.states import Verdict


@dataclass(frozen=True)
class Ballot:
    """`args` is canonical JSON text for an edit that could be read. `edit` is the edit's form, with what was typed."""

    verdict: Verdict
    review: str
    message: str
    password: str
    edit: EditForm | None = None
    args: str | None = None

    @property
    def is_readable(self) -> bool:
        return self.edit is None or self.args is not None


def read_ballot(posted: Mapping[str, str], approval: Approval) -> Ballot | None:
    """None when it names no verdict. Line ends are as they were before a form's encoding changed them."""
    verdict = posted.get("verdict", "")
    if verdict not in Verdict.values:
        return None
    edit = None
    if verdict == Verdict.EDIT:
        edit = EditForm(args=approval.args, schema=approval.args_schema, mode=posted.get("mode", ""), posted=posted)
    return Ballot(
        verdict=Verdict(verdict),
        review=posted.get("review", ""),
        message=posted.get("message", "").replace("\r\n", "\n"),
        password=posted.get("password", ""),
        edit=edit,
        args=edit.read() if edit else None,
    )
