"""Runs in MLflow: where they are kept, how they are named, what each stage may log."""

from pipeline.tracking.names import metric_name
from pipeline.tracking.run import RunLog, open_parent, open_run
from pipeline.tracking.sweep import SweepParent

__all__ = ["RunLog", "SweepParent", "metric_name", "open_parent", "open_run"]
