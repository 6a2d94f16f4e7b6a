"""Faults for processes that record: a pass that does nothing, or another constant. Only the recorder knows of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tessera.targets import choose_blocks
from tessera.targets.cpu.emit import memory as emit_memory
from tessera.targets.cuda import compile as cuda_compile
from tessera.targets.cuda.lower import preparing
from tessera.tile.calls import choosing


def nothing(*_args: Any, **_options: Any) -> Any:
    """A pass that is disabled."""


def _without_interleaving() -> None:
    cuda_compile.interleave = nothing


def _without_powers_of_two() -> None:
    preparing.use_powers_of_two = nothing


def _without_chosen_blocks() -> None:
    choose_blocks.ChooseBlocks.apply = nothing


def _shorter_loops() -> None:
    emit_memory.UNROLL = 2


def _no_doubt() -> None:
    choosing.DOUBT = 1.0


PLANTS: Mapping[str, Callable[[], None]] = {
    "without interleave": _without_interleaving,
    "without use_powers_of_two": _without_powers_of_two,
    "without choose-blocks": _without_chosen_blocks,
    "UNROLL of loops in memory": _shorter_loops,
    "DOUBT of chosen blocks": _no_doubt,
}
