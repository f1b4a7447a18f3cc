"""fairseq models as members of an ensemble."""
