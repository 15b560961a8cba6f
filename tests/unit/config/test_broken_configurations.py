"""Broken configurations and all that a person is told about each: one row, the exact list of problems."""

# ruff: noqa: E501 - a message is what the table shows, so it stays on one line.
from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gpuci.config.explain import SECRET_ADVICE
from gpuci.config.load import MAX_BYTES, load_config
from gpuci.errors import ConfigError
from gpuci_node.contract import EXIT_CODES

BROKEN = [
    pytest.param(
        "node:\n\ttimeout: 5\n",
        ["gpuci.yml:2:1: not valid YAML: a tab: YAML indents with spaces"],
        id="tab-indentation",
    ),
    pytest.param(
        'packages: ["a]\nnode: {}\n',
        ["gpuci.yml:1:12: not valid YAML: the quote that opens here is never closed"],
        id="unclosed-quote",
    ),
    pytest.param(
        "packages: [a, b\nnode: {}\n",
        [
            "gpuci.yml:2:5: not valid YAML: the bracket that opens at gpuci.yml:1:11 is not closed, or a comma is missing"
        ],
        id="unclosed-list",
    ),
    pytest.param(
        "node: {timeout: 5\n",
        [
            "gpuci.yml:2:1: not valid YAML: the bracket that opens at gpuci.yml:1:7 is not closed, or a comma is missing"
        ],
        id="unclosed-mapping",
    ),
    pytest.param(
        "packages: a: b\n",
        ["gpuci.yml:1:12: not valid YAML: a second `: ` in a line (quote the value), or wrong indentation"],
        id="two-colons",
    ),
    pytest.param(
        "node:\n    timeout: 5\n  engine: gpuci\n",
        ["gpuci.yml:3:3: not valid YAML: wrong indentation, or text after a closed value"],
        id="wrong-indentation",
    ),
    pytest.param(
        "packages: [a]\nnode\nshards: {}\n",
        ["gpuci.yml:2:1: not valid YAML: a key without `: ` after it, or wrong indentation"],
        id="key-without-colon",
    ),
    pytest.param(
        "packages: *libs\n",
        ["gpuci.yml:1:11: not valid YAML: found undefined alias 'libs'"],
        id="undefined-alias",
    ),
    pytest.param(
        "node: &n\n  env: *n\n",
        ["gpuci.yml:2:8: not valid YAML: an alias inside the value that it names"],
        id="alias-in-itself",
    ),
    pytest.param(
        "packages: [a]\n---\npackages: [b]\n",
        ["gpuci.yml:2:1: not valid YAML: a second document (`---`) in the file: one is read"],
        id="two-documents",
    ),
    pytest.param(
        'packages: ["a\\q"]\n',
        [
            "gpuci.yml:1:15: not valid YAML: found unknown escape character 'q' (while scanning a double-quoted scalar)"
        ],
        id="unknown-escape",
    ),
    pytest.param(
        'packages: ["\\UFFFFFFFF"]\n',
        ["gpuci.yml:1:15: not valid YAML: an escape or number out of range"],
        id="escape-out-of-range",
    ),
    pytest.param(
        'packages: ["a\\ud800"]\n',
        ["gpuci.yml:1:12: a value with the control character U+D800"],
        id="surrogate-escape",
    ),
    pytest.param(
        'label: {name: "a\\x1b[31m"}\n',
        ["gpuci.yml:1:15: a value with the control character U+001B"],
        id="control-character-escape",
    ),
    pytest.param(
        'packages: ["a\\nb"]\n',
        ['gpuci.yml:1:12: packages[0]: "a\\nb" holds a control character'],
        id="newline-in-package",
    ),
    pytest.param(
        b"packages: [a]\nlabel: {name: \x00}\n",
        ["gpuci.yml:2:15: a character that YAML forbids: U+0000"],
        id="nul-byte",
    ),
    pytest.param(
        b"packages: [a]\nlabel: {name: caf\xe9}\n",
        ["gpuci.yml:2:18: not UTF-8: byte 0xe9"],
        id="not-utf-8",
    ),
    pytest.param(
        b"\xff\xfep\x00a\x00c\x00k\x00a\x00g\x00e\x00s\x00:\x00 \x00[\x00a\x00]\x00\n\x00",
        ["gpuci.yml:1:1: not UTF-8: byte 0xff; it looks like UTF-16"],
        id="utf-16",
    ),
    pytest.param(
        "packages: !vault [a]\n",
        ['gpuci.yml:1:11: the tag "!vault" is not read here: write plain YAML'],
        id="custom-tag",
    ),
    pytest.param(
        "label: {name: !!python/object/apply:os.system [id]}\n",
        ['gpuci.yml:1:15: the tag "!!python/object/apply:os.system" is not read here: write plain YAML'],
        id="python-tag",
    ),
    pytest.param(
        "shards: {max: !!int twelve}\n",
        ['gpuci.yml:1:15: "twelve" does not fit its tag "!!int"'],
        id="tag-that-does-not-fit",
    ),
    pytest.param(
        "packages: [@a]\n",
        [
            "gpuci.yml:1:12: not valid YAML: found character '@' that cannot start any token (while scanning for the next token)"
        ],
        id="reserved-indicator",
    ),
    pytest.param(
        "- packages\n",
        ["gpuci.yml:1:1: the file must hold a mapping (`key: value`)"],
        id="list-at-top",
    ),
    pytest.param(
        "packages\n",
        ["gpuci.yml:1:1: the file must hold a mapping (`key: value`)"],
        id="text-at-top",
    ),
    pytest.param(
        "node:\n  timeout: 5\n  engine: gpuci\n  timeout: 6\n",
        ['gpuci.yml:4:3: the key "timeout" stands here twice, first in line 2'],
        id="key-twice",
    ),
    pytest.param(
        "packages: [a]\nnode: {}\npackages: [b]\n",
        ['gpuci.yml:3:1: the key "packages" stands here twice, first in line 1'],
        id="section-twice",
    ),
    pytest.param(
        "? [a, b]\n: c\n",
        ["gpuci.yml:1:3: a key must be text, not a list or mapping"],
        id="list-as-key",
    ),
    pytest.param(
        '"": a\n',
        ["gpuci.yml:1:1: an empty key"],
        id="empty-key",
    ),
    pytest.param(
        "node:\n  <<: defaults\n  timeout: 5\n",
        ["gpuci.yml:2:7: `<<` takes a mapping or a list of mappings"],
        id="merge-of-text",
    ),
    pytest.param(
        "package: [a]\n",
        ['gpuci.yml:1:1: unknown key "package"; did you mean "packages"?'],
        id="unknown-section-near",
    ),
    pytest.param(
        "colour: red\n",
        [
            'gpuci.yml:1:1: unknown key "colour"; valid here: packages, modes, markers, profiles, node, shards, container, slurm, durations, label, cost, changes'
        ],
        id="unknown-section-far",
    ),
    pytest.param(
        "nodes:\n",
        ['gpuci.yml:1:1: unknown key "nodes"; did you mean "node"?'],
        id="unknown-key-empty",
    ),
    pytest.param(
        "node:\n  timeot: 5\n",
        ['gpuci.yml:2:3: unknown key "timeot" in "node"; did you mean "timeout"?'],
        id="unknown-key-near",
    ),
    pytest.param(
        "cost: {colour: red}\n",
        ['gpuci.yml:1:8: unknown key "colour" in "cost"; valid here: usd-per-gpu-hour'],
        id="unknown-key-far",
    ),
    pytest.param(
        "node: {workers_per_gpu: 2}\n",
        ['gpuci.yml:1:8: unknown key "workers_per_gpu" in "node"; did you mean "workers-per-gpu"?'],
        id="snake-case",
    ),
    pytest.param(
        "workers-per-gpu: 2\n",
        ['gpuci.yml:1:1: unknown key "workers-per-gpu"; it belongs under "node"'],
        id="wrong-level",
    ),
    pytest.param(
        'cost: {"a\\nb\\u202e::error::": 1}\n',
        ['gpuci.yml:1:8: unknown key "a\\nb\\u202e::error::" in "cost"; valid here: usd-per-gpu-hour'],
        id="unknown-key-hostile",
    ),
    pytest.param(
        "node: {timeout: soon}\n",
        ['gpuci.yml:1:17: node.timeout must be a number, not the text "soon"'],
        id="text-for-number",
    ),
    pytest.param(
        'shards: {max: "12"}\n',
        ['gpuci.yml:1:15: shards.max must be a whole number, not the text "12"'],
        id="quoted-number",
    ),
    pytest.param(
        "node: {timeout: 1:30}\n",
        ['gpuci.yml:1:17: node.timeout must be a number, not the text "1:30"'],
        id="sexagesimal-is-text",
    ),
    pytest.param(
        "shards: {max: 012}\n",
        ['gpuci.yml:1:15: shards.max must be a whole number, not the text "012"'],
        id="leading-zero-is-text",
    ),
    pytest.param(
        "node: {timeout: .nan}\n",
        ['gpuci.yml:1:17: node.timeout must be a number, not the text ".nan"'],
        id="nan-is-text",
    ),
    pytest.param(
        "shards: {min-tests: 99999999999999999999}\n",
        ['gpuci.yml:1:21: shards.min-tests must be a whole number, not the text "99999999999999999999"'],
        id="huge-number-is-text",
    ),
    pytest.param(
        "shards: {max: 1.5}\n",
        ["gpuci.yml:1:15: shards.max must be a whole number, not the number 1.5"],
        id="fraction-for-whole",
    ),
    pytest.param(
        "shards: {max: true}\n",
        ["gpuci.yml:1:15: shards.max must be a whole number, not true"],
        id="boolean-for-number",
    ),
    pytest.param(
        "label: {remove-on-push: yes}\n",
        ['gpuci.yml:1:25: label.remove-on-push must be true or false, not the text "yes"'],
        id="yes-is-text",
    ),
    pytest.param(
        "packages: {a: b}\n",
        ["gpuci.yml:1:11: packages must be a list or text, not a mapping"],
        id="mapping-for-list",
    ),
    pytest.param(
        "node: [timeout]\n",
        ["gpuci.yml:1:7: node must be a mapping, not a list"],
        id="list-for-mapping",
    ),
    pytest.param(
        "shards: 12\n",
        ["gpuci.yml:1:9: shards must be a mapping, not the number 12"],
        id="text-for-section",
    ),
    pytest.param(
        "packages:\n  - a\n  -\n",
        ["gpuci.yml:3:4: packages[1] must be text, not empty"],
        id="empty-item",
    ),
    pytest.param(
        "shards: {max: 13}\n",
        ["gpuci.yml:1:15: shards.max must be from 1 to 12, not 13"],
        id="number-too-big",
    ),
    pytest.param(
        "node: {workers-per-gpu: 0}\n",
        ["gpuci.yml:1:25: node.workers-per-gpu must be from 1 to 64, not 0"],
        id="number-too-small",
    ),
    pytest.param(
        "node: {timeout: -1}\n",
        ["gpuci.yml:1:17: node.timeout must be more than 0 and at most 31536000, not -1"],
        id="negative-seconds",
    ),
    pytest.param(
        "cost: {usd-per-gpu-hour: -2}\n",
        ["gpuci.yml:1:26: cost.usd-per-gpu-hour must be at least 0, not -2"],
        id="negative-price",
    ),
    pytest.param(
        "node: {engine: xdits}\n",
        ['gpuci.yml:1:16: node.engine: "xdits" is not known; did you mean "xdist"? valid: gpuci, xdist'],
        id="unknown-engine",
    ),
    pytest.param(
        "node: {gpu-isolation: all}\n",
        ['gpuci.yml:1:23: node.gpu-isolation: "all" is not known; valid: auto, mask, worker-index'],
        id="unknown-isolation",
    ),
    pytest.param(
        "container: {runtime: singularity}\n",
        ['gpuci.yml:1:22: container.runtime: "singularity" is not known; valid: none, podman, docker, pyxis'],
        id="unknown-runtime",
    ),
    pytest.param(
        "node: {engine: [gpuci], isolate: {}}\n",
        [
            "gpuci.yml:1:16: node.engine must be text, not a list",
            "gpuci.yml:1:34: node.isolate must be text, not a mapping",
        ],
        id="list-and-mapping-for-choices",
    ),
    pytest.param(
        "node: {engine: 8}\n",
        ['gpuci.yml:1:16: node.engine: "8" is not known; valid: gpuci, xdist'],
        id="number-for-a-choice",
    ),
    pytest.param(
        "modes:\n  parallel: [a]\n",
        [
            'gpuci.yml:2:3: unknown key "parallel" in "modes"; valid here: normal, concurrent, isolated, serial, sequential, cpu, skip, SKIP'
        ],
        id="unknown-mode",
    ),
    pytest.param(
        "markers:\n  slow: {mode: alone}\n",
        [
            'gpuci.yml:2:16: markers.slow.mode: "alone" is not known; valid: normal, concurrent, isolated, serial, sequential, cpu, skip, SKIP'
        ],
        id="unknown-mode-of-mark",
    ),
    pytest.param(
        "markers: {slow: {when: nightly}}\n",
        ['gpuci.yml:1:24: markers.slow.when: "nightly" is not known; valid: always, schedule'],
        id="unknown-when",
    ),
    pytest.param(
        "packages: []\n",
        ["gpuci.yml:1:11: packages: must not be empty"],
        id="packages-empty-list",
    ),
    pytest.param(
        'packages: " "\n',
        ["gpuci.yml:1:11: packages: must not be empty"],
        id="packages-empty-text",
    ),
    pytest.param(
        "packages: [/srv/a]\n",
        ['gpuci.yml:1:12: packages[0]: "/srv/a" must be relative to ROOT'],
        id="package-absolute",
    ),
    pytest.param(
        'packages: ["~/a"]\n',
        ['gpuci.yml:1:12: packages[0]: "~/a" must be relative to ROOT'],
        id="package-home",
    ),
    pytest.param(
        "packages:\n  - a\n  - b/../../c\n",
        ['gpuci.yml:3:5: packages[1]: "b/../../c" leaves ROOT by `..`'],
        id="package-above",
    ),
    pytest.param(
        "packages: libs\\a\n",
        ['gpuci.yml:1:11: packages[0]: "libs\\a" holds a backslash: write `/` between directories'],
        id="package-backslash",
    ),
    pytest.param(
        "modes: {serial: [../a]}\n",
        ['gpuci.yml:1:18: modes.serial[0]: "../a" leaves ROOT by `..`'],
        id="mode-path-above",
    ),
    pytest.param(
        "modes:\n  serial: [a/b, c]\n  SKIP:\n    - ./a/b/\n",
        ['gpuci.yml:4:7: modes.SKIP[0]: "a/b" has the mode serial already, by gpuci.yml:2:12'],
        id="mode-twice",
    ),
    pytest.param(
        "modes: {isolated: [a], concurrent: [a]}\n",
        ['gpuci.yml:1:37: modes.concurrent[0]: "a" has the mode isolated already, by gpuci.yml:1:20'],
        id="mode-twice-by-alias",
    ),
    pytest.param(
        "modes: modes.yml\n",
        [
            'gpuci.yml:1:8: modes: the file "modes.yml" can\'t be used',
            "modes.yml: can't be read: No such file or directory",
        ],
        id="modes-file-missing",
    ),
    pytest.param(
        "modes: ../modes.yml\n",
        ['gpuci.yml:1:8: modes: "../modes.yml" leaves ROOT by `..`'],
        id="modes-file-above",
    ),
    pytest.param(
        "profiles: {h100: {}, a100: {}}\nmarkers:\n  big: {profile: h10}\n",
        ['gpuci.yml:3:18: markers.big.profile: "h10" is not known; did you mean "h100"? valid: h100, a100'],
        id="unknown-profile",
    ),
    pytest.param(
        "profiles: {small: {gpus: 4}}\nmarkers:\n  big: {gpus: 8}\n",
        ['gpuci.yml:3:15: markers.big.gpus: 8 GPUs are more than the 4 of profile "small"'],
        id="too-many-gpus",
    ),
    pytest.param(
        "markers: {gpu: 16}\n",
        ['gpuci.yml:1:16: markers.gpu: 16 GPUs are more than the 8 of profile "default"'],
        id="too-many-gpus-short",
    ),
    pytest.param(
        'markers: {"not slow": 1}\n',
        [
            'gpuci.yml:1:11: markers.not slow: "not slow" does not fit; a mark is a Python name or a glob of one, such as `gpu` or `*_nightly`'
        ],
        id="mark-name",
    ),
    pytest.param(
        "profiles: {-h100: {}}\n",
        [
            'gpuci.yml:1:12: profiles.-h100: "-h100" does not fit; a profile\'s name starts with a letter or digit and holds only letters, digits and `_.-`'
        ],
        id="profile-name",
    ),
    pytest.param(
        "profiles:\n  h100:\n    slurm: {login: host}\n",
        ['gpuci.yml:3:13: unknown key "login" in "profiles.h100.slurm"; it belongs under "slurm"'],
        id="profile-login",
    ),
    pytest.param(
        "profiles: {h100: {compute-capability: 9}}\n",
        [
            'gpuci.yml:1:39: profiles.h100.compute-capability: "9" does not fit; write a compute capability such as `9.0`'
        ],
        id="compute-capability",
    ),
    pytest.param(
        'node:\n  pytest-args: -k "a b\n',
        ["gpuci.yml:2:16: node.pytest-args: can't be split like a shell's words: no closing quotation"],
        id="pytest-args-quote",
    ),
    pytest.param(
        "node: {env: {A-B: 1}}\n",
        [
            'gpuci.yml:1:14: node.env.A-B: "A-B" does not fit; the name of an environment variable holds letters, digits and `_`'
        ],
        id="variable-name",
    ),
    pytest.param(
        "node: {preload: [torch nn]}\n",
        [
            'gpuci.yml:1:18: node.preload[0]: "torch nn" does not fit; write a module\'s name, such as `torch.nn`'
        ],
        id="module-name",
    ),
    pytest.param(
        "container: {image: registry.example/team/train:latest}\n",
        [
            'gpuci.yml:1:20: container.image: "registry.example/team/train:latest" does not fit; name an image by its digest (`registry/name@sha256:` and 64 hex digits), or by the absolute path of an image file; a tag can change under a run'
        ],
        id="image-by-tag",
    ),
    pytest.param(
        "container: {shm-size: big}\n",
        ['gpuci.yml:1:23: container.shm-size: "big" does not fit; write a size such as `64g` or `512m`'],
        id="shm-size",
    ),
    pytest.param(
        "container: {mounts: [data:/data]}\n",
        [
            'gpuci.yml:1:22: container.mounts[0]: "data:/data" does not fit; write a mount as `/on/node:/in/container`, with `:ro` after it for read-only'
        ],
        id="mount",
    ),
    pytest.param(
        "container: {cap-add: [sys-nice]}\n",
        [
            'gpuci.yml:1:23: container.cap-add[0]: "sys-nice" does not fit; write a capability such as `SYS_NICE`'
        ],
        id="capability",
    ),
    pytest.param(
        "slurm: {login: -oProxyCommand=id}\n",
        [
            'gpuci.yml:1:16: slurm.login: "-oProxyCommand=id" does not fit; write a host\'s name or address, without spaces and not starting with `-`'
        ],
        id="login-option",
    ),
    pytest.param(
        "slurm: {login: [a.example, b c]}\n",
        [
            'gpuci.yml:1:28: slurm.login[1]: "b c" does not fit; write a host\'s name or address, without spaces and not starting with `-`'
        ],
        id="login-list",
    ),
    pytest.param(
        "slurm: {port: 70000}\n",
        ["gpuci.yml:1:15: slurm.port must be from 1 to 65535, not 70000"],
        id="port",
    ),
    pytest.param(
        "slurm: {time-limit: two hours}\n",
        [
            'gpuci.yml:1:21: slurm.time-limit: "two hours" does not fit; write a time as Slurm does: minutes, `H:MM:SS` or `D-HH:MM`'
        ],
        id="time-limit",
    ),
    pytest.param(
        'slurm: {partition: "gpu\\n#SBATCH --uid=0"}\n',
        [
            'gpuci.yml:1:20: slurm.partition: "gpu\\n#SBATCH --uid=0" does not fit; write one word that does not start with `-`'
        ],
        id="partition-newline",
    ),
    pytest.param(
        "slurm: {shared-dir: work}\n",
        ['gpuci.yml:1:21: slurm.shared-dir: "work" does not fit; write an absolute path, without `:`'],
        id="shared-dir",
    ),
    pytest.param(
        "slurm: {extra-options: [mem=0]}\n",
        [
            'gpuci.yml:1:25: slurm.extra-options[0]: "mem=0" does not fit; write one option with its value, such as `--mem=0`'
        ],
        id="option-without-dash",
    ),
    pytest.param(
        "slurm:\n  password: hunter2\n",
        ["gpuci.yml:2:3: slurm.password: " + SECRET_ADVICE],
        id="password",
    ),
    pytest.param(
        "api-token: abc\n",
        ["gpuci.yml:1:1: api-token: " + SECRET_ADVICE],
        id="token",
    ),
    pytest.param(
        "node: {env: {HF_TOKEN: abc}}\n",
        ["gpuci.yml:1:24: node.env.HF_TOKEN: " + SECRET_ADVICE],
        id="secret-variable",
    ),
    pytest.param(
        "packages: [a/**, '**/b', a**b, c/d**]\n",
        [
            'gpuci.yml:1:26: packages[2]: "a**b": `**` stands alone between slashes',
            'gpuci.yml:1:32: packages[3]: "c/d**": `**` stands alone between slashes',
        ],
        id="double-star-inside-a-name",
    ),
    pytest.param(
        "modes: {SKIP: [libs/*/old, 'libs/t.py::test_a[*]', 'libs/test_?.py']}\n",
        [
            'gpuci.yml:1:16: modes.SKIP[0]: "libs/*/old" is a glob: name a directory, a file or a node id',
            'gpuci.yml:1:52: modes.SKIP[2]: "libs/test_?.py" is a glob: name a directory, a file or a node id',
        ],
        id="glob-as-a-mode",
    ),
    pytest.param(
        "modes:\n  serial: ['a/t.py::test_a[1]', 'a[b]/t.py::test_b']\n  SKIP: ['a/t.py::test_c[1]']\n",
        [
            'gpuci.yml:2:12: modes.serial[0]: "a/t.py::test_a[1]" names parameters: a function has one mode',
        ],
        id="parameters-with-a-mode",
    ),
    pytest.param(
        "node: {env: {CUDA_VISIBLE_DEVICES: 1, PYTEST_XDIST_AUTO_NUM_WORKERS: 2}}\n",
        [
            "gpuci.yml:1:36: node.env.CUDA_VISIBLE_DEVICES: gpuci sets this variable itself, for each test process"
        ],
        id="variable-of-the-node",
    ),
    pytest.param(
        "slurm:\n  identity-file: |\n    -----BEGIN OPENSSH PRIVATE KEY-----\n    b3BlbnNzaC1rZXk\n",
        ["gpuci.yml:2:18: this is a private key: " + SECRET_ADVICE],
        id="private-key",
    ),
    pytest.param(
        "node: {timeot: 1, engine: fast}\nshards: {max: 99}\npackages: [../a]\nnode: {}\n",
        [
            'gpuci.yml:1:8: unknown key "timeot" in "node"; did you mean "timeout"?',
            'gpuci.yml:1:27: node.engine: "fast" is not known; valid: gpuci, xdist',
            "gpuci.yml:2:15: shards.max must be from 1 to 12, not 99",
            'gpuci.yml:3:12: packages[0]: "../a" leaves ROOT by `..`',
            'gpuci.yml:4:1: the key "node" stands here twice, first in line 1',
        ],
        id="several",
    ),
]


