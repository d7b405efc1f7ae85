"""`manage.py changepassword NAME`: Django's, setting the password as everything else does."""

from argparse import ArgumentParser
from getpass import getpass
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from runs.services.passwords import PasswordRefused, set_by_operator


class Command(BaseCommand):
    help = "Set a person's password. It is asked for twice, and is a new one for high risk too."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")

    def handle(self, *args: Any, username: str, **options: Any) -> None:
        person = User.objects.filter(username=username).first()
        if person is None:
            raise CommandError(f"There is no person named {username!r}.")
        password = getpass("New password: ")
        if password != getpass("The same again: "):
            raise CommandError("The two are not the same.")
        try:
            set_by_operator(person=person, password=password)
        except PasswordRefused as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"The password of {person.username} is set.")
