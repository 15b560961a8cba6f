"""Archives of strangers: what is pushed is exactly what it says it is, or nothing."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fakes.oci import LAYER, MANIFEST, Layout, described, digest_of

from gpuci.images.archive import Archive
from gpuci.images.manifest import LAYER_BYTES, BrokenImage

ONE = digest_of(b"one")
FORGED: list[tuple[str, dict[str, Any], str]] = [
    ("no index", {"files": {"index.json": None}}, "index.json is missing"),
    ("index is no JSON", {"files": {"index.json": b"{"}}, "no JSON mapping"),
    ("deep JSON", {"files": {"index.json": b"[" * 100_000}}, "no JSON mapping"),
    ("index is a list", {"files": {"index.json": b"[]"}}, "no JSON mapping"),
    ("no images", {"index": {"manifests": []}}, "holds 0 images"),
    ("two images", {"index": {"manifests": [{}, {}]}}, "holds 2 images"),
    ("an index in the index", {"index": {"manifests": [
        {"mediaType": "application/vnd.oci.image.index.v1+json", "digest": ONE, "size": 3}]}}, "media type"),
    ("a manifest of another version", {"manifest": {"schemaVersion": 1}}, "another kind"),
    ("docker's manifest", {"manifest": {
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json"}}, "another kind"),
    ("layers are no list", {"manifest": {"layers": {}}}, "no list"),
    ("too many layers", {"manifest": {"layers": [described(b"one", LAYER)] * 513}}, "no list of at most 512"),
    ("a layer elsewhere", {"layer": {"urls": ["https://example.org/x"]}}, "lies elsewhere"),
    ("a layer of another kind", {"layer": {
        "mediaType": "application/vnd.oci.image.layer.nondistributable.v1.tar"}}, "media type"),
    ("a layer without a digest", {"layer": {"digest": "sha256:../../etc"}}, "no sha256 digest"),
    ("a layer with sha512", {"layer": {"digest": "sha512:" + "0" * 128}}, "no sha256 digest"),
    ("a layer that is missing", {"layer": {"digest": "sha256:" + "0" * 64}}, "is missing"),
    ("a layer that is longer", {"layer": {"size": 2}}, "is something else"),
    ("a layer with a negative size", {"layer": {"size": -1}}, "no size"),
    ("a layer with a flag for a size", {"layer": {"size": True}}, "no size"),
    ("a layer that is too big", {"layer": {"size": LAYER_BYTES + 1}}, "no size"),
    ("a layer with other content", {"files": {f"blobs/sha256/{ONE[7:]}": b"eno"}}, "is something else"),
    ("layers by another case too", {"manifest": {"Layers": []}}, "twice, or in another case"),
    ("a layer elsewhere for Go", {"layer": {"URLs": ["https://example.org/x"]}}, "twice, or in another case"),
    ("the same by Unicode", {"layer": {"url\u017f": ["https://example.org/x"]}}, "twice, or in another case"),
    ("images in the index twice", {"files": {"index.json":
        b'{"schemaVersion": 2, "manifests": [{}], "manifests": []}'}}, "twice, or in another case"),
    ("no layout file", {"files": {"oci-layout": None}}, "oci-layout is missing"),
    ("another layout", {"files": {"oci-layout": b'{"imageLayoutVersion": "2.0.0"}'}}, "no OCI image layout"),
    ("another platform", {"config": {"os": "linux", "architecture": "arm64"}}, "it is for linux/arm64"),
    ("no platform", {"config": {}}, "it is for None/None"),
    ("a big configuration", {"config": {"x": "y" * 5_000_000}}, "its configuration is too big"),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "what"), [case[1:] for case in FORGED], ids=[case[0] for case in FORGED])
def test_a_forged_archive(archive: Callable[..., Path], parts: dict[str, Any], what: str) -> None:
    path = archive(**parts)
    with pytest.raises(BrokenImage) as caught, Archive(path) as opened:
        opened.check("linux/amd64")
    assert what in caught.value.what


@pytest.mark.parametrize(
    ("platform", "fits"),
    [("", True), ("linux/amd64", True), ("linux/amd64/v3", True), ("linux/arm64", False)],
)
def test_the_platform(archive: Callable[..., Path], platform: str, fits: bool) -> None:
    with Archive(archive()) as opened:
        if fits:
            opened.check(platform)
            return
        with pytest.raises(BrokenImage):
            opened.check(platform)


def test_the_variant_of_a_platform(archive: Callable[..., Path]) -> None:
    path = archive(config={"os": "linux", "architecture": "arm64", "variant": "v8"})
    with Archive(path) as opened:
        opened.check("linux/arm64/v8")
        with pytest.raises(BrokenImage):
            opened.check("linux/arm64/v9")


def test_a_good_archive_has_its_parts_once(archive: Callable[..., Path]) -> None:
    with Archive(archive(layers=[b"one", b"two", b"one"])) as opened:
        opened.check()
        assert [blob.digest for blob in opened.blobs[:2]] == [ONE, digest_of(b"two")]
        assert len(opened.blobs) == 3
        assert opened.open(opened.blobs[0]).read() == b"one"
        assert opened.digest == digest_of(opened.manifest)


def test_the_only_file_of_a_directory(tmp_path: Path) -> None:
    Layout().write(tmp_path / "x")
    with Archive(tmp_path) as opened:
        opened.check()


def names(directory: Path, *files: str) -> None:
    for name in files:
        (directory / name).write_bytes(b"")


BAD_DIRECTORIES: list[Callable[[Path], object]] = [
    lambda directory: None,
    lambda directory: names(directory, "a", "b"),
    lambda directory: (directory / "a").symlink_to("/etc/passwd"),
    lambda directory: (directory / "a").mkdir(),
    lambda directory: names(directory, "empty"),
]


@pytest.mark.parametrize("make", BAD_DIRECTORIES, ids=["empty", "two", "link", "directory", "empty file"])
def test_a_directory_that_is_not_what_was_left(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path)
    with pytest.raises(BrokenImage):
        Archive(tmp_path)


def test_a_member_that_is_no_file_is_nothing(tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    with tarfile.open(path, "w") as tar:
        for name, data in Layout().members().items():
            member = tarfile.TarInfo(name)
            if name == "index.json":
                member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
                tar.addfile(member)
            else:
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    with pytest.raises(BrokenImage):
        Archive(path)


def test_a_compressed_archive_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("oci-layout"))
    with pytest.raises(BrokenImage):
        Archive(path)


def test_a_manifest_is_what_its_digest_says(archive: Callable[..., Path]) -> None:
    """That digest is what a run goes on with: here it is another image's, of the same length."""
    good, forged = Layout(layers=[b"one"]), Layout(layers=[b"two"])
    digest = digest_of_manifest(good)
    text = forged.members()[place_of(digest_of_manifest(forged))]
    files = {"index.json": good.members()["index.json"], place_of(digest): text}
    with pytest.raises(BrokenImage) as caught, Archive(archive(layers=[b"two"], files=files)) as opened:
        opened.check()
    assert f"what it calls {digest} " in caught.value.what


