"""Opportunities that were planted in streams of calls, and whether the runtime finds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tessera.bench.validation.subjects import synchronize
from tessera.device_names import is_host
from tessera.dtypes.types import f16, f32
from tessera.metatracing import AttentionParams, ExecutionTier, HotspotDetector, MetaTracingRuntime, RuntimeConfig
from tessera.runtime.tensor.creation import empty
from tessera.runtime.tensor.random import randn
from tessera.tiers.sites.request import Request, RequestCompiler

_WIDTH = 16
_CALLS = 48


@dataclass(frozen=True)
class Planted:
    """A stream of calls with something to find, and whether it was found."""

    name: str
    found: bool
    told: str


class _Noting(RequestCompiler):
    """Compiles, and notes what for."""

    def __init__(self) -> None:
        super().__init__()
        self.assumed: set[str] = set()
        """The facts that the last request of Tier 3 assumes."""

    def submit(self, *requests: Request) -> None:
        for one in requests:
            if one.levels[0].tier is ExecutionTier.TIER3_SPECIALIZED:
                self.assumed = {word for level in one.levels for word in level.assumed}
        super().submit(*requests)


def _runtime() -> tuple[MetaTracingRuntime, _Noting]:
    noting = _Noting()
    made = MetaTracingRuntime(
        RuntimeConfig(
            background_compilation=False,
            persist=False,
            tier2_compilation_threshold_ms=0.001,
            tier3_specialization_threshold_ms=0.5,
            candidates=1,
            contest_rounds=1,
            sample_period=0,
        ),
        compiling=noting,
    )
    return made, noting


def _call(runtime: MetaTracingRuntime, device: str, heads: int, length: int, scale: float | None = None) -> None:
    dtype = f32 if is_host(device) else f16
    shape = (1, heads, length, _WIDTH)
    q, k, v = (randn(shape, dtype, seed=seed).to(device) for seed in range(3))
    out = empty(shape, dtype, device=device)
    runtime.execute_flash_attention(q, k, v, out, AttentionParams(softmax_scale=scale))
    synchronize(device)


def planted(device: str) -> Iterator[Planted]:
    """Streams, one after the other."""
    fixed, noted = _runtime()
    for _ in range(_CALLS):
        _call(fixed, device, 2, 32)
    words = noted.assumed
    yield Planted("sizes that never change", {"q.size[1]", "q.size[2]", "k.size[2]"} <= words, f"{len(words)} facts")
    yield Planted("a scale that never changes", "scale" in words, ", ".join(sorted(words)[:4]))
    changing, noted = _runtime()
    for index in range(2 * _CALLS):
        _call(changing, device, 2, 8 + index % 24)
    words = noted.assumed
    yield Planted("the width beside changing lengths", "q.size[3]" in words or not words, f"{len(words)} facts")
    yield Planted("lengths that change are not assumed", "q.size[2]" not in words, f"{len(words)} facts")
    mixed, _ = _runtime()
    for index in range(_CALLS):
        _call(mixed, device, 8 if index % 3 else 1, 96 if index % 3 else 8)
    hot = HotspotDetector().detect_hotspots(mixed.get_traces())
    first = hot[0].input_pattern.seq_len if hot else None
    yield Planted("the input that takes most of the time", first == 96, f"hottest length {first}")
