"""docker as text: the same functions, its own words."""

import json

import pytest
from tests.unit.execution.containers.nodes import DIGEST, SHELLS, Node, section

DOCKER = "docker"
ID = "sha256:" + "b" * 64
NEVER = "an id without a registry is never pulled"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_words_of_a_run(node: Node, shell: str) -> None:
    container = section(
        runtime=DOCKER,
        mounts=["/d a:/d'b:ro", "/x:/y"],
        env=["A"],
        workdir="/w $s",
        extra_options=["--device=/dev/x y"],
    )
    pyz = node.scratch / "gpuci_node.pyz"
    assert node.run(container, "-c", "p", gpus=8, shell=shell, environ={"A": "1"}) == [
        *(
            "run",
            "--rm",
            "--interactive",
            "--pull=never",
            "--log-driver=none",
            "--security-opt=label=disable",
        ),
        *("--name=gpuci-77", "--network=host", "--shm-size=64g", "--cap-add=SYS_NICE", "--workdir=/w $s"),
        *("--user=1001:1001", "--env=HOME=/tmp", "--gpus=all"),
        f"--mount=type=bind,source={node.scratch}/tree,target=/w $s",
        f"--mount=type=bind,source={node.scratch}/tmp,target={node.scratch}/tmp",
        f"--mount=type=bind,source={pyz},target={pyz},readonly",
        f"--mount=type=bind,source={node.job_dir}/out,target={node.job_dir}/out",
        "--mount=type=bind,source=/d a,target=/d'b,readonly",
        "--mount=type=bind,source=/x,target=/y",
        *("--env=A", "--device=/dev/x y", "--entrypoint=python3", DIGEST, "-c", "p"),
    ]


def test_a_user_of_ones_own_and_no_gpus(node: Node) -> None:
    words = node.run(section(runtime=DOCKER, user="5:6"))
    assert [word for word in words if word.startswith(("--user", "--env", "--gpus"))] == ["--user=5:6"]


@pytest.mark.parametrize("code", [0, 1])
def test_a_credential_is_for_one_pull_and_nobody_elses(node: Node, code: int) -> None:
    node.runs("docker-image", "exit 1")
    (node.job_dir / "pull-auth").write_text(json.dumps({"auths": {}}))
    node.program(
        "docker",
        '#!/bin/sh\n[ "$1" != image ] || exit 1\n'
        'cp "$2/config.json" "$GPUCI_SCRATCH/seen"; echo "$1 $3 $4 $5" >"$GPUCI_SCRATCH/words"\n'
        f'stat -c %a "$2" >>"$GPUCI_SCRATCH/words"; exit {code}\n',
    )
    done = node.call(node.text(section(runtime=DOCKER)), "container_pull")
    assert done.returncode == code
    assert (node.scratch / "words").read_text() == f"--config pull --quiet {DIGEST}\n700\n"
    assert (node.scratch / "seen").read_text() == '{"auths": {}}'
    assert sorted(path.name for path in node.scratch.iterdir()) == ["seen", "words"]
    assert not (node.job_dir / "pull-auth").exists()


def test_a_file_is_loaded(node: Node) -> None:
    node.runs("docker-image", "exit 1")
    node.says("docker-load", f"Loaded image ID: sha256:{'c' * 64}\n")
    assert node.call(node.text(section(runtime=DOCKER, image="/x.tar")), "container_pull").returncode == 0
    assert node.calls_of("tag")[0][:3] == ["docker", "tag", f"sha256:{'c' * 64}"]


NO_DAEMON = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock."
CLIENT = "Client:\n Version: 20.10"


@pytest.mark.parametrize(
    ("image", "ends", "says"),
    [
        (ID, {"docker-version": 1}, f"docker's daemon does not answer: {NO_DAEMON}\n"),
        (ID, {"docker-image": 1}, f"the node has no image {ID} (container.image); {NEVER}\n"),
        (ID, {}, ""),
        (DIGEST, {"docker-version": 1}, f"docker's daemon does not answer: {NO_DAEMON}\n"),
    ],
    ids=["no daemon", "no image", "all is there", "no daemon to pull by digest"],
)
@pytest.mark.parametrize("shell", SHELLS)
def test_without_its_daemon_nothing_is_said_of_images(
    node: Node, shell: str, image: str, ends: dict[str, int], says: str
) -> None:
    for call, code in ends.items():
        node.ends(call, code)
    node.says("docker-version", f"{CLIENT}\n{NO_DAEMON}\n")
    done = node.call(node.text(section(runtime=DOCKER, image=image)), "container_check", shell=shell)
    assert (done.returncode, done.stdout) == (1 if says else 0, says)


def test_removal(node: Node) -> None:
    assert node.call(node.text(section(runtime=DOCKER)), "container_remove").returncode == 0
    assert node.calls() == [["docker", "rm", "--force", "gpuci-77"]]
