"""A process that forks workers on request: each dies its own death without paying for Django's start.

Reads lines `RUN FAILPOINT` (FAILPOINT may be `-`), forks a child that executes the run until it has nothing to claim,
and answers with the child's pid. `wait PID` answers with what became of it: `done`, `struck` (it passed the failpoint
and lived), `signal N`, `stopped` or `failed`.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from uuid import UUID

import django

DONE, FAILED, STRUCK = 0, 1, 2


def work(run_id: UUID, failpoint: str) -> int:
    """The child: a worker, until there is nothing to claim."""
    from runs.engine import executor, failpoints  # noqa: PLC0415 - Django has to be set up first

    if failpoint != "-":
        os.environ["FERMATA_FAILPOINT"] = failpoint
    while executor.execute(run_id, worker=f"fork:{os.getpid()}"):
        pass
    return STRUCK if failpoints.struck else DONE


def outcome(pid: int) -> str:
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        return "stopped"
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    return {DONE: "done", STRUCK: "struck"}.get(os.WEXITSTATUS(status), "failed")


def main() -> None:
    django.setup()
    import_module("tests.crash.flows")
    # A read that takes long is recorded on its own: here none does, however busy the machine.
    import_module("runs.engine.effects").LONG_READ_SECONDS = 60.0
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        first, second = line.split()
        if first == "wait":
            answer = outcome(int(second))
        else:
            pid = os.fork()
            if pid == 0:
                try:
                    code = work(UUID(first), second)
                except BaseException:
                    sys.excepthook(*sys.exc_info())
                    code = FAILED
                os._exit(code)
            answer = str(pid)
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
