"""Whether a process may be forked: threads, GPU runtimes, hooks of pytest."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gpuci_node.worker import runtimes, safety

SCRIPTS = str(Path(__file__).resolve().parents[2] / "scripts")
ASK = "\nimport json\nfrom gpuci_node.worker import safety\nprint(json.dumps(safety.unsafe()))\n"
HOLD = "import threading\nEVENT = threading.Event()\n"


def ask(code: str, python: str = sys.executable, **env: str) -> list[str]:
    """What a process says of itself that ran `code`."""
    ran = subprocess.run(
        [python, "-W", "error", "-c", textwrap.dedent(code) + ASK],
        env={**os.environ, "PYTHONPATH": SCRIPTS, **env},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    reasons: list[str] = json.loads(ran.stdout.splitlines()[-1])
    return reasons


@pytest.mark.parametrize(
    ("code", "words"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param(
            "import threading; t = threading.Thread(target=int); t.start(); t.join()", [], id="ended"
        ),
        pytest.param(
            HOLD + "threading.Thread(target=EVENT.wait, name='waits', daemon=True).start()",
            ["waits", "threading.py"],
            id="a thread of the standard library's code",
        ),
        pytest.param(
            HOLD + "def run(): EVENT.wait()\nthreading.Thread(target=run, name='mine', daemon=True).start()",
            ["mine", "<string>"],
            id="a thread of one's own code",
        ),
        pytest.param(
            HOLD + "class T(threading.Thread):\n    def run(self): EVENT.wait()\nT(daemon=True).start()",
            ["<string>"],
            id="a class with run",
        ),
        pytest.param(
            HOLD + "import functools\nf = functools.partial(EVENT.wait, 60)\n"
            "threading.Thread(target=f, daemon=True).start()",
            ["threading.py"],
            id="functools.partial",
        ),
        pytest.param(
            HOLD + "import _thread\nR = threading.Event()\ndef run(): R.set(); EVENT.wait()\n"
            "_thread.start_new_thread(run, ())\nR.wait()",
            ["a Python thread runs in"],
            id="a thread that threading doesn't know",
        ),
    ],
)
def test_python_threads(test_python: str, code: str, words: list[str]) -> None:
    reasons = ask(code, test_python)
    assert len(reasons) == bool(words)
    assert all(word in reasons[0] for word in words)


def test_asking_leaves_no_child_and_no_descriptor() -> None:
    code = "import os; before = os.listdir('/proc/self/fd')\n"
    code += HOLD + "from gpuci_node.worker import safety\nsafety._trial_fork()\n"
    code += "assert os.listdir('/proc/self/fd') == before\n"
    code += "try:\n    os.waitpid(-1, 0)\nexcept ChildProcessError: pass\nelse: raise SystemExit('a child')"
    assert ask(code) == []


def test_trial_works_where_children_are_not_waited_for() -> None:
    code = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
    assert ask(code + "from gpuci_node.worker import safety\nassert safety._trial_fork() is None") == []


def test_trial_that_hangs_is_found_and_ended() -> None:
    code = """
        import os, time
        from gpuci_node.worker import safety
        safety._TRIAL_SECONDS = 0.2
        os.register_at_fork(after_in_child=lambda: time.sleep(600))
        assert safety._trial_fork() == "a forked copy hangs"
    """
    assert ask(code) == []


def test_trial_that_is_refused_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    assert safety._trial_fork() == "this process can't be forked: [Errno 11] Resource temporarily unavailable"


# -- threads of C code -----------------------------------------------------------------------------

POOL = """
    #include <pthread.h>
    #include <unistd.h>
    static pthread_t thread;
    static void *wait_long(void *nothing) { for (;;) pause(); }
    static void begin(void) { pthread_create(&thread, 0, wait_long, 0); }
    static void end(void) { pthread_cancel(thread); pthread_join(thread, 0); }
    void start(int stops) { begin(); if (stops) pthread_atfork(end, 0, 0); }
"""
DRIVER = """
    int initialised = 0;
    int cuInit(unsigned flags) { initialised = 1; return 0; }
    int cuDeviceGetCount(int *count) { *count = 1; return initialised ? 0 : %d; }
