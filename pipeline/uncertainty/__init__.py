"""Every uncertainty measure of an ensemble, from numbers in a decode store alone."""
