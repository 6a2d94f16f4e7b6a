"""Launches on a GPU, as far as they go without one: plans as text, params blocks, tensor maps, gathers."""

from __future__ import annotations

import ctypes
import json
import math
import struct
from typing import Any

import numpy as np
import pytest
from cuda_kernels import CHECKED, COPY, SCALE, TALLY, TILE, TILE_COPY, ptx
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tessera as ts
from tessera import bf16, f32
from tessera.compiler.launch_plan import (
    PARTS,
    SWIZZLES,
    ArrayArgument,
    DeviceLaunch,
    MapAxis,
    NumberArgument,
    Plan,
    TensorMap,
)
from tessera.dtypes.types import ALL
from tessera.errors import DtypeError, ShapeError
from tessera.runtime.cuda import gather, tensor_maps
from tessera.runtime.cuda.launching import Geometry, Params, arguments_of
from tessera.runtime.cuda.modules import target_of
from tessera.targets.cuda.ptx.assembler import assemble

NUMBERS = st.integers(0, 1 << 20)
AXES = st.builds(MapAxis, st.integers(0, 4), st.sampled_from(PARTS), st.integers(1, 256))
MAPS = st.builds(
    TensorMap,
    NUMBERS,
    st.integers(0, 9),
    st.lists(AXES, max_size=5).map(tuple),
    st.lists(st.integers(1, 256), max_size=5).map(tuple),
    st.sampled_from(SWIZZLES),
)
LAUNCHES = st.builds(
    DeviceLaunch,
    NUMBERS,
    NUMBERS,
    st.integers(1, 16),
    st.integers(0, 4),
    st.lists(MAPS, max_size=3).map(tuple),
    NUMBERS,
    st.integers(-1, 99),
    st.integers(-1, 99),
    NUMBERS,
)


@given(LAUNCHES, NUMBERS)
def test_plans_for_gpus_are_read_back_as_they_were_written(launch: DeviceLaunch, nbytes: int) -> None:
    plan = Plan("p", (), 0, (1,), 0, 1, (), device=launch, block_bytes=nbytes)
    assert Plan.decoded(json.loads(json.dumps(plan.encoded()))) == plan


@pytest.mark.parametrize(
    ("launch", "instances", "expected"),
    [
        (DeviceLaunch(128, 0), 0, 0),
        (DeviceLaunch(128, 0), 1000, 1000),
        (DeviceLaunch(128, 0, cluster=2), 7, 8),
        (DeviceLaunch(128, 0, persistent=1), 0, 0),
        (DeviceLaunch(128, 0, persistent=1), 5, 5),
        (DeviceLaunch(128, 0, persistent=1), 1000, 132),
        (DeviceLaunch(128, 0, persistent=2), 1000, 264),
        (DeviceLaunch(128, 0, cluster=2, persistent=1), 7, 6),
        (DeviceLaunch(128, 0, cluster=2, persistent=1), 1, 2),
        (DeviceLaunch(128, 0, cluster=8, persistent=1), 1000, 128),
    ],
)
def test_how_many_blocks_are_launched(launch: DeviceLaunch, instances: int, expected: int) -> None:
    assert launch.blocks(instances, 132) == expected


def test_params_blocks_hold_what_the_plan_says() -> None:
    params = Params(CHECKED, [Geometry((5,), (2,)), None, Geometry((5,), (1,))], (3,))
    x, out = np.zeros(10, np.float32)[::2], np.zeros(5, np.float32)
    block = params.filled([x, 1.5, out], [0xABCD], [])
    words = struct.unpack("<9q", bytes(block))
    assert words[:3] == (x.ctypes.data, 5, 2)
    assert struct.unpack_from("<f", block, 24) == (1.5,)
    assert words[4:] == (out.ctypes.data, 5, 1, 3, 0xABCD)
    huge = Params(SCALE, [Geometry((5,), (2,)), None, Geometry((5,), (1,))], (3,)).filled([x, 1e300, out], [], [])
    assert struct.unpack_from("<f", huge, 24) == (math.inf,)


