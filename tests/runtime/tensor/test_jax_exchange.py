"""JAX and tensors: one memory where JAX can share it, all common dtypes, and JAX's arrays stay unwritten."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import tessera as ts
from tessera.errors import ResourceError

pytestmark = pytest.mark.peers

jax: Any = pytest.importorskip("jax")
jnp: Any = jax.numpy

NAMES = {
    ts.f32: "float32",
    ts.f16: "float16",
    ts.bf16: "bfloat16",
    ts.f8e4m3: "float8_e4m3fn",
    ts.f8e5m2: "float8_e5m2",
    ts.i32: "int32",
    ts.i16: "int16",
    ts.i8: "int8",
    ts.u8: "uint8",
    ts.u16: "uint16",
    ts.u32: "uint32",
    ts.bool_: "bool_",
}


@pytest.mark.parametrize("dtype", NAMES, ids=str)
def test_jax_reads_ours(dtype: ts.DType) -> None:
    x = ts.asarray([[1, 0, 1], [0, 1, 1]]).to(dtype)
    theirs = jax.dlpack.from_dlpack(x)
    assert theirs.dtype == getattr(jnp, NAMES[dtype])
    assert theirs.unsafe_buffer_pointer() == x.pointer
    assert theirs.astype(jnp.float32).tolist() == x.tolist()


@pytest.mark.quick(dtype=[ts.f32, ts.bf16, ts.bool_])
@pytest.mark.parametrize("dtype", NAMES, ids=str)
def test_we_read_jaxs(dtype: ts.DType) -> None:
    theirs = jnp.asarray([[1, 0, 1], [0, 1, 1]]).astype(getattr(jnp, NAMES[dtype]))
    for x in (ts.from_dlpack(theirs), ts.asarray(theirs), ts.asarray(theirs, copy=False)):
        assert x.dtype is dtype
        assert x.pointer == theirs.unsafe_buffer_pointer()
        assert x.tolist() == theirs.astype(jnp.float32).tolist()
        assert not x.writable
        with pytest.raises(ResourceError, match="read-only"):
            x[0, 0] = False
    copied = ts.asarray(theirs, copy=True)
    copied[0, 0] = False
    assert theirs.astype(jnp.float32).tolist()[0][0] == 1


def test_lifetimes() -> None:
    x = ts.asarray([1.0, 2.0, 3.0])
    storage = weakref.ref(x.numpy().base)
    theirs = jax.dlpack.from_dlpack(x)
    del x
    gc.collect()
    assert theirs.tolist() == [1.0, 2.0, 3.0]
    back = ts.from_dlpack(theirs)
    del theirs
    gc.collect()
    assert storage() is not None
    assert back.tolist() == [1.0, 2.0, 3.0]
    del back
    gc.collect()
    assert storage() is None


def test_jax_arrays_are_operands() -> None:
    x, y = ts.asarray([1.0, 2.0]), jnp.asarray([3.0, 4.0])
    for found in (x + y, y + x):
        assert type(found) is ts.Tensor
        assert found.tolist() == [4.0, 6.0]
    assert jnp.asarray(x).tolist() == [1.0, 2.0]


def test_what_jax_cannot_be_told() -> None:
    with pytest.raises(BufferError, match="read-only"):
        jax.dlpack.from_dlpack(ts.ones(3).broadcast_to(2, 3))
    with pytest.raises(BufferError, match="a byte per element"):
        jax.dlpack.from_dlpack(ts.ones(3, ts.i4))
