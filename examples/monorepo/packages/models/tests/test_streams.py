import asyncio

import pytest
from gpu_work import run_kernel


async def copy(rows: "list[int]") -> "list[int]":
    await asyncio.sleep(0)
    return list(rows)


@pytest.mark.skip(reason="this repository has no asyncio plugin")
async def test_copy_async() -> None:
    assert await copy([1]) == [1]


def test_copy() -> None:
    run_kernel(0.05)
    assert asyncio.run(copy([1, 2])) == [1, 2]
