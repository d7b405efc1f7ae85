"""`manage.py demo`: people to sign in as, and two runs that wait in the inbox, for an instance on one's own machine."""

import os
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand
from django.db import transaction

from runs.models import Agent, Role, Run, Team
from runs.services.agents import create_agent
from runs.services.people import create_person
from runs.services.starting import start_run

REFUNDS = (("A-7", "49.90"), ("B-12", "1250.00"))
PEOPLE = (
    ("admin", (Role.ADMIN, Role.OPERATOR, Role.AUDITOR), True),
    ("reviewer", (Role.REVIEWER,), False),
)


class Command(BaseCommand):
    help = "Make a demo admin and reviewer, and start two example runs. Doing it again changes nothing."

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.PRODUCTION:
            self.stdout.write("No demo in production: make people with `manage.py create_person`.")
            return
        credentials = Path(settings.HOME) / "demo-credentials"
        team, _ = Team.objects.get_or_create(name="Default")
        if User.objects.exists() or Agent.objects.exists():
            self.stdout.write(f"Demo people and their passwords: {credentials}")
            return
        with transaction.atomic():
            lines = self._make(team, credentials)
        self.stdout.write("\n".join(["Demo people (kept in the demo-credentials file):", *lines]))
        self.stdout.write(f"Demo runs: {Run.objects.count()}, waiting in the inbox as soon as the worker is up.")

    def _make(self, team: Team, credentials: Path) -> list[str]:
        """Everything, in the caller's transaction; the passwords are on disk before it commits."""
        lines = []
        for name, roles, superuser in PEOPLE:
            password = secrets.token_urlsafe(12)
            create_person(username=name, password=password, team=team, roles=roles, superuser=superuser)
            lines.append(f"{name} {password}")
        agent, issued = create_agent(name="demo-agent", team=team)
        lines.append(f"demo-agent {issued.text}")
        for order_id, amount in REFUNDS:
            start_run(
                agent=agent,
                workflow="refund-agent",
                input={"order_id": order_id, "amount": amount},
                title=f"Refund for order {order_id}",
            )
        _write_privately(credentials, "\n".join(lines) + "\n")
        return lines


def _write_privately(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
