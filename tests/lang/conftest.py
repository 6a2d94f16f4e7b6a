"""What tests of the language share: a fixture that runs programs in the reference interpreter, compiling nothing."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tessera import knobs


@pytest.fixture(name="interpreted")
def _interpreted() -> Generator[None]:
    with knobs.interpret.using(True):
        yield
