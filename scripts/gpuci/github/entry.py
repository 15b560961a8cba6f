"""Behind every entry script: the private environment, secrets out of the way, errors as help pages."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
import traceback
from contextlib import suppress
from types import FrameType

from gpuci.errors import GpuciError
from gpuci.execution.transport import login
from gpuci.github import private
from gpuci.github.step import Step
from gpuci.reporting.text import clean, fence, one_line
from gpuci_node.contract import EXIT_CODES

# What no program that we start has a use for.
SECRETS = ("GPUCI_TOKEN", "GPUCI_REGISTRY_PASSWORD", *login.SECRETS)

_FULL = (errno.ENOSPC, errno.EDQUOT)
PROBLEM_CHARACTERS = 500  # of each line that the gate shows of an error of another job
SUMMARY_CHARACTERS = 20_000  # of an error: it may quote what others wrote


def main(action: str, *, needs_packages: bool = True) -> int:
    """Run `gpuci.steps.<action>`; the exit code is one of the table in gpuci_node.contract."""
    # The runner sends SIGINT, and SIGTERM 7.5 s later (ProcessInvoker.cs): both are a cancellation.
    signal.signal(signal.SIGTERM, _cancel)
    environ, hidden = _without_secrets()
    step = Step(action.replace("_", "-"), environ, hidden)
    try:
        if needs_packages:
            private.enter({**environ, **hidden})
        step.begin()
        return int(importlib.import_module(f"gpuci.steps.{action}").run(step))
    except GpuciError as error:
        _show(step, error)
        return error.exit_code
    except KeyboardInterrupt:
        step.say("cancelled")
        return EXIT_CODES["cancelled"]
    except Exception as error:
        _explain(step, error)
        return EXIT_CODES["infra"]
    finally:
        step.close()


def _without_secrets() -> tuple[dict[str, str], dict[str, str]]:
    """The environment without its secrets, and these, which no program that we start inherits from now on."""
    hidden = {name: os.environ.pop(name) for name in SECRETS if name in os.environ}
    return dict(os.environ), hidden


def _explain(step: Step, error: Exception) -> None:
    """What no step thought of: a full disk, else a defect of ours, whose text may quote what others wrote."""
    if isinstance(error, OSError) and error.errno in _FULL:
        _show(
            step,
            GpuciError(
                "the disk of the runner is full",
                why=f"{error.filename or 'a file'!a} can't be written: {error.strerror}",
                then="make room, or take a bigger runner (`runs-on`); then run the failed jobs again",
            ),
        )
        return
    step.say(traceback.format_exc())
    step.error("this is a defect of gpuci; the log has the traceback", title=f"gpuci {step.action}")


def _show(step: Step, error: GpuciError) -> None:
    page = error.page()
    with suppress(OSError):
        step.output("problem", _problem(error))
    if not step.on_actions:  # started by hand, or by another service
        print(clean(page), file=sys.stderr)
        return
    step.error(error.words(), title=f"gpuci {step.action}")
    with suppress(OSError):  # on a full disk too the annotation is there
        step.summary(f"### gpuci {step.action} stopped\n\n{fence(page[:SUMMARY_CHARACTERS])}\n")


def _problem(error: GpuciError) -> str:
    """For the gate (`needs.read_problem`): verdict, what happened and what to do, a line each."""
    lines = (error.verdict, error.what, error.then)
    return "\n".join(one_line(line)[:PROBLEM_CHARACTERS] for line in lines)


def _cancel(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
