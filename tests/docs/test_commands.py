"""Commands on pages that no other test of this folder runs are of a known kind and valid.

The overrides of a stage are composed and checked. Targets of make and options of other programs
must exist.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from pipeline.run.overrides import check_overrides
from pipeline.run.settings import ROOT
from stages.__main__ import PROGRAM, STAGES
from tests.docs.pages import PAGES, SHELL, blocks, commands
from tests.docs.test_huggingface import CAUSAL, MARIAN
from tests.docs.test_huggingface_speech import PAGE as WHISPER
from tests.docs.test_sessions import SESSIONS
from tests.docs.test_your_own_language_pair import PAGE as LANGUAGE_PAIR

# Pages that other tests of this folder follow.
FOLLOWED = (LANGUAGE_PAIR, MARIAN, CAUSAL, WHISPER)
SHOWN = {
    tuple(words): page.relative_to(ROOT)
    for page in PAGES
    if page.name not in SESSIONS and page not in FOLLOWED
    for words in commands(page)
}


def _kind(words: tuple[str, ...]) -> str:
    program, *rest = words
    if program == "export" or "=" in program:
        return "environment"
    if program == "python" and rest[0] == "-m":
        return "stage" if rest[1].startswith("stages.") else "module"
    if program == "python":
        return "script"
    if words == (".", ".venv/bin/activate"):
        return "activation"
    return Path(program).name


def _succeeds(command: list[str]) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _stage(words: tuple[str, ...]) -> None:
    stage, *arguments = words[2:]
    assert (ROOT / f"{stage.replace('.', '/')}.py").is_file()
    flags = [argument for argument in arguments if argument.startswith("-")]
    assert not {*flags} - {"-m", "--multirun"} or arguments == ["--help"]
    check_overrides(arguments)


def _console_script(words: tuple[str, ...]) -> None:
    stage, *arguments = words[1:]
    if stage in STAGES:
        _stage(("python", "-m", f"stages.{stage}", *arguments))
    else:
        assert words[1:] in [("--help",), ("-sc", "install=bash")]


def _pip(words: tuple[str, ...]) -> None:
    """Check what is installed: this package with extras that exist, its wheel, or a tested one."""
    assert words[1] == "install"
    *options, package = words[2:]
    assert options in ([], ["-c", "constraints.txt"])
    name, _, extras = package.removesuffix("]").partition("[")
    if name in (".", PROGRAM) or name.endswith(".whl"):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert {*filter(None, extras.split(","))} <= {*project["optional-dependencies"]}
    else:
        assert f"\n{name}==" in (ROOT / "constraints.txt").read_text(encoding="utf-8")


def _make(words: tuple[str, ...]) -> None:
    _succeeds(["make", "--dry-run", *words[1:]])
    benchmarks = " ".join(words).partition("ONLY=")[2].split() if "bench" in words else []
    for benchmark in benchmarks:
        assert (ROOT / "tests" / "bench" / f"{benchmark}.py").is_file()


def _dvc(words: tuple[str, ...]) -> None:
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    tasks = yaml.safe_load((ROOT / "conf" / "dag.yaml").read_text(encoding="utf-8"))["tasks"]
    for target in (word for word in words if "@" in word):
        stage, _, task = target.partition("@")
        assert stage in stages
        assert task in tasks
    _help(words)


def _git(words: tuple[str, ...]) -> None:
    """Check that these are the lines that `make repro` ends with, or that restore its files."""
    if words[1] == "checkout":
        assert words[2:] == ("conf/dag.yaml", "dvc.lock")
        return
    typed = " ".join(f'"{word}"' if " " in word else word for word in words)
    assert typed in (ROOT / "Makefile").read_text(encoding="utf-8")


def _environment(words: tuple[str, ...]) -> None:
    """Check assignments of variables; if a Python command follows them, run it."""
    assignments = [word for word in words if re.match(r"[A-Z_]+=", word)]
    command = [word for word in words if word not in ("export", *assignments)]
    assert assignments
    if command:
        assert command[:2] == ["python", "-c"]
        _succeeds(["env", *assignments, *command])


def _script(words: tuple[str, ...]) -> None:
    assert (ROOT / words[1]).is_file()


def _activation(words: tuple[str, ...]) -> None:
    assert "VENV := .venv" in (ROOT / "Makefile").read_text(encoding="utf-8")


def _test_set_of_sacrebleu(words: tuple[str, ...]) -> None:
    import sacrebleu

    options = dict(zip(words[1::2], words[2::2], strict=False))
    assert options["-l"] in sacrebleu.get_langpairs_for_testset(options["-t"])


def _help(words: tuple[str, ...]) -> None:
    """Run the command with --help: the options and sub-commands before it are still parsed."""
    program = sys.executable if words[0] == "python" else Path(words[0]).name
    _succeeds([program, *words[1:], "--help"])


def _pytest(words: tuple[str, ...]) -> None:
    assert all((ROOT / word).exists() for word in words if word.startswith("tests/"))
    _help(words)


CHECKS = {
    "stage": _stage,
    "pip": _pip,
    PROGRAM: _console_script,
    "module": _help,
    "dvc": _dvc,
    "git": _git,
    "environment": _environment,
    "pre-commit": _help,
    "make": _make,
    "pytest": _pytest,
    "script": _script,
    "activation": _activation,
    "sacrebleu": _test_set_of_sacrebleu,
}


@pytest.mark.parametrize("words", SHOWN, ids=" ".join)
def test_command_is_valid(words: tuple[str, ...]) -> None:
    kind = _kind(words)
    assert kind in CHECKS, f"{SHOWN[words]}: unknown kind of command ({' '.join(words)})"
    CHECKS[kind](words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_are_commands_or_have_a_known_language(page: Path) -> None:
    for block in blocks(page):
        assert block.language in (*SHELL, "python", "yaml", "text"), block
        if block.language == "yaml":
            content = yaml.safe_load(block.text)
            if "tasks" in content:  # content of conf/dag.yaml
                check_overrides(shlex.split(content["overrides"]))
        if block.language == "python":
            assert page.name in SESSIONS or page in FOLLOWED, (
                f"{page}: has a Python block but is not run. Add it to SESSIONS."
            )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"`((?:docs|conf|pipeline|stages|tests|\.ci)/[\w./-]+)`", text)
    assert [name for name in named if not (ROOT / name).exists()] == []