def problems_of(error: ConfigError) -> list[str]:
    """The lines of a page that name a place."""
    return [line.strip() for line in error.what.splitlines()[1:]]


@pytest.mark.parametrize(("content", "expected"), BROKEN)
def test_broken_configuration(
    content: str | bytes, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "gpuci.yml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path, [file])
    assert problems_of(caught.value) == expected
    assert caught.value.exit_code == EXIT_CODES["config_error"]
    assert caught.value.page().startswith(f"error: {len(expected)} problem")


def test_a_secret_is_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "gpuci.yml"
    file.write_text(
        "slurm:\n"
        "  password: hunter2\n"
        '  identity-file: "-----BEGIN RSA PRIVATE KEY-----\\nhunter2"\n'
        "node: {env: {DB_PASSWORD: hunter2}}\n"
    )
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path, [file])
    assert len(problems_of(caught.value)) == 3
    assert "hunter2" not in caught.value.page()


def test_a_long_list_of_problems_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "gpuci.yml"
    file.write_text("".join(f"colour-{index}: red\n" for index in range(130)))
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path, [file])
    lines = problems_of(caught.value)
    assert caught.value.what.startswith("130 problems")
    assert (len(lines), lines[-1]) == (101, "… and 30 more")


def bomb(levels: int, width: int) -> str:
    """Aliases of aliases: `width ** levels` values in `levels` lines."""
    lines = ["x-0: &a0 [" + ", ".join("a" * width) + "]"]
    for level in range(1, levels):
        lines.append(f"x-{level}: &a{level} [" + ", ".join([f"*a{level - 1}"] * width) + "]")
    return "\n".join(lines)


