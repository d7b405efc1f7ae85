"""`manage.py reset_link NAME`: a link by which a person sets a new password, once."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from runs.services.passwords import LINK_LIFE, draw_link, open_link


class Command(BaseCommand):
    help = "Make a link by which a person sets a new password. It works once, and is shown this once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")

    def handle(self, *args: Any, name: str, **options: Any) -> None:
        person = User.objects.filter(username=name, is_active=True).first()
        if person is None:
            raise CommandError(f"There is no active person named {name!r}.")
        link = draw_link()
        open_link(person=person, digest=link.digest, actor="system")
        self.stdout.write(settings.BASE_URL + reverse("password-by-link", args=[link.text]))
        self.stderr.write(f"It works once, within {LINK_LIFE.total_seconds() / 3600:.0f} hours.")
