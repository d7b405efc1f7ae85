"""Django's admin is no way around the services: what is posted there beyond names and addresses changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import CommandError, call_command
from django.test import Client

from approvals.models import AuditEvent
from tests.support.pages import browser

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(client: Client, admin_user: User) -> Client:
    client.force_login(admin_user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def told() -> list[str]:
    events = AuditEvent.objects.filter(type="person.changed").select_related("content").order_by("pk")
    return [event.content.body for event in events]


def test_only_names_and_addresses_change(root: Client, reviewer: User) -> None:
    group, permission = Group.objects.create(name="finance"), Permission.objects.first()
    assert permission is not None
    posted = {
        "username": "somebody-else", "first_name": "Rae", "last_name": "Viewer", "email": "rae@example.org",
        "is_staff": "on", "is_superuser": "on", "groups": [group.pk], "user_permissions": [permission.pk],
        "password": "a stapler under the willow",
    }  # fmt: skip

    assert root.post(f"/admin/auth/user/{reviewer.pk}/change/", posted).status_code == 302

    before, reviewer = reviewer.password, User.objects.get(pk=reviewer.pk)
    assert (reviewer.get_full_name(), reviewer.email, reviewer.username) == (
        "Rae Viewer",
        "rae@example.org",
        "reviewer",
    )
    assert (reviewer.is_staff, reviewer.is_superuser, reviewer.is_active) == (False, False, True)
    assert not reviewer.groups.exists()
    assert not reviewer.user_permissions.exists()
    assert reviewer.password == before
    assert '"what":"renamed"' in told()[-1]


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("auth/user/add/", 403),
        ("auth/user/{person}/password/", 403),
        ("auth/user/{person}/delete/", 403),
        ("auth/group/add/", 404),
        ("auth/group/{group}/change/", 404),
    ],
)
def test_closed_doors(root: Client, reviewer: User, address: str, status: int) -> None:
    group = Group.objects.create(name="finance")
    path = "/admin/" + address.format(person=reviewer.pk, group=group.pk)
    posted = {"username": "new", "name": "new", "password1": "x", "password2": "x", "post": "yes"}
    assert (root.get(path).status_code, root.post(path, posted).status_code) == (status, status)
    assert not User.objects.filter(username="new").exists()


def test_nor_does_a_superuser_set_their_own_password_there(root: Client, admin_user: User) -> None:
    assert root.post(f"/admin/auth/user/{admin_user.pk}/password/", {}).status_code == 403


def test_an_account_is_closed_at_once_and_on_record(root: Client, reviewer: User) -> None:
    session = browser(reviewer)
    root.post("/admin/auth/user/", {"action": "close", "_selected_action": [reviewer.pk]})
    assert not User.objects.get(pk=reviewer.pk).is_active
    assert session.get("/").status_code == 302
    assert '"active":false' in told()[-1]


def test_on_the_command_line(person: Callable[..., User]) -> None:
    ada = person("ada")
    for what, is_active in (("close", False), ("open", True)):
        call_command("account", what, "ada")
        ada.refresh_from_db()
        assert ada.is_active == is_active
    assert [AuditEvent.objects.filter(type="person.changed", actor="system").count(), len(told())] == [2, 2]
    with pytest.raises(CommandError, match="no person named 'nobody'"):
        call_command("account", "close", "nobody")
