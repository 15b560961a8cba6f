"""podman as text: what the rendered shell calls, with which words."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.execution.containers.nodes import DIGEST, SHELLS, Node, section

PROGRAM = ["--cgroup-manager=cgroupfs", "run"]
ALWAYS = ["--rm", "--interactive", "--pull=never", "--log-driver=none", "--security-opt=label=disable"]


def expected(node: Node, container: dict[str, Any], *, before: list[str], after: list[str]) -> list[str]:
    """The words of `podman run` up to the image; `before` stands between our options and the extra ones."""
    network = [] if container["network"] == "default" else [f"--network={container['network']}"]
    pyz = node.scratch / "gpuci_node.pyz"
    return [
        *PROGRAM,
        *ALWAYS,
        "--name=gpuci-77",
        *network,
        f"--shm-size={container['shm-size']}",
        *(f"--cap-add={name}" for name in container["cap-add"]),
        f"--workdir={container['workdir']}",
        "--http-proxy=false",
        *([f"--user={container['user']}"] if container["user"] else []),
        f"--volume={node.scratch}/tree:{container['workdir']}",
        f"--volume={node.scratch}/tmp:{node.scratch}/tmp",
        f"--volume={pyz}:{pyz}:ro",
        f"--volume={node.job_dir}/out:{node.job_dir}/out",
        *(f"--volume={mount}" for mount in container["mounts"]),
        *before,
        *container["extra-options"],
        *after,
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_words_of_a_plain_run(node: Node, shell: str) -> None:
    container = section()
    words = node.run(container, "-c", "print()", shell=shell)
    assert words == expected(
        node, container, before=[], after=["--entrypoint=python3", DIGEST, "-c", "print()"]
    )


HOSTILE = st.text(st.sampled_from(list("ab ;'\"`$(){}&|<>\\*?[]!#~%-=/é\t")), min_size=1, max_size=12)
PATHS = HOSTILE.map(lambda text: "/" + text)


@settings(max_examples=40)
@given(
    container=st.builds(
        section,
        python=HOSTILE,
        mounts=st.lists(
            st.builds(lambda a, b, mode: f"{a}:{b}{mode}", PATHS, PATHS, st.sampled_from(["", ":ro"]))
        ),
        user=st.sampled_from([None, "0", "1000:5", "10"]),
        workdir=PATHS.filter(lambda path: '"' not in path),
        network=st.sampled_from(["host", "none", "default"]),
        shm_size=st.sampled_from(["1g", "64m"]),
        cap_add=st.lists(st.sampled_from(["SYS_NICE", "SYS_PTRACE"]), max_size=2),
        extra_options=st.lists(HOSTILE.map(lambda text: "--x=" + text), max_size=2),
    ),
    arguments=st.lists(HOSTILE | st.just("\n") | st.just(""), max_size=3),
    shell=st.sampled_from(SHELLS),
)
def test_no_configured_value_and_no_argument_is_shell(
    container: dict[str, Any], arguments: list[str], shell: str
) -> None:
    with tempfile.TemporaryDirectory() as top:
        node = Node(Path(top))
        words = node.run(container, *arguments, shell=shell)
        user = (container["user"] or "0").partition(":")[0]
        before = [] if user == "0" else [f"--userns=keep-id:uid={user}"]
        after = [f"--entrypoint={container['python']}", DIGEST, *arguments]
        assert words == expected(node, container, before=before, after=after)
        assert sorted(path.name for path in node.job_dir.iterdir()) == ["job.sh"]


@pytest.mark.parametrize(
    ("environ", "passed"),
    [
        ({}, []),
        ({"NCCL_DEBUG": "INFO"}, ["NCCL_DEBUG"]),
        ({"NCCL_DEBUG": "", "SECRET": "x", "http_proxy": "x"}, ["NCCL_DEBUG"]),
        ({"TOKENIZERS": "1", "CUDA_VISIBLE_DEVICES": "0,1"}, ["CUDA_VISIBLE_DEVICES", "TOKENIZERS"]),
        ({"GPUCI_JOB": "1", "SLURM_JOB_GPUS": "0,1"}, []),
    ],
)
def test_the_environment_is_a_positive_list(node: Node, environ: dict[str, str], passed: list[str]) -> None:
    words = node.run(section(env=["NCCL_DEBUG", "TOKENIZERS"]), environ=environ)
    assert [word for word in words if word.startswith("--env")] == [f"--env={name}" for name in passed]


def test_the_keeper_inside_is_told_of_its_job(node: Node) -> None:
    words = node.run(section(), environ={"GPUCI_INSIDE": "1"})
    assert {"--env=GPUCI_INSIDE", "--env=GPUCI_SCRATCH", "--env=SLURMD_NODENAME"} <= set(words)


@pytest.mark.parametrize(
    ("described", "gpus", "devices"),
    [
        pytest.param(True, 8, ["--device=nvidia.com/gpu=all"], id="by CDI where the node describes its GPUs"),
        pytest.param(False, 8, ["--device=/dev/zero", "--device=/dev/null"], id="else device by device"),
        pytest.param(True, 0, [], id="none for tests that need none"),
    ],
)
def test_gpus(node: Node, tmp_path: Path, described: bool, gpus: int, devices: list[str]) -> None:
    if described:
        (tmp_path / "nvidia.yaml").write_text("cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n")
    text = node.text(section(), gpus).replace("/etc/cdi", str(tmp_path))
    text = text.replace("/dev/nvidia*", "/dev/null /dev/shm /dev/zero /dev/nvidia*x")
    words = node.call(text, "container_run").stdout.split("\0")
    assert [word for word in words if word.startswith("--device")] == devices
    assert ("--env=NVIDIA_VISIBLE_DEVICES=all" in words) == bool(gpus and not described)
    assert not [word for word in words if word.startswith("--gpus")]  # podman takes it and does nothing


@pytest.mark.parametrize(
    ("user", "image_says", "mapped"),
    [
        pytest.param(None, "", "", id="root inside is the job's user"),
        pytest.param(None, "0:5", "", id="the image says root"),
        pytest.param(None, "1234:5", "1234", id="the image says a number"),
        pytest.param(None, "trainer", "4321", id="the image says a name"),
        pytest.param("root", "trainer", "", id="configured root"),
        pytest.param("7", "trainer", "7", id="configured number"),
        pytest.param("someone:staff", "", "4321", id="configured name"),
    ],
)
def test_the_user_inside_is_the_jobs_user_outside(
    node: Node, user: str | None, image_says: str, mapped: str
) -> None:
    node.says("podman-image", image_says)
    node.runs("podman-run", 'case " $* " in *"--entrypoint=id "*) echo 4321 ;; esac')
    done = node.call(node.text(section(user=user)), "container_run")
    words = done.stdout.split("\0")
    assert [w for w in words if w.startswith("--userns")] == (
        [f"--userns=keep-id:uid={mapped}"] if mapped else []
    )
    assert [w for w in words if w.startswith("--user=")] == ([f"--user={user}"] if user else [])


def test_a_user_that_the_image_lacks_starts_nothing(node: Node) -> None:
    node.runs(
        "podman-run",
        'case " $* " in *"--entrypoint=id "*) echo "unable to find user x" >&2; exit 126 ;; esac',
    )
    done = node.call(node.text(section(user="x")), "container_run")
    assert (done.returncode, done.stdout) == (126, "")
    assert node.calls_of("--name=gpuci-77") == []


def test_the_hosts_shared_memory_has_no_size(node: Node) -> None:
    words = node.run(section(extra_options=["--ipc=host"]))
    assert not [word for word in words if word.startswith("--shm-size")]


def test_exit_codes_pass_through(node: Node) -> None:
    node.runs("podman-run", "exit 37")
    assert node.call(node.text(section()), "container_run").returncode == 37
