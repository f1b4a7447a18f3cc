"""How a stage runs: help, errors, declared settings, parts, and one run at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.errors import ConfigError
from pipeline.run.code import code_digest, declared_params
from pipeline.run.settings import ROOT, implementations

pytestmark = pytest.mark.usefixtures("side_by_side")

# A stage for tests. It has the name of a stage in dvc.yaml, whose params apply.
STAGE = """
import os, sys, time
from pathlib import Path
from pipeline.errors import DataError
from pipeline.run.artifacts import PartFolder
from tests.artifacts import made_by
from pipeline.run.application import run
from pipeline.run.jobs import run_parts

def {name}(config):
{body}

if __name__ == "__main__":
    run({name}, has_parts=True)
"""


def _run(*arguments: str, cwd: Path = ROOT, path: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": f"{path}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )


def _script(folder: Path, name: str, body: str) -> Path:
    path = folder / f"{name}.py"
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    path.write_text(STAGE.format(name=name, body=indented))
    return path


def test_help_explains_the_stage_its_groups_and_the_settings_that_it_reads() -> None:
    result = _run("-m", "stages.decode", "decode=greedy", "--help")
    assert result.returncode == 0
    text = " ".join(result.stdout.split())
    for words in (
        *("python -m stages.decode", "--multirun", "experiment: demo", "hydra/launcher: local"),
        *("decode: beam, beam_speech, greedy", "mc_dropout,"),
        "decode.beam=1 (whole number; at least 1) number of prefixes that",
        "ensemble.seeds=[1,2,3,4] (list; whole numbers in [0, 4294967295]) one per training run",
        "task.test_sets={help, debian-reference,",
    ):
        assert words in text
    for key in ("metrics.", "data.", "io.store", "decode.name"):  # not read, or no setting
        assert f" {key}" not in text


def test_help_ends_quietly_when_its_reader_does() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "stages.compose", "--help"]
    result = subprocess.run(command, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, b"")


def test_help_names_a_wrong_override() -> None:
    result = _run("-m", "stages.decode", "--help", "decode.bem=3")
    assert result.returncode == 2
    assert result.stderr.startswith("error: decode.bem: no such setting.")


@pytest.mark.parametrize("stage", ["compose", "train"])
def test_wrong_override_stops_before_anything_is_written(stage: str, tmp_path: Path) -> None:
    result = _run("-m", f"stages.{stage}", "decode.bem=3", f"io.root={tmp_path}")
    assert result.returncode == 2
    assert result.stderr.startswith("error: decode.bem: no such setting. Did you mean beam?")
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_error_of_a_stage_is_one_line(tmp_path: Path) -> None:
    script = _script(tmp_path, "compose", "raise DataError('file must hold rows, got none')")
    result = _run(str(script), f"io.root={tmp_path}")
    assert result.returncode == 1
    assert result.stderr.strip() == "error: file must hold rows, got none"


def test_log_has_seeds_and_threads(tmp_path: Path) -> None:
    composed = _run("-m", "stages.compose", f"io.root={tmp_path}", "seed=7", "ensemble.seeds=[5,6]")
    assert composed.returncode == 0, composed.stderr
    (start, *_) = (tmp_path / "logs" / "compose.nmt_ende.log").read_text().splitlines()
    threads = "OMP_NUM_THREADS=1, MKL_NUM_THREADS=1, OPENBLAS_NUM_THREADS=1"
    assert start.endswith(f"settings.yaml; seed 7, ensemble.seeds [5, 6]; {threads}")


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("os.mkdir('/proc/x')", "(No such file or directory). Run the stage"),
        ("raise OSError(28, 'full')", "cannot be read or written (No space left on device)"),
    ],
)
def test_system_error_is_one_line(body: str, rule: str, tmp_path: Path) -> None:
    result = _run(str(_script(tmp_path, "compose", body)), f"io.root={tmp_path / 'out'}")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1, result.stderr
    assert rule in result.stderr
    assert "Traceback" in (tmp_path / "out" / "logs" / "compose.nmt_ende.log").read_text()


def test_stage_sees_only_its_declared_keys(tmp_path: Path) -> None:
    body = "print(config.train.updates)\nprint(config.decode.beam)"
    result = _run(str(_script(tmp_path, "train", body)), f"io.root={tmp_path}", "train.updates=900")
    assert result.returncode == 1
    assert "900" in result.stdout
    assert "decode: not among the params of stage train in dvc.yaml" in result.stderr


def test_from_config_sets_the_settings(tmp_path: Path) -> None:
    composed = _run("-m", "stages.compose", "train.updates=777", f"io.root={tmp_path / 'a: b'}")
    assert composed.returncode == 0, composed.stderr
    resolved = tmp_path / "a: b" / "config" / "nmt_ende" / "resolved.yaml"
    script = _script(tmp_path, "train", "print(config.train.updates, config.io.root)")
    result = _run(str(script), f"from_config='{resolved}'")
    assert result.stdout.startswith(f"777 {tmp_path / 'a: b'}"), result.stderr


def test_damaged_from_config_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "resolved.yaml"
    path.write_text("trian: {}")
    result = _run("-m", "stages.train", f"from_config={path}", f"io.root={tmp_path}")
    assert result.returncode == 1
    assert "trian: no such setting. Did you mean train?" in result.stderr
    assert f"error: {path}: not a file of settings (" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_part_of_a_stage_without_parts_is_refused(tmp_path: Path) -> None:
    result = _run("-m", "stages.tables", "part=a", f"io.root={tmp_path}")
    assert result.returncode == 1
    assert result.stderr == "error: part: must be null, since stage tables has no parts (got a).\n"


@pytest.mark.parametrize(
    ("stage", "setting"),
    [
        ("compose", "io.out=none"),
        ("decode", "io.store=a.h5"),
        ("prepare", "io.store=[a.h5,b.h5]"),
        ("sweep", "io.member_stores=[a.h5]"),
        ("tables", "io.store=a.h5"),
        ("uncertainty", "io.baseline=a.h5"),
    ],
)
def test_setting_that_a_stage_would_ignore_is_refused(
    stage: str, setting: str, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    result = _run("-m", f"stages.{stage}", f"io.root={tmp_path / 'out'}", setting)
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1, result.stderr
    key = setting.partition("=")[0]
    assert f"error: {key}: is not used by stage {stage} (got " in result.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["hydra"]


def test_hostile_yaml_tag_in_resolved_settings_runs_nothing(tmp_path: Path) -> None:
    harm, path = tmp_path / "harm", tmp_path / "resolved.yaml"
    path.write_text(f'seed: !!python/object/apply:os.mkdir ["{harm}"]')
    result = _run("-m", "stages.train", f"from_config={path}", f"io.root={tmp_path}")
    assert result.returncode == 1
    assert "could not determine a constructor" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not harm.exists()


def test_missing_from_config_is_named(tmp_path: Path) -> None:
    result = _run("-m", "stages.train", f"from_config={tmp_path}/none.yaml")
    assert result.returncode == 1
    assert "none.yaml: not a file of settings (No such file or directory)" in result.stderr


PARTS = """
parts = dict.fromkeys("abc", made_by("train"))
folder = PartFolder(Path(config.io.root) / "train" / "parts", "train", parts)
if config.part is None:
    print("ran", run_parts(config, folder, int(os.environ.get("PARTS_PER_JOB", "1"))))
