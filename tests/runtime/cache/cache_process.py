"""What the other processes of the cache's tests do: write until they are killed, or read, write and evict at once."""

from __future__ import annotations

import random
import sys
from hashlib import blake2b
from itertools import count
from pathlib import Path

from tessera.runtime.cache.store import Store, key_of

KEYS = 30


def payload_of(key: str, largest: int) -> bytes:
    """The only right payload of a key: a process that reads another has found a fault of the cache."""
    block = blake2b(key.encode(), digest_size=64).digest()
    size = int.from_bytes(block[:4], "little") % largest
    return (block * (size // 64 + 1))[:size]


def write_for_ever(root: Path, seed: int) -> None:
    """Says `ready` after the first entry, then goes on until it is killed."""
    store = Store(root, 50_000_000)
    numbers = random.Random(seed)
    for number in count():
        key = key_of(numbers.randrange(KEYS))
        store.put(key, payload_of(key, 1_500_000))
        if number == 0:
            sys.stdout.write("ready\n")
            sys.stdout.flush()


def mix(root: Path, seed: int, rounds: int) -> None:
    """Reads and writes at random, with a cap that makes every few entries evict others; prints what it saw."""
    store = Store(root, 1_000_000)
    numbers = random.Random(seed)
    hits = misses = 0
    for number in range(rounds):
        key = key_of(numbers.randrange(KEYS))
        found = store.get(key)
        if found is None:
            misses += 1
            store.put(key, payload_of(key, 100_000))
        else:
            hits += 1
            assert found == payload_of(key, 100_000)
        if number % 97 == 96:
            assert store.verify() == []
    sys.stdout.write(f"{hits} {misses}\n")


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write_for_ever(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        mix(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
