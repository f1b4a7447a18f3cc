"""Model configuration, construction and weights, shared by training and decoding."""
