"""The pool's protocol as a model: every interleaving of its steps is visited, one access to a shared word per step.

A state is the shared words and, for each thread, where it is and what it holds. `explore` visits all states that can be
reached and says what is wrong with them; `without` leaves parts of the protocol out, to see that this is found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple


class Thread(NamedTuple):
    """A leader, a worker or one that resizes: its next step, a number it holds, its job, and calls still to make."""

    kind: str
    step: str
    number: int = 0
    job: int = 0
    calls: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """The words of pool.ll, and the calls whose args block is alive."""

    threads: tuple[Thread, ...]
    owner: int = 0
    tickets: int = 0
    posted: int = 0
    finished: int = 0
    leader_sleeps: int = 0
    sleepers: int = 0
    alive: frozenset[int] = frozenset()

    def moved(self, who: int, step: str, number: int = 0, job: int = 0, **words: object) -> State:
        thread = self.threads[who]._replace(step=step, number=number, job=job)
        return replace(self, threads=(*self.threads[:who], thread, *self.threads[who + 1 :]), **words)

    def woken(self, kind: str, most: int) -> Iterator[State]:
        """All that waking at most so many sleepers can lead to."""
        asleep = [at for at, thread in enumerate(self.threads) if (thread.kind, thread.step) == (kind, "asleep")]
        for chosen in combinations(asleep, min(most, len(asleep))):
            state = self
            for at in chosen:
                state = state.moved(at, "up", state.threads[at].number, state.threads[at].job)
            yield state


class Model:
    """Leaders that make calls one after the other, workers, and perhaps one that resizes once."""

    def __init__(self, leaders: int, calls: int, workers: int, resizers: int = 0, without: str = "") -> None:
        self.helpers = workers
        self.without = without
        threads = [Thread("leader", "begin", job=100 * at, calls=calls) for at in range(leaders)]
        threads += [Thread("worker", "spin")] * workers + [Thread("resizer", "draw")] * resizers
        self.start = State(tuple(threads))

    def successors(self, state: State) -> Iterator[State]:
        for who, thread in enumerate(state.threads):
            yield from getattr(self, f"_{thread.kind}_{thread.step}")(state, who, thread)

    # The leader

    def _leader_begin(self, state: State, who: int, me: Thread) -> Iterator[State]:
        if me.calls:
            job = me.job + 1
            begun = state.moved(who, "take", 0, job, alive=state.alive | {job})
            threads = list(begun.threads)
            threads[who] = threads[who]._replace(calls=me.calls - 1)
            yield replace(begun, threads=tuple(threads))

    def _leader_take(self, state: State, who: int, me: Thread) -> Iterator[State]:
        if state.owner == 0:
            yield state.moved(who, "write", 0, me.job, owner=1)
        else:
            yield state.moved(who, "back", 0, me.job)  # alone

    def _leader_write(self, state: State, who: int, me: Thread) -> Iterator[State]:
        if self.without == "order of publishing":
            yield state.moved(who, "write_late", 0, me.job, tickets=self.helpers)
        else:
            yield state.moved(who, "open", 0, me.job, posted=me.job)

    def _leader_write_late(self, state: State, who: int, me: Thread) -> Iterator[State]:
        yield state.moved(who, "count", 0, me.job, posted=me.job)

    def _leader_open(self, state: State, who: int, me: Thread) -> Iterator[State]:
        yield state.moved(who, "count", 0, me.job, tickets=self.helpers)

    def _leader_count(self, state: State, who: int, me: Thread) -> Iterator[State]:
        yield state.moved(who, "call" if state.sleepers > 0 else "close", 0, me.job)

    def _leader_call(self, state: State, who: int, me: Thread) -> Iterator[State]:
        for woken in state.woken("worker", 2):
            yield woken.moved(who, "close", 0, me.job)

    def _leader_close(self, state: State, who: int, me: Thread) -> Iterator[State]:
        claimed = self.helpers - max(state.tickets, 0)
        nobody = claimed == 0 or self.without == "waiting"
        yield state.moved(who, "free" if nobody else "settle", claimed, me.job, tickets=0)

    def _leader_settle(self, state: State, who: int, me: Thread) -> Iterator[State]:
        left = state.finished - me.number
        yield state.moved(who, "free" if left == 0 else "look", 0, me.job, finished=left)

    def _leader_look(self, state: State, who: int, me: Thread) -> Iterator[State]:
        yield state.moved(who, "free" if state.finished == 0 else "tire", 0, me.job)

    def _leader_tire(self, state: State, who: int, me: Thread) -> Iterator[State]:
        yield state.moved(who, "up", 0, me.job, leader_sleeps=0 if self.without == "telling to sleep" else 1)

    def _leader_up(self, state: State, who: int, me: Thread) -> Iterator[State]:
        yield state.moved(who, "rise" if state.finished == 0 else "sleep", state.finished, me.job)

    def _leader_sleep(self, state: State, who: int, me: Thread) -> Iterator[State]:
        yield state.moved(who, "asleep" if state.finished == me.number else "up", 0, me.job)

    def _leader_asleep(self, state: State, who: int, me: Thread) -> Iterator[State]:
        return iter(())

    def _leader_rise(self, state: State, who: int, me: Thread) -> Iterator[State]:
        yield state.moved(who, "free", 0, me.job, leader_sleeps=0)

    def _leader_free(self, state: State, who: int, me: Thread) -> Iterator[State]:
        yield state.moved(who, "back", 0, me.job, owner=0)

    def _leader_back(self, state: State, who: int, me: Thread) -> Iterator[State]:
        yield state.moved(who, "begin", 0, me.job, alive=state.alive - {me.job})

    # A worker

    def _worker_spin(self, state: State, who: int, me: Thread) -> Iterator[State]:
        yield state.moved(who, "draw" if state.tickets > 0 else "doze", state.tickets)

    def _worker_draw(self, state: State, who: int, me: Thread) -> Iterator[State]:
        good = state.tickets > 0 or self.without == "looking at the ticket"
        yield state.moved(who, "read" if good else "spin", state.tickets if good else 0, tickets=state.tickets - 1)

    def _worker_read(self, state: State, who: int, me: Thread) -> Iterator[State]:
        yield state.moved(who, "count" if me.number > 1 else "run", 0, state.posted)

    def _worker_count(self, state: State, who: int, me: Thread) -> Iterator[State]:
        yield state.moved(who, "call" if state.sleepers > 0 else "run", 0, me.job)

    def _worker_call(self, state: State, who: int, me: Thread) -> Iterator[State]:
        for woken in state.woken("worker", 2):
            yield woken.moved(who, "run", 0, me.job)

    def _worker_run(self, state: State, who: int, me: Thread) -> Iterator[State]:
        yield state.moved(who, "finish")

    def _worker_finish(self, state: State, who: int, me: Thread) -> Iterator[State]:
        after = state.finished + 1
        yield state.moved(who, "glance" if after == 0 else "spin", finished=after)

    def _worker_glance(self, state: State, who: int, me: Thread) -> Iterator[State]:
        yield state.moved(who, "rouse" if state.leader_sleeps else "spin")

    def _worker_rouse(self, state: State, who: int, me: Thread) -> Iterator[State]:
        for woken in state.woken("leader", 1):
            yield woken.moved(who, "spin")

    def _worker_doze(self, state: State, who: int, me: Thread) -> Iterator[State]:
        yield state.moved(who, "spin" if state.tickets > 0 else "lie_down", state.tickets)

    def _worker_lie_down(self, state: State, who: int, me: Thread) -> Iterator[State]:
        counted = 0 if self.without == "counting sleepers" else 1
        yield state.moved(who, "sleep", me.number, sleepers=state.sleepers + counted)

    def _worker_sleep(self, state: State, who: int, me: Thread) -> Iterator[State]:
        asleep = state.tickets == me.number or self.without == "comparing before sleep"
        yield state.moved(who, "asleep" if asleep else "up")

    def _worker_asleep(self, state: State, who: int, me: Thread) -> Iterator[State]:
        return iter(())

    def _worker_up(self, state: State, who: int, me: Thread) -> Iterator[State]:
        counted = 0 if self.without == "counting sleepers" else 1
        yield state.moved(who, "spin", sleepers=state.sleepers - counted)

    # One that resizes

    def _resizer_draw(self, state: State, who: int, me: Thread) -> Iterator[State]:
        good = state.tickets > 0 and self.without != "handing in"
        yield state.moved(who, "finish" if good else "wake", tickets=state.tickets - 1)

    def _resizer_finish(self, state: State, who: int, me: Thread) -> Iterator[State]:
        after = state.finished + 1
        yield state.moved(who, "glance" if after == 0 else "wake", finished=after)

    def _resizer_glance(self, state: State, who: int, me: Thread) -> Iterator[State]:
        yield state.moved(who, "rouse" if state.leader_sleeps else "wake")

    def _resizer_rouse(self, state: State, who: int, me: Thread) -> Iterator[State]:
        for woken in state.woken("leader", 1):
            yield woken.moved(who, "wake")

    def _resizer_wake(self, state: State, who: int, me: Thread) -> Iterator[State]:
        for woken in state.woken("worker", len(state.threads)):
            yield woken.moved(who, "done")

    def _resizer_done(self, state: State, who: int, me: Thread) -> Iterator[State]:
        return iter(())


def faults_of(state: State) -> Iterator[str]:
    """What must never be so in any state."""
    helping = [
        thread for thread in state.threads if thread.kind == "worker" and thread.step in ("count", "call", "run")
    ]
    for thread in helping:
        if thread.job not in state.alive:
            yield "a worker runs a job that has returned"
    leading = [thread for thread in state.threads if thread.kind == "leader" and thread.step not in ("begin", "take")]
    if sum(thread.step != "back" for thread in leading) > 1:
        yield "two callers lead"
    if state.owner == 0 and state.finished != 0:
        yield "the count of finished workers is not back at nought"
    at_work = any(thread.kind == "leader" and thread.step == "close" for thread in state.threads)
    workers = [thread.step for thread in state.threads if thread.kind == "worker"]
    others = [thread.step for thread in state.threads if thread.kind == "resizer"]
    if (
        at_work
        and state.tickets > 0
        and "asleep" in workers
        and set(workers) <= {"asleep", "run"}
        and "wake" not in others
    ):
        yield "a worker sleeps through a long kernel that has a ticket for it"


def explore(model: Model) -> tuple[int, set[str]]:
    """How many states there are, and what is wrong with them."""
    faults: set[str] = set()
    before: defaultdict[State, list[State]] = defaultdict(list)
    seen, todo = {model.start}, [model.start]
    while todo:
        state = todo.pop()
        faults.update(faults_of(state))
        for after in model.successors(state):
            before[after].append(state)
            if after not in seen:
                seen.add(after)
                todo.append(after)
    # From wherever it got to, everybody can get home.
    home = [state for state in seen if all(thread.calls == 0 and thread.step == "begin" for thread in _leaders(state))]
    can, todo = set(home), home
    while todo:
        for state in before[todo.pop()]:
            if state not in can:
                can.add(state)
                todo.append(state)
    if can != seen:
        faults.add("a caller can hang")
    return len(seen), faults


def _leaders(state: State) -> list[Thread]:
    return [thread for thread in state.threads if thread.kind == "leader"]