def test_integers_that_do_not_fit_are_refused() -> None:
    arguments = (ArrayArgument(0, f32, (5,), False), NumberArgument(3, "i64"))
    plan = Plan("p", arguments, 0, (1,), 4, 5, (), device=SCALE.device, block_bytes=40)
    params = Params(plan, [Geometry((5,), (1,)), None], (1,))
    x = np.zeros(5, np.float32)
    assert struct.unpack("<5q", bytes(params.filled([x, -7], [], [])))[3] == -7
    with pytest.raises(DtypeError, match="argument 1 of @p: expected a number of i64"):
        params.filled([x, 1 << 63], [], [])


def test_tensor_maps_lie_where_the_plan_says() -> None:
    params = Params(COPY, [Geometry((16, 64), (64, 1)), Geometry((16, 64), (64, 1))], (2, 1))
    arrays = [np.zeros((16, 64), bf16.storage) for _ in range(2)]
    found = np.arange(16, dtype=np.uint64)
    block = bytes(params.filled(arrays, [], [found]))
    assert len(block) == COPY.block_bytes
    assert block[128:] == found.tobytes()
    # For the host's entry: the stream's word, then one array for the map, and where that is copied to.
    arguments, table = arguments_of(params)
    assert arguments == [("array", 16), ("array", 21), ("i64", 10), ("array", 48)]
    assert table == struct.pack("<2q", 0, 128 + 128)


def test_the_counters_have_an_argument() -> None:
    arguments, table = arguments_of(Params(TALLY, [Geometry((5,), (1,))], (5,)))
    assert (arguments, table) == ([("array", 16), ("i64", 10), ("i64", 20)], b"")


WHOLE = (MapAxis(1, "whole", 1), MapAxis(0, "whole", 1))


@pytest.mark.parametrize(
    ("axes", "sizes", "strides", "expected"),
    [
        (WHOLE, (100, 64), (64, 1), ((64, 100), (128,))),
        (WHOLE, (100, 64), (72, 1), ((64, 100), (144,))),
        # Rows of 128 elements as two halves of 64, each a box wide.
        (
            (MapAxis(1, "inner", 64), MapAxis(0, "whole", 1), MapAxis(1, "outer", 64)),
            (100, 128),
            (128, 1),
            ((64, 100, 2), (256, 128)),
        ),
        (
            (MapAxis(1, "inner", 64), MapAxis(1, "outer", 64), MapAxis(0, "whole", 1)),
            (10, 96),
            (96, 1),
            ((64, 2, 10), (128, 192)),
        ),
        # An axis of size 1 may have any stride, an empty array any sizes.
        (WHOLE, (1, 64), (7, 1), ((64, 1), (16,))),
        (WHOLE, (0, 64), (64, 1), ((64, 1), (16,))),
    ],
)
def test_tensor_maps_follow_their_recipes(axes: Any, sizes: Any, strides: Any, expected: Any) -> None:
    recipe = TensorMap(0, 0, axes, (64, *[1] * (len(axes) - 1)), 128)
    assert tensor_maps.extent(recipe, bf16, sizes, strides, "x") == expected


@pytest.mark.parametrize(
    ("dtype", "axes", "box", "swizzle", "strides", "message"),
    [
        (bf16, WHOLE, (64, 8), 128, (63, 1), "a stride of 126 bytes along axis 0; .* multiples of 16"),
        (bf16, WHOLE, (64, 8), 128, (64, 2), "neighbours along axis 1 are 2 elements apart, not 1"),
        (bf16, WHOLE, (64, 8), 128, (-64, 1), "a stride of -128 bytes along axis 0"),
        (bf16, WHOLE, (128, 8), 128, (64, 1), "a box of 256 bytes .* up to 128 bytes with this swizzle"),
        (bf16, WHOLE, (60, 8), 0, (64, 1), "a box of 120 bytes along its innermost axis; multiples of 16 bytes"),
        (bf16, WHOLE, (64, 257), 0, (64, 1), r"a box of \(64, 257\) elements; of an axis 1 to 256 move at once"),
        (bf16, (MapAxis(0, "whole", 1),) * 6, (8,) * 6, 0, (64, 1), "1 to 5 axes .* not 6"),
        (ts.f8e4m3, WHOLE, (128, 8), 128, (72, 1), "a stride of 72 bytes"),
    ],
)
def test_what_the_copy_engine_cannot_do_is_said(
    dtype: ts.DType, axes: Any, box: Any, swizzle: int, strides: Any, message: str
) -> None:
    with pytest.raises(ShapeError, match=f"argument 0 of @k: .*{message}") as caught:
        tensor_maps.extent(TensorMap(0, 0, axes, box, swizzle), dtype, (100, 64), strides, "argument 0 of @k")
    assert caught.value.hint


