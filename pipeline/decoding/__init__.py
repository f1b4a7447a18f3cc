"""Search, sampling and scoring with an ensemble, and the statistics of every token."""
