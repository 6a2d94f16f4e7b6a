"""Gathering: a strided array of a GPU into C order there, by small kernels written for its rank and element size."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tessera.runtime.cuda.modules import LoadedFunction, Module
from tessera.runtime.device.memory import Array, address

_THREADS = 256
_WIDEST = 16
_FEW = 1 << 32  # elements that numbers of 32 bits can count; these divide faster
_WORD = 8

_PTX = """.version 7.0
.target sm_70
.address_size 64

.visible .entry gather(.param .align 8 .b8 block[{size}])
{{
  .reg .pred %p;
  .reg .b32 %n<4>;
  .reg .b{bits} %i<4>;
  .reg .b64 %a<6>;
  .reg .b{moved} %x<2>;
  mov.u32 %n0, %ctaid.x;
  mov.u32 %n1, %tid.x;
  mul.wide.u32 %a0, %n0, {threads};
  cvt.u64.u32 %a1, %n1;
  add.u64 %a0, %a0, %a1;
  ld.param.u64 %a1, [block+16];
  setp.ge.u64 %p, %a0, %a1;
  @%p ret;
  ld.param.u64 %a1, [block];
  mad.lo.u64 %a1, %a0, {itemsize}, %a1;
  ld.param.u64 %a2, [block+8];
  cvt.u{bits}.u64 %i0, %a0;
{steps}{move}
  ret;
}}
"""
# From the innermost axis out: what is left of the number of the element, by the size of the axis.
_STEP = """  ld.param.u{bits} %i1, [block+{size_at}];
  div.u{bits} %i2, %i0, %i1;
  mul.lo.u{bits} %i3, %i2, %i1;
  sub.u{bits} %i3, %i0, %i3;
  ld.param.s64 %a3, [block+{stride_at}];
  cvt.u64.u{bits} %a4, %i3;
  mad.lo.s64 %a2, %a4, %a3, %a2;
  mov.b{bits} %i0, %i2;
"""
_MOVE = "  ld.global.b{bits} %x0, [%a2];\n  st.global.b{bits} [%a1], %x0;"
_MOVE_WIDE = "  ld.global.v2.b64 {%x0, %x1}, [%a2];\n  st.global.v2.b64 [%a1], {%x0, %x1};"


def text(rank: int, itemsize: int, *, wide: bool) -> str:
    """The kernel for so many axes and bytes to an element; `wide` where 32 bits do not count the elements.

    Its block: the target, the source, the number of elements, then sizes and strides in bytes, outermost first.
    """
    bits = 64 if wide else 32
    steps = "".join(
        _STEP.format(bits=bits, size_at=_WORD * (3 + axis), stride_at=_WORD * (3 + rank + axis))
        for axis in reversed(range(rank))
    )
    return _PTX.format(
        size=_WORD * (3 + 2 * rank),
        bits=bits,
        # Registers have 16 bits at least; a byte travels in one of them.
        moved=min(max(8 * itemsize, 16), 64),
        threads=_THREADS,
        itemsize=itemsize,
        steps=steps,
        move=_MOVE_WIDE if itemsize == _WIDEST else _MOVE.format(bits=8 * itemsize),
    )


def simplified(
    pointer: int, shape: Sequence[int], strides: Sequence[int], itemsize: int
) -> tuple[list[int], list[int], int]:
    """The same elements with as few axes as will do, and as many bytes to an element as can move at once.

    Strides are in bytes. Gives sizes, strides and bytes to an element.
    """
    sizes, steps = [itemsize], [1]  # from the inside: bytes are the innermost axis
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 1:
            continue
        if stride == steps[-1] * sizes[-1]:
            sizes[-1] *= size
        else:
            sizes.append(size)
            steps.append(stride)
    width = _WIDEST
    while any(part % width for part in (pointer, sizes[0], *steps[1:])):
        width //= 2
    sizes[0] //= width
    steps[0] = width
    if sizes[0] == 1 and len(sizes) > 1:
        del sizes[0], steps[0]
    return sizes[::-1], steps[::-1], width


@lru_cache(maxsize=64)
def _kernel(index: int, rank: int, itemsize: int, wide: bool) -> LoadedFunction:
    code = text(rank, itemsize, wide=wide).encode()
    return Module(index, code, "a copy of strided elements", keep=False).function("gather")


def gather(index: int, target: int, array: Array, stream: int) -> None:
    """The elements of an array on `cuda:index`, one after the other at `target`, in the order of a stream."""
    source = address(array)
    sizes, strides, itemsize = simplified(source, array.shape, array.strides, array.itemsize)
    count = array.nbytes // itemsize
    kernel = _kernel(index, len(sizes), itemsize, count >= _FEW)
    words = [target, source, count, *sizes, *strides]
    kernel.launch_words(words, -(-count // _THREADS), _THREADS, stream)
