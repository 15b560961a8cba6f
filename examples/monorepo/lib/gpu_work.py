"""Stands for work on a GPU: the devices are busy, the processor is not."""

import time


def run_kernel(seconds: float) -> None:
    """Keep the test's devices busy; long enough, and two tests on one device are sure to meet."""
    time.sleep(seconds)
