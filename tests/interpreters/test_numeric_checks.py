"""Demands on numbers, asked for by name: how they join with other checks; underflow and bounds in tile programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessera.dtypes.types import bf16, f8e4m3, f16, f32, i32
from tessera.errors import DtypeError, GuardError
from tessera.interpreters.levels.tile import run_kernel
from tessera.interpreters.sanitizers.checks import Checks, NumericChecks
from tessera.interpreters.sanitizers.stored_values import limits_in
from tessera.ir import text

UNDERFLOW, BOUNDED = NumericChecks(underflow=True), NumericChecks(bounded=(-1.0, 1.0))


def program(body: str, *, element: str = "f32") -> Any:
    return text.read(
        f"tile.func @k(%x: !tile.view<1, f32, global>, %y: !tile.view<1, {element}, global>) outputs 1\n"
        f"shapes [[N], [M]] grid [1] {{\n%z = arith.constant 0 : index\n"
        f"%a = tile.load %x[%z] : !tile.view<1, f32, global> -> tensor<4xf32>\n{body}\ntile.return\n}}"
    )


def test_checks_join() -> None:
    assert BOUNDED.beside(Checks()) == BOUNDED
    assert BOUNDED.beside(UNDERFLOW) == NumericChecks(underflow=True, bounded=(-1.0, 1.0))
    assert BOUNDED.beside(NumericChecks(bounded=(0.0, 2.0))).bounded == (0.0, 1.0)
    joined = NumericChecks(nonfinite="all", underflow=True).beside(Checks.all())
    assert vars(joined) == {**vars(Checks.all()), "nonfinite": "all", "underflow": True, "bounded": None}
    assert UNDERFLOW
    assert not vars(Checks.all()).keys() & {"underflow", "bounded"}


@pytest.mark.parametrize(("policy", "lost"), [("", True), ("policy <stochastic_round> seed 7", False)])
def test_rounding_at_random_may_give_0(policy: str, lost: bool) -> None:
    module = program(
        f"%b = tile.ew<cast> %a {policy} : tensor<4xf32> -> tensor<4xf16>\n"
        "tile.store %b, %y[%z] : tensor<4xf16>, !tile.view<1, f16, global>",
        element="f16",
    )
    x, y = np.full(4, 1e-12, np.float32), np.ones(4, f16.storage)
    if lost:
        message = r"cast underflows at \[0\] in program instance \[0\]: of 1e-12 nothing is left"
        with pytest.raises(DtypeError, match=message):
            run_kernel(module, "k", [x, y], checks=UNDERFLOW)
    else:
        run_kernel(module, "k", [x, y], checks=UNDERFLOW)
        assert (y == 0).all()


def test_made_up_values_are_not_looked_at() -> None:
    module = program("%b = tile.ew<mul> %a, %a : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>")
    padded = text.read(text.write(module).replace("tile.load %x[%z]", "tile.load %x[%z] pad 1.0e-30"))
    run_kernel(padded, "k", [np.ones(2, np.float32), np.zeros(4, np.float32)], checks=UNDERFLOW)
    with pytest.raises(DtypeError, match=r"mul underflows at \[1\]"):
        run_kernel(padded, "k", [np.array([1, 1e-30], np.float32), np.zeros(4, np.float32)], checks=UNDERFLOW)


def test_what_is_not_stored_has_no_bounds() -> None:
    module = program("tile.store %a, %y[%z] : tensor<4xf32>, !tile.view<1, f32, global>")
    x = np.array([1, -1, 0, 5], np.float32)
    run_kernel(module, "k", [x, np.zeros(3, np.float32)], checks=BOUNDED)
    with pytest.raises(GuardError, match=r"y\[3\] is 5\.0, outside of the bounds \[-1, 1\], in program instance \[0\]"):
        run_kernel(module, "k", [x, np.zeros(4, np.float32)], checks=BOUNDED)


def test_an_element_between_those_of_an_argument_is_named_by_its_offset() -> None:
    module = program(
        "%one = arith.constant 1 : index\n"
        "%v = tile.view %y offset %one sizes[%one] strides[%one]\n"
        ": !tile.view<1, f32, global> -> !tile.view<1, f32, global>\n"
        "tile.store %a, %v[%z] : tensor<4xf32>, !tile.view<1, f32, global>"
    )
    with pytest.raises(GuardError, match=r"y at element 1 of its memory is 2\.0"):
        run_kernel(module, "k", [np.full(4, 2, np.float32), np.zeros(6, np.float32)[::2]], checks=BOUNDED)


def test_limits_are_numbers_of_the_type() -> None:
    assert limits_in(f32, (-0.1, 0.1)) == (-float(np.float32(0.1)), float(np.float32(0.1)))
    assert limits_in(bf16, (0.0, 1.0)) == (0.0, 1.0)
    # What a type cannot hold limits nothing there, and does not become NaN.
    assert limits_in(f8e4m3, (-1e6, np.inf)) == (-1e6, np.inf)
    assert limits_in(i32, (0.5, 1.5)) == (0.5, 1.5)
