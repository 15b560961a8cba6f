"""Threads, workers and process groups of torch in test processes: each right, nothing hangs.

What may go wrong is a copy of a process that had threads. GNU OpenMP, torch's pool for large operations, does
not survive a fork: a copy that uses it waits for ever (GCC bug 60035). Limits end that here.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

HEAD = "import os, threading\nimport pytest, torch\nfrom torch.utils.data import DataLoader, Dataset\n"
SQUARES = """\
class Squares(Dataset):
    def __len__(self): return 16
    def __getitem__(self, index): return torch.tensor(float(index * index))
"""
BODIES = {
    "large": "def test_product():\n    a = torch.ones(800, 800)\n    assert (a @ a)[0, 0] == 800\n",
    "backward": """\
def test_backward():
    a = torch.ones(600, 600, requires_grad=True)
    (a @ a).sum().backward()
    assert torch.all(a.grad == 1200)
""",
    "threads": """\
def test_backward_in_threads():
    def work():
        a = torch.ones(300, 300, requires_grad=True)
        (a @ a / 300).exp().log().sum().backward()
        grads.append(a.grad)
    grads = []
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert len(grads) == 4
    assert all(torch.allclose(grad, grads[0]) for grad in grads)
""",
    "loader": SQUARES
    + """\
@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_workers(how):
    loader = DataLoader(Squares(), batch_size=4, num_workers=2, multiprocessing_context=how)
    assert [batch.sum().item() for batch in loader] == [14.0, 126.0, 366.0, 734.0]
""",
    "loader_after_large": SQUARES
    + """\
def test_workers_of_a_process_that_has_a_pool():
    a = torch.ones(800, 800)
    assert (a @ a)[0, 0] == 800
    loader = DataLoader(Squares(), batch_size=16, num_workers=1, multiprocessing_context="fork")
    assert [batch.sum().item() for batch in loader] == [1240.0]
""",
    "spawn": """\
def fill(rank, shared): shared[rank] = rank + 1
def test_spawn():
    shared = torch.zeros(2).share_memory_()
    torch.multiprocessing.spawn(fill, (shared,), nprocs=2)
    assert shared.tolist() == [1, 2]
""",
    "gloo": """\
import torch.distributed as dist
def reduce(rank, store, shared):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    mine = torch.tensor([float(rank + 1)])
    dist.all_reduce(mine)
    shared[rank] = mine.item()
    dist.destroy_process_group()
def test_two_ranks(tmp_path):
    shared = torch.zeros(2).share_memory_()
    torch.multiprocessing.spawn(reduce, (str(tmp_path / "store"), shared), nprocs=2)
    assert shared.tolist() == [3, 3]
""",
    "gloo_here": """\
import torch.distributed as dist
def test_one_rank_in_the_test_process(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method="file://%s/store" % tmp_path, rank=0, world_size=1)
    mine = torch.ones(3)
    dist.all_reduce(mine)
    dist.destroy_process_group()
    assert mine.tolist() == [1, 1, 1]
""",
    "jit": """\
def work(a): return a @ a
def test_futures():
    futures = [torch.jit.fork(work, torch.ones(200, 200)) for _ in range(4)]
    assert all(torch.jit.wait(future)[0, 0] == 200 for future in futures)
