"""Reads relocatable ELF objects: the sections that occupy memory, the symbols, the relocations."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntFlag
from typing import NamedTuple

from tessera.errors import CompileError

_IDENTIFICATION = b"\x7fELF\x02\x01\x01"  # 64 bits, little endian, version 1
_RELOCATABLE = 1
_FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

_SYMBOL_TABLE, _RELOCATIONS, _NO_BITS = 2, 4, 8
_NOTE, _RELOCATIONS_WITHOUT_ADDENDS, _INITIALISERS, _UNWIND = 7, 9, (14, 15, 16), 0x70000001
_UNDEFINED, _ABSOLUTE, _COMMON, _RESERVED = 0, 0xFFF1, 0xFFF2, 0xFF00
_LOCAL, _WEAK = 0, 2
_TYPE_FILE, _TYPE_THREAD_LOCAL, _TYPE_INDIRECT = 4, 6, 10
_HIDDEN = (1, 2)

X86_64, AARCH64 = 62, 183
MACHINES = {X86_64: "x86-64", 3: "x86", 40: "Arm", AARCH64: "AArch64", 224: "AMDGPU", 243: "RISC-V"}


class Flags(IntFlag):
    """The flags of a section that matter for where it goes."""

    WRITE = 1
    ALLOC = 2
    EXECUTE = 4
    THREAD_LOCAL = 0x400


@dataclass(frozen=True, slots=True)
class Section:
    """A section that occupies memory; `content` is empty where memory starts as zeros."""

    name: str
    flags: Flags
    size: int
    alignment: int
    content: bytes

    @property
    def is_zeros(self) -> bool:
        return self.size > len(self.content)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name with an offset in a section of this object, or, without a section, one to be found elsewhere."""

    name: str
    section: int | None
    value: int
    exported: bool
    weak: bool


@dataclass(frozen=True, slots=True)
class Relocation:
    """An offset in a section whose bytes depend on the address of a symbol."""

    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(frozen=True, slots=True)
class Object:
    """An object file; sections keep the numbers that symbols and relocations use."""

    sections: dict[int, Section]
    symbols: list[Symbol]
    relocations: list[Relocation]


def machine_of(data: bytes) -> int:
    """The machine that an object is for."""
    if not data.startswith(_IDENTIFICATION) or len(data) < _FILE_HEADER.size:
        raise CompileError(f"expected a 64-bit little-endian ELF object, got {len(data)} bytes starting {data[:8]!r}")
    return _FILE_HEADER.unpack_from(data)[2]


def read(data: bytes) -> Object:
    """An object as LLVM writes it; anything that an image cannot hold is refused."""
    machine_of(data)
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError) as error:
        raise CompileError(f"expected a whole ELF object, got one that is cut off or inconsistent: {error}") from None


class _Header(NamedTuple):
    """A section's header, as the file has it."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


def _read(data: bytes) -> Object:
    header: tuple[int, ...] = _FILE_HEADER.unpack_from(data)[1:]
    kind, table, count, names_at = header[0], header[5], header[11], header[12]
    if kind != _RELOCATABLE:
        raise CompileError(f"expected a relocatable ELF object, got one of type {kind}")
    headers = [_Header(*_SECTION_HEADER.unpack_from(data, table + at * _SECTION_HEADER.size)) for at in range(count)]
    contents = [b"" if row.kind == _NO_BITS else _slice(data, row.offset, row.size) for row in headers]
    sections: dict[int, Section] = {}
    symbols: list[Symbol] = []
    for at, row in enumerate(headers):
        name = _text(contents[names_at], row.name)
        if row.kind == _SYMBOL_TABLE:
            symbols = _symbols(contents[at], contents[row.link], sections, count)
        elif row.flags & Flags.ALLOC and row.kind not in (_NOTE, _UNWIND) and name != ".eh_frame":
            if row.kind in _INITIALISERS or name.startswith((".ctors", ".dtors")):
                raise CompileError(f"the object has constructors ({name}), and nothing would run them")
            if row.flags & Flags.THREAD_LOCAL:
                raise CompileError(f"the object has thread-local data ({name}), and images have none")
            sections[at] = Section(name, Flags(row.flags & 7), row.size, max(row.alignment, 1), contents[at])
    relocations = [
        Relocation(row.info, offset, kind & 0xFFFFFFFF, kind >> 32, addend)
        for at, row in enumerate(headers)
        if row.kind == _RELOCATIONS and row.info in sections
        for offset, kind, addend in _RELOCATION.iter_unpack(contents[at])
    ]
    if any(row.kind == _RELOCATIONS_WITHOUT_ADDENDS and row.info in sections for row in headers):
        raise CompileError("the object has relocations without addends, which its machine does not use")
    return Object(sections, symbols, relocations)


def _slice(data: bytes, start: int, size: int) -> bytes:
    if start + size > len(data):
        raise ValueError(f"a section ends at byte {start + size} of {len(data)}")
    return data[start : start + size]


def _text(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode()


def _symbols(table: bytes, names: bytes, sections: dict[int, Section], count: int) -> list[Symbol]:
    """All symbols; tentative definitions get sections of zeros, numbered after the `count` there are."""
    found: list[Symbol] = []
    for name_at, info, other, section, value, length in _SYMBOL.iter_unpack(table):
        name, binding, kind = _text(names, name_at), info >> 4, info & 15
        exported = binding != _LOCAL and other & 3 not in _HIDDEN
        home, offset = section, value
        if section == _COMMON:
            home, offset = count + len(found), 0
            sections[home] = Section(f"common {name}", Flags.ALLOC | Flags.WRITE, length, max(value, 1), b"")
        elif section in (_UNDEFINED, _ABSOLUTE):
            home = None
        if kind in (_TYPE_THREAD_LOCAL, _TYPE_INDIRECT):
            raise CompileError(f"the symbol {name} is thread-local or chosen at load time, and images have neither")
        if section == _ABSOLUTE and kind != _TYPE_FILE:
            raise CompileError(f"the symbol {name} has a fixed address, and images have none")
        if section >= _RESERVED and section not in (_ABSOLUTE, _COMMON):
            raise CompileError(f"the symbol {name} is in the unknown section {section:#x}")
        found.append(Symbol(name, home, offset, exported and home is not None, binding == _WEAK))
    return found
