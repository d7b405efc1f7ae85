"""What the pages for administrators have in common: others learn it before they have filled in a form."""

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from approvals.errors import ChangeRefused
from approvals.queries.confirmers import NOT_ADMINISTRATOR
from approvals.queries.rules import teams_administered_by
from approvals.services.changes import check_administers
from runs.models import Team
from runs.principals import Person


def check_door(request: HttpRequest, person: Person, team: Team) -> None:
    """Raises `PermissionDenied` for whoever does not administer the team; what they wanted to do is put on record."""
    if request.method != "POST":
        if not teams_administered_by(person).filter(pk=team.pk).exists():
            raise PermissionDenied(NOT_ADMINISTRATOR)
        return
    try:
        check_administers(by=person.user, team=team.pk, attempt=f"POST {request.path}")
    except ChangeRefused as error:
        raise PermissionDenied(str(error)) from error
