"""`manage.py verify_audit [FILE]`: is the audit trail what it was when it was written?"""

import base64
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from approvals.audit.keys import KeyProblem, public_key, trusted_keys
from approvals.audit.verifying import verify_database, verify_file


class Command(BaseCommand):
    help = "Check the audit trail in the database, or an exported JSONL file; a file needs no database."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="A file that export_audit wrote.")
        parser.add_argument(
            "--public-key",
            action="append",
            default=[],
            dest="keys",
            metavar="BASE64",
            help="Another signer to trust, besides this deployment's own key; again for more.",
        )

        parser.add_argument(
            "--anchor",
            action="append",
            default=[],
            type=Path,
            dest="copies",
            metavar="FILE",
            help="A copy of an anchor that was kept elsewhere, or a syslog file; again for more.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        file: Path | None = options["file"]
        try:
            trusted = trusted_keys() | {public_key(text) for text in options["keys"]}
            report = verify_file(file, trusted) if file else verify_database(trusted, options["copies"])
        except (KeyProblem, OSError) as error:
            raise CommandError(str(error)) from error
        for key in sorted(trusted):
            self.stdout.write(f"Trusted key: {base64.b64encode(key).decode()}")
        for note in report.notes:
            self.stdout.write(note)
        for finding in report.findings:
            self.stderr.write(str(finding))
        if report.count > len(report.findings):
            self.stderr.write(f"… and {report.count - len(report.findings)} more")
        seen = f"{report.events} events, {report.seals} seals, {report.unsealed} not sealed yet, {report.erased} erased"
        if report.count:
            raise CommandError(f"The audit trail is not sound: {report.count} findings in {seen}.")
        self.stdout.write(f"The audit trail is sound: {seen}.")
