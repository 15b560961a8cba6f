"""What a job on a node takes care of besides its tests: health, set-up, output, a log that stands still."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest

PASSES = {"test_a.py": "def test_1(): pass\n"}

# As nvidia-smi answers on a good node of two GPUs; @MEMORY@ and the like are put in its place.
SMI = """case $1 in
*memory.used) printf '0, GPU-a, 00000000:3B:00.0, {memory}\\n1, GPU-b, 00000000:AF:00.0, 9\\n' ;;
*compute-apps*) {processes} ;;
*) printf '0, GPU-a, 0\\n1, GPU-b, [N/A]\\n' ;;
esac
"""


def smi(memory: int = 4, processes: str = ":") -> str:
    return SMI.format(memory=memory, processes=processes)


# -- health ------------------------------------------------------------------------------------------


def test_a_node_whose_gpu_is_in_use_runs_no_test(batch: Any) -> None:
    batch.program("nvidia-smi", smi(memory=30000))
    batch.make(PASSES)
    ended = batch.run()
    assert ended.verdict["verdict"] == "infra"
    assert ended.verdict["fault"] == {"node": "n1", "reason": "GPU 0: 30000 MiB of memory are in use"}
    assert ended.outcomes == {}


@pytest.mark.parametrize(
    "program",
    ["exit 9\n", "echo rubbish\n", "kill -9 $$\n"],
    ids=["fails", "talks rubbish", "is killed"],
)
def test_tools_that_break_condemn_no_node(batch: Any, program: str) -> None:
    batch.program("nvidia-smi", program)
    batch.make(PASSES)
    ended = batch.run()
    assert ended.verdict["verdict"] == "passed"
    (note,) = ended.notes("health")
    assert note.startswith("health: not checked: memory (")


def test_a_signal_is_heard_while_the_node_is_looked_at(batch: Any) -> None:
    mark = batch.home / "mark"
    batch.program("nvidia-smi", f": >'{mark}'; exec sleep 600\n")
    batch.make(PASSES)
    script = batch.start()
    batch.wait_for(mark.exists, "nvidia-smi was asked")
    os.kill(script.pid, signal.SIGTERM)
    ended = batch.finish(script)
    assert (ended.verdict["verdict"], ended.verdict["reason"]) == ("cancelled", "ended by a signal")
    assert ended.outcomes == {}


def test_a_disk_without_room_is_the_nodes_fault(batch: Any) -> None:
    batch.make(PASSES, free_mib=1 << 40)
    ended = batch.run()
    assert ended.verdict["verdict"] == "infra"
    assert ended.verdict["fault"]["reason"].startswith("scratch ")


# -- container.setup ---------------------------------------------------------------------------------


def test_the_set_up_runs_once_and_leaves_its_environment(batch: Any) -> None:
    (batch.home / "activate").write_text("export FROM_A_FILE=sourced\nPATH=/of/the/setup:$PATH\n")
    count = batch.home / "count"
    setup = (
        f"echo once >>'{count}'\n. '{batch.home}/activate'\n"
        "export TEXT=\"two\nlines\"\ncd /tmp\necho 'said by the setup'\n"
    )
    test = (
        "import os\n"
        "def test_1():\n"
        "    assert os.environ['FROM_A_FILE'] == 'sourced'\n"
        "    assert os.environ['TEXT'] == 'two\\nlines'\n"
        "    assert os.environ['PATH'].startswith('/of/the/setup:')\n"
        "    assert os.getcwd() != '/tmp'\n"
    )
    batch.make({"test_a.py": test, "test_b.py": test}, setup=setup)
    ended = batch.run()
    assert ended.verdict["verdict"] == "passed"
    assert count.read_text() == "once\n"
    assert ("setup", "said by the setup\n") in ended.outputs


def test_a_set_up_may_set_its_own_words(batch: Any) -> None:
    batch.make(PASSES, setup='set -- a b c d\necho "has $#"\n')
    ended = batch.run()
    assert ended.verdict["verdict"] == "passed"
    assert ("setup", "has 4\n") in ended.outputs


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        ("echo wrong >&2; exit 3", "container.setup failed (exit code 3): wrong"),
        ("true\nfalse\necho further", "container.setup failed (exit code 1): "),
        ("kill -SEGV $$", "container.setup failed (SIGSEGV): "),
    ],
    ids=["exit", "a command in between", "a crash"],
)
def test_a_set_up_that_fails_is_the_configurations_fault(batch: Any, setup: str, words: str) -> None:
    batch.make(PASSES, setup=setup)
    ended = batch.run()
    assert (ended.verdict["verdict"], ended.verdict["fault"]) == ("config_error", None)
    assert ended.verdict["reason"] == words
    assert ended.outcomes == {}


def test_a_set_up_that_does_not_end_ends_the_job(batch: Any) -> None:
    batch.make(PASSES, setup="sleep 600", setup_seconds=0.5)
    ended = batch.run()
    assert ended.verdict["verdict"] == "config_error"
    assert ended.verdict["reason"] == "container.setup did not end within 0.5 s"


def test_a_server_of_the_set_up_lives_as_long_as_the_job(batch: Any) -> None:
    pid = batch.home / "pid"
    test = f"import os, pathlib\ndef test_1(): os.kill(int(pathlib.Path({str(pid)!r}).read_text()), 0)\n"
    batch.make({"test_a.py": test}, setup=f"sleep 600 &\necho $! >'{pid}'")
    assert batch.run().verdict["verdict"] == "passed"
    assert not batch.is_alive(int(pid.read_text()))


# -- the log -----------------------------------------------------------------------------------------

PRINTS = """
import os, sys
def test_1(capfd):
    print("captured")
    with capfd.disabled():
        print("beside the capture: \u00e4")
        os.write(1, b"bytes: \\xff, no end of line")
"""


def test_the_log_has_what_tests_print_beside_the_capture_and_nothing_of_pytests(batch: Any) -> None:
    batch.make({"test_a.py": PRINTS})
    ended = batch.run()
    assert ended.verdict["verdict"] == "passed"
    assert "".join(text for source, text in ended.outputs if source == "gw0") == (
        "beside the capture: ä\nbytes: �, no end of line"
    )
    journal = (batch.directory / "out" / "journal.jsonl").read_text()
    assert {json.loads(line)["kind"] for line in journal.splitlines()} >= {"job", "start", "end"}
    assert '"kind":"output"' not in journal


def test_output_beyond_the_limit_is_counted(batch: Any) -> None:
    text = (
        "import os\ndef test_1(capfd):\n    with capfd.disabled():\n        os.write(1, b'x' * 99 + b'\\n')\n"
    )
    batch.make({"test_a.py": text * 1 + text.replace("test_1", "test_2")}, output_bytes=150)
    ended = batch.run()
    assert sum(len(text) for _, text in ended.outputs) == 100
    assert ended.notes("output") == ["output beyond the limit: 100 bytes are not in the log"]


def test_a_log_that_stands_still_ends_the_job_with_the_stacks_of_all_tests(batch: Any) -> None:
    text = "import time\ndef test_{n}():\n    def stuck_{n}(): time.sleep(600)\n    stuck_{n}()\n"
    files = {f"test_{n}.py": text.format(n=n) for n in (1, 2)}
    batch.make(files, stall_seconds=6.0)
    ended = batch.run()
    assert (ended.code, ended.verdict["verdict"]) == (3, "timeout")
    assert ended.verdict["reason"].startswith("the log stood still for 6 s")
    assert len(ended.notes("stall")) == 1
    printed = "".join(text for _, text in ended.outputs)
    assert "stuck_1" in printed
    assert "stuck_2" in printed
