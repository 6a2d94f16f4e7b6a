"""`StageTimes`: how long the stages of a compile take."""

from __future__ import annotations

import time


class StageTimes(dict[str, float]):
    """Seconds of one stage after another."""

    def __init__(self) -> None:
        super().__init__()
        self._since = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self[stage] = self.get(stage, 0.0) + now - self._since
        self._since = now
