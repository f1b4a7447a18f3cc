"""Run Python commands as a reader of the pages does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline.run.settings import ROOT
from tests.docs.pages import SHELL, blocks, split

# No download can succeed in this environment.
OFFLINE = {"http_proxy": "http://nowhere.invalid", "https_proxy": "http://nowhere.invalid"}


def run_python(
    arguments: Sequence[str], folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder; it must succeed."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{arguments}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done


def follow(page: Path, folder: Path, tiny: Sequence[str], **environment: str) -> None:
    """Write the files of a page and run its commands and Python blocks, from top to bottom.

    Packages are installed already. tiny: further settings of stage compose.
    """
    for block in blocks(page):
        if block.title:
            path = folder / block.title
            path.parent.mkdir(parents=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            run_python(["-c", block.text], folder, **environment)
        elif block.language in SHELL:
            for words in split(block.text):
                if words[0] == "pip":
                    continue
                settings = tiny if words[2] == "stages.compose" else ()
                run_python([*words[1:], *settings], folder, **environment)
