"""The names under which a job is found again: its job name, and the comment that carries its key. Pure."""

from __future__ import annotations

import hashlib
import re

_REPOSITORY = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9_.-]+")
_RUN = re.compile(r"[A-Za-z0-9_.]+")  # no `-`: the parts of a name are told apart from its end
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.]+")
_NOT_IN_A_COMMENT = re.compile(r"[^A-Za-z0-9_./@:-]+")
_KEY = re.compile(r"(?:^|\s)gpuci repo=\S+ .*\bkey=([0-9a-f]{16})(?![0-9a-f])")
_REPOSITORY_LENGTH, _RUN_LENGTH = 48, 24
# What a value of the comment may take; with the words around them and the key at most 250 characters.
_COMMENT_LENGTHS = {"repo": 72, "run": 24, "sha": 40, "by": 39}


def job_name(repository: str, run: str, attempt: int, shard: int, try_number: int) -> str:
    """The Slurm job name of one try of a shard, also the name of its directory on the shared folder.

    At most 100 characters of [A-Za-z0-9_.-], starting with `gpuci-`. Different arguments give different
    names: a part that had to be changed or cut carries a hash of the whole. `owner/name` becomes
    `owner.name`, which no other repository can become, since an owner holds no dot. Raises ValueError on a
    number that is negative or has more than four digits.
    """
    numbers = (attempt, shard, try_number)
    if any(not 0 <= number <= 9999 for number in numbers):
        raise ValueError(f"not the numbers of a job: {numbers}")
    where = _part(_REPOSITORY, repository, _REPOSITORY_LENGTH).replace("/", ".", 1)
    return "gpuci-{}-{}-a{}-s{}-t{}".format(where, _part(_RUN, run, _RUN_LENGTH), *numbers)


def key_of(token: str) -> str:
    """What stands for a job's token where others can read it: 16 hex digits of its SHA-256."""
    return hashlib.sha256(token.encode()).hexdigest()[:16]


def comment(repository: str, run: str, sha: str, approver: str, key: str) -> str:
    """The job's comment, one line of at most 250 characters: `gpuci repo=… run=… sha=… by=… key=…`.

    It tells people whose job this is, and the key tells us that it is ours. A value that is empty is `-`.
    """
    values = {"repo": repository, "run": run, "sha": sha, "by": approver}
    words = [f"{name}={_comment_value(value, _COMMENT_LENGTHS[name])}" for name, value in values.items()]
    return " ".join(["gpuci", *words, f"key={key}"])


def key_in(text: str) -> str | None:
    """The key in a job's comment, also where a site's plugin wrote around it; None if it is not ours."""
    found = _KEY.search(text)
    return found[1] if found else None


def _part(well_formed: re.Pattern[str], text: str, length: int) -> str:
    if well_formed.fullmatch(text) and len(text) <= length:
        return text
    mark = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:10]
    return f"{_NOT_IN_A_NAME.sub('.', text)[: length - 11]}.{mark}"


def _comment_value(value: str, length: int) -> str:
    return _NOT_IN_A_COMMENT.sub("-", value)[:length] or "-"
