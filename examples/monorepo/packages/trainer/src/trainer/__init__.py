"""A training loop in plain Python."""
