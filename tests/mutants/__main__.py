"""`python -m tests.mutants [FILE ...]`: how many small faults in the code the unit tests find.

Of pipeline/uncertainty and pipeline/metrics a seeded sample of the mutants of each package is tried
(`--sample 0`: all), or all mutants of the files that are named. A mutant is tried in a copy of this
process that reads it in place of its file, on the test files of its package that reach it: no
source file is touched. Writes outputs/mutants/{PACKAGE}.json, and the survivors as differences to
outputs/mutants/{PACKAGE}.diff.
"""

from __future__ import annotations

import argparse
import difflib
import json
import random
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

from tests.mutants.faults import Mutant, mutants
from tests.mutants.runs import Run, TestFile, load_libraries, measured, that_reach

PACKAGES = ("uncertainty", "metrics")
OUT = Path("outputs") / "mutants"
# A mutant may take this many times as long as its tests do, and the time to compile.
_SLACK, _COMPILE_SECONDS = 3, 30


@dataclass(frozen=True)
class Verdict:
    """What came of a mutant: whether the tests found it, and whether it was by their time."""

    mutant: Mutant
    killed: bool
    timed_out: bool
    seconds: float


def main() -> None:
    """Try the mutants, package by package, and print a line of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--sample", type=int, default=250, help="mutants of a package; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="mutants at once")
    asked = parser.parse_args()
    sources = {name: sorted(Path("pipeline", name).glob("*.py")) for name in PACKAGES}
    for path in asked.files:
        if not any(path in paths for paths in sources.values()):
            parser.error(f"{path} must be a file of pipeline/ in {' or '.join(PACKAGES)}")
    load_libraries()
    for package, paths in sources.items():
        wanted = [path for path in paths if path in (asked.files or paths)]
        everything = sorted(one for path in wanted for one in mutants(path))
        chosen = _sample(everything, 0 if asked.files else asked.sample, asked.seed)
        if chosen:
            files = sorted(Path("tests", "pipeline", package).glob("test_*.py"))
            tests = [measured(test) for test in files]
            verdicts = []
            for verdict in _tried(chosen, tests, asked.jobs):
                verdicts.append(verdict)
                print(
                    f"{len(verdicts)}/{len(chosen)} {_told(verdict)}", file=sys.stderr, flush=True
                )
            _write(package, verdicts)
            print(_line(package, verdicts, len(everything)), flush=True)


def _sample(everything: Sequence[Mutant], size: int, seed: int) -> list[Mutant]:
    """So many mutants that Python can compile, drawn without repeat; 0: all of them."""
    order = list(everything)
    random.Random(seed).shuffle(order)
    able = (one for one in order if one.source() is not None)
    return [one for _, one in zip(range(size or len(order)), able)]  # noqa: B905


def _tried(chosen: Sequence[Mutant], tests: Sequence[TestFile], jobs: int) -> Iterator[Verdict]:
    waiting, running = deque(chosen), list[Run]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(_begun(waiting.popleft(), tests))
            for run in [*running]:
                failed = run.failed()
                if failed is not None:
                    running.remove(run)
                    yield Verdict(run.mutant, failed, run.timed_out, run.seconds)
            time.sleep(0.02)
    finally:
        for run in running:
            run.stop()


def _begun(mutant: Mutant, tests: Sequence[TestFile]) -> Run:
    reaching = that_reach(mutant, tests)
    limit_seconds = _COMPILE_SECONDS + _SLACK * sum(test.seconds for test in reaching)
    return Run([test.path for test in reaching], mutant, limit_seconds)


def _told(verdict: Verdict) -> str:
    mutant, found = verdict.mutant, "found" if verdict.killed else "SURVIVED"
    where = f"{mutant.path}:{mutant.line}:{mutant.column + 1}"
    return f"{found} {where} {mutant.operator} {verdict.seconds:.1f} s"


def _write(package: str, verdicts: Sequence[Verdict]) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "file": str(one.mutant.path),
            "line": one.mutant.line,
            "operator": one.mutant.operator,
            "occurrence": one.mutant.occurrence,
            "killed": one.killed,
            "timed_out": one.timed_out,
            "seconds": round(one.seconds, 2),
        }
        for one in sorted(verdicts, key=lambda one: one.mutant)
    ]
    (OUT / f"{package}.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    survivors = sorted(one.mutant for one in verdicts if not one.killed)
    text = "\n".join(_difference(one) for one in survivors)
    (OUT / f"{package}.diff").write_text(text, encoding="utf-8")


def _difference(mutant: Mutant) -> str:
    before = mutant.path.read_text(encoding="utf-8").splitlines()
    after = (mutant.source() or "").splitlines()
    lines = difflib.unified_diff(before, after, str(mutant.path), mutant.operator, "", "", 2, "")
    return "\n".join(lines) + "\n"


def _line(package: str, verdicts: Sequence[Verdict], n_all: int) -> str:
    n, killed = len(verdicts), sum(one.killed for one in verdicts)
    low, high = _interval(killed, n)
    late = sum(one.timed_out for one in verdicts)
    return (
        f"{package}: {killed} of {n} mutants found ({late} by their time), of {n_all}: "
        f"{100 * killed / n:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
    )


def _interval(killed: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    z = 1.96
    middle = (killed + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * sqrt(killed * (n - killed) / n + z * z / 4)
    return middle - half, middle + half


if __name__ == "__main__":
    main()
