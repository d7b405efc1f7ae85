"""`manage.py after_restore`: the first thing to do with a restored backup, before any worker starts."""

from typing import Any

from django.core.management.base import BaseCommand

from runs.services.restoring import block_unfinished


class Command(BaseCommand):
    help = "Block every unfinished hosted run until a person has reviewed it. Doing it again changes nothing."

    def handle(self, *args: Any, **options: Any) -> None:
        blocked = block_unfinished()
        self.stdout.write(f"{blocked} unfinished runs are blocked for review.")
        if blocked:
            self.stdout.write("After a look at each: manage.py run show, then run retry or run cancel.")