"""


def build(tmp_path: Path, name: str, source: str, *options: str) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc) on this machine")
    (tmp_path / "source.c").write_text(textwrap.dedent(source))
    library = tmp_path / name
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(tmp_path / "source.c"), *options]
    subprocess.run(command, check=True)
    return library


@pytest.mark.parametrize(("stops", "survives"), [(1, False), (0, True)], ids=["stops at a fork", "goes on"])
def test_threads_of_c_code_are_tried(tmp_path: Path, test_python: str, stops: int, survives: bool) -> None:
    library = build(tmp_path, "libomp-fake.so", POOL, "-lpthread")
    code = f"import ctypes; ctypes.CDLL({str(library)!r}).start({stops})"
    reasons = ask(code, test_python)
    assert [("a thread of C code runs" in reason, "libomp-fake.so" in reason) for reason in reasons] == (
        [(True, True)] if survives else []
    )


OPENMP = "void work(void) { int i, s = 0;\n#pragma omp parallel for num_threads(2) reduction(+:s)\n\
    for (i = 0; i < 100; i++) s += i; }"


def test_pool_of_gnu_openmp_is_found(tmp_path: Path) -> None:
    """A copy of a process with such a pool hangs in its first parallel region (GCC bug 60035)."""
    library = build(tmp_path, "libwork.so", OPENMP, "-fopenmp")
    load = f"import ctypes; work = ctypes.CDLL({str(library)!r}).work\n"
    assert ask(load) == []
    [reason] = ask(load + "work()")
    assert "libgomp" in reason


# What the copies then do must end; SIGALRM would end a copy that hangs.
COPIES = """
import os, signal
def copy():
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        work()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
copy(); copy()
"""


def with_libraries(module: str) -> str:
    """The Python of `scripts/test --torch`, if it has `module`."""
    python = os.environ.get("GPUCI_TORCH_PYTHON")
    if not python:
        pytest.skip("GPUCI_TORCH_PYTHON names no Python with torch: scripts/test --torch makes one")
    if subprocess.run([python, "-c", "import " + module], capture_output=True, timeout=120).returncode != 0:
        pytest.skip(f"{python} has no {module}")
    return python


def test_openblas_is_no_reason() -> None:
    code = """
        import numpy
        a = numpy.ones((600, 600))
        def work(): a @ a
        work()
    """
    python = with_libraries("numpy")
    assert ask(code, python, OPENBLAS_NUM_THREADS="2") == []
    assert ask(textwrap.dedent(code) + ASK + COPIES, python, OPENBLAS_NUM_THREADS="2") == []


def test_torch_is_no_reason_before_its_pool_has_started() -> None:
    code = """
        import torch
        def work(): torch.ones(1000, 1000).exp()
    """
    python = with_libraries("torch")
    assert ask(code, python, OMP_NUM_THREADS="2") == []
    assert ask(textwrap.dedent(code) + ASK + COPIES, python, OMP_NUM_THREADS="2") == []
    [reason] = ask(textwrap.dedent(code) + "work()", python, OMP_NUM_THREADS="2")
    assert "libgomp" in reason


# -- GPUs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "call", "reasons"),
    [
        pytest.param(3, "", [], id="loaded"),
        pytest.param(34, "", [], id="a stub"),
        pytest.param(3, "driver.cuInit(0)", ["the CUDA driver is initialised"], id="initialised"),
        pytest.param(100, "", ["the CUDA driver is initialised"], id="says something else"),
    ],
)
def test_cuda_driver(tmp_path: Path, test_python: str, before: int, call: str, reasons: list[str]) -> None:
    library = build(tmp_path, "libcuda.so.1", DRIVER % before, "-Wl,-soname,libcuda.so.1")
    code = f"import ctypes; driver = ctypes.CDLL({str(library)!r})\n{call}"
    assert ask(code, test_python) == reasons


def test_cuda_driver_that_does_not_answer(tmp_path: Path) -> None:
    library = build(tmp_path, "libcuda.so.1", "int other;", "-Wl,-soname,libcuda.so.1")
    code = f"import ctypes; driver = ctypes.CDLL({str(library)!r})"
    assert ask(code) == ["the CUDA driver is initialised"]


@pytest.mark.parametrize("initialised", [True, False, None], ids=["initialised", "not", "half imported"])
def test_torch_is_asked(monkeypatch: pytest.MonkeyPatch, initialised: bool | None) -> None:
    torch: Any = ModuleType("torch")
    if initialised is not None:
        torch.cuda = ModuleType("torch.cuda")
        torch.cuda.is_initialized = lambda: initialised
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert runtimes.initialised() == (["torch has initialised CUDA"] if initialised else [])


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([], []),
        (["/dev/null", "pipe:[1]", "/home/nvidia-uvm"], []),
        (["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia7"], []),  # NVML
        (["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm"], ["/dev/nvidia-uvm is open"]),
        (["/dev/nvidia-uvm (deleted)"], ["/dev/nvidia-uvm (deleted) is open"]),
        (["/dev/nvidia-modeset"], ["/dev/nvidia-modeset is open"]),
        (["/dev/dri/renderD128"], []),
        (["/dev/kfd", "/dev/dri/renderD128"], ["/dev/kfd is open"]),
    ],
)
def test_devices(files: list[str], said: list[str]) -> None:
    assert runtimes.open_devices(files) == said


# -- hooks -----------------------------------------------------------------------------------------

LIST_HOOKS = """
import json, sys
import pytest
from gpuci_node.worker import safety

