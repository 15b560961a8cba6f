"""The launcher in a copy of the clone, with requirements that name no package: no network is needed."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuci import environment
from gpuci_node.contract import EXIT_CODES

CLONE = Path(__file__).resolve().parents[2]
PARTS = (
    "gpuci",
    "scripts/find_python.sh",
    "scripts/launch.py",
    "scripts/gpuci/__init__.py",
    "scripts/gpuci/__main__.py",
    "scripts/gpuci/environment.py",
    "scripts/gpuci/errors.py",
    "scripts/gpuci_node/__init__.py",
    "scripts/gpuci_node/contract.py",
)
# Stands in for the command: prints what a command can see of how it was started.
CLI = """
import json, os, sys
def main():
    print(json.dumps({"arguments": sys.argv[1:], "prefix": sys.prefix, "cwd": os.getcwd(), "path": sys.path,
                      "pythonpath": os.environ.get("PYTHONPATH")}))
    return 77
"""


def copy_clone(into: Path) -> Path:
    for part in PARTS:
        (into / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CLONE / part, into / part)
    (into / "scripts/requirements.txt").write_text("# none\n")
    (into / "scripts/gpuci/cli.py").write_text(CLI)
    return into


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of what the launcher needs, in a directory whose name would break unquoted shell."""
    return copy_clone(tmp_path / "a clone; $(exit 3) 'é")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone after its first use, not to be changed. A plain name: pip quotes its own paths less well."""
    clone = copy_clone(tmp_path_factory.mktemp("made") / "a clone")
    seen(start(clone / "gpuci"))
    return clone


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A user's environment, with a cache of its own."""
    return {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}


