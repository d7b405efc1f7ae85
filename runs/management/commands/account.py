"""`manage.py account close|open NAME`: nobody signs in to a closed account, and its votes no longer count."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from runs.services.people import set_active


class Command(BaseCommand):
    help = "Close a person's account, at once, or open it again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=("close", "open"))
        parser.add_argument("name")

    def handle(self, *args: Any, what: str, name: str, **options: Any) -> None:
        person = User.objects.filter(username=name).first()
        if person is None:
            raise CommandError(f"There is no person named {name!r}.")
        set_active(person=person, active=what == "open")
        self.stdout.write(f"The account of {name} is {'open' if what == 'open' else 'closed'}.")
