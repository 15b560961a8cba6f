"""Text to batches of numbers."""
