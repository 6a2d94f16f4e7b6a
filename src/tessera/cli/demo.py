"""`tessera demo`: attention that goes up the tiers while it is called, then a model; results are checked."""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.table import Table

import tessera as ts
from tessera import knobs
from tessera.device_names import ACCELERATORS, HOST, is_accelerator, is_host
from tessera.errors import DeviceError
from tessera.metatracing import (
    BASELINE,
    AttentionParams,
    ExecutionTier,
    MetaTracingRuntime,
    RuntimeConfig,
    flash_attention,
)
from tessera.metatracing.live import Case, drawn, view_of
from tessera.tile.calls.settings import settings

Array = np.ndarray[Any, np.dtype[Any]]
_BOUNDS = {"f32": 2e-6, "bf16": 4e-3}
"""Relative error in norm against float64."""
_SETTLED = 40
"""Calls at Tier 3 after which there is nothing new to see."""
_QUIET = 150
"""Calls during which nothing was compiled or compared: nothing will come of waiting."""
_LONGEST_PAUSE = 0.02
_ROUNDS = 50
"""Calls of each when two programs are compared."""
_DIFFERENT = 1.02
"""Times as fast: less is noise."""
_CANDIDATES = 2
"""Schedules that are tried at a time: each takes its while on a slow machine."""


class Size(NamedTuple):
    """The problem: attention over so many heads, rows and columns."""

    batch: int
    heads: int
    rows: int
    width: int
    dtype: ts.DType

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return self.batch, self.heads, self.rows, self.width


SIZES = {HOST: Size(1, 4, 256, 64, ts.f32), **dict.fromkeys(ACCELERATORS, Size(4, 16, 2048, 64, ts.bf16))}
"""As models have them: of calls that are over in microseconds there is little to gain, and nothing to see."""
_CHECKED = 1
"""Of a batch, as many as float64 computes in time."""


@dataclass
class Demo:
    """The demo under one runtime, with an end to the time it may take."""

    console: Console
    runtime: MetaTracingRuntime
    device: str
    ends: float
    errors: list[tuple[str, float, float]] = field(default_factory=list[tuple[str, float, float]])

    def until_settled(self, call: Callable[[], int], share: float) -> None:
        """Calls until Tier 3 was reached for a while or nothing more will come, or a share of the time is over."""
        stops = time.monotonic() + share * max(0.0, self.ends - time.monotonic())
        settled = quiet = 0
        while settled < _SETTLED and quiet < _QUIET and time.monotonic() < stops:
            began = time.monotonic()
            settled = settled + 1 if call() == 3 else 0
            quiet = 0 if self.is_working() else quiet + 1
            if is_accelerator(self.device):
                ts.cuda.synchronize()
            # Calls come with pauses, as from users, so that there are cores left for the process that compiles.
            time.sleep(min(_LONGEST_PAUSE, 2 * (time.monotonic() - began)))

    def is_working(self) -> bool:
        """Whether something is being compiled or compared."""
        return any(one.is_working for one in self.runtime.sites())

    def note(self, what: str, found: ts.Tensor, exact: Array, bound: float) -> None:
        """Notes how far a result is from what it should be."""
        values = found.cpu().values()[: len(exact)].astype(np.float64)
        self.errors.append((what, float(np.linalg.norm(values - exact) / np.linalg.norm(exact)), bound))

    def attention(self, size: Size, share: float) -> None:
        """The kernel, called until it is as fast as it gets."""
        q, k, v = (ts.randn(size.shape, size.dtype, seed=seed).to(self.device) for seed in range(3))
        o = ts.empty(size.shape, size.dtype, device=self.device)
        params = AttentionParams(is_causal=True)
        exact = _attention(*(_wide(one)[:_CHECKED] for one in (q, k, v)))

        def call() -> int:
            return int(self.runtime.execute_flash_attention(q, k, v, o, params).tier_used)

        tier = call()
        self.note(f"attention of {size.rows} rows, the first call, tier {tier}", o, exact, _BOUNDS[str(size.dtype)])
        self.until_settled(call, share)
        tier = call()
        self.note(f"attention of {size.rows} rows, the last call, tier {tier}", o, exact, _BOUNDS[str(size.dtype)])

    def model(self, size: Size, share: float) -> None:
        """A jitted function: attention between two matmuls."""
        width = size.heads * size.width
        x = ts.randn((size.batch, size.rows, width), size.dtype, seed=4).to(self.device)
        weights = [ts.randn((width, columns), seed=seed) for seed, columns in ((5, 3 * width), (6, width))]
        inward, outward = ((one * float(width**-0.5)).to(size.dtype).to(self.device) for one in weights)

        @ts.jit(tiers=self.runtime)
        def layer(x: Any, inward: Any, outward: Any) -> Any:
            q, k, v = ts.ops.split_qkv(x @ inward, heads=size.heads)
            return x + ts.ops.merge_heads(ts.flash_attention(q, k, v, causal=True)) @ outward

        exact = _layer(_wide(x)[:_CHECKED], _wide(inward), _wide(outward), heads=size.heads)
        # Rounding to few bits happens four times on the way, not once.
        bound = 2 * _BOUNDS[str(size.dtype)]
        self.note("a jitted layer, the first call", layer(x, inward, outward), exact, bound)

        def call() -> int:
            layer(x, inward, outward)
            return _latest_tier(self.runtime, "layer")

        self.until_settled(call, share)
        self.note("a jitted layer, the last call", layer(x, inward, outward), exact, bound)

    def show(self, title: str) -> None:
        self.console.rule(title, align="left")
        self.console.print(drawn(view_of(self.runtime)))