def start(command: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(
        [str(command), *arguments], capture_output=True, text=True, check=False, timeout=120, **options
    )


def seen(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What the command saw; fails with the launcher's words when there was no command."""
    assert done.returncode == 77, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def half_made(clone: Path) -> list[Path]:
    return sorted(clone.glob(".venvs/new-*"))


def wait_until_making(clone: Path, process: subprocess.Popen[str]) -> None:
    while not half_made(clone):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def test_the_first_use_makes_an_environment_and_says_so(clone: Path, environ: dict[str, str]) -> None:
    done = start(clone / "gpuci", "run", "a b", "", env=environ)
    assert seen(done)["arguments"] == ["run", "a b", ""]
    assert Path(seen(done)["prefix"]) == clone / ".venv"
    assert done.stderr.startswith(f"setting up: {clone}/.venv from requirements.txt")
    assert "setting up: done in " in done.stderr
    assert half_made(clone) == []


def test_the_second_use_is_silent_and_makes_nothing(made: Path) -> None:
    before = (made / ".venv").stat().st_ino
    done = start(made / "gpuci")
    assert (seen(done)["arguments"], done.stderr) == ([], "")
    assert (made / ".venv").stat().st_ino == before


def wheel(directory: Path) -> str:
    """Make a package with a script; returns its line of requirements.txt."""
    path = directory / "tool-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tool.py", "import sys\ndef main(): print(sys.prefix)\n")
        archive.writestr("tool-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tool\nVersion: 1\n")
        archive.writestr("tool-1.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nTag: py3-none-any\n")
        archive.writestr("tool-1.dist-info/entry_points.txt", "[console_scripts]\ntool = tool:main\n")
        archive.writestr("tool-1.dist-info/RECORD", "")
    return f"tool==1 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


def lends(pip: str) -> str:
    """A Python's answer to whether its pip can install for another one, and then itself.

    Not the one of the tests' environment, which has no pip, but the one that this was made by.
    """
    base = os.path.realpath(sys.executable)
    return f"#!/bin/sh\ncase $* in *'import pip;'*) exit {pip} ;; esac\nexec {base} \"$@\"\n"


def lending() -> bool:
    """Whether the Python that the tests' environment was made by has a pip that can do that."""
    probe = [os.path.realpath(sys.executable), "-I", "-c", environment._LENDS_PIP]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("borrowed", [True, False], ids=["the base's pip", "a pip of its own"])
def test_packages_and_scripts_are_in_the_environment_and_know_their_place(
    tmp_path: Path, environ: dict[str, str], borrowed: bool
) -> None:
    """Whatever a user's settings of pip name."""
    if borrowed and not lending():
        pytest.skip("the Python that made this environment has no pip 22.3 or newer to lend")
    clone = copy_clone(tmp_path / "clone")
    (clone / "scripts/requirements.txt").write_text(wheel(tmp_path))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").write_text(lends("0" if borrowed else "1"))
    (tmp_path / "bin/python3").chmod(0o755)
    elsewhere = {f"PIP_{name}": str(tmp_path / "else") for name in ("PYTHON", "TARGET", "PREFIX", "ROOT")}
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
    recipe = f"""
import sys
sys.path.insert(0, {str(clone / "scripts")!r})
from pathlib import Path
from gpuci import environment
environment.ensure(Path({str(clone)!r}), ".venv", Path({str(clone / "scripts/requirements.txt")!r}),
                   python={str(tmp_path / "bin/python3")!r})
"""
    done = start(Path(sys.executable), "-I", "-c", recipe, env={**environ, **elsewhere, **offline})
    assert done.returncode == 0, done.stderr
    assert start(clone / ".venv/bin/tool").stdout == f"{clone / '.venv'}\n"
    assert (clone / ".venv/bin/pip").exists() != borrowed
    assert not (tmp_path / "else").exists()


def test_a_symbolic_link_and_another_directory(made: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "first").symlink_to(os.path.relpath(made / "gpuci", tmp_path / "bin"))
    (tmp_path / "bin" / "gpuci").symlink_to("first")
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    found = seen(start(Path("gpuci"), env={**os.environ, "PATH": path, "CDPATH": "/"}, cwd=tmp_path))
    assert (Path(found["prefix"]), found["cwd"]) == (made / ".venv", str(tmp_path))


def test_a_pythonpath_reaches_the_tests_but_shadows_nothing(made: Path, tmp_path: Path) -> None:
    for name in ("json.py", "gpuci.py", "sitecustomize.py", "venv.py"):
        (tmp_path / name).write_text("raise SystemExit('shadowed')\n")
    found = seen(start(made / "gpuci", env={**os.environ, "PYTHONPATH": str(tmp_path)}, cwd=tmp_path))
    assert found["pythonpath"] == str(tmp_path)
    assert found["path"][0] == str(made / "scripts")
    assert str(tmp_path) not in found["path"]


def dangle(clone: Path) -> None:
    """The base Python of a complete environment was removed."""
    (clone / ".venv/bin").mkdir()
    (clone / ".venv/bin/python").symlink_to(clone / "removed")


def replace_base(clone: Path) -> None:
    """The base Python of a complete environment became another version."""
    digest = hashlib.sha256((clone / "scripts/requirements.txt").read_bytes()).hexdigest()
    (clone / ".venv/gpuci-environment").write_text(f"{digest}\n3.1\n1\n")
    (clone / ".venv/bin").mkdir()
    base = Path(sys._base_executable)  # type: ignore[attr-defined]
    (clone / ".venv/bin/python").symlink_to(base)
    (clone / ".venv/pyvenv.cfg").write_text(f"home = {base.parent}\n")


@pytest.mark.parametrize(
    "spoil", [dangle, replace_base, lambda _: None], ids=["gone", "version", "requirements"]
)
def test_an_outdated_environment_is_made_again(clone: Path, environ: dict[str, str], spoil: Any) -> None:
    (clone / ".venv").mkdir()
    (clone / ".venv/gpuci-environment").write_text("other requirements\n3.11\n1\n")
    spoil(clone)
    done = start(clone / "gpuci", env=environ)
    assert Path(seen(done)["prefix"]) == clone / ".venv"
    assert "setting up: done in " in done.stderr
    assert half_made(clone) == []


def test_an_environment_of_the_user_is_left_alone(clone: Path, environ: dict[str, str]) -> None:
    (clone / ".venv").mkdir()
    (clone / ".venv" / "mine").touch()
    done = start(clone / "gpuci", env=environ)
    assert seen(done)["prefix"].startswith(environ["XDG_CACHE_HOME"])
    assert "was not made by gpuci" in done.stderr
    assert [path.name for path in (clone / ".venv").iterdir()] == ["mine"]
    assert start(clone / "gpuci", env=environ).stderr == ""


def test_two_first_uses_at_once_make_one_environment(clone: Path, environ: dict[str, str]) -> None:
    both = [
        subprocess.Popen([clone / "gpuci"], env=environ, stdout=-1, stderr=-1, text=True) for _ in range(2)
    ]
    ends = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [77, 77], ends
    assert sum(errors.count("setting up: done in") for _, errors in ends) == 1
    assert half_made(clone) == []


def test_a_maker_that_is_killed_leaves_nothing_for_the_next(clone: Path, environ: dict[str, str]) -> None:
    process = subprocess.Popen([clone / "gpuci"], env=environ, stdout=-1, stderr=-1, text=True)
    wait_until_making(clone, process)
    process.kill()
    process.communicate()
    # Its child still writes: the next one waits for it.
    assert Path(seen(start(clone / "gpuci", env=environ))["prefix"]) == clone / ".venv"
    assert half_made(clone) == []


def test_no_package_is_built_from_source(clone: Path, environ: dict[str, str], tmp_path: Path) -> None:
    """Its setup.py would run, and bring build tools that no hash is known of."""
    ran = tmp_path / "ran"
    (tmp_path / "tool-1").mkdir()
    (tmp_path / "tool-1/setup.py").write_text(f"open({str(ran)!r}, 'w')\n")
    (tmp_path / "tool-1/PKG-INFO").write_text("Metadata-Version: 2.1\nName: tool\nVersion: 1\n")
    path = tmp_path / "tool-1.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tmp_path / "tool-1", "tool-1")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (clone / "scripts/requirements.txt").write_text(f"tool==1 --hash=sha256:{digest}\n")
    here = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
    done = start(clone / "gpuci", env={**environ, **here})
    assert done.returncode == EXIT_CODES["infra"]
    assert "No matching distribution found for tool==1" in done.stderr
    assert "or no wheel for this Python on this machine: nothing is built" in " ".join(done.stderr.split())
    assert not ran.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["term", "int"])
