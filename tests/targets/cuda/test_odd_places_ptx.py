"""Odd kernels in which memory decides, as PTX: what the machine for tests makes of it is what the interpreter does."""

from __future__ import annotations

import numpy as np
import pytest
from emitted_runs import run
from gpu_options import gpu

import odd_places
from tessera import knobs
from tessera.targets.cuda.compile import lower_kernel
from tessera.targets.cuda.ptx.assembler import assemble

NAMED = pytest.mark.parametrize("name", odd_places.CASES)


def check(name: str, arch: str) -> None:
    case = odd_places.CASES[name]
    expected, found = case.arrays(), case.arrays()
    with knobs.interpret.using(True):
        case.program[case.grid](*expected)
    module = case.program[case.grid].lower(*found).module
    kernel = case.program.__name__
    made = run(lower_kernel(module, kernel, gpu(arch)).module, kernel, found, arch=arch)
    assert made.message is None
    assert assemble(made.program.ptx, arch).kernels[kernel].spill_stores == 0
    for one, other in zip(found, expected, strict=True):
        if other.dtype.kind in "biu":
            assert np.array_equal(one, other)
        else:
            np.testing.assert_allclose(one.astype(np.float64), other.astype(np.float64), rtol=1e-5, atol=1e-6)


# Without long networks.
SMALL = [name for name in odd_places.CASES if "sort" not in name]


@pytest.mark.parametrize("name", SMALL[::4])
def test_ptx_gives_what_the_interpreter_gives(name: str) -> None:
    check(name, "sm_80")


@pytest.mark.acceptance
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@NAMED
def test_ptx_always_gives_what_the_interpreter_gives(name: str, arch: str) -> None:
    check(name, arch)
