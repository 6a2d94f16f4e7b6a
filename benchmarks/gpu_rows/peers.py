"""Rows that need no kernel of ours: what memory and the matrix units do on this GPU, and how torch fares."""

from __future__ import annotations

from tessera.bench.cuda.declarations import Contest, Inputs, row
from tessera.bench.instruments.libraries import library

ROWS, COLUMNS = 16384, 4096
MOVED = 2 * ROWS * COLUMNS * 2
"""Bytes of a bf16 matrix, read and written."""
SIDE = 4096


@row(f"copy {ROWS}×{COLUMNS} bf16", "bf16", moves=MOVED)
def copy(make: Inputs) -> Contest:
    x = make.normal(ROWS, COLUMNS)
    return Contest(truth=x.double, peers={"torch clone": x.clone})


@row(f"torch softmax {ROWS}×{COLUMNS} bf16", "bf16", moves=MOVED)
def softmax(make: Inputs) -> Contest:
    torch = library("torch")
    x = make.normal(ROWS, COLUMNS)
    compiled = torch.compile(torch.softmax, dynamic=False)
    return Contest(
        truth=lambda: torch.softmax(x.double(), -1),
        peers={"torch": lambda: torch.softmax(x, -1), "inductor": lambda: compiled(x, -1)},
    )


@row(f"torch matmul {SIDE}³ bf16", "bf16", flops=2.0 * SIDE**3)
def matmul(make: Inputs) -> Contest:
    torch = library("torch")
    a, b = make.normal(SIDE, SIDE), make.normal(SIDE, SIDE)
    return Contest(truth=lambda: a.double() @ b.double(), peers={"cublas": lambda: torch.matmul(a, b)})
