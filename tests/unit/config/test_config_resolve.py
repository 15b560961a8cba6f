"""What settings mean once they are valid: one row, one setting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.config.load import load_config
from gpuci.config.model import Config, MarkerRule, Profile
from gpuci.config.paths import path_fault, tidy_node_id, tidy_path
from gpuci.errors import ConfigError
from gpuci_node.processes import TOKEN
from gpuci_node.supervisor.process import Process
from gpuci_node.supervisor.spec import environment, seat_environment

DIGEST = "sha256:" + "0" * 64


def load(tmp_path: Path, text: str) -> Config:
    """The configuration of one file."""
    file = tmp_path / "gpuci.yml"
    file.write_text(text)
    return load_config(tmp_path, [file])


NODE = [
    ("timeout: 60", "timeout", 60),
    ("workers-per-gpu: 2.0", "workers_per_gpu", 2),
    ("pytest-args: -k 'a b' --x=\"1 2\"", "pytest_args", ("-k", "a b", "--x=1 2")),
    ("pytest-args: [-k, a b]", "pytest_args", ("-k", "a b")),
    ("pytest-args: null", "pytest_args", ()),
    ("python: python3.10", "python", "python3.10"),
    ("env: {A: 012, B: 3.10, C: true, D: 2020-01-01, E: on, F: null, G: ''}", "env",
     {"A": "012", "B": "3.10", "C": "true", "D": "2020-01-01", "E": "on", "G": ""}),
    ("env: {TOKENIZERS_PARALLELISM: false}", "env", {"TOKENIZERS_PARALLELISM": "false"}),
    ("preload: [torch, torch.nn]", "preload", ("torch", "torch.nn")),
    ("recycle-after-files: 10", "recycle_after_files", 10),
    ("gpu-isolation: worker-index", "gpu_isolation", "worker-index"),
    ("engine: xdist", "engine", "xdist"),
    ("isolate: test", "isolate", "test"),
    ("cpu-workers: 3", "cpu_workers", 3),
]  # fmt: skip


@pytest.mark.parametrize(("text", "field", "value"), NODE, ids=[text for text, _, _ in NODE])
def test_node(text: str, field: str, value: object, tmp_path: Path) -> None:
    found = getattr(load(tmp_path, f"node:\n  {text}\n").node, field)
    assert (found, type(found)) == (value, type(value))


def test_what_the_node_sets_is_refused_as_a_variable_of_the_tests(tmp_path: Path) -> None:
    job = {"settings": {"env": {}}, "node": {"name": "n", "gpus": ["0"]}, "run": "r"}
    process = Process(1.0, 1.0, mask_from_start=True)
    names = sorted({*environment(job, 1), *seat_environment(process), TOKEN})
    text = "node:\n  env:\n" + "".join(f"    {name}: a\n" for name in names)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert caught.value.what.count("gpuci sets this variable itself") == len(names)


SECTIONS = [
    ("slurm", "login: a.example", "login", ["a.example"]),
    ("slurm", "login: [a.example, b.example]", "login", ["a.example", "b.example"]),
    ("slurm", "jump: me@gate.example:2222", "jump", ["me@gate.example:2222"]),
    ("slurm", "login: '[::1]'", "login", ["[::1]"]),
    ("slurm", "credential-command: step ssh certificate 'a b'", "credential-command",
     ["step", "ssh", "certificate", "a b"]),
    ("slurm", "time-limit: 1:30", "time-limit", "1:30"),
    ("slurm", "time-limit: 90", "time-limit", "90"),
    ("slurm", "time-limit: 1-12:00:00", "time-limit", "1-12:00:00"),
    ("slurm", "account: 0042", "account", "0042"),
    ("slurm", "constraint: a100&nvlink", "constraint", "a100&nvlink"),
    ("slurm", "exclude: 'gpu[001-003],gpu9'", "exclude", "gpu[001-003],gpu9"),
    ("slurm", "extra-options: [--mem=0, '--comment=a b']", "extra-options", ["--mem=0", "--comment=a b"]),
    ("slurm", "queue-timeout: 60", "queue-timeout", 60),
    ("container", f"image: hub.example:5000/train@{DIGEST}", "image", f"hub.example:5000/train@{DIGEST}"),
    ("container", f"image: {DIGEST}", "image", DIGEST),
    ("container", "image: /images/train.sqsh", "image", "/images/train.sqsh"),
    ("container", "setup: |\n    ulimit -n 4096\n    make\n", "setup", "ulimit -n 4096\nmake\n"),
    ("container", "pythonpath: [./lib/, src]", "pythonpath", ["lib", "src"]),
    ("container", "mounts: ['/data:/data:ro']", "mounts", ["/data:/data:ro"]),
    ("container", "user: 1000:1000", "user", "1000:1000"),
    ("container", "shm-size: 512m", "shm-size", "512m"),
    ("container", "cap-add: []", "cap-add", []),
    ("container", "cap-add: null", "cap-add", ["SYS_NICE"]),
    ("container", "env: [NCCL_DEBUG]", "env", ["NCCL_DEBUG"]),
    ("durations", "file: ./ci/durations.json", "file", "ci/durations.json"),
    ("label", "remove-on-push: false", "remove-on-push", False),
    ("cost", "usd-per-gpu-hour: 2.5", "usd-per-gpu-hour", 2.5),
    ("changes", "ignore: ['**/*.md']", "ignore", ["**/*.md"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("section", "text", "key", "value"),
    SECTIONS,
    ids=[f"{section}-{text[:30]}" for section, text, _, _ in SECTIONS],
)
def test_sections(section: str, text: str, key: str, value: object, tmp_path: Path) -> None:
    config = load(tmp_path, f"{section}:\n  {text}\n")
    assert getattr(config, section)[key] == value
    others: dict[str, Any] = {**getattr(config, section)}
    others.pop(key)
    default = {**getattr(load_config(tmp_path), section)}
    default.pop(key)
    assert others == default


MARKERS = [
    ("slow: 2", MarkerRule("slow", gpus=2)),
    ("gpu: 2", MarkerRule("gpu", gpus=2)),
    ("gpu: {mode: isolated}", MarkerRule("gpu", gpus=1, mode="isolated")),
    ("'*_nightly': {when: always}", MarkerRule("*_nightly")),
    ("big: {mode: sequential, profile: b}", MarkerRule("big", mode="serial", profile="b")),
    ("big: {gpus: 4, profile: b}", MarkerRule("big", gpus=4, profile="b")),
    ("off: {mode: SKIP}", MarkerRule("off", mode="skip")),
]


@pytest.mark.parametrize(("text", "rule"), MARKERS, ids=[text for text, _ in MARKERS])
def test_markers(text: str, rule: MarkerRule, tmp_path: Path) -> None:
    config = load(tmp_path, f"profiles: {{a: {{gpus: 2}}, b: {{gpus: 4}}}}\nmarkers:\n  {text}\n")
    assert rule in config.markers
    assert len({found.name for found in config.markers}) == len(config.markers)


def test_built_in_rules_do_not_bind_small_nodes(tmp_path: Path) -> None:
    assert load(tmp_path, "profiles: {small: {gpus: 2}}").profiles[0].gpus == 2


def test_profiles(tmp_path: Path) -> None:
    text = (
        "profiles:\n"
        "  h100: {gpu: h100, memory-gb: 80, compute-capability: 9.0, slurm: {partition: 7, qos: null}}\n"
        "  small: {gpus: 2}\n"
    )
    assert load(tmp_path, text).profiles == (
        Profile("h100", gpu="h100", memory_gb=80, compute_capability="9.0", slurm={"partition": "7"}),
        Profile("small", gpus=2),
    )


def test_modes_keep_their_order_and_lose_their_aliases(tmp_path: Path) -> None:
    text = (
        "modes: {SKIP: [b, 'a.py::T::t[x::../y]'], concurrent: [b/c/, ./b/d.py], "
        "sequential: ['a.py::T::u'], serial: [z, z]}"
    )
    assert load(tmp_path, text).modes == (
        ("b", "skip"),
        ("a.py::T::t[x::../y]", "skip"),
        ("b/c", "normal"),
        ("b/d.py", "normal"),
        ("a.py::T::u", "serial"),
        ("z", "serial"),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("packages: a b", ("a", "b")),
        ("packages: [a, ./a/, a]", ("a",)),
        ("packages: .", (".",)),
        ("packages: ['./']", (".",)),
        ("packages: [libs/*, '**/x']", ("libs/*", "**/x")),
        ("packages: 2024", ("2024",)),
        ("packages: [3.10]", ("3.10",)),
        ("packages: null", (".",)),
        ("packages: [a..b/..c]", ("a..b/..c",)),
    ],
)
def test_packages(text: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    assert load(tmp_path, text).packages == expected


def test_own_keys_for_anchors_are_not_read(tmp_path: Path) -> None:
    text = "x-limits: &limits {timeout: 60, workers-per-gpu: 2}\nnode:\n  <<: *limits\n  timeout: 30\n"
    node = load(tmp_path, text).node
    assert (node.timeout, node.workers_per_gpu) == (30, 2)


def test_defaults_are_not_shared_between_configurations(tmp_path: Path) -> None:
    load_config(tmp_path).container["cap-add"].append("ALL")
    assert load_config(tmp_path).container["cap-add"] == ["SYS_NICE"]


@given(st.text(st.sampled_from("ab./\\~\n*")))
def test_a_path_without_fault_stays_below_root_when_tidied(path: str) -> None:
    if path_fault(path) is None:
        tidy = tidy_path(path)
        assert path_fault(tidy) is None
        assert tidy_path(tidy) == tidy
        assert tidy_node_id(path + "::" + path) == tidy + "::" + path


BUILD: dict[str, Any] = {
    "repository": "ghcr.io/team/train",
    "file": "Dockerfile",
    "context": ".",
    "inputs": [],
    "args": {},
    "target": None,
    "platform": None,
}
BUILDS = [
    ("", {}),
    ("file: ./docker//Dockerfile, context: docker/", {"file": "docker/Dockerfile", "context": "docker"}),
    ("inputs: [./docker/**, uv.lock]", {"inputs": ["docker/**", "uv.lock"]}),
    ("args: {CUDA: 12.10, GONE: null}", {"args": {"CUDA": "12.10"}}),
    ("target: test, platform: linux/arm64/v8", {"target": "test", "platform": "linux/arm64/v8"}),
]


@pytest.mark.parametrize(("text", "more"), BUILDS, ids=[text or "defaults" for text, _ in BUILDS])
def test_a_build_has_all_its_settings(text: str, more: dict[str, Any], tmp_path: Path) -> None:
    build = f"build: {{repository: ghcr.io/team/train{', ' if text else ''}{text}}}"
    container = load(tmp_path, f"container: {{runtime: podman, {build}}}\n").container
    assert container["build"] == {**BUILD, **more}


BROKEN_BUILDS = [
    ("runtime: podman, build: {}", "container.build.repository: must be set"),
    ("runtime: podman, build: {repository: train}", "without a tag, such as"),
    ("runtime: podman, build: {repository: ghcr.io/Team/train}", "in lower case"),
    ("runtime: podman, build: {repository: 'ghcr.io/team/train:main'}", "without a tag"),
    ("runtime: podman, build: {repository: a.b/c, file: ../Dockerfile}", "leaves ROOT"),
    ("runtime: podman, build: {repository: a.b/c, file: -v}", "does not start with"),
    ("runtime: podman, build: {repository: a.b/c, inputs: [/etc/*]}", "must be relative to ROOT"),
    ("runtime: podman, build: {repository: a.b/c, args: {HF_TOKEN: x}}", "an image keeps its args"),
    ("runtime: podman, build: {repository: a.b/c, args: {A-B: x}}", "environment variable"),
    ("runtime: podman, build: {repository: a.b/c, platform: windows/amd64}", "such as `linux/amd64`"),
    ("runtime: podman, build: {repository: a.b/c, target: --x}", "does not start with"),
    (f"runtime: podman, image: '{DIGEST}', build: {{repository: a.b/c}}", "leave one of the two empty"),
    ("build: {repository: a.b/c}", "nothing runs in the image without container.runtime"),
    ("runtime: podman, build: {repository: a.b/c, tag: x}", 'unknown key "tag"'),
]


@pytest.mark.parametrize(("text", "message"), BROKEN_BUILDS, ids=[text for text, _ in BROKEN_BUILDS])
def test_a_build_that_can_not_be(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, f"container: {{{text}}}\n")
    assert message in caught.value.what