elif config.part == "b" and not (Path(config.io.root) / "repaired").exists():
    raise DataError("b is broken")
else:
    with folder.building(config.part) as out:
        (out / "updates").write_text(str(config.train.updates))
"""


def _write_stage_with_parts(folder: Path) -> None:
    package = folder / "code" / "stages"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text((ROOT / "stages" / "__init__.py").read_text())
    _script(package, "train", PARTS)


def test_case_17_parts_are_written_below_any_path(tmp_path: Path) -> None:
    _write_stage_with_parts(tmp_path)
    name = "out puts: 日本 a,b=c 'd' (é)"
    root = tmp_path / name
    root.mkdir()
    (root / "repaired").write_text("")
    quoted = str(root).replace("'", "\\'")
    command = ("-m", "stages.train", f"io.root='{quoted}'")
    done = _run(*command, path=tmp_path / "code", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "ran ['a', 'b', 'c']" in done.stdout
    parts = root / "train" / "parts"
    assert {path.name for path in parts.iterdir()} == {"a", "b", "c", "manifest.json"}
    assert {path.name for path in tmp_path.iterdir()} == {"code", name}


@pytest.mark.parametrize("parts_per_job", [1, 2, 3])
def test_failed_part_is_named_and_the_others_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts_per_job: int
) -> None:
    monkeypatch.setenv("PARTS_PER_JOB", str(parts_per_job))
    _write_stage_with_parts(tmp_path)
    root = tmp_path / "out"
    command = ("-m", "stages.train", f"io.root={root}", "train.updates=901")
    failed = _run(*command, path=tmp_path / "code", cwd=tmp_path)
    assert failed.returncode == 1
    assert "1 of 3 parts failed (b)." in failed.stderr
    assert "error: b is broken" in failed.stderr
    for part in ("a", "c"):
        assert (root / "train" / "parts" / part / "updates").read_text() == "901"
    (root / "repaired").write_text("")
    repaired = _run(*command, path=tmp_path / "code", cwd=tmp_path)
    assert repaired.returncode == 0, repaired.stderr
    assert "ran ['b']" in repaired.stdout
    again = _run(*command, path=tmp_path / "code", cwd=tmp_path)
    assert "ran []" in again.stdout


def test_second_run_of_a_stage_is_refused(tmp_path: Path) -> None:
    script = _script(tmp_path, "compose", "print('in', flush=True)\nsys.stdin.readline()")
    command = [sys.executable, str(script), f"io.root={tmp_path}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    first = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert first.stdout is not None
    assert first.stdout.readline() == "in\n"
    second = _run(*command[1:])
    first.communicate("\n")
    assert second.returncode == 1
    assert f"(process {first.pid})" in second.stderr


WAITING_PART = """
folder = PartFolder(Path(config.io.root) / "train" / "parts", "train", {"a": made_by("train")})
if config.part is None:
    run_parts(config, folder)
