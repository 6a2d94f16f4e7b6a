"""What slow calls of a changing workload did: work is seen by wrapping it while calls are made, in all threads.

`python benchmarks/tier_life.py workload DEVICE --slow` prints, before its line of JSON, what slow calls have in common
and what each of the slowest did. Nothing is wrapped without that.
"""

from __future__ import annotations

import gc
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, Self

import numpy as np

from tessera.metatracing import MetaTracingRuntime
from tessera.metatracing.clients.kernels import KernelClient, KernelProgram
from tessera.stdlib import flash_attention
from tessera.tiers.sites.ab_test import ABTest
from tessera.tiers.sites.request import Request
from tessera.tiers.sites.specialization_site import SpecializationSite
from tessera.tiers.sites.trials import Candidates
from tessera.tiers.tiered import Tiered

SLOWEST = 80
"""Calls that are listed one by one."""
_BEHIND = 50  # calls behind a shift
_WRAPPED: tuple[tuple[type, str, str], ...] = (
    (SpecializationSite, "sampled", "recorded"),
    (SpecializationSite, "_unrecorded", "books were taken"),
    (SpecializationSite, "entry_for", "found an entry"),
    (SpecializationSite, "recover", "failed first"),
    (SpecializationSite, "_note", "books"),
    (SpecializationSite, "arrived", "took in"),
    (SpecializationSite, "compiled", "took in"),
    (Candidates, "begin", "began an A/B test"),
    (ABTest, "next", "a round"),
    (KernelProgram, "bind", "bound"),
    (Tiered, "_write", "wrote the call"),
    (KernelClient, "find", "loading"),
    (KernelClient, "request", "packing"),
    (Request, "installed", "took in"),
)


class Span(NamedTuple):
    """Something that a thread did, in nanoseconds of the host's clock."""

    began: int
    ended: int
    what: str
    is_caller: bool


class Watched(NamedTuple):
    """A call: when it began, when its launch had returned and when all was done, and what served it.

    `device` is nanoseconds by the GPU's clock from before the call until all of it was done; None on a CPU. `refused`:
    a program that knows more did not serve it.
    """

    began: int
    returned: int
    ended: int
    device: float | None
    program: str
    refused: bool


class Watcher:
    """Sees what happens while calls are made. `with watcher:` around the calls."""

    def __init__(self, device: str) -> None:
        self.spans: list[Span] = []
        self.calls: list[Watched] = []
        self._caller = threading.get_ident()
        self._stack = ExitStack()
        self._events: tuple[Any, Any] | None = None
        if device != "cpu":
            from tessera.runtime.cuda.streams import Event

            self._events = Event(device, timing=True), Event(device, timing=True)
        self._is_gpu = device != "cpu"

    def __enter__(self) -> Self:
        for owner, name, what in _WRAPPED:
            self._stack.enter_context(self._wrapped(owner, name, what))
        if self._is_gpu:
            from tessera.runtime.cuda.pool import Pool

            self._stack.enter_context(self._wrapped(Pool, "allocate", "memory made anew"))
        self._stack.enter_context(self._collecting())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextmanager
    def _wrapped(self, owner: type, name: str, what: str) -> Generator[None]:
        real, spans, caller, clock = getattr(owner, name), self.spans, self._caller, time.perf_counter_ns
        is_round = what == "a round"

        def seen(*args: Any, **kwargs: Any) -> Any:
            began, label = clock(), f"{what}, in vain"
            try:
                result = real(*args, **kwargs)
                label = "a first round" if is_round and result.number == 1 else what
            finally:
                spans.append(Span(began, clock(), label, threading.get_ident() == caller))
            return result

        setattr(owner, name, seen)
        try:
            yield
        finally:
            setattr(owner, name, real)

    @contextmanager
    def _collecting(self) -> Generator[None]:
        began = 0

        def heard(phase: str, info: Mapping[str, int]) -> None:
            nonlocal began
            now = time.perf_counter_ns()
            if phase == "start":
                began = now
                return
            what = f"garbage {info['generation']}"
            self.spans.append(Span(began, now, what, threading.get_ident() == self._caller))

        gc.callbacks.append(heard)
        try:
            yield
        finally:
            gc.callbacks.remove(heard)

    def waited(
        self, run: Callable[[], Any], synchronize: Callable[[], None], program: Callable[[], tuple[str, bool]]
    ) -> tuple[Any, float]:
        """The result of a call, and the microseconds that its caller waits for it."""
        clock, events = time.perf_counter_ns, self._events
        if events is not None:
            events[0].record()
        began = clock()
        result = run()
        returned = clock()
        if events is not None:
            events[1].record()
        synchronize()
        ended = clock()
        device = None if events is None else 1e6 * events[0].milliseconds_until(events[1])
        self.calls.append(Watched(began, returned, ended, device, *program()))
        return result, (ended - began) / 1e3

    @staticmethod
    def serving(runtime: MetaTracingRuntime, shape: Sequence[int]) -> tuple[str, bool]:
        """The program that serves calls of a shape now, and whether one that knows more refused it; no call waits."""
        for site in runtime.tiered(flash_attention).sites.values():
            for entry in list(site.entries):
                if entry.call.values[0].shape == tuple(shape):
                    return str(entry.program.level), entry.failed is not None
        return "nothing", False

    def tell(
        self, plan: Sequence[int], usual: Sequence[int], compared: Sequence[bool], steady: Sequence[float]
    ) -> None:
        """Prints what was seen."""
        for line in report(self, Workload(plan, usual, compared, steady)):
            print(line)


