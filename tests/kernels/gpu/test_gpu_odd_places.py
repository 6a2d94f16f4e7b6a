"""Odd kernels in which memory decides, on a GPU: against the interpreter, and with the same bits twenty times."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_arrays import on_gpu

import odd_places
import tessera as ts
from tessera import CompileError, knobs
from tessera.runtime.tensor.tensor import Tensor

pytestmark = pytest.mark.gpu


def run(case: odd_places.OddCase) -> list[odd_places.Array]:
    given: list[Tensor] = [on_gpu(array, ts.asarray(array).dtype)[0] for array in case.arrays()]
    case.program[case.grid](*given)
    return [one.cpu().numpy() for one in given]


@pytest.mark.parametrize("name", odd_places.CASES)
def test_a_gpu_gives_what_the_interpreter_gives(name: str) -> None:
    case = odd_places.CASES[name]
    expected = case.arrays()
    with knobs.interpret.using(True):
        case.program[case.grid](*expected)
    for one, other in zip(run(case), expected, strict=True):
        if other.dtype.kind in "biu":
            assert np.array_equal(one, other)
        else:
            np.testing.assert_allclose(one.astype(np.float64), other.astype(np.float64), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", odd_places.REPEATED)
def test_bits_are_the_same_twenty_times(name: str) -> None:
    case = odd_places.REPEATED[name]
    with knobs.deterministic.using(True):
        found = {run(case)[-1].tobytes() for _ in range(20)}
    assert len(found) == 1
    expected = case.arrays()
    with knobs.interpret.using(True):
        case.program[case.grid](*expected)
    result = np.frombuffer(found.pop(), np.float32).reshape(expected[-1].shape)
    # Sums cancel: their error is that of their largest terms.
    assert np.abs(result - expected[-1]).max() <= 1e-4 * np.abs(expected[0]).max()


@pytest.mark.parametrize("step", [0, -1])
def test_a_loop_ends_whatever_its_step_is_and_the_step_is_refused(step: int) -> None:
    case = odd_places.CASES["steps_from_memory"]
    x, _, out = case.arrays()
    steps = np.array([1, 2, step, 1, 1])
    with pytest.raises(CompileError, match=r"tile\.range has a step below 1"):
        case.program[case.grid](*(ts.asarray(one).cuda() for one in (x, steps, out)))
