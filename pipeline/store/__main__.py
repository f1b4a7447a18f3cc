"""`python -m pipeline.store validate FILE...` checks stores; exit code 1 if one is faulty."""

from __future__ import annotations

import argparse
import signal
import sys

from pipeline.errors import MachineError
from pipeline.store.validate import validate


def main() -> int:
    """Print one line a fault or one line that a file is fine."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.store", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("validate", help="check every value of decode stores")
    command.add_argument("file", nargs="+")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as of any filter, whose reader may have enough
    faulty = False
    for path in parser.parse_args().file:
        try:
            faults = validate(path)
        except MachineError as error:
            faults = [str(error)]
        print(*(faults or [f"{path}: a valid decode store"]), sep="\n")
        faulty |= bool(faults)
    return int(faulty)


if __name__ == "__main__":
    sys.exit(main())
