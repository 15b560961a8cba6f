"""Files and pytest's rules -> test targets, without importing any of them."""
