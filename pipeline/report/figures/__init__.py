"""Figures of a task: decode stores and measures in, pictures and their data out."""

from pipeline.report.figures.drawing import Sheet, make_figures
from pipeline.report.figures.evidence import TaskEvidence

__all__ = ["Sheet", "TaskEvidence", "make_figures"]
