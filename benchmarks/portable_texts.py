"""Writes kernels of the portable path at the nv level, in many shapes: `portable_gpu.py` tells which is fastest.

What is chosen becomes a golden text: `tests/goldens/portable/`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tessera.targets.cuda.ir import layouts
from tessera.targets.cuda.ir.layouts import Layout
from tessera.targets.cuda.ir.types import panel_for

STEP = 16
"""How deep one dot of 16-bit elements is."""
CACHED = 16 << 20
"""Bytes of keys and values that stay in the second cache while a group of heads is computed."""


@dataclass(frozen=True)
class Gemm:
    """c = a · b, or c = a · bᵀ where b is `transposed`.

    A block computes `rows` by `columns`, `depth` at a time, from a ring of `stages` slots. If the first fragments are
    `carried`, they are read before an iteration begins, so that its dots start at once. `band` rows of blocks follow
    each other, column by column, and share what the second cache holds.
    """

    rows: int = 128
    columns: int = 128
    depth: int = 64
    warps: tuple[int, int] = (2, 2)
    stages: int = 3
    transposed: bool = False
    carried: bool = True
    band: int = 8
    blocks: int = 2
    element: str = "bf16"

    def __str__(self) -> str:
        down, across = self.warps
        marks = f"{' transposed' if self.transposed else ''}{' carried' if self.carried else ''}"
        return f"{self.rows}×{self.columns}×{self.depth} warps {down}×{across} stages {self.stages}{marks}"

    @property
    def threads(self) -> int:
        return 32 * self.warps[0] * self.warps[1]

    @property
    def through_memory(self) -> bool:
        """Whether the ring of `a` is just as large as a block of `c`, which then goes out by whole lines."""
        return self.stages * self.depth == self.columns and panel_for(self.depth, 2) == panel_for(self.columns, 2)

    def text(self) -> str:
        return f"{self._types()}\n{self._head()}{self._loop()}{self._end()}"

    def _operands(self, depth: int) -> tuple[str, str]:
        return (
            layout(layouts.left_operand(self.rows, depth, self.warps, 16)),
            layout(layouts.right_operand(depth, self.columns, self.warps, 16)),
        )

    def _parts(self) -> list[tuple[str, int, int]]:
        """The depth in parts: what the dots of an iteration begin with, what they end with, and what is between."""
        last = self.depth - STEP
        if self.carried:
            return [("first", 0, STEP), *([("middle", STEP, last)] if last > STEP else []), ("last", last, self.depth)]
        half = self.depth // 2
        return [("first", 0, half), ("last", half, self.depth)]

    def _types(self) -> str:
        panel = panel_for(self.depth, 2)
        b_panel = panel if self.transposed else panel_for(self.columns, 2)
        b = f"{self.columns}x{self.depth}" if self.transposed else f"{self.depth}x{self.columns}"
        a, element = f"{self.rows}x{self.depth}", self.element
        lines = [f"#sums = {layout(layouts.accumulator(self.rows, self.columns, self.warps))}"]
        if self.through_memory:
            lines.append(f"#lines = {layout(layouts.blocked((self.rows, self.columns), self.threads, 8))}")
            lines.append(f"!lines = tensor<{self.rows}x{self.columns}x{element}, #lines>")
            lines.append(f"!out = !nv.shared<{self.rows}x{self.columns}x{element}, {panel}>")
        lines += [
            f"!sums = tensor<{self.rows}x{self.columns}xf32, #sums>",
            f"!packed = tensor<{self.rows}x{self.columns}x{element}, #sums>",
            f"!matrix = !tile.view<2, {element}, global>",
            f"!a = !nv.shared<{a}x{element}, {panel}>",
            f"!b = !nv.shared<{b}x{element}, {b_panel}>",
            f"!a_ring = !nv.shared<{self.stages}x{a}x{element}, {panel}>",
            f"!b_ring = !nv.shared<{self.stages}x{b}x{element}, {b_panel}>",
        ]
        for name, first, last in self._parts():
            left, right = self._operands(last - first)
            lines.append(f"!{name}_a = tensor<{self.rows}x{last - first}x{element}, {left}>")
            lines.append(f"!{name}_b = tensor<{last - first}x{self.columns}x{element}, {right}>")
        return "\n".join(lines) + "\n"

    def _copies(self, at: str, slot: str, indent: str) -> str:
        place = f"%col, {at}" if self.transposed else f"{at}, %col"
        lines = [
            f"%a_{slot} = nv.slot %as[%{slot}] : !a_ring -> !a",
            f"%b_{slot} = nv.slot %bs[%{slot}] : !b_ring -> !b",
            f"nv.copy_async %a[%row, {at}], %a_{slot} {{aligned}} : !matrix, !a",
            f"nv.copy_async %b[{place}], %b_{slot} {{aligned}} : !matrix, !b",
            "nv.commit",
        ]
        return "".join(f"{indent}{line}\n" for line in lines)

    def _reads(self, part: tuple[str, int, int], slot: str, indent: str) -> str:
        name, first, _ = part
        place, transposed = (f"0, {first}", " transposed") if self.transposed else (f"{first}, 0", "")
        lines = [
            f"%{slot}_{name}_a = nv.read %a_{slot}[0, {first}] : !a -> !{name}_a",
            f"%{slot}_{name}_b = nv.read %b_{slot}[{place}]{transposed} : !b -> !{name}_b",
        ]
        return "".join(f"{indent}{line}\n" for line in lines)

    def _head(self) -> str:
        shape = "[N, K]" if self.transposed else "[K, N]"
        grid = f'["(M + {self.rows - 1})//{self.rows}", "(N + {self.columns - 1})//{self.columns}"]'
        text = f"""nv.func @gemm(%a: !matrix, %b: !matrix, %c: !matrix) outputs 1 shapes [[M, K], {shape}, [M, N]] \
