"""Uncertainty of autoregressive ensembles: data, training, decoding, measures and their evidence."""
