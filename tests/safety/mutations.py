"""Changes to texts, bytes and JSON as attackers and broken disks make them; equal seeds make equal changes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

# What parsers stumble over: numbers without an end, strings without one, brackets, bytes that are no text.
TOKENS = (
    *("9" * 30, "9" * 5000, "-1", "0", "1e999", "0x", "0x" + "f" * 400, "1.0e", "NaN", "Infinity", "-0.0", "²", "٣"),
    *('"', '\\"', '"' + "a" * 2000, '"' + "\\0a" * 700, "\\", "\0", "\ufeff", "é", "\u2028", "\N{PILE OF POO}", "//"),
    *("(", ")", "<", ">", "[", "]", "{", "}", "[" * 400, "{a=" * 400, "tuple<" * 300, "complex<" * 300),
    *(
        "builtin.module {" * 300,
        "->",
        ":",
        ",",
        "...",
        "=",
        "@",
        "#",
        "%",
        "^bb0",
        "!",
        "?",
        "x",
        "-",
        "|",
        "{-#",
        "#-}",
    ),
    *(
        "\n",
        "\r",
        "\t",
        " " * 3000,
        "i999999999",
        "i0",
        "si64",
        "index",
        "f16",
        "bf16",
        "none",
        "vector<4xf32>",
        "true",
    ),
    *("memref<?xf32>", "unit", "tensor<99999999999999999999xf32>", "tensor<" + "1x" * 900 + "f32>", "tensor<?xf32>"),
    *("tensor<0xf32>", "tensor<-1xf32>", "dense<0> : tensor<9999999999xi64>", "dense<[]> : tensor<0xf32>", "dense<1>"),
    *('dense<"0x00"> : tensor<4294967296xi8>', "affine_map<(d0) -> (d0)>", "array<i64: 1>", "loc(unknown)", "#ts.x"),
    *('loc("/dev/zero":1:1)', 'loc("a\\00":0:0)', "!x.y<", "strided<[1]>", "opaque<", "dense_resource<a>", "sparse<"),
    *("callsite(", "fused[", "__import__('os').system('id')"),
)
_EMPTY: list[Any] = []
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, -(2**63), 10**30, 10**400, 0.5, -0.0, 1e308, -1e308, 5e-324),
    *("", "x", "nan", "<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "\0", "\ud800", "a" * 5000),
    *(
        "9" * 5000,
        _EMPTY,
        [_EMPTY],
        [None],
        [0] * 3000,
        dict[str, Any](),
        {"": None},
        {"$float": "nan"},
        {"$float": "inf"},
        {"$float": _EMPTY},
    ),
    *({"$float": "-inf"}, {"$float": "1e999"}, {"$tuple": [1, 2]}, {"$tuple": 1}, {"$map": [[1, 2]]}, {"$map": 7}),
    *({"$map": [[_EMPTY, 2]]}, {"$what": 1}, {"__class__": "os"}, "../../../etc/passwd", "file:///etc/passwd"),
    *("javascript:alert(1)", "{{ 7 * 7 }}", "{% raw %}"),
)
RAW = (
    *("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 5000, "[" * 5000, "{" * 300, '{"a":' * 2000, "nul", ""),
    *("[" * 400 + "]" * 400, '{"a":' * 300 + "1" + "}" * 300, "01", "'x'", '1, "kind": 2', '1, "schema": 2'),
)


def mutated_text(text: str, rng: random.Random, others: Sequence[str] = ()) -> str:
    """A text with one to four changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        text = rng.choice(_TEXT)(text, rng, others or (text,))
    return text


def _position(text: str, rng: random.Random) -> int:
    return rng.randint(0, len(text))


def _insert(text: str, rng: random.Random, others: Sequence[str]) -> str:
    at = _position(text, rng)
    return text[:at] + rng.choice(TOKENS) + text[at:]


def _delete(text: str, rng: random.Random, others: Sequence[str]) -> str:
    at = _position(text, rng)
    return text[:at] + text[at + rng.choice((1, 1, 2, 5, 20, 200)) :]


def _cut(text: str, rng: random.Random, others: Sequence[str]) -> str:
    return text[: _position(text, rng)]


def _repeat(text: str, rng: random.Random, others: Sequence[str]) -> str:
    at = _position(text, rng)
    part = text[at : at + rng.choice((1, 3, 10, 80))]
    return text[:at] + part * rng.choice((2, 3, 50)) + text[at:]


