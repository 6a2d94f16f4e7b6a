"""The machine code of this room: its text, and where it is once an image that has it is loaded.

It is part of the CPU's image, so that there is one to load; its loader says so here.
"""

from __future__ import annotations

from pathlib import Path

from tessera.targets.llvm.image import Image

_PARTS = ("fresh_arrays.ll", "same_words.ll")
_FOLDER = Path(__file__).parent
_images: dict[str, Image] = {}


def interface_text() -> str:
    """CPython's functions, declared, for all code that calls some of them."""
    return _read("interface.ll")


def text() -> str:
    """The code in LLVM's text, with that interface."""
    return "\n".join([interface_text(), *map(_read, _PARTS)])


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def is_in(image: Image) -> None:
    """Says which image has the code, for as long as the process lives."""
    _images["found"] = image


def is_loaded() -> bool:
    """Whether there is an image that has it."""
    return "found" in _images


def address(name: str) -> int:
    """Where a function of the code is."""
    return _images["found"].address(name)
