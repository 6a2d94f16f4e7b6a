"""Operators are compared by the interpreter, which is quick to start; a sample of them runs as machine code."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tessera import knobs


@pytest.fixture(autouse=True)
def _interpreter(request: pytest.FixtureRequest) -> Generator[None]:
    with knobs.backend.using("cpu" if "native" in request.node.name else "interpreter"):
        yield
