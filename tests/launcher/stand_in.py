"""`fermata.launcher up` with small programs in place of Fermata's own: a start takes little time."""

import sys
from collections.abc import Sequence
from pathlib import Path

from fermata.embedded.instance import Instance
from fermata.embedded.program import Program
from fermata.launcher import __main__ as launcher
from fermata.launcher import up
from fermata.launcher.programs import environment

PROGRAM = Path(__file__).with_name("program.py")


def programs(instance: Instance, port: int) -> Sequence[Program]:
    env = environment(instance)
    return [
        Program("web", [sys.executable, str(PROGRAM), "web", str(port)], env),
        Program("worker", [sys.executable, str(PROGRAM), "worker"], env),
    ]


def manage(command: str, *options: str) -> list[str]:
    return [sys.executable, str(PROGRAM), "manage", command]


if __name__ == "__main__":
    up.programs = programs
    up.manage = manage
    sys.exit(launcher.main(["up"]))
