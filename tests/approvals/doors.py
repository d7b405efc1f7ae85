"""The doors of docs/permissions.md: what must have happened before one, what is posted there, and what it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from approvals.models import Approval, AutomaticRule
from approvals.services.delegating import delegate
from approvals.services.policymaking import propose_lifting
from runs.clock import database_now
from runs.models import Agent, Membership, Run, RunHead, Webhook
from runs.services.passwords import draw_link, open_link
from runs.services.tokens import make_token
from runs.states import ResumeMode, RunStatus
from tests.approvals.scenes import HOLD, cast, in_doubt
from tests.support.api import PASSWORD, as_agent, suspension

NEW_PASSWORD = "a stapler under the willow"
STATE = "only-the-snapshot-says-this"


@dataclass
class Scene:
    """One parked run with one open approval, and everybody who may knock."""

    agent: Agent
    approval: Approval
    people: dict[str, User]
    agents: dict[str, Agent]
    places: dict[str, int | str] = field(default_factory=dict)  # keys that addresses name
    came_by: str = ""  # an address that everybody opens before they knock

    @property
    def run(self) -> Run:
        return self.approval.run

    def knock(self, actor: str) -> Client:
        client = as_agent(self.agents[actor]).client if actor in self.agents else Client()
        if actor in self.people:
            client.force_login(self.people[actor], backend="django.contrib.auth.backends.ModelBackend")
        if self.came_by:
            client.get(self.came_by)
        return client


@dataclass(frozen=True)
class Row:
    """One line of the table: `METHOD address`, and what each actor gets."""

    what: str
    method: str
    address: str
    expected: dict[str, str]


# --- what must have happened before, and what is posted ----------------------------------------------------------


def granted(scene: Scene) -> None:
    cast(scene.approval, scene.people["guest"])
    cast(scene.approval, scene.people["reviewer"])


def spent(scene: Scene) -> None:
    granted(scene)
    scene.knock("agent").post(f"/api/v1/approvals/{scene.approval.pk}/consume", b"{}", content_type="application/json")


def held(scene: Scene) -> None:
    cast(scene.approval, scene.people["guest"])
    cast(scene.approval, scene.people["reviewer"], hold=HOLD)


def doubted(scene: Scene) -> None:
    granted(scene)
    scene.approval = in_doubt(scene.approval)


def failed(scene: Scene) -> None:
    RunHead.objects.filter(run=scene.run).update(status=RunStatus.FAILED, reason="")
    Run.objects.filter(pk=scene.run.pk).update(resume_mode=ResumeMode.HOSTED)


def forkable(scene: Scene) -> None:
    RunHead.objects.filter(run=scene.run).update(workflow="refund-agent")
    Run.objects.filter(pk=scene.run.pk).update(resume_mode=ResumeMode.WORKFLOW)


def queued(scene: Scene) -> None:
    RunHead.objects.filter(run=scene.run).update(status=RunStatus.QUEUED, reason="")


def proposed(scene: Scene) -> None:
    boss = User.objects.create_user("boss")
    Membership.objects.create(user=boss, team=scene.agent.team, roles=["admin"])
    scene.places["change"] = propose_lifting(team=scene.agent.team, by=boss).pk


def automated(scene: Scene) -> None:
    rule = AutomaticRule.objects.create(
        team=scene.agent.team, name="Small", tools=["refund"], window=timedelta(days=1), max_count=1,
        ends_at=database_now() + timedelta(days=1), created_by=scene.people["admin"],
    )  # fmt: skip
    scene.places["rule"] = rule.pk


def lent(scene: Scene) -> None:
    giver, now = scene.people["reviewer"], database_now()
    ends_at = now + timedelta(days=1)
    given = delegate(giver=giver, taker=scene.people["operator"], starts_at=now, ends_at=ends_at, by=giver)
    scene.places["delegation"] = given.pk


def linked(scene: Scene) -> None:
    link = draw_link()
    open_link(person=scene.people["reviewer"], digest=link.digest, actor="system")
    scene.places["link"] = link.text


def followed(scene: Scene) -> None:
    linked(scene)
    scene.came_by = f"/password/{scene.places['link']}/"


def tokened(scene: Scene) -> None:
    issued = make_token(person=scene.people["reviewer"], name="mine", lasts=timedelta(days=1), may_vote=True)
    scene.places["token"] = issued.token.pk


def hooked(scene: Scene) -> None:
    Webhook.objects.create(agent=scene.agent, url="https://agent.example/fermata", secret=b"-")


def nothing(scene: Scene) -> None:
    """The scene is enough as it is."""


BEFORE: dict[str, Callable[[Scene], None]] = {
    "undo a vote": held,
    "revoke a grant": granted,
    "see what is not yet performed": granted,
    "spend a grant": granted,
    "report an outcome": spent,
    "answer a call in doubt": doubted,
    "retry a run": failed,
    "confirm a change": proposed,
    "see a change in full": proposed,
    "refuse a change": proposed,
    "end an automatic rule": automated,
    "find a delegation": lent,
    "end a delegation": lent,
    "confirm a delegation": lent,
    "read an agent's webhook": hooked,
    "remove a webhook": hooked,
    "open a reset link": linked,
    "open the form for a new password": followed,
    "use a reset link": followed,
    "revoke a token": tokened,
    "fork a run": forkable,
    "claim a run": queued,
    "finish a run": queued,
}


def body(row: Row, scene: Scene) -> dict[str, Any]:
    approval = scene.approval
    tomorrow = f"{database_now() + timedelta(days=1):%Y-%m-%dT%H:%M}"
    bodies: dict[str, dict[str, Any]] = {
        "vote": {"verdict": "approve", "review": approval.review},
        "vote over the API": {"type": "approve", "review": approval.review},
        "answer a call in doubt": {"verdict": "happened", "review": approval.review},
        "fork a run": {"checkpoint": 0},
        "park a run": suspension(),
        "report an outcome": {"status": "succeeded"},
        "tell a run": {"payload": {"paid": True}},
        "finish a run": {"result": "done"},
        "export the trail": {"format": "jsonl"},
        "propose a policy": {"name": "More", "quorum": "1 of the team", "rejections": 1},
        "propose an automatic rule": {
            "name": "Small",
            "tools": "refund",
            "window": "1 day",
            "max_count": 1,
            "ends_at": "2100-01-01T00:00",
        },
        "propose somebody's roles": {"person": "deputy", "reviewer": "on"},
        "propose who is in a group": {"group": "finance", "add": "deputy"},
        "propose whose an agent is": {"owners": "deputy", "team": scene.agent.team.name},
        "propose a key": {"scopes": "runs:read"},
        "propose a webhook": {"url": "http://127.0.0.1:9/"},
        "change one's own password": {"current": PASSWORD, "password": NEW_PASSWORD, "again": NEW_PASSWORD},
        "make a token": {"name": "mine", "days": 1, "password": PASSWORD},
        "use a reset link": {"password": NEW_PASSWORD, "again": NEW_PASSWORD},
        "let somebody vote for you": {
            "taker": User.objects.get(username="deputy").pk,
            "starts_at": "2020-01-01T00:00",
            "ends_at": tomorrow,
        },
    }
    return bodies.get(row.what, {})


def shown(what: str, scene: Scene) -> str:
    """What a page must hold to have shown it; nothing: its status says enough."""
    run, approval = str(scene.run.pk), str(scene.approval.pk)
    return {
        "find a run": run,
        "find an approval": approval,
        "see what is not yet performed": approval,
        "hear of a run": run,
        "hear of an approval": approval,
        "read a run's timeline": "/checkpoints/0/",
        "read a snapshot": STATE,
        "download a snapshot": STATE,
        "read a history": STATE,
        "read the run so far on a card": STATE,
        "find the team's events": approval,
        "find a run's events": f"run:{run}",
        "find an approval's events": f"approval:{approval}",
        "export the trail": approval,
        "find the rules": "Money",
        "find people": "deputy",
        "find groups and agents": f"{scene.agent.pk}/webhook/",
        "propose a reset link": "/password/",
        "propose a key": "fmt_",
        "propose a webhook": "whsec_",
        "read an agent's webhook": "https://agent.example/fermata",
        "find a delegation": "/end/",
        "use a reset link": "Your password is set",
        "make a token": "This is the token",
    }.get(what, "")
