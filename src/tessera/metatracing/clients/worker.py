"""The work of a compiling process for kernels: it compiles shipments into the compile cache."""

from __future__ import annotations

import json
import os
from importlib import import_module

from tessera.compiler.target import target_named
from tessera.device_names import ACCELERATORS, HOST
from tessera.errors import TesseraError
from tessera.metatracing.clients.kernels import Shipment
from tessera.metatracing.clients.shipping import unpack

BUILD = f"{__name__}:build"
READY = (f"{__name__}:get_ready", f"{__name__}:get_ready_for_gpus")
"""Names of these functions, by which processes find them."""


def get_ready() -> None:
    """Loads the compiler, before the first request."""
    for module in ("tessera.tile.calls.trace", "tessera.tile.calls.compiling"):
        import_module(module)
    target_named(HOST).get_ready()


def get_ready_for_gpus() -> None:
    """Loads the compiler for GPUs, where there is one."""
    if _is_there_a_gpu():
        for name in ACCELERATORS:
            target_named(name).get_ready()


def _is_there_a_gpu() -> bool:
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":  # the driver would take as long to say so as to start
        return False
    from tessera.runtime.cuda import driver

    try:
        return driver.device_count() > 0
    except TesseraError:
        return False


def build(data: bytes) -> bytes:
    """Compiles a shipment; the answer has what went wrong with each of its levels."""
    shipment: Shipment = unpack(data)
    return json.dumps(shipment.build()).encode()