grid {grid} threads {self.threads} attributes {{blocks = {self.blocks} : i64}} {{
  %0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %stages = arith.constant {self.stages} : i32
  %band = arith.constant {self.band} : i32
  %down = arith.constant {self.rows} : i32
  %across = arith.constant {self.columns} : i32
  %start = arith.constant 0 : index
  %depth = arith.constant {self.depth} : index
  %ahead = arith.constant {self.depth * (self.stages - 1)} : index
  %as = nv.alloc : !a_ring
  %bs = nv.alloc : !b_ring

  // Blocks in bands of {self.band} rows, rows fastest.
  %m_index = tile.dim %c, 0 : !matrix
  %n_index = tile.dim %c, 1 : !matrix
  %k = tile.dim %a, 1 : !matrix
  %m = arith.index_cast %m_index : index to i32
  %n = arith.index_cast %n_index : index to i32
  %down_less_1 = arith.subi %down, %1 : i32
  %across_less_1 = arith.subi %across, %1 : i32
  %m_up = arith.addi %m, %down_less_1 : i32
  %n_up = arith.addi %n, %across_less_1 : i32
  %blocks_down = arith.divui %m_up, %down : i32
  %blocks_across = arith.divui %n_up, %across : i32
  %number = nv.id<block>
  %band_size = arith.muli %blocks_across, %band : i32
  %band_number = arith.divui %number, %band_size : i32
  %band_start = arith.muli %band_number, %band_size : i32
  %in_band = arith.subi %number, %band_start : i32
  %band_row = arith.muli %band_number, %band : i32
  %rows_left = arith.subi %blocks_down, %band_row : i32
  %band_rows = arith.minsi %rows_left, %band : i32
  %block_column = arith.divui %in_band, %band_rows : i32
  %column_start = arith.muli %block_column, %band_rows : i32
  %in_column = arith.subi %in_band, %column_start : i32
  %block_row = arith.addi %band_row, %in_column : i32
  %row32 = arith.muli %block_row, %down : i32
  %col32 = arith.muli %block_column, %across : i32
  %row = arith.index_cast %row32 : i32 to index
  %col = arith.index_cast %col32 : i32 to index

"""
        for stage in range(self.stages - 1):
            text += f"  %fill{stage} = arith.constant {stage} : i32\n"
            text += f"  %at{stage} = arith.constant {stage * self.depth} : index\n"
            text += self._copies(f"%at{stage}", f"fill{stage}", "  ")
        return text

    def _dots(self, names: list[tuple[str, str]], totals: str) -> str:
        """Dots of parts that are there, one after the other."""
        text = ""
        for name, slot in names:
            a, b = f"%{slot}_{name}_a", f"%{slot}_{name}_b"
            text += f"    %{name}_sums = nv.mma {a}, {b}, {totals} : !{name}_a, !{name}_b, !sums -> !sums\n"
            totals = f"%{name}_sums"
        return text

    def _loop(self) -> str:
        parts = self._parts()
        text = "  %zero = arith.constant 0.0 : f32\n  %none = tile.full %zero : !sums\n"
        text += "  %last_stage = arith.subi %stages, %1 : i32\n"
        arguments = "%sums = %none, %full = %0, %free = %last_stage"
        types, results = "!sums, i32, i32", "%total, %full_end, %free_end"
        if self.carried:
            text += f"  nv.wait {self.stages - 2}\n{self._reads(parts[0], 'fill0', '  ')}"
            arguments += ", %full_first_a = %fill0_first_a, %full_first_b = %fill0_first_b"
            types, results = f"{types}, !first_a, !first_b", f"{results}, %a_end, %b_end"
        text += f"  {results} = scf.for %at = %start to %k step %depth iter_args({arguments}) -> ({types}) {{\n"
        text += "" if self.carried else f"    nv.wait {self.stages - 2}\n"
        text += "    %a_full = nv.slot %as[%full] : !a_ring -> !a\n    %b_full = nv.slot %bs[%full] : !b_ring -> !b\n"
        early = parts[1:-1] if self.carried else parts[:1]
        text += "" if self.carried else self._reads(parts[0], "full", "    ")
        text += self._dots([("first", "full")], "%sums")
        if self.carried:
            text += "".join(self._reads(part, "full", "    ") for part in early)
            text += self._dots([(name, "full") for name, _, _ in early], "%first_sums")
        text += "    %next = arith.addi %at, %ahead : index\n" + self._copies("%next", "free", "    ")
        text += self._reads(parts[-1], "full", "    ")
        text += self._next_slots()
        if self.carried:
            text += f"""    nv.wait {self.stages - 2}
    %a_after = nv.slot %as[%full_next] : !a_ring -> !a
    %b_after = nv.slot %bs[%full_next] : !b_ring -> !b
"""
            text += self._reads(parts[0], "after", "    ")
        before = f"%{early[-1][0]}_sums" if early else "%first_sums"
        text += self._dots([("last", "full")], before)
        given = "%last_sums, %full_next, %free_next" + (", %after_first_a, %after_first_b" if self.carried else "")
        return f"{text}    scf.yield {given} : {types}\n  }}\n"

    @staticmethod
    def _next_slots() -> str:
        return "".join(
            f"""    %{name}_up = arith.addi %{name}, %1 : i32
    %{name}_wraps = arith.cmpi eq, %{name}_up, %stages : i32
    %{name}_next = arith.select %{name}_wraps, %0, %{name}_up : i32
"""
            for name in ("full", "free")
        )

    def _end(self) -> str:
        text = "  %packed = tile.ew<cast> %total : !sums -> !packed\n"
        if not self.through_memory:
            return f"{text}  tile.store %packed, %c[%row, %col] : !packed, !matrix\n  nv.return\n}}\n"
        return f"""{text}  nv.wait 0
  %out = nv.recast %as : !a_ring -> !out
  nv.write %packed, %out : !packed, !out
  nv.barrier
  %lines = nv.read %out[0, 0] : !out -> !lines
  tile.store %lines, %c[%row, %col] : !lines, !matrix
  nv.return
}}
"""


@dataclass(frozen=True)
class Attention:
    """softmax(q · kᵀ · scale) · v for heads of `width`; the scale comes times log2(e), and is above 0.

    A block takes `rows` queries of one head, 32 to a warp. Keys and values come `keys` at a time through rings of two
    slots, last ones first. Queries stay in registers if `held`, else they are read from shared memory again and again.
    """

    width: int
    causal: bool
    warps: int = 4
    keys: int = 64
    held: bool = False
    blocks: int = 2
    element: str = "f16"

    def __str__(self) -> str:
        mask = "causal" if self.causal else "full"
        held = "queries held" if self.held else ""
        return f"{mask} {self.width}: {self.rows}×{self.keys} blocks {self.blocks} {held}".rstrip()

    @property
    def rows(self) -> int:
        return 32 * self.warps

    def text(self) -> str:
        loops = f"""  %in_part = arith.subi %blocks, %plain : i32
  %part:3 = scf.for %iteration = %0 to %in_part step %1 \
