"""Trees -> manifests: roots, files, links, isolation. Small trees are written for each case."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from gpuci.config.model import DEFAULT_MARKERS, Config, Node
from gpuci.discovery.discover import discover
from gpuci.errors import ConfigError
from gpuci.model import Manifest, Root

TEST = "def test_a(): ...\n"


def write(root: Path, files: Mapping[str, str]) -> Path:
    """Write a tree."""
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    return root


def find(
    root: Path, packages: Sequence[str] = (".",), args: Sequence[str] = (), isolation: str = "auto"
) -> Manifest:
    """The manifest of a tree."""
    node = Node(pytest_args=tuple(args), gpu_isolation=isolation)
    return discover(root, Config(packages=tuple(packages), markers=DEFAULT_MARKERS, node=node), jobs=1)


def roots(manifest: Manifest) -> dict[str, tuple[str | None, tuple[str, ...], tuple[str, ...]]]:
    """Root -> (configuration file, arguments, files)."""
    return {root.path: (root.config_file, root.args, root.files) for root in manifest.roots}


MONOREPO = {
    "pytest.ini": "",
    "tests/test_top.py": TEST,
    "packages/a/pyproject.toml": "[tool.pytest.ini_options]\ntestpaths = ['tests']",
    "packages/a/tests/test_m.py": TEST,
    "packages/a/extra/test_e.py": TEST,
    "packages/b/setup.py": "",
    "packages/b/tests/test_m.py": TEST,
    "packages/c/pyproject.toml": "[project]\nname = 'c'",
    "packages/c/sub/tests/test_m.py": TEST,
}


@pytest.mark.parametrize(
    ("packages", "expected"),
    [
        pytest.param(
            ["packages/a"],
            {"packages/a": ("packages/a/pyproject.toml", (), ("packages/a/tests/test_m.py",))},
            id="the entry is the root: testpaths apply",
        ),
        pytest.param(
            ["packages/a/extra"],
            {"packages/a": ("packages/a/pyproject.toml", ("extra",), ("packages/a/extra/test_e.py",))},
            id="below the root: given as an argument",
        ),
        pytest.param(
            ["packages/a", "packages/a/extra"],
            {
                "packages/a": (
                    "packages/a/pyproject.toml",
                    ("tests", "extra"),
                    ("packages/a/tests/test_m.py", "packages/a/extra/test_e.py"),
                )
            },
            id="beside testpaths: both are named",
        ),
        pytest.param(
            ["packages/b", "packages/c/sub"],
            {
                ".": (
                    "pytest.ini",
                    ("packages/b", "packages/c/sub"),
                    ("packages/b/tests/test_m.py", "packages/c/sub/tests/test_m.py"),
                )
            },
            id="an ini further up beats setup.py: entries join",
        ),
        pytest.param(
            ["packages/*"],
            {
                ".": (
                    "pytest.ini",
                    ("packages/b", "packages/c"),
                    ("packages/b/tests/test_m.py", "packages/c/sub/tests/test_m.py"),
                ),
                "packages/a": ("packages/a/pyproject.toml", (), ("packages/a/tests/test_m.py",)),
            },
            id="a glob",
        ),
        pytest.param(
            [".", "packages/a"],
            {
                ".": (
                    "pytest.ini",
                    (),
                    ("packages/b/tests/test_m.py", "packages/c/sub/tests/test_m.py", "tests/test_top.py"),
                ),
                "packages/a": ("packages/a/pyproject.toml", (), ("packages/a/tests/test_m.py",)),
            },
            id="nested: a file belongs to its longest entry",
        ),
        pytest.param(
            ["tests/test_top.py"],
            {".": ("pytest.ini", ("tests/test_top.py",), ("tests/test_top.py",))},
            id="a file",
        ),
    ],
)
def test_roots_of_a_monorepo(
    tmp_path: Path, packages: list[str], expected: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]]
) -> None:
    """Each entry leads to the nearest directory that configures pytest."""
    assert roots(find(write(tmp_path, MONOREPO), packages)) == expected


@pytest.mark.parametrize(
    ("files", "root"),
    [
        pytest.param({"p/q/pyproject.toml": "[project]\n"}, "p/q", id="a project without pytest's settings"),
        pytest.param({"p/setup.py": ""}, "p", id="setup.py"),
        pytest.param({"p/setup.py": "", "pyproject.toml": ""}, ".", id="pyproject.toml before setup.py"),
        pytest.param({}, ".", id="nothing: ROOT"),
        pytest.param(
            {"p/setup.cfg": "[tool:pytest]\n", "p/q/tox.ini": "[tox]\n"}, "p", id="a tox.ini of others"
        ),
        pytest.param(
            {"p/pytest.ini": "", "p/pyproject.toml": "[tool.pytest]\na = 1"}, "p", id="pytest.ini first"
        ),
    ],
)
def test_where_a_root_is(tmp_path: Path, files: dict[str, str], root: str) -> None:
    """pytest's own precedence, up to ROOT and not above."""
    write(tmp_path, {"pytest.ini": "", **{f"tree/{path}": text for path, text in files.items()}})
    write(tmp_path / "tree", {"p/q/r/test_m.py": TEST})
    assert list(roots(find(tmp_path / "tree", ["p/q/r"]))) == [root]


