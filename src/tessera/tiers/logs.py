"""The logs `tiers`, `guards` and `recompiles`: lines of Python's logging, for those who ask for them."""

from __future__ import annotations

import logging

from tessera import knobs
from tessera.errors import TesseraError


def log(name: str, message: str) -> None:
    """A line in a log, if TESSERA_LOGS names it."""
    if name in knobs.logs.value:
        logging.getLogger(f"tessera.{name}").warning(message)


def warn(message: str) -> None:
    """Logs a warning whatever the settings: something failed, and calls go on without it."""
    logging.getLogger("tessera.tiers").warning(message)


def summary_of(error: BaseException) -> str:
    """An error in one line."""
    return error.message if isinstance(error, TesseraError) else f"{type(error).__name__}: {error}"
