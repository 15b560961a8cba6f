"""gpuci: GPU tests on a Slurm cluster from GitHub, and the same plan on a laptop."""

__version__ = "0.1.0"
