"""SCENARIOS, filled: importing these modules is what registers them."""

from tests.e2e.harness import (
    scenarios,
    scenarios_again,
    scenarios_doors,
    scenarios_forgery,
    scenarios_image,
    scenarios_trusted,
    scenarios_uses,
)
from tests.e2e.harness.scenario import SCENARIOS

__all__ = [
    "SCENARIOS",
    "scenarios",
    "scenarios_again",
    "scenarios_doors",
    "scenarios_forgery",
    "scenarios_image",
    "scenarios_trusted",
    "scenarios_uses",
]
