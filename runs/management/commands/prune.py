"""`manage.py prune`: what happens every night, now."""

from typing import Any

from django.core.management.base import BaseCommand

from runs.services.retention import apply_retention


class Command(BaseCommand):
    help = "Delete the checkpoints, and the content of the ended runs, that the FERMATA_KEEP settings no longer keep."

    def handle(self, *args: Any, **options: Any) -> None:
        done = apply_retention()
        self.stdout.write(f"{done.checkpoints} checkpoints pruned, {done.runs} runs erased.")
