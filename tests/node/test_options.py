"""Which options of a project are taken away in a test process, and which are kept."""

from __future__ import annotations

import pytest

from gpuci_node.worker.options import neutralise


@pytest.mark.parametrize(
    ("args", "kept", "taken"),
    [
        (["-x"], [], ["-x"]),
        (["-xvs"], ["-vs"], ["-x"]),
        (["-qqx"], ["-qq"], ["-x"]),
        (["-n", "2"], [], ["-n 2"]),
        (["-n2"], [], ["-n2"]),
        (["-nauto"], [], ["-nauto"]),
        (["-n"], [], ["-n"]),
        (["--numprocesses=auto"], [], ["--numprocesses=auto"]),
        (["--dist", "loadfile", "-v"], ["-v"], ["--dist loadfile"]),
        (["--maxfail=1", "--maxfail", "3"], [], ["--maxfail=1", "--maxfail 3"]),
        (["--lf", "--sw", "--ff", "--nf"], [], ["--lf", "--sw", "--ff", "--nf"]),
        (["--cov-fail-under=90", "--cov=pkg"], ["--cov=pkg"], ["--cov-fail-under=90"]),
        (["--basetemp", "/tmp/x"], [], ["--basetemp /tmp/x"]),
        (["-k", "x and y", "-m", "not slow"], ["-k", "x and y", "-m", "not slow"], []),
        (["-p", "no:cacheprovider", "-rA"], ["-p", "no:cacheprovider", "-rA"], []),
        (["--exact", "-nothing", "--nf-like=1"], ["--exact", "-nothing", "--nf-like=1"], []),
        (["--", "-x"], ["--", "-x"], []),
        (["tests/test_x.py::test_a[-x]"], ["tests/test_x.py::test_a[-x]"], []),
        (["--html", "r.html", "--self-contained-html"], ["--self-contained-html"], ["--html r.html"]),
        (["--junitxml=j.xml", "--json-report", "-v"], ["-v"], ["--junitxml=j.xml", "--json-report"]),
        ([], [], []),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_options(args: list[str], kept: list[str], taken: list[str]) -> None:
    assert neutralise(args) == (kept, taken)
