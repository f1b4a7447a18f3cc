"""Prepared data in the form that fairseq reads."""
