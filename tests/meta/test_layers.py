"""Who may import whom, and which modules touch the world outside. The tables are the architecture."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"

# From the bottom up: a module imports from its own folder and from lower rows only.
LAYERS = (
    {"errors", "model"},
    {"environment", "schemas"},
    {"config", "durations", "source", "repository"},
    {"discovery", "results", "changes"},
    {"planning"},
    {"execution", "images"},
    {"reporting"},
    {"github"},
    {"commands"},
    {"steps"},
    {"cli"},
    {"__main__"},
)
# What touches files, processes, the network or a clock. Everything else decides with values.
IO_MODULES = {
    "gpuci.__main__",
    "gpuci.commands.approve",
    "gpuci.commands.backends",
    "gpuci.commands.changed_tree",
    "gpuci.commands.common",
    "gpuci.commands.manifest",
    "gpuci.commands.output",
    "gpuci.commands.report",
    "gpuci.commands.run",
    "gpuci.config.load",
    "gpuci.discovery.discover",
    "gpuci.discovery.files",
    "gpuci.discovery.reading",
    "gpuci.discovery.roots",
    "gpuci.discovery.verify",
    "gpuci.durations.read",
    "gpuci.environment",
    "gpuci.execution.delivery.archive",
    "gpuci.execution.delivery.cleaning",
    "gpuci.execution.delivery.packing",
    "gpuci.execution.delivery.progress",
    "gpuci.execution.delivery.remote",
    "gpuci.execution.delivery.repository",
    "gpuci.execution.delivery.snapshot",
    "gpuci.execution.delivery.working_tree",
    "gpuci.execution.directories",
    "gpuci.execution.local.devices",
    "gpuci.execution.local.python",
    "gpuci.execution.local.run",
    "gpuci.execution.node_package",
    "gpuci.execution.outputs",
    "gpuci.execution.slurm.clean_up",
    "gpuci.execution.slurm.fetched",
    "gpuci.execution.slurm.finish",
    "gpuci.execution.slurm.interrupts",
    "gpuci.execution.slurm.launch",
    "gpuci.execution.slurm.registry",
    "gpuci.execution.slurm.remote",
    "gpuci.execution.slurm.run",
    "gpuci.execution.transport.connection",
    "gpuci.execution.transport.credentials",
    "gpuci.execution.transport.dial",
    "gpuci.execution.transport.master",
    "gpuci.github.addresses",
    "gpuci.github.api",
    "gpuci.github.entry",
    "gpuci.github.http",
    "gpuci.github.private",
    "gpuci.github.step",
    "gpuci.images.archive",
    "gpuci.images.build",
    "gpuci.images.http",
    "gpuci.images.login",
    "gpuci.images.registry",
    "gpuci.reporting.progress",
    "gpuci.repository.blobs",
    "gpuci.repository.fetch",
    "gpuci.repository.git",
    "gpuci.repository.unpack",
    "gpuci.results.artifacts",
    "gpuci.schemas",
    "gpuci.source.cache",
    "gpuci.source.read",
    "gpuci.steps.build_image",
    "gpuci.steps.calculate_shards",
    "gpuci.steps.clean_up_gpu_shard",
    "gpuci.steps.configuration",
    "gpuci.steps.gpu_tests_passed",
    "gpuci.steps.image_commit",
    "gpuci.steps.plan_file",
    "gpuci.steps.proposed",
    "gpuci.steps.push_image",
    "gpuci.steps.run_gpu_shard",
    "gpuci.steps.shard_plan",
    "gpuci.steps.wait_for_label",
    "gpuci_node.package",
    "gpuci_node.probe",
    "gpuci_node.processes",
    "gpuci_node.supervisor.checkup",
    "gpuci_node.supervisor.child",
    "gpuci_node.supervisor.journal",
    "gpuci_node.supervisor.keeper",
    "gpuci_node.supervisor.leaving",
    "gpuci_node.supervisor.link",
    "gpuci_node.supervisor.on_slurm",
    "gpuci_node.supervisor.preparation",
    "gpuci_node.supervisor.setup",
    "gpuci_node.supervisor.starter",
    "gpuci_node.worker.calls",
    "gpuci_node.worker.channel",
    "gpuci_node.worker.collecting",
    "gpuci_node.worker.coverage_data",
    "gpuci_node.worker.fork",
    "gpuci_node.worker.held",
    "gpuci_node.worker.identity",
    "gpuci_node.worker.main",
    "gpuci_node.worker.nvidia",
    "gpuci_node.worker.originals",
    "gpuci_node.worker.outcome",
    "gpuci_node.worker.plugin",
    "gpuci_node.worker.provenance",
    "gpuci_node.worker.randomness",
    "gpuci_node.worker.reads",
    "gpuci_node.worker.runtimes",
    "gpuci_node.worker.safety",
    "gpuci_node.worker.torch_memory",
    "gpuci_node.worker.usage",
    "gpuci_node.worker.warm",
    "gpuci_node.worker.watch",
    "gpuci_node.worker.xdist_controller",
    "gpuci_node.worker.xdist_files",
    "gpuci_node.worker.xdist_plugin",
}
# Modules that run in the process of the image's own pytest, beside its plugins' libraries.
IN_PYTEST = "gpuci_node.worker."
OUTSIDE = {
    "asyncio", "concurrent", "datetime", "fcntl", "glob", "http", "multiprocessing", "os", "pty", "random",
    "resource", "select", "selectors", "shutil", "signal", "socket", "ssl", "subprocess", "sys", "tempfile",
    "threading", "time", "urllib",
}  # fmt: skip
STANDARD = set(sys.stdlib_module_names) | {"tomllib"}  # since 3.11, and the tests run on 3.10 too
THIRD_PARTY = {"jsonschema", "yaml"}
NODE_FOR_RUNNER = {"gpuci_node.contract", "gpuci_node.slots"}


def modules(package: str) -> dict[str, Path]:
    """Dotted name -> file of every module of a package."""
    files = sorted((SCRIPTS / package).rglob("*.py"))
    names = (".".join(file.relative_to(SCRIPTS).with_suffix("").parts) for file in files)
    return {name.removesuffix(".__init__"): file for name, file in zip(names, files, strict=True)}


RUNNER, NODE = modules("gpuci"), modules("gpuci_node")
ALL = {**RUNNER, **NODE}


def imports(path: Path) -> Iterator[str]:
    """Dotted names that a file imports anywhere in it; `from a import b` gives a.b when that is a module."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            assert node.module
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in ALL else node.module


