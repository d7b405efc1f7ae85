"""Whose an agent is, by which keys it signs in, and where it is told.

Every agent may ask for high risk, so all of it guards that.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import cached_property
from uuid import UUID

from django.contrib.auth.models import User

from approvals.audit import EventType
from approvals.errors import ChangeRefused
from approvals.policies.guarded import AgentDraft, KeyDraft, WebhookDraft
from approvals.services.matters.base import Matter
from runs.models import Agent, DrawnWebhook, Team, Webhook
from runs.services.agents import AgentExists, add_key, change_agent
from runs.services.webhooks import add_webhook, lock_webhook


class AgentMatter(Matter):
    """Owners may not vote on what their agent asks, and its team is who may."""

    event = EventType.AGENT_CHANGED

    @cached_property
    def draft(self) -> AgentDraft:
        return AgentDraft.from_text(self.change.body)

    def lock(self) -> None:
        Agent.objects.select_for_update(no_key=True).get(pk=self.draft.agent)

    def base(self) -> str:
        agent = Agent.objects.get(pk=self.draft.agent)
        return _whose(agent.team_id, agent.owners.values_list("pk", flat=True))

    def starts_from_now(self) -> bool:
        return self.base() == _whose(self.draft.team_was, self.draft.owners_were)

    def teams(self) -> frozenset[int]:
        return frozenset([self.draft.team, self.draft.team_was])

    def subjects(self) -> frozenset[int]:
        return frozenset({*self.draft.owners} ^ {*self.draft.owners_were})

    def apply(self, by: User) -> None:
        agent, team = Agent.objects.get(pk=self.draft.agent), Team.objects.get(pk=self.draft.team)
        try:
            change_agent(agent=agent, owners=self.draft.owners, team=team, by=by)
        except AgentExists as error:
            raise ChangeRefused(f"{team.name} has an agent of that name already.") from error


class AgentKeyMatter(Matter):
    event = EventType.AGENT_CHANGED

    @cached_property
    def draft(self) -> KeyDraft:
        return KeyDraft.from_text(self.change.body)

    def lock(self) -> None:
        Agent.objects.select_for_update(no_key=True).get(pk=self.draft.agent)

    def base(self) -> str:
        return str(Agent.objects.get(pk=self.draft.agent).team_id)

    def teams(self) -> frozenset[int]:
        return frozenset([Agent.objects.get(pk=self.draft.agent).team_id])

    def apply(self, by: User) -> None:
        ends = self.draft.expires_at
        add_key(
            agent=Agent.objects.get(pk=self.draft.agent),
            prefix=self.draft.prefix,
            digest=bytes.fromhex(self.draft.digest),
            scopes=self.draft.scopes,
            created_by=self.change.proposed_by,
            expires_at=datetime.fromisoformat(ends) if ends else None,
            by=by,
        )


class WebhookMatter(Matter):
    event = EventType.WEBHOOK_CHANGED

    @cached_property
    def draft(self) -> WebhookDraft:
        return WebhookDraft.from_text(self.change.body)

    def lock(self) -> None:
        lock_webhook(UUID(self.draft.agent))

    def base(self) -> str:
        webhook = self._webhook()
        return f"{self._team()} {webhook.set_at.isoformat() if webhook else 'none'}"

    def starts_from_now(self) -> bool:
        webhook = self._webhook()
        return self.draft.url_was == (webhook.shown_url if webhook else "")

    def teams(self) -> frozenset[int]:
        return frozenset([self._team()])

    def withdrawn(self) -> None:
        DrawnWebhook.objects.filter(pk=self.draft.drawn).delete()

    def apply(self, by: User) -> None:
        add_webhook(drawn=UUID(self.draft.drawn), by=by)

    def _webhook(self) -> Webhook | None:
        return Webhook.objects.filter(agent__pk=self.draft.agent).first()

    def _team(self) -> int:
        return Agent.objects.get(pk=self.draft.agent).team_id


def _whose(team: int, owners: Iterable[int]) -> str:
    return f"{team}: {' '.join(map(str, sorted(owners)))}"
