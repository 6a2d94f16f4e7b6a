"""Random kernels against NumPy: overlapping views, odd schedules, all element types, all optimisation levels."""

from __future__ import annotations

import numpy as np
import pytest
import random_kernels as kernels
from random_kernels import arrays_of, expected, fresh_buffer, random_case

import tessera as ts
from tessera import knobs

BATCH = 10
QUICK, FULL = 30, 2000


def check_on_cpu(first: int) -> None:
    """A batch of cases, in the interpreter and as machine code, each at one optimisation level."""
    for seed in range(first, first + BATCH):
        case = random_case(seed)
        wanted = expected(case)
        for backend, level in (("interpreter", 3), ("cpu", seed % 4)):
            with knobs.backend.using(backend), knobs.optimization.using(level):
                assert np.array_equal(kernels.found(case), wanted), (seed, backend, level)


@pytest.mark.quick(1)
@pytest.mark.parametrize("first", range(0, QUICK, BATCH))
def test_random_kernels(first: int) -> None:
    check_on_cpu(first)


@pytest.mark.acceptance
@pytest.mark.parametrize("first", range(QUICK, FULL, BATCH))
def test_more_random_kernels(first: int) -> None:
    check_on_cpu(first)


@pytest.mark.gpu
@pytest.mark.parametrize("first", range(0, 300, BATCH))
def test_random_kernels_on_gpus(first: int) -> None:
    for seed in range(first, first + BATCH):
        case = random_case(seed)
        memory = ts.asarray(fresh_buffer(case), case.dtype).cuda()
        views = [memory.as_strided(shape, strides, start) for start, shape, strides in case.views]
        kernels.call(case, views)
        assert np.array_equal(memory.cpu().numpy(), expected(case)), seed


def test_cases_overlap_in_many_ways() -> None:
    """The generator makes what it is for: arrays that are one, that overlap in part, that lie apart."""
    same, part, apart = 0, 0, 0
    for seed in range(200):
        case = random_case(seed)
        x, _, z = arrays_of(case, fresh_buffer(case))
        if x.ctypes.data == z.ctypes.data and x.strides == z.strides:
            same += 1
        elif np.shares_memory(x, z):
            part += 1
        else:
            apart += 1
    assert min(same, part, apart) > 10
