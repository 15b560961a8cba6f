"""The input `configuration`, which find-changed leaves for the other actions. Pure, standard library only."""

from __future__ import annotations

import json

from gpuci.config.document import from_document
from gpuci.config.model import Config
from gpuci.errors import ConfigError

AS_IT_IS = "pass the output `configuration` of find-changed as it is"
VARIABLE = {"GPUCI_CONFIGURATION": "the resolved configuration, as find-changed leaves it"}


def config_of(text: str) -> Config:
    """Raises ConfigError for anything but what find-changed left."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        what = "no JSON document" if text else "empty"
        raise ConfigError(f"the input configuration is {what}", then=AS_IT_IS) from error
    return from_document(document)
