"""Devices: names, the default device, backends by registration and entry point, tensors that the host cannot reach."""

from __future__ import annotations

import ctypes
import gc
import pickle
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tessera as ts
from tessera.errors import DeviceError
from tessera.runtime.device import device as devices
from tessera.runtime.device.device import CPU, Buffer, Device, device_of_dlpack


class Token:
    """What a distant buffer keeps alive."""


class DistantBackend(ts.DeviceBackend):
    """Memory at unmapped addresses: the host crashes if it ever touches them."""

    dlpack_type = 12
    blocks: ClassVar[dict[int, bytearray]] = {}
    next_address: ClassVar[int] = 1 << 56
    streams: ClassVar[list[int | None]] = []

    @property
    def name(self) -> str:
        return "a distant machine"

    def is_available(self) -> bool:
        return self.device.index < 2

    def allocate(self, nbytes: int, alignment: int = 64) -> Buffer:
        pointer = DistantBackend.next_address
        DistantBackend.next_address += (nbytes // 256 + 1) * 256
        self.blocks[pointer] = bytearray(nbytes)
        token = Token()
        weakref.finalize(token, self.blocks.pop, pointer)
        return Buffer(pointer, nbytes, self.device, token)

    def _find(self, pointer: int, nbytes: int) -> ctypes.Array[ctypes.c_char]:
        for base, block in self.blocks.items():
            if base <= pointer and pointer + nbytes <= base + len(block):
                return (ctypes.c_char * nbytes).from_buffer(block, pointer - base)
        raise AssertionError("a copy outside of every allocation")

    def copy_from_host(self, target: int, source: int, nbytes: int) -> None:
        ctypes.memmove(self._find(target, nbytes), source, nbytes)

    def copy_to_host(self, target: int, source: int, nbytes: int) -> None:
        ctypes.memmove(target, self._find(source, nbytes), nbytes)

    def copy_from_device(self, target: int, origin: ts.Device, source: int, nbytes: int) -> None:
        ctypes.memmove(self._find(target, nbytes), self._find(source, nbytes), nbytes)

    def synchronize(self) -> None:
        pass

    def export_to_stream(self, stream: int | None) -> None:
        self.streams.append(stream)

    def import_stream(self) -> int | None:
        return 7


ts.register_backend("distant", DistantBackend)


def test_names() -> None:
    assert ts.device("cpu") is CPU is ts.device("cpu:0")
    assert str(CPU) == "cpu"
    assert repr(ts.device("cuda:3")) == "device('cuda:3')"
    assert ts.device("cuda") is ts.device("cuda:0")
    assert ts.device(CPU) is CPU
    assert pickle.loads(pickle.dumps(ts.device("cuda:1"))) is ts.device("cuda:1")
    for wrong in ("", "cuda:", "cuda:x", "CPU", "cpu 0", "cuda:-1"):
        with pytest.raises(DeviceError, match="expected a device such as"):
            ts.device(wrong)
    with pytest.raises(DeviceError, match="no kind of device called 'gpu'"):
        ts.device("gpu")


def test_backends_that_come_with_the_package_load_when_a_device_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def load() -> type[ts.DeviceBackend]:
        loaded.append("provided")
        return DistantBackend

    monkeypatch.setattr(devices, "_provided", {"provided": load})
    monkeypatch.setattr(devices, "_factories", {})
    monkeypatch.setattr(Device, "_interned", {})
    assert devices.device("provided:1").kind == "provided"
    assert loaded == []
    assert isinstance(devices.device("provided:1").backend, DistantBackend)
    assert loaded == ["provided"]
    with pytest.raises(DeviceError, match="DistantBackend takes no memory by an array interface"):
        devices.provided_backend("provided").import_array(np.ones(2))
    with pytest.raises(AttributeError, match="no array interface describes memory of provided:1"):
        devices.device("provided:1").backend.export_array(np.ones(2))


def test_the_default_device_nests_and_is_per_thread() -> None:
    assert ts.default_device() is CPU
    seen: list[ts.Device] = []
    with ts.device("distant:1"):
        assert ts.zeros(2).device is ts.device("distant:1")
        with ts.device("cpu"):
            assert ts.zeros(2).device is CPU
        assert ts.asarray([1.0]).device is ts.device("distant:1")
        assert ts.asarray(np.ones(2)).device is CPU
        assert ts.zeros(2, device="cpu").device is CPU
        worker = threading.Thread(target=lambda: seen.append(ts.default_device()))
        worker.start()
        worker.join()
    assert seen == [CPU]
    assert ts.default_device() is CPU
    with pytest.raises(ZeroDivisionError), ts.device("distant"):
        _ = 1 // 0
    assert ts.default_device() is CPU


def test_devices_that_cannot_be_used() -> None:
    x = ts.ones(2)
    far = ts.Device("far")
    for ask in (lambda: x.to(far), lambda: ts.zeros(2, device=far), far.__enter__):
        with pytest.raises(DeviceError, match="no backend serves devices of kind 'far'") as caught:
            ask()
        assert "register_backend" in str(caught.value.hint)
    assert ts.default_device() is CPU
    with pytest.raises(DeviceError, match="not available"):
        x.to("distant:2")
    with pytest.raises(DeviceError, match="not available"):
        x.to("cpu:1")


class OtherBackend(DistantBackend):
    pass


def test_a_kind_is_registered_once() -> None:
    ts.register_backend("distant", DistantBackend)
    with pytest.raises(DeviceError, match="served by"):
        ts.register_backend("distant", OtherBackend)


@given(st.data(), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
def test_distant_tensors_have_the_same_views(data: st.DataObject, shape: tuple[int, ...]) -> None:
    near = ts.arange(int(np.prod(shape))).reshape(shape).to(data.draw(st.sampled_from((ts.bf16, ts.i64, ts.u4))))
    far = near.to("distant")
    order = data.draw(st.permutations(range(len(shape))))
    key = data.draw(hnp.basic_indices(tuple(shape[axis] for axis in order), allow_newaxis=True))
    near_view, far_view = near.permute(*order)[key], far.permute(*order)[key]
    assert far_view.shape == near_view.shape
    assert far_view.strides == near_view.strides
    assert far_view.buffer is far.buffer
    assert far_view.cpu().tolist() == near_view.tolist()
    assert far_view.copy().cpu().tolist() == near_view.tolist()
    assert far_view.reshape(-1).cpu().tolist() == near_view.reshape(-1).tolist()
    assert far_view.to("distant:1").to("cpu").tolist() == near_view.tolist()
    assert far.broadcast_to(2, *shape).cpu().tolist() == [near.tolist()] * 2


def test_distant_tensors_know_where_they_are() -> None:
    x = ts.asarray([[1.0, 2.0], [3.0, 4.0]], device="distant:1")
    assert x.meta.device is x.device is ts.device("distant:1")
    assert x.meta is not x.cpu().meta
    assert x.meta.alignment == 64
    assert x.to("distant:1") is x
    assert x.to("distant:1", copy=True).pointer != x.pointer
    assert "device=distant:1" in repr(x)
    assert "3., 4." in repr(x)
    assert ts.empty((3, 2), device="distant").shape == (3, 2)
    assert ts.zeros_like(x).device is x.device
    assert x.as_strided((2,), (3,)).cpu().tolist() == [1.0, 4.0]
    copy = pickle.loads(pickle.dumps(x))
    assert copy.device is x.device
    assert copy.cpu().tolist() == x.cpu().tolist()


def test_the_host_does_not_touch_distant_memory() -> None:
    x = ts.ones((2, 2), device="distant")
    attempts = (
        x.numpy,
        lambda: x + 1,
        lambda: 1 - x,
        lambda: x == ts.ones((2, 2)),
        lambda: ts.ones((2, 2)) * x,
        lambda: -x,
        lambda: x[[0, 1]],
        lambda: x[x.cpu() > 0],
        lambda: x.__setitem__(0, 1.0),
        lambda: x.to(ts.bf16),
        lambda: np.asarray(x),
    )
    for attempt in attempts:
        with pytest.raises(DeviceError, match="cannot be read by the host") as caught:
            attempt()
        assert ".cpu()" in str(caught.value.hint)


def test_values_are_brought_over() -> None:
    x = ts.asarray([[1.5, 2.0]], device="distant")
    assert x.tolist() == [[1.5, 2.0]]
    assert x[0, 1].item() == float(x[0, 1]) == 2.0
    assert bool(x[0, 0])


def test_distant_memory_is_freed() -> None:
    gc.collect()
    before = len(DistantBackend.blocks)
    x = ts.ones((4, 4), device="distant")
    view = x[1:].T
    shared = ts.from_dlpack(view)
    assert len(DistantBackend.blocks) == before + 1
    del x, view
    assert shared.cpu().tolist() == [[1.0] * 3] * 4
    del shared
    gc.collect()
    assert len(DistantBackend.blocks) == before


def test_distant_memory_through_dlpack() -> None:
    x = ts.asarray([1, 2, 3], device="distant:1")
    assert x.__dlpack_device__() == (12, 1)
    DistantBackend.streams.clear()
    y = ts.from_dlpack(x)
    assert DistantBackend.streams == [7]
    assert y.device is x.device
    assert y.pointer == x.pointer
    assert ts.asarray(y).cpu().tolist() == [1, 2, 3]
    near = np.from_dlpack(OnTheHost(x))
    assert near.tolist() == [1, 2, 3]
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(DeviceError, match="DLPack type 99"):
        device_of_dlpack(99, 0)


class OnTheHost:
    """Asks a tensor for a capsule on the CPU."""

    def __init__(self, tensor: ts.Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **options: object) -> Any:
        return self.tensor.__dlpack__(dl_device=(1, 0), max_version=(1, 0))

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_the_cpu_backend() -> None:
    backend = CPU.backend
    assert backend.name
    assert backend.import_stream() is None
    backend.synchronize()
    a, b = backend.allocate(100), backend.allocate(100, alignment=32)
    assert a.pointer % 64 == 0
    assert "100 bytes" in repr(a)
    source = np.arange(100, dtype=np.uint8)
    backend.copy_from_host(a.pointer, source.ctypes.data, 100)
    backend.copy_from_device(b.pointer, CPU, a.pointer, 100)
    found = np.zeros(100, np.uint8)
    backend.copy_to_host(found.ctypes.data, b.pointer, 100)
    np.testing.assert_array_equal(found, source)
    for call in (lambda: backend.allocate(8, alignment=128), lambda: backend.export_to_stream(1)):
        with pytest.raises(DeviceError):
            call()


def test_a_package_brings_a_backend_by_entry_point(tmp_path: Path) -> None:
    information = tmp_path / "elsewhere-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[tessera.devices]\nelsewhere = elsewhere_backend:Backend\n")
    (tmp_path / "elsewhere_backend.py").write_text(
        "from tessera.runtime.device.device import CpuBackend\nclass Backend(CpuBackend):\n    dlpack_type = 14\n"
    )
    code = (
        "import sys, tessera as ts; assert 'elsewhere_backend' not in sys.modules\n"
        "x = ts.ones(3).to('elsewhere:0'); print(x.device, (x + x).tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "elsewhere:0 [2.0, 2.0, 2.0]\n"
