"""The registry's credential for a run, as a command here prints it. It goes into job directories only."""

from __future__ import annotations

import subprocess

from gpuci.config.model import Config
from gpuci.errors import ConfigError
from gpuci.execution.containers.credential import pull_auth

_SECONDS = 60.0


def registry_credential(config: Config) -> str:
    """The text of auth.json, empty without a command; raises ConfigError, which never shows a credential."""
    command, image = config.container["pull-credential-command"], config.container["image"]
    if not command or not image:
        return ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else f"it took longer than {_SECONDS:g} s"
        raise _failed(str(why)) from None
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise _failed(last[0])
    return pull_auth(image, done.stdout)


def _failed(why: str) -> ConfigError:
    return ConfigError(
        f"container.pull-credential-command failed: {why}",
        then="run it by hand on the machine that runs gpuci",
    )
