"""A scenario with an image that is built from the commit, on the bed's registry."""

from __future__ import annotations

import json
import re
import secrets
import shutil

from tests.cluster.bed import registry
from tests.cluster.bed.image import root_file_system
from tests.e2e.harness import events
from tests.e2e.harness.act import Ran
from tests.e2e.harness.caller import CONFIGURATION
from tests.e2e.harness.outcomes import JOBS, passed, told
from tests.e2e.harness.scenario import WITH_IMAGE, scenario
from tests.e2e.harness.scenarios import KERNELS, touch
from tests.e2e.harness.stage import Stage

DOCKERFILE = "FROM scratch\nADD root.tar /\nCOPY note /note\n"


def prepare(stage: Stage) -> None:
    """A registry, and a default branch whose configuration builds the image that the tests need."""
    stage.bed.changed.add("registry")
    stage.bed.start("registry")
    # Containers of a build have no network of their own where /dev/net/tun is not for everybody.
    own = (stage.bed.place.home / ".config/containers/containers.conf").read_text()
    settings = stage.directory / "containers.conf"
    settings.write_text(own.replace("[containers]", '[containers]\nnetns = "host"'))
    stage.variables["CONTAINERS_CONF"] = str(settings)
    stage.secrets["REGISTRY_PASSWORD"] = registry.PASSWORD
    tree = stage.caller.tree
    (tree / "docker").mkdir()
    shutil.copyfile(root_file_system(stage.bed.place / "python"), tree / "docker/root.tar")
    (tree / "docker/Dockerfile").write_text(DOCKERFILE)
    configuration = json.loads((tree / CONFIGURATION).read_text())
    del configuration["container"]["image"]
    configuration["container"]["build"] = {
        "repository": f"127.0.0.1:{stage.bed.place.registry_port}/team/{secrets.token_hex(6)}",
        "file": "docker/Dockerfile",
        "context": "docker",
        "inputs": ["docker"],
    }
    login = ["printf", f"{registry.USER}:{registry.PASSWORD}"]
    configuration["container"]["pull-credential-command"] = login
    (tree / CONFIGURATION).write_text(json.dumps(configuration))


def land(stage: Stage, note: str) -> Ran:
    """Push a commit with another note in the image to the default branch, and run for it."""
    before = stage.repository.branches["main"]
    after = stage.caller.commit({"docker/note": note, **touch(stage, KERNELS)}, on=before, branch="main")
    stage.repository.branches["main"] = after
    stage.pushed(after, f"PUSHED-{note.strip()}")
    return stage.run(events.push(stage.repository, "main", before, after, "wim"))


@scenario("image", WITH_IMAGE, alone=True, shards={"max": 1})
def image(stage: Stage) -> list[Ran]:
    """The image is built, pushed, tested in and tagged; a pull request that does not change it finds it, and
    one whose image can't be built runs no test."""
    try:
        prepare(stage)
        ran = land(stage, "one\n")
        sha = stage.repository.branches["main"]
        passed(stage, ran, sha, jobs=[*JOBS, "push-image", "tag-image"], shards=1)
        built = ran.job("push-image").outputs["image"]
        assert re.fullmatch(r"127\.0\.0\.1:\d+/team/\w+@sha256:[0-9a-f]{64}", built), built
        stage.caller.main = sha
        pull = stage.open_pull({"packages/kernels/README.md": "# Kernels\n"})
        again = stage.run(events.dispatch(stage.repository, "maria", pull_request="12", sha=pull.head_sha))
        assert again.code == 0, told(again)
        assert "push-image" not in again.results
        assert "tag-image" not in again.results
        assert again.job("build-image").outputs["image"] == built
        stage.push_to_pull(pull, {"docker/Dockerfile": "FROM scratch\nCOPY missing /missing\n"})
        broken = stage.run(events.dispatch(stage.repository, "maria", pull_request="12", sha=pull.head_sha))
        no_image(stage, broken)
        stage.bed.as_ci("podman", "image", "rm", "--force", built)
    finally:
        stage.bed.daemon("registry").stop()
    return [ran, again, broken]


def no_image(stage: Stage, ran: Ran) -> None:
    """The build failed, so nothing was submitted."""
    gate = ran.job("gpu-tests-passed")
    assert ran.job("build-image").result == "failure", told(ran)
    assert (gate.result, gate.outputs["verdict"]) == ("failure", "config_error"), told(ran)
    assert "gpu-tests" not in ran.results
    assert stage.submitted() == []
