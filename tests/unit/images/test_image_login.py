"""Who gets which secret, and what a registry's refusals mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.images.answers import code_of, error_of
from gpuci.images.login import (
    Challenge,
    Credential,
    challenge_of,
    credential_for,
    github_registry,
    is_loopback,
)
from gpuci.images.names import repository_of

GITHUB = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_ACTOR": "maria"}
ENTERPRISE = {"GITHUB_SERVER_URL": "https://github.acme.com", "GITHUB_ACTOR": "maria"}
TOKEN = Credential("maria", "ghs_1")

WHO = [
    ("ghcr.io/team/train", "", "", GITHUB, TOKEN),
    ("ghcr.io/team/train", "", "", {}, Credential("x-access-token", "ghs_1")),
    ("ghcr.io/team/train", "", "", ENTERPRISE, None),
    ("containers.github.acme.com/team/train", "", "", ENTERPRISE, TOKEN),
    ("containers.github.acme.com/team/train", "", "", GITHUB, None),
    ("docker.io/team/train", "", "", GITHUB, None),
    ("ghcr.io.example.org/team/train", "", "", GITHUB, None),
    ("ghcr.io/team/train", "bot", "s3cret", GITHUB, Credential("bot", "s3cret")),
    ("quay.io/team/train", "bot", "s3cret", GITHUB, Credential("bot", "s3cret")),
    ("quay.io/team/train", "", "s3cret", GITHUB, Credential("gpuci", "s3cret")),
    ("quay.io/team/train", "bot", "", GITHUB, None),
]


@pytest.mark.parametrize(("name", "user", "password", "environ", "expected"), WHO)
def test_githubs_token_goes_to_githubs_registry_only(
    name: str, user: str, password: str, environ: dict[str, str], expected: Credential | None
) -> None:
    found = credential_for(repository_of(name), user=user, password=password, token="ghs_1", environ=environ)
    assert found == expected


def test_no_secret_at_all() -> None:
    repository = repository_of("ghcr.io/team/train")
    assert credential_for(repository, user="", password="", token="", environ=GITHUB) is None


def test_a_credential_shows_no_password() -> None:
    assert "ghs_1" not in repr(TOKEN)


@pytest.mark.parametrize(
    ("url", "registry"),
    [
        ("", "ghcr.io"),
        ("https://github.com", "ghcr.io"),
        ("https://github.acme.com", "containers.github.acme.com"),
        ("https://acme.ghe.com", "containers.acme.ghe.com"),
    ],
)
def test_the_registry_of_a_github(url: str, registry: str) -> None:
    assert github_registry(url) == registry


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("127.0.0.1:5000", True),
        ("127.0.0.1.example.org", False),
        ("127.0.0.1:x@example.org", False),
        ("ghcr.io", False),
    ],
)
def test_only_this_machine_goes_without_tls(host: str, loopback: bool) -> None:
    assert is_loopback(host) == loopback


CHALLENGES = [
    ('Bearer realm="https://ghcr.io/token",service="ghcr.io",scope="repository:a/b:pull"',
     Challenge("bearer", "https://ghcr.io/token", "ghcr.io")),
    ('bearer Realm="https://a.b/c?d=e"', Challenge("bearer", "https://a.b/c?d=e", "")),
    ('Basic realm="Registry"', Challenge("basic")),
    ("", Challenge("")),
    ("Bearer", Challenge("bearer")),
]  # fmt: skip


@pytest.mark.parametrize(("header", "expected"), CHALLENGES, ids=[header for header, _ in CHALLENGES])
def test_challenges(header: str, expected: Challenge) -> None:
    assert challenge_of(header) == expected


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("ghcr.io/team/train", 403, "`packages: write`"),
        ("containers.github.acme.com/a/b", 401, "`packages: write`"),
        ("quay.io/team/train", 403, "`registry-password`"),
        ("quay.io/team/train", 404, "what the registry lists"),
        ("quay.io/team/train", 413, "biggest RUN"),
        ("quay.io/team/train", 429, "in a while"),
        ("quay.io/team/train", 507, "nobody needs"),
        ("quay.io/team/train", 503, "status page"),
        ("quay.io/team/train", 418, "docs/images.md"),
    ],
)
def test_every_refusal_says_what_to_do(name: str, status: int, words: str) -> None:
    error = error_of(repository_of(name), "write to", status, b'{"errors": [{"code": "DENIED"}]}')
    assert error.what == f"the registry can't write to {name}: {status} DENIED"
    assert words in error.then


CODES = [
    (b'{"errors": [{"code": "DENIED", "message": "x"}]}', "DENIED"),
    (b'{"errors": [{"code": "::error::x"}]}', ""),
    (b'{"errors": []}', ""),
    (b"[]", ""),
    (b"<html>", ""),
    (b"\xff", ""),
    (b"[" * 100_000, ""),
    (b'{"errors": [{"code": 5}]}', ""),
]


@pytest.mark.parametrize(("body", "code"), CODES)
def test_of_an_answer_only_the_code_is_shown(body: bytes, code: str) -> None:
    assert code_of(body) == code


@given(st.binary())
def test_any_answer_can_be_read(body: bytes) -> None:
    assert code_of(body).replace("_", "").isalpha() or code_of(body) == ""
