"""The logs `tiers`, `guards` and `recompiles`: lines of Python's logging, for those who ask for them."""

from __future__ import annotations

import logging

from tessera import knobs


def log(name: str, message: str) -> None:
    """A line in a log, if TESSERA_LOGS names it."""
    if name in knobs.logs.value:
        logging.getLogger(f"tessera.{name}").warning(message)


def complain(message: str) -> None:
    """A line that everybody gets: something failed, and calls go on without it."""
    logging.getLogger("tessera.tiers").warning(message)
