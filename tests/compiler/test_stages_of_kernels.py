"""The stages of kernels down to machine code: all are dumped, and each can be replaced by its own dump or another."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpu_options import gpu

import tessera as ts
from tessera import Schedule, kernel, knobs, stdlib, tile
from tessera.compiler.target import target_named, target_names
from tessera.errors import CompileError, DeviceError
from tessera.targets import text
from tessera.targets.cuda.compile import CompiledPtx, compile_kernel
from tessera.targets.passes import ALL_PASSES

BLOCK = (128, 128)


def attention_ptx() -> CompiledPtx:
    """Causal attention for sm_90a."""
    given = [ts.empty((2, 256, 64), ts.bf16) for _ in range(3)]
    made = stdlib.attention.with_schedule(Schedule(block=BLOCK)).lower(*given, mask=stdlib.causal)
    return compile_kernel(made.module, made.name, gpu(row_aligned=range(4)))


@pytest.fixture(name="dump", scope="module")
def _dump(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with all stages of attention, and its PTX."""
    folder = tmp_path_factory.mktemp("dump")
    with knobs.dump_dir.using(folder):
        made = attention_ptx()
    assert made.report.way.startswith("warp-specialized")
    return folder, made.ptx


def stages_of(folder: Path) -> list[Path]:
    """The files of the stages that were taken, in order."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(files, key=lambda path: path.name)


def test_all_stages_of_attention_are_dumped(dump: tuple[Path, str]) -> None:
    folder, ptx = dump
    files = stages_of(folder)
    numbers = [int(path.name.partition("-")[0]) for path in files]
    assert numbers == list(range(len(files)))
    assert len(files) >= 25
    assert [path.suffix for path in files[-3:]] == [".mlir", ".ll", ".ptx"]
    assert files[-1].read_text(encoding="utf-8") == ptx
    names = [path.stem.partition("-")[2] for path in files if path.suffix == ".mlir"]
    assert names[0] == "kernel"
    assert set(names[1:]) <= set(ALL_PASSES)


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.acceptance)])
def test_stages_that_are_replaced_by_their_dumps_give_the_same_code(
    step: int, dump: tuple[Path, str], tmp_path: Path
) -> None:
    folder, ptx = dump
    for path in stages_of(folder)[::step]:
        copy = tmp_path / path.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    with knobs.override_dir.using(tmp_path):
        assert attention_ptx().ptx == ptx


@pytest.mark.acceptance
def test_each_stage_that_is_replaced_by_its_dump_gives_the_same_code(dump: tuple[Path, str], tmp_path: Path) -> None:
    folder, ptx = dump
    for number, path in enumerate(stages_of(folder)):
        alone = tmp_path / str(number) / path.relative_to(folder)
        alone.parent.mkdir(parents=True)
        shutil.copy(path, alone)
        with knobs.override_dir.using(tmp_path / str(number)):
            assert attention_ptx().ptx == ptx, path.name


@pytest.mark.parametrize(
    ("stage", "old", "new", "seen"),
    [
        ("powers-of-two", "arith.constant 0.180", "arith.constant 0.250", "0f3E"),
        ("emit", "ex2.approx", "ex2.approx.ftz", "ex2.approx.ftz"),
    ],
)
def test_an_edit_of_a_stage_is_seen(
    stage: str, old: str, new: str, seen: str, dump: tuple[Path, str], tmp_path: Path
) -> None:
    folder, ptx = dump
    path = next(path for path in stages_of(folder) if path.stem.partition("-")[2] == stage)
    written = path.read_text(encoding="utf-8")
    assert old in written
    edited = tmp_path / path.relative_to(folder)
    edited.parent.mkdir(parents=True)
    edited.write_text(written.replace(old, new), encoding="utf-8")
    with knobs.override_dir.using(tmp_path):
        changed = attention_ptx().ptx
    assert changed != ptx
    assert seen in changed


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.acceptance)])
def test_opt_reads_what_every_stage_makes(step: int, dump: tuple[Path, str]) -> None:
    """Overrides, above, read all of them; here they are written again, too."""
    for path in stages_of(dump[0])[::step]:
        if path.suffix == ".mlir":
            written = path.read_text(encoding="utf-8")
            again = text.write(text.read(written, str(path)), locations=True)
            # The module itself has no location in a dump; once read it lies in that file.
            assert again.splitlines()[:-1] == written.splitlines()[:-1]


def test_an_override_of_another_kernel_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tile-to-cpu.mlir").write_text(
        "cpu.func @other() shapes [] grid [1] {\n  cpu.return\n}\n", encoding="utf-8"
    )

    @kernel
    def doubled(x: Any) -> Any:
        return tile.load(x) * 2.0

    with knobs.override_dir.using(tmp_path), knobs.backend.using("cpu"), pytest.raises(CompileError, match="other"):
        doubled(ts.ones((5,)))


def test_targets_are_values_with_names() -> None:
    assert {"cpu", "cuda"} <= set(target_names())
    for name in ("cpu", "cuda"):
        target = target_named(name)
        assert target.name == name
        assert target.default_level() in target.levels
        assert target.passes().items() <= ALL_PASSES.items()


def test_a_target_that_is_not_there_is_named() -> None:
    with pytest.raises(DeviceError, match="there is no target 'abacus'"):
        target_named("abacus")


def test_kernels_on_cpus_are_the_same_with_all_stages_replaced(tmp_path: Path) -> None:
    @kernel
    def softened(x: Any) -> Any:
        rows = tile.load(x)
        return tile.exp(rows - tile.max(rows, keepdims=True))

    x = ts.randn((9, 33), seed=1)
    expected = softened(x).numpy()
    with knobs.dump_dir.using(tmp_path), knobs.backend.using("cpu"):
        softened.assume("sizes")(x)
    with knobs.override_dir.using(tmp_path), knobs.backend.using("cpu"):
        found = softened.assume("sizes")(x).numpy()
    assert np.allclose(found, expected, rtol=1e-6)
