"""Small networks in plain Python."""
