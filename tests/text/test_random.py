"""Random modules made from the table: printing and reading is the identity."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ptokit.ir.attributes import FloatAttr
from ptokit.ir.builder import Builder
from ptokit.ir.core import Block, Function, Module, Value
from ptokit.ir.parser import parse
from ptokit.ir.printer import print_module
from ptokit.ir.rewrite import clone, same_module
from ptokit.ir.types import F32, I1, I32, INDEX, OpaqueType, TileBufType, Type, ViewType
from tests.text.table import asked_by, attributes, forms, type_of, write

FORMS = [
    form
    for form in forms()
    if all(type_of(None, o, False) is not None for o in (*form.ins, *form.outs))
]
# What no operation makes out of nothing is handed in.
PARAMETERS = (INDEX, I1, I32, F32, ViewType("partition_tensor_view", (16, 64), F32))
PARAMETERS += (OpaqueType("pipe"),)
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,6}|[0-9]{1,3}", fullmatch=True)


@st.composite
def modules(draw: st.DrawFn) -> Module:
    """Functions with nested control flow around instructions on tiles of any kind."""
    return Module([_function(draw, n) for n in range(draw(st.integers(1, 2)))])


def _function(draw: st.DrawFn, number: int) -> Function:
    body = Block()
    body.args = [Value(draw(NAMES), type_, body) for type_ in PARAMETERS]
    _fill(draw, body, list(body.args), 0)
    Builder(body).op("func.return")
    return Function(f"f{number}", body)


def _fill(draw: st.DrawFn, block: Block, known: list[Value], depth: int) -> None:
    builder = Builder(block)
    for _ in range(draw(st.integers(0, 4))):
        what = draw(st.sampled_from(["insn", "insn", "arith", "constant", "if", "for"]))
        if what == "insn":
            _instruction(draw, builder, known)
        elif what == "arith":
            index = _some(draw, builder, known, INDEX)
            names = [draw(NAMES)]
            made = builder.op("arith.addi", {"lhs": index, "rhs": index}, [INDEX], names=names)
            known.append(made.result)
        elif what == "constant":
            value = draw(st.floats(width=32))
            names = [draw(NAMES)]
            attrs = {"value": FloatAttr(value, F32)}
            known.append(builder.op("arith.constant", {}, [F32], attrs, names=names).result)
        elif depth < 2:
            _region(draw, builder, known, depth, what)


def _region(draw: st.DrawFn, builder: Builder, known: list[Value], depth: int, what: str) -> None:
    inner = Block()
    scope = list(known)
    if what == "for":
        inner.args = [Value(draw(NAMES), INDEX, inner)]
        scope += inner.args
    _fill(draw, inner, scope, depth + 1)
    Builder(inner).op("scf.yield")
    if what == "for":
        bound = _some(draw, builder, known, INDEX)
        operands = {"lower": bound, "upper": bound, "step": bound}
        builder.op("scf.for", operands, regions=[inner])
    else:
        builder.op("scf.if", {"condition": _some(draw, builder, known, I1)}, regions=[inner])


def _instruction(draw: st.DrawFn, builder: Builder, known: list[Value]) -> None:
    form = draw(st.sampled_from(FORMS))
    choices = list(attributes(form))
    attrs = draw(st.sampled_from(choices)) if choices and draw(st.booleans()) else {}
    operands: dict[str, Value] = {}
    for operand in (*form.ins, *form.outs):
        type_ = type_of(None, operand, False)
        assert type_ is not None
        operands[operand.name] = _some(draw, builder, known, type_)
    write(builder, form, operands, {}, asked_by(form) | attrs)


def _some(draw: st.DrawFn, builder: Builder, known: list[Value], type_: Type) -> Value:
    fitting = [v for v in known if v.type == type_]
    if fitting:
        return draw(st.sampled_from(fitting))
    assert isinstance(type_, TileBufType), type_
    made = builder.op("pto.alloc_tile", {}, [type_], names=[draw(NAMES)]).result
    known.append(made)
    return made


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(modules())
def test_random_modules_round_trip(module: Module) -> None:
    for generic in (False, True):
        text = print_module(module, generic=generic)
        again = parse(text)
        assert same_module(module, again), text
        assert print_module(again, generic=generic) == text
    assert same_module(module, clone(module))
