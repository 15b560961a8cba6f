"""A repository of images in a registry: what it has, and putting something there. I/O, standard library only.

The protocol is OCI distribution 1.1, as GHCR, Docker Hub, Quay, Harbor and distribution speak it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from typing import IO
from urllib.parse import urljoin, urlsplit

from gpuci.errors import GpuciError
from gpuci.images.answers import error_of, unreachable
from gpuci.images.http import Answer, NoAnswer, persistently, send
from gpuci.images.login import Credential, challenge_of, is_loopback, token_url
from gpuci.images.manifest import DOCUMENT_BYTES, MANIFEST, Blob
from gpuci.images.names import Repository

_DOCKER_HUB = "registry-1.docker.io"  # what docker.io stands for
_KINDS = (
    MANIFEST,
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MISSING = 404


class Registry:
    """One repository, with one credential, to read or to write.

    Every method raises RegistryError (answers.py) for an answer that it does not expect.
    """

    def __init__(
        self,
        repository: Repository,
        credential: Credential | None,
        *,
        write: bool = False,
        say: Callable[[str], None] = lambda text: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.repository = repository
        self._credential = credential
        self._write = write
        self._say = say
        self._sleep = sleep
        self._authorization = ""
        scheme = "http" if is_loopback(repository.registry) else "https"
        host = _DOCKER_HUB if repository.registry == "docker.io" else repository.registry
        self._base = f"{scheme}://{host}/v2/{repository.path}/"

    def digest_of(self, tag: str) -> str | None:
        """The digest of the manifest behind a tag; None if there is none."""
        found = self.manifest(tag)
        return found and f"sha256:{hashlib.sha256(found[0]).hexdigest()}"

    def manifest(self, reference: str) -> tuple[bytes, str] | None:
        """The manifest behind a tag or a digest, and its media type; None if there is none."""
        answer = self._ask("look into", "GET", f"manifests/{reference}", Accept=", ".join(_KINDS))
        if answer.status == _MISSING:
            return None
        kind = answer.headers.get("content-type", "").partition(";")[0].strip()
        if answer.status != 200 or len(answer.body) > DOCUMENT_BYTES or kind not in _KINDS:
            raise error_of(self.repository, "look into", answer.status, answer.body)
        return answer.body, kind

    def has(self, blob: Blob) -> bool:
        """Whether a part of an image is there. A redirect leads to where it is, so it is there."""
        answer = self._ask("look into", "HEAD", f"blobs/{blob.digest}")
        if answer.status not in (200, 307, _MISSING):
            raise error_of(self.repository, "look into", answer.status, answer.body)
        return answer.status != _MISSING

    def upload(self, blob: Blob, opened: Callable[[], IO[bytes]]) -> None:
        """Put a part of an image there; `opened` gives its bytes anew for each try."""
        answer = self._persist(lambda: self._upload(blob, opened))
        if answer.status != 201:
            raise error_of(self.repository, "write to", answer.status, answer.body)

    def put_manifest(self, reference: str, manifest: bytes, kind: str) -> None:
        """Make an image of parts that are there, under a tag, which it takes from any other, or a digest."""
        headers = {"Content-Type": kind, "Content-Length": str(len(manifest))}
        answer = self._ask("write to", "PUT", f"manifests/{reference}", manifest, **headers)
        if answer.status != 201:
            raise error_of(self.repository, "write to", answer.status, answer.body)

    def _upload(self, blob: Blob, opened: Callable[[], IO[bytes]]) -> Answer:
        """A monolithic upload: a session, then all of it. The session's address may be on another host."""
        begun = self._authorized("POST", f"{self._base}blobs/uploads/", None, {"Content-Length": "0"})
        if begun.status != 202:
            return begun
        location = urljoin(self._base, begun.headers.get("location", ""))
        parts, own = urlsplit(location), urlsplit(self._base)
        if parts.scheme != own.scheme:
            raise GpuciError(f"the registry {self.repository.registry} wants an upload at {location[:200]!r}")
        joint = "&" if parts.query else "?"
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(blob.size)}
        if parts.netloc == own.netloc and self._authorization:
            headers["Authorization"] = self._authorization
        with opened() as stream:
            return send("PUT", f"{location}{joint}digest={blob.digest}", headers, stream)

    def _ask(self, doing: str, method: str, path: str, data: bytes | None = None, **headers: str) -> Answer:
        """An answer that is no refusal."""
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self._persist(lambda: self._authorized(method, self._base + path, data, told))
        if answer.status in (401, 403):
            raise error_of(self.repository, doing, answer.status, answer.body)
        return answer

    def _persist(self, attempt: Callable[[], Answer]) -> Answer:
        try:
            return persistently(attempt, say=self._say, sleep=self._sleep)
        except NoAnswer as error:
            raise unreachable(self.repository, str(error)) from error

    def _authorized(self, method: str, url: str, data: bytes | None, headers: dict[str, str]) -> Answer:
        """Send it; where the registry asks who we are (or a token has run out), tell it and send it again."""
        answer = self._once(method, url, data, headers)
        if answer.status != 401:
            return answer
        refusal = self._log_in(answer.headers.get("www-authenticate", ""))
        return refusal or self._once(method, url, data, headers)

    def _once(self, method: str, url: str, data: bytes | None, headers: dict[str, str]) -> Answer:
        own = {"Authorization": self._authorization} if self._authorization else {}
        return send(method, url, {**headers, **own}, data)

    def _log_in(self, header: str) -> Answer | None:
        """Get what the next requests authorize themselves with; returns the answer of a refusal."""
        challenge = challenge_of(header)
        basic = self._credential.basic if self._credential else ""
        if challenge.scheme != "bearer":
            self._authorization = basic
            return None
        url = token_url(challenge, self.repository, write=self._write)
        answer = send("GET", url, {"Authorization": basic} if basic else {})
        if answer.status != 200:
            return answer
        self._authorization = f"Bearer {_token(answer.body)}"
        return None


def _token(body: bytes) -> str:
    """The token in an answer; an empty one will be refused."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    found = document.get("token") or document.get("access_token") if isinstance(document, dict) else ""
    return found if isinstance(found, str) and found.isascii() and found.isprintable() else ""
