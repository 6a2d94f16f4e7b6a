"""Replacing size symbols by numbers throughout a graph function."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tessera.errors import GuardError, ShapeError
from tessera.ir.common.attributes import SizesAttr, symbols_of
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.effects import look_up
from tessera.ir.graph.kernel_calls import substitute
from tessera.ir.graph.types import GraphTensorType
from tessera.ir.schedule import dialect as schedule
from tessera.shapes.environment import Origin, ShapeEnvironment
from tessera.shapes.expr import Dim, Size
from tessera.transforms.core.facts import Fact, FactKind, Recorder
from tessera.transforms.core.symbol_names import fresh_name


def specialize_symbols(function: graph.FuncOp, recorder: Recorder) -> None:
    """Binds each symbol by the first size fact that decides it, and rewrites all types."""
    environment = ShapeEnvironment()
    for position, type_ in enumerate(function.function_type.inputs):
        if not isinstance(type_, GraphTensorType):
            continue
        for axis, size in enumerate(type_.shape):
            subject = f"arg{position}.size[{axis}]"
            for atom in recorder.facts.about(FactKind.SIZE, subject):
                if not isinstance(size, Dim):
                    continue
                undecided = environment.resolve(size).constant is None
                bind_size(environment, size, atom)
                if undecided:
                    recorder.ask(atom)
    if values := environment.sizes:
        _check_not_called(function)
        _substitute(function, dict(values))
        _specialize_callees(function, dict(values))


def bind_size(environment: ShapeEnvironment, size: Size, atom: Fact) -> None:
    """Notes that a size has the value a fact gives it; facts that cannot hold together are refused."""
    try:
        environment.unify(size, int(atom.value), Origin(f"the fact {atom}", None))
    except ShapeError as error:
        raise GuardError(
            f"the fact {atom} contradicts the others: {error.message}",
            story=error.story,
            hint="facts must come from one set of arguments",
        ) from error


def _specialize_callees(function: graph.FuncOp, values: Mapping[str, Size]) -> None:
    """Functions called with sizes that are numbers now get copies for them.

    A call's types are its callee's, so both know the sizes by the same names.
    """
    module = function.parent_op()
    if not isinstance(module, ModuleOp):
        return
    copies: dict[str, graph.FuncOp] = {}
    for call in [op for op in function.walk() if isinstance(op, graph.CallOp)]:
        callee = look_up(call, call.callee, graph.FuncOp)
        name = callee.sym_name.data
        types = (*callee.function_type.inputs, *callee.function_type.outputs)
        named = symbols_of(size for type_ in types if isinstance(type_, GraphTensorType) for size in type_.shape)
        known = {symbol: size for symbol, size in sorted(values.items()) if symbol in named}
        if not known:
            continue
        if name not in copies:
            copies[name] = callee.clone()
            suffix = "".join(f"_{symbol}{size}" for symbol, size in known.items())
            copies[name].properties["sym_name"] = StringAttr(fresh_name(module, name + suffix))
            Rewriter.insert_op(copies[name], InsertPoint.before(function))
            _substitute(copies[name], known)
            _specialize_callees(copies[name], known)
        call.properties["callee"] = SymbolRefAttr(copies[name].sym_name.data)


def _check_not_called(function: graph.FuncOp) -> None:
    module = function.parent_op()
    if module is None:
        return
    for op in module.walk():
        if isinstance(op, graph.CallOp) and op.callee.string_value() == function.sym_name.data:
            raise GuardError(
                f"size facts about @{function.sym_name.data}, which is called inside the module",
                hint="facts are about the arguments of the function that the host calls; name it with `function`",
            )


def _substitute(function: graph.FuncOp, values: Mapping[str, Size]) -> None:
    def new(type_: Attribute) -> Attribute:
        return type_.with_shape(substitute(type_.shape, values)) if isinstance(type_, GraphTensorType) else type_

    signature = function.function_type
    function.properties["function_type"] = FunctionType.from_lists(
        [new(type_) for type_ in signature.inputs], [new(type_) for type_ in signature.outputs]
    )
    for op in function.walk():
        if isinstance(op, schedule.LaunchOp):
            op.properties["grid"] = SizesAttr(substitute(op.grid.data, values))
        owned: list[SSAValue] = [*op.results]
        for region in op.regions:
            for block in region.blocks:
                owned += block.args
        for value in owned:
            if (retyped := new(value.type)) != value.type:
                Rewriter.replace_value_with_new_type(value, retyped)
