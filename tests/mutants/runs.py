"""Test files run in copies of this process, on the sources as they are or with a mutant."""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import NoReturn

from tests.mutants.faults import Mutant, function_bodies

# What tests import and what has no mutants is loaded once, and each copy begins with it.
_LIBRARIES = (
    *(
        "coverage",
        "h5py",
        "hydra",
        "hypothesis",
        "jiwer",
        "matplotlib.pyplot",
        "numba",
        "omegaconf",
    ),
    *("pandas", "pyarrow.parquet", "pyarrow.compute", "pytest", "rapidfuzz.distance", "sacrebleu"),
    *("sacrebleu.metrics", "scipy.stats", "sklearn.metrics", "yaml"),
)
_MEMORY_BYTES = 6 * 2**30


@dataclass(frozen=True)
class TestFile:
    """A test file, how long it takes, and which lines of which source file it runs."""

    __test__ = False

    path: Path
    seconds: float
    lines: dict[str, set[int]]


class _Source(SourceFileLoader):
    """Loads a module from a text in place of its file."""

    def __init__(self, module: str, path: Path, text: str) -> None:
        super().__init__(module, str(path.resolve()))
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._text, self.path, "exec", dont_inherit=True)

    def find_spec(
        self, module: str, _path: object = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As a finder of modules: this one alone."""
        return (
            spec_from_file_location(module, self.path, loader=self) if module == self.name else None
        )


class Run:
    """A copy of this process that runs test files until one fails."""

    def __init__(self, tests: Sequence[Path], mutant: Mutant, limit_seconds: float) -> None:
        self.mutant = mutant
        self.seconds = 0.0
        self.timed_out = False
        self._folder = Path(tempfile.mkdtemp(prefix="mutant-"))
        self._start, self._limit_seconds = time.monotonic(), limit_seconds
        self._process = _fork(lambda: _tests_pass(tests, mutant, self._folder))

    def failed(self) -> bool | None:
        """Whether a test failed or the time was over; None while it runs."""
        ended, status = os.waitpid(self._process, os.WNOHANG)
        self.seconds = time.monotonic() - self._start
        if not ended and self.seconds < self._limit_seconds:
            return None
        self.timed_out = not ended
        self.stop()
        return status != 0 or self.timed_out

    def stop(self) -> None:
        """End what still runs, and remove what it left."""
        with suppress(ProcessLookupError, ChildProcessError):
            os.killpg(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
        shutil.rmtree(self._folder, ignore_errors=True)


def load_libraries() -> None:
    """Import what is not tested, before the first run."""
    for name in _LIBRARIES:
        importlib.import_module(name)
    gc.freeze()


def measured(test: Path) -> TestFile:
    """Run a test file by itself and see what it reaches; AssertionError where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        seen = Path(folder) / "lines.json"
        start = time.monotonic()
        process = _fork(lambda: _lines_of(test, seen))
        _, status = os.waitpid(process, 0)
        assert status == 0, f"{test} must pass before mutants are tried: run pytest {test}"
        lines = {path: set(one) for path, one in json.loads(seen.read_text()).items()}
    return TestFile(test, time.monotonic() - start, lines)


def that_reach(mutant: Mutant, tests: Sequence[TestFile]) -> list[TestFile]:
    """The test files that run the function of a mutant, those of its own name and short ones first.

    Outside of functions, and in compiled ones, whose lines are not seen: all that load the file.
    """
    around = [body for body in function_bodies(mutant.path) if mutant.line in body]
    lines = [(test, test.lines.get(str(mutant.path), set())) for test in tests]
    found = [test for test, seen in lines if around and seen.intersection(around[-1])]
    found = found or [test for test, seen in lines if seen]
    return sorted(found, key=lambda one: (mutant.path.stem not in one.path.stem, one.seconds))


def _fork(work: Callable[[], bool]) -> int:
    process = os.fork()
    if process == 0:
        _end_with(work)
    return process


def _end_with(work: Callable[[], bool]) -> NoReturn:
    os.setpgid(0, 0)
    with open(os.devnull, "r+b") as nothing:  # noqa: PTH123
        for stream in range(3):
            os.dup2(nothing.fileno(), stream)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    try:
        os._exit(0 if work() else 1)
    finally:
        os._exit(1)


def _lines_of(test: Path, seen: Path) -> bool:
    from coverage import Coverage

    coverage = Coverage(data_file=None, config_file=False, include=["pipeline/*"])
    coverage.start()
    passed = _tests_pass([test], None, seen.parent)
    coverage.stop()
    data = coverage.get_data()
    here = Path.cwd()
    lines = {str(Path(one).relative_to(here)): data.lines(one) for one in data.measured_files()}
    seen.write_text(json.dumps(lines))
    return passed


def _tests_pass(tests: Sequence[Path], mutant: Mutant | None, folder: Path) -> bool:
    import pytest
    from hypothesis import HealthCheck, Phase, settings
    from numba import config

    if mutant is not None:
        sys.meta_path.insert(0, _Source(mutant.module, mutant.path, mutant.source() or ""))
        # Code of a mutant is not kept: numba knows a file by its date.
        config.CACHE_DIR = str(folder / "machine_code") if _compiles(mutant.path) else ""
    # The same few examples are tried each time, and one that fails is not made smaller.
    settings.register_profile(
        "mutants",
        phases=[Phase.explicit, Phase.generate],
        max_examples=30,
        derandomize=True,
        deadline=None,
        suppress_health_check=[*HealthCheck],
    )
    settings.load_profile("mutants")
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", f"--basetemp={folder / 'tests'}"]
    return pytest.main([*options, *map(str, tests)]) == 0


def _compiles(path: Path) -> bool:
    return "machine_code" in path.read_text(encoding="utf-8")