class Workload(NamedTuple):
    """Which shape each call had, which was usual then, which calls were compared with the baseline; and the calm."""

    plan: Sequence[int]
    usual: Sequence[int]
    compared: Sequence[bool]
    steady: Sequence[float]


def flags_of(watcher: Watcher, work: Workload) -> list[set[str]]:
    """What each call did, and what was done beside it."""
    spans = sorted(watcher.spans)
    starts, longest = [span.began for span in spans], max((span.ended - span.began for span in spans), default=0)
    found: list[set[str]] = []
    known: set[tuple[int, str]] = set()
    shift = 0
    for number, call in enumerate(watcher.calls):
        which, flags = work.plan[number], set[str]()
        if number and work.usual[number] != work.usual[number - 1]:
            shift = number
        if shift and number - shift < _BEHIND:
            flags.add(f"first {_BEHIND} behind a shift")
        if which != work.usual[number]:
            flags.add("not the usual shape")
        if number and work.plan[number - 1] != which:
            flags.add("another shape than the call before")
        if found and "recorded" in found[-1]:
            flags.add("behind a recorded call")
        if work.compared[number]:
            flags.add("with events of the benchmark")
        if call.refused:
            flags.add("refused by a higher tier")
        if (which, call.program) not in known:
            known.add((which, call.program))
            flags.add("first of its shape in its program")
        for index in range(bisect_left(starts, call.began - longest), bisect_left(starts, call.ended)):
            span = spans[index]
            if span.ended > call.began:
                flags.add(span.what if span.is_caller else f"beside: {span.what}")
        found.append(flags)
    return found


def report(watcher: Watcher, work: Workload) -> Iterator[str]:
    """What slow calls have in common, and the slowest of them, in lines."""
    calls, flags = watcher.calls, flags_of(watcher, work)
    took = np.asarray([(call.ended - call.began) / 1e3 for call in calls])
    host = np.asarray([(call.returned - call.began) / 1e3 for call in calls])
    slower = took / np.asarray([work.steady[which] for which in work.plan])
    slow = {int(number) for number in np.argsort(-slower)[:SLOWEST]}
    compared = np.asarray(work.compared)
    recorded = np.asarray(["recorded" in one for one in flags])
    yield f"p99 {np.percentile(slower, 99):.2f}, more than twice as usual: {int((slower > 2).sum())}"
    for name, chosen in (
        ("without events of the benchmark", ~compared),
        ("not recorded", ~recorded),
        ("neither", ~recorded & ~compared),
    ):
        few = slower[chosen]
        yield f"  {name}: {len(few)} calls, p99 {np.percentile(few, 99):.2f}, {int((few > 2).sum())} more than twice"
    thousands = Counter(number // 1000 for number in slow)
    yield f"the slowest {len(slow)} by thousands of calls: {[thousands[one] for one in range(-(-len(calls) // 1000))]}"
    yield "\nwhat slow calls have in common | slow | all | times as usual, median | µs until it returned, median"
    every = Counter(one for several in flags for one in several)
    among = Counter(one for number in slow for one in flags[number])
    plain = [number for number, one in enumerate(flags) if not one]
    rows = [(one, [number for number, have in enumerate(flags) if one in have]) for one in every]
    for name, numbers in [("nothing of all this", plain), *sorted(rows, key=lambda row: -among[row[0]])]:
        if numbers:
            count = among[name] if name in among else len(slow.intersection(numbers))
            part, whole = count / max(1, len(slow)), len(numbers) / len(calls)
            yield (
                f"{name:40} | {count:3} ({part:4.0%}) | {len(numbers):4} ({whole:4.0%}) | "
                f"{np.median(slower[numbers]):5.2f} | {np.median(host[numbers]):6.0f}"
            )
    yield "\ncall | shape | times as usual | µs: all, until it returned, by the GPU's clock | program | what it did"
    for number in sorted(slow):
        call = calls[number]
        device = "-" if call.device is None else f"{call.device / 1e3:.0f}"
        yield (
            f"{number:4} | {work.plan[number]} | {slower[number]:6.2f} | "
            f"{took[number]:6.0f} {host[number]:6.0f} {device:>5} | "
            f"{call.program[:44]} | {', '.join(sorted(flags[number])) or '-'}"
        )
    yield "\nwhat was done | by whom | times | ms in all | longest ms"
    sums: dict[tuple[str, bool], list[int]] = {}
    for span in watcher.spans:
        sums.setdefault((span.what, span.is_caller), []).append(span.ended - span.began)
    for (what, is_caller), lasted in sorted(sums.items(), key=lambda one: -sum(one[1])):
        who = "caller" if is_caller else "others"
        yield f"{what:24} | {who} | {len(lasted):5} | {sum(lasted) / 1e6:8.2f} | {max(lasted) / 1e6:7.2f}"
