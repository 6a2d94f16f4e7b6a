"""A process that compiles for another: `python -m tessera.compile_worker`, with requests and answers over pipes.

A request is a number, the name of a function (`module:name`) and bytes that it takes; the answer is the number, whether
it went well, and bytes: what the function returned, or what went wrong. The function does its work by side effects on
the compile cache. The process ends when its input does, and others run a little before it. Functions that are named on
the command line are called before the first request, so that they load what requests will need. Behind the first of
them there is an answer that nobody has asked for, number 0; the others are left out where a request has come meanwhile.
"""

from __future__ import annotations

import gc
import os
import struct
import sys
from collections.abc import Sequence
from importlib import import_module
from select import select
from typing import IO

HEADER = struct.Struct("<QBHQ")  # the number, whether it went well, length of the name, length of the bytes
READY = 0
"""The number of the answer that says that a process can begin."""
_NICENESS = 1
"""A little: on few cores, with all of them busy, a process that lets everybody go first would never get anywhere."""


def write(stream: IO[bytes], number: int, good: bool, name: str, data: bytes) -> None:
    """Writes a request or an answer."""
    written = name.encode()
    stream.write(HEADER.pack(number, good, len(written), len(data)) + written + data)
    stream.flush()


def read(stream: IO[bytes]) -> tuple[int, bool, str, bytes] | None:
    """The next request or answer; None at the end."""
    head = _exactly(stream, HEADER.size)
    if head is None:
        return None
    number, good, name_length, length = HEADER.unpack(head)
    name, data = _exactly(stream, name_length), _exactly(stream, length)
    return None if name is None or data is None else (number, bool(good), name.decode(), data)


def _exactly(stream: IO[bytes], count: int) -> bytes | None:
    found = bytearray()
    while len(found) < count:
        part = stream.read(count - len(found))
        if not part:
            return None
        found += part
    return bytes(found)


def answered(name: str, data: bytes) -> tuple[bool, bytes]:
    """What a request comes to. Nothing that goes wrong ends the process."""
    try:
        module, _, function = name.partition(":")
        return True, getattr(import_module(module), function)(data)
    except Exception as error:
        return False, f"{type(error).__name__}: {error}".encode(errors="replace")


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answers requests until there are no more."""
    while (request := read(requests)) is not None:
        number, _, name, data = request
        good, answer = answered(name, data)
        write(answers, number, good, name, answer)


def main() -> None:
    # What is printed while compiling must not get between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    load(sys.argv[1:], sys.stdin.buffer, answers)
    serve(sys.stdin.buffer, answers)


def load(names: Sequence[str], requests: IO[bytes], answers: IO[bytes]) -> None:
    """Calls functions that load what requests will need, as long as none has come. What they load is never garbage."""
    gc.disable()
    for name in names:
        module, _, function = name.partition(":")
        getattr(import_module(module), function)()
        if name is names[0]:
            write(answers, READY, True, "", b"")
        if select([requests], [], [], 0)[0]:
            break
    gc.freeze()
    gc.enable()


if __name__ == "__main__":
    main()
