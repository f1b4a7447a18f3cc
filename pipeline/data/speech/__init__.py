"""Speech: corpora, synthesis, audio, features."""