""",
}
AT_IMPORT = {
    "a large product": "A = torch.ones(800, 800)\nassert (A @ A)[0, 0] == 800\n",
    "a large backward": "A = torch.ones(600, 600, requires_grad=True)\n(A @ A).sum().backward()\n",
    "a thread that stays": (
        "THREAD = threading.Thread(target=threading.Event().wait, daemon=True)\nTHREAD.start()\n"
    ),
    "futures": "F = torch.jit.fork(torch.relu, torch.ones(3))\nassert torch.jit.wait(F).sum() == 3\n",
    "an open process group": (
        "import tempfile\nimport torch.distributed as dist\nos.environ['GLOO_SOCKET_IFNAME'] = 'lo'\n"
        "STORE = 'file://' + tempfile.mkdtemp() + '/store'\n"
        "dist.init_process_group('gloo', init_method=STORE, rank=0, world_size=1)\n"
        "def test_group():\n    mine = torch.ones(3)\n    dist.all_reduce(mine)\n"
        "    assert mine.tolist() == [1, 1, 1]\n"
    ),
}
MODES = ("normal", "isolated")


@pytest.mark.parametrize("mode", MODES)
def test_what_tests_do_with_threads_and_processes(run_torch: Any, mode: str) -> None:
    files = {f"test_{name}.py": HEAD + body for name, body in BODIES.items()}
    ran = run_torch(files, mode=mode, gpus=2)
    assert len(ran.outcomes) == len(BODIES) + 1
    assert set(ran.outcomes.values()) == {"passed"}, ran.complaints
    assert [note for note in ran.records("note") if note["topic"] in ("left_over", "process_end")] == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("statements", AT_IMPORT.values(), ids=AT_IMPORT)
def test_what_a_file_does_when_it_is_imported_hangs_nobody(
    run_torch: Any, mode: str, statements: str
) -> None:
    others = {f"test_{name}.py": HEAD + BODIES[name] for name in ("large", "backward")}
    busy = HEAD + statements + BODIES["large"] + BODIES["backward"]
    ran = run_torch({"test_busy.py": busy, "test_busy_too.py": busy, **others}, mode=mode, gpus=2)
    assert set(ran.outcomes.values()) == {"passed"}, ran.complaints
    assert len(ran.records("end")) == len(ran.outcomes) >= 6


@pytest.mark.parametrize("mode", MODES)
def test_a_preloaded_module_that_has_threads_hangs_nobody(run_torch: Any, mode: str) -> None:
    files = {f"test_{name}.py": HEAD + "import busy\n" + BODIES[name] for name in ("large", "backward")}
    busy = HEAD + "".join(list(AT_IMPORT.values())[:3])
    ran = run_torch({"busy.py": busy, **files}, mode=mode, gpus=2, preload=["torch", "busy"])
    assert set(ran.outcomes.values()) == {"passed"}, ran.complaints
    assert len(ran.outcomes) == 2


SUITE = """\
import ctypes, os
import pytest, torch

@pytest.fixture(scope="session")
def device():
    return os.environ["CUDA_VISIBLE_DEVICES"]

@pytest.mark.parametrize("n", range(3))
def test_on_its_device(n, device, worker_id):
    assert device == os.environ["CUDA_VISIBLE_DEVICES"] == os.environ["GPUCI_GPUS"] == worker_id[2:]
    a = torch.full((200, 200), float(n), requires_grad=True)
    (a @ a).sum().backward()
    assert torch.all(a.grad == 400 * n)
"""
DIES = (
    "\ndef test_dies():\n    {}\n\ndef test_after(device, worker_id):\n    assert device == worker_id[2:]\n"
)


def test_a_normal_suite_on_eight_gpus_of_which_two_tests_die(run_torch: Any) -> None:
    files = {f"test_{number:02}.py": SUITE for number in range(16)}
    files["test_05.py"] += DIES.format("ctypes.string_at(0)")
    files["test_11.py"] += DIES.format("os._exit(0)")
    ran = run_torch(files, mode="normal", gpus=8)
    assert Counter(ran.outcomes.values()) == {"passed": 50, "failed": 2}, ran.complaints
    assert ran.tests["test_05.py::test_dies"].message == "killed by SIGSEGV"
    assert ran.tests["test_11.py::test_dies"].message == "the test process left with exit code 0"
    ends = Counter(record["nodeid"] for record in ran.records("end"))
    assert set(ends.values()) == {1}
    assert all(record["gpus"] == [record["slot"][2:]] for record in ran.records("end"))
