"""Requests to a registry: who we are there, what fails and is tried again, and two that push at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.fakes.oci import Layout, digest_of
from tests.fakes.registry import Fake, serving

from gpuci.errors import GpuciError
from gpuci.images.answers import RegistryError
from gpuci.images.archive import Archive
from gpuci.images.login import Credential
from gpuci.images.manifest import MANIFEST
from gpuci.images.names import Repository
from gpuci.images.push import find, move_tag, push
from gpuci.images.registry import Registry

PASSWORD = "hunter2-registry"
TAG = "inputs-1"


@dataclass
class Side:
    """One who pushes: a registry, what was said and slept."""

    fake: Fake
    archive: Path
    said: list[str] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)

    def registry(self, *, name: str = "team/train", user: str = "bot", write: bool = True) -> Registry:
        credential = Credential(user, PASSWORD) if user else None
        repository = Repository(self.fake.host, name)
        return Registry(repository, credential, write=write, say=self.said.append, sleep=self.slept.append)

    def push(self, **settings: str) -> str:
        with Archive(self.archive) as archive:
            archive.check()
            return push(archive, self.registry(**settings), TAG, self.said.append)  # type: ignore[arg-type]


@pytest.fixture(params=["open", "password", "token"])
def side(request: pytest.FixtureRequest, archive: Callable[..., Path]) -> Iterator[Side]:
    """One side of each kind of registry."""
    users = {"bot": PASSWORD, "reader": PASSWORD}
    kinds = {"open": Fake(), "password": Fake(users=users), "token": Fake(token_users=users)}
    fake = kinds[request.param]
    fake.readers = {"reader"}
    with serving(fake):
        yield Side(fake, archive())


@pytest.fixture
def guarded(archive: Callable[..., Path]) -> Iterator[Side]:
    """A registry that wants a token."""
    with serving(Fake(token_users={"bot": PASSWORD, "reader": PASSWORD}, readers={"reader"})) as fake:
        yield Side(fake, archive())


def test_pushed_and_found(side: Side) -> None:
    digest = side.push()
    assert side.fake.tag("team/train", TAG) == digest
    registry = side.registry(write=False)
    assert registry.digest_of(TAG) == digest
    assert find([registry], TAG, side.said.append) == f"{side.fake.host}/team/train@{digest}"
    assert registry.manifest(digest) == side.fake.manifests["team/train", TAG]
    with Archive(side.archive) as archive:
        assert all(registry.has(blob) for blob in archive.blobs)


def test_what_is_not_there(side: Side) -> None:
    registry = side.registry(write=False)
    assert registry.digest_of(TAG) is None
    assert registry.manifest(digest_of(b"x")) is None
    assert find([registry], TAG, side.said.append) is None


def test_parts_that_are_there_are_not_sent_again(side: Side) -> None:
    side.push()
    del side.fake.manifests["team/train", TAG]
    before = side.fake.count("PUT", "/blobs/")
    side.push()
    assert side.fake.count("PUT", "/blobs/") == before == 3


def test_a_token_is_asked_for_once_and_for_no_more_than_needed(guarded: Side) -> None:
    guarded.push()
    tokens = [path for verb, path in guarded.fake.requests if path.startswith("/token")]
    assert tokens == ["/token?service=fake&scope=repository%3Ateam%2Ftrain%3Apull%2Cpush"]
    guarded.fake.requests.clear()
    guarded.registry(write=False).digest_of(TAG)
    assert [path for verb, path in guarded.fake.requests if path.startswith("/token")] == [
        "/token?service=fake&scope=repository%3Ateam%2Ftrain%3Apull"
    ]


def test_a_token_that_has_run_out_is_replaced(guarded: Side) -> None:
    registry = guarded.registry()
    registry.digest_of(TAG)
    guarded.fake.tokens.clear()
    guarded.fake.tokens["kept"] = ""
    assert registry.digest_of(TAG) is None


def test_the_password_goes_to_the_place_of_tokens_only(guarded: Side) -> None:
    guarded.push()
    sent = zip(guarded.fake.requests, guarded.fake.authorizations, strict=True)
    assert {path.startswith("/token") for (_, path), header in sent if header.startswith("Basic")} == {True}


def test_an_upload_on_another_host_gets_no_credential(guarded: Side) -> None:
    with serving(Fake()) as elsewhere, Archive(guarded.archive) as archive:
        guarded.fake.uploads = f"http://{elsewhere.host}"
        blob = archive.blobs[0]
        guarded.registry().upload(blob, lambda: archive.open(blob))
    assert [verb for verb, _ in elsewhere.requests] == ["PUT"]
    assert elsewhere.authorizations == [""]


@pytest.mark.parametrize("place", ["https://127.0.0.1:1", "ftp://127.0.0.1:1"])
def test_an_upload_by_another_protocol_is_refused(guarded: Side, place: str) -> None:
    guarded.fake.uploads = place
    with Archive(guarded.archive) as archive, pytest.raises(GpuciError) as caught:
        guarded.registry().upload(archive.blobs[0], lambda: archive.open(archive.blobs[0]))
    assert "wants an upload at" in caught.value.what


def test_a_redirect_to_a_part_means_that_it_is_there(fake: Fake, archive: Callable[..., Path]) -> None:
    fake.faults = deque([307])
    side = Side(fake, archive())
    with Archive(side.archive) as opened:
        assert side.registry().has(opened.blobs[0])
    assert len(fake.requests) == 1


@pytest.mark.parametrize("verb", ["look", "push"])
def test_no_other_redirect_is_followed(fake: Fake, archive: Callable[..., Path], verb: str) -> None:
    side = Side(fake, archive())
    fake.faults = deque([301] if verb == "look" else [None, 307])
    with pytest.raises(RegistryError) as caught:
        _ = side.registry().digest_of(TAG) if verb == "look" else side.push()
    assert caught.value.status in (301, 307)


@pytest.mark.parametrize(
    "realm", ["http://example.org/token", "ftp://127.0.0.1/token", "/token", "", "https:///x"]
)
def test_no_password_for_a_place_that_others_could_hear(archive: Callable[..., Path], realm: str) -> None:
    with serving(Fake(token_users={"bot": PASSWORD}, realm=realm or " ")) as fake:
        side = Side(fake, archive())
        with pytest.raises(GpuciError) as caught:
            side.push()
    assert "wants a password at" in caught.value.what
    assert not [header for header in fake.authorizations if header]


@pytest.mark.parametrize(
    ("settings", "status"),
    [({"user": ""}, 401), ({"user": "nobody"}, 401), ({"user": "reader"}, 403)],
    ids=str,
)
def test_who_may_not_push_is_told_why(guarded: Side, settings: dict[str, str], status: int) -> None:
    with pytest.raises(RegistryError) as caught:
        guarded.push(**settings)
    assert caught.value.status == status
    assert "may not write" in caught.value.why
    assert PASSWORD not in caught.value.page()
    assert guarded.slept == []


def test_a_refusal_of_the_lookup_is_told_and_the_next_place_asked(guarded: Side) -> None:
    guarded.push(name="team/train/pr")
    places = [guarded.registry(user="nobody"), guarded.registry(name="team/train/pr")]
    found = find(places, TAG, guarded.said.append)
    assert found is not None
    assert found.startswith(f"{guarded.fake.host}/team/train/pr@")
    assert guarded.said[-1] == f"{guarded.fake.host}/team/train can't be looked into (401): taken as empty"


FAULTS = [
    ("a server error", [500, 502, None]),
    ("too many requests", [429, None]),
    ("no answer", ["close", None]),
    ("all there is", [503, "close", 504, None]),
]


@pytest.mark.parametrize("faults", [case[1] for case in FAULTS], ids=[case[0] for case in FAULTS])
@pytest.mark.parametrize("after", range(9))
def test_trouble_on_the_way_is_survived(side: Side, faults: list[int | str | None], after: int) -> None:
    """At each of the first requests of a push, an upload begun anew among them."""
    side.fake.faults = deque([None] * after + faults)
    digest = side.push()
    assert side.fake.tag("team/train", TAG) == digest
    assert len(side.slept) == len(faults) - 1
    assert len([text for text in side.said if "again in" in text]) == len(side.slept)


@pytest.mark.parametrize(("fault", "what"), [(503, "train: 503"), ("close", "can't be reached")])
def test_trouble_that_stays_is_told(
    fake: Fake, archive: Callable[..., Path], fault: int | str, what: str
) -> None:
    side = Side(fake, archive())
    fake.faults = deque([fault] * 9)
    with pytest.raises(RegistryError) as caught:
        side.push()
    assert what in caught.value.what
    assert side.slept == [1, 4, 15]
    assert caught.value.then


REFUSED = [(400, "docs/images.md"), (404, "compare the name"), (405, "docs/images.md"), (413, "split")]


@pytest.mark.parametrize(("status", "advice"), REFUSED)
@pytest.mark.parametrize("verb", ["POST", "PUT"])
def test_an_upload_that_is_refused(
    fake: Fake, archive: Callable[..., Path], status: int, advice: str, verb: str
) -> None:
    side = Side(fake, archive())
    fake.faults = deque([None, *([None] if verb == "PUT" else []), status])
    with pytest.raises(RegistryError) as caught:
        side.push()
    assert caught.value.status == status
    assert advice in caught.value.then
    assert fake.manifests == {}


def test_a_registry_that_is_not_there(fake: Fake, archive: Callable[..., Path]) -> None:
    side = Side(Fake(port=1), archive())
    with pytest.raises(RegistryError) as caught:
        side.push()
    assert caught.value.status == 0
    assert "127.0.0.1:1 can't be reached" in caught.value.what


def test_the_second_of_two_takes_what_the_first_pushed(fake: Fake, tmp_path: Path) -> None:
    """The other pushes its own build of the same inputs while our layers are on their way."""
    one = Side(fake, Layout(layers=[b"one"]).write(tmp_path / "one.tar"))
    two = Side(fake, Layout(layers=[b"two"]).write(tmp_path / "two.tar"))
    fake.before_manifest.append(two.push)
    first = one.push()
    assert first == fake.tag("team/train", TAG)
    assert first == two.push()
    assert one.said[-1] == "another run pushed this image in the meantime: that one is used"


def test_two_in_the_same_moment_both_have_an_image(fake: Fake, tmp_path: Path) -> None:
    """The one is through with looking when the other writes: the later has the tag, both have a digest."""
    one = Side(fake, Layout(layers=[b"one"]).write(tmp_path / "one.tar"))
    two = Side(fake, Layout(layers=[b"two"]).write(tmp_path / "two.tar"))
    with Archive(one.archive) as archive:
        for blob in archive.blobs:
            one.registry().upload(blob, lambda blob=blob: archive.open(blob))  # type: ignore[misc]
        second = two.push()
        one.registry().put_manifest(TAG, archive.manifest, MANIFEST)
        first = archive.digest
    assert {("team/train", first), ("team/train", second)} <= set(fake.manifests)
    assert one.registry().manifest(second) is not None


def test_where_tags_never_move_the_second_takes_the_first(fake: Fake, tmp_path: Path) -> None:
    """It is refused when it writes, since the tag was free when it looked."""
    one = Side(fake, Layout(layers=[b"one"]).write(tmp_path / "one.tar"))
    two = Side(fake, Layout(layers=[b"two"]).write(tmp_path / "two.tar"))
    two.push()
    tagged = fake.manifests.pop(("team/train", TAG))
    fake.before_manifest.append(lambda: fake.faults.append(409))
    fake.before_manifest.append(lambda: fake.manifests.update({("team/train", TAG): tagged}))
    assert one.push() == two.registry().digest_of(TAG)
    assert fake.count("PUT", "/manifests/") == 2


def test_a_tag_moves_to_the_same_bytes(side: Side) -> None:
    digest = side.push()
    move_tag(side.registry(), digest, "main")
    assert side.fake.manifests["team/train", "main"] == side.fake.manifests["team/train", digest]


def test_a_registry_that_gives_another_image_moves_no_tag(fake: Fake, archive: Callable[..., Path]) -> None:
    side = Side(fake, archive())
    digest = side.push()
    fake.manifests["team/train", digest] = (b'{"other": 1}', MANIFEST)
    with pytest.raises(GpuciError):
        move_tag(side.registry(), digest, "main")
    assert fake.tag("team/train", "main") is None


def test_no_answer_is_taken_for_a_manifest(fake: Fake, archive: Callable[..., Path]) -> None:
    """A page of HTML with status 200 (a portal, a proxy) is no image."""
    fake.manifests["team/train", TAG] = (b"<html>", "text/html")
    with pytest.raises(RegistryError):
        Side(fake, archive()).registry().digest_of(TAG)
