"""Corpora: fetch, read, clean, split, cut into units, corrupt."""
