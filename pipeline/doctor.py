"""Check that this machine has what the pipeline needs, and advise on each fault."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from pipeline.run.extras import install_command, is_installed
from pipeline.run.settings import IS_CHECKOUT, ROOT

_DISTRIBUTION = "sequence-uncertainty"
_PIN = re.compile(r'^([\w.-]+)==([^;\s]+)(?:.*extra == "(\w+)")?')
# Imported by the doctor: packages with compiled code.
_IMPORTED = ("h5py", "numba", "torch", "fairseq", "transformers")
_NEEDED_DISK_GIB = 3.0
_NEEDED_MEMORY_GIB = 4.0
# Programs that are not Python packages: purpose, and the Debian package with the program.
_PROGRAMS = {
    "git": ("DVC needs it", "git"),
    "apt-get": ("stage prepare downloads text with it, unless data.packages is set", "apt"),
    "dpkg-deb": ("stage prepare unpacks packages with it", "dpkg"),
}


@dataclass(frozen=True)
class Finding:
    """The result of one check. level: ok; note (works with limits); fault (does not work)."""

    level: str
    subject: str
    what: str
    advice: str = ""

    def __str__(self) -> str:
        advice = f" -> {self.advice}" if self.advice else ""
        return f"{self.level:5}  {self.subject}: {self.what}{advice}"


def examine(root: Path) -> Iterator[Finding]:
    """Check Python, packages, programs, disk, memory, accelerator, MLflow's store and DVC.

    root: the folder of results. Nothing is changed.
    """
    for check in (_python, _packages, _imports, _programs, _machine, _accelerator):
        yield from check()
    yield _disk(root)
    yield _tracking_store(root / "mlflow.db")
    yield from _dvc()


def _python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    if (3, 11) <= sys.version_info[:2] <= (3, 12):
        yield Finding("ok", "python", version)
    else:
        advice = "create the environment with Python 3.11 or 3.12"
        yield Finding("fault", "python", f"{version}; 3.11 or 3.12 is needed", advice)


def _packages() -> Iterator[Finding]:
    """Check every pinned package. An extra that is not installed gives one note.

    An extra is installed if most of the packages are that it shares with no other: single ones may
    have come as requirements of other packages.
    """
    try:
        requirements = metadata.requires(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        yield Finding("fault", "packages", f"{_DISTRIBUTION} is not installed", "make setup")
        return
    pins: dict[str, dict[str, str]] = {}
    for match in filter(None, map(_PIN.match, requirements)):
        name, version, extra = match.groups()
        pins.setdefault(extra or "base", {})[name] = version
    for group, wanted in pins.items():
        installed = {name: _version(name) for name in wanted}
        others = {name for other in pins if other != group for name in pins[other]}
        own = wanted.keys() - others
        if group != "base" and 2 * sum(bool(installed[name]) for name in own) < len(own):
            advice = install_command(group)
            yield Finding("note", f"packages ({group})", "not installed", advice)
            continue
        different = {name for name in wanted if installed[name] != wanted[name]}
        for name in sorted(different):
            what = f"{installed[name] or 'not installed'}; {wanted[name]} was tested"
            advice = f"pip install {name}=={wanted[name]}"
            yield Finding("note" if installed[name] else "fault", name, what, advice)
        if not different:
            yield Finding("ok", f"packages ({group})", f"{len(wanted)} in the tested versions")


def _imports() -> Iterator[Finding]:
    """Import what is installed: packages of the right version may lack a library of the machine."""
    for name in _IMPORTED:
        if not is_installed(name):
            continue
        # transformers loads what it finds, such as torchaudio, when a model is asked for.
        code = f"import {name}; getattr({name}, 'MarianMTModel', None)"
        result = _output([sys.executable, "-c", code])
        if result.returncode:
            *_, reason = result.stderr.strip().splitlines() or [""]
            is_audio = "torchaudio" in result.stderr
            advice = (
                "pip uninstall torchaudio: nothing here needs it" if is_audio else "reinstall it"
            )
            yield Finding("fault", f"import {name}", reason, advice)
        else:
            yield Finding("ok", f"import {name}", "works")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name).partition("+")[0]
    except metadata.PackageNotFoundError:
        return None


def _programs() -> Iterator[Finding]:
    for program, (purpose, package) in _PROGRAMS.items():
        path = shutil.which(program)
        if path:
            yield Finding("ok", program, path)
        else:
            advice = f"apt-get install {package}"
            yield Finding("note", program, f"not found; {purpose}", advice)


def _machine() -> Iterator[Finding]:
    cores = len(os.sched_getaffinity(0))
    yield Finding("ok", "cores", f"{cores}; as many parts run at a time")
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    if gib >= _NEEDED_MEMORY_GIB:
        yield Finding("ok", "memory", f"{gib:.0f} GiB")
    else:
        advice = "decode.search_members=[...] keeps fewer members in memory"
        yield Finding(
            "note", "memory", f"{gib:.1f} GiB; {_NEEDED_MEMORY_GIB} GiB are recommended", advice
        )


def _accelerator() -> Iterator[Finding]:
    try:
        import torch
    except ImportError:
        what = "not installed; training and decoding need it"
        yield Finding("note", "torch", what, install_command("train"))
        return
    if torch.cuda.is_available():
        yield Finding("ok", "CUDA", f"{torch.cuda.get_device_name(0)}: decode.device=cuda")
    else:
        yield Finding("note", "CUDA", "no device; everything runs on the CPU")


def _disk(root: Path) -> Finding:
    folder = next(path for path in (root, *root.absolute().parents) if path.exists())
    free = shutil.disk_usage(folder).free / 2**30
    if not os.access(folder, os.W_OK):
        return Finding("fault", "disk", f"{folder} cannot be written", "io.root=A_WRITABLE_FOLDER")
    if free < _NEEDED_DISK_GIB:
        advice = "free some space, or io.root=ANOTHER_FOLDER"
        what = f"{free:.1f} GiB free at {folder}; the demo needs {_NEEDED_DISK_GIB:.0f} GiB"
        return Finding("fault", "disk", what, advice)
    return Finding("ok", "disk", f"{free:.0f} GiB free at {folder}")


def _tracking_store(path: Path) -> Finding:
    if not path.is_file():
        return Finding("ok", "MLflow store", f"{path} does not exist yet")
    advice = f"move {path} away; the next run creates a new one"
    try:
        with sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5) as store:
            result = store.execute("PRAGMA quick_check").fetchone()[0]
            runs = store.execute("SELECT count(*) FROM runs").fetchone()[0]
    except sqlite3.Error as error:
        return Finding("fault", "MLflow store", f"{path} cannot be read: {error}", advice)
    if result != "ok":
        return Finding("fault", "MLflow store", f"{path} is damaged: {result}", advice)
    return Finding("ok", "MLflow store", f"{path}, {runs} runs")


def _dvc() -> Iterator[Finding]:
    """Check DVC, which runs in a checkout only; if it is missing, so is an extra."""
    if not IS_CHECKOUT or not is_installed("dvc"):
        return
    command = [sys.executable, "-m", "dvc"]
    result = _output([*command, "status"])
    if result.returncode:
        reason = " ".join(result.stderr.split())[-300:]
        # DVC was killed while it wrote this file. It creates a new one if there is none.
        advice = (
            "rm .dvc/tmp/rwlock while no dvc command runs" if "RWLock" in reason else "dvc doctor"
        )
        yield Finding("fault", "DVC", f"dvc status failed: {reason}", advice)
    elif "up to date" in result.stdout:
        yield Finding("ok", "DVC", "every stage is up to date")
    else:
        stages = [line[:-1] for line in result.stdout.splitlines() if line and line[0] != "\t"]
        yield Finding("note", "DVC", f"out of date: {', '.join(stages)}", "make repro")
    for setting in ("core.analytics", "core.check_update"):
        if _output([*command, "config", setting]).stdout.strip() != "false":
            advice = f"dvc config {setting} false"
            yield Finding("note", "DVC", f"{setting} is on and contacts a server", advice)


def _output(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def main(check: Callable[[Path], Iterator[Finding]] = examine) -> int:
    """Print every finding as soon as it is known; the exit code is 1 if there is a fault."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.doctor", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("outputs"), help="the folder of results")
    arguments = parser.parse_args()
    faults = 0
    for finding in check(arguments.root):
        print(finding, flush=True)
        faults += finding.level == "fault"
    print(f"{faults} faults" if faults else "no faults")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
