"""Statistics of token distributions, posteriors of an ensemble, and subsets of its members."""
