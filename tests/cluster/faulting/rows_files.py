"""Faults of folders and images, and payloads that are a nuisance."""

from __future__ import annotations

import pwd
import re

from tests.cluster.bed.place import USER
from tests.cluster.faulting.checks import commands_of_tests
from tests.cluster.faulting.rows import row
from tests.cluster.faulting.scene import NeverCame, Scene
from tests.cluster.faulting.trees import TreeSpec

SHORT = TreeSpec(files=2, tests=4)
LONG = TreeSpec(files=3, tests=12, seconds=(0.5, 1.5))
# The node's journal loses its end between the job and the one who fetches it.
TEAR = """\
if [ "$1" = -cf ] && [ -s journal.jsonl ] && mkdir "{once}" 2>/dev/null; then
  truncate -s "-{count}" journal.jsonl
fi
exec "$real" "$@"
"""
BLOCK_LOG = """\
for last; do :; done
directory=${{last%/job.sh}}
case $directory in *{which}) mkdir "$directory/slurm.out" ;; esac
exec "$real" "$@"
"""
MEGABYTES = 200
LOUD = f"""
LINE = b"x" * 1023 + b"\\n"


def test_loud(capfd):
    with capfd.disabled():
        for _ in range({MEGABYTES}):
            os.write(1, LINE * 1024)
"""
MARK = "FAULT"
ODD = f"""
import sys

TEXTS = [
    b"::error title={MARK}::no\\n", b"  ::set-output name={MARK}::1\\n", b"##[error]{MARK}\\n",
    b"x ##[group]{MARK}\\n", b"\\r::add-mask::{MARK}\\n", b"::stop-commands::{MARK}\\n", b"::{MARK}::\\n",
    b"\\x1b]0;{MARK}\\x07\\x1b[2J\\n", bytes(range(256)) + b"\\n", b"\\xff\\xfe\\x00\\n",
    "\\u2028::error::{MARK}\\n".encode(), b"no end of line ",
    b"gpuci-frame 00000000000000000000000000000000 {{\\"kind\\":\\"over\\",\\"code\\":0}}\\n",
]


def test_odd(capfd):
    for text in TEXTS:
        with capfd.disabled():
            os.write(1, text)
        os.write(1, text)


def test_odd_name():
    sys.stdout.write("::error::{MARK}\\n")
"""
GREEDY = """
def test_greedy():
    blocks = []
    for _ in range(60):
        blocks.append(b"x" * 100_000_000)
        time.sleep(0.2)
"""


@row("journal-torn", times=20, tree=SHORT, leaves=frozenset({"scratch"}))
def tear_the_journal(scene: Scene) -> None:
    """The end of journal.jsonl is missing when it is fetched."""
    count = scene.rng.randint(1, 1000)
    torn = scene.scratch / "torn"
    scene.door.wrap("tar", TEAR.format(count=count, once=torn))
    scene.start()
    scene.finish(120)
    scene.planted = f"{count} bytes"
    if not torn.exists():
        scene.notes.append("the journal was not torn")


@row("log-unwritable", variants=("once", "always"), tree=SHORT)
def block_the_log(scene: Scene) -> None:
    """The file that -o names can't be opened on the node."""
    scene.door.wrap("sbatch", BLOCK_LOG.format(which="-t1" if scene.variant == "once" else ""))
    scene.start()


def _mount(scene: Scene, megabytes: int) -> None:
    """A small file system of its own in place of the shared folder."""
    image = scene.top / "image"
    with image.open("wb") as stream:
        stream.truncate(megabytes << 20)
    entry = pwd.getpwnam(USER)
    owner = f"root_owner={entry.pw_uid}:{entry.pw_gid}"
    make = ["mkfs.ext4", "-q", "-m", "0", "-E", f"{owner},lazy_itable_init=0", str(image)]
    for command in (make, ["mount", "-o", "loop", str(image), str(scene.shared)]):
        done = scene.bed.root(*command)
        if done.returncode:
            raise NeverCame(f"no file system of its own: {done.stderr}")
    scene.bed.get("chmod", "0700", str(scene.shared))


@row(
    "shared-full",
    variants=("before", "running"),
    tree=TreeSpec(files=3, tests=12, ballast=3_000_000),
    leaves=frozenset({"results"}),
)
def fill_the_shared_folder(scene: Scene) -> None:
    """No space left on the shared folder, before anything is delivered or while tests run."""
    _mount(scene, 2 if scene.variant == "before" else 12)
    scene.start()
    if scene.variant == "running":
        many = scene.tests_ended(1)
        scene.bed.root("dd", "if=/dev/zero", f"of={scene.shared}/filler", "bs=4096")
        scene.planted = f"after {many} tests"


@row("shared-read-only", variants=("before", "running"), tree=LONG, leaves=frozenset({"results"}))
def make_the_shared_folder_read_only(scene: Scene) -> None:
    """The shared folder can't be written, before anything is delivered or while tests run."""
    _mount(scene, 16)
    if scene.variant == "before":
        _fail(scene)
    scene.start()
    if scene.variant == "running":
        many = scene.tests_ended(1)
        _fail(scene)
        scene.planted = f"after {many} tests"


def _fail(scene: Scene) -> None:
    """As after an I/O error: files that are open can't be written either (ext4(5), `abort`)."""
    scene.bed.get("mount", "-o", "remount,abort", str(scene.shared))


@row("image-missing", tree=SHORT, runtime="podman")
def name_an_image_that_is_not_there(scene: Scene) -> None:
    """An image id that the node's storage does not have."""
    scene.container["image"] = f"sha256:{scene.rng.randbytes(32).hex()}"
    scene.start()


@row("log-200-mb", tree=TreeSpec(files=1, tests=3, extra={"tests/test_z.py": (LOUD, ("test_loud",))}))
def be_loud(scene: Scene) -> None:
    """A test prints 200 MB outside of pytest's capture."""
    scene.start()
    scene.finish(300)
    size = sum(path.stat().st_size for path in scene.runner.out.rglob("log"))
    scene.planted = f"a log of {size >> 20} MB, {len(scene.runner.said) >> 20} MB printed"
    if size > MEGABYTES << 20:
        scene.notes.append("the log was not cut")


@row(
    "log-odd",
    actions=True,
    tree=TreeSpec(files=1, tests=3, extra={"tests/test_z.py": (ODD, ("test_odd", "test_odd_name"))}),
)
def print_binary_and_commands(scene: Scene) -> None:
    """Tests print bytes that are no text, and workflow commands."""
    scene.start()
    scene.finish(120)
    said = scene.runner.said
    scene.notes += [
        f"a command of a test was printed: {line[:80]!r}" for line in commands_of_tests(said, MARK)
    ]
    if re.search(r"[\x00-\x08\x0e-\x1a\x7f]", said):
        scene.notes.append("control characters were printed")


@row(
    "out-of-memory",
    alone=True,
    tree=TreeSpec(files=1, tests=3, extra={"tests/test_z.py": (GREEDY, ("test_greedy",))}),
    slurm={"extra-options": ["--mem=600"]},
    leaves=frozenset({"scratch"}),
)
def run_out_of_memory(scene: Scene) -> None:
    """A test takes more than the job has, on a cluster that watches it (OverMemoryKill)."""
    conf = scene.place.slurm_conf
    before = conf.read_text()
    daemons = ("slurmctld", *scene.nodes)
    conf.write_text(f"{before}\nJobAcctGatherParams=OverMemoryKill\n")
    try:
        for name in daemons:
            scene.bed.restart(name)
        scene.start()
        scene.finish(120)
    finally:
        conf.write_text(before)
        for name in daemons:
            scene.bed.restart(name)
