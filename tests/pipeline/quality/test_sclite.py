"""sclite if it is installed, or stand-in programs that print its format."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pipeline.errors import MachineError
from pipeline.quality.alignment import nist_paths, sclite_paths

REFERENCES = [["turn", "(%hesitation)", "{a", "/", "b}", "on"], [], ["it's", "3:15,"]]
HYPOTHESES = [["turn", "on", "@"], ["oh"], ["it's", "3:15,"]]
# Read both files and align sentences of equal length in the format of sclite.
pytestmark = pytest.mark.slow  # runs a stand-in of the program

STAND_IN = """#!/bin/sh
[ "$1" = sclite ] || exit 3
paste -d '|' reference hypothesis | awk -F '|' '{
    n = split($1, words, " ");
    printf "<PATH id=\\"%s\\" word_cnt=\\"1\\">\\n", words[n];
    for (i = 1; i < n; i++) printf "%sC,\\"x\\",\\"x\\"", (i > 1 ? ":" : "");
    printf "\\n</PATH>\\n"
}'
"""


def _program(folder: Path, text: str) -> str:
    program = folder / "sctk"
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_output_of_the_program_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", _program(tmp_path, STAND_IN))
    assert sclite_paths([["a", "b"], [], ["c"]], [["a", "b"], [], ["c"]]) == ["CC", "", "C"]


def test_words_are_passed_as_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("sctk") or shutil.which("sclite"):
        assert sclite_paths(REFERENCES, HYPOTHESES) == nist_paths(REFERENCES, HYPOTHESES)
    keep = f"#!/bin/sh\ncat reference > '{tmp_path}/seen'\nexit 1\n"
    monkeypatch.setenv("PATH", _program(tmp_path, keep))
    with pytest.raises(MachineError):
        sclite_paths(REFERENCES, HYPOTHESES)
    seen = (tmp_path / "seen").read_text(encoding="utf-8")
    assert seen == "w0 w1 w2 w3 w4 w5 (s_0)\n (s_1)\nw6 w7 (s_2)\n"


def test_a_missing_program_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match=r"neither sctk nor sclite is installed\. Install"):
        sclite_paths([["a"]], [["a"]])
    assert sclite_paths([], []) == []


def test_output_of_a_failing_program_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", _program(tmp_path, "#!/bin/sh\necho no licence >&2\nexit 1\n"))
    with pytest.raises(MachineError, match=r"aligned 0 of 1 sentences \(no licence"):
        sclite_paths([["a"]], [["a"]])


def test_the_program_may_be_installed_as_sclite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, first in (("sclite", "-s"), ("sctk", "sclite")):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho asked for $1 >&2\nexit 1\n", encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(MachineError, match=rf"aligned 0 of 1 sentences \(asked for {first}"):
            sclite_paths([["a"]], [["a"]])


def test_missing_sentences_in_the_output_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (
        'echo \'<PATH id="(s_0)" word_cnt="1">\'\necho \'C,"x","x":S,"y","z"\'\necho "</PATH>"\n'
    )
    monkeypatch.setenv("PATH", _program(tmp_path, f"#!/bin/sh\n{lines}"))
    assert sclite_paths([["x", "y"]], [["x", "z"]]) == ["CS"]
    with pytest.raises(MachineError, match=r"aligned 1 of 2 sentences \(<PATH"):
        sclite_paths([["x"], ["y"]], [["x"], ["z"]])
