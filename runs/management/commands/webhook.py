"""`manage.py webhook set|verify|show|remove AGENT`: where an agent is told that its runs go on."""

from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from checkpoints.errors import CheckpointError
from runs.errors import RunError
from runs.models import Agent, Webhook, WebhookPost
from runs.presentation.text import escaped
from runs.services.webhooks import remove_webhook, set_webhook, verify_webhook
from runs.states import PostState, WebhookStanding


class Command(BaseCommand):
    help = "Register an agent's webhook, verify it by a signed challenge, show how it does, or remove it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="set|verify|show|remove")
        for name, what in {
            "set": "Register the address, or change it. The secret is shown this once; then verify.",
            "verify": "Send a signed challenge, which the receiver must answer. Only then is the webhook used.",
            "show": "Where it is, since when it fails, what waits.",
            "remove": "Forget it. Runs that wait go on when their agent asks.",
        }.items():
            action = actions.add_parser(name, help=what)
            action.add_argument("agent", metavar="AGENT", help="Its name or its id.")
            action.add_argument("--team", default="Default")
            if name == "set":
                action.add_argument("url", metavar="URL")
                action.add_argument("--new-secret", action="store_true", help="Sign with another secret from now on.")

    def handle(self, *args: Any, **options: Any) -> None:
        agent = _agent(options["agent"], options["team"])
        try:
            for line in getattr(self, f"_{options['action']}")(agent, options):
                self.stdout.write(line)
        except (RunError, CheckpointError) as error:
            raise CommandError(escaped(str(error))) from error

    def _set(self, agent: Agent, options: dict[str, Any]) -> Iterator[str]:
        registered = set_webhook(agent=agent, url=options["url"], new_secret_wanted=options["new_secret"])
        if registered.secret:
            yield registered.secret
        yield f"Not used before `manage.py webhook verify {agent.pk}`."

    def _verify(self, agent: Agent, options: dict[str, Any]) -> Iterator[str]:
        webhook = verify_webhook(agent=agent)
        yield f"{webhook.shown_url} answered the challenge and is used from now on."

    def _show(self, agent: Agent, options: dict[str, Any]) -> Iterator[str]:
        webhook = Webhook.objects.filter(agent=agent).first()
        if webhook is None:
            yield "no webhook"
        else:
            yield f"url      {webhook.shown_url}"
            yield f"state    {_state(webhook)}"
        posts = WebhookPost.objects.filter(agent=agent)
        for state in (PostState.PENDING, PostState.GIVEN_UP):
            yield f"{state.label.lower():9}{posts.filter(state=state).count()}"

    def _remove(self, agent: Agent, options: dict[str, Any]) -> Iterator[str]:
        remove_webhook(agent=agent)
        yield "removed"


def _state(webhook: Webhook) -> str:
    standing, since = webhook.standing
    said = standing.label.lower() + (f" since {since.isoformat()}" if since else "")
    match standing:
        case WebhookStanding.GONE:
            return f"{said}: verify it again"
        case WebhookStanding.FAILING:
            return f"{said}: {escaped(webhook.last_error)}"
        case _:
            return said


def _agent(named: str, team: str) -> Agent:
    found = Agent.objects.filter(team__name=team, name=named).first()
    if found is None:
        with suppress(ValueError):
            found = Agent.objects.filter(pk=UUID(named)).first()
    if found is None:
        raise CommandError(f"there is no agent {escaped(named)!r} in team {escaped(team)!r}")
    return found
