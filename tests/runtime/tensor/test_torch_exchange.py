"""torch and tensors: both read and write one memory, for all common dtypes, and either may go first."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import tessera as ts
from tessera.errors import ResourceError

pytestmark = pytest.mark.peers

torch: Any = pytest.importorskip("torch")

NAMES = {
    ts.f64: "float64",
    ts.f32: "float32",
    ts.f16: "float16",
    ts.bf16: "bfloat16",
    ts.f8e4m3: "float8_e4m3fn",
    ts.f8e5m2: "float8_e5m2",
    ts.i64: "int64",
    ts.i32: "int32",
    ts.i16: "int16",
    ts.i8: "int8",
    ts.u8: "uint8",
    ts.u16: "uint16",
    ts.u32: "uint32",
    ts.u64: "uint64",
    ts.bool_: "bool",
}


@pytest.mark.parametrize("dtype", NAMES, ids=str)
def test_torch_reads_and_writes_ours(dtype: ts.DType) -> None:
    x = ts.asarray([[1, 0, 1], [0, 1, 1]]).to(dtype)
    for ours, theirs in (
        (x, torch.from_dlpack(x)),
        (x.T, torch.from_dlpack(x.T)),
        (x[:, 1:], torch.from_dlpack(x[:, 1:])),
    ):
        assert theirs.dtype is getattr(torch, NAMES[dtype])
        assert theirs.data_ptr() == ours.pointer
        assert tuple(theirs.shape) == ours.shape
        assert theirs.stride() == ours.strides
        assert theirs.to(torch.float64).tolist() == ours.tolist()
    theirs = torch.from_dlpack(x)
    theirs[0, 1] = 1
    assert x.tolist() == [[1, 1, 1], [0, 1, 1]]
    x[1, 0] = True
    assert theirs.to(torch.float64).tolist() == [[1, 1, 1], [1, 1, 1]]


@pytest.mark.parametrize("dtype", NAMES, ids=str)
def test_we_read_and_write_torchs(dtype: ts.DType) -> None:
    theirs = torch.tensor([[1, 0, 1], [0, 1, 1]]).to(getattr(torch, NAMES[dtype]))
    for ours, source in ((ts.from_dlpack(theirs), theirs), (ts.asarray(theirs.T), theirs.T)):
        assert ours.dtype is dtype
        assert ours.pointer == source.data_ptr()
        assert ours.strides == source.stride()
        assert ours.tolist() == source.to(torch.float64).tolist()
        assert ours.writable
    ours = ts.asarray(theirs, copy=False)
    ours[0, 1] = True
    assert theirs.to(torch.float64).tolist() == [[1, 1, 1], [0, 1, 1]]


def test_ours_lives_as_long_as_torch_needs_it() -> None:
    x = ts.asarray([1.0, 2.0, 3.0])
    storage = weakref.ref(x.numpy().base)
    theirs = torch.from_dlpack(x)
    del x
    gc.collect()
    assert theirs.tolist() == [1.0, 2.0, 3.0]
    view = theirs[1:]
    del theirs
    gc.collect()
    assert storage() is not None
    del view
    gc.collect()
    assert storage() is None


def test_torchs_lives_as_long_as_we_need_it() -> None:
    theirs = torch.arange(4.0)
    x = ts.from_dlpack(theirs)
    address = theirs.data_ptr()
    del theirs
    gc.collect()
    view = x[2:]
    del x
    gc.collect()
    assert view.pointer == address + 8
    assert view.tolist() == [2.0, 3.0]


def test_nothing_leaks() -> None:
    x = ts.ones(1 << 16)
    for _ in range(2000):
        torch.from_dlpack(x)
        ts.from_dlpack(torch.from_dlpack(x))
    storage = weakref.ref(x.numpy().base)
    del x
    gc.collect()
    assert storage() is None


def test_torch_tensors_are_operands() -> None:
    x, y = ts.asarray([1.0, 2.0]), torch.tensor([3.0, 4.0])
    for found in (x + y, y + x):
        assert type(found) is ts.Tensor
        assert found.tolist() == [4.0, 6.0]
    assert (y - x).tolist() == [2.0, 2.0]
    assert x[torch.tensor([1])].tolist() == [2.0]
    x[0] = torch.tensor(9.0)
    assert x.tolist() == [9.0, 2.0]
    bits = ts.ones(2, ts.bf16) * torch.ones(2, dtype=torch.bfloat16)
    assert bits.dtype is ts.bf16


def test_torch_takes_tensors_without_being_asked() -> None:
    x = ts.asarray([1.0, 2.0])
    assert torch.as_tensor(x).data_ptr() == x.pointer
    assert torch.tensor(x).tolist() == [1.0, 2.0]


def test_edges() -> None:
    assert torch.from_dlpack(ts.asarray(3.0)).item() == 3.0
    assert ts.from_dlpack(torch.tensor(3.0)).item() == 3.0
    assert tuple(torch.from_dlpack(ts.zeros((0, 3))).shape) == (0, 3)
    assert ts.from_dlpack(torch.zeros(2, 0)).shape == (2, 0)
    with pytest.raises(ResourceError, match="require gradient"):
        ts.asarray(torch.ones(2, requires_grad=True))
    with pytest.raises(BufferError, match="a byte per element"):
        torch.from_dlpack(ts.ones(3, ts.i4))
    packed = torch.zeros(4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    with pytest.raises(ResourceError, match="2 lanes"):
        ts.from_dlpack(packed)
    with pytest.raises(ResourceError, match="code 5"):
        ts.from_dlpack(torch.zeros(2, dtype=torch.complex64))
