"""`save` and `load`: trees of tensors in a file, which is one of safetensors, with the tree in its header.

A file is a header in JSON and the elements, in C order, one tensor after the other. Nothing in it is code. It is
written beside its place and put there in one step; it is read by mapping it, so that elements come from the disk when
they are first touched.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeAlias, cast

import numpy as np
import optree

from tessera.dtypes.types import BY_NAME, NO_POLICY, DType, Kind, Policy, tf32
from tessera.errors import ResourceError, TesseraError
from tessera.runtime.device.device import Device, default_device
from tessera.runtime.device.device import device as find_device
from tessera.runtime.device.memory import ALIGNMENT, Array, aligned, aligned_empty
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.pytree import NAMESPACE
from tessera.runtime.tensor.quantized import QuantizedTensor
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.expr import format_shape

_Path: TypeAlias = tuple[Any, ...]
_Json: TypeAlias = Any
_VERSION = 1
_MOST_HEADER = 100_000_000  # bytes, as safetensors has it
_LARGE = 1 << 20  # bytes from which on a tensor is not copied to a 64-byte boundary
_FIRST = struct.Struct("<Q")
_CODES = {
    **{f"f{bits}": f"F{bits}" for bits in (16, 32, 64)},
    **{f"{sign}{bits}": f"{sign.upper()}{bits}" for sign in "iu" for bits in (8, 16, 32, 64)},
    "bool": "BOOL",
    "bf16": "BF16",
    "f8e4m3": "F8_E4M3",
    "f8e5m2": "F8_E5M2",
    "tf32": "F32",
    # These lie one to a byte here, which safetensors has no name for.
    **dict.fromkeys(("f6e3m2", "f6e2m3", "f4e2m1", "u4", "i4"), "U8"),
}
_NAMES = {code: name for name, code in reversed(_CODES.items())}
_OTHERS = {
    b"PK": "a zip archive, as NumPy's .npz and torch's .pt are: load it there, and save its arrays here",
    b"\x93NUMPY": "an array of NumPy: np.load reads it, ts.asarray takes what that gives",
    b"\x80": "a pickle, which is code: load it where it came from, and save its arrays here",
    b"\x89HDF": "an HDF5 file: read it by h5py, ts.asarray takes what that gives",
}


def save(path: str | os.PathLike[str], tree: _Json) -> None:
    """Writes a tree of tensors and numbers to a file, which `load` reads, and every reader of safetensors, too.

    It may nest dictionaries, lists, tuples and registered classes; leaves are tensors of any element type, arrays of
    other libraries, numbers, texts and None. The file is there as a whole or not at all: whatever is at `path` stays
    until the new file is complete.
    """
    place = _as_path(path, "save")
    writer = _Writer()
    described = {"version": _VERSION, "tree": writer.described(tree, ()), "types": writer.types}
    parts, entries = writer.laid_out()
    header = {"__metadata__": {"tessera": json.dumps(described, separators=(",", ":"))}, **entries}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(_FIRST.size + len(text)) % ALIGNMENT)
    if len(text) > _MOST_HEADER:
        raise ResourceError(
            f"{len(entries):,} tensors need a header of {len(text):,} bytes, and {_MOST_HEADER:,} are allowed",
            hint="save parts of the tree in files of their own",
        )
    _write(place, [_FIRST.pack(len(text)), text], parts)


def load(path: str | os.PathLike[str], *, like: _Json = None, device: str | Device | None = None) -> _Json:
    """The tree that `save` wrote to a file; of other files of safetensors a dictionary of tensors.

    On the CPU tensors are the file's memory, mapped, but for small ones between boundaries of 64 bytes, and read when
    they are first touched; writing into them does not change the file. `like` is a tree whose structure the result
    takes: it is needed where the tree has classes of its own, which are never looked up by a name in a file. `device`
    is where the tensors go, the default one unless it is named.
    """
    place = _as_path(path, "load")
    reader = _Reader(place, device)
    if like is not None:
        return reader.like(like)
    if reader.tree is None:
        return {name: reader.tensor(name) for name in reader.entries}
    return reader.made(reader.tree, ())


# Writing


@dataclass
class _Writer:
    """The tensors of a tree by names that are free, and the tree itself as JSON."""

    tensors: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    types: dict[str, _Json] = field(default_factory=dict[str, _Json])

    def described(self, tree: _Json, path: _Path) -> _Json:
        kind = tree.__class__
        if tree is None or kind in (bool, int, str):
            return {"value": tree}
        if kind is float:
            return {"float": tree.hex()}
        if kind is dict:
            items = cast(dict[_Json, _Json], tree).items()
            return {"dict": [[_key(key, path), self.described(one, (*path, key))] for key, one in items]}
        if kind in (list, tuple):
            return {kind.__name__: [self.described(one, (*path, at)) for at, one in enumerate(tree)]}
        if (parts := _one_level(tree)) is not None:
            held = [[str(key), self.described(one, (*path, key))] for key, one in parts]
            if kind is QuantizedTensor:
                return {"quantized": [held, _written(tree.dtype)]}
            return {"node": [f"{kind.__module__}.{kind.__qualname__}", held]}
        if isinstance(tree, Tensor | np.ndarray | np.generic) or hasattr(tree, "__dlpack__"):
            return {"tensor": self._named(asarray(tree), path)}
        raise TesseraError(
            f"save: {_shown(path)} is a {kind.__name__}, which is neither a tensor nor a number, text or None",
            hint="leave it out, or register its class as a pytree node (ts.register_node)",
        )

    def _named(self, tensor: Tensor, path: _Path) -> str:
        """A name for one more tensor: its path, with a number behind it where another has that."""
        name = wanted = ".".join(map(str, path)) or "tensor"
        count = 1
        while name in self.tensors or name == "__metadata__":
            count += 1
            name = f"{wanted}~{count}"
        self.tensors[name] = tensor
        dtype = tensor.dtype
        if dtype.policy != NO_POLICY or _NAMES[_CODES[dtype.name]] != dtype.name:
            self.types[name] = _written(dtype)
        return name

    def laid_out(self) -> tuple[list[Tensor], dict[str, _Json]]:
        """Tensors in the order of the file, and where each is. Those that keep the boundaries of others come first."""
        ordered = sorted(self.tensors.items(), key=lambda item: (item[1].nbytes % ALIGNMENT != 0, -item[1].itemsize))
        entries: dict[str, _Json] = {}
        at = 0
        for name, tensor in ordered:
            ends = [at, at + tensor.nbytes]
            entries[name] = {"dtype": _CODES[tensor.dtype.name], "shape": tensor.shape, "data_offsets": ends}
            at = ends[1]
        return [tensor for _, tensor in ordered], entries


def _key(key: _Json, path: _Path) -> _Json:
    if key.__class__ in (str, int):
        return key
    raise TesseraError(
        f"save: {_shown(path)} has the key {key!r}, a {type(key).__name__}", hint="use keys that are texts or integers"
    )


def _one_level(tree: _Json) -> list[tuple[_Json, _Json]] | None:
    """The keys and parts of a container that is registered; None for a leaf."""
    if optree.tree_is_leaf(tree, namespace=NAMESPACE):
        return None
    parts, _, keys, _ = cast(_Json, optree.tree_flatten_one_level(tree, namespace=NAMESPACE))
    return list(zip(keys, parts, strict=True))


def _written(dtype: DType) -> dict[str, _Json]:
    policy = dtype.policy
    given = {
        "accum": policy.accum and policy.accum.name,
        "stochastic": policy.stochastic or None,
        "loss_scale": policy.loss_scale,
        "saturate": policy.saturate or None,
        "scale_axis": policy.scale_axis,
    }
    return {"name": dtype.name, **{name: value for name, value in given.items() if value is not None}}


def _write(place: Path, head: list[bytes], parts: list[Tensor]) -> None:
    """Everything into a file beside the place, which then goes there."""
    beside = place.with_name(f".{place.name}.{token_hex(4)}.tmp")
    try:
        with beside.open("xb") as file:
            for piece in head:
                file.write(piece)
            for tensor in parts:
                if tensor.nbytes:
                    file.write(np.ascontiguousarray(tensor.cpu().numpy()).view(np.uint8).data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(place)
        _sync_folder(place.parent)
    except OSError as problem:
        raise ResourceError(
            f"save: {place} cannot be written: {problem.strerror or problem}",
            hint="what was there before is unchanged; give a path in a folder that exists and has room",
        ) from problem
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Makes the new name last through a loss of power, where folders can be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# Reading


@dataclass(frozen=True)
class _Entry:
    """One tensor of a file."""

    dtype: DType
    shape: tuple[int, ...]
    start: int
    nbytes: int


class _Reader:
    """A file that is mapped, and what its header says."""

    def __init__(self, place: Path, device: str | Device | None) -> None:
        self.place = place
        self.device = default_device() if device is None else find_device(device)
        try:
            with place.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                first = file.read(_FIRST.size)
                length = _FIRST.unpack(first)[0] if len(first) == _FIRST.size else size
                begin = _FIRST.size + length
                if begin > size or not 0 < length <= _MOST_HEADER:
                    raise self._other(first, size)
                text = file.read(length)
                # Pages that are written to are this process' own: the file stays as it is.
                self.memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        except OSError as problem:
            raise ResourceError(
                f"load: {place} cannot be read: {problem.strerror or problem}", hint="give the path of a file"
            ) from problem
        self.entries, self.tree = self._header(text, begin, size)

    def _broken(self, what: str, hint: str) -> ResourceError:
        return ResourceError(f"load: {self.place} is no file of safetensors: {what}", hint=hint)

    def _other(self, first: bytes, size: int) -> ResourceError:
        """The error for a file that does not begin like one of these."""
        for start, said in _OTHERS.items():
            if first.startswith(start):
                what, _, hint = said.partition(": ")
                return self._broken(f"it is {what}", hint)
        return self._broken(f"no header ends within its {size:,} bytes", "it is cut short, or no file of tensors")

    def _header(self, text: bytes, begin: int, size: int) -> tuple[dict[str, _Entry], _Json]:
        hint = "it is cut short or damaged: save it again"
        try:
            header = json.loads(text)
            metadata = header.pop("__metadata__", {})
            described = json.loads(metadata["tessera"]) if "tessera" in metadata else {}
            types = described.get("types", {})
            entries = {name: _entry(given, begin, types.get(name)) for name, given in header.items()}
        except TesseraError as problem:
            raise self._broken(problem.message, "it was written by a newer version, or for other readers") from problem
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            raise self._broken("its header says nothing about tensors", hint) from problem
        if described.get("version", _VERSION) != _VERSION:
            raise self._broken(f"its tree is of version {described['version']}", f"this reads version {_VERSION}")
        at = begin
        for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].nbytes)):
            if entry.start != at:
                raise self._broken(f"tensor {name!r} does not begin where the one before ends", hint)
            at += entry.nbytes
        if at != size:
            raise self._broken(f"its tensors end at byte {at:,}, and the file at {size:,}", hint)
        return entries, described.get("tree")

    def tensor(self, name: str) -> Tensor:
        entry = self.entries.get(name)
        if entry is None:
            raise self._broken(f"its tree names a tensor {name!r} that it has not", "save it again")
        found = self._array(name, entry)
        return Tensor.wrap(found, entry.dtype).to(self.device)

    def _array(self, name: str, entry: _Entry) -> Array:
        storage = entry.dtype.storage
        if not entry.nbytes:
            return aligned_empty(entry.shape, storage)
        codes = np.frombuffer(self.memory, np.uint8, entry.nbytes, entry.start)
        if not _are_valid(codes, entry.dtype):
            raise self._broken(f"tensor {name!r} has elements that are none of {entry.dtype}", "save it again")
        found = codes.view(storage).reshape(entry.shape)
        return found if entry.nbytes >= _LARGE and found.flags.aligned else aligned(found)

    def made(self, node: _Json, path: _Path) -> _Json:
        """The part of the tree that JSON describes."""
        try:
            ((kind, value),) = node.items()
            return _MAKERS[kind](self, value, path)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as problem:
            raise self._broken(f"{_shown(path)} of its tree says nothing", "it is damaged: save it again") from problem

    def refuse_class(self, name: str, path: _Path) -> _Json:
        raise ResourceError(
            f"load: {_shown(path)} of {self.place} is a {name}, which a file cannot name safely",
            hint="give a tree of the same structure: ts.load(path, like=...)",
        )

    def like(self, example: _Json) -> _Json:
        """A tree of the structure of another, whose leaves are found by their names."""
        leaves, structure = optree.tree_flatten(example, namespace=NAMESPACE)
        wanted = [tuple(map(str, path)) for path in optree.tree_paths(example, namespace=NAMESPACE)]
        if self.tree is None:  # names are all there is
            wanted = [(".".join(path),) for path in wanted]
            held: dict[tuple[str, ...], _Json] = {(name,): name for name in self.entries}
        else:
            held = {tuple(map(str, path)): value for path, value in self._leaves(self.tree, ())}
        missing = [".".join(path) for path in wanted if path not in held]
        more = [".".join(path) for path in held if path not in set(wanted)]
        if missing or more:
            said = [f"it has no {', '.join(missing[:5])}"] if missing else []
            said += [f"it has {', '.join(more[:5])} besides"] if more else []
            raise ResourceError(
                f"load: {self.place} does not hold such a tree: {'; '.join(said)}",
                hint="give like= the structure that was saved; without it, load says what is there",
            )
        made = [self._leaf(held[path], one, ".".join(path)) for path, one in zip(wanted, leaves, strict=True)]
        return optree.tree_unflatten(structure, made)

    def _leaf(self, described: _Json, example: _Json, name: str) -> _Json:
        found = self.tensor(described) if isinstance(described, str) else self.made(described, (name,))
        if isinstance(example, Tensor) and isinstance(found, Tensor) and example.shape != found.shape:
            raise ResourceError(
                f"load: {name} of {self.place} has another shape than the tree that is given",
                shapes=[f"file: {format_shape(found.shape)}", f"like: {format_shape(example.shape)}"],
                hint="give like= a tree with the shapes that were saved",
            )
        return found

    def _leaves(self, node: _Json, path: _Path) -> Iterator[tuple[_Path, _Json]]:
        """The leaves that JSON describes, by their paths."""
        kind, value = next(iter(node.items()))
        if kind == "dict":
            parts = value
        elif kind in ("list", "tuple"):
            parts = list(enumerate(value))
        elif kind in ("node", "quantized"):
            parts = value[kind == "node"]
        else:
            if value is not None or kind != "value":  # None is no leaf
                yield path, value if kind == "tensor" else node
            return
        for key, one in parts:
            yield from self._leaves(one, (*path, key))


_MAKERS: Mapping[str, Callable[[_Reader, _Json, _Path], _Json]] = {
    "tensor": lambda reader, value, _: reader.tensor(value),
    "value": lambda _, value, __: value,
    "float": lambda _, value, __: float.fromhex(value),
    "dict": lambda reader, value, path: {key: reader.made(one, (*path, key)) for key, one in value},
    "list": lambda reader, value, path: [reader.made(one, (*path, at)) for at, one in enumerate(value)],
    "tuple": lambda reader, value, path: tuple([reader.made(one, (*path, at)) for at, one in enumerate(value)]),
    "node": lambda reader, value, path: reader.refuse_class(value[0], path),
    "quantized": lambda reader, value, path: QuantizedTensor(
        *(reader.made(one, path) for _, one in value[0]), dtype=_read(value[1])
    ),
}


def _entry(given: _Json, begin: int, type_: _Json) -> _Entry:
    """What a header says of one tensor; an error where it is not consistent."""
    code, shape, (start, stop) = given["dtype"], tuple(given["shape"]), given["data_offsets"]
    if code not in _NAMES:
        raise TesseraError(f"there is no element type for {code!r} here")
    dtype = BY_NAME[_NAMES[code]] if type_ is None else _read(type_)
    sizes = (*shape, start, stop)
    if _CODES[dtype.name] != code or not all(size.__class__ is int and size >= 0 for size in sizes):
        raise ValueError(code)
    if stop - start != math.prod(shape) * dtype.storage.itemsize:
        raise ValueError("bytes")
    return _Entry(dtype, shape, begin + start, stop - start)


def _read(given: _Json) -> DType:
    found = dict(given)
    base = BY_NAME[found.pop("name")]
    accum = found.pop("accum", None)
    policy = replace(Policy(**found), accum=None if accum is None else BY_NAME[accum])
    return base.with_policy(policy)


def _are_valid(codes: Array, dtype: DType) -> bool:
    """Whether bytes are elements of a type: of those narrower than their bytes, some are none."""
    if dtype.kind is Kind.BOOL:
        return bool((codes <= 1).all())
    if dtype.base is tf32:
        return not (codes.view(np.uint32) & ((1 << 13) - 1)).any()
    if dtype.bits >= 8:
        return True
    if dtype.kind is Kind.INT:  # the bits above its own are those of its sign, or zeros
        return bool(((codes <= dtype.max_value * 2 + 1) | (codes >= 256 + dtype.min_value)).all())
    return bool((codes >> dtype.bits == 0).all())


def _as_path(path: _Json, where: str) -> Path:
    if isinstance(path, str | os.PathLike):
        return Path(cast(_Json, path))
    raise TesseraError(
        f"{where}: expected the path of a file first, got a {type(path).__name__}",
        hint="write ts.save(path, tree) and ts.load(path)",
    )


def _shown(path: _Path) -> str:
    return "the tree" + "".join(f"[{key!r}]" for key in path)
