"""`python -m tests.fakes.github --state FILE [--port 0]`: the fake as a program; prints its URL."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path

from tests.fakes.github.server import Server
from tests.fakes.github.state import from_document


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fakes.github", description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="JSON, see state.py")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    # Blocked before the first thread, so that they wait for us.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    with Server(from_document(json.loads(options.state.read_text())), options.port) as server:
        print(server.url, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    return 0


if __name__ == "__main__":
    sys.exit(main())
