"""What training and decoding share: model configuration and weights."""
