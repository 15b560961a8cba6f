"""What a registry answers -> cause and next step. Pure; the codes are those of OCI distribution 1.1."""

from __future__ import annotations

import json
import re

from gpuci.errors import GpuciError
from gpuci.images.names import Repository

_CODE = re.compile(r"[A-Z_]{1,40}")
REFUSED = (401, 403)


class RegistryError(GpuciError):
    """A registry that did not do what was asked; `status` is that of HTTP, 0 without an answer."""

    def __init__(self, what: str, *, status: int, why: str = "", then: str = "") -> None:
        super().__init__(what, why=why, then=then)
        self.status = status


def error_of(repository: Repository, doing: str, status: int, body: bytes) -> RegistryError:
    """The help page for an answer that is none of the expected ones."""
    code = code_of(body)
    what = f"the registry can't {doing} {repository}: {status}{f' {code}' if code else ''}"
    why, then = _advice(repository, status, code)
    return RegistryError(what, status=status, why=why, then=then)


def unreachable(repository: Repository, cause: str) -> RegistryError:
    """The help page for a registry that does not answer."""
    return RegistryError(
        f"the registry {repository.registry} can't be reached: {cause[:200]}",
        status=0,
        why="its name in container.build.repository, the network of the runner, or the registry is down",
        then=f"try `curl https://{repository.registry}/v2/` on a runner; then run the failed jobs again",
    )


def code_of(body: bytes) -> str:
    """The registry's own word for an error, empty if it has none."""
    try:
        code = json.loads(body)["errors"][0]["code"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return code if isinstance(code, str) and _CODE.fullmatch(code) else ""


def _advice(repository: Repository, status: int, code: str) -> tuple[str, str]:
    if status in REFUSED:
        return _refused(repository)
    if status == 404 or code in ("NAME_UNKNOWN", "MANIFEST_UNKNOWN"):
        return (
            "there is no such image, or the credential may not see it",
            "compare the name with what the registry lists; some want a repository made beforehand",
        )
    if status == 413:
        return (
            "a layer is bigger than the registry takes",
            "split the Dockerfile's biggest RUN or COPY in two",
        )
    if status == 429:
        return "too many requests in a short time", "run the failed jobs again in a while"
    if status == 507:
        return "the registry has no room, or a quota is used up", "delete images that nobody needs"
    if status >= 500:
        return "the registry is in trouble", "look at its status page; run the failed jobs again"
    return "", "docs/images.md says what is asked of a registry"


def _refused(repository: Repository) -> tuple[str, str]:
    if repository.registry == "ghcr.io" or repository.registry.startswith("containers."):
        return (
            "the job has no permission for packages, or the package was made by hand for another repository",
            "give push-image and tag-image `packages: write`, build-image `packages: read`; and in the "
            "package's settings, under Manage Actions access, add this repository (for NAME and NAME/pr)",
        )
    return (
        "the credential is missing, wrong, has run out, or may not write",
        "pass `registry-user` and `registry-password`; push-image and tag-image need one that may write",
    )