def digest_of_manifest(layout: Layout) -> str:
    found: str = json.loads(layout.members()["index.json"])["manifests"][0]["digest"]
    return found


def place_of(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def test_a_member_with_holes_is_nothing(tmp_path: Path) -> None:
    """It is longer than the file: a small archive could keep a registry busy for hours."""
    path = tmp_path / "image.tar"
    members = Layout().members()
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            if name == place_of(ONE):
                member.pax_headers = {"GNU.sparse.size": str(len(data)), "GNU.sparse.map": f"0,{len(data)}"}
            tar.addfile(member, io.BytesIO(data))
    with pytest.raises(BrokenImage) as caught, Archive(path) as opened:
        opened.check()
    assert caught.value.what.endswith(f"{ONE} is missing")


def test_a_label_is_called_as_its_author_likes(archive: Callable[..., Path]) -> None:
    labels = {"Layers": "1", "layers": "2", "URLs": ""}
    with Archive(
        archive(config={"os": "linux", "architecture": "amd64", "config": {"Labels": labels}})
    ) as opened:
        opened.check("linux/amd64")


def header(kind: bytes, size: int) -> bytes:
    """A tar header that says so, with a right checksum."""
    data = bytearray(tarfile.TarInfo("x").tobuf(tarfile.GNU_FORMAT))
    data[156:157] = kind
    data[124:136] = b"\x80" + size.to_bytes(11, "big") if size >= 8**11 else b"%011o\0" % size
    data[148:156] = b"%06o\0 " % (sum(data) - sum(data[148:156]) + 8 * 32)
    return bytes(data)


HEADERS = [
    ("a long name of 4 EiB", header(b"L", 2**62)),
    ("settings of 16 EiB", header(b"x", 2**64)),
    ("settings for all, of 8 GiB", header(b"g", 2**33)),
    ("a file of 2^80 bytes", header(b"0", 2**80)),
    ("long names of long names", (header(b"L", 512) + b"a" * 512) * 3000),
    ("settings of settings", (header(b"x", 512) + b"11 a=bcdef\n".ljust(512, b"\0")) * 3000),
    ("one member after the other", header(b"0", 0) * 5001),
]


@pytest.mark.parametrize("before", [case[1] for case in HEADERS], ids=[case[0] for case in HEADERS])
def test_headers_that_bring_a_reader_down(tmp_path: Path, before: bytes) -> None:
    path = Layout().write(tmp_path / "image.tar")
    path.write_bytes(before + path.read_bytes())
    with pytest.raises(BrokenImage):
        Archive(path)


def test_a_long_name_as_long_as_the_file_is_not_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    with path.open("wb") as file:
        file.write(header(b"L", 2**38))
        file.truncate(2**38 + 1024)  # takes no room
    with pytest.raises(BrokenImage):
        Archive(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 20_000), st.binary(min_size=1, max_size=8))
def test_damage_anywhere_is_found_or_harmless(tmp_path: Path, place: int, data: bytes) -> None:
    """Whatever bytes are overwritten: an archive that passes still has the content of its digest."""
    path = Layout().write(tmp_path / "image.tar")
    text = bytearray(path.read_bytes())
    text[place : place + len(data)] = data
    path.write_bytes(text)
    try:
        with Archive(path) as opened:
            opened.check("linux/amd64")
            for blob in opened.blobs:
                assert digest_of(opened.open(blob).read()) == blob.digest
            assert digest_of(opened.manifest) == opened.digest
    except BrokenImage:
        return


def test_the_kind_of_the_manifest_is_the_one_we_push(archive: Callable[..., Path]) -> None:
    with Archive(archive()) as opened:
        assert b'"mediaType": "' + MANIFEST.encode() in opened.manifest
