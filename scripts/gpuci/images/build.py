"""Runs a builder. I/O: processes and a directory of the step's own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from gpuci.errors import ConfigError
from gpuci.images import builders
from gpuci.images.builders import POLICIES, Scene
from gpuci.images.messages import explain, no_builder
from gpuci.images.settings import Build

LINES = 20_000  # of a builder's output that are shown
LINE_BYTES = 4_096
# Where a cause is looked for: docker says of an unknown option first what is wrong, then how it is used.
_FIRST, _LAST = 3, 12
_PATIENCE = 5.0  # seconds between asking a builder to end and ending it

Say = Callable[[str], None]


def choose(wanted: str, environ: Mapping[str, str]) -> str:
    """`podman` or `docker`; raises BuildFailed where there is none, ConfigError for another word."""
    if wanted not in builders.BUILDERS:
        raise ConfigError(f"builder is {wanted!r}", then=f"give one of {', '.join(builders.BUILDERS)}")
    candidates = builders.BUILDERS[1:] if wanted == "auto" else (wanted,)
    found = next((name for name in candidates if shutil.which(name, path=environ.get("PATH"))), None)
    if found is None:
        raise no_builder(wanted)
    return found


def build_archive(
    build: Build, tree: Path, scratch: Path, *, builder: str, environ: Mapping[str, str], say: Say
) -> Path:
    """Build the image of the files in `tree`; returns the OCI archive, in a directory of its own.

    `say` gets each line of the builder's output as it came: it is not to be trusted. Raises BuildFailed.
    """
    archive = scratch / "image" / "image.tar"
    for place in (archive.parent, scratch / "home", scratch / "store"):
        place.mkdir(parents=True)
    scene = Scene(
        str(tree),
        str(archive),
        home=str(scratch / "home"),
        store=str(scratch / "store"),
        state=tempfile.mkdtemp(prefix="gpuci-podman-", dir="/tmp"),
    )
    named = builders.settings(environ)
    told = {name: path for name, path in named.items() if os.path.exists(path)}
    environment = builders.environment(environ, scene, told)
    with _store(builder, scene, environment):
        Path(scene.login).write_text('{"auths": {}}\n')
        _write_policy(scene, environ.get("HOME", ""))
        # Where all of the context is left out, its directory is missing too.
        (tree / build.context).mkdir(parents=True, exist_ok=True)
        for command in builders.commands(builder, build, scene):
            _run(command, environment, say)
    return archive


def _write_policy(scene: Scene, home: str) -> None:
    """Where podman looks first, since its HOME is `scene.home`; raises ConfigError for a broken one."""
    path = next((path for path in (Path(home, name) for name in POLICIES) if path.is_file()), None)
    try:
        document = builders.policy(json.loads(path.read_bytes()) if path else {}, scene)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise ConfigError(f"{path} can't be read: {error}", then="correct it: podman needs it too") from error
    own = Path(scene.home, POLICIES[0])
    own.parent.mkdir(parents=True)
    own.write_text(json.dumps(document))


@contextmanager
def _store(builder: str, scene: Scene, environment: Mapping[str, str]) -> Iterator[None]:
    """podman's own store; rootless, its files are of user ids that only podman can act for."""
    try:
        yield
    finally:
        if builder == "podman" and os.geteuid() != 0:
            remove = [*builders.podman_of(scene), "unshare", "rm", "-rf", "--"]
            remove += [f"{scene.store}/root", scene.state]
            subprocess.run(remove, env=dict(environment), capture_output=True, check=False)
        for place in (scene.store, scene.state):
            shutil.rmtree(place, ignore_errors=True)


def _run(command: Sequence[str], environment: Mapping[str, str], say: Say) -> None:
    """Run a command to its end, showing what it prints; raises BuildFailed."""
    first: list[str] = []
    last: deque[str] = deque(maxlen=_LAST)
    with _started(command, environment) as process:
        assert process.stdout is not None
        shown = 0
        while line := process.stdout.readline(LINE_BYTES):
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            (first if shown < _FIRST else last).append(text)
            shown += 1
            if shown <= LINES:
                say(text)
            elif shown == LINES + 1:
                say(f"(more of what the builder prints is left out here: {LINES:,} lines)")
    if process.returncode != 0:
        raise explain("\n".join([*first, *last]), process.returncode)


@contextmanager
def _started(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a session of its own, which ends with us: the runner signals one process only."""
    with subprocess.Popen(
        list(command),
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            yield process
        except BaseException:
            _end(process)
            raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """End its whole group: what a builder started may outlive it."""
    os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
