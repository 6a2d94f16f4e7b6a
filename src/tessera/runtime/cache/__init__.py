"""The compile cache on disk, and the identity of the compiler."""

from __future__ import annotations

from tessera.runtime.cache.store import Store, key_of

__all__ = ["Store", "key_of"]
