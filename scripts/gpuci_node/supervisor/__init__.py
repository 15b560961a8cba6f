"""The supervisor: keeper and starter. Runs on the compute node (Python >= 3.8, standard library only)."""
