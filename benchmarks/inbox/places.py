"""What is asked for, by whom, and how: every place once, in rounds, through Django's whole stack."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import cycle
from uuid import UUID

from django.core import signing
from django.test import Client
from django.utils import timezone

from approvals.models import Approval
from approvals.services import noticing
from approvals.services import sweeping as approvals_sweeping
from benchmarks.inbox.people import People
from runs.paging import CursorField
from runs.services import sweeping as runs_sweeping
from runs.services.agents import issue_key

HALF = "7fffffff-0000-4000-8000-000000000000"
TABS = {
    "mine": "Mine",
    "unclaimed": "Unclaimed",
    "others": "Waiting on others",
    "attention": "Needs attention",
    "history": "History",
}
FILTERS = {
    "agent": "agent=agent-03",
    "a rare agent": "agent=rare-agent",
    "tool": "tool=deploy",
    "a rare tool": "tool=ledger/close",
    "risk": "risk=high",
    "due": "due=week",
    "all four": "agent=agent-03&tool=deploy&risk=medium&due=week",
}
WORDS = {
    "in a third": "refund",
    "in some": "zebra",
    "in one": "A-0000",
    "in none": "xylophone",
    "in none, of common parts": "order A-9990009",
    "two letters": "zq",
}


@dataclass(frozen=True)
class Place:
    """One thing to wait for; `ask` raises unless it was answered."""

    name: str
    group: str
    ask: Callable[[], object]

    def seconds(self) -> float:
        began = time.perf_counter()
        self.ask()
        return time.perf_counter() - began


def places(people: People, *, limit: int = 50) -> Iterator[Place]:
    """`limit`: how many rows of each list of the API."""
    reviewer, both, auditor = (_signed_in(person) for person in (people.reviewer, people.both, people.auditor))
    for tab, label in TABS.items():
        yield Place(label, "inbox", _page(reviewer, f"/?tab={tab}"))
        yield Place(f"{label}, far down", "inbox", _page(reviewer, f"/?tab={tab}&after={_far_down(tab)}"))
        for name, query in FILTERS.items():
            yield Place(f"{label}, by {name}", "filters", _page(reviewer, f"/?tab={tab}&{query}"))
        for name, word in WORDS.items():
            yield Place(f"{label}, a word {name}", "search", _page(reviewer, f"/?tab={tab}&q={word}"))
        yield Place(f"{label}, of two teams", "two teams", _page(both, f"/?tab={tab}"))
    since = (timezone.now() - timedelta(minutes=5)).isoformat().replace("+", "%2B")
    yield Place("what is new", "inbox", _page(reviewer, f"/inbox/news/?tab=unclaimed&since={since}"))
    yield Place("a pending card", "cards", _cards(reviewer, status="pending", team=1, turn=1))
    yield Place("a decided card", "cards", _cards(reviewer, status="approved", team=1, turn=1))
    key = issue_key(agent=people.agents[3], scopes=["approvals:read", "runs:read"]).text
    for who, client, headers in (
        ("an agent's", Client(), {"Authorization": f"Bearer {key}"}),
        ("a person's", reviewer, {}),
        ("of two teams, a person's", both, {}),
    ):
        for query in ("", "status=pending", "status=rejected", "tool=ledger/close", f"cursor={_far_back()}"):
            name = f"{who} list {query.partition('=')[0] + ' ' + query.partition('=')[2][:12]}".strip()
            yield Place(name, "lists", _page(client, f"/api/v1/approvals?limit={limit}&{query}", headers))
        yield Place(f"{who} runs", "lists", _page(client, f"/api/v1/runs?limit={limit}", headers))
    yield Place("the runs", "lists", _page(reviewer, "/runs/"))
    for name, query in {
        "": "",
        ", by person": "person=other",
        ", by event": "type=grant.revoked",
        ", by agent": f"agent={people.agents[3].pk}",
        ", by a rare tool": "tool=ledger/close",
        ", a word in many": "text=as it was",
        ", a word in none": "text=xylophone",
    }.items():
        yield Place(f"the trail{name}", "audit", _page(auditor, f"/audit/?{query}"))
    yield Place(
        "one approval's trail", "audit", _page(reviewer, f"/audit/?approval={_some(status='pending', team=1)[0]}")
    )
    yield Place("sweep runs", "sweeper", runs_sweeping.sweep)
    yield Place("stranded runs", "sweeper", runs_sweeping.stranded)
    yield Place("sweep approvals", "sweeper", approvals_sweeping.sweep)
    yield Place("mails", "sweeper", noticing.notify)


def _signed_in(person: object) -> Client:
    client = Client()
    client.force_login(person, "django.contrib.auth.backends.ModelBackend")  # type: ignore[arg-type]
    return client


def _page(client: Client, address: str, headers: dict[str, str] | None = None) -> Callable[[], object]:
    def ask() -> None:
        response = client.get(address, headers={"host": "127.0.0.1", **(headers or {})})
        if response.status_code != 200:
            raise RuntimeError(f"{address}: {response.status_code}")

    return ask


def _cards(client: Client, **which: object) -> Callable[[], object]:
    """Another card each time."""
    ids = cycle(_some(**which))

    def ask() -> None:
        _page(client, f"/approvals/{next(ids)}/")()

    return ask


def _some(**which: object) -> list[UUID]:
    """Some ids."""
    return list(Approval.objects.filter(**which).order_by("pk").values_list("pk", flat=True)[1:2000:40])


def _far_down(tab: str) -> str:
    """A page's end somewhere in the middle."""
    now = timezone.now()
    first = now - timedelta(days=90) if tab == "history" else now + timedelta(days=7)
    return signing.dumps([first.isoformat(), now.isoformat(), HALF], salt="queue")


def _far_back() -> str:
    return CursorField().to_representation((timezone.now() - timedelta(days=180), UUID(HALF)))
