"""Estimate the costs of a run before it starts: work, time, disk and memory of every stage."""
