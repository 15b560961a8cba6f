"""The backend that runs a plan on this machine."""
