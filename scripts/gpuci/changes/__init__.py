"""What changed between two trees -> which tests that can break, each with the reason."""
