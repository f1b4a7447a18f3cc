"""`python -m tests.wheel`: build the wheel and use it without extras, from another folder.

An empty environment gets the wheel; packages come from PyPI. There, the console script takes the
example store of a page to its tables, and the stages that need an extra name it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from pipeline.run.code import code_digest
from pipeline.run.extras import EXTRAS, install_command
from pipeline.run.settings import ROOT
from stages.__main__ import PROGRAM
from tests.docs.pages import SHELL, blocks, split

PAGE = ROOT / "docs" / "write_a_store.md"
LAST = "stages.tables"  # later commands of the page are about other stores
NEED_TRAIN = ("prepare", "train", "decode")
FOLDER, BUILD = ROOT / "outputs" / "wheel", ROOT / "build"
NONE_OF_THEM = f"""
from importlib.util import find_spec
found = [name for name in {[*chain(*EXTRAS.values()), "dvc"]} if find_spec(name)]
assert not found, found
"""


def main() -> None:
    """Run and time all steps; outputs/wheel keeps the wheel. AssertionError if a step fails."""
    wheel = _build()
    with TemporaryDirectory() as name:
        environment, work = Path(name) / "environment", Path(name) / "work folder"
        work.mkdir()
        _step([sys.executable, "-m", "venv", str(environment)], work)
        _use(wheel, environment, work)


def _build() -> Path:
    for folder in (FOLDER, BUILD):  # setuptools would pack what an earlier build left
        shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps"]
    _step([*command, "--wheel-dir", str(FOLDER), "."], ROOT)
    shutil.rmtree(BUILD)
    (wheel,) = FOLDER.glob("*.whl")
    return wheel


def _use(wheel: Path, environment: Path, work: Path) -> None:
    os.environ["PATH"] = f"{environment / 'bin'}:{os.environ['PATH']}"
    os.environ.pop("PYTHONPATH", None)
    constraints = ["-c", str(ROOT / "constraints.txt")]
    _step(["pip", "install", "-q", "--no-compile", *constraints, str(wheel)], work)
    _step(["pip", "check"], work)
    _step(["python", "-c", NONE_OF_THEM], work)
    _step(["python", "-m", "pipeline.doctor"], work)
    _step([PROGRAM, "--help"], work)
    for command in _commands_of_page(work):
        _step(command, work)
    results = work / "results"
    manifest = json.loads((results / "metrics" / "toy" / "manifest.json").read_text())
    assert manifest["code"] == code_digest("metrics"), "another code than that of this checkout"
    assert (results / "report" / "index.html").is_file()
    for stage in NEED_TRAIN:
        _step([PROGRAM, stage], work, f"Run {install_command('train')}.\n")


def _commands_of_page(folder: Path) -> Iterator[list[str]]:
    """Write the files of the page; yield its commands, with stages by the console script."""
    for block in blocks(PAGE):
        if block.title:
            (folder / block.title).write_text(block.text, encoding="utf-8")
        for words in split(block.text) if block.language in SHELL else ():
            if words[:2] == ["python", "-m"] and words[2].startswith("stages."):
                yield [PROGRAM, words[2].removeprefix("stages."), *words[3:]]
            else:
                yield words
            if LAST in words:
                return


def _step(command: list[str], folder: Path, error: str | None = None) -> None:
    """Run a command. error: how its only line on stderr ends, if it has to fail."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    title = " ".join(command[:4]).partition("\n")[0].replace(str(ROOT), ".")
    print(f"{time.perf_counter() - start:6.1f} s  {title}", flush=True)
    if error is None:
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    else:
        assert done.returncode == 1, done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.endswith(error), done.stderr


if __name__ == "__main__":
    main()