iter_args(%acc = %o_zero, %sum = %sum_zero, %base = %far_rows) -> (!out, !quads, !rows) : i32 {{
{self._iteration(masked=True)}  }}
  %done:3 = scf.for %iteration = %in_part to %blocks step %1 \
iter_args(%acc = %part#0, %sum = %part#1, %base = %part#2) -> (!out, !quads, !rows) : i32 {{
{self._iteration(masked=False)}  }}
"""
        return f"{self._types()}\n{self._head()}{loops}{self._end()}"

    def _parts(self) -> list[tuple[int, int]]:
        """The width in two parts: copies begin between their dots."""
        return [(0, 2 * STEP), (2 * STEP, self.width)]

    def _types(self) -> str:
        grid = (self.warps, 1)
        scores = layouts.accumulator(self.rows, self.keys, grid)
        panel, element = panel_for(self.width, 2), self.element
        lines = [
            f"#scores = {layout(scores)}",
            f"#out = {layout(layouts.accumulator(self.rows, self.width, grid))}",
            f"#rows = {layout(scores.without(1))}",
            f"#quads = {layout(_quads(scores))}",
            f"#values = {layout(layouts.right_operand(self.keys, self.width, grid, 16))}",
            f"#lines = {layout(layouts.blocked((self.rows, self.width), 32 * self.warps, 8))}",
        ]
        for name, kind in (("scores", "f32"), ("weights", element), ("numbers", "i32"), ("flags", "i1")):
            lines.append(f"!{name} = tensor<{self.rows}x{self.keys}x{kind}, #scores>")
        for name, kind in (("out", "f32"), ("packed", element)):
            lines.append(f"!{name} = tensor<{self.rows}x{self.width}x{kind}, #out>")
        for name, shape, kind in (
            ("rows", "", "f32"),
            ("column", "1x", "f32"),
            ("row_numbers", "", "i32"),
            ("number_column", "1x", "i32"),
        ):
            lines.append(f"!{name} = tensor<{self.rows}x{shape}{kind}, #rows>")
        for name, kind in (("quads", "f32"), ("quad_flags", "i1")):
            lines.append(f"!{name} = tensor<{self.rows}x4x{kind}, #quads>")
        lines += [
            f"!lines = tensor<{self.rows}x{self.width}x{element}, #lines>",
            f"!values = tensor<{self.keys}x{self.width}x{element}, #values>",
            f"!array = !tile.view<4, {element}, global>",
            f"!plane = !tile.view<2, {element}, global>",
            f"!queries = !nv.shared<{self.rows}x{self.width}x{element}, {panel}>",
            f"!block = !nv.shared<{self.keys}x{self.width}x{element}, {panel}>",
            f"!ring = !nv.shared<2x{self.keys}x{self.width}x{element}, {panel}>",
        ]
        for number, (first, last) in enumerate(self._parts()):
            left = layouts.left_operand(self.rows, last - first, grid, 16)
            right = layouts.right_operand(last - first, self.keys, grid, 16)
            lines.append(f"!q{number} = tensor<{self.rows}x{last - first}x{element}, {layout(left)}>")
            lines.append(f"!k{number} = tensor<{last - first}x{self.keys}x{element}, {layout(right)}>")
        return "\n".join(lines) + "\n"

    def _head(self) -> str:
        array = f"[B, H, S, {self.width}]"
        text = f"""nv.func @attention(%q: !array, %k: !array, %v: !array, %scale: f32, %o: !array) outputs 1 \
