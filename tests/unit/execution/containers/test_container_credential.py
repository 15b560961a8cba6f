"""What a credential command may print, and that a message never repeats it."""

import base64
import json

import pytest

from gpuci.errors import ConfigError
from gpuci.execution.containers.credential import pull_auth, registry_of

IMAGE = "registry.example:5000/team/train@sha256:" + "a" * 64


def logins(text: str) -> dict[str, str]:
    auths = json.loads(text)["auths"]
    return {name: base64.b64decode(entry["auth"]).decode() for name, entry in auths.items()}


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        (IMAGE, "registry.example:5000"),
        ("localhost/train@sha256:1", "localhost"),
        ("host:80/train@sha256:1", "host:80"),
        ("registry.example/train@sha256:1", "registry.example"),
        ("team/train@sha256:1", "docker.io"),
        ("train@sha256:1", "docker.io"),
    ],
)
def test_the_registry_of_an_image(image: str, registry: str) -> None:
    assert registry_of(image) == registry


@pytest.mark.parametrize(
    ("printed", "login"),
    [
        ("me:secret\n", "me:secret"),
        ("AWS:a:b=c d", "AWS:a:b=c d"),
        ('{"ServerURL": "x", "Username": "me", "Secret": "s:1"}', "me:s:1"),
    ],
)
def test_a_login_becomes_the_registrys(printed: str, login: str) -> None:
    assert logins(pull_auth(IMAGE, printed)) == {"registry.example:5000": login}


def test_dockers_own_registry_has_two_names() -> None:
    assert logins(pull_auth("train@sha256:1", "me:x")) == {
        "docker.io": "me:x",
        "https://index.docker.io/v1/": "me:x",
    }


def test_an_auth_json_is_taken_without_what_else_is_in_it() -> None:
    auths = {"registry.example": {"auth": "eDp5"}}
    assert json.loads(pull_auth(IMAGE, json.dumps({"auths": auths, "credsStore": "x"}))) == {"auths": auths}


@pytest.mark.parametrize(
    "printed",
    [
        "",
        "hunter2",
        "hunter2:",
        ":hunter2",
        "a:hunter2\nmore",
        '{"a": "hunter2"',
        '{"Username": "hunter2"}',
        "{}",
    ],
)
def test_anything_else_is_refused_and_not_shown(printed: str) -> None:
    with pytest.raises(ConfigError) as caught:
        pull_auth(IMAGE, printed)
    assert "hunter2" not in caught.value.page() + repr(caught.value) + repr(caught.value.__context__ or "")
