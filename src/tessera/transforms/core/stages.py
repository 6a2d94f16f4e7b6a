"""Stages of a compile: named passes in order, each timed, checked, dumped, and replaceable by a file.

`dump_dir` gets `<hash of the module>/NN-<stage>.mlir` for each stage. Where several lists of stages are tried, those of
each attempt have a folder of their own inside. `override_dir` is laid out alike, so a copy of a dump is an override; a
file `<stage>.mlir` at its top replaces that stage of every module that has the same functions.
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from tessera import knobs
from tessera.errors import CompileError
from tessera.internal_errors import boundary, verified
from tessera.ir import text
from tessera.ir.structural_hash import structural_hash
from tessera.transforms.core import legality

Read = Callable[[str, str], ModuleOp]
"""Reads IR text; the second argument is the file's name, for errors."""


@dataclass(frozen=True)
class Stage:
    """One step of a compile, and the level the module is at afterwards."""

    run: ModulePass
    level: str


@dataclass(frozen=True)
class Files:
    """The files of one compile: where stages are dumped, and where they are replaced from."""

    dumps: Path | None = None
    overrides: Path | None = None
    logged: str = ""
    """The name under which the log `ir` shows stages; none where it is off."""
    inside: Path = Path()
    """The folder of this attempt, in those of the module."""
    read: Read = text.read

    @staticmethod
    def of(module: ModuleOp, read: Read = text.read) -> Files:
        """The files of a module, as knobs have it."""
        dumps, overrides, logs = knobs.dump_dir.value, knobs.override_dir.value, "ir" in knobs.logs.value
        if dumps is None and overrides is None and not logs:
            return NO_FILES
        name = structural_hash(module)[:16]
        paths = (None if path is None else Path(path) for path in (dumps, overrides))
        return Files(*paths, logged=name if logs else "", inside=Path(name), read=read)

    def within(self, attempt: str) -> Files:
        """Those of one attempt of several."""
        return self if self is NO_FILES else replace(self, inside=self.inside / re.sub(r"[^\w.-]+", "-", attempt))

    def show(self, number: int, name: str, written: Callable[[bool], str], suffix: str = ".mlir") -> None:
        """Shows what there is after a stage; `written` gives its text, with locations if asked."""
        if self.logged:
            logging.getLogger("tessera.ir").warning("%s, after %s:\n%s", self.logged, name, written(False))
        if self.dumps is None:
            return
        folder = self.dumps / self.inside
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, unfinished = tempfile.mkstemp(dir=folder, suffix=".partial")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(written(True))
        Path(unfinished).replace(folder / f"{number:02d}-{name}{suffix}")

    def replaced(self, number: int, name: str, suffix: str = ".mlir") -> tuple[str, Path] | None:
        """The text that replaces what a stage makes."""
        if self.overrides is None:
            return None
        for path in (self.overrides / self.inside / f"{number:02d}-{name}{suffix}", self.overrides / f"{name}{suffix}"):
            if path.is_file():
                try:
                    return path.read_text(encoding="utf-8"), path
                except (OSError, UnicodeDecodeError) as error:
                    words = f"cannot read the override of stage {name}: {error}"
                    raise CompileError(words, hint=f"check {path}") from error
        return None

    def text_instead(self, number: int, name: str, written: str, suffix: str) -> str:
        """Shows the text that a stage made, or the one that replaces it."""
        found = self.replaced(number, name, suffix)
        text_ = written if found is None else found[0]
        self.show(number, name, lambda _: text_, suffix)
        return text_

    def module_instead(self, number: int, name: str, module: ModuleOp) -> ModuleOp | None:
        """The module that replaces what a stage made."""
        if (found := self.replaced(number, name)) is None:
            return None
        written, path = found
        made = self.read(written, str(path))
        if functions(made) != functions(module):
            given, wanted = (", ".join(sorted(functions(one))) or "no function" for one in (made, module))
            raise CompileError(
                f"{path} replaces the stage {name} of a module with {wanted}, and has {given}",
                hint=f"put it into {self.overrides}/{self.inside}, where it replaces this stage of this module alone",
            )
        return made


NO_FILES = Files()


def functions(module: ModuleOp) -> set[str]:
    """The symbols of a module."""
    names = [op.properties.get("sym_name") for op in module.body.block.ops]
    return {name.data for name in names if isinstance(name, StringAttr)}


@dataclass
class StageRunner:
    """Runs stages over a module: timed, dumped, replaced by files, checked.

    Facts and checks that passes note go into the `context`, also where what a stage makes is replaced.
    """

    subject: str
    context: Context
    files: Files = NO_FILES
    source: Callable[[], str] | None = None
    """Writes what is compiled, for reports of faults."""
    levels: Mapping[str, legality.Level] = field(default_factory=lambda: legality.LEVELS)
    ends: Callable[[str, ModuleOp], None] | None = None
    """Is called with each level that was reached, whose end is then verified. Stages of runners without this are
    verified one by one only where they are looked at: there are many, and what they make is verified at the end."""
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    count: int = 0

    def begin(self, module: ModuleOp, name: str) -> ModuleOp:
        """Shows the module before all stages."""
        if self.files is not NO_FILES:
            self.files.show(self.count, name, lambda located: text.write(module, locations=located))
        self.count += 1
        return module

    def run(self, module: ModuleOp, stages: Mapping[str, Stage]) -> ModuleOp:
        """The module after all stages; the one that is given is changed."""
        steps = list(stages.items())
        for index, (name, stage) in enumerate(steps):
            start = time.perf_counter()
            is_end = index + 1 == len(steps) or steps[index + 1][1].level != stage.level
            with boundary(self.subject, f"the pass {name}", self.source):
                stage.run.apply(self.context, module)
                replacement = self.files.module_instead(self.count, name, module)
                module = module if replacement is None else replacement
                is_watched = self.ends is not None or self.files is not NO_FILES
                if (is_end and self.ends is not None) or (is_watched and knobs.verify.value) or replacement is not None:
                    self._check(name, stage, module, is_replaced=replacement is not None)
            if is_end and self.ends is not None:
                self.ends(stage.level, module)
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
            if self.files is not NO_FILES:
                self.files.show(self.count, name, lambda located, shown=module: text.write(shown, locations=located))
            self.count += 1
        return module

    def verify(self, module: ModuleOp, level: str) -> None:
        """Verifies what all stages made together."""
        verified(partial(text.verify, module), self.subject, f"stages to the {level} level", self.source)
        if knobs.verify.value:
            legality.check(module, self.levels[level])

    def _check(self, name: str, stage: Stage, module: ModuleOp, *, is_replaced: bool) -> None:
        verify = partial(text.verify, module)
        if is_replaced:
            verify()  # an error here is the override's, not the pass's
        else:
            verified(verify, self.subject, f"the pass {name}", self.source)
        legality.check(module, self.levels[stage.level])
