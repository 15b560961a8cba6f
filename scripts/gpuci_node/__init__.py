"""Runs on the compute node: standard library only, Python >= 3.8, imports nothing of `gpuci`."""
