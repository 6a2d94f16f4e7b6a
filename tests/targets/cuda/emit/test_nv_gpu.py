"""Tiles on a GPU: elementwise functions, reductions, conversions, memory and atomics against the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import nv_cases
import pytest
from nv_cases import Case
from nv_layouts import Array
from test_llvm_elementwise import Case as Row
from test_llvm_elementwise import agreement, cases, operands
from test_nv_memory import assert_text, kinds_of
from test_nv_values import all_casts, reference, shared_division

import tessera as ts
from tessera.compiler.launch_plan import Failure
from tessera.dtypes.types import ALL, DType, bf16, f16, f32
from tessera.errors import TesseraError
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.common import elementwise as table
from tessera.runtime.cuda.executable import CudaExecutable
from tessera.targets import text
from tessera.targets.cuda.compile import compile_lowered
from tessera.targets.cuda.device_launch import plan_of_function
from tessera.targets.cuda.interpreter.nv import run_nv_kernel
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.lower.legalize import SHORT_FORMS

pytestmark = pytest.mark.gpu


def seen_like(array: Array, tensor: ts.Tensor) -> Array:
    """The memory of a tensor, seen as an array sees its own."""
    return tensor.buffer.array(array.dtype, array.shape, array.strides, nv_cases.home(array)[1])


def on_gpu(case: Case) -> list[Array]:
    """What a function leaves in the arrays that it writes."""
    module = text.read(case.text)
    made = compile_lowered(module, "k")
    plan = plan_of_function(symbol_in(module, "k", nv.FuncOp), made)
    plan = replace(plan, failures=tuple(Failure(message, None, None) for message in made.messages))
    given = [cast("Array", value) if isinstance(value, np.ndarray) else None for value in case.arguments]
    homes = [None if value is None else ts.asarray(nv_cases.home(value)[0].copy()).cuda() for value in given]
    values = list(case.arguments)
    for place, (array, tensor) in enumerate(zip(given, homes, strict=True)):
        if array is not None and tensor is not None:
            values[place] = seen_like(array, tensor)
    CudaExecutable(plan, made.ptx.encode()).bind(values)(*values)
    found: list[Array] = []
    for array, tensor in zip(given, homes, strict=True):
        if array is not None and tensor is not None:
            found.append(seen_like(array, tensor.cpu()))
    return found[len(found) - case.written :]


def check(case: Case) -> None:
    theirs = case.copies()
    run_nv_kernel(text.read(case.text), "k", theirs)
    for one, other in zip(on_gpu(case), case.results(theirs), strict=True):
        np.testing.assert_array_equal(one.astype(np.float64), other.astype(np.float64), case.text)


# Elementwise functions


def check_rows(rows: Sequence[Row]) -> None:
    """Rows with the same operands, in one kernel."""
    names, (dtypes, *_), results = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    given = operands(dtypes)
    found = on_gpu(nv_cases.rows(names, [dtype.base for dtype in dtypes], results, given))
    failures: list[str] = []
    for row, name, result, mine in zip(rows, names, results, found, strict=True):
        if said := agreement(name, result, mine, reference(row, given), given):
            failures.append(f"{name} on {', '.join(map(str, dtypes))} to {result}: {said}")
    assert failures == []


def by_operands() -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in cases():
        found.setdefault(", ".join(map(str, row[1])), []).append(row)
    return found


@pytest.mark.parametrize("dtypes", by_operands())
def test_rows(dtypes: str) -> None:
    check_rows(by_operands()[dtypes])


@pytest.mark.parametrize("source", ALL, ids=str)
def test_casts(source: DType) -> None:
    check_rows([row for row in all_casts() if row[1] == (source,)])


@pytest.mark.parametrize("name", SHORT_FORMS)
def test_brief_forms(name: str) -> None:
    """As exact as is said of them, where results are neither tiny nor infinite."""
    values = np.concatenate([np.linspace(-12, 12, 1 << 16), np.geomspace(1e-6, 12, 1 << 12)]).astype(np.float32)
    (found,) = on_gpu(nv_cases.elementwise(name, [f32], f32, [values], "{approximate}"))
    true = table.apply(name, [values.astype(np.float64)], [ts.f64])
    form, error = SHORT_FORMS[name], np.abs(found - true)
    assert (error <= form.absolute).all()
    assert np.isinf(form.relative) or (error <= form.relative * np.abs(true)).all()
    assert np.isinf(form.beside_one) or (error <= form.beside_one * (1 - np.abs(true)) + 2.0**-24).all()


@pytest.mark.parametrize("dtype", [f32, bf16, f16], ids=str)
def test_division_by_rows(dtype: DType) -> None:
    extreme = [2.0**-149, 2.0**-130, 2.0**-126, 1.0, 3.0, -7.0, 2.0**126, 1.5 * 2.0**127, 2.0**-60, np.inf, 0.0, np.nan]
    chance = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        b = np.concatenate([extreme, chance.standard_normal(84)]).astype(dtype.storage)
        a = (chance.standard_normal((96, 16)) * 2.0 ** chance.integers(-140, 126, (96, 16))).astype(dtype.storage)
    (found,) = on_gpu(shared_division(a, b, dtype))
    wanted = table.apply("div", [a, np.repeat(b[:, None], 16, 1)], [dtype, dtype])
    assert agreement("exp", dtype, found.reshape(-1), wanted.reshape(-1), [a.reshape(-1)]) == ""


# Tiles


@pytest.mark.parametrize("first", range(0, 80, 10))
@pytest.mark.parametrize("make", [nv_cases.reduction, nv_cases.conversion, nv_cases.movement, nv_cases.halves])
def test_random_tiles(make: Any, first: int) -> None:
    for seed in range(first, first + 10):
        check(make(seed))


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_atomics(dtype: DType) -> None:
    for kind in kinds_of(dtype):
        check(nv_cases.atomic(kind, dtype))


@pytest.mark.parametrize("place", [None, 0, 31, 49])
def test_asserts(place: int | None) -> None:
    given = np.ones(50, np.bool_)
    if place is None:
        on_gpu(Case(assert_text("a tile"), [given, True], 0))
        return
    given[place] = False
    with pytest.raises(TesseraError, match="a tile"):
        on_gpu(Case(assert_text("a tile"), [given, True], 0))
