"""find-changed against a GitHub that serves a private repository over HTTP."""

from __future__ import annotations

import hashlib
import html
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.fakes.github.endpoints import pull_document
from tests.fakes.github.server import Server
from tests.fakes.github.state import Pull, Repository, State, Token

from gpuci.changes import read, toml
from gpuci.config import document as config_document
from gpuci.errors import ConfigError
from gpuci.github.step import Step
from gpuci.schemas import load_schema
from gpuci.steps import find_changed

ENTRY = Path(find_changed.__file__).resolve().parents[2] / "find_changed.py"
PERMISSIONS = {"contents": "read", "pull-requests": "read"}
CONFIG = "packages: [packages/*]\nchanges:\n  ignore: ['docs/**', '*.md']\n"


def package(name: str, *needs: str) -> dict[str, str]:
    lines = f'[project]\nname = "{name}"\ndependencies = {json.dumps(list(needs))}\n'
    return {
        f"packages/{name}/pyproject.toml": lines,
        f"packages/{name}/tests/test_{name}.py": "def test(): pass\n",
    }


TREE = {
    ".github/gpuci.yml": CONFIG,
    "README.md": "x",
    **package("core"),
    **package("nets", "core"),
    **package("alone"),
}
ALL = ["packages/alone", "packages/core", "packages/nets"]
# On Python 3.10, which reads no TOML, nobody's needs are known, and every package is due.
NETS = ["packages/nets"] if toml.READABLE else ALL
NETS_AND_CORE = ["packages/core", "packages/nets"] if toml.READABLE else ALL


@dataclass
class World:
    """A repository with a history, and the files of a step."""

    directory: Path
    git_directory: Path
    server: Server
    repository: Repository
    inputs: dict[str, str] = field(default_factory=dict)

    def git(self, *args: str) -> str:
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.directory), "GIT_CONFIG_NOSYSTEM": "1"}
        who = ("-c", "user.name=u", "-c", "user.email=u@x", "-c", "init.defaultBranch=main")
        done = subprocess.run(
            ["git", *who, *args],
            cwd=self.git_directory,
            env=environ,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str | None]) -> str:
        """Write files (None: remove) and commit; returns the id."""
        for name, text in files.items():
            path = self.git_directory / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")
        return self.git("rev-parse", "HEAD")

    def environ(self, event: str, at: str = "refs/heads/main", **payload: Any) -> dict[str, str]:
        """The environment of a step for an event at the commit that is checked out."""
        whole = {
            "sender": {"login": "ada", "type": "User"},
            "repository": {"full_name": "org/mono", "default_branch": "main"},
            **payload,
        }
        path = self.directory / "event.json"
        path.write_text(json.dumps(whole))
        for file in ("output", "summary"):
            (self.directory / file).write_text("")
        return {
            "PATH": os.environ["PATH"],
            "GITHUB_API_URL": self.server.url,
            "GITHUB_SERVER_URL": self.server.url,
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_REPOSITORY": "org/mono",
            "GITHUB_REF": at,
            "GITHUB_SHA": self.git("rev-parse", "HEAD"),
            "GITHUB_RUN_ID": "77",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_OUTPUT": str(self.directory / "output"),
            "GITHUB_STEP_SUMMARY": str(self.directory / "summary"),
            "RUNNER_TEMP": str(self.directory),
            **{f"GPUCI_{key}": value for key, value in self.inputs.items()},
        }

    def pull(self, head: str, base: str) -> dict[str, str]:
        """An event of pull request 12."""
        self.repository.pulls[12] = Pull(12, head, base, head_repository="eve/mono", author="eve")
        document = pull_document("org/mono", self.repository.pulls[12], {})
        return self.environ(
            "pull_request_target", action="labeled", label={"name": "x"}, pull_request=document
        )

    def push(self, before: str, after: str, ref: str = "refs/heads/main") -> dict[str, str]:
        return self.environ("push", ref, ref=ref, before=before, after=after)

    def run(self, environ: dict[str, str], token: str = "job") -> dict[str, Any]:
        """The outputs; lists, mappings and truth as values, changes.json beside them."""
        assert find_changed.run(Step("find-changed", environ, {"GPUCI_TOKEN": token})) == 0
        lines = (self.directory / "output").read_text().splitlines()
        outputs: dict[str, Any] = {
            line.partition("<<")[0]: value for line, value in pairwise(lines) if "<<gpuci-" in line
        }
        for name in ("configuration", "everything", "packages", "affected", "trusted"):
            outputs[name] = json.loads(outputs[name])
        document = json.loads(Path(outputs["changes"]).read_bytes())
        jsonschema.validate(document, load_schema("changes"))
        digest = hashlib.sha256(Path(outputs["changes"]).read_bytes()).hexdigest()
        assert outputs["changes-digest"] == f"sha256:{digest}"
        return {**outputs, "document": document}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    directory = tmp_path / "git"
    directory.mkdir()
    repository = Repository("org/mono", git=str(directory / ".git"))
    state = State([repository], {"job": Token(dict(PERMISSIONS)), "weak": Token({"issues": "read"})})
    with Server(state) as server:
        made = World(tmp_path, directory, server, repository)
        made.git("init", "-q")
        yield made