tree, out = sys.argv[1:3]

class Plugin:
    def pytest_collection_finish(self, session):
        with open(out, "w") as stream:
            json.dump(safety.unsafe_hooks(session.config.pluginmanager, tree), stream)

pytest.main([tree, "--collect-only", "-q", "-p", "no:cacheprovider", *sys.argv[3:]], plugins=[Plugin()])
"""
WRAPPERS = "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef {}(): yield\n"
FINISH = "def pytest_sessionfinish(session): pass\n"


def hooks(
    tmp_path: Path, python: str, files: dict[str, str], *args: str, **env: str
) -> list[tuple[str, str | None]]:
    """(reason, path below the tree) of each finding."""
    tree = tmp_path / "tree"
    for name, text in {"pytest.ini": "[pytest]\n", "test_a.py": "def test_a(): pass\n", **files}.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    out = tmp_path / "hooks.json"
    command = [python, "-c", LIST_HOOKS, str(tree), str(out), *args]
    path = os.pathsep.join([SCRIPTS, str(tmp_path)])
    ran = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": path, **env},
        cwd=tree,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert out.exists(), ran.stdout + ran.stderr
    found = json.loads(out.read_text())
    return [(reason, file and os.path.relpath(file, tree.resolve())) for reason, file in found]


@pytest.mark.parametrize(
    ("files", "found"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({"conftest.py": "def pytest_configure(config): pass"}, [], id="only a beginning"),
        pytest.param(
            {"conftest.py": FINISH}, [("implements pytest_sessionfinish", "conftest.py")], id="conftest"
        ),
        pytest.param(
            {"conftest.py": "def pytest_unconfigure(config): pass"},
            [("implements pytest_unconfigure", "conftest.py")],
            id="unconfigure",
        ),
        pytest.param(
            {
                "a/conftest.py": FINISH,
                "b/conftest.py": FINISH,
                "a/test_b.py": "def test(): pass",
                "b/test_c.py": "def test(): pass",
            },
            [
                ("implements pytest_sessionfinish", "a/conftest.py"),
                ("implements pytest_sessionfinish", "b/conftest.py"),
            ],
            id="two conftests of one name",
        ),
        pytest.param(
            {"conftest.py": "pytest_plugins = 'mine'", "mine.py": FINISH},
            [("implements pytest_sessionfinish", "mine.py")],
            id="a plugin of the tree",
        ),
        pytest.param(
            {"conftest.py": WRAPPERS.format("pytest_runtestloop")},
            [("wraps pytest_runtestloop", "conftest.py")],
            id="a wrapper of the loop",
        ),
        pytest.param(
            {"conftest.py": WRAPPERS.format("pytest_collection")},
            [("wraps pytest_collection", "conftest.py")],
            id="a wrapper of the collection",
        ),
        pytest.param(
            {"conftest.py": WRAPPERS.format("pytest_runtest_protocol")}, [], id="a wrapper of a test"
        ),
        pytest.param(
            {"conftest.py": "def pytest_runtestloop(session): pass\n"}, [], id="before the loop, no end"
        ),
        pytest.param(
            {"conftest.py": "class P:\n    def pytest_sessionfinish(self): pass\n"
             "def pytest_configure(config): config.pluginmanager.register(P())"},
            [("implements pytest_sessionfinish", "conftest.py")],
            id="an object",
        ),
    ],
)  # fmt: skip
def test_hooks_of_the_tree(
    tmp_path: Path, test_python: str, files: dict[str, str], found: list[tuple[str, str]]
) -> None:
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    assert sorted(hooks(tmp_path, test_python, files, **env)) == found


def test_hook_of_an_unknown_plugin_blames_no_file(tmp_path: Path, test_python: str) -> None:
    (tmp_path / "installed.py").write_text(FINISH)
    found = hooks(tmp_path, test_python, {}, "-p", "installed", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert found == [("installed implements pytest_sessionfinish", None)]


def test_wrapper_of_an_unknown_plugin_blames_no_file(tmp_path: Path, test_python: str) -> None:
    (tmp_path / "installed.py").write_text(WRAPPERS.format("pytest_cmdline_main"))
    found = hooks(tmp_path, test_python, {}, "-p", "installed", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert found == [("installed wraps pytest_cmdline_main", None)]


def test_wrapper_of_the_new_kind(tmp_path: Path, test_python: str) -> None:
    ran = subprocess.run(
        [test_python, "-c", "import pluggy; pluggy.HookimplMarker('x')(wrapper=True)"], capture_output=True
    )
    if ran.returncode != 0:
        pytest.skip("the pluggy beside the pytest under test knows no wrapper=True (before 1.2)")
    files = {"conftest.py": WRAPPERS.format("pytest_runtestloop").replace("hookwrapper", "wrapper")}
    found = hooks(tmp_path, test_python, files, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert found == [("wraps pytest_runtestloop", "conftest.py")]


def test_installed_plugins_are_known_to_be_harmless(tmp_path: Path, test_python: str) -> None:
    """As they are beside the pytest under test: asyncio, cov, rerunfailures, timeout, xdist in the newest."""
    assert hooks(tmp_path, test_python, {}) == []


def test_coverage_that_measures(tmp_path: Path, test_python: str) -> None:
    ran = subprocess.run([test_python, "-c", "import pytest_cov"], capture_output=True, timeout=60)
    if ran.returncode != 0:
        pytest.skip("pytest-cov is not installed beside the pytest under test")
    assert hooks(tmp_path, test_python, {}, "--cov") == [("pytest-cov measures", None)]


def test_describe_names_thread_and_file() -> None:
    thread = threading.Thread(target=ask, name="asks")
    assert safety.describe(thread) == f"asks ({__file__})"
    assert safety.describe(threading.Thread(target=len, name="c")) == "c (unknown)"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("tree/test_a.py", "tree/test_a.py"),
        ("tree/sub/../test_a.py", "tree/test_a.py"),
        ("link/test_a.py", "tree/test_a.py"),
        ("tree/gone.py", None),
        ("tree/code.pyz/module.py", None),
        ("tree/.venv/site-packages/lib.py", None),
        ("tree/dist-packages/lib.py", None),
        ("treehouse/test_a.py", None),
        ("tree", None),
    ],
)
def test_file_of_the_tree(tmp_path: Path, name: str, found: str | None) -> None:
    installed = ("tree/.venv/site-packages/lib.py", "tree/dist-packages/lib.py")
    for file in ("tree/test_a.py", "tree/sub/b.py", "tree/code.pyz", "treehouse/test_a.py", *installed):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("")
    (tmp_path / "link").symlink_to("tree")
    real = tmp_path.resolve()
    assert safety.tree_file(str(tmp_path / name), str(real / "tree")) == (found and str(real / found))


def test_code_without_a_file_is_not_of_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "<string>").write_text("")
    assert safety.tree_file("<string>", str(tmp_path.resolve())) is None
