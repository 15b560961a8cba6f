"""What sbatch is asked for, from the settings and the plan. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuci.config.model import Profile
from gpuci.errors import ConfigError
from gpuci.execution.slurm.extra import extra_options

# A time limit that the plan gives: FACTOR times what is expected, one test that runs into its own limit, and
# START_UP for pulling the image, unpacking and the health check. Too long costs a place in the backfill only.
FACTOR = 3.0
START_UP_SECONDS = 900.0
LEAST_SECONDS = 1800.0
# How long before the limit the node is told; Slurm may send the signal up to 60 s earlier than asked.
SIGNAL_SECONDS = 60

_NODE_LIST = re.compile(r"[A-Za-z0-9_.,\[\]-]+")
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_OF_PROFILE = (
    "partition", "account", "qos", "constraint", "reservation", "exclude", "gres", "gpus-per-node",
    "time-limit", "queue-timeout", "extra-options",
)  # fmt: skip

_SETTING = re.compile(r"`slurm\.([a-z-]+)`")


@dataclass(frozen=True)
class ShardFacts:
    """What of one try of a shard its options depend on.

    `job_dir` is the absolute path of its directory on the shared folder. `expected_seconds` is the plan's,
    `longest_timeout` that of its unit with the longest. `excluded` are nodes that failed in this run.
    """

    name: str
    comment: str
    job_dir: str
    expected_seconds: float
    longest_timeout: float
    excluded: tuple[str, ...] = ()


def settings_for(slurm: Mapping[str, Any], profile: Profile) -> dict[str, Any]:
    """The `slurm` mapping with what the profile says instead.

    `gres` and `gpus-per-node` are two ways to ask for GPUs: if the profile has one, `slurm`'s other goes.
    """
    given = {name: profile.slurm[name] for name in _OF_PROFILE if profile.slurm.get(name) is not None}
    merged = {**slurm, **given}
    for name, other in (("gres", "gpus-per-node"), ("gpus-per-node", "gres")):
        if name in given and other not in given:
            merged[other] = None
    return merged


def sbatch_options(slurm: Mapping[str, Any], profile: Profile, shard: ShardFacts) -> tuple[str, ...]:
    """Options of sbatch for one try of a shard, each `--name` or `--name=value`, in a fixed order.

    Raises ConfigError on extra options that can't be given, on a number of GPUs that is not the profile's and
    on a directory that Slurm can't write its log to.
    """
    settings = settings_for(slurm, profile)
    limit = limit_seconds(slurm, profile, shard)
    asked = {
        name: settings.get(name) for name in ("partition", "account", "qos", "constraint", "reservation")
    }
    return (
        f"--job-name={shard.name}",
        f"--comment={shard.comment}",
        f"--output={_log_pattern(shard.job_dir)}",
        "--open-mode=append",
        f"--chdir={shard.job_dir}",
        *(f"--{name}={value}" for name, value in asked.items() if value),
        *_exclude(settings.get("exclude"), shard.excluded),
        "--nodes=1",
        "--ntasks=1",
        *_gpus(settings, profile),
        f"--time={time_text(limit)}",
        f"--signal=B:USR1@{signal_seconds(limit)}",
        "--no-requeue",
        "--kill-on-invalid-dep=yes",
        "--export=ALL",
        *extra_options(settings.get("extra-options") or ()),
    )


def asked_for(text: str, options: Sequence[str]) -> str:
    """` (asked for --partition=gpux)`: the options of those settings that a text names, or empty."""
    names = dict.fromkeys(_SETTING.findall(text.replace("time-limit", "time")))
    given = [option for name in names for option in options if option.startswith(f"--{name}=")]
    return f" (asked for {' '.join(given)})" if given else ""


def limit_seconds(slurm: Mapping[str, Any], profile: Profile, shard: ShardFacts) -> int:
    """The job's time limit in seconds, a multiple of 60 if it comes from the plan; 0: none."""
    configured = settings_for(slurm, profile).get("time-limit")
    if configured:
        return parse_time(str(configured))
    asked = FACTOR * shard.expected_seconds + shard.longest_timeout + START_UP_SECONDS
    return 60 * math.ceil(max(asked, LEAST_SECONDS) / 60)


