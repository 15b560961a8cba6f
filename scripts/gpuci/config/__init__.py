"""`.github/gpuci.yml` -> one frozen Config."""
