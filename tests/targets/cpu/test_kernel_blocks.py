"""The model that ranks blocks of kernels on CPUs: what it prefers, and that it asks for no more than there is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tessera import bf16, f32
from tessera.metatracing.attention import BASELINE
from tessera.metatracing.clients.kernels import KernelClient
from tessera.metatracing.models.kernel_blocks import REFERENCE, Processor, Work, blocks_for, clocks
from tessera.runtime.tensor.creation import empty
from tessera.stdlib import flash_attention
from tessera.targets.cpu import features
from tessera.tiers.sites.candidates import tier2_levels

XEON, N1 = Processor("amx", 48 << 10, 2 << 20, 2), Processor("neon", 64 << 10, 1 << 20, 2)
PROCESSORS = [XEON, N1, Processor("avx2", 32 << 10, 256 << 10, 4)]


@pytest.mark.parametrize("processor", PROCESSORS, ids=lambda one: one.level)
@pytest.mark.parametrize("size", [0, 1, 20, 100, 192, 1000, 5000])
def test_blocks_are_no_larger_than_the_work(processor: Processor, size: int) -> None:
    blocks = blocks_for(Work(size, size, 64, 8, f32), processor)
    assert 1 <= len(blocks) == len(set(blocks)) <= 3
    assert all(rows < max(1, size) + 8 and columns < max(1, size) + 16 for rows, columns in blocks)


def test_small_work_has_one_block() -> None:
    assert blocks_for(Work(7, 13, 64, 8, f32), N1) == [(8, 16)]


def test_the_matrix_unit_is_given_whole_strips() -> None:
    for size in (512, 1024, 4096):
        rows, columns = blocks_for(Work(size, size, 64, 8, bf16), XEON)[0]
        assert rows % 32 == 0
        assert columns >= 256


def test_clocks_follow_the_work() -> None:
    work = Work(1024, 1024, 64, 8, f32)
    least = clocks(work, (64, 256), N1)
    assert clocks(Work(2048, 1024, 64, 8, f32), (64, 256), N1) == pytest.approx(2 * least, rel=0.02)
    assert clocks(work, (64, 16), N1) > least
    assert clocks(work, (64, 256), Processor("neon", 64 << 10, 1 << 20, 1)) > 1.9 * least
    # One program for each thread, but for one: all wait for that.
    assert clocks(Work(96, 1024, 64, 1, f32), (96, 256), N1) > clocks(Work(96, 1024, 64, 1, f32), (48, 256), N1)


def test_rows_that_are_not_there_take_nothing() -> None:
    work = Work(1024, 1024, 64, 8, f32)
    assert clocks(work, (96, 256), N1) < 1.05 * clocks(work, (64, 256), N1)


def test_the_block_that_others_are_compared_with_is_a_candidate() -> None:
    client, x = KernelClient(flash_attention), empty((1, 2, 512, 64))
    call = client.call((x, x, x, x, 0.125), {})
    assert call is not None
    blocks = [level.schedule.block for level in tier2_levels(client, call, 3) if level.schedule is not None]
    assert REFERENCE in blocks
    assert BASELINE.block is not None
    assert BASELINE.block[:2] == REFERENCE


def test_caches_are_those_of_a_processor() -> None:
    first, second = features.caches()
    assert 8 << 10 <= first <= second <= 1 << 30


def test_ranking_blocks_loads_no_compiler() -> None:
    """A call does it that wants to climb: loading a compiler would hold it up for a good part of a second."""
    code = (
        "import sys, tessera.metatracing.models.kernel_blocks; print(*(x in sys.modules for x in ('xdsl', 'llvmlite')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
