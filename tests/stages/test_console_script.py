"""The console script runs stages, lists them, and completes a command line as Hydra does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.run.settings import CONF, ROOT
from stages import __main__ as console
from stages.__main__ import PROGRAM, STAGES

# What a shell does when the tab key is pressed: `complete -p` names the function to call.
COMPLETE = f"""
eval "$({PROGRAM} -sc install=bash)"
rule=$(complete -p {PROGRAM})
COMP_WORDS=($COMP_LINE)
COMP_CWORD=${{#COMP_WORDS[@]}}  # a new word, unless the last one is not complete
[ "${{COMP_LINE: -1}}" = " " ] || COMP_CWORD=$((COMP_CWORD - 1))
COMP_POINT=${{#COMP_LINE}}
complete_function=${{rule#*-F }}
${{complete_function%% *}}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """With the script that pip writes, of this checkout."""
    folder = tmp_path_factory.mktemp("bin")
    path = folder / PROGRAM
    path.write_text(f"#!{sys.executable}\nfrom stages.__main__ import main\nmain()\n")
    path.chmod(0o755)
    return os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def _main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr("sys.argv", [PROGRAM, *arguments])
    console.main()


def test_a_stage_replaces_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced: list[object] = []
    monkeypatch.setattr(os, "execv", lambda *command: replaced.extend(command))
    _main(monkeypatch, "decode", "-m", "decode.beam=1,5")
    command = [sys.executable, "-m", "stages.decode", "-m", "decode.beam=1,5"]
    assert replaced == [sys.executable, command]


def test_help_lists_every_stage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _main(monkeypatch, "--help")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ")] == list(STAGES)
    assert sorted(STAGES) == sorted(
        path.stem for path in (ROOT / "stages").glob("*.py") if not path.stem.startswith("_")
    )
    assert f"STAGE --help explains the settings of a stage. Their files are in {CONF}." in lines[-2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["uncertanty", "seed=1"], "uncertanty: no such stage. Did you mean uncertainty?"),
        (["--seed"], "--seed: no such stage."),
        ([], "no stage is named."),
    ],
)
def test_an_unknown_stage_is_one_sentence(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as refused:
        _main(monkeypatch, *arguments)
    assert refused.value.code == 2
    assert capsys.readouterr().err == f"error: {message} Choose one of {', '.join(STAGES)}.\n"


def test_the_exit_code_is_that_of_the_stage(environment: dict[str, str], tmp_path: Path) -> None:
    command = [PROGRAM, "compose", "decode.bem=3"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: decode.bem: no such setting. Did you mean beam?")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", list(STAGES)),
        ("dec", ["decode"]),
        ("decode decode=be", ["decode=beam", "decode=beam_speech"]),
        ("metrics task=asr metrics.res", ["metrics.resample=", "metrics.resamples="]),
    ],
)
def test_bash_completes_stages_and_settings(
    line: str, expected: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    done = subprocess.run(
        ["bash", "-c", COMPLETE],
        cwd=tmp_path,
        env=environment | {"COMP_LINE": f"{PROGRAM} {line}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == (expected, "")
