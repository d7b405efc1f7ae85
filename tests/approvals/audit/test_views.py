import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from approvals.audit.keys import trusted_keys
from approvals.audit.verifying import verify_file
from approvals.models import AuditEvent
from runs.models import Agent, Team
from tests.approvals.scenes import opened

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>\u202egnp"


@pytest.fixture
def signed_in(client: Client, person: Callable[..., User]) -> Callable[..., Client]:
    def sign_in(*roles: str) -> Client:
        client.force_login(person("ada", *roles))
        return client

    return sign_in


def test_a_stranger_is_sent_to_sign_in(client: Client) -> None:
    for method in (client.get, client.post):
        for name in ("audit", "audit-export"):
            assert method(reverse(name)).status_code in {302, 405}


def test_an_auditor_reads_the_trail(write: Callable[..., str], signed_in: Callable[..., Client]) -> None:
    chain = write(body={"message": HOSTILE, "args": '{"amount":-5.10}'})
    page = signed_in("auditor").get(reverse("audit")).content.decode()
    assert chain in page
    assert "-5.10" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "not yet" in page


def test_a_reviewer_reads_one_approvals_chain_and_not_the_trail(agent: Agent, signed_in: Callable[..., Client]) -> None:
    approval = opened(agent)
    client = signed_in("reviewer")
    assert client.get(reverse("audit")).status_code == 403
    page = client.get(reverse("audit"), {"approval": str(approval.pk)})
    assert "approval.requested" in page.content.decode()
    assert "Export" not in page.content.decode()


def test_filters_that_cannot_be_understood_are_said(
    write: Callable[..., str], signed_in: Callable[..., Client]
) -> None:
    chain = write()
    page = signed_in("auditor").get(reverse("audit"), {"since": "yesterday", "run": "x", "type": "no.such"})
    assert chain in page.content.decode()
    assert page.content.decode().count("field-error") == 3


def test_pages_go_on(write: Callable[..., str], signed_in: Callable[..., Client]) -> None:
    for _ in range(60):
        write()
    client = signed_in("auditor")
    first = client.get(reverse("audit"), {"type": "vote.cast"}).context
    assert first["following"].startswith("type=vote.cast&after=")
    second = client.get(f"{reverse('audit')}?{first['following']}").context
    assert (len(first["lines"]), len(second["lines"]), second["following"]) == (50, 10, "")


def test_a_page_says_how_far_it_looked(
    write: Callable[..., str], signed_in: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("approvals.audit.pages.LOOKED_AT", 51)
    chain = write(body={"message": "sought"})
    write(51)
    client = signed_in("auditor")
    first = client.get(reverse("audit"), {"text": "sought"})
    assert "Nothing matches so far" in first.text
    assert "were looked through" in first.text
    second = client.get(f"{reverse('audit')}?{first.context['following']}")
    assert chain in second.text
    assert "were looked through" not in second.text


def test_only_a_post_exports_and_only_for_auditors(signed_in: Callable[..., Client]) -> None:
    client = signed_in("reviewer", "admin")
    assert client.get(reverse("audit-export")).status_code == 405
    assert client.post(reverse("audit-export"), {"format": "csv"}).status_code == 403
    assert not AuditEvent.objects.filter(type="audit.exported").exists()


def test_an_auditor_takes_away_what_the_filters_show(
    write: Callable[..., str], signed_in: Callable[..., Client], team: Team, tmp_path: Path
) -> None:
    other = Team.objects.create(name="Other")
    write(team_id=other.pk)
    chain = write(type="vote.undone")
    write()
    client = signed_in("auditor")
    address = f"{reverse('audit-export')}?type=vote.undone"
    answer: Any = client.post(address, {"format": "jsonl"})
    path = tmp_path / "export.jsonl"
    path.write_bytes(b"".join(answer.streaming_content))
    assert [json.loads(line)["chain"] for line in path.read_text().splitlines() if '"leaf"' in line] == [chain]
    assert verify_file(path, trusted_keys()).findings == []
    answer = client.post(address, {"format": "csv"})
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))
    assert [row["chain"] for row in rows] == [chain]
    assert answer["Content-Disposition"].endswith('.csv"')
    assert AuditEvent.objects.filter(type="audit.exported", chain=f"team:{team.pk}").count() == 2


def test_an_unknown_format_is_refused(signed_in: Callable[..., Client]) -> None:
    assert signed_in("auditor").post(reverse("audit-export"), {"format": "xls"}).status_code == 400


@pytest.mark.parametrize(("role", "shown"), [("auditor", True), ("admin", True), ("reviewer", False)])
def test_the_way_to_the_trail_is_shown_to_those_for_whom_it_is(
    signed_in: Callable[..., Client], role: str, shown: bool
) -> None:
    page = signed_in(role).get(reverse("runs")).content.decode()
    assert (f'href="{reverse("audit")}"' in page) is shown
