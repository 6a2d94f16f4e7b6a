"""Products with leading axes for GPUs: as PTX they assemble, and give what the tile level gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import ptx_checks
import pytest
from cpu_runs import copies
from emitted_runs import run as run_emitted
from gpu_options import gpu
from many_axes import CASES, SHAPE, changed, product, products
from nv_runs import Array, at_tile_level, lowered

from tessera import f16, f32
from tessera.targets.cuda.compile import compile_kernel


def whole(shape: tuple[int, ...], dtype: Any = f32, seed: int = 0) -> Array:
    """Small whole numbers: sums of products of them are exact."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(dtype.storage)


def check(made: Any, arguments: list[Any], arch: str) -> str:
    """A lowered kernel as the machine for tests runs it, and as ptxas takes it; gives its PTX."""
    expected, given = at_tile_level(made.module, made.name, arguments), copies(arguments)
    ran = run_emitted(lowered(made.module, made.name, arch=arch), made.name, given, arch=arch)
    assert ran.message is None
    arrays: list[Array] = [value for value in given if isinstance(value, np.ndarray)]
    for one, other in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    ptx_checks.check_clean(ran.program.ptx, arch)
    return ran.program.ptx


@pytest.mark.parametrize(("dtype", "arch"), [(f16, "sm_90a"), (f32, "sm_80")], ids=str)
def test_each_product_goes_through_the_tensor_cores(dtype: Any, arch: str) -> None:
    counts: list[int] = []
    for batch in (1, 2):
        left, right = (batch, 16, 16), (batch, 16, 8)
        arguments = [whole(left, dtype), whole(right, dtype, 1), np.zeros((2, 16, 8), np.float32)]
        ptx = check(product[1].lower(*arguments, left=left, right=right), arguments, arch)
        counts.append(ptx_checks.count(ptx, "mma.sync"))
    assert counts[0] > 0
    assert counts[1] == 2 * counts[0]


@pytest.mark.acceptance
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("dtype", [f16, f32], ids=str)
def test_loops_add_to_each_product(dtype: Any, arch: str, batch: int) -> None:
    arguments = [whole((3, 13, 17), dtype), whole((3, 17, 21), dtype, 1), np.zeros((3, 13, 21), np.float32)]
    check(products[2].lower(*arguments, batch=batch, m=16, k=16, n=16), arguments, arch)


@pytest.mark.parametrize(("left", "right"), [((2, 16, 16), (16, 8)), ((16, 16), (2, 16, 8))], ids=str)
def test_an_operand_of_two_axes_is_loaded_once(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    arguments = [whole(left, f16), whole(right, f16, 1), np.zeros((2, 16, 8), np.float32)]
    check(product[1].lower(*arguments, left=left, right=right), arguments, "sm_80")


@pytest.mark.parametrize(
    "name", ["products", "sum of products", "rows of products", "one row", "one column", "one step"]
)
def test_what_becomes_of_products(name: str) -> None:
    how, reference = CASES[name]
    x = whole((3, 7, 16))
    out = np.full(np.asarray(reference(np.ones(SHAPE, np.float32))).shape, 77, np.float32)
    check(changed[1].lower(x, out, shape=SHAPE, how=how), [x, out], "sm_80")


def test_one_product_at_a_time_is_specialized_and_several_say_why_not() -> None:
    x, w = whole((6, 128, 192), f16), whole((6, 192, 128), f16, 1)
    arguments = [x, w, np.zeros((6, 128, 128), np.float32)]
    said: list[list[str]] = []
    for batch in (1, 2):
        made = products[6 // batch].lower(*arguments, batch=batch, m=128, k=64, n=128)
        program = compile_kernel(made.module, made.name, gpu("sm_90a", row_aligned=(0, 1, 2)))
        said.append([str(refusal) for refusal in program.report.refusals])
        assert ("wgmma.mma_async" in program.ptx) == (batch == 1)
    assert not said[0]
    assert any("two stores into one array do not write the same rows" in one for one in said[1])