def test_nothing_that_matches_is_an_error(tmp_path: Path) -> None:
    """A single entry without a match is `verify`'s; none at all is a mistake."""
    write(tmp_path, {"a/test_m.py": TEST})
    assert find(tmp_path, ["a", "gone"]).files == ("a/test_m.py",)
    with pytest.raises(ConfigError, match=r"nothing below .* matches gone, also-\*"):
        find(tmp_path, ["gone", "also-*"])


def test_two_roots_with_equal_file_names(tmp_path: Path) -> None:
    """Node ids are ROOT-relative."""
    write(tmp_path, {"a/pytest.ini": "", "a/test_m.py": TEST, "b/pytest.ini": "", "b/test_m.py": TEST})
    found = find(tmp_path, ["a", "b"])
    assert [(target.nodeid, target.root) for target in found.targets] == [
        ("a/test_m.py::test_a", "a"),
        ("b/test_m.py::test_a", "b"),
    ]


@pytest.mark.parametrize(
    ("files", "args", "expected"),
    [
        pytest.param({"a/test_m.py": TEST, "b/test_n.py": TEST}, ["a"], ["a/test_m.py"], id="a path"),
        pytest.param(
            {"test_m.py": TEST, "test_n.py": TEST}, ["test_m.py::test_a"], ["test_m.py"], id="a node id"
        ),
        pytest.param({"a/test_m.py": TEST, "test_n.py": TEST}, ["--ignore=a"], ["test_n.py"], id="--ignore"),
        pytest.param(
            {"a/test_m.py": TEST, "test_n.py": TEST},
            ["--ignore-glob=*_n.py"],
            ["a/test_m.py"],
            id="--ignore-glob",
        ),
        pytest.param(
            {"m.py": '""">>> 1\n1\n"""', "n.py": "a = 1"},
            ["--doctest-modules"],
            ["m.py"],
            id="doctests of modules",
        ),
        pytest.param(
            {"test_m.txt": ">>> 1\n1\n", "test_n.txt": "no prompt"},
            [],
            ["test_m.txt"],
            id="test*.txt by default",
        ),
        pytest.param(
            {"test_m.txt": ">>> 1\n1\n", "a.md": ">>> 1\n"},
            ["--doctest-glob=*.md"],
            ["a.md"],
            id="--doctest-glob",
        ),
        pytest.param({"helper.py": TEST}, ["helper.py"], ["helper.py"], id="a path needs no pattern"),
        pytest.param({"test_m.py": "def helper(): ..."}, [], [], id="no test in it"),
        pytest.param({"test_m.py": "def test_a(:"}, [], ["test_m.py"], id="no Python: pytest will say so"),
        pytest.param(
            {
                "conftest.py": "def pytest_collect_file(file_path):\n    return file_path.suffix == '.yaml'",
                "a/x.yaml": "",
                "a/y.yml": "",
            },
            [],
            ["a/x.yaml"],
            id="a hook that collects",
        ),
        pytest.param(
            {
                "conftest.py": "from plug import pytest_collect_file",
                "plug.py": "END = '.yaml'\nENDS = [END]\ndef fits(path): return path.suffix in ENDS\n"
                "def pytest_collect_file(file_path):\n    return fits(file_path)",
                "a/x.yaml": "",
                "a/y.yml": "",
            },
            [],
            ["a/x.yaml"],
            id="an imported hook with constants of its module",
        ),
        pytest.param(
            {"conftest.py": "collect_ignore = ['a']\n", "a/test_m.py": TEST, "test_n.py": TEST},
            [],
            ["test_n.py"],
            id="collect_ignore",
        ),
        pytest.param(
            {
                "conftest.py": "collect_ignore = ['test_m.py']\nif x:\n    collect_ignore = []\n",
                "test_m.py": TEST,
            },
            [],
            ["test_m.py"],
            id="collect_ignore by a condition",
        ),
        pytest.param(
            {"conftest.py": "collect_ignore = ['test_m.py']\ncollect_ignore.clear()\n", "test_m.py": TEST},
            [],
            ["test_m.py"],
            id="collect_ignore emptied",
        ),
        pytest.param(
            {
                "conftest.py": "collect_ignore = ['test_m.py', 'x.py']\ncollect_ignore.append(y)\n",
                "test_m.py": TEST,
            },
            [],
            [],
            id="collect_ignore grows",
        ),
        pytest.param(
            {
                "env/pyvenv.cfg": "",
                "env/test_m.py": TEST,
                "bazel-out/test_m.py": TEST,
                "__pycache__/test_m.py": TEST,
                ".git/test_m.py": TEST,
                "conda/conda-meta/history": "",
                "conda/test_m.py": TEST,
            },
            [],
            [],
            id="never",
        ),
        pytest.param(
            {
                "pytest.ini": "[pytest]\nnorecursedirs = x\n",
                "node_modules/test_m.py": TEST,
                "build/test_m.py": TEST,
            },
            [],
            ["build/test_m.py"],
            id="norecursedirs replaces the defaults, not the certain ones",
        ),
        pytest.param(
            {"pytest.ini": "[pytest]\ntestpaths = */tests\n", "a/tests/test_m.py": TEST, "a/test_n.py": TEST},
            [],
            ["a/tests/test_m.py"],
            id="a glob in testpaths",
        ),
        pytest.param(
            {"pytest.ini": "[pytest]\ntestpaths = gone\n", "test_m.py": TEST},
            [],
            ["test_m.py"],
            id="testpaths that don't exist",
        ),
        pytest.param(
            {"pytest.ini": "[pytest]\ntestpaths = ../out\n", "test_m.py": TEST},
            [],
            ["test_m.py"],
            id="testpaths that leave",
        ),
    ],
)
def test_which_files_are_planned(
    tmp_path: Path, files: dict[str, str], args: list[str], expected: list[str]
) -> None:
    """By pytest's rules; in doubt the file is planned."""
    write(tmp_path / "root", files)
    assert list(find(tmp_path / "root", args=args).files) == expected


