"""Dumps of what is compiled: a file for every stage, and lines in the log `ir`."""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from tessera import knobs
from tessera.ir import text
from tessera.ir.structural_hash import structural_hash


class Shown:
    """Shows what became of a module, stage by stage.

    `dump_dir` has files, dump_dir/<hash>/NN-<stage>.mlir, each whole or not at all; the log has the texts.
    """

    def __init__(self, module: ModuleOp) -> None:
        folder = knobs.dump_dir.value
        self._logs = "ir" in knobs.logs.value
        self._name = structural_hash(module)[:16] if folder is not None or self._logs else ""
        self._folder = None if folder is None else Path(folder) / self._name

    def show(self, number: int, name: str, module: ModuleOp) -> None:
        """Shows a module after a stage."""
        if self._logs:
            logging.getLogger("tessera.ir").warning("%s, after %s:\n%s", self._name, name, text.write(module))
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor, partial = tempfile.mkstemp(dir=self._folder, suffix=".partial")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text.write(module, locations=True))
        Path(partial).replace(self._folder / f"{number:02d}-{name}.mlir")
