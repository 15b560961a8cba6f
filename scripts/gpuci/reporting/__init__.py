"""Results -> what people and programs read."""
