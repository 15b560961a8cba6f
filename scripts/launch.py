"""Start the command from a clone: make the environment on first use, then become gpuci.

Run by `../gpuci` as `python -I launch.py ARGUMENTS`. Standard library only, Python >= 3.10.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

SCRIPTS = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPTS))

from gpuci import environment  # noqa: E402
from gpuci.errors import GpuciError  # noqa: E402
from gpuci_node.contract import EXIT_CODES  # noqa: E402


def _cancel(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    """Replace this process by the command; return an exit code only when that can't be done."""
    signal.signal(signal.SIGTERM, _cancel)
    try:
        python = environment.ensure(SCRIPTS.parent, ".venv", SCRIPTS / "requirements.txt")
    except GpuciError as error:
        print(error.page(), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("cancelled while setting up; nothing was left behind", file=sys.stderr)
        return EXIT_CODES["cancelled"]
    return _become(str(python), arguments)


def _become(python: str, arguments: list[str]) -> NoReturn:
    # -I: a PYTHONPATH of the user can't shadow gpuci, and stays in the environment for the tests.
    os.execv(python, [python, "-I", str(SCRIPTS / "gpuci" / "__main__.py"), *arguments])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
