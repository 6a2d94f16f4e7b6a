"""Checks IR text with a target's dialect in it: versions, identity, locations, and that lower layers do not know it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cpu_runs import lowered
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tessera.errors import CompileError
from tessera.ir import structural_hash as structure
from tessera.ir import text as plain
from tessera.ir.common.locations import span_of
from tessera.targets import text
from tessera.targets.cpu.ir import dialect as cpu

GOLDEN = Path(__file__).parents[1] / "kernels" / "golden"
FUNCTION = """
cpu.func @f(%n: index) shapes [[]] grid [4] {
  %b = cpu.buffer : !cpu.buffer<4x8xf32>
  cpu.return
}
"""


def golden(name: str) -> ModuleOp:
    return text.read((GOLDEN / f"{name}.mlir").read_text(encoding="utf-8"), name)


def test_cpu_text_carries_the_versions_it_rests_on() -> None:
    module = text.stamp(text.read(FUNCTION))
    written = text.write(module)
    assert f"cpu = {cpu.VERSION} : i64" in written
    assert text.write(text.read(written)) == written
    newer = written.replace(f"cpu = {cpu.VERSION} :", f"cpu = {cpu.VERSION + 1} :")
    with pytest.raises(
        CompileError, match=f"version {cpu.VERSION + 1} of the cpu dialect; this Tessera reads {cpu.VERSION}"
    ):
        text.read(newer)


def test_text_above_the_targets_is_the_same_for_both_readers() -> None:
    module = golden("saxpy")
    assert "cpu =" not in text.write(text.stamp(module))
    assert text.write(module) == plain.write(plain.stamp(golden("saxpy")))
    assert text.structural_hash(module) == structure.structural_hash(module)


def test_layers_below_the_targets_do_not_know_them() -> None:
    with pytest.raises(CompileError, match="cpu"):
        plain.read(FUNCTION)


def test_the_identity_of_cpu_programs_includes_their_dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    module, above = text.read(FUNCTION), golden("saxpy")
    before = text.structural_hash(module), text.structural_hash(above)
    assert before[0] == text.structural_hash(text.read(FUNCTION))
    monkeypatch.setitem(text.VERSIONS, "cpu", cpu.VERSION + 1)
    after = text.structural_hash(module), text.structural_hash(above)
    assert before[0] != after[0]
    assert before[1] == after[1]


@pytest.mark.parametrize("level", ["avx2", "amx"])
def test_lowered_programs_know_the_lines_they_come_from(level: str) -> None:
    module = golden("attention")
    source = (GOLDEN / "attention.mlir").read_text(encoding="utf-8").splitlines()
    made = lowered(module, level)
    kinds: dict[type[Operation], str] = {
        cpu.DotOp: "tile.dot",
        cpu.MatmulOp: "tile.dot",
        cpu.PackOp: "tile.load",
        cpu.PartialOp: "tile.reduce",
    }
    seen = 0
    for op in made.walk():
        span = span_of(op.location)
        if op is made:
            continue
        assert span is not None, op.name
        assert span.file == "attention"
        if type(op) in kinds:
            assert kinds[type(op)] in source[span.line - 1]
            seen += 1
    assert seen >= 4
