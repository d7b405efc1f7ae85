"""`manage.py preflight`: run it with the new code and the old database, before the new code is deployed."""

import json
from argparse import ArgumentParser
from collections import Counter
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs.engine.preflight import Finding, examine, unfinished
from runs.presentation.text import escaped


class Command(BaseCommand):
    help = "Find the unfinished runs that this code could not resume. Reads only; exits 1 if there are any."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help='Print {"checked", "unresumable": [...]}.')

    def handle(self, *args: Any, **options: Any) -> None:
        checked = 0
        findings: list[Finding] = []
        for batch in unfinished():
            checked += len(batch)
            findings += examine(batch)
        if options["json"]:
            self.stdout.write(json.dumps({"checked": checked, "unresumable": [_facts(found) for found in findings]}))
        else:
            for found in findings:
                self.stdout.write(_line(found))
            for reason, count in Counter(why for found in findings for why in found.reasons).most_common():
                self.stdout.write(f"{count} runs: {escaped(reason)}")
        if findings:
            raise CommandError(f"This code could not resume {len(findings)} of {checked} unfinished runs.")
        if not options["json"]:
            self.stdout.write(f"This code can resume all {checked} unfinished runs.")


def _facts(found: Finding) -> dict[str, Any]:
    run = found.run
    return {
        "run": str(run.run_id),
        "status": run.status,
        "workflow": run.workflow,
        "schema": run.schema,
        "phase": run.phase,
        "reasons": list(found.reasons),
    }


def _line(found: Finding) -> str:
    run = found.run
    return escaped(f"{run.run_id} {run.status} in {run.workflow}/{run.schema} {run.phase}: {'; '.join(found.reasons)}")
