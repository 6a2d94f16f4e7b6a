"""Products of warpgroups in every type that they have: in the interpreter, through ptxas, and on a GPU."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_checks import check_clean, count
from wgmma_programs import TYPES, operands, source, truth

import golden_kernels as golden
import tessera as ts
from tessera.dtypes.types import BY_NAME
from tessera.runtime.cuda.executable import CudaExecutable
from tessera.targets import text
from tessera.targets.cuda.compile import compile_lowered
from tessera.targets.cuda.device_launch import plan_of_function
from tessera.targets.cuda.interpreter.hopper import run_warpgroups
from tessera.targets.cuda.ir.tensor_cores import WGMMA_TYPES

every_type = pytest.mark.parametrize(("left", "right", "total"), TYPES)
both_ways = pytest.mark.parametrize("in_registers", [False, True])


def test_every_type_has_a_program() -> None:
    assert sorted(TYPES) == sorted(tuple([one.name for one in types]) for types in WGMMA_TYPES)


@pytest.mark.quick
@every_type
@both_ways
def test_interpreted(left: str, right: str, total: str, in_registers: bool) -> None:
    a, b = operands(BY_NAME[left], BY_NAME[right])
    c = np.zeros((len(a), len(b)), BY_NAME[total].storage)
    run_warpgroups(text.read(source(left, right, total, in_registers=in_registers)), "multiply", [a, b, c], seed=0)
    np.testing.assert_array_equal(c, truth(a, b, BY_NAME[total]) * (1 + in_registers))


@pytest.mark.quick(5)
@every_type
@both_ways
def test_assembled(left: str, right: str, total: str, in_registers: bool) -> None:
    made = compile_lowered(text.read(source(left, right, total, in_registers=in_registers)), "multiply")
    check_clean(made.ptx, "sm_90a")
    assert count(made.ptx, f"wgmma.mma_async.sync.aligned.m64n48k{32 // BY_NAME[left].storage.itemsize}") == 8 * (
        1 + in_registers
    )


@pytest.mark.gpu
@every_type
@both_ways
def test_on_a_gpu(left: str, right: str, total: str, in_registers: bool) -> None:
    module = text.read(source(left, right, total, in_registers=in_registers))
    function = golden.function_of(module)
    made = compile_lowered(module, "multiply")
    run = CudaExecutable(plan_of_function(function, made), made.ptx.encode())
    a, b = operands(BY_NAME[left], BY_NAME[right])
    given = [ts.asarray(x, dtype=BY_NAME[name]).cuda() for x, name in ((a, left), (b, right))]
    found = run.bind([one.geometry for one in given])(*[one.geometry for one in given]).cpu().numpy()
    np.testing.assert_array_equal(found, truth(a, b, BY_NAME[total]) * (1 + in_registers))
