"""The node's Python with pytest, and a container image with the same: Debian's Python, pytest from wheels.

No registry is asked. The image's root file system comes from Debian's packages (mmdebstrap), is kept in the
user's cache by what it is made of, and imported into `ci`'s storage.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from tests.cluster.bed.place import USER, Place
from tests.cluster.bed.processes import run, say

from gpuci.environment import ensure, user_cache

REQUIREMENTS = Path(__file__).resolve().parents[3] / "scripts/gpuci/requirements-pytest.txt"
PYTHON = "/usr/bin/python3"
# Where the image has its Python with pytest.
IMAGE_PYTHON = "/opt/python/bin/python3"
IMAGE = "localhost/gpuci-bed"
PACKAGES = (
    "base-files,base-passwd,bash,coreutils,dash,findutils,grep,hostname,libc-bin,procps,python3,sed,tar"
)
# Packages are only unpacked: what their scripts would do and a Python needs is done here.
FINISH = """\
set -eu
cd "$1"
rm -rf usr/share/doc usr/share/man usr/share/locale
cp usr/share/base-passwd/passwd.master etc/passwd
cp usr/share/base-passwd/group.master etc/group
ldconfig -r .
mkdir -p opt/python/bin workspace
ln -s /usr/bin/python3 opt/python/bin/python3
cp "$SOURCE/pyvenv.cfg" opt/python/
cp -r "$SOURCE/lib" opt/python/
rm -rf opt/python/lib/python*/site-packages/pip*
"""


def make_python(place: Place) -> None:
    """DIR/python: Debian's Python with pytest, for jobs without a container."""
    ensure(place.top, "python", REQUIREMENTS, python=PYTHON)


def make_image(place: Place) -> str:
    """Import the image into `ci`'s storage unless it is there; return it as `sha256:ID`."""
    files = root_file_system(place / "python")
    tag = f"{IMAGE}:{files.stem.rpartition('-')[2]}"
    if not (found := _find(place, tag)):
        say("imports the image")
        archive = place / "run/image.tar"
        shutil.copyfile(files, archive)
        _podman(place, "import", "--quiet", str(archive), tag)
        archive.unlink()
        found = _find(place, tag)
    return found


def _find(place: Place, tag: str) -> str:
    """`sha256:ID`, or nothing."""
    return _podman(place, "image", "ls", "--quiet", "--no-trunc", tag).strip()


def _podman(place: Place, *arguments: str) -> str:
    command = ["runuser", "-u", USER, "--", "podman", *arguments]
    return run(command, f"podman can't do `{arguments[0]}` for {USER}", environ={"HOME": str(place.home)})


def root_file_system(python: Path) -> Path:
    """The archive of the image, made once per recipe. `python` is that of `make_python`."""
    recipe = [PACKAGES, FINISH, REQUIREMENTS.read_text()]
    key = hashlib.sha256("\n".join(recipe).encode()).hexdigest()[:16]
    cache = user_cache() or Path("/var/cache/gpuci")
    archive = cache / f"image-{key}.tar"
    if not archive.exists():
        say("makes the root file system of the image from Debian's packages (only this once)")
        cache.mkdir(parents=True, exist_ok=True)
        half_made = cache / f"half-made-{os.getpid()}.tar"
        try:
            _mmdebstrap(half_made, python)
            half_made.rename(archive)
        finally:
            half_made.unlink(missing_ok=True)
    return archive


def _mmdebstrap(archive: Path, python: Path) -> None:
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=extract", f"--include={PACKAGES}"]
    command += ["--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"]
    finish = f'SOURCE="{python}"; {FINISH}'
    run(
        [*command, f"--extract-hook={finish}", "bookworm", str(archive), *_sources()],
        "the image can't be made from Debian's packages",
        environ={name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")},
    )


def _sources() -> list[str]:
    """Debian as apt knows it here (a mirror, a snapshot); none of it: as mmdebstrap knows it."""
    files = (Path("/etc/apt/sources.list"), Path("/etc/apt/sources.list.d/debian.sources"))
    return [str(file) for file in files if file.exists() and file.stat().st_size]
