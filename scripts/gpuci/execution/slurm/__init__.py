"""Shards on a Slurm cluster: what is asked of it, and what its answers mean."""
