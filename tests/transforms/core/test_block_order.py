"""Ops of a block in order, while others are put in, erased and moved."""

from __future__ import annotations

import random

from xdsl.dialects import test
from xdsl.ir import Block

from tessera.transforms.core.block_order import in_order, moved, number_in_block


def test_numbers_follow_the_block_whatever_is_done_to_it() -> None:
    draw = random.Random(0)
    block = Block([test.TestOp() for _ in range(5)])
    for _ in range(400):
        ops = list(block.ops)
        one = draw.choice(ops)
        step = draw.randrange(4)
        if step == 0:
            block.insert_op_before(test.TestOp(), one)
        elif step == 1:
            block.insert_op_after(test.TestOp(), one)
        elif step == 2 and len(ops) > 3:
            one.detach()
            one.erase()
        else:
            other = draw.choice(ops)
            if other is not one:
                moved([one])
                one.detach()
                block.insert_op_before(one, other)
        ops = list(block.ops)
        some = draw.sample(ops, min(3, len(ops)))
        assert in_order(some) == [op for op in ops if op in some]
        first, second = draw.sample(ops, 2)
        assert (number_in_block(first) < number_in_block(second)) is (ops.index(first) < ops.index(second))


def test_one_place_takes_many() -> None:
    block = Block([test.TestOp(), test.TestOp()])
    last = block.last_op
    assert last is not None
    for _ in range(100):
        new = test.TestOp()
        block.insert_op_before(new, last)
        assert number_in_block(new) < number_in_block(last)
    assert in_order(reversed(list(block.ops))) == list(block.ops)
