"""The engine of the API for users: a runtime that opens models."""

from __future__ import annotations

import os
from typing import Any

from ._model import Model
from ._runtime import Runtime


class Engine(Runtime):
    """The backends of this machine and the choice between them, `bitnet_runtime` in bitnet.h.

    Arguments are those of bitnet_runtime_options, by the same names. `log` is called with a level of
    `logging` and a text for each message of the library, from any thread; it must not use objects of
    bitnet. Without it messages go to the logger "bitnet".
    """

    def __enter__(self) -> "Engine":
        return self

    def open_model(self, path: str | os.PathLike[str], **options: Any) -> Model:
        """Model(path, engine=self, ...)"""
        return Model(path, engine=self, **options)
