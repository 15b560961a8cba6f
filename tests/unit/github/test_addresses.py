"""Addresses of the API."""

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.errors import ConfigError
from gpuci.github.addresses import (
    checked_repository,
    checked_token,
    checked_url,
    join,
    login_host,
    next_link,
    origin,
)

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda name: name not in (".", "..")
)


@given(st.lists(names, min_size=1, max_size=4))
def test_each_name_is_one_piece_of_the_path(some: list[str]) -> None:
    path = join(*some)
    assert [unquote(piece) for piece in path.split("/")] == some
    assert path.isascii()
    assert not set(path) & set("?#\\ \r\n")


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_lead_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        join("environments", name)


@pytest.mark.parametrize(
    ("header", "target"),
    [
        ("", ""),
        ('<https://h/a?page=2>; rel="next", <https://h/a?page=9>; rel="last"', "https://h/a?page=2"),
        ('<https://h/a?page=1>; rel="prev", <https://h/a?page=3>; rel="next"', "https://h/a?page=3"),
        ("<https://h/a?page=2>; rel=next", "https://h/a?page=2"),
        ('<https://h/a?x=1,2&page=2>; title="t"; rel="next"', "https://h/a?x=1,2&page=2"),
        ('<https://h/a?page=9>; rel="last"', ""),
        ('<https://h/next>; rel="prev"', ""),
        ("nonsense", ""),
    ],
)
def test_next_link(header: str, target: str) -> None:
    assert next_link(header) == target


@pytest.mark.parametrize(
    "url",
    [
        "https://api.github.com",
        "https://ghe.example.org/api/v3/",
        "http://127.0.0.1:8000",
        "http://localhost:1",
        "http://[::1]:2",
    ],
)
def test_an_address_of_the_api(url: str) -> None:
    assert checked_url(url) == url.rstrip("/")


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("", "no address"),
        ("api.github.com", "no address"),
        ("file:///etc/passwd", "no address"),
        ("https://", "no address"),
        ("https://user:secret@api.github.com", "no address"),
        ("https://api.github.com?x=1", "no address"),
        ("https://api.github.com:port", "no address"),
        ("https://[::1", "no address"),
        ("https://api.github.com/\r\nX: y", "no address"),
        ("https://api github.com", "no address"),
        ("http://ghe.example.org/api/v3", "clear text"),
        ("http://localhost.example.org", "clear text"),
        ("http://127.0.0.1.example.org", "clear text"),
    ],
)
def test_an_address_that_is_refused(url: str, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        checked_url(url)


@pytest.mark.parametrize("name", ["octo/shop", "Octo-1/shop.js", "a/_b-.c", "o/..."])
def test_a_repository(name: str) -> None:
    assert checked_repository(name) == name


@pytest.mark.parametrize(
    "name", ["", "octo", "octo/", "/shop", "a/b/c", "a/..", "a/.", "a/b?c", "a/b\n", "ä/b"]
)
def test_no_repository(name: str) -> None:
    with pytest.raises(ConfigError, match="no repository"):
        checked_repository(name)


@pytest.mark.parametrize("token", ["tok\n", "to k", "tok\r\nX-Evil: 1", "tök", "\x00"])
def test_a_token_that_is_none_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checked_token(token)
    assert token not in caught.value.page()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://h/a", "https://h:443/b", True),
        ("http://h/a", "http://h:80", True),
        ("https://h", "https://H", True),
        ("https://h", "http://h", False),
        ("https://h", "https://h:444", False),
        ("https://h", "https://h@evil.example.org", False),
        ("https://h", "https://h.evil.example.org", False),
        ("https://h", "https://h:99999999", False),
    ],
)
def test_origin(one: str, other: str, same: bool) -> None:
    assert (origin(one) == origin(other)) is same


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://api.github.com", "github.com"),
        ("https://git.example.org/api/v3", "git.example.org"),
        ("https://api.octo.ghe.com", "octo.ghe.com"),
        ("http://127.0.0.1:8080", "127.0.0.1"),
    ],
)
def test_the_host_that_one_logs_in_at(url: str, host: str) -> None:
    assert login_host(url) == host
