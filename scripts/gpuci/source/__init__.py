"""What source files say, file by file, without importing any of them."""
