"""More options for sbatch from the configuration: which may be given, and why the others may not. Pure.

sbatch reads options with GNU getopt_long, so that `--outp=x`, `-o x` and `-ox` all mean `--output=x`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuci.errors import ConfigError

_SETTING = "it is a setting of its own: `slurm.{}`"
_OURS = "gpuci sets it, and finds the job or its log by it"
_GPUS = "a shard has the GPUs of its profile: `profiles.NAME.gpus`, `slurm.gres` or `slurm.gpus-per-node`"
_ONE_TASK = "a shard is one task on one node, which starts the test processes itself"
_ENDS = "sbatch would do something else than submit the job"
_WAITS = "such a job can wait for ever"
_CONTAINER = "the batch script runs on the node itself; the tests' image is named in `container`"
_ELSEWHERE = "the job would not be found again: it is looked for on the login node's own cluster"

# Option of sbatch (Slurm 22.05 to 26.11) -> why it is refused.
REFUSED: Mapping[str, str] = {
    **{
        name: _SETTING.format(name)
        for name in (
            "partition", "account", "qos", "constraint", "reservation", "exclude", "gres", "gpus-per-node",
        )
    },
    "time": _SETTING.format("time-limit"),
    **dict.fromkeys(("job-name", "comment", "output", "error", "input", "open-mode", "chdir"), _OURS),
    "no-requeue": "gpuci sets it",
    "requeue": "a job that Slurm starts again finds its directory in use; gpuci tries again by itself",
    "signal": "gpuci sets it: the node ends its tests in order before the time limit",
    "kill-on-invalid-dep": "gpuci sets it",
    "export": "gpuci sets it; what tests may see is named in `container.env` and `node.env`",
    "export-file": "what tests may see is named in `container.env` and `node.env`",
    **dict.fromkeys(("gpus", "gpus-per-socket", "gpus-per-task", "tres-per-task"), _GPUS),
    **dict.fromkeys(
        (
            "nodes", "ntasks", "ntasks-per-node", "tasks-per-node", "ntasks-per-gpu", "ntasks-per-tres",
            "array", "nodefile",
        ),
        _ONE_TASK,
    ),
    **dict.fromkeys(
        (
            "wrap", "test-only", "parsable", "wait", "help", "usage", "version", "autocomplete", "external",
            "immediate",
        ),
        _ENDS,
    ),
    **dict.fromkeys(("hold", "dependency"), _WAITS),
    **dict.fromkeys(("clusters", "cluster", "cluster-constraint"), _ELSEWHERE),
    **dict.fromkeys(
        (
            "container", "container-id", "container-image", "container-mounts", "container-workdir",
            "container-name", "container-save", "container-env", "container-writable",
        ),
        _CONTAINER,
    ),
    **dict.fromkeys(("uid", "gid"), "only root may submit for somebody else"),
}  # fmt: skip
# Allowed ones that have a refused one's beginning, so that the whole name is not taken for an abbreviation.
_WHOLE_NAMES = frozenset({"mem", "time-min", "nodelist", "no-kill", "bb"})
SHORT: Mapping[str, str] = {
    "A": "account", "a": "array", "B": "extra-node-info", "b": "begin", "C": "constraint",
    "c": "cpus-per-task", "D": "chdir", "d": "dependency", "e": "error", "F": "nodefile", "G": "gpus",
    "i": "input", "J": "job-name", "L": "licenses", "M": "clusters", "m": "distribution", "N": "nodes",
    "n": "ntasks", "o": "output", "p": "partition", "q": "qos", "S": "core-spec", "t": "time",
    "w": "nodelist", "x": "exclude",
}  # fmt: skip
SHORT_FLAGS: Mapping[str, str] = {
    "H": "hold", "h": "help", "I": "immediate", "k": "no-kill", "O": "overcommit", "Q": "quiet",
    "s": "oversubscribe", "V": "version", "v": "verbose", "W": "wait", "?": "usage",
}  # fmt: skip


def extra_options(options: Iterable[str]) -> tuple[str, ...]:
    """The options as `--name` or `--name=value`, in their order.

    `--name value`, `-x value` and `-xvalue` are understood; an option that is not known here, of a site's
    plugin say, is passed on. Raises one ConfigError that names every one that can't be given, and why.
    """
    accepted: list[str] = []
    problems: list[str] = []
    for option in options:
        try:
            accepted.append(_accepted(option))
        except ValueError as error:
            problems.append(f"`{option}`: {error}" if option.isprintable() else f"{option!r}: {error}")
    if problems:
        raise ConfigError(
            "slurm.extra-options can't hold " + "; ".join(problems),
            then="take it out of slurm.extra-options",
        )
    return tuple(accepted)


def _accepted(option: str) -> str:
    if not option.isprintable():
        raise ValueError("it holds a control character")
    name, separator, value = _split(option)
    refused = _refusal(name)
    if refused:
        raise ValueError(refused)
    return f"--{name}{'=' if separator else ''}{value}"


def _split(option: str) -> tuple[str, str, str]:
    """(long name, "=" or "", value); raises ValueError on what is no option."""
    if option.startswith("--"):
        name, separator, value = option[2:].partition("=")
        if " " in name:
            name, separator, value = option[2:].partition(" ")
        return name, "=" if separator else "", value.strip()
    letter, value = option[1:2], option[2:].strip()
    if letter in SHORT and value:
        return SHORT[letter], "=", value
    if letter in SHORT_FLAGS and not value:
        return SHORT_FLAGS[letter], "", ""
    if letter in SHORT or letter in SHORT_FLAGS:
        raise ValueError("write one option with its value, by its long name")
    raise ValueError("sbatch has no such short option")


def _refusal(name: str) -> str | None:
    """Why an option of that name, or that abbreviation of a name, is refused."""
    if not name:
        return "it names no option"
    if name in REFUSED or name in _WHOLE_NAMES:
        return REFUSED.get(name)
    longer = sorted(refused for refused in REFUSED if refused.startswith(name))
    if longer:
        return f"it can stand for --{longer[0]} ({REFUSED[longer[0]]}); write names in full"
    return None
