"""pyxis as text: a step of the job, started by srun."""

from typing import Any

import pytest
from tests.unit.execution.containers.nodes import SHELLS, Node, section

HEX = "d" * 64


def pyxis(**settings: Any) -> dict[str, Any]:
    return section(**{"runtime": "pyxis", "image": "/images/train.sqsh", **settings})


@pytest.mark.parametrize("shell", SHELLS)
def test_the_words_of_a_run(node: Node, shell: str) -> None:
    container = pyxis(
        mounts=["/d a:/d'b:ro"],
        env=["A", "B"],
        workdir="/w $s",
        extra_options=["--mem=0"],
        python="my python",
    )
    pyz = node.scratch / "gpuci_node.pyz"
    assert node.run(container, "-c", "p q", gpus=8, shell=shell) == [
        *("--nodes=1", "--ntasks=1", "--overlap", "--cpu-bind=none"),
        "--export=CUDA_VISIBLE_DEVICES,GPUCI_INSIDE,GPUCI_SCRATCH,A,B",
        *("--container-image=/images/train.sqsh", "--container-workdir=/w $s"),
        *("--no-container-mount-home", "--no-container-entrypoint", "--container-writable"),
        *("--no-container-remap-root", "--container-env=A,B", "--mem=0"),
        f"--container-mounts={node.scratch}/tree:/w $s,{node.scratch}/tmp:{node.scratch}/tmp,{pyz}:{pyz}:ro,"
        f"{node.job_dir}/out:{node.job_dir}/out,/d a:/d'b:ro",
        *("my python", "-c", "p q"),
    ]


@pytest.mark.parametrize(
    ("image", "spelled"),
    [
        (f"registry.example/team/train@sha256:{HEX}", f"registry.example#team/train@sha256:{HEX}"),
        (f"localhost:5000/train@sha256:{HEX}", f"localhost:5000#train@sha256:{HEX}"),
        (f"team/train@sha256:{HEX}", f"team/train@sha256:{HEX}"),
        ("/images/a.b/train.sqsh", "/images/a.b/train.sqsh"),
    ],
)
def test_the_image_in_enroots_spelling(node: Node, image: str, spelled: str) -> None:
    assert f"--container-image={spelled}" in node.run(pyxis(image=image))


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"user": "root"}, "--container-remap-root"),
        ({"network": "none"}, "--container-unshare=net"),
    ],
)
def test_other_settings(node: Node, settings: dict[str, Any], word: str) -> None:
    assert word in node.run(pyxis(**settings))
    assert word not in node.run(pyxis())


@pytest.mark.parametrize("function", ["container_pull", "container_remove"])
def test_the_step_is_slurms_own(node: Node, function: str) -> None:
    done = node.call(node.text(pyxis()), function)
    assert (done.returncode, done.stdout, done.stderr, node.calls()) == (0, "", "", [])


@pytest.mark.parametrize(
    ("help_text", "code"), [("  --container-image=IMAGE [pyxis]\n", 0), ("  --mem\n", 1)]
)
def test_the_check_looks_for_the_plugin(node: Node, help_text: str, code: int) -> None:
    node.program("srun", f"#!/bin/sh\necho '{help_text}'\n")
    done = node.call(node.text(pyxis()), "container_check")
    assert done.returncode == code
    assert ("pyxis is not installed" in done.stdout) == bool(code)
