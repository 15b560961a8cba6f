"""The way to the login node: one multiplexed connection of the system's ssh, and answers over it."""