def test_a_pull_request_is_compared_with_where_it_left_its_base(world: World) -> None:
    root = world.commit(TREE)
    world.git("checkout", "-q", "-b", "topic")
    world.commit({"packages/nets/src.py": "1"})
    head = world.commit({"packages/nets/src.py": "2", "docs/x.md": "x"})
    world.git("checkout", "-q", "main")
    for number in range(5):
        tip = world.commit({"packages/alone/x.py": str(number)})
    outputs = world.run(world.pull(head, tip))
    assert (outputs["sha"], outputs["base"], outputs["pull-request"]) == (head, root, "12")
    assert (outputs["subject"], outputs["trusted"]) == ("pr-12", False)
    assert (outputs["packages"], outputs["affected"]) == (NETS, True)
    assert outputs["everything"] != toml.READABLE
    assert [one["path"] for one in outputs["document"]["changed"]] == ["docs/x.md", "packages/nets/src.py"]
    assert outputs["document"]["ignored"] == ["docs/x.md"]
    assert (outputs["document"]["base"], outputs["document"]["head"]) == (root, head)
    assert "packages/nets" in (world.directory / "summary").read_text()


@pytest.mark.parametrize(("name", "prefix"), [("", "gpuci-"), ("docs", "gpuci.docs.")])
def test_what_is_left_begins_with_the_name_of_the_use(world: World, name: str, prefix: str) -> None:
    world.inputs["NAME"] = name
    head = world.commit(TREE)
    assert world.run(world.pull(head, head))["prefix"] == prefix


def test_a_use_without_a_proper_name_ends_before_anything_is_fetched(world: World) -> None:
    world.inputs["NAME"] = "Docs/2"
    head = world.commit(TREE)
    with pytest.raises(ConfigError, match="the input name is 'Docs/2'"):
        world.run(world.pull(head, head))
    assert world.server.requests == []


def test_the_configuration_of_a_pull_request_is_the_default_branch_s(world: World) -> None:
    """What it proposes for itself does not count, and is a reason to run everything."""
    base = world.commit(TREE)
    world.git("checkout", "-q", "-b", "topic")
    head = world.commit({".github/gpuci.yml": "packages: [elsewhere]\nchanges: {ignore: ['**']}\n"})
    outputs = world.run(world.pull(head, base))
    assert config_document.from_document(outputs["configuration"]).packages == ("packages/*",)
    assert (outputs["everything"], outputs["packages"]) == (True, ALL)
    assert outputs["document"]["because"] == [".github/gpuci.yml is the configuration"]
    assert outputs["document"]["proposed"] == [".github/gpuci.yml"]