def test_a_maker_that_is_cancelled_cleans_up(clone: Path, environ: dict[str, str], number: int) -> None:
    process = subprocess.Popen([clone / "gpuci"], env=environ, stdout=-1, stderr=-1, text=True)
    wait_until_making(clone, process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == EXIT_CODES["cancelled"], errors
    assert errors.endswith("cancelled while setting up; nothing was left behind\n")
    assert not (clone / ".venv").exists()
    assert half_made(clone) == []


def test_pip_without_a_network_gives_a_help_page(clone: Path, environ: dict[str, str]) -> None:
    (clone / "scripts/requirements.txt").write_text(f"attrs==26.1.0 --hash=sha256:{'0' * 64}\n")
    nowhere = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull}
    done = start(clone / "gpuci", env={**environ, **nowhere})
    assert done.returncode == EXIT_CODES["infra"]
    assert "error: pip can't install" in done.stderr
    assert "    | ERROR: No matching distribution found for attrs==26.1.0" in done.stderr
    assert "\n  then: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not (clone / ".venv").exists()
    assert half_made(clone) == []


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A directory with the few programs of POSIX that the launcher uses, and no Python."""
    directory = tmp_path / "tools"
    directory.mkdir()
    for name in ("sh", "dirname", "readlink"):
        (directory / name).symlink_to(shutil.which(name) or name)
    return directory


@pytest.mark.parametrize("old", [False, True], ids=["none", "too-old"])
def test_no_python_is_one_clear_line(clone: Path, environ: dict[str, str], tools: Path, old: bool) -> None:
    if old:
        (tools / "python3").write_text("#!/bin/sh\necho noise >&2\nexit 1\n")
        (tools / "python3").chmod(0o755)
    done = start(clone / "gpuci", env={**environ, "PATH": str(tools)})
    assert done.returncode == EXIT_CODES["config_error"]
    assert done.stderr == (
        "error: gpuci needs Python 3.10 or newer; none of python3, python3.14 ... python3.10 on PATH is\n"
    )


@pytest.fixture
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Options that start a program as somebody who can't write to the clone, and a home of theirs."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        home = Path(directory, "home")
        home.mkdir()
        options: dict[str, Any] = {"env": {"HOME": str(home), "PATH": os.environ["PATH"]}, "cwd": directory}
        if os.geteuid() == 0:
            os.chown(home, 65534, 65534)
            # Root's own Python may be out of reach for others.
            options["env"]["PATH"] = "/usr/bin:/bin"
            options.update(user=65534, group=65534, extra_groups=[])
        yield options


def test_a_clone_that_cannot_be_written_uses_the_cache(stranger: dict[str, Any]) -> None:
    probe = start(
        Path("python3"), "-I", "-c", "import ensurepip, sys; assert sys.version_info >= (3, 10)", **stranger
    )
    if probe.returncode:
        pytest.skip("another user has no Python >= 3.10 with ensurepip on PATH")
    clone = copy_clone(Path(stranger["cwd"], "clone"))
    for path in (clone, clone / "scripts"):
        path.chmod(0o555)
    try:
        done = start(clone / "gpuci", **stranger)
        assert seen(done)["prefix"].startswith(stranger["env"]["HOME"] + "/.cache/gpuci/")
        assert f"setting up: {clone} can't be written\n" in done.stderr
        assert start(clone / "gpuci", **stranger).stderr == ""
    finally:
        for path in (clone, clone / "scripts"):
            path.chmod(0o755)


def test_no_place_to_write_gives_a_help_page(stranger: dict[str, Any]) -> None:
    clone = copy_clone(Path(stranger["cwd"], "clone"))
    clone.chmod(0o555)
    stranger["env"]["XDG_CACHE_HOME"] = "/proc/nowhere"
    try:
        done = start(clone / "gpuci", **stranger)
    finally:
        clone.chmod(0o755)
    assert done.returncode == EXIT_CODES["infra"]
    assert "can't be made" in done.stderr
    assert "set XDG_CACHE_HOME" in done.stderr
    assert "Traceback" not in done.stderr