LIMITS = [
    pytest.param(bomb(9, 9), "more than 100,000 values, aliases expanded", id="alias-bomb"),
    pytest.param(bomb(300, 1), "nested more than 32 levels deep", id="alias-tower"),
    pytest.param(
        "x-a: &a {" + ", ".join(f"k{i}: v" for i in range(400)) + "}\n"
        "x-b: [" + ", ".join(["{<<: *a}"] * 400) + "]",
        "more than 100,000 values, aliases expanded",
        id="merge-bomb",
    ),
    pytest.param("packages: " + "[" * 5000, "nested more than 32 levels deep", id="deep-lists"),
    pytest.param("packages: " + "{a: " * 5000, "nested more than 32 levels deep", id="deep-mappings"),
    pytest.param(
        "".join(" " * n + "a:\n" for n in range(500)),
        "nested more than 32 levels deep",
        id="deep-indentation",
    ),
    pytest.param("- " * 5000 + "a", "nested more than 32 levels deep", id="deep-dashes"),
    pytest.param("x-a: [" + "a, " * 150_000 + "]", "more than 100,000 values", id="many-values"),
]


@pytest.mark.parametrize(("content", "expected"), LIMITS)
def test_limits(content: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "gpuci.yml"
    file.write_text(content)
    with pytest.raises(ConfigError, match=expected):
        load_config(tmp_path, [file])


def test_aliases_within_the_limits_are_fine(tmp_path: Path) -> None:
    file = tmp_path / "gpuci.yml"
    file.write_text(bomb(4, 9))
    assert load_config(tmp_path, [file]).packages == (".",)


def test_a_huge_file_is_refused_by_its_size(tmp_path: Path) -> None:
    file = tmp_path / "gpuci.yml"
    with file.open("wb") as stream:
        stream.truncate(100 * 1000 * 1000)
    with pytest.raises(ConfigError, match="is bigger than 1,000,000 bytes"):
        load_config(tmp_path, [file])


def test_the_biggest_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "gpuci.yml"
    file.write_bytes(b"packages: [a]\n#".ljust(MAX_BYTES, b"x"))
    assert load_config(tmp_path, [file]).packages == ("a",)
    file.write_bytes(b"packages: [a]\n#".ljust(MAX_BYTES + 1, b"x"))
    with pytest.raises(ConfigError, match="is bigger than"):
        load_config(tmp_path, [file])


FRAGMENTS = st.sampled_from(
    [
        *"abc019-:,[]{}&*!|>'\"%@`#?<~ \t\n\\",
        "\n  ", ": ", "- ", "&a ", "*a", "<<: ", "!!int ", "!!str ", "---\n", "...\n", "%YAML 1.1\n", "\\U",
        "packages", "modes", "markers", "profiles", "node", "shards", "container", "slurm", "durations",
        "gpus", "mode", "profile", "env", "pytest-args", "image", "login", "time-limit", "null", "true",
        "1.5", "9" * 400, "../", "\ufeff", "\x85", "\u2028", "é", "\x00", "x-a", "serial", "{}", "[]",
    ]
)  # fmt: skip


@given(st.one_of(st.binary(max_size=200), st.lists(FRAGMENTS, max_size=60).map("".join).map(str.encode)))
@example(b'"\\UFFFFFFFF"')
@example(b"%YAML 1." + b"9" * 5000 + b"\n---\na: b")
@example(b"? ? ? a")
@example(b"markers: {gpu: {<<: {gpus: 99}}}")
@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_give_a_configuration_or_a_config_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "gpuci.yml"
    file.write_bytes(content)
    page = ""
    try:
        load_config(tmp_path, [file])
    except ConfigError as error:
        page = error.page()
    assert page == "" or "gpuci.yml" in page
    page.encode()
