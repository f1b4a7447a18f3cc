"""The console script: `sequence-uncertainty STAGE ...` is `python -m stages.STAGE ...`."""

from __future__ import annotations

import ast
import difflib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

PROGRAM = "sequence-uncertainty"
STAGES = (  # in the order of a run
    *("compose", "prepare", "train", "decode", "uncertainty", "metrics", "tables"),
    *("sweep", "plan"),
)
# A command line with words after the stage: the program, and what follows the stage.
_LINE = re.compile(r"\s*(\S+)\s+\S+(\s.*)")


def main() -> None:
    """Run the stage that the command line names.

    The stage replaces this process, so that its signals and exit codes are its own.
    """
    stage, *arguments = sys.argv[1:] or [""]
    if stage in ("-sc", "--shell-completion"):
        _complete(asks="query" in "".join(arguments))
    elif stage in ("-h", "--help"):
        print("\n".join(_help()))
    elif stage in STAGES:
        os.execv(sys.executable, [sys.executable, "-m", f"stages.{stage}", *arguments])
    else:
        _refuse(stage)


def _help() -> Iterator[str]:
    from pipeline.run.settings import CONF

    yield f"usage: {PROGRAM} STAGE [GROUP=OPTION | KEY=VALUE ...]\n"
    yield "Runs one stage, as python -m stages.STAGE does. Results go to the folder outputs.\n"
    for stage in STAGES:
        source = Path(__file__).with_name(f"{stage}.py").read_text(encoding="utf-8")
        text = ast.get_docstring(ast.parse(source)) or ""
        yield f"  {stage:<12} {text.splitlines()[0]}"
    yield f"\n{PROGRAM} STAGE --help explains the settings of a stage. Their files are in {CONF}."
    yield f'Completion by the tab key in bash: eval "$({PROGRAM} -sc install=bash)"'


def _refuse(stage: str) -> NoReturn:
    nearest = difflib.get_close_matches(stage, STAGES, n=1)
    hint = f" Did you mean {nearest[0]}?" if nearest else ""
    what = f"{stage}: no such stage.{hint}" if stage else "no stage is named."
    print(f"error: {what} Choose one of {', '.join(STAGES)}.", file=sys.stderr)
    sys.exit(2)


def _complete(*, asks: bool) -> None:
    """Let Hydra install itself in a shell, or answer it; all stages have the same settings.

    asks: whether the shell asks how its command line, COMP_LINE, can continue.
    """
    line = _LINE.fullmatch(os.environ.get("COMP_LINE", ""))
    if asks and line is None:
        print("\n".join(STAGES))
        return
    if line is not None:
        os.environ["COMP_LINE"] = "".join(line.groups())  # without the stage, which Hydra has not
    from pipeline.run.application import run
    from stages.compose import compose

    run(compose)


if __name__ == "__main__":
    main()