def touches_outside(path: Path) -> set[str]:
    """The modules of OUTSIDE that a file imports, and `pathlib.Path`, which reads and writes."""
    tree = ast.parse(path.read_bytes())
    found = {name.partition(".")[0] for name in imports(path)} & OUTSIDE
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "pathlib"
        for alias in node.names
    }
    return found | ({"pathlib"} if "Path" in names else set())


def layer(module: str) -> int:
    """The row of LAYERS that holds a module of gpuci."""
    folder = module.split(".")[1]
    rows = [row for row, folders in enumerate(LAYERS) if folder in folders]
    assert rows, f"{module}: its folder is in no row of LAYERS"
    return rows[0]


@pytest.mark.parametrize("module", NODE)
def test_the_node_needs_the_standard_library_only(module: str) -> None:
    allowed = set(sys.stdlib_module_names) | {"gpuci_node"}
    allowed |= {"pytest", "_pytest", "coverage"} if module.startswith(IN_PYTEST) else set()
    assert {name.partition(".")[0] for name in imports(NODE[module])} - allowed == set()


@pytest.mark.parametrize("module", NODE)
def test_the_node_is_python_3_8(module: str) -> None:
    ast.parse(NODE[module].read_bytes(), feature_version=(3, 8))


@pytest.mark.parametrize("module", RUNNER)
def test_the_runner_imports_what_it_may(module: str) -> None:
    names = set(imports(RUNNER[module]))
    roots = {name.partition(".")[0] for name in names}
    assert roots - STANDARD - THIRD_PARTY - {"gpuci", "gpuci_node"} == set()
    of_node = {name for name in names if name.startswith("gpuci_node")}
    # The package itself, as the files that are packed for the node.
    assert of_node - NODE_FOR_RUNNER <= (
        {"gpuci_node"} if module == "gpuci.execution.node_package" else set()
    )


@pytest.mark.parametrize("module", [name for name in RUNNER if name != "gpuci"])
def test_imports_point_downwards(module: str) -> None:
    folder = module.split(".")[1]
    above = {
        name
        for name in imports(RUNNER[module])
        if name.startswith("gpuci.") and name.split(".")[1] != folder and layer(name) >= layer(module)
    }
    assert above == set()


def test_the_modules_that_touch_the_world_are_the_listed_ones() -> None:
    touching = {name: touches_outside(path) for name, path in ALL.items()}
    found = {name for name, outside in touching.items() if outside}
    assert {name: touching[name] for name in found - IO_MODULES} == {}
    assert IO_MODULES - found == set()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import os", {"os"}),
        ("def f():\n    from os import path", {"os"}),
        ("from pathlib import Path", {"pathlib"}),
        ("from pathlib import PurePosixPath\nimport ast, json", set()),
        ("import concurrent.futures", {"concurrent"}),
    ],
    ids=["plain", "inside", "path", "pure", "dotted"],
)
def test_the_rule_sees_an_import(tmp_path: Path, text: str, expected: set[str]) -> None:
    (tmp_path / "module.py").write_text(text)
    assert touches_outside(tmp_path / "module.py") == expected
