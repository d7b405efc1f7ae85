"""What reviewers type, read into what the services take."""

from approvals.forms.ballots import Ballot, read_ballot
from approvals.forms.edits import EditForm, Field
from approvals.forms.resolutions import Resolution, read_resolution
from approvals.forms.several import Several, read_several

__all__ = [
    "Ballot",
    "EditForm",
    "Field",
    "Resolution",
    "Several",
    "read_ballot",
    "read_resolution",
    "read_several",
]
