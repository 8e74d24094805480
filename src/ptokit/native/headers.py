"""The header that kernels include: `<pto/pto-inst.hpp>`, and every path that forwards to it.

What the instruction table knows - names, codes, enumerations, element types, parameters - is
written from it; tiles, views, events and the seam are C++ of our own (native/include).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cache
from importlib import resources
from pathlib import Path

from ptokit.base import comm_enums, dtypes, enums
from ptokit.base.convs import CONV_PARAMETERS, ConvParameter
from ptokit.base.dtypes import DType
from ptokit.base.enums import Choice, Direction, QuantMode_t
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.effects import Pipe
from ptokit.isa.opcodes import OpCode, op_codes
from ptokit.isa.spec import Attr, Insn, enumerations
from ptokit.native import scopes

_OWN = "ptokit.native"
FIRST = "pto/pto-inst.hpp"
_GUARD = "#pragma once\n"
# Numbers, not an enumeration: kernels keep them in small integers.
_PLAIN = (Direction,)
# Known to the device's compiler without a namespace, and kept in integers as well.
_UNSCOPED = (QuantMode_t,)
# Members that have another name in C++, or a second one.
_RENAMED = {"None_": "None"}
_ALSO = {"AccPhase": {"Unknown": 0}, "ScatterAtomicOp": {"NONE": 0}}


@cache
def elements() -> tuple[DType, ...]:
    """Element types; a record names one by its place here, counted from 1."""
    return tuple(dtypes.ALL)


@cache
def enumeration_types() -> tuple[type[IntEnum], ...]:
    """Enumerations of the language; a record names one by its place here, counted from 1."""
    found: dict[str, type[IntEnum]] = {"Pipe": Pipe}
    for module in (enums, comm_enums):
        for name, kind in vars(module).items():
            if isinstance(kind, type) and issubclass(kind, Choice) and len(kind):
                found[name] = kind
    return tuple({**found, **dict(sorted(enumerations().items()))}.values())


@cache
def instructions() -> tuple[Insn, ...]:
    """The records; a call names one by its place here."""
    return tuple(INSTRUCTIONS.values())


@cache
def operation_classes() -> tuple[OpCode, ...]:
    """What events speak of, by number."""
    return tuple(op_codes().values())


def asks(insn: Insn) -> bool:
    """Whether a call changes what C++ knows: it is carried out before the kernel goes on."""
    changes = insn.binds or insn.returns or _kinds(insn) - _GIVEN
    return bool(changes) and not _is_by_hand(insn)


def _is_by_hand(insn: Insn) -> bool:
    """Whether kernel.hpp has it: it gives an object of C++ an address, or an element back, or is
    said which instructions it is about."""
    places = bool(insn.binds) and _kinds(insn) >= {"tile", "global"}
    elements = any(insn.returns == each.name for each in insn.operands)
    return places or elements or any(each.type is OpCode for each in insn.attrs)


# What a call comes to in C++, by what its record returns.
_RESULTS = {
    "": "::pto::RecordEvent",
    "i1": "bool",
    "async_event": "::pto::comm::AsyncEvent",
}
_GIVEN = frozenset(["tile", "global", "conv", "scalar", "number", "pointer", "pipe", "event"])


def _enumerations() -> Iterator[str]:
    for number, kind in enumerate(enumeration_types(), 1):
        if kind is Pipe:
            members = ", ".join(f"PIPE_{each.name} = {int(each)}" for each in kind)
            yield f"enum pipe_t {{ {members} }};"
            yield _numbered("pipe_t", number)
            continue
        first = next(iter(kind))
        space = "pto" + (
            f"::{first.namespace.rstrip(':')}"
            if isinstance(first, Choice) and first.namespace
            else ""
        )
        values = {_RENAMED.get(m.name, m.name): int(m) for m in kind}
        values.update(_ALSO.get(kind.__name__, {}))
        members = ", ".join(f"{name} = {value}" for name, value in values.items())
        if kind in _PLAIN:
            inside = f"static constexpr uint8_t {members};"
            yield f"namespace {space} {{ struct {kind.__name__} {{ {inside} }}; }}"
            continue
        if kind in _UNSCOPED:
            yield f"enum {kind.__name__} : int32_t {{ {members} }};"
            yield f"namespace {space} {{ using ::{kind.__name__}; }}"
            yield _numbered(kind.__name__, number)
            continue
        wide = "int64_t" if max(values.values()) >> 31 else "int32_t"
        yield f"namespace {space} {{ enum class {kind.__name__} : {wide} {{ {members} }}; }}"
        yield _numbered(f"{space}::{kind.__name__}", number)
    named = ", ".join(f"{each.name} = {n}" for n, each in enumerate(operation_classes()))
    yield f"namespace pto {{ enum class Op : int32_t {{ {named} }}; }}"


def _numbered(name: str, number: int) -> str:
    return (
        f"template <> struct ptokit::Enumeration<{name}> "
        f"{{ static constexpr int64_t number = {number}; }};"
    )


def _enums_header() -> str:
    cases = "\n".join(
        f"    else if constexpr (std::is_same_v<U, {_cpp_type(each)}>) return {number};"
        for number, each in enumerate(elements(), 1)
    )
    return f"""{_GUARD}#include "types.hpp"
