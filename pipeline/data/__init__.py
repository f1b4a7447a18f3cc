"""Corpora of text and speech: fetch, read, clean, split into sets, distort, cut into subwords."""
