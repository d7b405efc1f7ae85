"""`manage.py run show|cancel|retry|fork RUN_ID`: what an operator does to a run from the command line."""

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from checkpoints.errors import CheckpointError
from runs.errors import RunError, RunNotFound
from runs.models import Run
from runs.presentation.text import escaped
from runs.services.controlling import cancel_run, fork_run, retry_run
from runs.timeline import timeline

ACTOR = "system"
LATEST = 20  # entries of the timeline


class Command(BaseCommand):
    help = "Show a run, cancel it, retry it from its last checkpoint, or fork it from any."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="show|cancel|retry|fork")
        for name, what in {
            "show": "Where it stands, and what happened to it last.",
            "cancel": "End it now, whatever it is doing; its open approvals are closed.",
            "retry": "Queue a failed or blocked run again, from its last checkpoint.",
            "fork": "Start a new run from one of its checkpoints, with fresh approvals.",
        }.items():
            action = actions.add_parser(name, help=what)
            action.add_argument("run_id", metavar="RUN_ID")
            if name == "cancel":
                action.add_argument("--reason", default="", metavar="TEXT")
            if name == "fork":
                action.add_argument("--seq", type=int, metavar="N", help="The checkpoint. Default: the newest.")
                action.add_argument(
                    "--acknowledge", action="store_true", help="I know what the run did after that checkpoint."
                )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            run_id = UUID(options["run_id"])
        except ValueError as error:
            raise CommandError(f"{options['run_id']!r} is not the id of a run") from error
        try:
            for line in getattr(self, f"_{options['action']}")(run_id, options):
                self.stdout.write(line)
        except (RunError, CheckpointError) as error:
            raise CommandError(escaped(str(error))) from error

    def _show(self, run_id: UUID, options: dict[str, Any]) -> Iterator[str]:
        run = _find(run_id)
        head = run.head
        yield f"{run.id}  {escaped(run.title)}"
        yield f"status      {': '.join(filter(None, [head.status, head.reason, escaped(head.detail)]))}"
        yield f"workflow    {head.workflow}/{head.schema}, phase {head.phase}, turn {head.turn}"
        yield f"checkpoint  {head.head_seq}"
        yield f"tries here  {head.crashes} crashes, {head.failures} failures"
        if run.error:
            yield f"error       {escaped(f'{run.error_type}: {run.error}')}"
        for entry in timeline(run, before=None, limit=LATEST)[0]:
            facts = ", ".join(f"{name} {value}" for name, value in entry.facts.items() if value not in (None, ""))
            yield f"{entry.at:%Y-%m-%d %H:%M:%S}  {entry.kind:<10}  {escaped(f'{entry.what}  {facts}'.rstrip())}"

    def _cancel(self, run_id: UUID, options: dict[str, Any]) -> Iterator[str]:
        changed = cancel_run(run_id=run_id, actor=ACTOR, reason=options["reason"])
        yield f"{run_id} is cancelled." if changed else f"{run_id} was cancelled before."

    def _retry(self, run_id: UUID, options: dict[str, Any]) -> Iterator[str]:
        retry_run(run_id=run_id, actor=ACTOR)
        yield f"{run_id} is queued again."

    def _fork(self, run_id: UUID, options: dict[str, Any]) -> Iterator[str]:
        seq = options["seq"] if options["seq"] is not None else _find(run_id).head.head_seq
        fork = fork_run(run_id=run_id, seq=seq, actor=ACTOR, acknowledged=options["acknowledge"])
        yield f"{fork.id} is queued: a fork of {run_id} from checkpoint {seq}."


def _find(run_id: UUID) -> Run:
    run = Run.objects.select_related("head").filter(pk=run_id).first()
    if run is None:
        raise RunNotFound(run_id)
    return run
