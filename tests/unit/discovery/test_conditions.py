"""Skip conditions -> GPUs."""

import pytest

from gpuci.discovery.conditions import gpus_of_condition
from gpuci.discovery.evaluate import Evaluator
from gpuci.source.facts import FileFacts
from gpuci.source.imports import ImportFinder
from gpuci.source.parse import parse_source

ALIASES = """
import torch
from torch import cuda
from torch.cuda import device_count
COUNT = torch.cuda.device_count()
FEW = COUNT < 4
HAS = torch.cuda.is_available()
NEED = 2
"""


class One:
    """A single file, m.py."""

    def __init__(self, source: str) -> None:
        self._facts = parse_source(source.encode())

    def facts(self, path: str) -> FileFacts | None:
        """The facts of the file."""
        return self._facts if path == "m.py" else None


def need(condition: str) -> int | None:
    """The GPUs of a condition in a file with ALIASES."""
    source = One(f"{ALIASES}\nCONDITION = f({condition})\n")
    evaluator = Evaluator(source, ImportFinder(lambda directory: frozenset()))
    module = evaluator.module("m.py")
    assert module is not None
    term = module.bindings["CONDITION"][0].value[2][0][1]
    return gpus_of_condition(evaluator, module, term)


@pytest.mark.parametrize(
    ("condition", "gpus"),
    [
        ("torch.cuda.device_count() < 4", 4),
        ("torch.cuda.device_count() <= 3", 4),
        ("4 > torch.cuda.device_count()", 4),
        ("3 >= torch.cuda.device_count()", 4),
        ("not torch.cuda.device_count() >= 4", 4),
        ("not (torch.cuda.device_count() > 3)", 4),
        ("torch.cuda.device_count() != 8", 8),
        ("torch.cuda.device_count() == 0", 1),
        ("cuda.device_count() < 2", 2),
        ("device_count() < 2", 2),
        ("COUNT < 2", 2),
        ("COUNT < NEED", 2),
        ("FEW", 4),
        ("not HAS", 1),
        ("not torch.cuda.is_available()", 1),
        ("not HAS or COUNT < 2", 2),
        ("not (HAS and COUNT >= 2)", 2),
        ("sys.platform == 'win32' or COUNT < 2", 2),
        ("'torch.cuda.device_count() < 2'", 2),
        ("torch.cuda.device_count() < 4 and x", None),
        ("torch.cuda.device_count() >= 4", None),
        ("torch.cuda.device_count() > 1", None),
        ("torch.cuda.is_available()", None),
        ("HAS", None),
        ("torch.xpu.is_available()", None),
        ("torch.cuda.device_count() < n", None),
        ("torch.cuda.device_count() < 0", None),
        ("torch.cuda.device_count() < 999999999", None),
        ("'not ( python'", None),
        ("x < 3", None),
        ("True", None),
    ],
)
def test_gpus_of_a_condition(condition: str, gpus: int | None) -> None:
    """What has to be there for the test not to be skipped."""
    assert need(condition) == gpus
