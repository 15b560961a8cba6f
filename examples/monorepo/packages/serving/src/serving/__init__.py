"""A model server in plain Python."""
