"""Test processes and their warm parents. Runs inside the container (Python >= 3.8, pytest >= 7.0)."""
