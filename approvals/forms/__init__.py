"""What reviewers type, read into what the services take."""

from approvals.forms.ballots import Ballot, read_ballot
from approvals.forms.edits import EditForm, Field

__all__ = ["Ballot", "EditForm", "Field", "read_ballot"]
