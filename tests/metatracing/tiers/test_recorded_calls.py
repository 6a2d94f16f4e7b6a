"""Recorded calls: their work is done before a call, or when the program is under way."""

from __future__ import annotations

from typing import Any

import pytest
from made_up_client import Later, Made, MadeUpProgram, usual_costs

from tessera import Schedule
from tessera.errors import ResourceError
from tessera.metatracing import Call, TierLevel
from tessera.tiers.sites.recording import Recording


def shapes_of(calls: list[Call]) -> list[tuple[int, ...]]:
    return [call.values[0].shape for call in calls]


@pytest.fixture(name="bound")
def _bound(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """What programs are bound to."""
    found: list[Call] = []
    real = MadeUpProgram.bind

    def bind(self: MadeUpProgram, call: Call) -> object:
        found.append(call)
        return real(self, call)

    monkeypatch.setattr(MadeUpProgram, "bind", bind)
    return found


def test_no_call_binds_a_program_that_it_is_the_first_to_try(bound: list[Call]) -> None:
    later = Later()
    made = Made(compiling=later)
    for rows in (4, 5, 6, 5):
        made.call(rows, 8, times=4)
    (request,) = later.requests
    compiled = made.client.compile(request.call, request.levels[0])
    bound.clear()
    program = request.installed(request.levels[0], compiled)
    entries = list(request.bound_ahead(program))
    assert shapes_of(bound) == [request.call.values[0].shape, *(entry.call.values[0].shape for entry in entries)]
    assert sorted(shapes_of(bound)) == [(4, 8), (5, 8), (6, 8)]
    assert list(request.bound_ahead(program)) == []
    bound.clear()
    request.site.compiled(request, [(request.levels[0], compiled)])
    tiers = [made.call(rows, 8, times=4)[-1] for rows in (4, 5, 6)]
    assert tiers == [2, 2, 2]
    assert bound == []


def test_an_ab_test_begins_behind_the_first_call_that_could_be_a_run_of_it() -> None:
    later = Later()
    made = Made(compiling=later)
    made.client.starts_quickly = lambda call: False  # pyright: ignore[reportAttributeAccessIssue]
    made.call(4, 8, times=20)
    later.finish()
    assert (made.call(4, 8), made["contests"]) == ([1], 1)
    # The program in use has the first run, programs alternate in beginning, and after five of each all is clear.
    tiers = made.call(4, 8, times=14)
    assert tiers == [1, 2] + [1, 2, 2, 1] * 2 + [2] * 4


def test_no_call_looks_for_another_program_where_one_replaces_its_like(slow_calls: list[Any]) -> None:
    def costs(level: TierLevel, call: Call) -> int:
        return 400_000 if level.schedule is not None else usual_costs(level, call)

    later = Later()
    made = Made(costs, compiling=later, enable_tier3_specialization=False)
    made.client.options = [None, Schedule(block=(64, 64))]
    made.client.starts_quickly = lambda call: False  # pyright: ignore[reportAttributeAccessIssue]
    for rows in (4, 5, 6, 4):
        made.call(rows, 8, times=6)
    later.arrive(0)
    assert made.call(4, 8, times=12)[-1] == 2
    (site,) = made.runtime.sites()
    first = site.programs[0]
    later.finish()
    slow_calls.clear()
    for _ in range(12):
        assert made.call(4, 8) == [2]
    assert first not in site.programs
    assert [made.call(rows, 8) for rows in (4, 5, 6)] == [[2]] * 3
    assert {level.schedule for level in list(made.client.ran)[-3:]} == {Schedule(block=(64, 64))}
    assert slow_calls == []


def test_a_program_that_cannot_be_bound_ahead_is_left_to_calls(bound: list[Call]) -> None:
    later = Later()
    made = Made(compiling=later)
    for rows in (4, 5):
        made.call(rows, 8, times=8)
    (request,) = later.requests
    made.client.bind_faults[2] = ResourceError("no memory")
    program = request.installed(request.levels[0], made.client.compile(request.call, request.levels[0]))
    assert len(list(request.bound_ahead(program))) == 2
    later.finish()
    assert made.call(4, 8) == [1]
    assert made["aborts"] == 1


def test_a_recorded_call_is_noted_when_its_program_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made()
    ran: list[int] = []
    real = Recording.period

    def period(self: Recording, entry: object) -> int:
        ran.append(len(made.client.ran))
        return real(self, entry)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(Recording, "period", period)
    made.call(4, 8, times=5)
    assert ran == [1, 2, 3, 4, 5]
    made.call(4, 8, times=195)
    assert made["contests"] == 1
    assert made.runtime.get_runtime_stats().total_executions == len(made.client.ran) == 200