shapes [{array}, {array}, {array}, [], {array}] grid ["(S + {self.rows - 1})//{self.rows}", "B*H"] \
threads {32 * self.warps} attributes {{blocks = {self.blocks} : i64}} {{
  %0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %start = arith.constant 0 : index
  %width = arith.constant {self.width} : index
  %queries = arith.constant {self.rows} : i32
  %keys = arith.constant {self.keys} : i32
  %qs = nv.alloc : !queries
  %ks = nv.alloc : !ring
  %vs = nv.alloc : !ring
  %s_index = tile.dim %q, 2 : !array
  %h_index = tile.dim %q, 1 : !array
  %b_index = tile.dim %q, 0 : !array
  %size = arith.index_cast %s_index : index to i32
  %heads = arith.index_cast %h_index : index to i32
  %batches = arith.index_cast %b_index : index to i32
  %all_heads = arith.muli %heads, %batches : i32
  %queries_less_1 = arith.subi %queries, %1 : i32
  %keys_less_1 = arith.subi %keys, %1 : i32
  %size_up = arith.addi %size, %queries_less_1 : i32
  %q_blocks = arith.divui %size_up, %queries : i32
  %keys_up = arith.addi %size, %keys_less_1 : i32
  %k_blocks = arith.divui %keys_up, %keys : i32

  // Heads whose keys and values fit into the cache together are a group. Within it, most work comes first.
  %cached_keys = arith.constant {CACHED // (4 * self.width)} : i32
  %fitting = arith.divui %cached_keys, %size : i32
  %at_most = arith.minsi %fitting, %all_heads : i32
  %group_heads = arith.maxsi %at_most, %1 : i32
  %group_size = arith.muli %group_heads, %q_blocks : i32
  %number = nv.id<block>
  %group = arith.divui %number, %group_size : i32
  %group_start = arith.muli %group, %group_size : i32
  %in_group = arith.subi %number, %group_start : i32
  %first_head = arith.muli %group, %group_heads : i32
  %heads_left = arith.subi %all_heads, %first_head : i32
  %here = arith.minsi %heads_left, %group_heads : i32
  %from_last = arith.divui %in_group, %here : i32
  %head_start = arith.muli %from_last, %here : i32
  %in_heads = arith.subi %in_group, %head_start : i32
  %last_q_block = arith.subi %q_blocks, %1 : i32
  %q_block = arith.subi %last_q_block, %from_last : i32
  %any_head = arith.addi %first_head, %in_heads : i32
  %batch32 = arith.divui %any_head, %heads : i32
  %batch_start = arith.muli %batch32, %heads : i32
  %head32 = arith.subi %any_head, %batch_start : i32
  %row32 = arith.muli %q_block, %queries : i32
  %row = arith.index_cast %row32 : i32 to index
  %batch = arith.index_cast %batch32 : i32 to index
  %head = arith.index_cast %head32 : i32 to index
"""
        text += self._planes() + self._extent()
        return text + self._start()

    @staticmethod
    def _planes() -> str:
        return "".join(
            f"""  %{name}_per_batch = tile.stride %{name}, 0 : !array
  %{name}_per_head = tile.stride %{name}, 1 : !array
  %{name}_per_row = tile.stride %{name}, 2 : !array
  %{name}_per_column = tile.stride %{name}, 3 : !array
  %{name}_batch = arith.muli %batch, %{name}_per_batch : index
  %{name}_head = arith.muli %head, %{name}_per_head : index
  %{name}_from = arith.addi %{name}_batch, %{name}_head : index
  %{name}_plane = tile.view %{name} offset %{name}_from sizes [%s_index, %width] \
strides [%{name}_per_row, %{name}_per_column] : !array -> !plane
"""
            for name in "qkvo"
        )

    def _extent(self) -> str:
        """Which blocks of keys a block of queries sees: all those before `blocks`, those before `plain` as a whole."""
        if not self.causal:
            return "  %blocks = arith.minsi %k_blocks, %k_blocks : i32\n  %plain = arith.divui %size, %keys : i32\n"
        return """  %row_end = arith.addi %row32, %queries : i32
  %end_up = arith.addi %row_end, %keys_less_1 : i32
  %seen = arith.divui %end_up, %keys : i32
  %blocks = arith.minsi %seen, %k_blocks : i32
  %row_1 = arith.addi %row32, %1 : i32
  %seen_by_all = arith.divui %row_1, %keys : i32
  %whole = arith.divui %size, %keys : i32
  %plain = arith.minsi %seen_by_all, %whole : i32
"""

    def _start(self) -> str:
        text = """  %last = arith.subi %blocks, %1 : i32
  %last_key32 = arith.muli %last, %keys : i32
  %last_key = arith.index_cast %last_key32 : i32 to index
  %k_first = nv.slot %ks[%0] : !ring -> !block
  %v_first = nv.slot %vs[%0] : !ring -> !block
  nv.copy_async %q_plane[%row, %start], %qs {aligned} : !plane, !queries
  nv.copy_async %k_plane[%last_key, %start], %k_first {aligned} : !plane, !block
  nv.copy_async %v_plane[%last_key, %start], %v_first {aligned} : !plane, !block
  nv.commit

  // Weights are powers of two above `base`, which is minus the row's largest score, scaled. It is moved only when a
  // score exceeds it by more than 8: sums in f32 have room for that. In the beginning it is far away.
  %slack_power = arith.constant 8.0 : f32
  %far = arith.constant 1.0e+38 : f32
  %zero = arith.constant 0.0 : f32
  %minus_infinity = arith.constant 0xFF800000 : f32
  %far_rows = tile.full %far : !rows
  %scale_rows = tile.full %scale : !rows
  %scale_quads = tile.full %scale : !quads
  %scale_scores = tile.full %scale : !scores
  %slack = tile.full %slack_power : !quads
  %lowest = tile.full %minus_infinity : !scores
  %s_zero = tile.full %zero : !scores
  %o_zero = tile.full %zero : !out
  %sum_zero = tile.full %zero : !quads
  %last_seen = arith.subi %size, %1 : i32
"""
        if self.causal:
            text += """  %query = tile.iota %row, 0 : !row_numbers
  %last_rows = tile.full %last_seen : !row_numbers
  %end = tile.ew<min> %query, %last_rows : !row_numbers, !row_numbers -> !row_numbers
  %end_column = tile.expand %end, 1 : !row_numbers -> !number_column
  %ends = tile.broadcast %end_column : !number_column -> !numbers
"""
        else:
            text += "  %ends = tile.full %last_seen : !numbers\n"
        if self.held:
            text += "  nv.wait 0\n"
            text += "".join(
                f"  %q{number} = nv.read %qs[0, {first}] : !queries -> !q{number}\n"
                for number, (first, _) in enumerate(self._parts())
            )
        return text

    def _scores(self, result: str) -> str:
        """Scores of one block of keys; when the first dots run, the next block is asked for."""
        text = ""
        for number, (first, _) in enumerate(self._parts()):
            if not self.held:
                text += f"    %q{number} = nv.read %qs[0, {first}] : !queries -> !q{number}\n"
            text += f"    %k{number} = nv.read %k_block[0, {first}] transposed : !block -> !k{number}\n"
            before, after = ("%s_zero", "%s_half") if number == 0 else ("%s_half", result)
            types = f"!q{number}, !k{number}, !scores -> !scores"
            text += f"    {after} = nv.mma %q{number}, %k{number}, {before} : {types}\n"
            if number == 0:
                text += """    %k_free = nv.slot %ks[%other] : !ring -> !block
    %v_free = nv.slot %vs[%other] : !ring -> !block
    nv.copy_async %k_plane[%next, %start], %k_free {aligned} : !plane, !block
    nv.copy_async %v_plane[%next, %start], %v_free {aligned} : !plane, !block
    nv.commit
"""
        return text

    def _iteration(self, *, masked: bool) -> str:
        text = f"""    nv.wait 0
    %slot = arith.andi %iteration, %1 : i32
    %other = arith.subi %1, %slot : i32
    %back = arith.muli %iteration, %keys : i32
    %key32 = arith.subi %last_key32, %back : i32
    %next32 = arith.subi %key32, %keys : i32
    %next = arith.index_cast %next32 : i32 to index
    %k_block = nv.slot %ks[%slot] : !ring -> !block
    %v_block = nv.slot %vs[%slot] : !ring -> !block
{self._scores("%s_all" if masked else "%s")}"""
        if masked:
            text += """    %key = arith.index_cast %key32 : i32 to index
    %columns = tile.iota %key, 1 : !numbers
    %keep = tile.ew<le> %columns, %ends : !numbers, !numbers -> !flags
    %s = tile.ew<select> %keep, %s_all, %lowest : !flags, !scores, !scores -> !scores
"""
        return f"""{text}    %top = nv.partial<max> %s, 1 : !scores -> !quads
    %base_column = tile.expand %base, 1 : !rows -> !column
    %bases = tile.broadcast %base_column : !column -> !quads
    %top_power = tile.ew<fma> %top, %scale_quads, %bases : !quads, !quads, !quads -> !quads
    %above = tile.ew<gt> %top_power, %slack : !quads, !quads -> !quad_flags
    %rises = nv.any %above : !quad_flags
    %moved:3 = scf.if %rises -> (!rows, !quads, !out) {{
      %new = tile.reduce<max> %top, 1 : !quads -> !rows
      %scaled = tile.ew<mul> %new, %scale_rows : !rows, !rows -> !rows
      %lower = tile.ew<neg> %scaled : !rows -> !rows
      %base_new = tile.ew<min> %lower, %base : !rows, !rows -> !rows
      %fall = tile.ew<sub> %base_new, %base : !rows, !rows -> !rows
      %share = tile.ew<exp2> %fall {{fast}} : !rows -> !rows
      %share_column = tile.expand %share, 1 : !rows -> !column
      %shares = tile.broadcast %share_column : !column -> !quads
      %sum_less = tile.ew<mul> %sum, %shares : !quads, !quads -> !quads
      %factors = tile.broadcast %share_column : !column -> !out
      %acc_less = tile.ew<mul> %acc, %factors : !out, !out -> !out
      scf.yield %base_new, %sum_less, %acc_less : !rows, !quads, !out
    }} else {{
      scf.yield %base, %sum, %acc : !rows, !quads, !out
    }}
    %base_now = tile.expand %moved#0, 1 : !rows -> !column
    %base_scores = tile.broadcast %base_now : !column -> !scores
    %power = tile.ew<fma> %s, %scale_scores, %base_scores : !scores, !scores, !scores -> !scores
    %w = tile.ew<exp2> %power {{fast}} : !scores -> !scores
    %part_sum = nv.partial<sum> %w, 1 : !scores -> !quads
    %sum_next = tile.ew<add> %moved#1, %part_sum : !quads, !quads -> !quads
    %p = tile.ew<cast> %w : !scores -> !weights
    %v_all = nv.read %v_block[0, 0] : !block -> !values
    %acc_next = nv.mma %p, %v_all, %moved#2 : !weights, !values, !out -> !out
    scf.yield %acc_next, %sum_next, %moved#0 : !out, !quads, !rows
"""

    @staticmethod
    def _end() -> str:
        return """  %total = tile.reduce<sum> %done#1, 1 : !quads -> !rows
  %inverse = tile.ew<reciprocal> %total {fast} : !rows -> !rows
  %inverse_column = tile.expand %inverse, 1 : !rows -> !column
  %inverses = tile.broadcast %inverse_column : !column -> !out
  %o_scaled = tile.ew<mul> %done#0, %inverses : !out, !out -> !out
  %o_packed = tile.ew<cast> %o_scaled : !out -> !packed
  nv.wait 0
  nv.write %o_packed, %qs : !packed, !queries
  nv.barrier
  %lines = nv.read %qs[0, 0] : !queries -> !lines
  tile.store %lines, %o_plane[%row, %start] : !lines, !plane
  nv.return
}
"""


def layout(of: Layout) -> str:
    return f"#nv.layout<{of}>"


def _quads(scores: Layout) -> Layout:
    """One number of each of the four threads that share a row of scores."""
    threads = tuple(digit._replace(step=1) if digit.axis == 1 else digit for digit in scores.threads)
    return Layout(threads, tuple(digit for digit in scores.registers if digit.axis != 1))
