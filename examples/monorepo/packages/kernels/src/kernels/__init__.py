"""Kernels, their shapes and their registry, in plain Python."""
