"""`manage.py prune`: what happens every night, now."""

from typing import Any

from django.core.management.base import BaseCommand

from runs.services.retention import apply_retention


class Command(BaseCommand):
    help = "Delete the checkpoints, the content of ended runs and the webhook posts that the FERMATA_KEEP settings end."

    def handle(self, *args: Any, **options: Any) -> None:
        done = apply_retention()
        self.stdout.write(f"{done.checkpoints} checkpoints and {done.posts} posts pruned, {done.runs} runs erased.")
