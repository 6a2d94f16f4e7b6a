"""Whole error messages: each mistake `area/name.py` says exactly what `area/name.txt` says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tessera.errors import TesseraError

HERE = Path(__file__).parent
MISTAKES = sorted(HERE.glob("*/*.py"))


def message_of(mistake: Path) -> str:
    """The error that a file raises, with paths shortened to names."""
    code = compile(mistake.read_text(encoding="utf-8"), str(mistake), "exec", dont_inherit=True)
    with pytest.raises(TesseraError) as caught:
        exec(code, {"__file__": str(mistake)})
    return f"{type(caught.value).__name__}: {caught.value}\n".replace(f"{mistake.parent}/", "")


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_message(mistake: Path) -> None:
    message = message_of(mistake)
    assert message == mistake.with_suffix(".txt").read_text(encoding="utf-8")
    lines = message.splitlines()
    assert any(line.startswith(f"  --> {mistake.stem}.") for line in lines), "it does not say where"
    assert any(set(line.partition("| ")[2].strip()) == {"^"} for line in lines), "it does not point"
    assert any(line.startswith("  help:") for line in lines), "it does not say what to do"


def test_there_are_enough_of_each_kind() -> None:
    texts = [mistake.with_suffix(".txt").read_text(encoding="utf-8") for mistake in MISTAKES]
    typed = [text for text in texts if text.startswith(("ShapeError", "RangeError", "DtypeError"))]
    assert len(typed) >= 30
    assert len(list(HERE.glob("kernels/*.py"))) >= 25
    models = [text.read_text(encoding="utf-8") for text in HERE.glob("models/*.txt")]
    assert len(models) >= 30
    assert {text.partition(":")[0] for text in models} >= {"ShapeError", "DtypeError", "EffectError", "DeviceError"}
    assert sum("  story: " in text for text in models) >= 25
    assert sum("  shape: " in text and "  story: " in text for text in typed) >= 20


PLACES = ("bounds", "gathers", "items", "masks", "offsets", "scatters", "views")
"""The kinds of places that memory decides, by folder."""


@pytest.mark.parametrize("kind", PLACES)
def test_there_are_ten_mistakes_with_each_kind_of_place(kind: str) -> None:
    texts = [text.read_text(encoding="utf-8") for text in (HERE / kind).glob("*.txt")]
    # What is said, and the line it is said of.
    assert len({(text.splitlines()[0], text.splitlines()[2]) for text in texts}) == len(texts) >= 10
    for text in texts:
        assert not any(
            word in text for word in ("%0", "%1", "!tile", "scf.", "arith.", "Error: TypeError", "object has no")
        )


def test_every_text_belongs_to_a_mistake() -> None:
    assert {text.with_suffix(".py") for text in HERE.glob("*/*.txt")} == set(MISTAKES)
