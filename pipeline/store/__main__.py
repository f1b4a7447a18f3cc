"""`python -m pipeline.store validate FILE...` checks stores; exit code 1 if one is invalid."""

from __future__ import annotations

import argparse
import signal
import sys

from pipeline.errors import MachineError
from pipeline.store.ranking import ranking_warning
from pipeline.store.reader import open_store
from pipeline.store.scores import score_warning
from pipeline.store.text_warnings import text_warnings
from pipeline.store.validate import unchecked, validate


def main() -> int:
    """Print one line per fault, or one line saying that a store is valid, and warnings."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.store", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("validate", help="check every value of decode stores")
    command.add_argument("file", nargs="+", help="a decode store")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # end quietly if the reader of a pipe closes it
    any_invalid = False
    for path in parser.parse_args().file:
        try:
            faults = validate(path)
        except MachineError as error:
            faults = [str(error)]
        print(*(faults or [f"{path}: a valid decode store"]), sep="\n")
        any_invalid |= bool(faults)
        if not faults:
            with open_store(path) as store:
                for warning in (
                    *text_warnings(store),
                    ranking_warning(store),
                    score_warning(store),
                    unchecked(store),
                ):
                    if warning:
                        print(f"warning: {warning}", file=sys.stderr)
    return int(any_invalid)


if __name__ == "__main__":
    sys.exit(main())
