"""What can't be, by runtime: all of it in one message."""

from typing import Any

import pytest
from tests.unit.execution.containers.nodes import section

from gpuci.errors import ConfigError
from gpuci.execution.containers.render import render

ID = "sha256:" + "b" * 64


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"runtime": "lxc"}, "container.runtime 'lxc' is none of none, podman, docker, pyxis"),
        ({"image": None}, "container.runtime is podman, and container.image names no image"),
        ({"image": None, "build": {"repository": "a.b/c"}}, "container.build is for runs on GitHub"),
        ({"image": "a\nb"}, "container.image holds a line break"),
        ({"python": "a\nb"}, "container.python holds a line break"),
        ({"user": "a\nb"}, "container.user holds a line break"),
        ({"mounts": ["/a:/b", "/a:/b\n"]}, "container.mounts holds a line break"),
        ({"extra_options": ["--x=\n"]}, "container.extra-options holds a line break"),
        ({"env": ["A", "B; rm"]}, "container.env 'B; rm' is no variable's name"),
        ({"env": ["A\n"]}, "container.env 'A\\n' is no variable's name"),
        ({"workdir": "/a,b"}, "container.workdir '/a,b' can't be mounted"),
        ({"workdir": "a"}, "container.workdir 'a' can't be mounted"),
        ({"workdir": "/a\n"}, "container.workdir '/a\\n' can't be mounted"),
        ({"extra_options": ["--device /dev/x"]}, "'--device /dev/x': write the value after `=`"),
        ({"extra_options": ["-v /a:/b"]}, "'-v /a:/b': write the value after `=`"),
        ({"extra_options": ["--env-host"]}, "'--env-host' can't be given: container.env names"),
        ({"extra_options": ["--rm=false"]}, "'--rm' can't be given: the container is removed with its job"),
        ({"runtime": "docker", "extra_options": ["--name=x"]}, "'--name' can't be given"),
        ({"runtime": "docker", "mounts": ['/a":/b']}, "container.mounts: docker takes no quote in a path"),
        ({"runtime": "pyxis", "extra_options": ["--export=ALL"]}, "'--export' can't be given: container.env"),
        ({"runtime": "pyxis", "image": ID}, "a local image's id, which pyxis can't start"),
        ({"runtime": "pyxis", "user": "me"}, "container.user 'me': pyxis knows"),
        (
            {"runtime": "pyxis", "pull_credential_command": ["pass"]},
            "container.pull-credential-command: pyxis takes credentials from enroot's configuration only",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        render(section(**settings), gpus=8, job_dir="/shared/jobs/x")
    assert says in caught.value.what


@pytest.mark.parametrize("job_dir", ["jobs/x", "/a:b", "/a,b", '/a"b', "/a\nb"])
def test_a_job_directory_that_can_not_be_mounted(job_dir: str) -> None:
    with pytest.raises(ConfigError, match="the job directory"):
        render(section(), gpus=8, job_dir=job_dir)


def test_all_problems_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        render(section(image=None, env=["1"], extra_options=["-d"]), gpus=8, job_dir="/x")
    assert caught.value.what.splitlines()[0] == "3 problems:"
    assert len(caught.value.what.splitlines()) == 4


def test_an_image_is_not_needed_without_a_container() -> None:
    assert render(section(runtime="none", image=None), gpus=0, job_dir="/x")
