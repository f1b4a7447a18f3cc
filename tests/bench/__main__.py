"""`python -m tests.bench [PART ...]`: print a table, write outputs/bench/PART.json.

A part that finds nothing to measure says so, and writes an empty list.
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
    """Run the parts; 1 where a target is missed, 2 for a part that does not exist."""
    parts = sorted({path.stem for path in Path(__file__).parent.glob("*.py")} - NOT_PARTS)
    unknown = [part for part in wanted if part not in parts]
    if unknown:
        print(f"error: ONLY must be one of {', '.join(parts)}, got {unknown[0]}", file=sys.stderr)
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
        for one in measurements:
            mark = "" if not one.target else "ok" if one.ok else "MISSED"
            target = f"target {one.target}" if one.target else ""
            value = f"{one.value:.4g} {one.unit}"
            print(f"{part:12s} {one.name:58s} {value:>20s}  {target:16s} {mark}", flush=True)
        all_ok &= all(one.ok for one in measurements)
    return 0 if all_ok else 1


def _measured(part: str) -> list[Measurement]:
    measurements: list[Measurement] = importlib.import_module(f"tests.bench.{part}").measure()
    return measurements


def _write(path: Path, measurements: list[Measurement]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "name": one.name,
            "value": one.value,
            "unit": one.unit,
            "target": one.target or None,
            "ok": one.ok,
        }
        for one in measurements
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
