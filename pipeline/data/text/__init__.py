"""Parallel text: read, clean, split, cut into subwords, make test sets."""