namespace ptokit {{
template <typename E> struct Enumeration {{ static constexpr int64_t number = 0; }};
template <typename T> constexpr int64_t element()
{{
    using U = std::remove_cv_t<T>;
    if constexpr (std::is_same_v<U, void>) return 0;
{cases}
    else return 0;
}}
}}
{chr(10).join(_enumerations())}
#define PTOKIT_CONV_PARAMETERS {" ".join(_conv_parameters())}
"""


def _cpp_type(element: DType) -> str:
    return element.cpp


def _conv_parameters() -> Iterator[str]:
    puts: list[str] = []
    for each in CONV_PARAMETERS.values():
        yield from _accessors(each)
        if each.entries:
            puts.append(f"for (auto each : {each.name}_) r.put((int64_t)each);")
        elif each.kind == "num":
            puts.append(f"r.real((double)(float){each.name}_);")
        else:
            puts.append(f"r.put((int64_t){each.name}_);")
    yield f"void parameters(ptokit::Record& r) const {{ {' '.join(puts)} }}"


def _accessors(each: ConvParameter) -> Iterator[str]:
    name, field = each.accessor.removesuffix("Array"), f"{each.name}_"
    if each.entries:
        kind = f"uint{each.bits}_t"
        yield f"{kind} {field}[{len(each.entries)}] = {{}};"
        yield f"{kind} Get{name}(uint8_t at) const {{ return {field}[at]; }}"
        yield f"void Set{name}(uint8_t at, {kind} value) {{ {field}[at] = value; }}"
        yield f"const {kind}* Get{name}Array() const {{ return {field}; }}"
        yield (
            f"void Set{name}Array(const {kind}* all) "
            f"{{ for (int i = 0; i < {len(each.entries)}; i++) {field}[i] = all[i]; }}"
        )
        return
    kind = "DType" if each.kind == "num" else "bool" if each.kind == "i1" else _holding(each.bits)
    initial = "{}" if kind == "DType" else f" = {str(each.initial).lower()}"
    yield f"{kind} {field}{initial};"
    yield f"{kind} Get{name}() const {{ return {field}; }}"
    yield f"void Set{name}({kind} value) {{ {field} = value; }}"


def _holding(bits: int) -> str:
    return f"uint{next(n for n in (8, 16, 32, 64) if n >= bits)}_t"


def _instructions_header() -> str:
    codes = "\n".join(
        f"constexpr int64_t CODE_{_own_name(each)} = {number};"
        for number, each in enumerate(instructions())
    )
    spaces: dict[str, list[str]] = {}
    for number, each in enumerate(instructions()):
        if each.overload_of or _is_by_hand(each) or each.cpp.method or each.cpp.calls:
            continue
        space, _, name = each.name.rpartition(".")
        takes_values = any(not a.argument for a in _family(each)) or "fifo" in _kinds(each)
        macro = "PTOKIT_INSN_T" if takes_values else "PTOKIT_INSN"
        words = name, number, str(asks(each)).lower(), _RESULTS[each.returns]
        spaces.setdefault(space, []).append(f"{macro}({', '.join(map(str, words))})")
    written = "\n".join(
        f"namespace pto{'::' + space if space else ''} {{\n" + "\n".join(lines) + "\n}"
        for space, lines in spaces.items()
    )
    # Those that are no tile instructions are called without a namespace as well.
    plain = " ".join(
        f"using pto::{each.name};"
        for each in instructions()
        if each.name[0].islower()
        and "." not in each.name
        and not each.cpp.calls
        and not (each.overload_of or _is_by_hand(each))
    )
    # The functions that instructions are made of, which some kernels call themselves.
    inner = "\n".join(
        f"#define {each.name}_IMPL {each.name}"
        for each in instructions()
        if each.name.isupper() and not each.overload_of
    )
    return f"""{_GUARD}#include "call.hpp"