def test_addresses_for_the_copy_engine_are_multiples_of_16() -> None:
    maps = tensor_maps.Maps.sized(TILE, bf16, (8, 64), (64, 1), "argument 0 of @k")
    with pytest.raises(ShapeError, match="its address is 0x1008, the copy engine needs a multiple of 16"):
        maps.of(0x1008)


def test_the_cache_does_not_fetch_what_a_copy_asks_for_itself() -> None:
    rows = MapAxis(0, "whole", 1)
    whole = TensorMap(0, 0, (MapAxis(1, "whole", 1), rows), (64, 128), 128)
    assert tensor_maps.promotion(whole, 2) == "L2_256B"
    found: dict[int, str] = {}
    for inner in (8, 16, 32, 64, 128):
        axes = MapAxis(1, "inner", inner), rows, MapAxis(1, "outer", inner)
        found[inner] = tensor_maps.promotion(TensorMap(0, 0, axes, (inner, 128, 2), 0), 2)
    assert found == {8: "NONE", 16: "NONE", 32: "L2_64B", 64: "L2_128B", 128: "L2_256B"}


def test_every_dtype_has_a_type_in_tensor_maps() -> None:
    names = {dtype: tensor_maps.type_name(dtype) for dtype in ALL}
    assert (names[bf16], names[ts.f8e5m2], names[ts.i16], names[ts.bool_]) == ("BFLOAT16", "UINT8", "UINT16", "UINT8")
    assert tensor_maps.type_name(bf16 @ ts.accum(f32)) == "BFLOAT16"


@given(st.data(), hnp.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=5))
def test_gathers_do_with_fewer_axes_and_wider_elements(data: st.DataObject, shape: tuple[int, ...]) -> None:
    storage = np.dtype(data.draw(st.sampled_from([np.uint8, np.uint16, np.uint32, np.uint64])))
    base = np.arange(math.prod(shape) * storage.itemsize, dtype=np.uint8).view(storage).reshape(shape)
    order = data.draw(st.permutations(range(len(shape))))
    key = data.draw(hnp.basic_indices(tuple(shape[axis] for axis in order)))
    view = np.asarray(base.transpose(order)[key])
    if not view.size:
        return
    first = view.ctypes.data
    sizes, strides, itemsize = gather.simplified(first, view.shape, view.strides, view.itemsize)
    assert math.prod(sizes) * itemsize == view.nbytes
    assert first % itemsize == 0
    assert all(stride % itemsize == 0 for stride in strides)
    assert len(sizes) <= max(view.ndim, 1) or view.itemsize > itemsize
    got = b"".join(
        ctypes.string_at(first + sum(i * s for i, s in zip(index, strides, strict=True)), itemsize)
        for index in np.ndindex(*sizes)
    )
    assert got == view.tobytes()


def test_contiguous_rows_move_sixteen_bytes_at_a_time() -> None:
    assert gather.simplified(0x1000, (4, 3, 32), (1024, 128, 4), 4) == ([4, 24], [1024, 16], 16)
    assert gather.simplified(0x1000, (8, 8), (2, 16), 2) == ([8, 8], [2, 16], 2)
    assert gather.simplified(0x1000, (5,), (0,), 2) == ([5], [0], 2)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("itemsize", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("rank", [1, 2, 5])
def test_gathers_assemble(rank: int, itemsize: int, wide: bool) -> None:
    (usage,) = assemble(gather.text(rank, itemsize, wide=wide), "sm_90").kernels.values()
    assert usage.spill_stores == usage.stack == 0


def test_the_kernels_of_the_gpu_tests_assemble() -> None:
    kernels = assemble(ptx().decode(), "sm_90").kernels
    assert set(kernels) == {"scale", "checked", "delayed", "trapped", "spilled", "tally"}
    assert {name for name, usage in kernels.items() if usage.stack} == {"spilled"}
    assert set(assemble(TILE_COPY, "sm_90").kernels) == {"tile_copy"}


def test_the_architecture_of_ptx() -> None:
    assert target_of(b".version 8.0\n.target sm_90a\n") == "sm_90a"
    assert target_of(b".version 8.0\n.target sm_90, debug\n") is None
    assert target_of(ptx()) is None