def _swap(text: str, rng: random.Random, others: Sequence[str]) -> str:
    words = text.split(" ")
    one, other = rng.randrange(len(words)), rng.randrange(len(words))
    words[one], words[other] = words[other], words[one]
    return " ".join(words)


def _replace_word(text: str, rng: random.Random, others: Sequence[str]) -> str:
    words = text.split(" ")
    words[rng.randrange(len(words))] = rng.choice((*TOKENS, *rng.choice(others).split(" ")))
    return " ".join(words)


def _splice(text: str, rng: random.Random, others: Sequence[str]) -> str:
    lines, taken = text.split("\n"), rng.choice(others).split("\n")
    lines[rng.randrange(len(lines))] = rng.choice(taken)
    return "\n".join(lines)


def _letter(text: str, rng: random.Random, others: Sequence[str]) -> str:
    at = _position(text, rng)
    return text[:at] + chr(rng.choice((rng.randrange(128), rng.randrange(128), rng.randrange(0xD800)))) + text[at + 1 :]


def _digits(text: str, rng: random.Random, others: Sequence[str]) -> str:
    digits = [index for index, letter in enumerate(text) if letter.isdigit()]
    if not digits:
        return text
    at = rng.choice(digits)
    return text[:at] + rng.choice(("0", "1", "7", "-1", "4294967296", "9" * 20, "1.5", "")) + text[at + 1 :]


_TEXT: tuple[Callable[[str, random.Random, Sequence[str]], str], ...] = (
    *(_insert, _delete, _cut, _repeat, _swap, _replace_word, _replace_word, _splice, _letter, _digits, _digits),
)


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    """Bytes with one to four changes."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randint(0, len(made))
        kind = rng.randrange(6)
        if kind == 0:
            del made[at:]
        elif kind == 1:
            made[at:at] = rng.randbytes(rng.choice((1, 4, 8, 64)))
        elif kind == 2:
            del made[at : at + rng.choice((1, 4, 64))]
        elif kind == 3:
            made[at : at + 8] = rng.choice((b"\xff" * 8, bytes(8), b"\x7f" + b"\xff" * 7))
        elif made:
            at = min(at, len(made) - 1)
            made[at] ^= 1 << rng.randrange(8)
    return bytes(made)


def mutated_json(data: Any, rng: random.Random) -> str:
    """JSON text with one to four values, keys or positions changed, of which some are not JSON any more."""
    made = json.loads(json.dumps(data))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        _change(made, rng)
    text = json.dumps(made)
    if rng.random() < 0.3:
        if _mark(made, rng):  # instead of a value: what Python reads or writes as one, and JSON does not
            text = json.dumps(made).replace(json.dumps("\0"), rng.choice(RAW), 1)
        if rng.random() < 0.3:
            text = mutated_text(text, rng)
    return text


def _holders(data: Any) -> list[Any]:
    """All lists and objects that hold something."""
    found: list[Any] = []
    waiting: list[Any] = [data]
    while waiting:
        one = waiting.pop()
        if type(one) in (dict, list) and one:
            found.append(one)
            waiting += [one[key] for key in _keys(one)]
    return found


def _keys(holder: Any) -> list[Any]:
    return [*(range(len(holder)) if type(holder) is list else holder)]  # pyright: ignore[reportUnknownArgumentType]  # of JSON


def _change(data: Any, rng: random.Random) -> None:
    holders = _holders(data)
    if not holders:
        return
    holder = rng.choice(holders)
    key = rng.choice(_keys(holder))
    kind = rng.randrange(8)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(key, str):
        holder[rng.choice(("", "x", "$float", "<b>", "kind", "schema", "\0", "a" * 300))] = holder.pop(key)
    elif kind == 2:
        other = rng.choice(holders)
        holder[key] = json.loads(json.dumps(other[rng.choice(_keys(other))]))
    elif kind == 3 and type(holder[key]) in (int, float) and abs(holder[key]) < 1e300:
        number = float(holder[key])
        holder[key] = rng.choice((-number, number * 1e8, number / 1e300, 0, str(number), [number]))
    else:
        holder[key] = json.loads(json.dumps(rng.choice(VALUES)))


def _mark(data: Any, rng: random.Random) -> bool:
    holders = _holders(data)
    if not holders:
        return False
    holder = rng.choice(holders)
    holder[rng.choice(_keys(holder))] = "\0"
    return True
