"""Instructions become operations: while a kernel is lowered, the machine in force is a `Tracer`.

Every instruction is written the same way, from its record: which operands are values and which are
attributes follows from its syntax, names and types from the table of text forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from ptokit.base.diagnostics import Diagnostic, ProgramError
from ptokit.base.dtypes import f32
from ptokit.base.location import Location, Site
from ptokit.frontend.instruction import check_operands
from ptokit.frontend.lowering import fifos
from ptokit.frontend.lowering.asynchronous import EventSymbol
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.numbers import NeedsConstant, Number, as_value, cast
from ptokit.frontend.lowering.symbols import BufferSymbol, GlobalSymbol, GroupSymbol
from ptokit.frontend.lowering.vectors import VectorWriter
from ptokit.ir.attributes import Attribute, IntAttr
from ptokit.ir.builder import mnemonic
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects import DEFINITIONS
from ptokit.ir.dialects.memory import constant
from ptokit.ir.instructions import (
    RETURNED,
    attribute_for,
    attributes_in,
    declared_types,
    form_of,
    is_plain_number,
    literal_attribute,
    literal_keys,
    operands_in,
    text_default,
    text_key,
)
from ptokit.ir.types import F32, F64, I1, I32, I64, INDEX, OpaqueType, ScalarType, Type
from ptokit.ir.typetext import is_scalar
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.effects import InAuto
from ptokit.isa.facts import Ops, ScalarFacts
from ptokit.isa.spec import Insn, Operand
from ptokit.isa.targets import Target
from ptokit.isa.verify import unfit_numbers
from ptokit.machine.asynchronous import AsyncEvent
from ptokit.machine.faults import unwanted

Place = Site | Location


class Tracer:
    """Stands where the machine stands, and writes operations."""

    def __init__(self, emitter: Emitter, target: Target, mode: str) -> None:
        self.emitter = emitter
        self.target = target
        self.mode = mode
        self.sync = _Flags(self)
        self.micro = VectorWriter(emitter)
        # Event ids taken so far; `kind` is that of the section in hand.
        self.core = SimpleNamespace(events={}, role="mix", kind="mix", registers={})
        emitter.watched.append(self.core.events)

    def place(self, operand: Any) -> None:
        """Placement belongs to a later pass."""

    def remark(self, code: str, message: str, fix: str) -> None:
        """Note a warning about the line in hand, for whoever judges the program."""
        where = self.emitter.location
        self.emitter.remarks.append(Diagnostic(code, message, where, fix=fix, severity="warning"))

    def execute(self, insn: Insn, operands: Any, attrs: tuple[Any, ...], site: Place) -> Any:
        """Write the instruction; operands follow the record, None is left out."""
        check_operands(insn, tuple(operands))
        self._check_numbers(insn, operands, attrs, site)
        if self.mode == "auto" and insn.in_auto is InAuto.UNWANTED:
            self.emitter.remarks.append(unwanted(insn, self.emitter.location))
        if self.mode == "auto" and insn.in_auto is not InAuto.RUNS:
            return AsyncEvent() if insn.returns == EventSymbol.operand_kind else None
        given = {
            declared.name: value
            for declared, value in zip(insn.operands, operands, strict=True)
            if value is not None
        }
        template = dict(zip((a.name for a in insn.attrs), attrs, strict=True))
        if self._binds_here(insn, given, template):
            return None
        fifos.take_slot(self.emitter, insn, given)
        name, shown = self._spelling(insn, given, template)
        pairs: list[tuple[str, Value]] = []
        written = self._attributes(insn, operands, template, name)
        for declared in insn.operands:
            value = given.get(declared.name)
            if value is None:
                continue
            if declared.name not in shown:
                key, attribute = literal_attribute(insn, declared, int(value))
                written[key] = attribute
            else:
                pairs += [(declared.name, v) for v in self._values(insn, declared, value, given)]
            if isinstance(value, GroupSymbol):
                written["root"] = IntAttr(value.root, I32)
        results = self._results(insn, given)
        hint = "event" if results and isinstance(results[0][1], OpaqueType) else ""
        op = self.emitter.emit(f"pto.{name}", pairs, results, written, insn=insn, hint=hint)
        _in_written_order(op)
        if not results:
            return None
        if not isinstance(op.result.type, ScalarType):
            return EventSymbol(self.emitter, op.result)
        number = Number(self.emitter, op.result)
        return cast(self.emitter, number, F32 if number.is_float else INDEX)

    def _check_numbers(
        self, insn: Insn, operands: Any, attrs: tuple[Any, ...], site: Place
    ) -> None:
        """Refuse numbers that an operand does not take while they are still what was written."""
        if insn.numbers:
            facts = {o.name: _facts(v) for o, v in zip(insn.operands, operands, strict=True)}
            chosen = dict(zip((a.name for a in insn.attrs), attrs, strict=True))
            at = site if isinstance(site, Location) else site.location
            if found := unfit_numbers(insn, Ops(facts, chosen, self.target, self.mode), at):
                raise ProgramError(found)

    # ---- how it is written -------------------------------------------------------------------

    def _spelling(
        self, insn: Insn, given: Mapping[str, Any], template: Mapping[str, Any]
    ) -> tuple[str, list[str]]:
        """The name of the operation, and the operands that it takes as values."""
        if insn.asm is None:
            raise self.emitter.fail("operand", f"{insn.name} has no form in the text")
        if not insn.asm.syntax:
            return mnemonic(insn, set(given)), list(given)
        # What is known now and not data can be an attribute; the rest must be shown as values.
        constants = {
            declared.name
            for declared in insn.operands
            if is_plain_number(declared) and isinstance(given.get(declared.name), int)
        }
        keys = {k for k, o in literal_keys(insn).items() if o.name in constants}
        keys |= {text_key(insn, a) for a in insn.attrs if template[a.name] is not None}
        for name, syntax in insn.asm.syntax.items():
            as_keys = constants & set(attributes_in(syntax))
            shown = [n for n in operands_in(syntax) if n not in as_keys]
            fits = set(given) - constants <= set(shown)
            if fits and DEFINITIONS[f"pto.{name}"].needed_attrs <= keys:
                return name, shown
        shown = {n for syntax in insn.asm.syntax.values() for n in operands_in(syntax)}
        needed = set(given) - constants
        unwritten = ", ".join(sorted(needed - shown))
        if not all(is_plain_number(insn.operand(n)) for n in needed - shown):
            raise self.emitter.fail("operand", f"{insn.name}: the text has no form for {unwritten}")
        raise self.emitter.fail(
            "operand",
            f"{insn.name}: {unwritten} can only be a number that is known at compile time",
            "pass it as a keyword-only (const) parameter",
        )

    def _attributes(
        self, insn: Insn, operands: Any, template: Mapping[str, Any], name: str
    ) -> dict[str, Attribute]:
        """Template arguments that a text would take for others, or that it always shows."""
        assert insn.asm is not None
        definition = DEFINITIONS.get(f"pto.{name}")
        always = definition.needed_attrs if definition else frozenset[str]()
        types = declared_types(insn)
        values = dict(template)
        if insn.asm.spelled:
            facts = {o.name: _facts(v) for o, v in zip(insn.operands, operands, strict=True)}
            ops = Ops(facts, values, self.target, self.mode)
            spelled = insn.asm.spelled.items()
            values |= {each: said(ops) for each, said in spelled if values[each] is None}
        if insn.asm.rewritten is not None:
            values = dict(insn.asm.rewritten(values))
        return {
            key: attribute_for(attr, values[attr.name], types.get(key, ""))
            for attr in insn.attrs
            for key in [text_key(insn, attr)]
            if attr.name not in insn.asm.inferred
            if values[attr.name] != text_default(insn, attr)
            or (key in always and values[attr.name] is not None)
        }

    def _results(self, insn: Insn, given: Mapping[str, Any]) -> list[tuple[str, Type]]:
        if not insn.returns:
            return []
        source = given.get(insn.returns)
        named = insn.returns if source is None else _element(source).mlir
        return [(RETURNED, ScalarType(named) if is_scalar(named) else OpaqueType(named))]

    # ---- operands ----------------------------------------------------------------------------

    def _values(
        self, insn: Insn, declared: Operand, value: Any, given: Mapping[str, Any]
    ) -> list[Value]:
        if isinstance(value, GroupSymbol):
            return [member.value for member in value.members]
        if isinstance(value, Number):
            value = self._as_operand(insn, declared, value, given)
        found = getattr(value, "value", None)
        if isinstance(found, Value):
            return [found]
        if isinstance(value, bool | int):
            assert insn.asm is not None
            type_ = ScalarType(insn.asm.types.get(declared.name, "index"))
            return [as_value(self.emitter, int(value), type_)]
        if isinstance(value, float):
            return [as_value(self.emitter, value, _float_type(given))]
        raise self.emitter.fail(
            "operand",
            f"{insn.name}: {type(value).__name__} cannot be an operand of a lowered kernel",
        )

    def _as_operand(
        self, insn: Insn, declared: Operand, number: Number, given: Mapping[str, Any]
    ) -> Number:
        """A run-time number in the type in which the operation takes it.

        A float is rounded to the elements it meets, once, as when the instruction runs; what goes
        to memory has the type of the memory.
        """
        if number.type == I1:
            number = cast(self.emitter, number, INDEX)
        if "scalar" not in declared.kinds:
            return number
        pointers = [o.name for o in insn.operands if "pointer" in o.kinds and o.name in given]
        if pointers:
            return cast(self.emitter, number, ScalarType(_element(given[pointers[0]]).mlir))
        return cast(self.emitter, number, _float_type(given)) if number.type == F64 else number

    # ---- binding -----------------------------------------------------------------------------

    def _binds_here(
        self, insn: Insn, given: Mapping[str, Any], template: Mapping[str, Any]
    ) -> bool:
        """A tile's address known at compile time belongs to the operation that makes the tile."""
        tile = next(iter(given.values()), None)
        if "Addr" not in template or not isinstance(tile, BufferSymbol):
            return False
        if self.mode == "auto":
            return True
        address = given["addr"] if template["Addr"] is None else template["Addr"]
        if tile.is_chosen:
            raise NeedsConstant(
                self.emitter.fail(
                    "needs-constant",
                    "the tile that takes an address is known at compile time, but this one is "
                    "chosen at run time",
                    "bind the tiles one by one, or in a loop of known length",
                )
            )
        alloc = tile.alloc
        if isinstance(address, int) and alloc and tile.value is alloc.result:
            before = alloc.operand("addr")
            if before is None:
                place = self.emitter.constant_before(alloc, address, I64)
                alloc.operands.insert(0, place)
                alloc.labels = ("addr", *alloc.labels)
                return True
            if constant(before) == address:  # said already, when this region was written before
                return True
        self.emitter.heap.touch(tile, insn.name, self.emitter.location)
        value = as_value(self.emitter, address, I64)
        pairs = [("obj", tile.value), ("addr", value)]
        results = [("obj", tile.value.type)]
        hint = tile.value.name
        op = self.emitter.emit("pto.tassign", pairs, results, insn=insn, hint=hint)
        tile.value = op.result
        return True


