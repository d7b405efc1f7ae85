"""People: what they may do in a team, and which pools of reviewers they are in."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db import connection, transaction

from runs.errors import RunError
from runs.hooks import hooks
from runs.models import Membership, Role, Team
from runs.services.passwords import PasswordRefused, check_password_rules, note_password


@dataclass
class PersonRefused(RunError):
    """A person cannot be registered like this: `reasons` are sentences."""

    username: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"cannot create {self.username!r}: {' '.join(self.reasons)}"


@transaction.atomic
def create_person(
    *,
    username: str,
    password: str,
    team: Team,
    roles: Sequence[str] = (Role.REVIEWER,),
    groups: Sequence[str] = (),
    superuser: bool = False,
) -> User:
    """Register a person in `team`, on the server's command line; groups that do not exist yet are made.

    Whoever has that command line is trusted: what the person is from the start counts for high risk at once, what they
    become later does not. A weak password is refused in production only: a throw-away instance may have one. Raises
    `PersonRefused`.
    """
    if unknown := sorted(set(roles) - set(Role.values)):
        known = ", ".join(Role.values)
        raise PersonRefused(username=username, reasons=(f"There is no role {', '.join(unknown)}; known: {known}.",))
    user = User(username=username, is_superuser=superuser, is_staff=superuser)
    try:
        user.full_clean(exclude=["password"])
        if settings.PRODUCTION:
            check_password_rules(password, user)
    except ValidationError as error:
        raise PersonRefused(username=username, reasons=tuple(error.messages)) from error
    except PasswordRefused as error:
        raise PersonRefused(username=username, reasons=error.reasons) from error
    user.set_password(password)
    user.save()
    Membership.objects.create(user=user, team=team, roles=list(dict.fromkeys(roles)))
    user.groups.set([Group.objects.get_or_create(name=name)[0] for name in groups])
    note_password(person=user, vouched=True)
    with connection.cursor() as cursor:
        hooks().record_change(
            cursor,
            team_id=team.pk,
            type="person.changed",
            actor="system",
            body={"person": user.pk, "roles": list(roles), "groups": list(groups), "superuser": superuser},
        )
    return user
