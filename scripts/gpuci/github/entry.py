"""Behind every entry script: the private environment, secrets out of the way, errors as help pages."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path

from gpuci import environment
from gpuci.errors import GpuciError
from gpuci.github.step import Step
from gpuci.reporting.text import fence
from gpuci_node.contract import EXIT_CODES

SCRIPTS = Path(__file__).resolve().parents[2]
# What no program that we start has a use for.
SECRETS = ("GPUCI_TOKEN", "GPUCI_REGISTRY_PASSWORD", "GPUCI_SSH_PRIVATE_KEY", "GPUCI_SSH_CERTIFICATE")


def main(action: str, *, needs_packages: bool = True) -> int:
    """Run `gpuci.steps.<action>`; the exit code is one of the table in gpuci_node.contract."""
    try:
        if needs_packages:
            _into_environment()
        hidden = {name: os.environ.pop(name) for name in SECRETS if name in os.environ}
        step = Step(action.replace("_", "-"), dict(os.environ), hidden)
        return _run(action, step)
    except GpuciError as error:  # the environment can't be made
        print(error.page(), file=sys.stderr)
        return error.exit_code


def _run(action: str, step: Step) -> int:
    try:
        return int(importlib.import_module(f"gpuci.steps.{action}").run(step))
    except GpuciError as error:
        step.annotate("error", error.page(), title=f"gpuci {step.action}")
        step.summary(f"### gpuci {step.action} stopped\n\n{fence(error.page())}\n")
        return error.exit_code
    except KeyboardInterrupt:
        step.say("cancelled")
        return EXIT_CODES["cancelled"]
    except Exception:  # a defect of ours: its text may quote what others wrote
        step.say(traceback.format_exc())
        step.annotate("error", "this is a defect of gpuci; the log has the traceback", title=step.action)
        return EXIT_CODES["infra"]


def _into_environment() -> None:
    """Become the Python that has our packages: the same process, so that it gets the runner's signals."""
    python = environment.ensure(SCRIPTS.parent, ".venv", SCRIPTS / "requirements.txt")
    if Path(sys.prefix).resolve() != python.parent.parent.resolve():
        os.execv(python, [str(python), "-I", *sys.argv])