def parse_time(text: str) -> int:
    """Seconds of a time as Slurm writes it: M, M:S, H:M:S, D-H, D-H:M or D-H:M:S. Raises ValueError."""
    days, dash, clock = text.rpartition("-")
    numbers = [int(number) for number in clock.split(":")]
    if len(numbers) > 3:
        raise ValueError(f"not a time: {text!r}")
    units = (3600, 60, 1) if dash or len(numbers) == 3 else (60, 1, 0)
    seconds = sum(number * unit for number, unit in zip(numbers, units, strict=False))
    return seconds + (int(days) * 86400 if dash else 0)


def time_text(seconds: int) -> str:
    """A time limit for --time: H:MM:SS, or 0 for none."""
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}" if seconds else "0"


def signal_seconds(limit: int) -> int:
    """How long before the end the signal comes: SIGNAL_SECONDS, of a short limit a fifth."""
    return min(SIGNAL_SECONDS, max(1, limit // 5)) if limit else SIGNAL_SECONDS


def _log_pattern(job_dir: str) -> str:
    """`%` starts a pattern in --output and is doubled; a backslash turns patterns off, so it is refused."""
    if "\\" in job_dir or not job_dir.isprintable():
        raise ConfigError(
            f"Slurm can't write a log below {job_dir!r}",
            why="a backslash or a control character in its path means something else to sbatch",
            then="name another directory in `slurm.shared-dir`",
        )
    return job_dir.replace("%", "%%") + "/slurm.out"


def _exclude(configured: str | None, failed: Iterable[str]) -> tuple[str, ...]:
    """--exclude with the configured list and the nodes that failed; a name that is no node's is left out."""
    if configured and not _NODE_LIST.fullmatch(configured):
        raise ConfigError(
            f"slurm.exclude is not a list of nodes: {configured!r}",
            then="write names with commas, such as `gpu001,gpu[004-006]`",
        )
    nodes = [*filter(None, [configured]), *sorted({name for name in failed if _NODE.fullmatch(name)})]
    return (f"--exclude={','.join(nodes)}",) if nodes else ()


def _gpus(settings: Mapping[str, Any], profile: Profile) -> tuple[str, ...]:
    gres, per_node = settings.get("gres"), settings.get("gpus-per-node")
    in_gres = _gpus_in(gres or "")
    if in_gres and per_node:
        raise ConfigError(
            "slurm.gres and slurm.gpus-per-node both ask for GPUs",
            then="keep one of them; without both gpuci asks for what the profile says",
        )
    asked = per_node or in_gres or profile.gpus
    if asked != profile.gpus:
        raise ConfigError(
            f"the job asks for {asked} GPUs, and profile `{profile.name}` has {profile.gpus}",
            why="shards are planned for the GPUs of the profile",
            then="make `gpus` of the profile and `slurm.gres` or `slurm.gpus-per-node` equal",
        )
    made = f"gpu:{profile.gpu}:{profile.gpus}" if profile.gpu else f"gpu:{profile.gpus}"
    if per_node:
        options = [
            f"--gpus-per-node={profile.gpu}:{per_node}" if profile.gpu else f"--gpus-per-node={per_node}"
        ]
        return (*options, *([f"--gres={gres}"] if gres else []))
    return (f"--gres={gres if in_gres else ','.join(filter(None, [made, gres]))}",)


def _gpus_in(gres: str) -> int:
    """How many GPUs a --gres asks for: `gpu`, `gpu:2`, `gpu:h100:8`, `gpu:a:1,gpu:b:1`."""
    total = 0
    for item in gres.split(","):
        name, *rest = item.removeprefix("gres/").replace("=", ":").split(":")
        if name.strip() == "gpu":
            count = rest[-1] if rest else "1"
            total += int(count) if count.isdecimal() else 1
    return total