namespace ptokit {{
{codes}
}}
{written}
{plain}
{inner}
"""


def _micro_header() -> str:
    return f"""{_GUARD}#include "scopes.hpp"
{scopes.header()}
namespace pto {{
template <typename T, typename N> MaskReg CreatePredicate(N& n)
{{
    if constexpr (sizeof(T) == 1) return plt_b8(n, POST_UPDATE);
    else if constexpr (sizeof(T) == 2) return plt_b16(n, POST_UPDATE);
    else return plt_b32(n, POST_UPDATE);
}}
}}
"""


def _own_name(insn: Insn) -> str:
    return insn.name.replace(".", "_")


def _kinds(insn: Insn) -> set[str]:
    return {kind for operand in insn.operands for kind in operand.kinds}


def _family(insn: Insn) -> Iterator[Attr]:
    """The template parameters of an instruction and of those called by its name."""
    for each in instructions():
        if each is insn or each.overload_of == insn.name:
            yield from each.attrs


ENTRY_FILE = "ptokit-entry"  # what the functions that enter a kernel are said to be written in


def is_ours(file: str) -> bool:
    """Whether a line is of the header, or of what was put around a source."""
    return file == ENTRY_FILE or f"/include-{digest()}/" in file


WORKSPACES = "pto/comm/async/sdma/sdma_workspace_manager.hpp"  # for hosts, with their API
MAIN = f"""{_GUARD}#include <ptokit/kernel.hpp>
#include <ptokit/custom.hpp>
"""


@cache
def files() -> Mapping[str, str]:
    """All files of the include folder."""
    found = {FIRST: MAIN}
    found[WORKSPACES] = f"{_GUARD}#include <ptokit/workspaces.hpp>\n"
    found["kernel_operator.h"] = f"{_GUARD}#include <{FIRST}>\n"
    folder = resources.files(_OWN).joinpath("include")
    for part in ("ptokit", "acl", "runtime", "gtest"):
        for each in folder.joinpath(part).iterdir():
            found[f"{part}/{each.name}"] = each.read_text("utf-8")
    found["securec.h"] = folder.joinpath("securec.h").read_text("utf-8")
    found["ptokit/enums.hpp"] = _enums_header()
    found["ptokit/instructions.hpp"] = _instructions_header()
    found["ptokit/micro.hpp"] = _micro_header()
    return found


@cache
def digest() -> str:
    """What compiled code depends on, of the header."""
    found = hashlib.sha256()
    for name, text in sorted(files().items()):
        found.update(f"{name}\0{text}\0".encode())
    return found.hexdigest()[:16]


def written(folder: Path) -> Path:
    """The include folder, written below `folder` unless it is there."""
    include = folder / f"include-{digest()}"
    if not include.exists():
        fresh = include.with_name(f"{include.name}.{id(folder):x}")
        for name, text in files().items():
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        try:
            fresh.rename(include)
        except OSError:  # somebody else was faster
            assert include.exists()
    return include
