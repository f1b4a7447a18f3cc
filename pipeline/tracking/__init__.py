"""Runs in MLflow: one per execution of a stage, with its settings, numbers and files."""

from pipeline.tracking.experiment import metric_name
from pipeline.tracking.log import RunLog
from pipeline.tracking.run import open_parent, open_run
from pipeline.tracking.sweep import Sweep, SweepParent, run_and_end_sweep

__all__ = [
    "RunLog",
    "Sweep",
    "SweepParent",
    "metric_name",
    "open_parent",
    "open_run",
    "run_and_end_sweep",
]
