"""The vocabulary in which an instruction is defined.

One decorated function per instruction says everything about it, in whatever file it stands:
operands and their roles, element types per target, legality rules, pipe, text form, documentation
(the docstring) and meaning: a function of single elements where that says it all (`means`), else a
body of array code over logical views. `insn` checks the block and stores a frozen record in
`INSTRUCTIONS`; API, verifier, engines, text and documentation are folds over that table.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import IntEnum
from types import MappingProxyType
from typing import Any

from ptokit.base.dtypes import DType, dtype
from ptokit.isa.costs import Cost, by_sources, class_of
from ptokit.isa.devices import TARGETS
from ptokit.isa.effects import Effects, InAuto, Pipe, Steps
from ptokit.isa.facts import Ops
from ptokit.isa.freedom import Freedom, Freedoms, freedoms, unspecified
from ptokit.isa.idioms import Find
from ptokit.isa.meaning import Form, Meaning
from ptokit.isa.origins import Origin
from ptokit.isa.record import (
    DERIVED,
    NUMBERS,
    PLAIN_CALL,
    Asm,
    Attr,
    Cpp,
    Insn,
    Operand,
    PipeOf,
    Rule,
    Types,
)
from ptokit.isa.regions import Extent as Extent  # whoever defines an instruction looks here
from ptokit.isa.regions import Parts as Parts
from ptokit.isa.regions import Region, View
from ptokit.isa.scalars import EVENT, PIPE, Takes
from ptokit.isa.services import SERVICES
from ptokit.isa.table import Table
from ptokit.isa.words import enumerations_of, words

INSTRUCTIONS: Table[Insn] = Table("ptokit.isa", words)


def insn(
    *operands: Operand,
    name: str | None = None,
    pipe: PipeOf = Pipe.V,
    attrs: Iterable[Attr] = (),
    types: Types | Iterable[Types] = (),
    targets: str | None = None,
    rules: Iterable[Rule | Iterable[Rule]] = (),
    forms: Iterable[str] = (),
    asm: Asm | None = DERIVED,
    cpp: Cpp = PLAIN_CALL,
    cost: Cost | None = None,
    sets: str = "",
    uses: str = "",
    uses_when: Callable[[Ops], bool] | None = None,
    ops: Mapping[str, Pipe] | None = None,
    example: Mapping[str, str] | None = None,
    setup: str = "",
    more_examples: str | Iterable[Mapping[str, str]] = (),
    pointwise: Callable[[Ops], bool] | None = None,
    idiom: Find | None = None,
    freedom: Freedoms = (),
    means: Form | None = None,
    returns: str = "",
    overload_of: str = "",
    when: Mapping[str, Mapping[str, Any]] | None = None,
    helpers: Mapping[str, Callable[..., Any]] | None = None,
    doc: str = "",
    effects: Effects | None = None,
    in_auto: InAuto = InAuto.RUNS,
    binds: str = "",
    renames: str = "",
    streams: bool = False,
    end: str = "",
    steps: Iterable[Steps] = (),
    is_listed: bool = True,
) -> Callable[[Callable[..., Any]], Insn]:
    """Define an instruction. The function's name is the instruction's, its docstring the docs.

    Instructions that share a body give `name` and `doc` themselves.

    `forms` lists the operand lists of overloads ("dst src", "dst src tmp"); by default every
    optional operand may be left off, from the end. `ops` names the instruction's entries in the
    event table when they differ from its own name. `example` overrides the operand types of the
    sample that tests and documentation build ("dst": "Acc f32 16x16 NZ/1024"); `more_examples`
    are samples of other data paths, tests only, on the targets their entry "on" names; a text is
    read as a table (`examples`). Overloads
    that share a name but not the roles of their operands are records of their own: `overload_of`
    says under which name they are called, the template arguments tell them apart (see
    `Attr.choices`). `when` names the template arguments that only some forms of one record take.
    `cpp` says how C++ writes the call where that does not follow from the rest. `sets` and `uses`
    list configuration registers: one may not be set while an instruction that uses it is under way;
    `uses_when` says which operands make a difference.
    With `means` the function is one of single elements (meaning.py), of which the body is made.
    `helpers` are functions users reach through the instruction, such as `TTRANS.tmp_bytes(dst,
    src)`. `effects`, `binds`, `streams` and `steps` say how it takes part in the order of work
    (effects.py); what only orders has no body beside them. Rules of the language of texts stand
    among the others (language.py). What is not listed is in no table: a step that only the machine
    executes.
    """

    def define(body: Callable[..., Any]) -> Insn:
        full = name or body.__name__
        kinds = (types,) if isinstance(types, Types) else tuple(types)
        names = tuple(o.name for o in operands)
        orders, fifo = effects is not None, any("fifo" in o.kinds for o in operands)
        meaning, given = None, operands
        every = tuple(flat(rules))
        stated = tuple(each for each in every if not each.is_of_texts)
        if means is None:
            asked = _parameters(body, operands)
        else:
            asked = [*names, *means.services]
            roles = {o.name: o.role for o in operands}
            meaning = Meaning(full, means, body, roles, [a.name for a in attrs])
            given = tuple(_governed(o, means, roles) for o in operands)
        record = Insn(
            name=full,
            operands=given,
            attrs=tuple(attrs),
            pipe=pipe,
            types=kinds,
            targets=_available(kinds, targets),
            rules=stated,
            forms=tuple(tuple(f.split()) for f in forms) or _default_forms(operands),
            asm=asm,
            cpp=cpp,
            cost=cost
            or (
                class_of(pipe, orders, fifo)
                if means is None
                else by_sources(means.cost, [o.kinds for o in operands if o.role == "in"])
            ),
            sets=frozenset(sets.split()),
            uses=frozenset(uses.split()),
            uses_when=uses_when,
            ops=MappingProxyType(dict(ops or {})),
            example=MappingProxyType(dict(example or {})),
            setup=setup,
            more_examples=tuple(MappingProxyType(dict(each)) for each in _more(more_examples)),
            body=body,
            doc=inspect.cleandoc(doc or body.__doc__ or ""),
            pointwise=pointwise,
            idiom=idiom,
            freedom=(*freedoms(freedom), *_unknown(stated)),
            means=meaning,
            returns=returns,
            overload_of=overload_of,
            when=MappingProxyType({tuple(f.split()): dict(a) for f, a in (when or {}).items()}),
            body_parameters=frozenset(asked),
            helpers=MappingProxyType(dict(helpers or {})),
            effects=effects,
            in_auto=in_auto,
            binds=binds,
            renames=renames,
            streams=streams or (means is not None and means.streams),
            end=end,
            steps=tuple(steps),
            text_rules=tuple(_text_rules(every)),
        )
        _check(record)
        if is_listed:
            INSTRUCTIONS.define(record)
        return record

    return define


def family(
    block: Callable[..., Callable[[Callable[..., Any]], Insn]],
    doc: str,
    **members: Callable[..., Any] | tuple[Callable[..., Any], Mapping[str, Any]],
) -> tuple[Insn, ...]:
    """Define instructions that differ by a function, a few words and perhaps some of their block.

    `block` is `insn` with all that they share; what a member has of its own stands beside its
    function, its operands under "operands". In `doc` "[larger|smaller]" is a word of the first
    and of the second, {name} the name of each.
    """
    found: list[Insn] = []
    for place, (name, member) in enumerate(members.items()):
        function, given = member if isinstance(member, tuple) else (member, {})
        more = dict(given)
        own = more.pop("operands", ())

        def word(match: re.Match[str], place: int = place) -> str:
            return match[1].split("|")[place]

        text = re.sub(r"\[([^][]*\|[^][]*)\]", word, doc).replace("{name}", name)
        found.append(block(*own, name=name, doc=text, **more)(function))
    return tuple(found)


def _text_rules(rules: Iterable[Rule]) -> Iterator[Rule]:
    """The rules that the verifier of texts states, as it states them."""
    for each in rules:
        if each.typed is not None:
            static = Origin("static")
            yield replace(each, holds=each.typed, origin=static, otherwise="", voids=False)


def enumerations() -> dict[str, type[IntEnum]]:
    """The enumerations of all template arguments by name, wherever they are declared."""
    found = (kind for insn in INSTRUCTIONS.values() for kind in enumerations_of(insn))
    return {kind.__name__: kind for kind in found}


def _governed(operand: Operand, form: Form, roles: Mapping[str, str]) -> Operand:
    """An operand that names no region of its own, with the one that the form gives it."""
    region = form.region(operand.name, roles) if operand.view is View.VALID else None
    return operand if region is None else replace(operand, view=region)


def _parameters(body: Callable[..., Any], operands: tuple[Operand, ...]) -> list[str]:
    """What a body asks for; a star stands for the operands that it does not name."""
    code = body.__code__  # a signature object takes ten times as long, at every import
    names, plain = code.co_varnames, code.co_argcount
    found = list(names[:plain])
    if code.co_flags & inspect.CO_VARARGS:
        found += [o.name for o in operands if o.name not in found]
    return found + list(names[plain : plain + code.co_kwonlyargcount])


def _available(types: tuple[Types, ...], targets: str | None) -> frozenset[str]:
    if targets is not None:
        # Named nowhere: not even the permissive profile, which knows what some device knows.
        return frozenset(targets.split()) | {"cpu"} if targets else frozenset()
    if types:
        return frozenset.intersection(*(frozenset(t.allowed) for t in types)) | {"cpu"}
    return frozenset(TARGETS) | {"cpu"}


def _default_forms(operands: tuple[Operand, ...]) -> tuple[tuple[str, ...], ...]:
    needed = [o.name for o in operands if not o.optional]
    extra = [o.name for o in operands if o.optional]
    chosen = [set(needed + extra[:n]) for n in range(len(extra) + 1)]
    return tuple(tuple(o.name for o in operands if o.name in names) for names in chosen)


def _more(given: str | Iterable[Mapping[str, str]]) -> Iterable[Mapping[str, str]]:
    return examples(given) if isinstance(given, str) else given


def examples(table: str) -> list[dict[str, str]]:
    """Samples as a table: a heading of names divided by `|`, a line per sample, empty: left out.

    A blank line ends a table; another one, with other names, may follow. Under "on", `kirin` stands
    for both Kirin targets.
    """
    found: list[dict[str, str]] = []
    for block in re.split(r"\n\s*\n", table.strip()):
        head, *rows = ([cell.strip() for cell in line.split("|")] for line in block.splitlines())
        found += ({k: v for k, v in zip(head, row, strict=True) if v} for row in rows)
    for each in found:
        if "on" in each:
            each["on"] = re.sub(r"\bkirin\b", "kirin9030 kirinx90", each["on"])
    return found


def flat(rules: Iterable[Rule | Iterable[Rule]]) -> Iterable[Rule]:
    """The rules of a list in which groups of them may stand for single ones."""
    for item in rules:
        if isinstance(item, Rule):
            yield item
        else:
            yield from item


def _unknown(rules: Iterable[Rule]) -> Iterable[Freedom]:
    """What rules say that nobody knows, under the names of those that say the same."""
    said: dict[str, list[str]] = {}
    for each in rules:
        if each.unknown:
            said.setdefault(each.unknown, []).append(each.id)
    for text, ids in said.items():
        yield unspecified(", ".join(dict.fromkeys(ids)), f"{text[0].upper()}{text[1:]}.")


def _check(record: Insn) -> None:
    """Refuse a block that contradicts itself; this runs once, at import."""
    where = f"{record.body.__module__}: {record.name}"
    declared = [o.name for o in record.operands]
    expected = declared + [a.name for a in record.attrs]
    body, operands = record.body, record.operands
    asked = _parameters(body, operands) if record.means is None else record.means.parameters
    parameters = [p for p in asked if p not in SERVICES or p in expected]
    assert record.doc, f"{where} has no docstring"
    if record.means is not None:
        expected += record.means.form.steps
    else:
        assert parameters[: len(declared)] == declared, f"{where}: body takes {parameters}"
    assert set(parameters) <= set(expected), f"{where}: unknown parameters in {parameters}"
    for each in operands:
        takes_numbers = not NUMBERS.isdisjoint(each.kinds)
        assert takes_numbers == (each.takes is not None), f"{where}: which numbers is {each.name}?"
        assert each.takes is None or each.takes.of in {*declared, ""}, f"{where}: {each.takes}"
    for form in record.forms:
        assert set(form) <= set(declared), f"{where}: form {form} names an unknown operand"
    for group in record.types:
        assert set(group.of) <= set(declared), f"{where}: types of unknown operands {group.of}"
    assert {record.binds, record.renames} <= {*declared, ""}, f"{where} binds an unknown operand"
    unknown = _words(record.cpp) - set(expected)
    assert not unknown, f"{where}: the C++ call names unknown {sorted(unknown)}"


def _words(cpp: Cpp) -> set[str]:
    """The operands and template arguments that a C++ call names."""
    inside = {w.lstrip("@").partition(".")[0] for p in cpp.brackets or () for w in p.split()}
    pairs = {word for pair in (cpp.asks_for, cpp.implied) for item in pair.items() for word in item}
    numbers = {name for names in cpp.arrays.values() for name in names}
    return (inside | cpp.pointers | pairs | numbers | {*cpp.casts, cpp.first}) - {""}


# ---- short words for the definitions -----------------------------------------------------------


def out(name: str = "dst", *, view: Region = View.VALID, **more: Any) -> Operand:
    """A tile that is written."""
    return Operand(name, "out", view=view, **more)


def src(name: str = "src", *, view: Region = View.VALID, **more: Any) -> Operand:
    """A tile that is read."""
    return Operand(name, "in", view=view, **more)


def inout(name: str, *, view: Region = View.VALID, **more: Any) -> Operand:
    """A tile that is read and written."""
    return Operand(name, "inout", view=view, **more)


def tmp(name: str = "tmp", *, view: Region = View.WHOLE, **more: Any) -> Operand:
    """A scratch tile: its contents are lost."""
    return Operand(name, "tmp", view=view, **more)


def scalar(name: str, takes: Takes, **more: Any) -> Operand:
    """A number: data for the elements it meets, or an index, as it is declared (scalars.py)."""
    return Operand(name, "in", kinds=("scalar",), takes=takes, **more)


_NUMBERS = {"pipe": PIPE, "event": EVENT}


def number(name: str, kind: Takes | str, **more: Any) -> Operand:
    """An integer that is not data: a count, an id, a "pipe" or an "event" number."""
    kinds, takes = (kind, _NUMBERS[kind]) if isinstance(kind, str) else ("number", kind)
    return Operand(name, "in", kinds=(kinds,), view=View.OBJECT, takes=takes, **more)


def gm_in(name: str = "src", **more: Any) -> Operand:
    """A GlobalTensor that is read."""
    return Operand(name, "in", kinds=("global",), **more)


def gm_out(name: str = "dst", **more: Any) -> Operand:
    """A GlobalTensor that is written."""
    return Operand(name, "out", kinds=("global",), **more)


def thing(name: str, role: str = "inout", *, kind: str, **more: Any) -> Operand:
    """An operand that is not data: a TPipe, a group of ranks, a session (`operand_kind`)."""
    return Operand(name, role, kinds=(kind,), view=View.OBJECT, **more)


def types(
    of: str = "dst",
    *,
    ids: Mapping[str, str] | str = "",
    kirin: str | None = None,
    otherwise: str | Callable[[Any], str] = "",
    **per_target: str,
) -> Types:
    """Element types per target: `types("dst", a2a3="i16 f32", a5=..., kirin=...)`.

    Several operands are listed together, combinations with commas:
    `types("c a b", a2a3="i32,i8,i8 f32,f16,f16")`. `kirin` stands for both Kirin targets; `ids`
    gives the assertion id, one for all targets or one per target; an empty id leaves the
    combinations of that target to rules that report them under ids of their own. `otherwise` says
    what happens with other types, as that of a rule does.
    """
    if kirin is not None:
        per_target = {"kirin9030": kirin, "kirinx90": kirin} | per_target
    names = tuple(of.split())
    allowed: dict[str, frozenset[tuple[DType, ...]]] = {}
    for target, listed in per_target.items():
        combos = (tuple(dtype(one) for one in combo.split(",")) for combo in listed.split())
        allowed[target] = frozenset(combos)
        assert all(len(c) == len(names) for c in allowed[target]), (of, listed)
    chosen = dict.fromkeys(per_target, ids) if isinstance(ids, str) and ids else dict(ids or {})
    return Types(names, MappingProxyType(allowed), MappingProxyType(chosen), otherwise)


def rule(
    id: str,
    text: str,
    holds: Callable[[Any], bool],
    on: str | None = None,
    fix: str | Callable[[Any], str] = "",
    otherwise: str | Callable[[Any], str] = "",
    *,
    voids: bool = False,
    unknown: str = "",
    in_text: Callable[[Any], bool] | None = None,
) -> Rule:
    """A legality rule; `on` lists the targets it holds on ("a2a3 a5"), None means all of them.

    `fix` says how to mend the program; numbers that follow from the predicate are added by
    themselves (remedies.py), others it can work out as a function of the operands.
    `id` is the assertion id, or a short name of our own in lower case with hyphens.
    `otherwise` says what happens where the rule is broken: the body then does it, and what follows
    from the rule's origin decides whether that is a warning (base/policy.py). A function of the
    operands gives "" for those whose outcome is not known. `voids`: what the instruction writes is
    then undefined. `unknown` says why nothing can be said, which makes it an error. `in_text`: what
    a text must keep where the rule is about sizes that C++ knows when it is compiled.
    """
    targets = None if on is None else frozenset(on.split())
    return Rule(
        id,
        text,
        holds,
        targets,
        fix,
        otherwise=otherwise,
        voids=voids,
        unknown=unknown,
        in_text=in_text,
    )
