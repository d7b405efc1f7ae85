"""People: what they may do in a team, and which pools of reviewers they are in."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db import transaction

from runs.clock import database_now
from runs.errors import RunError
from runs.models import Membership, Role, Team
from runs.services.passwords import PasswordRefused, check_password_rules, note_password
from runs.services.recording import actor_of, record_change, record_person
from runs.services.tokens import end_tokens


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
    facts = {"roles": list(roles), "groups": list(groups), "superuser": superuser}
    record_person(person=user.pk, type="person.changed", actor=actor_of(None), facts=facts)
    return user


@transaction.atomic
def set_roles(*, person: User, team: Team, roles: Sequence[str], by: User) -> None:
    """Give the person exactly these roles in the team; none: they leave it.

    Whoever becomes a reviewer begins anew as one, and whoever becomes an administrator as one.
    """
    membership = Membership.objects.select_for_update().filter(user=person, team=team).first()
    before = membership.roles if membership else []
    if not roles:
        Membership.objects.filter(user=person, team=team).delete()
    elif membership is None:
        Membership.objects.create(user=person, team=team, roles=list(roles))
    else:
        now, begun = database_now(), {*roles} - {*before}
        membership.roles = list(roles)
        membership.admin_since = now if Role.ADMIN in begun else membership.administers_since
        membership.since = now if Role.REVIEWER in begun else membership.since
        membership.save(update_fields=["roles", "since", "admin_since"])
    facts = {"person": person.pk, "roles": list(roles), "roles_before": list(before)}
    record_change(teams=[team.pk], type="person.changed", actor=actor_of(by), facts=facts)


@transaction.atomic
def change_group(*, name: str, add: Sequence[int], remove: Sequence[int], teams: Sequence[int], by: User) -> None:
    """Add people (ids) to a group, made if it does not exist, and take others out. It is told to `teams`."""
    group, _ = Group.objects.get_or_create(name=name)
    group.user_set.add(*add)
    group.user_set.remove(*remove)
    facts = {"group": name, "added": list(add), "removed": list(remove)}
    record_change(teams=teams, type="person.changed", actor=actor_of(by), facts=facts)


@transaction.atomic
def set_active(*, person: User, active: bool, by: User | None = None) -> None:
    """Close an account, at once, or open it again. Without `by`: on the server's command line."""
    person.is_active = active
    person.save(update_fields=["is_active"])
    if not active:
        end_tokens(person=person, actor=actor_of(by), why="account closed")
    record_person(person=person.pk, type="person.changed", actor=actor_of(by), facts={"active": active})


@transaction.atomic
def rename(*, person: User, first_name: str, last_name: str, email: str, by: User) -> None:
    """How the person is called, and where mail goes. The name that they sign in with stays."""
    before = User.objects.values("first_name", "last_name", "email").get(pk=person.pk)
    person.first_name, person.last_name, person.email = first_name, last_name, email
    person.save(update_fields=["first_name", "last_name", "email"])
    changed = [name for name, value in before.items() if value != getattr(person, name)]
    if changed:
        facts = {"what": "renamed", "fields": changed}
        record_person(person=person.pk, type="person.changed", actor=actor_of(by), facts=facts)
