"""Prepared data in the formats that fairseq and the speech task read."""
