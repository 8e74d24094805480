"""The modules that programs import: `mlir.ir` and one for each dialect, filled from the tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import Any

from ptokit.base.diagnostics import Diagnostic
from ptokit.compat import parts, structure, types
from ptokit.compat.operations import alike, build, folded, operation_named
from ptokit.compat.parts import InsertionPoint, Operation, Value, insert
from ptokit.compat.types import Members, Type, attribute
from ptokit.ir import attributes as ours
from ptokit.ir import types as kinds
from ptokit.ir.attributes import ENUMERATIONS, Enumeration
from ptokit.ir.builder import Builder
from ptokit.ir.core import Block
from ptokit.ir.dialects import DEFINITIONS
from ptokit.ir.dialects.arith import predicates
from ptokit.ir.instructions import OP_CLASSES
from ptokit.ir.types import ScalarType
from ptokit.ir.typetext import parse_type

# Dialects without operations here are imported by libraries that use few of theirs, or none.
_EMPTY = {"builtin", "llvm", "math"}
DIALECTS = sorted({name.partition(".")[0] for name in DEFINITIONS} | _EMPTY)
# Enumerations of which the bindings have the members as names of the dialect.
_LOOSE = ("sync_op_type", "event")


class Dialect(ModuleType):
    """A module of operations: each is made of its record when it is asked for."""

    def __init__(self, dialect: str, own: dict[str, object]) -> None:
        super().__init__(f"mlir.dialects.{dialect}")
        self._dialect = dialect
        vars(self).update(own)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = _found(self._dialect, name)
        if found is None:
            fix = alike(self._dialect, name)
            raise AttributeError(
                f"{self.__name__} has no {name}: no operation, type or enumeration here has this "
                f"name{f'; {fix}' if fix else ''}"
            )
        vars(self)[name] = found
        return found


def _found(dialect: str, name: str) -> Any:
    if dialect == "pto":
        enum = _enumeration(name.removesuffix("Attr")) or _enumeration(name)
        if enum is not None:
            return Members(enum)
        if name.endswith("Type"):
            return _type_class(name)
        for each in _LOOSE:
            if name in ENUMERATIONS[each].members:
                return ours.EnumAttr(each, name)
    if name.endswith("Predicate"):
        words = predicates(DEFINITIONS[f"{dialect}.{folded(name.removesuffix('Predicate'))}"])
        return type(name, (), {w: ours.IntAttr(n, kinds.I64) for n, w in enumerate(words)})
    operation = operation_named(dialect, name)
    if operation is None:
        return None
    return _class(name, operation) if name.endswith("Op") else _function(operation)


def _class(name: str, operation: str) -> type[Operation]:
    def make(self: Operation, *args: Any, ip: InsertionPoint | None = None, **named: Any) -> None:
        Operation.__init__(self, build(operation, args, named, ip).ours)

    return type(name, (Operation,), {"__init__": make, "__doc__": f"`{operation}`."})


def _function(operation: str) -> Callable[..., Any]:
    def make(*args: Any, ip: InsertionPoint | None = None, **named: Any) -> Any:
        made = build(operation, args, named, ip)
        return made.results[0] if len(made.results) == 1 else made.results or made

    return make


@cache
def _enumeration(name: str) -> Enumeration | None:
    """The enumeration that a class stands for: named as in the text, or as in C++."""
    wanted = folded(name)
    for each in ENUMERATIONS.values():
        if wanted in (folded(each.name), folded(each.stands_for)):
            return each
    return None


def _type_class(name: str) -> Any:
    """A type of the dialect without parameters, in whichever case its name is written."""
    bare = name.removesuffix("Type")
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", bare).lower()
    for spelling in (snake, bare[0].lower() + bare[1:], bare.lower()):
        try:
            found = parse_type(f"!pto.{spelling}")
        except ValueError:
            continue
        return types.named(name, str(found))
    return None


# ---- what is not an operation of a table as it stands --------------------------------------------


class ConstantOp(Operation):
    """`arith.constant`: of a type and a number, or of a type and an attribute."""

    def __init__(self, result: Type, value: Any, **_: object) -> None:
        number = getattr(value, "value", value)
        builder = Builder(Block(), parts.here())
        if isinstance(result.ours, ScalarType):
            builder.constant(number, result.ours)
        else:
            attrs = {"value": attribute(value)}
            builder.op("arith.constant", {}, [result.ours], attrs)
        super().__init__(insert(builder.block.ops[0]).ours)

    @property
    def value(self) -> ours.Attribute:
        return self.ours.attrs["value"]


def constant(result: Any, value: Any = None, **named: object) -> Value:
    """`arith.constant(type, number)`, or `arith.constant(number)` of an index."""
    if value is None:
        return ConstantOp(types.IndexType.get(), result).result
    return ConstantOp(result, value, **named).result


def _create(
    name: str,
    results: Sequence[Type] | None = None,
    operands: Sequence[Any] | None = None,
    attributes: dict[str, Any] | None = None,
    successors: object = None,
    regions: int = 0,
    loc: object = None,
    ip: InsertionPoint | None = None,
) -> Operation | structure.InnerModule:
    """`Operation.create`: an operation by its name, with operands as the generic form has them."""
    if name == structure.InnerModule.name:
        made = structure.InnerModule.create(ip)
        made.attributes.update(attributes or {})
        return made
    attrs = dict(attributes or {})
    sizes = attrs.pop("operandSegmentSizes", None)
    values = list(operands or ())
    if isinstance(sizes, ours.ArrayAttr):
        counts = [n.value for n in sizes.items if isinstance(n, ours.IntAttr)]
        starts = [sum(counts[:n]) for n in range(len(counts))]
        values = [values[s : s + n] for s, n in zip(starts, counts, strict=True)]
    dialect, _, rest = name.partition(".")
    known = operation_named(dialect, rest)
    if known is None:
        raise structure.MLIRError([_unknown(name)])
    return build(known, [list(results or ()), *values], attrs, ip)


def _unknown(name: str) -> Diagnostic:
    dialect, _, rest = name.partition(".")
    fix = alike(dialect, rest)
    return Diagnostic("unknown-op", f"there is no operation {name}", parts.here(), fix=fix)


def register_dialect(*_: object, **__: object) -> None:
    """Dialects are known; nothing is loaded."""


def barrier(op: ours.EnumAttr, **named: Any) -> Operation:
    """A barrier of a pipe, or of the pipe that a class of operations runs on."""
    return build(f"pto.barrier{'_sync' if op.enum in OP_CLASSES else ''}", [op], named)


_OWN: dict[str, dict[str, object]] = {
    "pto": {
        "get_op_result_or_value": parts.plain,
        **{
            each.__name__: each
            for each in (
                register_dialect,
                barrier,
                types.TileConfig,
                types.TileBufConfigAttr,
                types.PtrType,
                types.TensorViewType,
                types.PartitionTensorViewType,
                types.TileBufType,
                types.VRegType,
                types.MaskType,
                types.VMIVRegType,
                types.VMIMaskType,
                types.StructType,
            )
        },
    },
    "arith": {each.__name__: each for each in (ConstantOp, constant)},
    "func": {
        "FuncOp": structure.FuncOp,
        "CallOp": structure.CallOp,
        "FunctionType": types.FunctionType,
        "func": structure.FuncOp.from_py_func,
    },
    "scf": {
        "ForOp": structure.ForOp,
        "IfOp": structure.IfOp,
        "WhileOp": structure.WhileOp,
        "for_": structure.for_,
    },
    "builtin": {"ModuleOp": structure.Module},
}


@cache
def dialect(name: str) -> ModuleType:
    """The module of a dialect."""
    more = vars(ir()) if name == "builtin" else {}
    return Dialect(name, more | _OWN.get(name, {}))


@cache
def ir() -> ModuleType:
    """`mlir.ir`."""
    found = ModuleType("mlir.ir")
    vars(found).update(
        {n: v for n, v in vars(types).items() if isinstance(v, type) and not n.startswith("_")}
    )
    vars(found).update(types.FLOATS)
    vars(found).update(
        Block=parts.Block,
        FunctionType=types.FunctionType,
        InsertionPoint=parts.InsertionPoint,
        Location=parts.Location,
        MLIRError=structure.MLIRError,
        Module=structure.Module,
        OpView=parts.Operation,
        Operation=type("Operation", (parts.Operation,), {"create": staticmethod(_create)}),
        Region=parts.Region,
        Value=parts.Value,
        WalkResult=parts.WalkResult,
    )
    return found
