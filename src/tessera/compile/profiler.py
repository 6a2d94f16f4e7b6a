"""`CompilationProfiler`: milliseconds of the stages of a compile."""

from __future__ import annotations

import time
from collections.abc import Mapping


class CompilationProfiler:
    """Milliseconds of one stage after another."""

    def __init__(self, stages_ms: Mapping[str, float] | None = None) -> None:
        self.stages_ms: dict[str, float] = dict(stages_ms or {})
        self._began = time.perf_counter()

    def lap(self, stage: str) -> None:
        """The time since the last lap belongs to this stage."""
        now = time.perf_counter()
        self.stages_ms[stage] = self.stages_ms.get(stage, 0.0) + 1e3 * (now - self._began)
        self._began = now

    def take(self, seconds: Mapping[str, float]) -> None:
        """Stages that were timed by those who ran them. What came between them is in none."""
        for stage, value in seconds.items():
            self.stages_ms[stage] = self.stages_ms.get(stage, 0.0) + 1e3 * value
        self._began = time.perf_counter()
