"""Small kernels for GPUs, written by hand in LLVM's text and in PTX, and their launch plans."""

from __future__ import annotations

from functools import cache

from tessera import bf16, f32, i64
from tessera.compiler.launch_plan import ArrayArgument, DeviceLaunch, Failure, MapAxis, NumberArgument, Plan, TensorMap
from tessera.errors import SourceSpan
from tessera.shapes.expr import dim
from tessera.targets.llvm.machine import assembly

N, BLOCKS = dim("n"), dim("(n + 255)//256")
FAILURES = (Failure("never", None), Failure("it is negative", SourceSpan(__file__, 1, 0, 1, 3)))

_HEAD = """
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare i64 @llvm.nvvm.read.ptx.sreg.globaltimer()
declare void @llvm.trap()
"""


def _word(name: str, word: int, kind: str) -> str:
    return f"  %{name}_at = getelementptr i64, ptr %params, i64 {word}\n  %{name} = load {kind}, ptr %{name}_at\n"


def _elementwise(name: str, nbytes: int, body: str, words: str = "") -> str:
    """out[i] = f(x[i]) for the words x (0 to 2), a number (3), out (4 to 6); `body` computes %value from %element."""
    return f"""
define ptx_kernel void @{name}(ptr byval([{nbytes} x i8]) align 64 "nvvm.grid_constant" %params) {{
entry:
{_word("x", 0, "ptr")}{_word("count", 1, "i64")}{_word("x_stride", 2, "i64")}{_word("out", 4, "ptr")}
{_word("out_stride", 6, "i64")}{words}
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %ctaid = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %first = mul i32 %ctaid, 256
  %number = add i32 %first, %tid
  %i = zext i32 %number to i64
  %more = icmp slt i64 %i, %count
  br i1 %more, label %inside, label %end
inside:
  %x_offset = mul i64 %i, %x_stride
  %out_offset = mul i64 %i, %out_stride
  %from = getelementptr float, ptr %x, i64 %x_offset
  %to = getelementptr float, ptr %out, i64 %out_offset
{body}
end:
  ret void
}}
"""


_STORE = """  %element = load volatile float, ptr %from
  %value = fmul float %element, %alpha
  store float %value, ptr %to
  br label %end
"""
_SCALE = _elementwise("scale", 64, _STORE, _word("alpha", 3, "float"))
_CHECKED = _elementwise(
    "checked",
    72,
    """  %bad = fcmp olt float %alpha, 0.0
  br i1 %bad, label %fail, label %fine
fail:
  %was = cmpxchg ptr %report, i64 0, i64 2 monotonic monotonic
  br label %end
fine:
"""
    + _STORE,
    _word("alpha", 3, "float") + _word("report", 8, "ptr"),
)
# Reads its input only after so many nanoseconds.
_DELAYED = _elementwise(
    "delayed",
    64,
    """  %start = call i64 @llvm.nvvm.read.ptx.sreg.globaltimer()
  br label %wait
wait:
  %now = call i64 @llvm.nvvm.read.ptx.sreg.globaltimer()
  %passed = sub i64 %now, %start
  %early = icmp ult i64 %passed, %delay
  br i1 %early, label %wait, label %go
go:
  %element = load volatile float, ptr %from
  store float %element, ptr %to
  br label %end
""",
    _word("delay", 3, "i64"),
)
_TRAPPED = _elementwise("trapped", 64, "  call void @llvm.trap()\n  br label %end\n")
# Sixty-four numbers of local memory, written and read at indices that are known at run time only.
_SPILLED = _elementwise(
    "spilled",
    64,
    """  %local = alloca [64 x float]
  %lane = and i64 %i, 63
  %there = getelementptr float, ptr %local, i64 %lane
  store volatile float 1.0, ptr %local
  store volatile float 2.0, ptr %there
  %value = load volatile float, ptr %local
  store float %value, ptr %to
  br label %end
""",
)
# Persistent: blocks draw tiles from a counter, add 1 to out[tile], and the last block to leave zeroes the counters.
_TALLY = f"""
define ptx_kernel void @tally(ptr byval([40 x i8]) align 64 "nvvm.grid_constant" %params) {{
entry:
{_word("out", 0, "ptr")}{_word("tiles", 3, "i64")}{_word("counters", 4, "ptr")}
  %left = getelementptr i32, ptr %counters, i64 1
  %blocks = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %leads = icmp eq i32 %tid, 0
  br i1 %leads, label %draw, label %end
draw:
  %drawn = atomicrmw add ptr %counters, i32 1 monotonic
  %tile = zext i32 %drawn to i64
  %more = icmp slt i64 %tile, %tiles
  br i1 %more, label %work, label %leave
work:
  %at = getelementptr i64, ptr %out, i64 %tile
  %old = load i64, ptr %at
  %new = add i64 %old, 1
  store i64 %new, ptr %at
  br label %draw
leave:
  %before = atomicrmw add ptr %left, i32 1 acq_rel
  %gone = add i32 %before, 1
  %last = icmp eq i32 %gone, %blocks
  br i1 %last, label %zero, label %end
zero:
  store i32 0, ptr %counters
  store i32 0, ptr %left
  br label %end
end:
  ret void
}}
"""

