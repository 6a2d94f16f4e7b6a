"""The hint of errors about kernels that are too large for their target: the schedule nearest to theirs that fits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

from tessera.errors import ResourceError
from tessera.tile.calls.instance import Instance
from tessera.tile.calls.settings import Settings
from tessera.tile.language.schedule import Schedule

_SMALLEST = 16
_MOST_WARPS = 16
_MOST_TRIES = 48

Trace = Callable[[Schedule], Instance]


def suggesting(error: ResourceError, schedule: Schedule, trace: Trace, chosen: Settings) -> ResourceError:
    """The error, with a schedule that fits for its hint, if it is about one that does not."""
    if chosen.compiler.is_over_budget(error):
        found = nearest(schedule, trace, chosen)
        error.story = (f"under {schedule}", *error.story)
        error.hint = f"{found} fits" if found is not None else "no smaller block fits, either: work on narrower rows"
    return error


def nearest(schedule: Schedule, trace: Trace, chosen: Settings) -> Schedule | None:
    """The schedule with the fewest changes under which a kernel fits; None if none of many does."""
    from tessera.tile.calls.compiling import source_of

    waiting, seen = deque(_smaller(schedule)), {schedule}
    for _ in range(_MOST_TRIES):
        while waiting and waiting[0] in seen:
            waiting.popleft()
        if not waiting:
            return None
        candidate = waiting.popleft()
        seen.add(candidate)
        try:
            source = source_of(trace(candidate))._replace(warps=candidate.warps, stages=candidate.stages)
            chosen.compiler.check_budget(source, chosen.level)
        except ResourceError:
            waiting += _smaller(candidate)
            continue
        return candidate
    return None


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    """Schedules one step away: fewer stages, more warps, half as much along one axis."""
    if schedule.stages is not None and schedule.stages > 1:
        yield schedule.with_stages(schedule.stages - 1)
    if schedule.warps is not None and schedule.warps < _MOST_WARPS:
        yield schedule.with_warps(2 * schedule.warps)
    block = schedule.block or ()
    for axis, size in enumerate(block):
        if size > _SMALLEST:
            yield replace(schedule, block=(*block[:axis], max(_SMALLEST, size // 2), *block[axis + 1 :]))
