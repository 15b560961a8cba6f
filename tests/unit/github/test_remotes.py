"""Where a clone comes from."""

import pytest

from gpuci.github.remotes import parse


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://github.com/org/mono.git", ("github.com", "org/mono")),
        ("https://github.com/org/mono", ("github.com", "org/mono")),
        ("https://ada:token@GitHub.com/org/mono/", ("github.com", "org/mono")),
        ("git@github.com:org/mono.git", ("github.com", "org/mono")),
        ("ssh://git@github.com/org/mono.git", ("github.com", "org/mono")),
        ("ssh://git@ssh.github.com:443/org/mono.git", ("github.com", "org/mono")),
        ("https://git.example.com/org/mono", ("git.example.com", "org/mono")),
        ("https://evil.example/github.com/org/mono", ("", "")),
        ("https://github.com@evil.example/org/mono", ("evil.example", "org/mono")),
        ("https://evil.example?x=github.com/org/mono", ("", "")),
        ("/srv/git/mono.git", ("", "")),
        ("../mono", ("", "")),
        ("file:///srv/org/mono", ("", "")),
        ("git@github.com:mono", ("", "")),
        ("", ("", "")),
    ],
)  # fmt: skip
def test_host_and_repository(url: str, expected: tuple[str, str]) -> None:
    assert parse(url) == expected
