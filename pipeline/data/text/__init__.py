"""Parallel text: read, clean, split into sets, and make test sets."""
