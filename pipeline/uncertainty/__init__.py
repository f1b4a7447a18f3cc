"""Uncertainty measures of an ensemble, computed from a decode store only."""