# Copies a matrix of bf16 by boxes of 8 × 64, which the copy engine brings into shared memory.
TILE_COPY = """.version 8.0
.target sm_90
.address_size 64
.extern .shared .align 128 .b8 smem[];

.visible .entry tile_copy(.param .align 64 .b8 block[256])
{
  .reg .pred %p<4>;
  .reg .b16 %h<2>;
  .reg .b32 %r<16>;
  .reg .b64 %d<12>;
  mov.u32 %r0, %ctaid.x;
  ld.param.u32 %r1, [block+88];
  div.u32 %r2, %r0, %r1;
  mul.lo.u32 %r3, %r2, %r1;
  sub.u32 %r3, %r0, %r3;
  shl.b32 %r2, %r2, 3;
  shl.b32 %r3, %r3, 6;
  mov.u32 %r4, %tid.x;
  mov.u32 %r5, smem;
  add.u32 %r6, %r5, 1024;
  setp.ne.u32 %p0, %r4, 0;
  @%p0 bra READY;
  mbarrier.init.shared.b64 [%r6], 1;
  fence.proxy.async;
  mbarrier.arrive.expect_tx.shared.b64 %d0, [%r6], 1024;
  mov.b64 %d1, block;
  cvta.param.u64 %d1, %d1;
  add.u64 %d1, %d1, 128;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%d1, {%r3, %r2}], [%r6];
READY:
  bar.sync 0;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p1, [%r6], 0;
  @!%p1 bra WAIT;
  ld.param.u64 %d2, [block+40];
  ld.param.u64 %d3, [block+48];
  ld.param.u64 %d4, [block+56];
  ld.param.u64 %d5, [block+64];
  ld.param.u64 %d6, [block+72];
NEXT:
  setp.ge.u32 %p2, %r4, 512;
  @%p2 ret;
  shr.u32 %r7, %r4, 6;
  and.b32 %r8, %r4, 63;
  add.u32 %r9, %r7, %r2;
  add.u32 %r10, %r8, %r3;
  cvt.u64.u32 %d7, %r9;
  cvt.u64.u32 %d8, %r10;
  setp.lt.u64 %p2, %d7, %d3;
  setp.lt.and.u64 %p2, %d8, %d4, %p2;
  @!%p2 bra SKIP;
  mad.lo.u32 %r11, %r4, 2, %r5;
  ld.shared.b16 %h0, [%r11];
  mul.lo.u64 %d9, %d7, %d5;
  mad.lo.u64 %d9, %d8, %d6, %d9;
  shl.b64 %d9, %d9, 1;
  add.u64 %d9, %d9, %d2;
  st.global.b16 [%d9], %h0;
SKIP:
  add.u32 %r4, %r4, 128;
  bra NEXT;
}
"""

X, ALPHA = ArrayArgument(0, f32, (N,), False), NumberArgument(3, "f32")
OUT = ArrayArgument(4, f32, (N,), True)
PLAIN = DeviceLaunch(256, 0)
SCALE = Plan("scale", (X, ALPHA, OUT), 1, (BLOCKS,), 7, 8, (), device=PLAIN, block_bytes=64)
FILL = Plan("scale", (X, ALPHA, OUT), 0, (BLOCKS,), 7, 8, (), device=PLAIN, block_bytes=64)
DELAYED = Plan("delayed", (X, NumberArgument(3, "i64"), OUT), 1, (BLOCKS,), 7, 8, (), device=PLAIN, block_bytes=64)
TRAPPED = Plan("trapped", (X, ALPHA, OUT), 1, (BLOCKS,), 7, 8, (), device=PLAIN, block_bytes=64)
SPILLED = Plan("spilled", (X, ALPHA, OUT), 1, (BLOCKS,), 7, 8, (), device=PLAIN, block_bytes=64)
CHECKED = Plan(
    "checked", (X, ALPHA, OUT), 1, (BLOCKS,), 7, 9, FAILURES, device=DeviceLaunch(256, 0, report_word=8), block_bytes=72
)
TALLY = Plan(
    "tally",
    (ArrayArgument(0, i64, (N,), True),),
    0,
    (N,),
    3,
    5,
    (),
    device=DeviceLaunch(32, 0, persistent=2, counters=8, counters_word=4),
    block_bytes=40,
)
TILE = TensorMap(128, 0, (MapAxis(1, "whole", 1), MapAxis(0, "whole", 1)), (64, 8), 0)
COPY = Plan(
    "tile_copy",
    (ArrayArgument(0, bf16, (dim("m"), N), False), ArrayArgument(5, bf16, (dim("m"), N), True)),
    1,
    (dim("(m + 7)//8"), dim("(n + 63)//64")),
    10,
    12,
    (),
    device=DeviceLaunch(128, 1024 + 8, maps=(TILE,)),
    block_bytes=256,
)


@cache
def ptx() -> bytes:
    """All of these but the copy, as PTX."""
    text = _HEAD + _SCALE + _CHECKED + _DELAYED + _TRAPPED + _SPILLED + _TALLY
    return assembly(text, cpu="sm_80", features="+ptx80").encode()
