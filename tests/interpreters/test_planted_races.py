"""Races through places that memory decides: each planted one is found with both witnesses, and its twin is clean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from planted_races import PLANTED, Planted
from test_races import RACES, conflicts, marked_line, names_of

from tessera import knobs
from tessera.errors import RaceError
from tessera.interpreters.sanitizers.access_trace import Trace
from tessera.interpreters.sanitizers.checks import Checks, checking

NAMED = pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.program.__name__)


def run(planted: Planted, *, repaired: bool, checks: Checks) -> tuple[Trace, list[Any]]:
    trace, arrays = Trace(), planted.arrays(repaired)
    with checking(checks, trace=trace):
        planted.program[planted.grid](*arrays, repaired=repaired)
    return trace, arrays


def test_there_are_enough() -> None:
    assert len({planted.program.__name__ for planted in PLANTED}) == len(PLANTED) >= 20


@NAMED
def test_a_planted_race_is_found_with_both_witnesses(planted: Planted) -> None:
    trace, arrays = run(planted, repaired=False, checks=Checks())
    assert (planted.first, planted.second) in conflicts(trace, arrays, names_of(planted.program))
    with pytest.raises(RaceError) as caught:
        run(planted, repaired=False, checks=RACES)
    witnesses = zip((planted.first, planted.second), caught.value.story, ("first", "second"), strict=True)
    for witness, line, mark in witnesses:
        assert line.startswith(f"program instance {witness} at {marked_line(planted.program.function, mark)}")
    assert str(caught.value.span).startswith(marked_line(planted.program.function, "second"))


@NAMED
def test_its_twin_is_clean_and_means_the_same_in_machine_code(planted: Planted) -> None:
    trace, arrays = run(planted, repaired=True, checks=Checks.all())
    assert not conflicts(trace, arrays, names_of(planted.program))
    assert any(access.kind != "read" for access in trace)
    compiled = planted.arrays(True)
    with knobs.backend.using("cpu"):
        planted.program[planted.grid](*compiled, repaired=True)
    for found, expected in zip(compiled, arrays, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
