"""`manage.py create_agent NAME`: register an agent and show its key, once."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs.errors import RunError
from runs.models import OnCredentials, Team
from runs.services.agents import EVERYTHING, create_agent


class Command(BaseCommand):
    help = "Register an agent and show its key. The key is shown this once and kept nowhere."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--team", default="Default")
        parser.add_argument("--target", default="", help="The account or environment that the agent acts on.")
        parser.add_argument(
            "--scope", action="append", dest="scopes", help="What the key may do; again for more. Default: everything."
        )
        parser.add_argument(
            "--on-credentials",
            choices=OnCredentials.values,
            default=OnCredentials.REFUSE.value,
            help="Refuse inputs, snapshots, titles and descriptions with a credential (the default), or redact them.",
        )
        parser.add_argument("--json", action="store_true", help='Print {"id", "name", "key"}.')

    def handle(self, *args: Any, **options: Any) -> None:
        team, _ = Team.objects.get_or_create(name=options["team"])
        try:
            agent, issued = create_agent(
                name=options["name"],
                team=team,
                target=options["target"],
                on_credentials=options["on_credentials"],
                scopes=options["scopes"] or EVERYTHING,
            )
        except RunError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps({"id": str(agent.pk), "name": agent.name, "key": issued.text}))
        else:
            self.stdout.write(f"{agent.name} ({agent.pk})\n{issued.text}")
