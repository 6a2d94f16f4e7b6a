"""Images: machine code in a form that is mapped and called at once, without LLVM and without a linker.

`flatten` makes one of an object: sections laid out, distances within the image filled in. What is left to do when it is
loaded is a short list of fixups: 8-byte words that hold an address, of the image itself or of an external symbol.

    header          magic, version, machine, checksum over everything else
    sizes           of the parts below, and of the memory to map
    exports         value, length, name
    externals       weak or not, length, name
    fixups          offset, external (or -1: the image), what to add
    content         the bytes to copy: the sealed segment, then the start of the writable one

The sealed segment (code, stubs, constants, the table of addresses) becomes read-execute once it is filled in; the
writable one (data, then zeros) never is executable. Images are for x86-64 and AArch64 Linux; anything else is refused.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b

from tessera.errors import CompileError, DeviceError, ResourceError
from tessera.targets.llvm import elf

_MAGIC = b"TesImage"
_VERSION = 1
_HEADER = struct.Struct("<8sHHI32s")
_SIZES = struct.Struct("<QQQIII")
_EXPORT = struct.Struct("<QI")
_EXTERNAL = struct.Struct("<BI")
_FIXUP = struct.Struct("<Qiq")
_WORD = struct.Struct("<Q")

_PAGE = 4096
_STUB = struct.Struct("<2si2s")  # jmp *distance(%rip), then two traps
_LONG_STUB = struct.Struct("<4I")  # adrp x16, the slot's page; ldr x16, [x16, its offset there]; br x16; a trap
_LARGEST_ALIGNMENT = 1 << 21
_THIS_IMAGE = -1


def flatten(data: bytes) -> bytes:
    """The image of a relocatable object (x86-64 or AArch64 ELF)."""
    machine = elf.machine_of(data)
    if machine not in _FAMILIES:
        raise CompileError(
            f"expected an object for x86-64 or AArch64, got one for {elf.MACHINES.get(machine, f'machine {machine}')}",
            hint="images exist for these two only; for other machines there is object code and assembly",
        )
    layout = _Layout(elf.read(data), _FAMILIES[machine])
    try:
        return layout.image()
    except (struct.error, IndexError) as error:
        raise CompileError(
            f"expected a whole ELF object, got relocations at offsets that it does not have: {error}"
        ) from None


@dataclass(slots=True)
class _Layout:
    """Where everything goes, and the bytes as they come together."""

    object: elf.Object
    family: _Family
    starts: dict[int, int] = field(default_factory=dict[int, int])
    slots: dict[int, int] = field(default_factory=dict[int, int])  # symbol → the word that holds its address
    stubs: dict[int, int] = field(default_factory=dict[int, int])  # symbol → code that jumps through that word
    externals: dict[int, int] = field(default_factory=dict[int, int])
    fixups: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    content: bytearray = field(default_factory=bytearray)
    end: int = 0
    alignment: int = _PAGE

    def image(self) -> bytes:
        sections = self.object.sections
        code = [at for at, section in sections.items() if section.flags & elf.Flags.EXECUTE]
        fixed = [at for at, section in sections.items() if at not in code and _is_constant(section)]
        data = [at for at in sections if at not in code and at not in fixed and not sections[at].is_zeros]
        zeros = [at for at in sections if at not in code and at not in fixed and sections[at].is_zeros]

        self._lay_out(code)
        self._lay_out_stubs()
        self._lay_out(fixed)
        self._lay_out_slots()
        stored = self.end
        sealed = self.end = _round(self.end, self.family.page)
        self._lay_out(data)
        stored = self.end if data else stored
        self._lay_out(zeros)
        self.content.extend(bytes(stored - len(self.content)))
        self._fill()
        return self._written(sealed, _round(self.end, _PAGE))

    def _lay_out(self, sections: Iterable[int]) -> None:
        for at in sections:
            section = self.object.sections[at]
            if section.alignment > _LARGEST_ALIGNMENT:
                raise CompileError(
                    f"{section.name} wants to be aligned to {section.alignment} bytes, at most 2 MiB goes"
                )
            self.alignment = max(self.alignment, section.alignment)
            self.starts[at] = start = _round(self.end, section.alignment)
            self.end = start + section.size
            if section.content:
                self.content.extend(bytes(start - len(self.content)))
                self.content.extend(section.content)

    def _lay_out_stubs(self) -> None:
        family = self.family
        self.end = _round(self.end, family.stub.size)
        for relocation in self.object.relocations:
            needs_slot = relocation.kind in family.through_slot
            if relocation.kind in family.calls and self._is_external(relocation.symbol):
                needs_slot = True
                if relocation.symbol not in self.stubs:
                    self.stubs[relocation.symbol] = self.end
                    self.end += family.stub.size
            if needs_slot:
                self.slots.setdefault(relocation.symbol, 0)

    def _lay_out_slots(self) -> None:
        self.end = _round(self.end, _WORD.size)
        for symbol in self.slots:
            self.slots[symbol] = self.end
            self.end += _WORD.size

    def _fill(self) -> None:
        for symbol, slot in self.slots.items():
            self._address(slot, symbol, 0)
        for symbol, stub in self.stubs.items():
            self.family.write_stub(self, stub, symbol)
        for relocation in self.object.relocations:
            if relocation.kind not in self.family.rules:
                raise CompileError(
                    f"{self._name(relocation.symbol)} is addressed in a way that images do not have "
                    f"(relocation {relocation.kind} in {self.object.sections[relocation.section].name})",
                    hint="code for images is position independent, in the small code model, without thread-local data",
                )
            offset = self.starts[relocation.section] + relocation.offset
            self.family.rules[relocation.kind](self, offset, relocation.symbol, relocation.addend)

    def _is_external(self, symbol: int) -> bool:
        return self.object.symbols[symbol].section is None

    def _name(self, symbol: int) -> str:
        return self.object.symbols[symbol].name or f"symbol {symbol}"

    def _value(self, symbol: int) -> int:
        found = self.object.symbols[symbol]
        if found.section is None:
            raise CompileError(
                f"{found.name} is not in the object, and is addressed as if it were near",
                hint="declare it without dso_local",
            )
        if found.section not in self.starts:
            raise CompileError(f"{self._name(symbol)} is in a section that occupies no memory")
        return self.starts[found.section] + found.value

    def _address(self, offset: int, symbol: int, addend: int) -> None:
        """The word at an offset gets the symbol's address when the image is loaded."""
        _WORD.pack_into(self.content, offset, 0)
        if self._is_external(symbol):
            external = self.externals.setdefault(symbol, len(self.externals))
            self.fixups.append((offset, external, addend))
        else:
            self.fixups.append((offset, _THIS_IMAGE, self._value(symbol) + addend))

    def near(self, offset: int, symbol: int, addend: int) -> None:
        self._write_distance(offset, self._value(symbol) + addend, symbol)

    def far(self, offset: int, symbol: int, addend: int) -> None:
        struct.pack_into("<q", self.content, offset, self._value(symbol) + addend - offset)

    def call(self, offset: int, symbol: int, addend: int) -> None:
        target = self.stubs[symbol] if symbol in self.stubs else self._value(symbol)
        self._write_distance(offset, target + addend, symbol)

    def through_slot(self, offset: int, symbol: int, addend: int) -> None:
        self._write_distance(offset, self.slots[symbol] + addend, symbol)

    def absolute(self, offset: int, symbol: int, addend: int) -> None:
        self._address(offset, symbol, addend)

    def nothing(self, offset: int, symbol: int, addend: int) -> None:
        """A relocation that only keeps a symbol alive."""

    def _write_distance(self, offset: int, target: int, symbol: int) -> None:
        distance = target - offset
        if not -(1 << 31) <= distance < 1 << 31:
            raise CompileError(
                f"{self._name(symbol)} is {distance} bytes away from where it is used, at most 2 GiB goes"
            )
        struct.pack_into("<i", self.content, offset, distance)

    def _written(self, sealed: int, memory: int) -> bytes:
        symbols = self.object.symbols
        machine = self.family.machine
        exports = [(symbol.name, self._value(at)) for at, symbol in enumerate(symbols) if symbol.exported]
        parts = [_SIZES.pack(sealed, memory, self.alignment, len(exports), len(self.externals), len(self.fixups))]
        parts += [_EXPORT.pack(value, len(name.encode())) + name.encode() for name, value in exports]
        for at in self.externals:
            parts.append(_EXTERNAL.pack(symbols[at].weak, len(symbols[at].name.encode())) + symbols[at].name.encode())
        parts += [_FIXUP.pack(*fixup) for fixup in self.fixups]
        body = b"".join([*parts, self.content])
        return _HEADER.pack(_MAGIC, _VERSION, machine, len(body), _checksum(machine, body)) + body

    # AArch64: offsets are within instructions of 4 bytes.

    def branch(self, offset: int, symbol: int, addend: int) -> None:
        target = self.stubs[symbol] if symbol in self.stubs else self._value(symbol)
        self._into_instruction(offset, self._within(target + addend - offset, 28, symbol) >> 2, 26, 0)

    def page(self, offset: int, symbol: int, addend: int) -> None:
        self._write_page(offset, self._value(symbol) + addend, symbol)

    def page_of_slot(self, offset: int, symbol: int, addend: int) -> None:
        self._write_page(offset, self.slots[symbol] + addend, symbol)

    def in_page(self, offset: int, symbol: int, addend: int, size: int) -> None:
        """The distance from a page's start, in units of `size` bytes."""
        distance = (self._value(symbol) + addend) % _PAGE
        if distance % size:
            raise CompileError(
                f"{self._name(symbol)} is not aligned to the {size} bytes that are read or written there"
            )
        self._into_instruction(offset, distance // size, 12, 10)

    def slot_in_page(self, offset: int, symbol: int, addend: int) -> None:
        self._into_instruction(offset, (self.slots[symbol] + addend) % _PAGE // _WORD.size, 12, 10)

    def _write_page(self, offset: int, target: int, symbol: int) -> None:
        pages = self._within(target - target % _PAGE - (offset - offset % _PAGE), 33, symbol) // _PAGE
        self._into_instruction(offset, pages, 2, 29)
        self._into_instruction(offset, pages >> 2, 19, 5)

    def _within(self, distance: int, bits: int, symbol: int) -> int:
        if not -(1 << bits - 1) <= distance < 1 << bits - 1:
            raise CompileError(
                f"{self._name(symbol)} is {distance} bytes away from where it is used, "
                f"at most {1 << bits - 21} MiB goes"
            )
        return distance

    def _into_instruction(self, offset: int, value: int, bits: int, shift: int) -> None:
        """Puts the lowest bits of a value where an instruction has them."""
        (word,) = _INSTRUCTION.unpack_from(self.content, offset)
        mask = (1 << bits) - 1
        _INSTRUCTION.pack_into(self.content, offset, word & ~(mask << shift) | (value & mask) << shift)


_INSTRUCTION = struct.Struct("<I")
_Rule = Callable[[_Layout, int, int, int], None]


def _in_page_by(size: int) -> _Rule:
    """Loads and stores of so many bytes count in those."""

    def rule(layout: _Layout, offset: int, symbol: int, addend: int) -> None:
        layout.in_page(offset, symbol, addend, size)

    return rule


def _write_jump(layout: _Layout, stub: int, symbol: int) -> None:
    distance = layout.slots[symbol] - (stub + 6)
    _STUB.pack_into(layout.content, stub, b"\xff\x25", distance, b"\xcc\xcc")


def _write_long_jump(layout: _Layout, stub: int, symbol: int) -> None:
    _LONG_STUB.pack_into(layout.content, stub, 0x90000010, 0xF9400210, 0xD61F0200, 0xD4200020)
    layout.page_of_slot(stub, symbol, 0)
    layout.slot_in_page(stub + 4, symbol, 0)


@dataclass(frozen=True, slots=True)
class _Family:
    """The relocations of a machine's position-independent code in the small model, by number."""

    machine: int
    host: str
    page: int
    """The largest page that its systems have: where code ends and data begins."""
    stub: struct.Struct
    write_stub: Callable[[_Layout, int, int], None]
    calls: tuple[int, ...]
    through_slot: tuple[int, ...]
    rules: dict[int, _Rule]


_X86_SLOTS = (9, 41, 42, 43)
_X86 = _Family(
    elf.X86_64,
    "x86_64",
    _PAGE,
    _STUB,
    _write_jump,
    (4,),
    _X86_SLOTS,
    {
        0: _Layout.nothing,
        1: _Layout.absolute,
        2: _Layout.near,
        4: _Layout.call,
        24: _Layout.far,
        **dict.fromkeys(_X86_SLOTS, _Layout.through_slot),
    },
)
_ARM = _Family(
    elf.AARCH64,
    "aarch64",
    1 << 16,
    _LONG_STUB,
    _write_long_jump,
    (282, 283),
    (311, 312),
    {
        0: _Layout.nothing,
        256: _Layout.nothing,
        257: _Layout.absolute,
        260: _Layout.far,
        261: _Layout.near,
        275: _Layout.page,
        277: _in_page_by(1),
        278: _in_page_by(1),
        282: _Layout.branch,
        283: _Layout.branch,
        284: _in_page_by(2),
        285: _in_page_by(4),
        286: _in_page_by(8),
        299: _in_page_by(16),
        311: _Layout.page_of_slot,
        312: _Layout.slot_in_page,
    },
)
_FAMILIES = {family.machine: family for family in (_X86, _ARM)}


def _is_constant(section: elf.Section) -> bool:
    """Constants that hold addresses count as writable in objects; here they are sealed with the rest."""
    return not section.flags & elf.Flags.WRITE or section.name.startswith(".data.rel.ro")


def _round(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


def _checksum(machine: int, body: bytes | memoryview) -> bytes:
    digest = blake2b(struct.pack("<HH", _VERSION, machine), digest_size=32)
    digest.update(body)
    return digest.digest()


class Image:
    """Machine code in memory. Its addresses are good for as long as the image is referenced."""

    __slots__ = ("__weakref__", "_addresses", "_release")

    def __init__(self, addresses: dict[str, int], start: int, size: int) -> None:
        self._addresses = addresses
        # Threads may still be inside the code when the interpreter shuts down: then the memory stays.
        self._release = weakref.finalize(self, _system().munmap, start, size)
        self._release.atexit = False

    def address(self, name: str) -> int:
        """Where an exported function or variable is."""
        try:
            return self._addresses[name]
        except KeyError:
            raise CompileError(
                f"expected a symbol of the image, got {name!r}", hint=f"it has {', '.join(sorted(self._addresses))}"
            ) from None

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that the image exports."""
        return tuple(self._addresses)


def load(data: bytes) -> Image:
    """Maps an image, after its checksum has been found right, and fills in the addresses that it needs."""
    body = _checked(data)
    sealed, memory, alignment, exports, externals, fixups = _SIZES.unpack_from(body)
    at = _SIZES.size
    values: dict[str, int] = {}
    for _ in range(exports):
        value, length = _EXPORT.unpack_from(body, at)
        at += _EXPORT.size + length
        values[str(body[at - length : at], "utf-8")] = value
    found: list[int] = []
    for _ in range(externals):
        weak, length = _EXTERNAL.unpack_from(body, at)
        at += _EXTERNAL.size + length
        found.append(_address_of(str(body[at - length : at], "utf-8"), bool(weak)))
    table = body[at : at + fixups * _FIXUP.size]
    content = bytearray(body[at + len(table) :])

    start, size = _map(memory, alignment)
    base = _round(start, alignment)
    found.append(base)  # the image itself, at index -1
    for offset, external, addend in _FIXUP.iter_unpack(table):
        _WORD.pack_into(content, offset, (found[external] + addend) & 0xFFFFFFFFFFFFFFFF)
    ctypes.memmove(base, bytes(content), len(content))
    image = Image({name: base + value for name, value in values.items()}, start, size)
    _make_visible(base, sealed)
    if sealed and _system().mprotect(base, sealed, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        raise ResourceError(
            f"memory with machine code cannot be made executable: {os.strerror(ctypes.get_errno())}",
            hint="the system's security policy may forbid it",
        )
    return image


def _checked(data: bytes) -> memoryview:
    """The image after its header; nothing in it is believed before its checksum is right."""
    if len(data) < _HEADER.size + _SIZES.size:
        raise ResourceError(f"expected an image of machine code, got {len(data)} bytes")
    magic, version, machine, length, checksum = _HEADER.unpack_from(data)
    body = memoryview(data)[_HEADER.size :]
    if magic != _MAGIC or version != _VERSION:
        raise ResourceError(f"expected an image of version {_VERSION}, got {magic!r}, version {version}")
    if length != len(body) or checksum != _checksum(machine, body):
        raise ResourceError("expected a whole image, got one that is damaged: its checksum is wrong")
    if machine not in _FAMILIES or os.uname().machine != _FAMILIES[machine].host or sys.platform != "linux":
        raise DeviceError(
            f"an image for {elf.MACHINES.get(machine, machine)} cannot run on {os.uname().machine} {sys.platform}",
            hint="images run on Linux, on the processors that they were made for",
        )
    return body


class _System:
    """The system calls that Python's mmap does not give: memory that outlives objects, and changes of protection."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        word, number = ctypes.c_size_t, ctypes.c_int
        self.mmap = ctypes.CFUNCTYPE(
            ctypes.c_ssize_t, word, word, number, number, number, ctypes.c_long, use_errno=True
        )(("mmap", library))
        self.mprotect = ctypes.CFUNCTYPE(number, word, word, number, use_errno=True)(("mprotect", library))
        self.munmap = ctypes.CFUNCTYPE(number, word, word, use_errno=True)(("munmap", library))


@cache
def _system() -> _System:
    return _System()


def _map(memory: int, alignment: int) -> tuple[int, int]:
    """Fresh memory with a multiple of `alignment` in it that has `memory` bytes after it."""
    size = max(memory, _PAGE) + alignment - _PAGE
    protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    start = _system().mmap(0, size, protection, flags, -1, 0)
    if start == -1:
        raise ResourceError(f"no {size} bytes of memory for machine code: {os.strerror(ctypes.get_errno())}")
    return start, size


def _make_visible(start: int, size: int) -> None:
    """Makes what was written as data visible to instruction fetch: AArch64's caches for the two are apart."""
    if os.uname().machine == _ARM.host:
        _clear_cache()(start, start + size)


@cache
def _clear_cache() -> Callable[[int, int], None]:
    """The compiler's own routine: it cleans the one cache, invalidates the other and waits for both, line by line."""
    try:
        library = ctypes.CDLL("libgcc_s.so.1")
        return ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_size_t)(("__clear_cache", library))
    except (OSError, AttributeError) as error:
        raise ResourceError(
            f"machine code cannot be made visible to the processor: {error}",
            hint="install the GNU compiler's runtime: libgcc_s.so.1, which has __clear_cache",
        ) from None


@cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    """Where external symbols are looked for: everything in the process, Python included, then the C library's parts."""
    found = [ctypes.CDLL(None)]
    for name in ("libm.so.6", "libc.so.6"):
        try:
            found.append(ctypes.CDLL(name))
        except OSError:  # C libraries other than glibc have other names, and all in one part
            continue
    return tuple(found)


def _address_of(name: str, weak: bool) -> int:
    for library in _libraries():
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(library, name))
        except ValueError:
            continue
    if weak:
        return 0
    raise ResourceError(
        f"the machine code needs {name!r}, and neither the C library nor Python has it",
        hint="LLVM calls helpers of its own for operations that a processor lacks; compile for one that has them",
    )
