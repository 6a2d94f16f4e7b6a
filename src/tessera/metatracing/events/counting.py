"""How many sectors and wavefronts an instruction of a warp takes, from the addresses of its lanes.

Global memory is moved in sectors of 32 bytes: a request takes those that its lanes touch. Shared memory has 32 banks of
4 bytes. Lanes that want different words of one bank wait for each other; those that want the same word do not. Accesses
of 8 bytes are made by half a warp at a time, those of 16 by a quarter. Matrices are read in rows of 16 bytes, eight
at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessera.metatracing.events.kinds import BANK_BYTES, BANKS, SECTOR, WARP

Array = NDArray[Any]
_NOWHERE = np.int64(-1)


def sectors_touched(addresses: Array, active: Array, size: int) -> Array:
    """The sectors of each warp's lanes, sorted, -1 where there is none; a row for each warp, some of them twice."""
    first = np.where(active, addresses // SECTOR, _NOWHERE)
    found = [first]
    if size > 1:
        last = (addresses + size - 1) // SECTOR
        reach = -(-(size - 1) // SECTOR)
        found += [np.where(active & (first + more <= last), first + more, _NOWHERE) for more in range(1, reach + 1)]
    return np.sort(np.concatenate(found, axis=1), axis=1)


def distinct(rows: Array) -> Array:
    """How many different numbers, not counting -1, each sorted row has."""
    fresh = np.ones(rows.shape, bool)
    fresh[:, 1:] = rows[:, 1:] != rows[:, :-1]
    return (fresh & (rows != _NOWHERE)).sum(axis=1)


def sectors(addresses: Array, active: Array, size: int) -> Array:
    """The sectors of each warp, for `size` bytes of each active lane."""
    return distinct(sectors_touched(addresses, active, size))


def lanes_at_once(size: int) -> int:
    """How many lanes of a warp shared memory serves together, for accesses of so many bytes."""
    return WARP // max(1, size // BANK_BYTES)


def wavefronts(addresses: Array, active: Array, size: int) -> tuple[Array, Array]:
    """The wavefronts of shared memory for each warp, and how many the bytes would need without conflicts."""
    together = lanes_at_once(size)
    words = max(1, size // BANK_BYTES)
    grouped = (addresses // BANK_BYTES).reshape(-1, together, 1) + np.arange(words)
    alive = np.broadcast_to(active.reshape(-1, together, 1), grouped.shape)
    wanted = np.sort(np.where(alive, grouped, _NOWHERE).reshape(len(grouped), -1), axis=1)
    return _per_warp(wanted, WARP // together)


def matrix_wavefronts(addresses: Array, active: Array, matrices: int) -> tuple[Array, Array]:
    """The same for `matrices` of eight rows of 16 bytes each, whose addresses the first lanes have."""
    rows = addresses[:, : 8 * matrices].reshape(-1, 8, 1) // BANK_BYTES + np.arange(4)
    alive = np.broadcast_to(active[:, : 8 * matrices].reshape(-1, 8, 1), rows.shape)
    wanted = np.sort(np.where(alive, rows, _NOWHERE).reshape(len(rows), -1), axis=1)
    return _per_warp(wanted, matrices)


def _per_warp(wanted: Array, groups: int) -> tuple[Array, Array]:
    """The most words that any bank has to give, by group, and the least that would do; summed over a warp's groups."""
    fresh = wanted != _NOWHERE
    fresh[:, 1:] &= wanted[:, 1:] != wanted[:, :-1]
    count = len(wanted)
    banks = np.where(fresh, wanted % BANKS, BANKS) + (BANKS + 1) * np.arange(count)[:, None]
    asked = np.bincount(banks.ravel(), minlength=count * (BANKS + 1)).reshape(count, BANKS + 1)[:, :BANKS]
    taken = asked.max(axis=1)
    least = -(-fresh.sum(axis=1) // BANKS)
    return taken.reshape(-1, groups).sum(axis=1), least.reshape(-1, groups).sum(axis=1)
