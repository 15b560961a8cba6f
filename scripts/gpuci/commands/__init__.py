"""One module per command of `gpuci`: `add(subparsers)` declares it, `main(args) -> int` runs it."""
