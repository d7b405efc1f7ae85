"""`manage.py export_audit --format jsonl|csv --output FILE`: take the audit trail away."""

import os
from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from approvals.audit.events import EventType
from approvals.audit.exporting import Format, export
from approvals.audit.keys import KeyProblem
from approvals.audit.queries import Filters
from approvals.audit.sealing import TrailRewritten
from runs.models import Agent, Team


class Command(BaseCommand):
    help = "Write the audit trail to a file: jsonl, which verify_audit can check, or csv for spreadsheets."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--format", choices=[str(choice) for choice in Format], default=str(Format.JSONL))
        parser.add_argument("--output", type=Path, required=True, metavar="FILE")
        only = parser.add_argument_group("filters", "A filtered export proves what it holds, not that it holds all.")
        only.add_argument("--team", metavar="NAME")
        only.add_argument("--person", metavar="USERNAME")
        only.add_argument("--agent", metavar="NAME")
        only.add_argument("--tool", default="")
        only.add_argument("--type", default="", choices=EventType.values, metavar="TYPE")
        only.add_argument("--since", type=moment, metavar="TIME", help="RFC 3339; UTC if it names no zone.")
        only.add_argument("--until", type=moment, metavar="TIME", help="Not included.")
        only.add_argument("--approval", type=UUID, metavar="ID")
        only.add_argument("--run", type=UUID, metavar="ID")
        only.add_argument("--text", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        output: Path = options["output"]
        try:
            filters = Filters(
                team=Team.objects.get(name=options["team"]).pk if options["team"] else None,
                person=User.objects.get(username=options["person"]).pk if options["person"] else None,
                agent=Agent.objects.get(name=options["agent"]).pk if options["agent"] else None,
                **{name: options[name] for name in ("tool", "type", "since", "until", "approval", "run", "text")},
            )
            # Whole or not at all: a broken export must not look like a short one.
            with NamedTemporaryFile(dir=output.absolute().parent, prefix=f"{output.name}.", delete=False) as draft:
                try:
                    exported = export(draft, as_format=Format(options["format"]), actor="system", filters=filters)
                    draft.flush()
                    os.fsync(draft.fileno())
                    os.replace(draft.name, output)
                except BaseException:
                    os.unlink(draft.name)
                    raise
        except (Team.DoesNotExist, User.DoesNotExist, Agent.DoesNotExist, Agent.MultipleObjectsReturned) as error:
            raise CommandError(str(error)) from error
        except (KeyProblem, TrailRewritten, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{exported.events} events written to {output}.")


def moment(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not a time such as 2026-11-29T12:00:00Z") from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)
