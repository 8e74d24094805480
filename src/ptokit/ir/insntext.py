"""The text of instructions: reading and printing Level 2 (`ins`/`outs`) and Level 1 (results)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING

from ptokit.base.dataclass import dataclass
from ptokit.ir.attributes import Attribute, BoolAttr, EnumAttr, FloatAttr, IntAttr, dict_text
from ptokit.ir.core import Op, Value
from ptokit.ir.instructions import (
    RETURNED,
    Form,
    alias_labels,
    attr_keys,
    attribute_for,
    declared_types,
    find_form,
    form_of,
    forms_of,
    literal_keys,
    other_keys,
    template_value,
    text_key,
)
from ptokit.ir.reader import Head, Reader
from ptokit.ir.types import BufferType, ElidedType, FunctionType, Type, same_type
from ptokit.ir.typetext import suggestion
from ptokit.isa.spec import Asm, Insn

if TYPE_CHECKING:
    from ptokit.ir.printer import Printer


@dataclass
class Listed:
    """Operands as written: the value, its token, and indices in brackets behind it."""

    values: list[Value] = field(default_factory=list[Value])
    tokens: list[int] = field(default_factory=list[int])
    indices: list[tuple[Value, ...]] = field(default_factory=list[tuple[Value, ...]])
    clauses: dict[int, str] = field(default_factory=dict[int, str])  # operand -> word before it

    def read(self, reader: Reader) -> None:
        if reader.sees("@tile"):
            self.values.append(reader.address())
        elif reader.kind == "number":
            self.values.append(reader.immediate(self.types))
        else:
            self.values.append(reader.value())
        self.tokens.append(reader.at - 1)
        found: list[Value] = []
        if reader.accept("["):
            while not reader.accept("]"):
                if found:
                    reader.expect(",")
                found.append(reader.value())
        if reader.accept("!loc"):  # `!loc=vec`: the type says it as well
            reader.expect("=")
            reader.take("word", "the kind of the tile")
        self.indices.append(tuple(found))

    @property
    def types(self) -> list[Type]:
        return [v.type for v in self.values]


# ---- reading -----------------------------------------------------------------------------------


def read_instruction(reader: Reader, head: Head, forms: list[Form]) -> Op:
    """Read an instruction behind its name, in whichever form it is written."""
    if reader.sees("ins") or reader.sees("outs"):
        return _read_dps(reader, head, forms)
    return read_ssa(reader, head, forms)


def _read_dps(reader: Reader, head: Head, forms: list[Form]) -> Op:
    keys = _declared(forms)
    attrs: dict[str, Attribute] = {}
    ins, outs = Listed(), Listed()
    if reader.accept("ins"):
        _read_list(reader, ins, attrs, keys, forms)
    results: list[Type] = []
    if reader.accept("outs"):
        if reader.accept(":"):
            results = reader.type_list()
        else:
            _read_list(reader, outs, attrs, keys, forms)
    if reader.sees("{"):
        attrs.update(reader.attr_dict(keys))
    while reader.kind == "word" and reader.texts[reader.at + 1] == "=":
        key = reader.take("word", "an attribute")
        reader.expect("=")
        attrs[key] = reader.attribute(keys.get(key, ""))
    if reader.accept("->"):
        reader.result_types()  # ranked tensors, which nothing here has
    return build(reader, head, forms, ins, outs, attrs, results)


def _read_list(
    reader: Reader,
    listed: Listed,
    attrs: dict[str, Attribute],
    keys: dict[str, str],
    forms: list[Form],
) -> None:
    """`(%a, %b {attrs} : T, T)` or `(%a : T, %b : T)`."""
    reader.expect("(")
    while not reader.sees(")"):
        if reader.sees("{"):
            attrs.update(reader.attr_dict(keys))
        else:
            listed.read(reader)
        if not reader.accept(","):
            break
    if reader.kind == "word" and any(reader.text == _asm(form).missing for form in forms):
        reader.at += 1
    if reader.sees("{"):
        attrs.update(reader.attr_dict(keys))
    if listed.values:
        reader.expect(":")
        _read_types(reader, listed, attrs, forms)
    while reader.kind == "word" or (listed.clauses and reader.accept(",")):
        _read_clause(reader, listed)
    reader.expect(")")


def _read_clause(reader: Reader, listed: Listed) -> None:
    """`word %x : T`, or `%x : T` behind another clause."""
    if reader.kind == "word":
        listed.clauses[len(listed.values)] = reader.take("word", "a clause")
    listed.read(reader)
    reader.expect(":")
    reader.typed(listed.values[-1], listed.tokens[-1])


def _read_types(
    reader: Reader, listed: Listed, attrs: dict[str, Attribute], forms: list[Form]
) -> None:
    done = 0
    while True:
        if reader.kind == "string" and done == len(listed.values):
            _read_word(reader, attrs, forms)
            break
        if reader.kind == "value":  # each name with its type
            listed.read(reader)
            reader.expect(":")
            done = len(listed.values) - 1
        if done < len(listed.values):
            reader.typed(listed.values[done], listed.tokens[done])
        else:
            reader.type()
        done += 1
        if not reader.accept(","):
            break
    if done != len(listed.values):
        reader.note(
            "operand-count",
            f"{len(listed.values)} operands but {done} types",
            reader.place(listed.tokens[0]),
            "write one type per operand, in the same order",
        )


def _read_word(reader: Reader, attrs: dict[str, Attribute], forms: list[Form]) -> None:
    """`"row"`: a template argument that stands behind the types."""
    place, word = reader.place(), reader.string()
    known: list[str] = []
    for form in forms:
        for name, words in _asm(form).words.items():
            attr = next(a for a in form.insn.attrs if a.name == name)
            known += [w for w in words if w not in known]
            if word in words:
                value = attr.type(words.index(word))
                if value != attr.default:
                    attrs[text_key(form.insn, attr)] = attribute_for(attr, value)
                return
    what = f"{word!r} is none of the words {', '.join(known)}" if known else "expected a type"
    raise reader.fail(what, location=place)


def _asm(form: Form) -> Asm:
    assert form.insn.asm is not None
    return form.insn.asm


def _declared(forms: list[Form]) -> dict[str, str]:
    found: dict[str, str] = {"layout": "layout"}
    for form in forms:
        found.update(declared_types(form.insn))
    return found


def read_ssa(reader: Reader, head: Head, forms: list[Form]) -> Op:
    """`%a, %b {attrs} : (T, T) -> T`, the form of Level 1 and of the assembly lines."""
    attrs: dict[str, Attribute] = {}
    ins = Listed()
    # Line breaks mean nothing: after an instruction without operands the next line follows.
    if (
        reader.sees("@tile")
        or reader.kind == "number"
        or (reader.kind == "value" and not reader.starts_statement())
    ):
        ins.read(reader)
        while reader.accept(",") and (reader.sees("@tile") or reader.kind in ("number", "value")):
            ins.read(reader)
    keys = _declared(forms)
    if reader.sees("{"):
        attrs.update(reader.attr_dict(keys))
    reader.suffixes(attrs, keys)
    results = read_signature(reader, ins, len(head.results))
    reader.suffixes(attrs, keys)
    return build(reader, head, forms, ins, Listed(), attrs, results)


def read_signature(reader: Reader, ins: Listed, results: int) -> list[Type]:
    """Read `: types [-> types]` and return the result types.

    The pages abbreviate: one type may stand for all operands, the result's type may be missing
    (then it is that of the first tile) or stand last among the operands' types.
    """
    if not reader.accept(":"):
        return [_first_tile(ins.types)] * results
    start = reader.at
    types = reader.type_list_in_parentheses() if reader.sees("(") else reader.type_list()
    indexed = sum(map(len, ins.indices))
    if reader.accept("->"):
        found = reader.type_list_in_parentheses() if reader.sees("(") else reader.type_list()
    elif results and len(types) == len(ins.values) + indexed + results:
        found, types = types[-results:], types[:-results]
    else:
        found = [_first_tile([*types, *ins.types])] * results
    if len(types) == len(ins.values) + indexed:
        _check_types(reader, ins, types, start)
    elif len(types) != 1 and len(types) != len(ins.values):
        reader.note(
            "operand-count",
            f"{len(ins.values)} operands but {len(types)} types",
            reader.place(start),
            "write one type per operand, in the same order",
        )
    return [_first_tile(ins.types) if isinstance(t, ElidedType) else t for t in found]


def _first_tile(types: list[Type]) -> Type:
    return next((t for t in types if isinstance(t, BufferType)), ElidedType("<unknown>"))


def _check_types(reader: Reader, ins: Listed, types: list[Type], start: int) -> None:
    flat: list[Value] = []
    for value, indices in zip(ins.values, ins.indices, strict=True):
        flat += [value, *indices]
    for value, type_ in zip(flat, types, strict=True):
        if not same_type(value.type, type_):
            reader.note(
                "type-mismatch",
                f"%{value.name} is used with another type than it was defined with",
                reader.place(start),
                f"write {value.type}, not {type_}",
            )


def build(
    reader: Reader,
    head: Head,
    forms: list[Form],
    ins: Listed,
    outs: Listed,
    attrs: dict[str, Attribute],
    results: list[Type],
) -> Op:
    """Find the form that was meant and make the operation."""
    extra = [v for indices in ins.indices for v in indices]
    spread = [*ins.types, *(v.type for v in extra)]
    written: list[Type | None] = [*outs.types, *results]
    if ins.clauses:
        forms = [form.with_clauses(ins.clauses) for form in forms]
    if results:  # lines with results hide their temporaries, unless the page shows them
        forms = [*(f.without_scratch for f in forms if f.hides_scratch), *forms]
    before = [f.with_scratch_as_source for f in forms]
    form = (
        find_form(forms, ins.types, written, attrs)
        or find_form(before, ins.types, written, attrs)
        or find_form(forms, ins.types, list(outs.types), attrs)
        or find_form(before, ins.types, list(outs.types), attrs)
        or find_form([f.with_memory_as_operand for f in forms], ins.types, written, attrs)
        or find_form([f.as_before for f in forms], ins.types, written, attrs)
    )
    spread_form = None if form or not extra else find_form(forms, spread, written)
    if spread_form is not None:
        form = spread_form
    if form is None:
        raise _no_form(reader, head, forms, ins, outs, results)
    _check_clauses(reader, head, form, ins)
    operands, labels = _label(form, ins, extra, spread_form is None)
    operands += outs.values
    labels += [o.name for o in form.outs[: len(outs.values)]]
    names = [o.name for o in form.outs[len(outs.values) :]]
    values = reader.make_results(head, results)
    if not names and values:
        names = alias_labels(form, values)
    attrs = under_own_keys(reader, head, form.insn, _with_implied(head, form, attrs))
    _check_attrs(reader, head, form, attrs)
    insn = form.insn
    name = f"pto.{form.mnemonic}"
    return Op(
        name,
        operands,
        tuple(labels),
        values,
        tuple(names[: len(values)]),
        attrs,
        [],
        head.location,
        insn,
    )


def _check_clauses(reader: Reader, head: Head, form: Form, ins: Listed) -> None:
    """Operands that follow a word are those which the word stands for."""
    words = form.insn.asm.clauses if form.insn.asm else {}
    for place, word in ins.clauses.items():
        if words.get(form.ins[place].name) != word:
            known = " or ".join(words.values()) or "none"
            where = reader.place(ins.tokens[place] - 1)
            message = f"{head.name} has no clause {word} here; its clauses: {known}"
            reader.note("operand-count", message, where)


def _label(
    form: Form, ins: Listed, extra: list[Value], indexed: bool
) -> tuple[list[Value], list[str]]:
    """Label the operands; indices in brackets are operands of their own where the form has them."""
    names = [o.name for o in form.ins]
    if not indexed:
        return [*ins.values, *extra], names
    operands: list[Value] = []
    labels: list[str] = []
    for name, value, indices in zip(names, ins.values, ins.indices, strict=True):
        operands += [value, *indices]
        labels += [name, *(f"{name}.index" for _ in indices)]
    return operands, labels


def _no_form(
    reader: Reader,
    head: Head,
    forms: list[Form],
    ins: Listed,
    outs: Listed,
    results: list[Type],
) -> Exception:
    given = ", ".join(map(str, ins.types)) or "nothing"
    made = ", ".join(map(str, [*outs.types, *results])) or "nothing"
    listed = " or ".join(dict.fromkeys(str(form) for form in forms))
    return reader.fail(
        f"{head.name} does not take these operands: ins {given}; outs {made}",
        "operand-count",
        head.location,
        f"write {listed}",
    )


def _with_implied(head: Head, form: Form, attrs: dict[str, Attribute]) -> dict[str, Attribute]:
    """What an older name of an operation says by itself is written as an attribute."""
    insn, asm = form.insn, _asm(form)
    if not asm.absent or head.name.removeprefix("pto.") not in asm.aliases:
        return attrs
    types = declared_types(insn)
    said = {text_key(insn, a): a for a in insn.attrs if a.name in asm.absent}
    return {k: attribute_for(a, a.default, types[k]) for k, a in said.items()} | attrs


def under_own_keys(
    reader: Reader, head: Head, insn: Insn, attrs: dict[str, Attribute]
) -> dict[str, Attribute]:
    """The attributes under the keys that are printed, those under another key spelled anew."""
    others = other_keys(insn)
    if others.keys().isdisjoint(attrs):
        return attrs
    found = {key: value for key, value in attrs.items() if key not in others}
    for key in attrs.keys() & others.keys():
        own, value = others[key], attrs[key]
        attr = attr_keys(insn)[own]
        with suppress(ValueError):  # what is no value of it is said as of any other
            value = attribute_for(attr, template_value(attr, value), declared_types(insn)[own])
        if found.setdefault(own, value) != value:
            what = f"{head.name}: {key} is {own}, which is given with another value"
            reader.note("bad-attribute", what, head.location, f"leave {key} out")
    return found


def _check_attrs(reader: Reader, head: Head, form: Form, attrs: dict[str, Attribute]) -> None:
    known = attr_keys(form.insn)
    literals = literal_keys(form.insn)
    for key, value in attrs.items():
        attr = known.get(key)
        if key in literals:
            if not isinstance(value, IntAttr | FloatAttr | EnumAttr) or literals[key] in form.ins:
                what = f"{key} is a number, given once: as an attribute or as an operand"
                reader.note("bad-attribute", f"{head.name}: {what}", head.location)
            continue
        why = _asm(form).refused.get(key)
        if why and value != BoolAttr(False):
            what = f"{head.name} does not accept {key}: {why}"
            reader.note("bad-attribute", what, head.location, f"leave {key} out")
        # Any other key is somebody's own: it is kept and means nothing, unless it is a slip.
        if attr is None and (meant := suggestion(key, known, at_least=_SLIP)):
            reader.note(
                "bad-attribute", f"{head.name} has no attribute {key}", head.location, meant
            )


_SLIP = 0.8  # how alike two keys are of which one is a misspelling


# ---- printing ----------------------------------------------------------------------------------


def write_instruction(printer: Printer, op: Op) -> str:
    """Print what stands behind the name: destinations that are results make it Level 1."""
    if _is_ssa(op):
        return _write_ssa(printer, op)
    form = form_of(op)
    inside, word, behind = _split_attrs(op, form)
    text = _listed(printer, op, form, inside, word)
    outs = [v for v in (op.operand(o.name) for o in form.outs) if v is not None]
    if op.results:
        text += f" outs : {', '.join(str(r.type) for r in op.results)}"
    elif outs:
        names = ", ".join(printer.name(v) for v in outs)
        text += f" outs({names} : {', '.join(str(v.type) for v in outs)})"
    return f"{text} {dict_text(behind)}" if behind else text


def _is_ssa(op: Op) -> bool:
    """Whether an instruction belongs to Level 1: it makes tiles, or reads tiles that are values."""
    if op.results and RETURNED not in op.result_labels:
        return True
    types = [v.type for v in (*op.operands, *op.results)]
    return any(isinstance(t, BufferType) and t.is_value for t in types) or any(
        label.endswith(".index") for label in op.labels
    )


def _listed(printer: Printer, op: Op, form: Form, inside: str, word: str) -> str:
    ins = {o.name: v for o in form.ins if (v := op.operand(o.name)) is not None}
    if not ins:
        return f" ins({inside.strip(', ')})" if inside else ""
    asm = _asm(form)
    if asm.is_paired and not inside and not asm.clauses:
        return " ins(" + ", ".join(f"{printer.name(v)} : {v.type}" for v in ins.values()) + ")"
    said = [(clause, ins[name]) for name, clause in asm.clauses.items() if name in ins]
    behind = "".join(f" {clause} {printer.name(v)} : {v.type}" for clause, v in said)
    plain = [v for name, v in ins.items() if name not in asm.clauses]
    names = ", ".join(printer.name(v) for v in plain)
    left_out = f" {asm.missing}" if asm.missing and _lacks_scratch(op) else ""
    types = ", ".join(str(v.type) for v in plain)
    return f" ins({names}{left_out}{inside} : {types}{word}{behind})"


def _lacks_scratch(op: Op) -> bool:
    """Whether the operands are those of an overload, but for its temporaries."""
    insn = op.insn
    assert insn is not None
    given = {o.name for o in insn.operands if op.bound(o.name) is not None}
    scratch = {o.name for o in insn.operands if o.role == "tmp"}
    return any(set(names) - scratch == given for names in insn.forms if scratch & set(names))


def _split_attrs(op: Op, form: Form) -> tuple[str, str, dict[str, Attribute]]:
    """The dictionary inside `ins`, the word behind its types, and the attributes behind `outs`."""
    asm = form.insn.asm
    assert asm is not None
    if not asm.place:
        return "", "", op.attrs
    keys = attr_keys(form.insn)
    places = {
        key: asm.place.get(a.name, "outs")
        for key, a in keys.items()
        if a.name not in asm.beside or op.bound(asm.beside[a.name]) is not None
    }
    is_whole = "ins" in places.values()
    inner = {k: v for k, v in op.attrs.items() if is_whole or places.get(k, "outs") != "outs"}
    outer = {k: v for k, v in op.attrs.items() if k not in inner}
    if not inner:
        return "", "", outer
    word = ""
    if not is_whole and any(places[k].endswith(",") for k in inner):
        for key, attr in keys.items():
            if attr.name in asm.words:
                word = f', "{asm.words[attr.name][template_value(attr, outer.pop(key, None))]}"'
        return f", {dict_text(inner)}", word, outer
    return f" {dict_text(inner)}", word, outer


def _write_ssa(printer: Printer, op: Op) -> str:
    names: list[str] = []
    for value, label in zip(op.operands, op.labels, strict=True):
        if label.endswith(".index"):
            names[-1] = names[-1].removesuffix("]")
            names[-1] += (", " if "[" in names[-1] else "[") + printer.name(value) + "]"
        else:
            names.append(printer.name(value))
    attrs = f" {dict_text(op.attrs)}" if op.attrs else ""
    listed = f" {', '.join(names)}" if names else ""
    return f"{listed}{attrs} : {write_signature(op, 'l1')}"


def write_signature(op: Op, form: str) -> str:
    """The types behind the colon, in the spelling the pages have for the form."""
    inputs = tuple(v.type for v in op.operands)
    results = tuple(v.type for v in op.results)
    if op.insn is not None and op.insn.asm is not None and form in op.insn.asm.plain:
        return ", ".join(map(str, inputs + results))
    if op.results and (len(inputs) == 1 or op.result_labels[0] in op.labels):
        # One operand needs no parentheses; a new handle to an operand shows only that operand.
        return f"{inputs[0]} -> {', '.join(map(str, results))}"
    return str(FunctionType(inputs, results))


__all__ = [
    "forms_of",
    "read_instruction",
    "read_signature",
    "read_ssa",
    "write_instruction",
    "write_signature",
]