def test_a_hook_that_makes_items_makes_files_opaque(tmp_path: Path) -> None:
    """From its directory on, through pytest_plugins too."""
    hook = "def pytest_pycollect_makeitem(collector, name, obj): ..."
    write(tmp_path, {"a/conftest.py": hook, "a/b/test_m.py": TEST, "c/test_n.py": TEST})
    assert find(tmp_path).roots[0].opaque == {
        "a/b/test_m.py": "a/conftest.py defines pytest_pycollect_makeitem"
    }
    write(tmp_path, {"conftest.py": "pytest_plugins = 'hooks'", "hooks.py": hook})
    assert find(tmp_path).roots[0].opaque["c/test_n.py"] == "conftest.py defines pytest_pycollect_makeitem"


def test_a_file_that_is_no_python_is_an_error_and_planned(tmp_path: Path) -> None:
    """With file and line; pytest reports it on the node."""
    found = find(write(tmp_path, {"test_m.py": "a = 1\ndef test_a(:\n"}))
    assert [(error.path, error.line) for error in found.errors] == [("test_m.py", 2)]
    assert found.roots[0].opaque == {"test_m.py": "line 2: invalid syntax"}


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A tree with links of every kind."""
    root = write(tmp_path / "root", {"real/test_m.py": TEST, "real/deep/test_n.py": TEST, "pytest.ini": ""})
    write(tmp_path / "outside", {"test_secret.py": TEST})
    (root / "test_link.py").symlink_to("real/test_m.py")
    (root / "folder").symlink_to("real/deep")
    (root / "test_dangling.py").symlink_to("nowhere.py")
    (root / "test_out.py").symlink_to(tmp_path / "outside" / "test_secret.py")
    (root / "out").symlink_to(tmp_path / "outside")
    os.mkfifo(root / "test_pipe.py")
    return root


INSIDE = {"real/test_m.py", "real/deep/test_n.py", "test_link.py", "folder/test_n.py"}


def test_links_inside_are_followed_those_that_leave_are_not(linked: Path) -> None:
    """As pytest does, but for what lies outside ROOT."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--collect-only",
        "-q",
        "--import-mode=importlib",
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    output = subprocess.run(
        command, cwd=linked, env=environment, capture_output=True, text=True, check=True
    ).stdout
    collected = {line.partition("::")[0] for line in output.splitlines() if "::" in line}
    assert collected == INSIDE | {"test_out.py", "out/test_secret.py"}
    assert set(find(linked).files) == INSIDE


