"""Speech: read or synthesise corpora, read audio, compute features."""
