from xdsl.ir import Block
from tessera import accum, bf16, f16, f32, i32, saturate
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import GraphTensorType

block = Block(arg_types=[GraphTensorType.of(["S", "D"], f32), GraphTensorType.of(["D", "S"], f32)])
x, y = block.args
graph.EwOp("add", [x, graph.TransposeOp(graph.TransposeOp(y, [1, 0]).result, [1, 0]).result])
