"""`manage.py certify MODULE`: can this module's workflows be killed anywhere without harm?"""

import importlib
import json
import logging
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from fermata.celery import app
from fermata.certify.certifying import Certificate, certify
from fermata.certify.processes import WorkerFailed
from fermata.certify.standins import Samples
from runs.engine.workflows import all_workflows
from runs.presentation.text import escaped

HEADINGS = ("phase", "step", "after a crash", "at")


class Command(BaseCommand):
    help = (
        "Kill every workflow of a module at every failpoint, on a throw-away database and without any real effect, and "
        "say which steps could be repeated, lost or diverge. Exits 1 if any could."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("module", metavar="MODULE", help="For example examples.refunds.")
        parser.add_argument(
            "--input", metavar="JSON", help="For all of them. Default: the module's certify_inputs, by workflow."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.PRODUCTION:
            raise CommandError("certify kills workers: run it on a development machine or in CI, not in production")
        try:
            module = importlib.import_module(options["module"])
            given = None if options["input"] is None else json.loads(options["input"])
        except (ImportError, json.JSONDecodeError) as error:
            raise CommandError(str(error)) from error
        known = getattr(module, "certify_inputs", {})
        inputs = {
            flow.name: known.get(flow.name) if given is None else given
            for flow in all_workflows()
            if flow.cls.__module__ == module.__name__ and "start" in flow.phases
        }
        if not inputs:
            raise CommandError(f"{module.__name__} has no workflow with a phase 'start'")
        app.conf.update(broker_url="memory://", broker_transport_options={})  # nobody is to be rung for
        logging.disable(logging.WARNING)  # that workers die is the point
        failed = []
        try:
            for certificate in certify(module=module.__name__, inputs=inputs, samples=Samples.of(module)):
                for line in report(certificate):
                    self.stdout.write(line)
                if not certificate.passed:
                    failed.append(certificate.workflow)
        except DatabaseError as error:
            raise CommandError(f"the throw-away database: {error}") from error
        except WorkerFailed as error:
            raise CommandError("a worker process failed; what it said is above") from error
        if failed:
            raise CommandError(f"Not certified: {', '.join(failed)}.")


def report(certificate: Certificate) -> Iterator[str]:
    """A heading, and a table of what was found, the worst first."""
    yield f"{certificate.workflow}: {certificate.crashes} crashes, {'passed' if certificate.passed else 'NOT PASSED'}"
    rows = [
        (finding.place.phase, finding.place.step, ("!! " if finding.bad else "") + finding.what, ", ".join(names))
        for finding, names in sorted(
            certificate.findings.items(), key=lambda item: (not item[0].bad, item[0].place, item[0].what)
        )
    ]
    if rows:
        table = [HEADINGS, *([escaped(cell) for cell in row] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for row in table:
            yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