def test_loops_of_links_end(linked: Path) -> None:
    """A link to a directory above it, and two that lead to each other."""
    (linked / "real" / "loop").symlink_to("..")
    (linked / "real" / "self").symlink_to(".")
    write(linked, {"x/test_x.py": TEST, "y/test_y.py": TEST})
    (linked / "x" / "to_y").symlink_to("../y")
    (linked / "y" / "to_x").symlink_to("../x")
    files = find(linked).files
    assert set(files) >= INSIDE | {"x/test_x.py", "x/to_y/test_y.py", "y/test_y.py", "y/to_x/test_x.py"}
    assert len(files) == len(set(files)) < 20


def test_an_entry_that_is_a_link_out_matches_nothing(linked: Path) -> None:
    """Neither by name nor by glob."""
    with pytest.raises(ConfigError):
        find(linked, ["out", "ou*"])


DEVICE = """import torch
def pytest_configure(config):
    torch.cuda.set_device(int(config.workerinput["workerid"][2:]))
"""


@pytest.mark.parametrize(
    ("setting", "conftest", "isolation", "because"),
    [
        ("auto", DEVICE, "worker-index", "tests/conftest.py:3 puts each worker on a device of its own"),
        ("auto", "import torch", "mask", "no conftest.py puts workers on devices"),
        ("mask", DEVICE, "mask", "node.gpu-isolation"),
        ("worker-index", "", "worker-index", "node.gpu-isolation"),
    ],
)
def test_gpu_isolation(tmp_path: Path, setting: str, conftest: str, isolation: str, because: str) -> None:
    """What the root's conftests do decides, and is said."""
    write(tmp_path, {"tests/conftest.py": conftest, "tests/test_m.py": TEST})
    root: Root = find(tmp_path, isolation=setting).roots[0]
    assert (root.gpu_isolation, root.because) == (isolation, because)


