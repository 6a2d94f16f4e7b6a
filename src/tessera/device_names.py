"""The names that users write for devices, targets and families of processors. Code elsewhere asks what they can do."""

from __future__ import annotations

HOST = "cpu"
"""The kind of device, and the target, that every process has: its own processor."""

ACCELERATORS = ("cuda",)
"""Kinds of devices with memory of their own, where work is done in order on streams, and the targets for them."""

TARGETS = {"cpu": "tessera.targets.cpu.target:CPU", "cuda": "tessera.targets.cuda.target:CUDA"}
"""The targets that ship, as `module:attribute`."""

DLPACK_KINDS = {1: "cpu", 2: "cuda", 3: "cpu", 13: "cuda"}
"""What DLPack's numbers stand for. Pinned host memory is the host's, managed memory is the GPU's."""

CPU_FAMILIES = {"x86_64": ("base", "avx2", "avx512", "amx"), "aarch64": ("neon",)}
"""The levels of each family of processors, by the name that systems have for it, from the least to the most able."""


def kind_of(device: str) -> str:
    """`cuda` of `cuda:1`."""
    return device.partition(":")[0]


def is_host(device: str) -> bool:
    """Whether a device, or a kind of them, is the host itself."""
    return device == HOST


def is_accelerator(device: str) -> bool:
    """Whether a device, or a kind of them, is one that programs are compiled for, with streams and its own memory."""
    return kind_of(device) in ACCELERATORS
