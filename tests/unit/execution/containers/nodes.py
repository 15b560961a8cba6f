"""A node of a test's own: fake programs on PATH that write down how they were called."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpuci.execution.containers.render import render

DIGEST = "registry.example/team/train@sha256:" + "a" * 64
SHELLS = ("dash", "bash")
# One call a file: its words end with NUL. What it says and how it ends is in files beside, by its subcommand.
FAKE = """#!/bin/sh
here=$(dirname "$0")
call=$(mktemp "$here/calls/XXXXXX") || exit 99
printf '%s\\0' "${0##*/}" "$@" >"$call.words" && rm "$call"
for word in "$@"; do
    case $word in -*) continue ;; esac
    name="${0##*/}-$word"
    [ ! -e "$here/says/$name" ] || cat "$here/says/$name"
    [ ! -e "$here/ends/$name" ] || exit "$(cat "$here/ends/$name")"
    [ ! -e "$here/runs/$name" ] || . "$here/runs/$name"
    break
done
case " $* " in *" run "*--name=*) printf '%s\\0' "$@" ;; esac
case ${0##*/} in srun) printf '%s\\0' "$@" ;; esac
exit 0
"""


def section(**settings: Any) -> dict[str, Any]:
    """A resolved `container` section: the schema's defaults, some settings changed (`_` for `-`)."""
    defaults: dict[str, Any] = {
        "runtime": "podman",
        "image": DIGEST,
        "python": "python3",
        "pythonpath": [],
        "mounts": [],
        "env": [],
        "user": None,
        "workdir": "/workspace",
        "network": "host",
        "shm-size": "64g",
        "cap-add": ["SYS_NICE"],
        "extra-options": [],
        "pull-credential-command": [],
    }
    return {**defaults, **{name.replace("_", "-"): value for name, value in settings.items()}}


class Node:
    """A node: a scratch directory, a job directory, and a PATH with fakes first."""

    def __init__(self, top: Path) -> None:
        self.scratch, self.job_dir, self.bin = top / "scratch", top / "job", top / "bin"
        for path in (
            self.scratch,
            self.job_dir,
            *(self.bin / name for name in ("calls", "says", "ends", "runs")),
        ):
            path.mkdir(parents=True)
        self.environ = {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "GPUCI_SCRATCH": str(self.scratch),
            "SLURM_JOB_ID": "77",
            "SLURMD_NODENAME": "gpu007",
        }
        for program in ("podman", "docker", "srun"):
            self.program(program, FAKE)
        self.program("id", "#!/bin/sh\necho 1001\n")  # rootless, whoever runs the tests
        self.says("podman-info", f"{top}\n")

    def program(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)

    def says(self, call: str, text: str) -> None:
        """What a subcommand prints, such as `podman-image`."""
        (self.bin / "says" / call).write_text(text)

    def ends(self, call: str, code: int) -> None:
        (self.bin / "ends" / call).write_text(str(code))

    def runs(self, call: str, text: str) -> None:
        """Shell text that a subcommand runs, with the call's words as its arguments."""
        (self.bin / "runs" / call).write_text(text)

    def text(self, container: Mapping[str, Any], gpus: int = 0) -> str:
        return render(container, gpus=gpus, job_dir=str(self.job_dir))

    def call(
        self,
        text: str,
        *words: str,
        shell: str = "dash",
        environ: Mapping[str, str] | None = None,
        stdin: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Call a function of a rendered text as a job would: under `set -eu`, in a file of its own."""
        script = self.job_dir / "job.sh"
        script.write_text(f'set -eu\n{text}\n"$@"\n')
        return subprocess.run(
            [shell, script, *words],
            env={**self.environ, **(environ or {})},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )

    def run(self, container: Mapping[str, Any], *words: str, gpus: int = 0, **options: Any) -> list[str]:
        """The words with which `container_run WORDS…` starts the runtime."""
        done = self.call(self.text(container, gpus), "container_run", *words, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\0")[:-1]

    def calls(self) -> list[list[str]]:
        """All calls of fakes so far, in no order."""
        return [path.read_text().split("\0")[:-1] for path in (self.bin / "calls").glob("*.words")]

    def calls_of(self, *words: str) -> list[list[str]]:
        """The calls that hold all these words."""
        return [call for call in self.calls() if set(words) <= set(call)]
