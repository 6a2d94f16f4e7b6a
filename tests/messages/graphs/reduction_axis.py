from xdsl.ir import Block
from tessera import accum, bf16, f16, f32, i32, saturate
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import GraphTensorType

block = Block(arg_types=[GraphTensorType.of(["S", "D"], f32)])
row = graph.ReduceOp("max", block.args[0], [1])
graph.ReduceOp("sum", row.result, [1])
