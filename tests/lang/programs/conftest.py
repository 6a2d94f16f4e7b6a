"""What tests of programs share: the devices that each of them runs on."""

from __future__ import annotations

import pytest


@pytest.fixture(name="device", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def _device(request: pytest.FixtureRequest) -> str:
    return request.param
