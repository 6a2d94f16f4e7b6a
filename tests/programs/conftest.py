"""What tests of programs share: the devices that each of them runs on, and a GPU that is imitated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from imitated_gpu import Imitation, imitate

from tessera import knobs
from tessera.errors import DeviceError
from tessera.runtime.cuda import driver


@pytest.fixture(name="device", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def _device(request: pytest.FixtureRequest) -> str:
    return request.param


def _has_gpu() -> bool:
    try:
        return driver.device_count() > 0
    except DeviceError:
        return False


@pytest.fixture(name="gpu")
def _gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Imitation]:
    if _has_gpu():
        pytest.skip("there is a GPU, and the tests marked gpu use it; an imitation would get into its way")
    with knobs.cache_dir.using(tmp_path):
        yield imitate(monkeypatch)
