"""Links to lines at the commit: file names come from tests, and may lead nowhere else."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.reporting.links import Links

LINKS = Links("https://github.com", "org/repo", "a" * 40, "77", "2")
BLOB = f"https://github.com/org/repo/blob/{'a' * 40}/"


@pytest.mark.parametrize(
    ("root", "file", "line", "url"),
    [
        pytest.param(".", "a/test_x.py", 12, f"{BLOB}a/test_x.py#L12", id="a line"),
        pytest.param(".", "a/test_x.py", None, f"{BLOB}a/test_x.py", id="no line"),
        pytest.param(".", "a/test_x.py", 0, f"{BLOB}a/test_x.py", id="line 0"),
        pytest.param("sub/dir", "test_x.py", 1, f"{BLOB}sub/dir/test_x.py#L1", id="below a root"),
        pytest.param("./sub/", "test_x.py", 1, f"{BLOB}sub/test_x.py#L1", id="a root with a slash"),
        pytest.param(".", "a b(1)[x]#é.py", None, f"{BLOB}a%20b%281%29%5Bx%5D%23%C3%A9.py", id="encoded"),
        pytest.param(".", "../../other/repo", 1, "", id="leads out"),
        pytest.param(".", "a/../b.py", 1, "", id="up again"),
        pytest.param(".", "./a.py", 1, "", id="a dot"),
        pytest.param(".", "/etc/passwd", 1, "", id="absolute"),
        pytest.param(".", "https://evil.example/x", 1, "", id="an address"),
        pytest.param(".", "a\\..\\b", 1, "", id="backslashes"),
        pytest.param(".", "a\nb.py", 1, "", id="a line end"),
        pytest.param(".", "", 1, "", id="nothing"),
        pytest.param(".", "a/" * 2048, 1, "", id="a slash at the end"),
        pytest.param(".", "a/" * 2048 + "b", 1, "", id="longer than any path"),
    ],
)
def test_lines(root: str, file: str, line: int | None, url: str) -> None:
    links = Links(LINKS.server, LINKS.repository, LINKS.sha, LINKS.run, root=root)
    assert links.line_url(file, line) == url


@given(st.text(alphabet=st.sampled_from("./\\a%#?&:@[]()<>\"' \n\ud800é\u202e~"), max_size=12))
def test_no_name_leaves_the_commit(file: str) -> None:
    url = LINKS.line_url(file, 3)
    if url:
        parts = urlsplit(url)
        assert (parts.scheme, parts.netloc, parts.query) == ("https", "github.com", "")
        assert unquote(parts.path) == urlsplit(BLOB).path + file
        assert not {".", "..", ""} & set(parts.path.split("/")[1:])
        assert not set(url) & set(" ()[]<>\"'\n\\")


def test_pages_of_the_run_and_the_commit() -> None:
    assert LINKS.run_url == "https://github.com/org/repo/actions/runs/77/attempts/2"
    assert LINKS.commit_url == f"https://github.com/org/repo/commit/{'a' * 40}"
