"""Rows of GPU benchmarks, declared in small files: what runs, what it is compared with, and the PTX it is made of.

    @kernel_text("softmax bf16")
    def softmax_text() -> str:
        return ...                                    # compiles, down to PTX; needs no GPU

    @row("softmax 16384×4096 bf16", "bf16", moves=2 * 16384 * 4096 * 2, bars={"copy": 0.9, "inductor": 1.0},
         kernels=["softmax bf16"])
    def softmax(make: Inputs) -> Contest:
        x = make.normal(16384, 4096)                  # a torch tensor on the GPU
        ours = tessera.from_dlpack(x)
        return Contest(ours=lambda: ..., peers={"torch": lambda: torch.softmax(x, -1)},
                       truth=lambda: torch.softmax(x.double(), -1), ptx={"softmax bf16": ...})

Files are read where there is neither a GPU nor torch: both are asked for inside functions only.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tessera.bench.measuring.precision import BOUNDS
from tessera.bench.results.definitions import BenchError
from tessera.errors import TesseraError

COPY = "copy"
"""The entrant that copies as many bytes as the row has to move: it is in every row that says how many."""
OURS = "tessera"
BEST = "best"
"""A bar on it is one on the fastest of the row's peers."""

TorchTensor = Any
"""A tensor of torch, which need not be there to read these files."""
Call = Callable[[], Any]
"""Starts the work on the current stream, and returns the result without waiting for it."""


class Inputs(Protocol):
    """Makes inputs on the GPU, and can fill them anew: no result may come from numbers seen before."""

    @property
    def device(self) -> str:
        """The GPU, as torch calls it."""
        ...

    def normal(self, *shape: int, dtype: str | None = None, scale: float = 1.0, copies: int = 0) -> TorchTensor:
        """A torch tensor of normal numbers, of the row's type if nothing else is said.

        With `copies`, so many that hold the same numbers, along a first axis: calls take one after the other, and find
        none in a cache.
        """
        ...

    def integers(self, low: int, high: int, *shape: int, dtype: str = "i8", copies: int = 0) -> TorchTensor:
        """A torch tensor of whole numbers from `low` to `high`, without the latter."""
        ...

    def derived(self, compute: Callable[[], TorchTensor]) -> TorchTensor:
        """A torch tensor that is computed of inputs, and again whenever those are filled anew."""
        ...


def _whole(result: Any) -> TorchTensor:
    return result


@dataclass(frozen=True)
class Yardstick:
    """Other work of ours, whose rate a row is compared with: its result is not the row's, and is checked elsewhere."""

    call: Call
    flops: float


@dataclass(frozen=True)
class Contest:
    """A row made ready on the GPU."""

    truth: Callable[[], TorchTensor]
    """The result in float64, a torch tensor, of the inputs as they are when it is called."""
    ours: Call | None = None
    peers: Mapping[str, Call] = field(default_factory=dict[str, Call])
    """A call of torch or another library, which torch can capture into a graph."""
    yardsticks: Mapping[str, Yardstick] = field(default_factory=dict[str, Yardstick])
    part: Callable[[TorchTensor], TorchTensor] = _whole
    """Selects the part of a result, a torch tensor, that is compared with the truth."""
    ptx: Mapping[str, str | Callable[[], str]] = field(default_factory=dict[str, "str | Callable[[], str]"])
    """The texts that ours runs, by the names of the row's kernels; functions are asked for them after the calls.

    Where ours cannot be compiled a function that raises takes out ours alone, not the row.
    """
    ways: Callable[[], Sequence[str]] | None = None
    """Asked after the calls: how each kernel of ours was compiled, and what was refused."""
    occupancy: Callable[[], Mapping[str, float]] | None = None
    """The driver's figures of our kernel: registers_per_thread, shared_memory_per_block, occupancy_percent."""

    def texts(self) -> dict[str, str]:
        """All texts of what has run."""
        found: dict[str, str] = {}
        for name, text in self.ptx.items():
            with suppress(TesseraError):  # what was not compiled has no text, and its entrant says why
                found[name] = text if isinstance(text, str) else text()
        return found


@dataclass(frozen=True)
class Row:
    """One row: a name that stays, what it needs at least, and the bars that ours has to clear.

    A bar is a ratio: a peer's time over ours, or of the copy's bytes per second, or of a yardstick's operations.
    """

    name: str
    dtype: str
    build: Callable[[Inputs], Contest]
    moves: float | None = None
    """Bytes: inputs once, results once."""
    flops: float | None = None
    bars: Mapping[str, float] = field(default_factory=dict[str, float])
    kernels: tuple[str, ...] = ()
    bound: float = 0.0
    """The largest relative error in norm; that of the type where nothing is said."""


@dataclass(frozen=True)
class Mean:
    """A bar on the geometric mean of several rows' ratios to one peer."""

    name: str
    rows: tuple[str, ...]
    peer: str
    bar: float


ROWS: dict[str, Row] = {}
MEANS: dict[str, Mean] = {}
KERNELS: dict[str, Callable[[], str]] = {}
"""How the PTX of a kernel is made, by the name that results carry: the text, without a GPU."""


def kernel_text(name: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Declares a function that compiles a kernel to PTX."""
    if name in KERNELS:
        raise BenchError(f"kernel {name!r} is declared already", hint="give it another name")

    def declare(make: Callable[[], str]) -> Callable[[], str]:
        KERNELS[name] = make
        return make

    return declare


def row(
    name: str,
    dtype: str,
    *,
    moves: float | None = None,
    flops: float | None = None,
    bars: Mapping[str, float] | None = None,
    kernels: Sequence[str] = (),
    bound: float | None = None,
) -> Callable[[Callable[[Inputs], Contest]], Callable[[Inputs], Contest]]:
    """Declares a function that makes a row ready on the GPU."""
    if name in ROWS:
        raise BenchError(f"row {name!r} is declared already", hint="give it another name")
    if dtype not in BOUNDS:
        raise BenchError(f"row {name!r}: unknown type {dtype!r}", hint=f"one of {', '.join(BOUNDS)}")
    if unknown := [each for each in kernels if each not in KERNELS]:
        raise BenchError(
            f"row {name!r}: no @kernel_text declares the kernel {', '.join(unknown)}",
            hint="put @kernel_text above the row",
        )
    if COPY in (bars or {}) and moves is None:
        raise BenchError(f"row {name!r} has a bar on {COPY}, but not how many bytes it moves", hint="say moves=…")

    def declare(build: Callable[[Inputs], Contest]) -> Callable[[Inputs], Contest]:
        limit = BOUNDS[dtype] if bound is None else bound
        ROWS[name] = Row(name, dtype, build, moves, flops, dict(bars or {}), tuple(kernels), limit)
        return build

    return declare


def mean(name: str, rows: Sequence[str], peer: str, bar: float) -> None:
    """Declares a bar on a mean of rows."""
    if name in MEANS:
        raise BenchError(f"mean {name!r} is declared already", hint="give it another name")
    if unknown := [each for each in rows if each not in ROWS]:
        raise BenchError(f"mean {name!r}: no @row declares the row {', '.join(unknown)}", hint="declare its rows first")
    MEANS[name] = Mean(name, tuple(rows), peer, bar)


def load(folder: Path) -> None:
    """Runs every file of a folder, in the order of their names."""
    files = sorted(folder.glob("*.py"))
    if not files:
        raise BenchError(f"{folder} has no files with rows", hint="rows are declared in Python files")
    for path in files:
        runpy.run_path(str(path), run_name=f"gpu_rows_{path.stem}")
