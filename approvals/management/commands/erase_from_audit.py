"""`manage.py erase_from_audit USERNAME`: erase what the audit trail says about a person."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from approvals.audit.erasing import erase_bodies


class Command(BaseCommand):
    help = "Erase the readable part of every audit event that holds personal data of a person. There is no way back."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--yes", action="store_true", help="Do not ask.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            person = User.objects.get(username=options["username"])
        except User.DoesNotExist as error:
            raise CommandError(f"There is no person {options['username']!r}.") from error
        if not options["yes"] and input(f"Erase what the trail says about {person.username}? [yes/no] ") != "yes":
            raise CommandError("Nothing was erased.")
        erased = erase_bodies(person_id=person.pk, by="system")
        self.stdout.write(f"{erased} bodies erased; their events, with who did what and when, stay.")
