from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from checkpoints import services
from checkpoints.keys import key_ring


class Command(BaseCommand):
    help = "Encrypt every stored snapshot under the first of FERMATA_SNAPSHOT_KEYS. Can be stopped and run again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--batch", type=int, default=200, help="Records to a transaction (200).")

    def handle(self, *args: Any, batch: int, **options: Any) -> None:
        key_id = key_ring().current
        if key_id is None:
            raise CommandError("FERMATA_SNAPSHOT_KEYS is empty: there is no key to encrypt with")
        rotated = services.rotate_keys(batch=batch)
        self.stdout.write(f"{rotated.count} records encrypted under {key_id!r}.")
        if rotated.unreadable:
            raise CommandError("\n".join(["These were left as they are:", *rotated.unreadable]))
