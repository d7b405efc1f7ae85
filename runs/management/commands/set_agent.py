"""`manage.py set_agent NAME`: change how a registered agent is treated."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs.models import Agent, OnCredentials
from runs.services.agents import set_on_credentials


class Command(BaseCommand):
    help = "Change how a registered agent is treated. What is saved already stays as it is."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--team", default="Default")
        parser.add_argument(
            "--on-credentials",
            choices=OnCredentials.values,
            required=True,
            help="Refuse inputs, snapshots, titles and descriptions that hold a credential, or store them redacted.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        name, team, wanted = options["name"], options["team"], options["on_credentials"]
        agent = Agent.objects.filter(name=name, team__name=team).first()
        if agent is None:
            raise CommandError(f"team {team!r} has no agent named {name!r}")
        changed = set_on_credentials(agent=agent, on_credentials=OnCredentials(wanted))
        verb = "are now" if changed else "were already"
        outcome = "refused" if wanted == OnCredentials.REFUSE else "stored redacted"
        self.stdout.write(
            f"{agent.name}: inputs, snapshots, titles and descriptions with a credential {verb} {outcome}."
        )