def test_workers_and_cache_change_nothing(tmp_path: Path) -> None:
    """The same manifest from one process, from two, and from the cache."""
    helper = {"util.py": "import pytest\ngpu = pytest.mark.gpu\n"}
    files = {
        f"t{n % 7}/test_{n}.py": f"from util import gpu\n@gpu\ndef test_{n}(): ...\n" for n in range(300)
    }
    root = write(tmp_path / "root", {**helper, **files})
    config = Config(markers=DEFAULT_MARKERS)
    alone = discover(root, config, jobs=1)
    cache = tmp_path / "cache"
    assert len(alone.targets) == 300
    assert all(target.kind == "gpu" for target in alone.targets)
    assert discover(root, config, jobs=2) == alone
    assert discover(root, config, jobs=2, cache_dir=cache) == alone
    (root / "t0" / "test_0.py").write_text("def test_new(): ...\n")
    changed = discover(root, config, jobs=2, cache_dir=cache)
    assert {target.nodeid for target in changed.targets} - {target.nodeid for target in alone.targets} == {
        "t0/test_0.py::test_new"
    }


@pytest.mark.parametrize(
    "testpaths", ["a**b", "/t*", "../t*", "**", "[", "x" * 5000, "*" * 300], ids=lambda text: str(text)[:5]
)
def test_testpaths_that_are_no_path_hide_nothing(tmp_path: Path, testpaths: str) -> None:
    """As if there were none: no traceback, and the tests are found."""
    write(tmp_path, {"pytest.ini": f"[pytest]\ntestpaths = {testpaths}\n", "tests/test_m.py": TEST})
    assert find(tmp_path).files == ("tests/test_m.py",)


def test_a_plugin_that_no_file_can_be_is_nothing(tmp_path: Path) -> None:
    """A null byte below a package of the tree."""
    write(
        tmp_path, {"conftest.py": "pytest_plugins = ['p.a\\0b.c']\n", "p/__init__.py": "", "test_m.py": TEST}
    )
    assert find(tmp_path).files == ("test_m.py",)


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A directory that is removed at once: pytest's own removal calls itself for each directory."""
    (tmp_path / "deep").mkdir()
    yield tmp_path / "deep"
    subprocess.run(["rm", "-rf", str(tmp_path / "deep")], check=True)


def nest(root: Path, name: str, depth: int) -> None:
    """Directories in one another, deeper than a path can name, and a test file in the last one."""
    here = os.open(root, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("test_m.py", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)


def test_a_deep_tree_is_walked(deep: Path) -> None:
    """Deeper than Python calls functions."""
    nest(deep, "a", 1500)
    deepest = os.path.join(*["a"] * 1500, "test_m.py")
    (deep / deepest).write_text(TEST)
    assert find(deep).files == (deepest,)


def test_a_directory_that_cannot_be_read_is_an_error(deep: Path) -> None:
    """Here one whose path is too long; without rights to it, it is the same. pytest fails there too."""
    nest(deep, "a" * 200, 25)
    with pytest.raises(ConfigError, match="can't be read: File name too long"):
        find(deep)


@pytest.mark.parametrize(
    ("packages", "expected"),
    [
        (["tests", "tests/check.py"], ["tests/test_m.py", "tests/check.py"]),
        (["tests", "tests/build"], ["tests/test_m.py", "tests/build/test_b.py"]),
        (["tests", "tests/test_m.py"], ["tests/test_m.py"]),
        (["tests/test_m.py", "tests"], ["tests/test_m.py"]),
    ],
    ids=["a file by name", "a directory that is not recursed into", "twice", "twice, the file first"],
)
def test_an_entry_below_another_one_counts(tmp_path: Path, packages: list[str], expected: list[str]) -> None:
    """The guest list names it, so it is planned; nothing is planned twice."""
    write(
        tmp_path,
        {"tests/test_m.py": TEST, "tests/check.py": TEST, "tests/build/test_b.py": TEST, "tests/c.py": TEST},
    )
    manifest = find(tmp_path, packages)
    assert manifest.files == tuple(expected)
    assert len({target.nodeid for target in manifest.targets}) == len(manifest.targets) == len(expected)
