"""Standard configurations: the specification's attention sizes, and the same scaled to processors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class InputConfiguration:
    """One attention problem, as the specification writes it."""

    batch_size: int
    num_heads: int
    seq_len: int
    head_dim: int
    dtype: str
    is_causal: bool
    description: str

    @property
    def size(self) -> dict[str, Any]:
        """As the benchmark `flash_attention` takes it."""
        return {
            "batch_size": self.batch_size,
            "num_heads": self.num_heads,
            "seq_len": self.seq_len,
            "head_dim": self.head_dim,
            "causal": self.is_causal,
        }


def _named(kind: str, sizes: Sequence[tuple[int, int, int, int]], dtype: str = "f16") -> list[InputConfiguration]:
    return [InputConfiguration(*size, dtype, True, f"{kind}: {'x'.join(map(str, size))}") for size in sizes]


class StandardBenchmarkConfigs:
    """The sets by name; `get_cpu_configs` is ours: what a processor does in milliseconds, in its own precisions."""

    @staticmethod
    def get_small_configs() -> list[InputConfiguration]:
        return _named("Small", [(1, 8, 512, 64), (1, 8, 1024, 64), (2, 8, 512, 64)])

    @staticmethod
    def get_medium_configs() -> list[InputConfiguration]:
        return _named("Medium", [(4, 16, 2048, 64), (8, 16, 2048, 64), (4, 16, 4096, 64)])

    @staticmethod
    def get_large_configs() -> list[InputConfiguration]:
        return _named("Large", [(16, 32, 4096, 64), (32, 32, 8192, 64), (64, 40, 4096, 128)])

    @staticmethod
    def get_variable_length_configs() -> list[InputConfiguration]:
        return _named("Variable", [(8, 16, length, 64) for length in (1024, 2048, 4096, 8192)])

    @staticmethod
    def get_mixed_precision_configs() -> list[InputConfiguration]:
        return [
            InputConfiguration(8, 16, 2048, 64, dtype, True, f"Mixed: {name}")
            for dtype, name in (("f16", "FP16"), ("bf16", "BF16"), ("f8e4m3", "FP8"))
        ]

    @staticmethod
    def get_cpu_configs() -> list[InputConfiguration]:
        return [
            InputConfiguration(1, heads, length, width, dtype, causal, f"CPU: 1x{heads}x{length}x{width} {dtype}")
            for dtype in ("f32", "bf16")
            for heads, length, width in ((8, 256, 64), (8, 512, 64), (8, 1024, 64), (8, 1024, 128))
            for causal in (True, False)
        ]


SETS = {
    "small": StandardBenchmarkConfigs.get_small_configs,
    "medium": StandardBenchmarkConfigs.get_medium_configs,
    "large": StandardBenchmarkConfigs.get_large_configs,
    "variable": StandardBenchmarkConfigs.get_variable_length_configs,
    "mixed": StandardBenchmarkConfigs.get_mixed_precision_configs,
    "cpu": StandardBenchmarkConfigs.get_cpu_configs,
}
