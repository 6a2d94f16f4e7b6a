"""Random LLVM programs that use everything an image can hold, for comparing two ways of running them."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

MEMORY = 256  # bytes that every function may read and write

HEAD = """
declare float @sinf(float)
declare double @pow(double, double)
declare ptr @memcpy(ptr, ptr, i64)
declare ptr @memset(ptr, i32, i64)
declare i64 @strlen(ptr) nonlazybind
declare i64 @PyLong_AsLong(ptr)
declare i32 @llvm.vector.reduce.xor.v16i32(<16 x i32>)
declare i8 @llvm.vector.reduce.add.v64i8(<64 x i8>)
@environ = external global ptr
@PyLong_Type = external global i8
@own = internal global i64 7
@shown = global i64 11, align 64
@paged = global [3 x i64] [i64 1, i64 2, i64 3], align 4096
@zeros = internal global [512 x i64] zeroinitializer, align 64
@shown_zeros = global [9 x i64] zeroinitializer
@tentative = common global i64 0, align 32
@greeting = private unnamed_addr constant [15 x i8] c"tiles, threads\\00"
@outside = global [3 x ptr] [ptr @strlen, ptr @memset, ptr @environ]
@inside = constant [3 x ptr] [ptr @own, ptr getelementptr (i8, ptr @paged, i64 8), ptr @shown_zeros]
@moving = internal global ptr @shown
"""


@dataclass(frozen=True)
class Step:
    """One thing a function does to its running value: which kind, and a number that varies it."""

    kind: str
    number: int


def _call_math(name: str, n: int) -> list[str]:
    if n % 2:
        return [
            f"%{name}_i = and i64 %{name}_in, 1023",
            f"%{name}_f = sitofp i64 %{name}_i to float",
            f"%{name}_s = call float @sinf(float %{name}_f)",
            f"%{name}_b = bitcast float %{name}_s to i32",
            f"%{name}_z = zext i32 %{name}_b to i64",
            f"%{name}_out = xor i64 %{name}_in, %{name}_z",
        ]
    return [
        f"%{name}_i = and i64 %{name}_in, 31",
        f"%{name}_f = sitofp i64 %{name}_i to double",
        f"%{name}_s = call double @pow(double %{name}_f, double 1.5)",
        f"%{name}_b = bitcast double %{name}_s to i64",
        f"%{name}_out = add i64 %{name}_in, %{name}_b",
    ]


def _call_memory(name: str, n: int) -> list[str]:
    return [
        f"%{name}_size = and i64 %{name}_in, 63",
        f"%{name}_to = getelementptr i8, ptr %memory, i64 {n % 64}",
        f"%{name}_from = getelementptr i8, ptr %memory, i64 {128 + n % 64}",
        f"%{name}_fill = getelementptr i8, ptr %memory, i64 {n % 128}",
        f"%{name}_byte = trunc i64 %{name}_in to i32",
        f"call ptr @memset(ptr %{name}_fill, i32 %{name}_byte, i64 %{name}_size)",
        f"call ptr @memcpy(ptr %{name}_to, ptr %{name}_from, i64 %{name}_size)",
        f"%{name}_read = load i64, ptr %memory, align 1",
        f"%{name}_out = add i64 %{name}_in, %{name}_read",
    ]


def _read_and_write(name: str, n: int) -> list[str]:
    addresses = ["@own", "@shown", "@tentative"]
    arrays = [("@paged", 3), ("@zeros", 512), ("@shown_zeros", 9)]
    if n % 2:
        lines, address = [], addresses[n % 3]
    else:
        array, size = arrays[n % 3]
        address = f"%{name}_address"
        lines = [
            f"%{name}_at = urem i64 %{name}_in, {size}",
            f"{address} = getelementptr i64, ptr {array}, i64 %{name}_at",
        ]
    return [
        *lines,
        f"%{name}_old = load i64, ptr {address}",
        f"%{name}_out = add i64 %{name}_old, %{name}_in",
        f"store i64 %{name}_out, ptr {address}",
    ]


def _read_through_tables(name: str, n: int) -> list[str]:
    return [
        f"%{name}_cell = getelementptr ptr, ptr @inside, i64 {n % 3}",
        f"%{name}_pointer = load ptr, ptr {'@moving' if n % 4 == 3 else f'%{name}_cell'}",
        f"%{name}_old = load i64, ptr %{name}_pointer",
        f"%{name}_out = xor i64 %{name}_old, %{name}_in",
    ]


def _call_through_data(name: str, n: int) -> list[str]:
    return [
        f"%{name}_function = load ptr, ptr @outside",
        f"%{name}_text = getelementptr i8, ptr @greeting, i64 {n % 14}",
        f"%{name}_length = call i64 %{name}_function(ptr %{name}_text)",
        f"%{name}_again = call i64 @strlen(ptr %{name}_text)",
        f"%{name}_both = mul i64 %{name}_length, %{name}_again",
        f"%{name}_out = add i64 %{name}_in, %{name}_both",
    ]


def _switch(name: str, n: int) -> list[str]:
    cases = 5 + n % 20
    return [
        f"%{name}_case = urem i64 %{name}_in, {cases + 2}",
        f"switch i64 %{name}_case, label %{name}_other [",
        *(f"  i64 {case}, label %{name}_is{case}" for case in range(cases)),
        "]",
        *(
            line
            for case in range(cases)
            for line in (
                f"{name}_is{case}:",
                f"%{name}_v{case} = {('add', 'xor', 'mul', 'sub')[case % 4]} i64 %{name}_in, {case * 77 + n}",
                f"br label %{name}_join",
            )
        ),
        f"{name}_other:",
        f"br label %{name}_join",
        f"{name}_join:",
        f"%{name}_out = phi i64 [ 1, %{name}_other ]"
        + "".join(f", [ %{name}_v{case}, %{name}_is{case} ]" for case in range(cases)),
    ]


def _vector_constants(name: str, n: int) -> list[str]:
    words = ", ".join(f"i32 {(n * 2654435761 + lane * 40503) & 0x7FFFFFFF}" for lane in range(16))
    octets = ", ".join(f"i8 {(n * 31 + lane * 17) % 128}" for lane in range(64))
    return [
        f"%{name}_t = trunc i64 %{name}_in to i32",
        f"%{name}_one = insertelement <16 x i32> poison, i32 %{name}_t, i64 0",
        f"%{name}_all = shufflevector <16 x i32> %{name}_one, <16 x i32> poison, <16 x i32> zeroinitializer",
        f"%{name}_product = mul <16 x i32> %{name}_all, <{words}>",
        f"%{name}_word = call i32 @llvm.vector.reduce.xor.v16i32(<16 x i32> %{name}_product)",
        f"%{name}_bytes = load <64 x i8>, ptr %memory, align 1",
        f"%{name}_sums = add <64 x i8> %{name}_bytes, <{octets}>",
        f"%{name}_byte = call i8 @llvm.vector.reduce.add.v64i8(<64 x i8> %{name}_sums)",
        f"%{name}_w = zext i32 %{name}_word to i64",
        f"%{name}_b = zext i8 %{name}_byte to i64",
        f"%{name}_both = xor i64 %{name}_w, %{name}_b",
        f"%{name}_out = add i64 %{name}_in, %{name}_both",
    ]


def _outer_world(name: str, n: int) -> list[str]:
    """Data and functions of the process: the environment's address, Python's types and functions."""
    return [
        f"%{name}_environment = load ptr, ptr @environ",
        f"%{name}_cell = getelementptr ptr, ptr @outside, i64 2",
        f"%{name}_same = load ptr, ptr %{name}_cell",
        f"%{name}_e = ptrtoint ptr {('%' + name + '_environment', '%' + name + '_same')[n % 2]} to i64",
        f"%{name}_p = ptrtoint ptr {('@PyLong_Type', '@PyLong_AsLong')[n % 2]} to i64",
        f"%{name}_x = xor i64 %{name}_e, %{name}_p",
        f"%{name}_out = add i64 %{name}_in, %{name}_x",
    ]


STEPS = {
    "call_math": _call_math,
    "call_memory": _call_memory,
    "read_and_write": _read_and_write,
    "read_through_tables": _read_through_tables,
    "call_through_data": _call_through_data,
    "switch": _switch,
    "vector_constants": _vector_constants,
    "outer_world": _outer_world,
}


def _call_another(name: str, n: int, functions: int) -> list[str]:
    """Functions call each other, directly or through a table, until the depth is used up."""
    target, lines = f"@f{n % functions}", list[str]()
    if n % 3 == 0:
        target = f"%{name}_function"
        lines = [
            f"%{name}_cell = getelementptr ptr, ptr @functions, i64 {n % functions}",
            f"{target} = load ptr, ptr %{name}_cell",
        ]
    return [
        *lines,
        f"%{name}_deep = icmp sgt i64 %depth, 0",
        f"br i1 %{name}_deep, label %{name}_go, label %{name}_stay",
        f"{name}_go:",
        f"%{name}_less = sub i64 %depth, 1",
        f"%{name}_got = call i64 {target}(i64 %{name}_in, ptr %memory, i64 %{name}_less)",
        f"br label %{name}_join",
        f"{name}_stay:",
        f"br label %{name}_join",
        f"{name}_join:",
        f"%{name}_out = phi i64 [ %{name}_got, %{name}_go ], [ %{name}_in, %{name}_stay ]",
    ]


def text_of(program: list[list[Step]]) -> str:
    """A module with a function per list of steps; the first, @f0, is exported, and so is every other one."""
    count = len(program)
    parts = [
        HEAD,
        f"@functions = internal constant [{count} x ptr] [{', '.join(f'ptr @f{at}' for at in range(count))}]",
    ]
    for at, steps in enumerate(program):
        linkage = "internal " if at % 2 else ""
        parts += [f"define {linkage}i64 @f{at}(i64 %value, ptr %memory, i64 %depth) nounwind {{", "entry:"]
        last = "%value"
        for index, step in enumerate(steps):
            name = f"s{index}"
            parts.append(f"%{name}_in = add i64 {last}, {step.number}")
            if step.kind == "call_another":
                parts += _call_another(name, step.number, count)
            else:
                parts += STEPS[step.kind](name, step.number)
            last = f"%{name}_out"
        parts += [f"%result = add i64 {last}, 0", "ret i64 %result", "}"]
    return "\n".join(parts)


_STEP = st.builds(Step, st.sampled_from([*STEPS, "call_another"]), st.integers(0, 99))
PROGRAMS = st.lists(st.lists(_STEP, min_size=1, max_size=5), min_size=1, max_size=4)