def test_a_change_of_the_configuration_counts_whatever_it_ignores(world: World) -> None:
    base = world.commit({**TREE, ".github/gpuci.yml": "packages: [packages/*]\nchanges: {ignore: ['**']}\n"})
    world.git("checkout", "-q", "-b", "topic")
    head = world.commit({".github/gpuci.yml": "packages: 7\n"})
    outputs = world.run(world.pull(head, base))
    assert (outputs["affected"], outputs["everything"]) == (True, True)
    assert outputs["document"]["proposed"] == [".github/gpuci.yml"]
    world.git("checkout", "-q", "main")
    after = world.commit({".github/gpuci.yml": CONFIG})
    assert world.run(world.push(base, after))["document"]["proposed"] == []  # its own counts


def test_a_configuration_that_no_variable_can_hold_is_refused(world: World) -> None:
    modes = "".join(f"    - packages/core/test_{number:05}.py\n" for number in range(2000))
    head = world.commit({**TREE, ".github/gpuci.yml": f"{CONFIG}modes:\n  serial:\n{modes}"})
    with pytest.raises(ConfigError, match="too big to travel between jobs"):
        world.run(world.pull(head, head))


@pytest.mark.parametrize(
    ("slurm", "given", "told"),
    [
        ("login: l", "", "slurm.known-hosts is not set"),
        ("login: l, known-hosts: nowhere", "", "slurm.known-hosts names 'nowhere', no file there"),
        ("login: l, known-hosts: nowhere", "l ssh-ed25519 A", ""),
        ("login: l, known-hosts: kh", "", ""),
        ("login: l, known-hosts: /etc/ssh/ssh_known_hosts", "", ""),
        ("login: l, known-hosts: ~/.ssh/known_hosts", "", ""),
        ("known-hosts: nowhere", "", ""),
    ],
)
def test_a_run_without_any_host_key_is_warned_of_at_once(
    world: World, capsys: pytest.CaptureFixture[str], slurm: str, given: str, told: str
) -> None:
    world.inputs["SSH_KNOWN_HOSTS"] = given
    text = f"{CONFIG}slurm: {{{slurm}}}\n"
    head = world.commit({**TREE, ".github/gpuci.yml": text, "kh": "l ssh-ed25519 A\n"})
    environ = {**world.pull(head, head), "GITHUB_ACTIONS": "true"}
    world.run(environ)
    line = f"no host key of the login node is known: {told} (as of main ({head[:12]}))"
    for shown in (capsys.readouterr().out, (world.directory / "summary").read_text()):
        assert (line in html.unescape(shown)) == bool(told)
        assert ("no host key" in shown) == bool(told)


def test_a_pull_request_without_a_test_that_it_can_break(world: World) -> None:
    base = world.commit(TREE)
    world.git("checkout", "-q", "-b", "topic")
    head = world.commit({"README.md": "y"})
    outputs = world.run(world.pull(head, base))
    assert (outputs["affected"], outputs["everything"], outputs["packages"]) == (False, False, [])
    assert "No test can be affected" in (world.directory / "summary").read_text()


def test_a_dispatch_asks_for_its_pull_request(world: World) -> None:
    base = world.commit(TREE)
    world.git("checkout", "-q", "-b", "topic")
    head = world.commit({"packages/core/x.py": "1"})
    world.git("checkout", "-q", "main")
    world.repository.pulls[12] = Pull(12, head, base, head_repository="eve/mono", author="eve")
    world.inputs = {"PULL_REQUEST": "12", "SHA": head}
    outputs = world.run(world.environ("workflow_dispatch"))
    assert (outputs["sha"], outputs["base"], outputs["packages"]) == (head, base, NETS_AND_CORE)
    api = [seen for seen in world.server.requests if "/repos/" in seen.path]
    assert [(seen.method, seen.path, seen.status) for seen in api] == [
        ("GET", "/repos/org/mono/pulls/12", 200)
    ]