def _latest_tier(runtime: MetaTracingRuntime, name: str) -> int:
    for site in runtime.sites():
        if site.name == name:
            with site.lock:
                return max((int(entry.tier) for entry in site.entries if entry.ab_test is None), default=1)
    return 1


@click.command()
@click.option("--seconds", default=40.0, help="About how long it may take.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="Where to compute.")
@click.option("--plain", is_flag=True, help="No colours, no boxes, and nothing that is drawn over.")
@click.option("--tour", "wants_tour", is_flag=True, help="Instead, one program at every level, checked at each.")
@click.option("--rows", default=50, help="Rows of the inputs of the tour.")
def demo(seconds: float, device: str, plain: bool, wants_tour: bool, rows: int) -> None:
    """Attention calls that climb the tiers, live; the status is 1 if any result is wrong, whatever the speed."""
    console = Console(no_color=plain, highlight=not plain)
    if wants_tour:
        from tessera.cli.demo_tour import tour

        sys.exit(0 if tour(console, rows, plain) else 1)
    began = time.monotonic()
    target = _has_gpu() if device == "auto" else device
    with tempfile.TemporaryDirectory(prefix="tessera-demo-") as folder, ExitStack() as stack:
        # A cache of its own: with what an earlier run has left, there would be no change of tiers to see.
        stack.enter_context(knobs.cache_dir.using(folder))
        good = _demo(console, target, began + seconds, plain)
    console.print(f"{time.monotonic() - began:.0f} s in all; `tessera demo --tour` shows the levels of a program")
    sys.exit(0 if good else 1)


def _demo(console: Console, device: str, ends: float, plain: bool) -> bool:
    size = SIZES[device]
    longer = size._replace(rows=size.rows + size.rows // 3)
    console.print(
        f"Attention on {device}: called at once by a program that knows nothing, which is replaced while it is called. "
        "Programs that know more are compiled beside it, compared on the calls, and guarded by what they know.\n"
    )
    with MetaTracingRuntime(RuntimeConfig(candidates=_CANDIDATES)) as runtime:
        shown = Demo(console, runtime, device, ends)
        is_live = console.is_terminal and not plain
        with runtime.live(console) if is_live else ExitStack():
            shown.attention(size, 0.4)
            shown.attention(longer, 0.45)
            if settings() is not None:
                shown.model(size, 0.7)
        if not is_live:
            shown.show("what happened")
        cases = view_of(runtime).cases
        for line in _story(cases, runtime):
            console.print(line, soft_wrap=True)
    _again(shown, size)
    for line in _baseline(cases, size, device):
        console.print(line, soft_wrap=True)
    return _verdict(console, shown)


def _story(cases: tuple[Case, ...], runtime: MetaTracingRuntime) -> Iterator[str]:
    """The text of a live view."""
    yield ""
    for case in cases:
        first, last = case.timed[0], case.last
        line = f"{case.name} {case.arguments}: tier {last.tier} takes {last.nanoseconds / 1e6:.3f} ms"
        if case.speedup is not None:
            line += f", tier {first.tier} took {first.nanoseconds / 1e6:.3f} ms: {speed(case.speedup)}"
        yield line if last.tier == ExecutionTier.TIER3_SPECIALIZED else f"{line}; {why_not_higher(runtime, case)}"
    stats = runtime.get_runtime_stats()
    counted = stats.events
    yield (
        f"{stats.total_executions:,} calls, {counted['compiles']} programs compiled in the background, "
        f"{counted['contests']} contests, {counted['deopts']} calls that guards refused and a lower tier served, "
        f"{counted['bridges']} bridges, {counted['aborts']} failures"
    )


def speed(ratio: float) -> str:
    """How much faster something is, in words."""
    if ratio >= _DIFFERENT:
        return f"{ratio:.2f} times as fast"
    return f"takes {1 / ratio:.2f} times as long" if ratio <= 1 / _DIFFERENT else "as fast, within 2 %"


def why_not_higher(runtime: MetaTracingRuntime, case: Case) -> str:
    """Why calls are not at Tier 3."""
    sites = [one for one in runtime.sites() if one.name == case.name]
    happened = [one for one in runtime.counts.event_log if one.site == case.name]
    if any(one.tier_policy.requests for one in sites):
        return "more was still being compiled when the time was over"
    if any(one.is_working for one in sites):
        return "more was still being compared when the time was over"
    if failed := [one.what for one in happened if one.kind == "aborts"]:
        return f"more could not be compiled: {failed[-1]}"
    if any(one.kind == "switch_backs" for one in happened):
        return "programs that know more were compiled, compared on the calls, and were not faster, so it stays there"
    if not any(one.can_tier_up for one in sites):
        return "there is no machine code here"
    return "it was not called for long enough to be worth more"


def _again(shown: Demo, size: Size) -> None:
    """Another runtime, as another process would have it: it starts where the first one has ended."""
    if settings() is None:
        return
    with MetaTracingRuntime() as runtime:
        q, k, v = (ts.randn(size.shape, size.dtype, seed=seed).to(shown.device) for seed in range(3))
        began = time.perf_counter()
        tier = int(runtime.execute_flash_attention(q, k, v, params=AttentionParams(is_causal=True)).tier_used)
        took = 1e3 * (time.perf_counter() - began)
    shown.console.print(
        f"another runtime, with what this one left on the disk: its first call is at tier {tier}, {took:.0f} ms"
    )


def _baseline(cases: tuple[Case, ...], size: Size, device: str) -> Iterator[str]:
    """The last tier beside the schedule that tiers are compared with, alternating: both find the same machine."""
    case = next((case for case in cases if case.name == flash_attention.__name__), None)
    if case is None or not is_host(device) or settings() is None or case.tier == 1:
        return
    q, k, v = (ts.randn(size.shape, size.dtype, seed=seed) for seed in range(3))
    o, scale, params = ts.empty(size.shape, size.dtype), size.width**-0.5, AttentionParams(is_causal=True)
    fixed: Any = flash_attention.with_schedule(BASELINE)
    ratios, tier = list[float](), case.tier
    with MetaTracingRuntime() as runtime:
        for _ in range(_ROUNDS):
            began = time.perf_counter()
            fixed(q, k, v, o, scale, causal=True)
            between = time.perf_counter()
            tier = int(runtime.execute_flash_attention(q, k, v, o, params).tier_used)
            ratios.append((between - began) / (time.perf_counter() - between))
    ratio = float(np.median(ratios[_ROUNDS // 5 :]))
    yield f"tier {tier} against the frozen baseline ({BASELINE}, sizes open), alternating: ×{ratio:.2f}"


def _verdict(console: Console, shown: Demo) -> bool:
    table = Table("result", "relative error against float64", "at most", "")
    for what, error, bound in shown.errors:
        table.add_row(what, f"{error:.1e}", f"{bound:.0e}", "ok" if error <= bound else "WRONG")
    console.print(table)
    return all(error <= bound for _, error, bound in shown.errors)


def _has_gpu() -> str:
    from tessera.runtime.cuda import driver

    try:
        return "cuda" if driver.device_count() else "cpu"
    except DeviceError:
        return "cpu"


def _wide(value: ts.Tensor) -> Array:
    return value.cpu().values().astype(np.float64)


def _attention(q: Array, k: Array, v: Array) -> Array:
    exact = np.empty_like(q)
    seen = np.tri(q.shape[2], k.shape[2], dtype=np.bool_)
    for head in np.ndindex(q.shape[:2]):
        scores = np.where(seen, q[head] @ k[head].T / math.sqrt(q.shape[-1]), -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        exact[head] = weights @ v[head] / weights.sum(-1, keepdims=True)
    return exact


def _layer(x: Array, inward: Array, outward: Array, *, heads: int) -> Array:
    batch, rows, width = x.shape
    parts = np.split(x @ inward, 3, axis=-1)
    q, k, v = (part.reshape(batch, rows, heads, -1).transpose(0, 2, 1, 3) for part in parts)
    return x + _attention(q, k, v).transpose(0, 2, 1, 3).reshape(batch, rows, width) @ outward
