"""`manage.py create_person NAME --password P`: register a person in a team."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs.errors import RunError
from runs.models import Role, Team
from runs.services.people import create_person


class Command(BaseCommand):
    help = "Register a person: a reviewer of the default team, unless told otherwise."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--password", required=True)
        parser.add_argument("--team", default="Default")
        parser.add_argument("--role", action="append", dest="roles", help=f"{', '.join(Role.values)}; again for more.")
        parser.add_argument(
            "--group", action="append", dest="groups", default=[], help="A pool of reviewers; again for more."
        )
        parser.add_argument("--superuser", action="store_true")
        parser.add_argument("--json", action="store_true", help='Print {"id", "name", "roles", "groups"}.')

    def handle(self, *args: Any, **options: Any) -> None:
        team, _ = Team.objects.get_or_create(name=options["team"])
        roles = options["roles"] or [Role.REVIEWER.value]
        try:
            user = create_person(
                username=options["name"],
                password=options["password"],
                team=team,
                roles=roles,
                groups=options["groups"],
                superuser=options["superuser"],
            )
        except RunError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            person = {"id": user.pk, "name": user.username, "roles": roles, "groups": options["groups"]}
            self.stdout.write(json.dumps(person))
        else:
            self.stdout.write(f"{user.username}: {', '.join(roles)} of {team.name}")