def test_a_push_to_the_default_branch_is_compared_with_the_commit_before(world: World) -> None:
    before = world.commit(TREE)
    after = world.commit({"packages/core/x.py": "1"})
    outputs = world.run(world.push(before, after))
    assert (outputs["base"], outputs["packages"], outputs["trusted"]) == (before, NETS_AND_CORE, True)
    assert (outputs["subject"], outputs["pull-request"]) == ("branch-main", "")


def test_a_push_to_another_branch_answers_for_all_of_it(world: World) -> None:
    root = world.commit(TREE)
    world.git("checkout", "-q", "-b", "mirror")
    before = world.commit({"packages/core/x.py": "1", ".github/gpuci.yml": CONFIG.replace("docs", "doc")})
    after = world.commit({"README.md": "y", ".github/gpuci.yml": CONFIG})
    outputs = world.run(world.push(before, after, "refs/heads/mirror"))
    assert (outputs["base"], outputs["packages"]) == (root, NETS_AND_CORE)


@pytest.mark.parametrize("before", ["0" * 40, "f" * 40], ids=["new branch", "gone"])
def test_without_the_commit_before_everything_is_due(world: World, before: str) -> None:
    world.commit(TREE)
    after = world.commit({"packages/core/x.py": "1"})
    outputs = world.run(world.push(before, after))
    assert (outputs["base"], outputs["everything"], outputs["packages"]) == ("", True, ALL)
    assert len(outputs["document"]["because"]) == 1
    assert ("has no " + "f" * 40 in outputs["document"]["because"][0]) == (before == "f" * 40)
    assert "Every test is due" in (world.directory / "summary").read_text()


@pytest.mark.parametrize("event", ["schedule", "workflow_dispatch"])
def test_other_events_test_everything(world: World, event: str) -> None:
    sha = world.commit(TREE)
    outputs = world.run(world.environ(event))
    assert (outputs["sha"], outputs["everything"], outputs["affected"]) == (sha, True, True)
    assert outputs["document"]["because"] == [f"a run by {event} tests everything"]


def test_a_merge_group_is_compared_with_what_it_is_merged_on(world: World) -> None:
    base = world.commit(TREE)
    head = world.commit({"packages/nets/x.py": "1"})
    group = {"head_sha": head, "base_sha": base, "head_ref": "refs/heads/gh-readonly-queue/main/pr-1"}
    outputs = world.run(world.environ("merge_group", merge_group=group))
    assert (outputs["base"], outputs["packages"]) == (base, NETS)


def test_a_pull_request_into_another_branch_answers_for_all_of_it(world: World) -> None:
    """Its status stays with the commit when another branch is chosen later."""
    root = world.commit(TREE)
    world.git("checkout", "-q", "-b", "untested")
    base = world.commit({"packages/nets/x.py": "1"})
    world.git("checkout", "-q", "-b", "topic")
    head = world.commit({"README.md": "y"})
    outputs = world.run(world.pull(head, base))
    assert (outputs["base"], outputs["packages"], outputs["affected"]) == (root, NETS, True)


def test_what_a_branch_took_over_from_its_base_is_not_its_change(world: World) -> None:
    """Also if the payload's base is from before: GitHub has it as of the last push."""
    stale = world.commit(TREE)
    world.git("checkout", "-q", "-b", "topic")
    world.commit({"packages/nets/x.py": "1"})
    world.git("checkout", "-q", "main")
    tip = world.commit({"packages/core/x.py": "1"})
    world.git("checkout", "-q", "topic")
    world.git("merge", "-q", "main")
    outputs = world.run(world.pull(world.git("rev-parse", "HEAD"), stale))
    assert (outputs["base"], outputs["packages"]) == (tip, NETS)


