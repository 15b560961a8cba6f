"""Make virtual environments from hash-locked requirements: once, whole or not at all.

The launcher runs this before any dependency exists: standard library only, Python >= 3.10.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from gpuci.errors import GpuciError

STAMP = "gpuci-environment"
# A user's own settings that would send pip, or the new Python, somewhere else.
_FOREIGN = (
    *("PYTHONPATH", "PYTHONHOME", "PIP_PYTHON", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"),
    "PIP_REQUIRE_VIRTUALENV",
)
# pip installs into another environment since 22.3 (pip.pypa.io, "Release notes": `--python`).
_LENDS_PIP = "import pip; raise SystemExit(tuple(map(int, pip.__version__.split('.')[:2])) < (22, 3))"


class Recipe(NamedTuple):
    """What an environment holds (a file for pip), and the Python that makes it: ours if None.

    Unless `hashes` is False the file names every package, with its hashes.
    """

    requirements: Path
    python: str | None = None
    hashes: bool = True


def ensure(
    base: Path, name: str, requirements: Path, *, python: str | None = None, hashes: bool = True
) -> Path:
    """Return the Python of the environment `base/name`, which holds what `requirements` asks for.

    `requirements`, `python` and `hashes` are as in `Recipe`.
    A fresh environment is used as it is; a missing or outdated one is made under a temporary name
    and renamed. Several processes may ask at once: one makes it, the others wait. Where `base` can't
    be written, or something else is called `name`, the environment lives in the user's cache, and
    that is said. Raises GpuciError: no venv module, no network, no place to write.
    """
    recipe, stamp = Recipe(requirements, python, hashes), stamp_of(requirements)
    environment, because = _place(base, name, stamp)
    if not is_fresh(environment, stamp):
        with _guarded(environment), _lock(environment):
            if not is_fresh(environment, stamp):
                _make(environment, recipe, stamp, because)
    return environment / "bin" / "python"


def own_pytest() -> Path:
    """Return a Python with gpuci's own pytest, for trees whose Python has none. Made on first use.

    Raises GpuciError as `ensure` does.
    """
    clone = Path(__file__).resolve().parents[2]
    base = clone if (clone / "scripts" / "launch.py").is_file() else Path(sys.prefix)
    return ensure(base, ".venvs/pytest", Path(__file__).with_name("requirements-pytest.txt"))


def is_fresh(environment: Path, stamp: str) -> bool:
    """Whether `environment` was made for these requirements, is whole, and its Python starts as then."""
    try:
        made_for, version, files = (environment / STAMP).read_text().splitlines()
    except (OSError, ValueError):
        return False
    # A cache that was restored in part has the stamp too, and fewer files.
    whole = made_for == stamp and files.isdecimal() and _files(environment) >= int(files)
    return whole and version == _version(environment / "bin" / "python")


def mark(environment: Path, stamp: str) -> None:
    """Note what a finished environment was made for."""
    # The stamp is a file as well.
    facts = (stamp, _version(environment / "bin" / "python"), _files(environment) + 1)
    (environment / STAMP).write_text("".join(f"{fact}\n" for fact in facts))


def _files(environment: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(environment))


def _place(base: Path, name: str, stamp: str) -> tuple[Path, str]:
    """Where the environment lives, and why not at `base/name` if it doesn't."""
    wanted = base / name
    if is_fresh(wanted, stamp):
        return wanted, ""
    if wanted.exists() and not (wanted / STAMP).exists():
        because = f"{wanted} was not made by gpuci and is left alone"
    elif not os.access(base, os.W_OK):
        because = f"{base} can't be written"
    else:
        return wanted, ""
    key = hashlib.sha256(os.fsencode(base)).hexdigest()[:12]
    return _cache() / key / name, because


