"""Races through places that memory decides: each planted one is found with both witnesses, and its twin is clean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted_races import PLANTED, Planted
from test_races import RACES, conflicts, marked_line, names_of

from tessera import kernel, knobs, tile
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


@kernel
def accesses(kinds: Any, places: Any, asked: Any, memory: Any):
    """Whatever tables say: each instance reads, writes and adds some elements."""
    p = tile.program_id(0)
    for turn in tile.range(kinds.shape[1]):
        how = tile.item(kinds, p, turn)
        at = tile.load(places[p, turn], at=0, shape=3)
        there = tile.load(asked[p, turn], at=0, shape=3)
        if how == 0:
            tile.scatter(memory, at, tile.gather(memory, at, mask=there), mask=there & (at < 0))
        elif how == 1:
            tile.scatter(memory, at, tile.ones((3,)), mask=there)
        elif how == 2:
            tile.scatter_add(memory, at, tile.ones((3,)), mask=there)
        else:
            tile.store(memory, tile.ones((3,)), at=tile.item(places, p, turn, 0), mask=there)


@given(data=st.data())
@settings(max_examples=40)
def test_a_race_is_told_where_there_is_one_and_only_there(data: st.DataObject) -> None:
    instances, turns = data.draw(st.integers(2, 3)), data.draw(st.integers(1, 2))
    seed, far = data.draw(st.integers(0, 10**6)), data.draw(st.sampled_from((9, 30)))
    random = np.random.default_rng(seed)
    kinds = random.integers(0, 4, (instances, turns))
    # Each access has three different places, some outside of the array; no store writes an element twice.
    places = np.array([[random.permutation(far)[:3] - 1 for _ in range(turns)] for _ in range(instances)])
    arrays = [kinds, places, random.random((instances, turns, 3)) < 0.7, np.zeros(far - 2, np.float32)]
    trace = Trace()
    with checking(Checks(), trace=trace):
        accesses[instances](*arrays)
    known = conflicts(trace, arrays, names_of(accesses))
    try:
        with checking(RACES):
            accesses[instances](*arrays)
    except RaceError as error:
        told = tuple(line.partition(" at /")[0].removeprefix("program instance ") for line in error.story)
        assert told in known
    else:
        assert not known