HOSTILE: dict[str, dict[str, str | None]] = {
    "tests go": dict.fromkeys(package("alone")),
    "a package goes elsewhere": {
        **dict.fromkeys(package("alone")),
        "old/alone/pyproject.toml": "[project]\nname='alone'",
    },
    "code in a package of its own": {
        "packages/alone/src/torch/pyproject.toml": "[project]\nname='hidden'\n",
        "packages/alone/src/torch/__init__.py": "",
    },
    "tests below a name of documents": {"packages/alone/x.md/test_x.py": "x"},
    "a directory around becomes a package": {
        "packages/pyproject.toml": "[project]\nname='hidden'\n",
        "packages/conftest.py": "",
    },
    "a plugin of pytest": {
        "tools/pyproject.toml": "[project]\nname='t'\n[project.entry-points.pytest11]\nx='x'"
    },
    "a package of a name that others need": {"evil/pyproject.toml": "[project]\nname='Torch'\n"},
    "loaded by every Python": {
        "tools/pyproject.toml": "[project]\nname='t'\n",
        "tools/src/sitecustomize.py": "",
    },
    "its own configuration": {".github/gpuci.yml": "changes: {ignore: ['**']}\n"},
    "broken TOML": {"packages/alone/pyproject.toml": "[project\n"},
    "what no text can name": {"packages/alone/\udcff\udc80\n\t\x1b]8;;x\x07.py": "x"},
}


@pytest.mark.parametrize("files", HOSTILE.values(), ids=HOSTILE)
def test_no_pull_request_hides_what_it_changes(world: World, files: dict[str, str | None]) -> None:
    """With `affected` false the check would be green without an approval, and without a test."""
    nets = package("nets", "core", "torch")
    base = world.commit({**TREE, **nets})
    world.git("checkout", "-q", "-b", "topic")
    outputs = world.run(world.pull(world.commit(files), base))
    assert outputs["affected"]
    assert outputs["packages"] or outputs["everything"]


Links = dict[str, str]
_ENTRY_POINTS = "name='ep'\ndynamic=['entry-points']\n[tool.setuptools.dynamic]\nentry-points.file='ep.txt'\n"
# What is there already, links among it, and what the pull request changes.
PREPARED: dict[str, tuple[dict[str, str | None], Links, dict[str, str | None]]] = {
    "what is ignored is a test's by a link": (
        {"docs/hooks.py": "1"},
        {"packages/nets/tests/conftest.py": "../../../docs/hooks.py"},
        {"docs/hooks.py": "2"},
    ),
    "the same of a directory": (
        {"docs/data/a.json": "1"},
        {"packages/nets/tests/data": "../../../docs/data"},
        {"docs/data/a.json": "2"},
    ),
    "a link to a link that is ignored": (
        {"docs/data/a.json": "1", "docs/more/x": "x"},
        {"docs/more/data": "../data", "packages/nets/tests/more": "../../../docs/more"},
        {"docs/data/a.json": "2"},
    ),
    "a plugin by a file of its own": (
        {"tools/pyproject.toml": f"[project]\n{_ENTRY_POINTS}", "tools/ep.txt": "[console_scripts]\n"},
        {},
        {"tools/ep.txt": "[pytest11]\nep = ep\n"},
    ),
    "a link to all": ({"docs/a.py": "1"}, {"packages/nets/all": "../.."}, {"docs/a.py": "2"}),
}


@pytest.mark.parametrize(("there", "links", "files"), PREPARED.values(), ids=PREPARED)
def test_what_an_earlier_change_prepared_hides_nothing(
    world: World, there: dict[str, str | None], links: Links, files: dict[str, str | None]
) -> None:
    """Two harmless changes, one after the other."""
    for path, target in links.items():
        place = world.git_directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
    base = world.commit({**TREE, **there})
    world.git("checkout", "-q", "-b", "topic")
    outputs = world.run(world.pull(world.commit(files), base))
    assert "packages/nets" in outputs["packages"]


