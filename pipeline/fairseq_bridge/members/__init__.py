"""Trained models as members of an ensemble, ready to decode."""
