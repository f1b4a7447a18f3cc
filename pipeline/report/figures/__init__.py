"""Figures of the evidence: stores and measures of a task in, pictures and their data out."""

from pipeline.report.figures.evidence import TaskEvidence
from pipeline.report.figures.make import make_figures
from pipeline.report.figures.sheet import Sheet

__all__ = ["Sheet", "TaskEvidence", "make_figures"]