def test_project_files_that_fill_the_memory_are_not_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred files of 100 MB are a few kilobytes of a push."""
    monkeypatch.setattr(read, "MOST_BYTES", 1_000_000)
    base = world.commit(TREE)
    world.git("checkout", "-q", "-b", "topic")
    head = world.commit({f"x{number}/pyproject.toml": f"#{number}" + " " * 150_000 for number in range(8)})
    with pytest.raises(ConfigError, match="more than 1,000,000 bytes"):
        world.run(world.pull(head, base))


def test_a_name_that_is_there_twice_hides_nothing(world: World) -> None:
    """Whoever reads the tree would see the one or the other."""
    base = world.commit({**TREE, "a.py": "good"})
    (world.directory / "evil").write_text("evil")
    evil = world.git("hash-object", "-w", str(world.directory / "evil"))
    raw = b"100644 a.py\0" + bytes.fromhex(evil)
    for line in ("a.py", "packages", ".github"):
        mode = b"100644 " if line == "a.py" else b"40000 "
        raw += mode + line.encode() + b"\0" + bytes.fromhex(world.git("rev-parse", f"HEAD:{line}"))
    (world.directory / "tree").write_bytes(raw)
    made = world.git("hash-object", "-t", "tree", "-w", "--literally", str(world.directory / "tree"))
    odd = world.git("commit-tree", made, "-p", base, "-m", "x")
    world.git("update-ref", "refs/heads/odd", odd)
    with pytest.raises(ConfigError, match="which no checkout can have"):
        world.run(world.pull(odd, base))
    outputs = world.run(world.push(odd, base))
    assert outputs["everything"]
    assert "which no checkout can have" in outputs["document"]["because"][0]


def test_unrelated_histories_mean_everything(world: World) -> None:
    base = world.commit(TREE)
    world.git("checkout", "-q", "--orphan", "topic")
    head = world.commit({"packages/nets/x.py": "1"})
    outputs = world.run(world.pull(head, base))
    assert outputs["everything"]
    assert "no history in common" in outputs["document"]["because"][0]


def test_branches_merged_crosswise_mean_everything(world: World) -> None:
    world.commit(TREE)
    world.git("checkout", "-q", "-b", "topic")
    one = world.commit({"packages/nets/x.py": "1"})
    world.git("checkout", "-q", "main")
    other = world.commit({"packages/core/x.py": "1"})
    world.git("merge", "-q", one)
    tip = world.git("rev-parse", "HEAD")
    world.git("checkout", "-q", "topic")
    world.git("merge", "-q", other)
    outputs = world.run(world.pull(world.git("rev-parse", "HEAD"), tip))
    assert outputs["everything"]
    assert "2 common ancestors" in outputs["document"]["because"][0]


def test_a_head_that_its_base_has_already_means_everything(world: World) -> None:
    head = world.commit(TREE)
    outputs = world.run(world.pull(head, world.commit({"README.md": "y"})))
    assert outputs["everything"]
    assert "already" in outputs["document"]["because"][0]


def test_an_old_branch_is_deepened_to(world: World) -> None:
    """More commits than the first piece of history has."""
    root = world.commit(TREE)
    world.git("checkout", "-q", "-b", "topic")
    head = world.commit({"packages/nets/x.py": "1"})
    world.git("checkout", "-q", "main")
    tree = world.git("rev-parse", "HEAD^{tree}")
    tip = world.git("rev-parse", "HEAD")
    for number in range(80):
        tip = world.git("commit-tree", tree, "-p", tip, "-m", str(number))
    world.git("update-ref", "refs/heads/main", tip)
    outputs = world.run(world.pull(head, tip))
    assert (outputs["base"], outputs["packages"]) == (root, NETS)


def test_root_can_be_a_directory_of_the_repository(world: World) -> None:
    base = world.commit({f"sub/{path}": text for path, text in TREE.items()})
    world.git("checkout", "-q", "-b", "topic")
    head = world.commit({"other/x": "1", "sub/packages/nets/x.py": "1"})
    world.inputs = {"ROOT": "./sub/"}
    outputs = world.run(world.pull(head, base))
    assert outputs["packages"] == NETS
    assert [one["path"] for one in outputs["document"]["changed"]] == ["packages/nets/x.py"]


def test_a_root_that_the_base_has_not_means_everything(world: World) -> None:
    before = world.commit({"x": "1"})
    after = world.commit({f"sub/{path}": text for path, text in TREE.items()})
    world.inputs = {"ROOT": "sub"}
    assert world.run(world.push(before, after))["everything"]


def test_files_of_the_configuration_are_named_by_an_input(world: World) -> None:
    more = {
        "ci/over.yml": "modes: ci/modes.yml\nlabel: {name: go}\n",
        "ci/modes.yml": "serial: [packages/core]\n",
    }
    base = world.commit({**TREE, **more})
    head = world.commit({"ci/modes.yml": "isolated: [packages/core]\n"})
    world.inputs = {"CONFIG": ".github/gpuci.yml\n  ci/over.yml\n"}
    outputs = world.run(world.push(base, head))
    config = config_document.from_document(outputs["configuration"])
    assert (config.label["name"], config.modes) == ("go", (("packages/core", "isolated"),))
    assert outputs["document"]["because"] == ["ci/modes.yml is the configuration"]


@pytest.mark.parametrize(
    ("files", "inputs", "expected"),
    [
        ({".github/gpuci.yml": None}, {}, ["has no file .github/gpuci.yml", "commit .github/gpuci.yml"]),
        ({".github/gpuci.yml": "packges: [a]\n"}, {}, [".github/gpuci.yml:1:1", "packages", "as of"]),
        ({".github/gpuci.yml": "modes: gone.yml\n"}, {}, ["gone.yml"]),
        ({".github/gpuci.yml": "a: [\n"}, {}, ["not valid YAML"]),
        ({}, {"CONFIG": "../x.yml"}, ["leaves ROOT"]),
        ({}, {"CONFIG": "none.yml"}, ["has no file none.yml"]),
        ({}, {"ROOT": "none"}, ["no directory 'none'"]),
        ({}, {"ROOT": "/etc"}, ["relative"]),
        ({}, {"ROOT": "README.md"}, ["no directory"]),
        ({}, {"SHA": "a" * 40}, ["workflow_dispatch"]),
    ],
)
def test_what_is_wrong_is_a_page_without_our_own_paths(
    world: World, files: dict[str, str | None], inputs: dict[str, str], expected: list[str]
) -> None:
    before = world.commit(TREE)
    after = world.commit(files)
    world.inputs = inputs
    with pytest.raises(ConfigError) as caught:
        world.run(world.push(before, after))
    page = caught.value.page()
    assert [text for text in expected if text not in page] == [], page
    assert str(world.directory) not in page


@pytest.mark.parametrize("token", ["weak", "", "unknown"])
def test_a_token_that_may_not_read_is_told_the_permission(world: World, token: str) -> None:
    before = world.commit(TREE)
    with pytest.raises(ConfigError) as caught:
        world.run(world.push(before, world.commit({"README.md": "y"})), token)
    assert "contents: read" in caught.value.page()


def test_hostile_names_stay_text(world: World) -> None:
    """In the log, the summary and the outputs."""
    base = world.commit(TREE)
    world.git("checkout", "-q", "-b", "topic")
    name = "packages/nets/::set-output name=a::b\n##[add-mask]x\n<img src=x>`|@team"
    head = world.commit({name: "1", "packages/nets/EOF\ngpuci-x": "1"})
    outputs = world.run(world.pull(head, base))
    assert outputs["packages"] == NETS
    assert {one["path"] for one in outputs["document"]["changed"]} == {name, "packages/nets/EOF\ngpuci-x"}
    summary = (world.directory / "summary").read_text()
    assert "<img" not in summary
    assert "@team" not in summary


def test_the_program_runs_as_the_action_runs_it(world: World) -> None:
    base = world.commit(TREE)
    environ = {**world.push(base, world.commit({"packages/nets/x.py": "1"})), "GPUCI_TOKEN": "job"}
    environ |= {"HOME": str(world.directory), "PYTHONPATH": str(ENTRY.parent)}
    program = (
        "from gpuci.github import entry; raise SystemExit(entry.main('find_changed', needs_packages=False))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "packages/nets" in done.stdout
