"""plan.json and changes.json as another job left them. I/O.

They travel as artifacts. The one says which programs of the runner get the cluster's key
(`slurm.credential-command`), the other which tests are not run. Their digests travel as outputs of the jobs
that made them, which no other job can write.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from gpuci.errors import ConfigError
from gpuci.model import Plan
from gpuci.planning import document


def digest_of(data: bytes) -> str:
    """As in `sha256:…`."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def read_plan(path: Path, digest: str, *, then: str) -> Plan:
    """The plan of a file; raises ConfigError for another one than `digest` names, if it is not empty."""
    return document.from_document(read_left(path, digest, maker="calculate-shards", then=then))


def read_left(path: Path, digest: str, *, maker: str, then: str) -> Any:
    """The JSON of a file that the job `maker` left; raises ConfigError as `read_plan`."""
    try:
        data = path.read_bytes()
        if digest and digest_of(data) != digest:
            raise ConfigError(
                f"{path} is not what {maker} made",
                why="another job put its own in the place of the artifact, or it is from another attempt",
                then="look at what else this run uploads; then run all jobs again",
            )
        return json.loads(data)
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}", then=then) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no JSON document: {error}", then=then) from error
