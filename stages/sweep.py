"""One point of a sweep over settings from decoding on: `python -m stages.sweep -m KEY=A,B ...`.

Points share their decodes: each combination of decode settings is decoded once, and measures and
metrics are computed for each point. Existing results are kept. A point is one search of the main
ensemble without intervals, unless the command line asks for more.
"""

from __future__ import annotations

import time
from pathlib import Path

from pipeline.run.application import run
from pipeline.run.schema import PipelineConfig
from pipeline.sweep import decode_folder, lean_settings, point_folder, report_point
from stages.decode import decode
from stages.metrics import metrics
from stages.uncertainty import uncertainty


def sweep(config: PipelineConfig) -> None:
    """Make one point; write {io.root}/sweep/{task}/summary.csv, .md and .svg of all points."""
    begun = time.time()
    config = lean_settings(config)
    with decode_folder(config) as inside:
        decode(inside)
    with point_folder(config) as (inside, is_complete):
        if not is_complete:
            uncertainty(inside)
            metrics(inside)
    report_point(config, Path(inside.io.root), begun)


if __name__ == "__main__":
    run(sweep, lock=None, makes_points=True, needs_root=True)
