"""The tables of sequences, noted as they are made."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tessera.runtime.native import sequence


def noted_tables(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """A list that the tables of all sequences that are made from now on come to."""
    found: list[bytes] = []
    real = sequence.Table.filled

    def filled(self: sequence.Table, numbers: Sequence[int]) -> bytearray:
        made = real(self, numbers)
        found.append(bytes(made))
        return made

    monkeypatch.setattr(sequence.Table, "filled", filled)
    return found
