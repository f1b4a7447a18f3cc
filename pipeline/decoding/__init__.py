"""Search and scoring over an ensemble, and the per-token statistics of what is found."""