def user_cache() -> Path | None:
    """gpuci's directory in the user's cache (XDG base directories, 0.8), None for a user without a home."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return None if home.startswith("~") else Path(home) / "gpuci"


def _cache() -> Path:
    cache = user_cache()
    if cache is None:
        raise GpuciError(
            "there is no place for gpuci's environment",
            why="the clone can't be written, and this user has no home directory",
            then="set XDG_CACHE_HOME to a directory that this user may write",
        )
    return cache


def stamp_of(requirements: Path) -> str:
    """What the environment of these requirements is marked with."""
    return hashlib.sha256(requirements.read_bytes()).hexdigest()


def _version(python: Path) -> str | None:
    """The "major.minor" of a Python, None if it doesn't start (a base that was removed or replaced)."""
    if _same(python.parent.parent, Path(sys.prefix)):
        return f"{sys.version_info[0]}.{sys.version_info[1]}"
    command = [str(python), "-I", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


@contextmanager
def _guarded(environment: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise GpuciError(
            f"the environment {environment} can't be made: {error.strerror or error}",
            why="the disk is full, or the directory can't be written",
            then=f"make room, or let this user write {environment.parent}{_or_elsewhere(environment)}",
        ) from error


def _or_elsewhere(environment: Path) -> str:
    cached = environment.is_relative_to(_cache())
    return ", or set XDG_CACHE_HOME to a directory that it may write" if cached else ""


@contextmanager
def _lock(environment: Path) -> Iterator[None]:
    """One maker at a time. The lock goes with the process, or with the child that outlives a killed one."""
    workshop = _workshop(environment)
    workshop.mkdir(parents=True, exist_ok=True)
    with open(workshop / f"{environment.name.lstrip('.')}.lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("waiting for another gpuci that makes it")
            fcntl.flock(file, fcntl.LOCK_EX)
        os.set_inheritable(file.fileno(), True)
        yield


def _workshop(environment: Path) -> Path:
    """Where locks and half-made environments live, on the same file system as the environment."""
    return environment.parent if environment.parent.name == ".venvs" else environment.parent / ".venvs"


def _make(environment: Path, recipe: Recipe, stamp: str, because: str) -> None:
    started = time.monotonic()
    if because:
        _say(because)
    _say(f"{environment} from {recipe.requirements.name} (only this once)")
    prefix = f"new-{environment.name.lstrip('.')}-"
    for left_behind in _workshop(environment).glob(f"{prefix}*"):
        shutil.rmtree(left_behind, ignore_errors=True)  # by a maker that was killed: we hold the lock
    with tempfile.TemporaryDirectory(prefix=prefix, dir=_workshop(environment)) as directory:
        half_made = Path(directory) / "environment"
        _install(half_made, recipe)
        _relocate(half_made, environment)
        mark(half_made, stamp)
        if environment.exists():
            environment.rename(Path(directory) / "outdated")
        half_made.rename(environment)
    _say(f"done in {time.monotonic() - started:.1f} s")


def _install(environment: Path, recipe: Recipe) -> None:
    # Not a venv's link to it, which Python 3.10 would link to: that may be the very one to be replaced.
    python = os.path.realpath(recipe.python or sys.executable)
    # To give an environment a pip of its own takes longer than all the rest.
    lends = subprocess.run([python, "-I", "-c", _LENDS_PIP], capture_output=True, check=False).returncode == 0
    _run(
        [python, "-I", "-m", "venv", *(["--without-pip"] if lends else []), str(environment)],
        what="Python's venv module can't make an environment",
        why=f"{python} is installed without venv, or without pip and ensurepip",
        then="install it (Debian, Ubuntu: apt install python3-venv), or put another Python on PATH",
    )
    inside = str(environment / "bin" / "python")
    pip = [python, "-I", "-m", "pip", "--python", inside] if lends else [inside, "-I", "-m", "pip"]
    # To build a package would run its code, with build tools that no hash is known of (pip.pypa.io, "Secure
    # installs").
    locked = ["--require-hashes", "--only-binary", ":all:", "--no-deps"] if recipe.hashes else []
    quiet = ["--quiet", "--no-input", "--disable-pip-version-check"]
    _run(
        [*pip, "install", *quiet, *locked, "-r", str(recipe.requirements)],
        what=f"pip can't install {recipe.requirements}",
        why="no network, a proxy that pip doesn't know, a mirror that lacks a version, or no wheel for this"
        " Python on this machine: nothing is built from source",
        then="set HTTPS_PROXY or PIP_INDEX_URL as for any pip, or put another Python on PATH",
    )


def _run(command: list[str], *, what: str, why: str, then: str) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    with subprocess.Popen(
        command,
        env={**environ, "PIP_USER": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        close_fds=False,  # hands on the lock
    ) as process:
        output = _output(process)
    if process.returncode:
        raise GpuciError(what, why=f"{why}\n{_gutter(output)}", then=then)


def _output(process: subprocess.Popen[str]) -> str:
    """All that a process and its children print; when we are cancelled, none of them stays to write files."""
    try:
        return process.communicate()[0]
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()  # ends when the last of them has closed the pipe
        raise


def _gutter(output: str, lines: int = 12) -> str:
    """The last lines of a program's output, as text that can't steer a terminal."""
    tail = output.strip().splitlines()[-lines:]
    return "\n".join("    | " + "".join(c if c.isprintable() else "?" for c in line) for line in tail)


def _relocate(made: Path, final: Path) -> None:
    """Let the scripts in bin/ name the place that the environment will have."""
    for script in (made / "bin").iterdir():
        if script.is_symlink() or not script.is_file():
            continue
        content = script.read_bytes()
        if os.fsencode(made) in content and b"\0" not in content:
            script.write_bytes(content.replace(os.fsencode(made), os.fsencode(final)))


def _say(text: str) -> None:
    print(f"setting up: {text}", file=sys.stderr, flush=True)
