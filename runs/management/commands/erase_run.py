"""`manage.py erase_run RUN_ID`: erase the content of a run that has ended."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from runs.errors import RunError
from runs.models import Run
from runs.services.retention import erase_run


class Command(BaseCommand):
    help = "Erase what a run that has ended was given, saved, did, returned and was called. There is no way back."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run_id", metavar="RUN_ID", type=UUID)
        parser.add_argument(
            "--approvals", action="store_true", help="Also what people were asked about it, and what they decided."
        )

    def handle(self, *args: Any, run_id: UUID, **options: Any) -> None:
        try:
            erased = erase_run(run_id=run_id, actor="system", approvals=options["approvals"])
        except RunError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{run_id} is erased." if erased else f"{run_id} was erased before.")
        for fork in Run.objects.filter(parent=run_id, erased_at=None).values_list("pk", flat=True):
            self.stdout.write(f"Its fork {fork} keeps what it started with.")