class _Flags:
    """What events ask of the machine: flags and barriers, as the instructions they are."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def set_flag(self, src: int, dst: int, id: Any, site: Place) -> None:
        self._tracer.execute(INSTRUCTIONS["set_flag"], (src, dst, id), (), site)

    def wait_flag(self, src: int, dst: int, id: Any, site: Place) -> None:
        self._tracer.execute(INSTRUCTIONS["wait_flag"], (src, dst, id), (), site)

    def barrier(self, pipe: int, site: Place) -> None:
        self._tracer.execute(INSTRUCTIONS["pipe_barrier"], (pipe,), (), site)


def _in_written_order(op: Op) -> None:
    """Sources before destinations, or as the syntax has them."""
    definition = DEFINITIONS.get(op.name)
    if definition is not None:
        op.operands, op.labels = definition.in_order(op.operands, list(op.labels))
        return
    form = form_of(op)
    names = [operand.name for operand in (*form.ins, *form.outs)]
    values = dict(zip(op.labels, op.operands, strict=True))
    op.operands = [values[name] for name in names if name in values]
    op.labels = tuple(name for name in names if name in values)


def _float_type(given: Mapping[str, Any]) -> Type:
    """Floats take the type of the tiles they meet, where that is a plain float."""
    for operand in given.values():
        if isinstance(operand, BufferSymbol) and operand.spec.dtype.name in ("f16", "bf16", "f32"):
            return ScalarType(operand.spec.dtype.mlir)
    return F32


def _facts(value: Any) -> Any:
    """What is known of an operand that is a number, or that one may be converted for."""
    if isinstance(value, Number):
        return ScalarFacts(f32 if value.is_float else value.type.dtype)
    if isinstance(value, int | float):
        return ScalarFacts(None, value)
    if value is None:
        return None
    return SimpleNamespace(dtype=getattr(getattr(value, "spec", value), "dtype", None))


def _element(symbol: Any) -> Any:
    return symbol.spec.dtype if isinstance(symbol, BufferSymbol | GlobalSymbol) else symbol.dtype
