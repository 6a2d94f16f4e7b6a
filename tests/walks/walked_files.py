"""The files of the three walks through the code: what happens in each, and which lines of it are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

CALLS = 60
"""How often the kernel of the third walk is called."""


class Step(NamedTuple):
    """A file of a walk: what happens in it, the functions to list with words of their statements, and what there is."""

    path: str
    words: str
    listed: Mapping[str, Sequence[str]]
    sample: str = ""
    """The name of a sample that is shown behind the listing."""


class Walk(NamedTuple):
    """Files in order, for something that is done."""

    title: str
    words: str
    steps: Sequence[Step]


KERNEL_TO_PTX = Walk(
    "From `@kernel` to PTX",
    "A kernel is traced to a tile function, which becomes a warp-specialized one, then ops of the machine, LLVM text "
    "and PTX. No GPU is needed for any of it. This is the kernel; its arrays are 1024×512 and 512×64 of bf16, and it "
    "is compiled for sm_90a:",
    (
        Step(
            "tile/calls/function.py",
            "`@kernel` makes a `Kernel` of the function. Nothing is traced before a call: `_instance` looks for a "
            "program that was traced for such arguments, whose guards hold, and traces otherwise.",
            {
                "_Decorator._make": ["return Kernel("],
                "Kernel._instance": ["for instance in", "values = collect", "if kinds_of", "instance = self.traced"],
            },
        ),
        Step(
            "tile/language/rewrite.py",
            "The kernel's source is parsed and compiled once more, with `for` and `if` statements over tiles as calls "
            "of functions. The rest stays Python; lines keep their numbers, so that errors show the user's own.",
            {"_rewritten": ["rewriter = _Rewriter", "tree.body = rewriter.statements", "made_code = compile"]},
        ),
        Step(
            "tile/language/control.py",
            "What the rewritten code calls. A loop over `tile.range` becomes one `scf.for`: its body runs once, on "
            "symbols, and variables that change in it are what the loop carries.",
            {"_tile_loop": ["carried =", "region = carried.settled", "op = scf.ForOp", "work.emit(op)"]},
        ),
        Step(
            "tile/calls/trace.py",
            "`trace` runs the rewritten function on tiles that stand for values. Each function of `tessera.tile` that "
            "it calls writes an op through the `Tracer` "
            "([`tile/language/tracer.py`](../src/tessera/tile/language/tracer.py)); what it asks about sizes becomes a "
            "guard. Tiles that are returned are stored to fresh arrays.",
            {
                "trace": [
                    "work = Tracer(",
                    "result = _run(",
                    "outputs = _store_results",
                    "traced = work.finish",
                    "module = ModuleOp",
                    "for step in",
                ]
            },
            "traced",
        ),
        Step(
            "tile/calls/program_cache.py",
            "A traced kernel is compiled only if neither this process nor the disk has its program. The disk's first "
            "key is the identity of the function, with all that it sees from outside "
            "([`tile/identity/fingerprint.py`](../src/tessera/tile/identity/fingerprint.py)), and of the schedule, the "
            "kinds of arguments and the compiler.",
            {
                "Programs.find": [
                    "kept = Kept.of",
                    "program = None if kept is None",
                    "instance = trace()",
                    "program = self._made",
                ],
                "Programs._made": ["program, code = compiled("],
            },
        ),
        Step(
            "targets/cuda/spill_retries.py",
            "The target `cuda` compiles. Where there is a GPU whose assembler finds values of a thread in local "
            "memory, it compiles again under a smaller plan; each attempt that did not fit is kept in the report "
            "with its "
            "reason.",
            {"SpillRetries.run": [], "SpillRetries._make": ["made = compile_kernel", "code = ", "spilled ="]},
            "report",
        ),
        Step(
            "targets/cuda/compile.py",
            "One kernel on its way: stages that all kernels need, then the warp-specialized way if the machine has it "
            "and the kernel fits, otherwise the portable one. `compile_lowered` emits what comes out, and has LLVM "
            "make PTX of it.",
            {
                "_NvLowering._prepared": ["passes = legalize_stages", "return _Prepared"],
                "_NvLowering.run": ["found = self._warp_specialized", "found = first_that_fits", "made = runner.run"],
                "compile_lowered": ["emitted = emitted_of", "ptx = ptx_of"],
            },
            "stages",
        ),
        Step(
            "targets/cuda/hopper/warp_specialized_chain.py",
            "The stages of the warp-specialized way, as a table: passes over tiles, then over partitions, then over "
            "ops of the machine. [Causal attention, pass by pass](attention-walk.md) shows each at work; this kernel "
            "needs a few of them.",
            {"warp_specialized_stages": ["tiles: list", "partitions: list", "machine: list", "levels =", "return {"]},
            "changing",
        ),
        Step(
            "transforms/pipelining/warp_specialize.py",
            "Loads that feed dots go to a producer, all else to consumers that share the rows, and rings of shared "
            "memory lie between them. Kernels in which that cannot be are refused with a reason, and take the portable "
            "way.",
            {
                "WarpSpecialize.partition": [
                    "loads = [op for op in function",
                    "loads = [op for op in loads",
                    "produced, consumed =",
                    "rings = [",
                    "order = TileOrder",
                    "_Writer(function",
                ]
            },
            "warp-specialize",
        ),
        Step(
            "targets/cuda/hopper/warp_groups_to_nv.py",
            "Partitions become branches of one nv function: rings are shared memory with barriers, copies go through "
            "tensor maps, dots are `wgmma`, and tiles get layouts, which say which thread holds which element.",
            {
                "WarpGroupLowering.run": [
                    "made = self.header",
                    "for op in self.source",
                    "self._write_partitions",
                    "self.lower(op)",
                ]
            },
            "warp-groups-to-nv",
        ),
        Step(
            "targets/cuda/emit/emitter.py",
            "Writes LLVM text, one function with one parameter, the params block. Rules for ops are registered by the "
            "files beside it; LLVM's NVPTX back end makes PTX of the text "
            "([`targets/llvm/machine.py`](../src/tessera/targets/llvm/machine.py)).",
            {
                "Emitter.emit": [
                    "self.f = self.module.function",
                    "self._bind_arguments",
                    "self.block(",
                    "return Emitted",
                ]
            },
            "ptx",
        ),
        Step(
            "targets/cuda/device_launch.py",
            "What a launch has to know besides the code is read off the nv function: threads, shared memory, clusters, "
            "and a recipe for each tensor map. With the arguments and the grid it is the launch plan.",
            {"launch_of": ["maps = [", "return DeviceLaunch"]},
            "launch",
        ),
    ),
)

CALL_TO_LAUNCH = Walk(
    "From a `jit` call to a launch",
    "The first call of a jitted function goes the long way through all of these files; the last two are what later "
    "calls go through instead. This is the function, called with arrays of 6×32 and 32×16 of f32 on the CPU:",
    (
        Step(
            "lang/jit.py",
            "Arguments are taken apart into arrays and static values, and an entry for such is looked for: a program "
            "bound to their sizes. Where there is none, `_bound` finds or makes a variant of the function, and binds "
            "it.",
            {
                "Jitted._slowly": [
                    "chosen = settings()",
                    "call = self.parameters.call",
                    "key = (chosen",
                    "entry = self._known.get",
                    "entry = self._entry",
                    "self._remember",
                    "results = entry.run",
                ],
                "Jitted._bound": ["variant, sizes = self._variant", "bound = variant.program.bind"],
            },
        ),
        Step(
            "lang/calls/variants.py",
            "Which sizes are numbers, and which are symbols, so that one program serves many. A size is a number until "
            "it comes with another value; calls that differ in sizes alone are a family.",
            {
                "pattern_of": [
                    "annotated, environment =",
                    "changing = seen.changing",
                    "sizes.append(_annotated_size",
                    "sizes.append(_automatic",
                    "sizes.append(count)",
                ]
            },
            "explained",
        ),
        Step(
            "lang/tracing/functions.py",
            "The function runs once on traced values, whose operators write ops of Graph IR. What comes back is "
            "flattened: results of the program, sizes, and constants.",
            {
                "trace_function": [
                    "trace = Trace(",
                    "args, kwargs = rebuild",
                    "result = function(",
                    "leaves, structure =",
                    "main = graph.FuncOp",
                    "module = ModuleOp",
                ]
            },
            "graph",
        ),
        Step(
            "programs/compile.py",
            "The graph goes down to tile functions, one for each kernel, by the stages of "
            "[`transforms/pipeline.py`](../src/tessera/transforms/pipeline.py). What is left of the graph is a host "
            "program.",
            {
                "_lowered": [
                    "stages = stages_for",
                    "lowered = compile_module",
                    "program = program_of",
                    "return program",
                ],
                "program_of": ["program = host_of", "codes = Codes(", "return Program("],
            },
            "graph stages",
        ),
        Step(
            "programs/lowered.py",
            "The host program: steps over numbered values. A table has one rule for each op that is left to the host; "
            "a launch names its kernel by number, and kernels that are alike are one.",
            {"_Reader.block": ["rule = _RULES.get", "rule(self, op)"], "_launch": []},
            "host",
        ),
        Step(
            "programs/program.py",
            "Binding: sizes are known now, so each array gets its memory: one that was given, a result, or a part of "
            "the arena, which arrays share that are not needed at the same time "
            "([`buffer_assignment.py`](../src/tessera/programs/buffer_assignment.py), "
            "[`memory_plan.py`](../src/tessera/programs/memory_plan.py)).",
            {
                "Program.bind": [
                    "sizes = self.sizes",
                    "buffers = assign_buffers",
                    "site = self._site",
                    "plan = memory_plan.plan",
                ]
            },
            "memory",
        ),
        Step(
            "programs/host_site.py",
            "A site is the device of a bound program. For the CPU it makes machine code of each kernel ready: a "
            "template of its args block with sizes, strides and the grid filled in, and which words are left for "
            "addresses. For GPUs [`device_site.py`](../src/tessera/programs/device_site.py) does the same with "
            "[`runtime/cuda/executable.py`](../src/tessera/runtime/cuda/executable.py).",
            {"HostSite.prepared": ["executable = self", "ready = executable.ready", "fills = [", "return Prepared("]},
            "plans",
        ),
        Step(
            "programs/call_codegen.py",
            "Writes the Python function that runs the bound program: it takes the arena, makes memory for results, and "
            "launches. Launches that follow each other are one call of machine code.",
            {
                "Writer.write": ["self.site.begin", "self.acts(", "self.flush()", "self.site.end", "return made("],
                "Writer.flush": ["steps = [", "run = self.name", "status = {run}"],
            },
            "written",
        ),
        Step(
            "runtime/native/sequence.py",
            "The table of such a call: for each launch its template, and which of the call's values go where in it.",
            {"make": [], "Table.launch": []},
        ),
        Step(
            "runtime/native/launch.py",
            "The launch itself: a built-in function whose `self` is a record of the kernel's address, its arguments "
            "and its template. It copies the template, fills in addresses and numbers, lets go of the interpreter's "
            "lock, and gives the work to the threads of [`pool.py`](../src/tessera/runtime/native/pool.py).",
            {"through_entry": []},
        ),
        Step(
            "lang/calls/dispatch.py",
            "For the next call: a function is written for the structure of these arguments, and replaces `__call__`. "
            "It compares metas, which are interned, with those of the first few entries, then looks into a dictionary, "
            "and otherwise goes the long way again.",
            {"Quick._written": ["code = CallCode(", "look = code.choice(", "run = self._runs", "return code.made("]},
        ),
        Step(
            "tile/call_code.py",
            "Functions for calls of jitted functions, of kernels and of tiers are written here, so that all look up "
            "what was found before in the same way.",
            {"CallCode.attempt": [], "CallCode.made": ["text =", "exec(", "made = self._seen", "return made"]},
            "names",
        ),
    ),
)

CALL_TO_TIER_3 = Walk(
    "From a first call to Tier 3",
    "A kernel in tiers is served at once by a program that is quick to make, and later by ones that are compiled for "
    "what its calls have shown. "
    f"This is the kernel, called {CALLS} times with the same array of 8×64 and the number 2.0. "
    "To make the page the same everywhere, the runtime has a clock that ticks a millisecond whenever it is read, "
    "compiles while the caller waits, and asks for Tier 2 after 10 ms and for Tier 3 after 30:",
    (
        Step(
            "metatracing/runtime.py",
            "A runtime has the settings, the compiler and what was learned. `tiered` gives a callable of the kernel's "
            "own parameters; "
            '`jit(tiers="auto")` comes here with another client.',
            {"MetaTracingRuntime.tiered": []},
        ),
        Step(
            "tiers/tiered.py",
            "A call finds an entry: a program bound for such metas. New ones ask the site for it. As for `jit`, later "
            "calls take a function that is written for the parameters; every so many of them are timed (`sampled`).",
            {
                "Tiered._run": [
                    "key, came =",
                    "entry = self.entries.get",
                    "site = self._site",
                    "entry = site.entry_for",
                    "self._remember",
                    "return entry.site.sampled",
                ]
            },
        ),
        Step(
            "metatracing/clients/kernels.py",
            "The client: what kernels have to say to the tiers. A call is its values, and what is fixed for its site; "
            "compiling at a level is compiling the kernel with some facts assumed, through the same code as in the "
            "first walk.",
            {
                "KernelClient.call": ["bound = self.kernel.bound", "return Call("],
                "KernelClient.compile": [
                    "return Interpreted",
                    "form = self.form",
                    "program, _ = form.program_for",
                    "return self._compiled",
                ],
            },
        ),
        Step(
            "tiers/sites/specialization_site.py",
            "A site has the programs for arguments of the same kinds, the most specialized first. An entry gets the "
            "first whose guards hold; if none do, there is always Tier 1.",
            {
                "SpecializationSite.entry_for": [
                    "for program in list",
                    "broken = program.broken_guard",
                    "made = self._bound(program",
                    "chain.append(made)",
                    "base = self._bound(self._base",
                ]
            },
        ),
        Step(
            "tiers/sites/first_program.py",
            "The first program: from the disk, or whatever is ready soonest, such as the interpreter for small arrays.",
            {
                "first_program": [
                    "if (found := _found",
                    "level = TierLevel",
                    "return client.compile(call, level), level",
                ]
            },
            "tiers",
        ),
        Step(
            "tiers/sites/recording.py",
            "A timed call becomes a record, and heats up its entry and its site. Hotness is time spent that decays, so "
            "that counts of calls do not matter.",
            {
                "Recording._record": [
                    "program.note",
                    "self.hotness.add",
                    "entry.hotness.add",
                    "self.ring.add",
                    "self._noted",
                ]
            },
            "record",
        ),
        Step(
            "tiers/sites/tier_policy.py",
            "Behind each record: is the site hot enough for the next tier, and has enough been shown to assume "
            "anything? Then it requests programs.",
            {
                "TierPolicy.consider": [
                    "for wanted, threshold, enabled",
                    "if not self._is_hot",
                    "if wanted is TIER3 and (first",
                    "request := self._request_tier",
                    "site.runtime.compile(request",
                ],
                "TierPolicy._is_hot": ["site_hotness, hotness =", "if first", "return hotness >="],
            },
        ),
        Step(
            "tiers/sites/invariants.py",
            "What Tier 3 assumes: facts about arguments that were the same for nearly all of the time spent.",
            {"invariant_words": []},
            "words",
        ),
        Step(
            "tiers/sites/candidates.py",
            "Which programs are worth compiling: all facts under the schedule in use, numbers alone, and other "
            "schedules.",
            {
                "tier3_levels": [
                    "levels, numbers =",
                    "levels.append(",
                    "schedules = recommended",
                    "others = [",
                    "levels += [",
                ]
            },
        ),
        Step(
            "tiers/sites/request.py",
            "The compiler of requests. This one compiles at once; "
            "[`tiers/compiling/background.py`](../src/tessera/tiers/compiling/background.py) has other processes do "
            "so, while calls go on.",
            {
                "Request.compiled": ["self.settle()", "for level in self.levels", "found.append("],
                "RequestCompiler.submit": [],
            },
            "compiled",
        ),
        Step(
            "tiers/sites/trials.py",
            "A program of fast compilation is replaced at once. Others are compared with the new ones first, on "
            "calls that "
            "are made anyhow.",
            {
                "Candidates.begin": [
                    "serving = [one for one in self.waiting",
                    "contenders.append(Contender(entry.program",
                    "contenders.append(Contender(program",
                    "self._compete(",
                ],
                "Candidates._end": ["best, incumbent =", "site.take(best.program"],
            },
        ),
        Step(
            "tiers/sites/ab_test.py",
            "The A/B test: contenders make calls one after the other, and runs of the same round are compared. Slower "
            "ones drop out when that is hardly chance; among equals the more specialized wins.",
            {
                "ABTest._judge": ["for one in self.alive", "longer, doubt", "alive.append(one)"],
                "ABTest.winner": ["best = _fastest", "near = [", "return best"],
            },
            "sites",
        ),
    ),
)
