from xdsl.ir import Block
from tessera import accum, bf16, f16, f32, i32, saturate
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import GraphTensorType

block = Block(arg_types=[GraphTensorType.of(["B", "S"], f32), GraphTensorType.of(["B", "T"], f32)])
x, y = block.args
joined = graph.ConcatenateOp([x, y], axis=1)
graph.ConcatenateOp([joined.result, x], axis=0)
