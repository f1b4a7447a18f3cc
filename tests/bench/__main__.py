"""Benchmarks: `python -m tests.bench [PART ...]` prints a table and writes outputs/bench/PART.json.

A part that cannot be measured says why and writes an empty list.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

from pipeline.run.settings import ROOT
from tests.bench.measurement import Measurement, NotMeasuredError

NOT_PARTS = {"__main__", "measurement"}


def main(wanted: list[str]) -> int:
    """Run the parts and return the exit code: 1 if a target is missed, 2 for an unknown part."""
    parts = sorted({path.stem for path in Path(__file__).parent.glob("*.py")} - NOT_PARTS)
    unknown = [part for part in wanted if part not in parts]
    if unknown:
        print(
            f"error: ONLY: unknown part ({unknown[0]}). Use one of {', '.join(parts)}.",
            file=sys.stderr,
        )
        return 2
    print(f"processor: {_processor()}, one thread")
    all_ok = True
    for part in wanted or parts:
        try:
            measurements = _measured(part)
        except NotMeasuredError as reason:
            print(f"{part:12s} not measured: {reason}", flush=True)
            measurements = []
        _write(ROOT / "outputs" / "bench" / f"{part}.json", measurements)
        for measurement in measurements:
            mark = "" if not measurement.target else "ok" if measurement.ok else "MISSED"
            target = f"target {measurement.target}" if measurement.target else ""
            value = f"{measurement.value:.4g} {measurement.unit}"
            print(
                f"{part:12s} {measurement.name:58s} {value:>20s}  {target:16s} {mark}", flush=True
            )
        all_ok &= all(measurement.ok for measurement in measurements)
    return 0 if all_ok else 1


def _measured(part: str) -> list[Measurement]:
    measurements: list[Measurement] = importlib.import_module(f"tests.bench.{part}").measure()
    return measurements


def _write(path: Path, measurements: list[Measurement]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "name": measurement.name,
            "value": measurement.value,
            "unit": measurement.unit,
            "target": measurement.target or None,
            "ok": measurement.ok,
        }
        for measurement in measurements
    ]
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return "unknown"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
