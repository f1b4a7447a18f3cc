"""Figures of the evidence: stores and measures of a task in, pictures and their data out."""

from pipeline.report.figures.drawing import Sheet
from pipeline.report.figures.evidence import TaskEvidence
from pipeline.report.figures.make import make_figures

__all__ = ["Sheet", "TaskEvidence", "make_figures"]