else:
    started = Path(config.io.root) / f"{os.getpid()}.started"
    with folder.building(config.part) as out:
        started.write_text("")
        while not (Path(config.io.root) / "continue").exists():
            time.sleep(0.05)
"""


def _waiting_run(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    """Start a stage with one part; return its process and the file that the part writes first."""
    package = folder / "code" / "stages"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text((ROOT / "stages" / "__init__.py").read_text())
    _script(package, "train", WAITING_PART)
    first = subprocess.Popen(
        [sys.executable, "-m", "stages.train", f"io.root={folder / 'out'}"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder / 'code'}:{ROOT}"},
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background jobs inherit an ignored SIGINT, and so would the run.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    return first, _wait_for_file(folder / "out", "*.started")


def _wait_for_file(folder: Path, pattern: str) -> Path:
    for _ in range(2400):
        if paths := list(folder.glob(pattern)):
            return paths[0]
        time.sleep(0.05)
    raise AssertionError(f"no {pattern} appeared in {folder}")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_parts_end_with_the_run_that_started_them(how: signal.Signals, tmp_path: Path) -> None:
    first, started = _waiting_run(tmp_path)
    first.send_signal(how)
    _, err = first.communicate(timeout=120)
    assert first.returncode == 128 + how
    assert "Traceback" not in err
    with pytest.raises(ProcessLookupError):
        for _ in range(200):
            os.kill(int(started.stem), 0)
            time.sleep(0.05)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_whose_cleanup_fails_says_interrupted(
    how: signal.Signals, tmp_path: Path
) -> None:
    body = f"""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
try:
    os.kill(os.getpid(), {int(how)})
finally:
    raise RuntimeError("the cleanup failed")
"""
    script = _script(tmp_path, "train", body)
    result = _run(str(script), f"io.root={tmp_path / 'out'}")
    assert result.returncode == 128 + how, result.stderr
    assert result.stderr == (
        "error: stage train: interrupted; finished parts are kept and the next run resumes\n"
    )


def test_case_16_run_waits_for_a_part_that_outlived_its_run(tmp_path: Path) -> None:
    first, _ = _waiting_run(tmp_path)
    # Jobs end with their run; this part outlives it, since the process that would end it is killed.
    (jobs,) = Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()
    os.kill(int(jobs), signal.SIGKILL)
    first.kill()
    assert first.stderr is not None
    first.stderr.close()  # the surviving part keeps its own end open
    first.wait()
    command = [sys.executable, "-m", "stages.train", f"io.root={tmp_path / 'out'}"]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path / 'code'}:{ROOT}"}
    second = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert second.stdout is not None
    assert any("INFO" in line and "waiting for process" in line for line in second.stdout)
    (tmp_path / "out" / "continue").write_text("")
    second.communicate(timeout=60)
    assert second.returncode == 0
    assert [path.name for path in (tmp_path / "out" / "train" / "parts" / "a").iterdir()] == [
        "manifest.json"
    ]


def test_case_18_runs_of_the_same_second_get_different_folders(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stages.compose", f"io.root={tmp_path}"]
    # Tasks of their own, so that no run waits for the lock of another.
    runs = [subprocess.Popen([*command, f"task.name=task_{i}"], cwd=ROOT) for i in range(4)]
    assert [run.wait() for run in runs] == [0] * 4
    assert len(list((tmp_path / "hydra" / "compose").glob("*/*"))) == 4


def test_params_are_read_from_dvc_yaml() -> None:
    assert "ensemble.seeds" in (declared_params("train") or [])
    assert declared_params("compose") is None


def test_plug_in_must_have_a_source() -> None:
    message = r"^metrics\.extra_metrics\.mine: .* written in Python \(got 'math\.sqrt'\)"
    with pytest.raises(ConfigError, match=message):
        implementations({"mine": "math.sqrt"}, "metrics.extra_metrics")


def test_code_digest_changes_with_a_plug_in(tmp_path: Path) -> None:
    digest = code_digest("train")
    assert digest == code_digest("train")
    assert digest != code_digest("train", test_code_digest_changes_with_a_plug_in)
