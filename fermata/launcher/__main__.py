"""The launcher's command line."""

import argparse
import os
import signal
import sys

from fermata.embedded.errors import EmbeddedError
from fermata.embedded.instance import CHECKOUT, current_instance
from fermata.launcher.errors import LauncherError
from fermata.launcher.services import run_with_services
from fermata.launcher.stop import stop
from fermata.launcher.terminal import say
from fermata.launcher.up import up


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fermata.launcher", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="run everything in the foreground, at 127.0.0.1:PORT (8000)")
    commands.add_parser("stop", help="stop the instance of FERMATA_HOME, and what a kill has left of it")
    services = commands.add_parser("run-with-services", help="run a command with services in a temporary home")
    services.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- COMMAND ...")
    chosen = parser.parse_args(arguments)
    os.chdir(CHECKOUT)
    try:
        if chosen.command == "up":
            up(current_instance(), _port())
        elif chosen.command == "stop":
            stop(current_instance())
        else:
            return run_with_services(chosen.argv[1:])
    except (LauncherError, EmbeddedError) as error:
        say(str(error))
        return 1
    except OSError as error:
        say(f"{error.strerror}: {error.filename}" if error.filename else str(error))
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


def _port() -> int:
    text = os.environ.get("PORT") or "8000"
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= 65_535:
        raise LauncherError(f"PORT must be a number from 1 to 65535, not {text!r}.")
    return int(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
