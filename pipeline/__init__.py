"""Uncertainty of autoregressive ensembles: training, decoding, measures, their evidence."""
