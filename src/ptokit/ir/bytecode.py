"""Bytecode of the public assembler (`.ptobc`, version 0), as the generic form of the same program.

A file is a header - magic, version, flags, length - and sections: strings, types, attributes,
constants, the module, and what helps debuggers. Types and attributes are texts already, so what
remains is a list of operations whose operands are numbers. They become lines of generic form, each
with the place of its bytes past it: from there on a program in bytecode is a program in text.

What a file says is not believed: a count beyond the bytes that are left, a number that names
nothing and a text of several lines are errors, with the offset of the byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from typing import TypeVar

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.location import Location
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.patterns import regex
from ptokit.ir.attributes import enumeration
from ptokit.ir.limits import MAGIC

_VERSION = 0
_HEADER = 14
_SECTIONS = {1: "strings", 2: "types", 3: "attributes", 4: "constants", 6: "module"}
_DEBUG, _EXTRA = 7, 0x7F
_GENERIC = 0xFFFF  # an operation with its name, because it has no number
_DEEPEST = 64  # regions in regions

# The operations by number, each number one more than the one before it, as NAME=OPERANDS and what
# follows: `>n` results and `^n` regions. Operands are counted in the file where a star stands, told
# by the variant (v), two lists behind the first (1+), or a mask (?). A mark says what else is
# there: !p a predicate, !e two classes of operations and an event, !c a constant.
_TABLE = """
0000: get_block_idx=0>1 get_block_num=0>1 get_subblock_idx=0>1 get_subblock_num=0>1
  make_tensor_view=1+>1 partition_view=1+>1 section=0^1
1000: addptr=2>1 alloc_tile=?>1 barrier=0 mgather=3 mscatter=3 record_event=0!e tabs=2 tadd=3
  taddc=4 tadds=3 taddsc=4 tand=3 tands=3 tci=2 tcmp=3 tcmps=3 tcolexpand=2 tcolexpandadd=3
  tcolexpanddiv=3 tcolexpandexpdif=3 tcolexpandmax=3 tcolexpandmin=3 tcolexpandmul=3
  tcolexpandsub=3 tcolmax=2 tcolmin=2 tcolprod=2 tcolsum=3 tcvt=2 tdiv=3 tdivs=3 texp=2
  texpands=2 textract=4 textract=5 tfillpad=2 tfillpad=2 tfillpad=2 tfmod=3 tfmods=3 tgather=*
  tgatherb=3 tgemv=v tgetval=2>1 timg2col=2 tinsert=4 tinsert=5 tload=2 tlog=2 tlrelu=3
  tmatmul=v tmatmul.mx=v tmax=3 tmaxs=3 tmin=3 tmins=3 tmov=2 tmov=3 tmrgsort=* tmul=3 tmuls=3
  tneg=2 tnot=2 tor=3 tors=3 tpartadd=3 tpartmax=3 tpartmin=3 tpartmul=3 tprefetch=2 tprelu=4
  tquant=* trecip=2 trelu=2 trem=4 trems=4 treshape=1>1 trowexpand=2 trowexpandadd=3
  trowexpandexpdif=* trowexpandmax=* trowexpandmin=* trowmax=3 trowmin=3 trowsum=3 trsqrt=*
  tscatter=3 tsel=5 tsels=5 tset_img2col_padding=1 tset_img2col_rpt=1 tsetfmatrix=1
  tsethf32mode=2 tsettf32mode=2 tsetval=3 tshl=3 tshls=3 tshr=3 tshrs=3 tsort32=* tsqrt=2
  tstore=* tstore=3 tsub=3 tsubc=4 tsubs=3 tsubsc=4 trowexpandsub=* ttrans=3 ttri=2 txor=4
  txors=4 wait_event=0!e tprint=1 subview=*>1 trowexpanddiv=* trowexpandmul=* tdequant=4 taxpy=3
  thistogram=3 tget_scale_addr=2 trowargmax=3 trowargmin=3 tcolargmax=3 tcolargmin=3 tsync=*
  reserve_buffer=0>1 import_reserved_buffer=0>1 aic_initialize_pipe=* aiv_initialize_pipe=*
  tpush_to_aiv=1 tpush_to_aic=1 tpop_from_aic=*>1 tpop_from_aiv=*>1 tfree_from_aic=0
  tfree_from_aiv=0 set_validshape=3 tconcat=3 trowprod=3 initialize_l2g2l_pipe=*>1
  initialize_l2l_pipe=*>1 tpush=2 declare_tile=0>1 tpop=2 tfree=1 comm.tput=* comm.tget=*
  comm.tnotify=* comm.twait=* comm.ttest=*>1 comm.tbroadcast=* comm.tgather=* comm.tscatter=*
  comm.treduce=* tpartargmax=6 tpartargmin=6 tscatter.maskpattern=2 fusion_region=0>*^1 yield=*
2000: arith.addi=2>1 arith.ceildivsi=2>1 arith.cmpi=2>1!p arith.constant=0>1!c
  arith.index_cast=1>1 arith.minui=2>1 arith.muli=2>1 arith.select=3>1 arith.subi=2>1
4000: scf.for=3^1 scf.if=1^2 scf.yield=*
6000: func.func=0 func.return=* func.call=*>*
"""
_VARIANTS = {
    0x0006: {"section.cube": 0, "section.vector": 0},
    0x102A: {
        "tgemv": 3,
        "tgemv.acc": 4,
        "tgemv.bias": 4,
        "tgemv.mx": 5,
        "tgemv.mx.acc": 6,
        "tgemv.mx.bias": 6,
    },
    0x1032: {"tmatmul": 3, "tmatmul.acc": 4, "tmatmul.bias": 4},
    0x1033: {"tmatmul.mx": 5, "tmatmul.mx.acc": 6, "tmatmul.mx.bias": 6},
}
# Operands that the file has in an older order: places of today's operands in it.
_ORDERS = {
    0x1022: (0, 2, 3, 4, 1),
    0x102E: (0, 2, 3, 4, 1),
    0x1039: (0, 2, 1),
    0x1056: (0, 2, 1),
    0x1066: (0, 2, 1),
}
_RENAMED = {"pto.tscatter.maskpattern": "pto.tscatter"}
_MASK = (4, 1, 2)  # bits of alloc_tile: an address, valid rows, valid columns
_PREDICATES = 6
_SEGMENTS = "operandSegmentSizes"

_ENTRY = regex(r"([\w.]+)=(\d+\+?|[*v?])(?:>([\d*]+))?(?:\^(\d))?(?:!(\w))?")
_OP_NAME = regex(r"[A-Za-z_][\w.]*", re.ASCII)
_VALUE_NAME = regex(r"\d+|[A-Za-z_]\w*", re.ASCII)
T = TypeVar("T")


class _Known(NamedTuple):
    """What the file has of an operation with a number."""

    name: str
    operands: str
    results: str
    regions: int
    mark: str


def _known() -> dict[int, _Known]:
    found: dict[int, _Known] = {}
    number = 0
    for word in _TABLE.split():
        if word.endswith(":"):
            number = int(word[:-1], 16)
            continue
        match = _ENTRY.fullmatch(word)
        assert match is not None, word
        name, operands, results, regions, mark = match.groups(default="")
        name = name if number >= 0x2000 else f"pto.{name}"
        found[number] = _Known(name, operands, results or "0", int(regions or 0), mark)
        number += 1
    return found


_KNOWN = _known()


def as_text(data: bytes, file: str, most: int) -> str:
    """The program in generic form; raises with the offset of the byte that is wrong.

    A few bytes can name a long text often: `most` characters are written at most.
    """
    return _File(data, file, most).text()


class _Bytes:
    """A part of the file, read from front to back."""

    def __init__(self, data: bytes, at: int, end: int, file: str) -> None:
        self.data, self.at, self.end, self.file = data, at, end, file

    def wrong(self, what: str, at: int | None = None) -> PtoError:
        """An error at a byte, by default the next one."""
        place = self.at if at is None else at
        return fail(
            "bytecode",
            f"{self.file}: byte {place} (0x{place:x}): {what}",
            fix="the file is damaged, or not of version 0: write it again from its text",
            site=Location(self.file, 0),
        )

    def take(self, count: int) -> bytes:
        if count > self.end - self.at:
            raise self.wrong(f"{count} bytes are missing at the end")
        self.at += count
        return self.data[self.at - count : self.at]

    def fixed(self, count: int) -> int:
        """A number of so many bytes, the lowest first."""
        return int.from_bytes(self.take(count), "little")

    def number(self, is_signed: bool = False) -> int:
        """A number in groups of seven bits, the lowest first."""
        start, value, shift = self.at, 0, 0
        while True:
            byte = self.fixed(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift > 63:
                raise self.wrong("a number has more than 64 bits", start)
        return value - (1 << shift) if is_signed and byte & 0x40 else value

    def count(self, what: str) -> int:
        """How many of something follow: no more than there are bytes."""
        start, found = self.at, self.number()
        if found > self.end - self.at:
            raise self.wrong(
                f"{found} {what} do not fit into the {self.end - self.at} bytes left", start
            )
        return found

    def listed(self, what: str, read: Callable[[], T]) -> list[T]:
        """As many as are counted in front."""
        return [read() for _ in range(self.count(what))]

    def done(self, what: str) -> None:
        if self.at != self.end:
            raise self.wrong(f"{self.end - self.at} bytes too many in the {what}")


@dataclass
class _Body:
    """A function while it is read: the names and types of its values, and its lines."""

    names: dict[int, str]  # that debuggers know
    values: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    taken: set[str] = field(default_factory=set[str])
    lines: list[str] = field(default_factory=list[str])

    def value(self, type_: str) -> str:
        """A name for the next value."""
        number = len(self.values)
        wish = re.sub(r"^(?=\d+\D)", "_", self.names.get(number, ""))
        name = wish if _VALUE_NAME.fullmatch(wish) and wish not in self.taken else f"v{number}"
        self.taken.add(name)
        self.values.append((f"%{name}", type_))
        return f"%{name}"


class _File:
    def __init__(self, data: bytes, file: str, most: int) -> None:
        self._left = most
        whole = _Bytes(data, 0, len(data), file)
        whole.take(len(MAGIC))
        version, _flags, length = whole.fixed(2), whole.fixed(2), whole.fixed(4)
        if version != _VERSION:
            raise whole.wrong(f"version {version} is not known", len(MAGIC))
        if length != len(data) - _HEADER:
            raise whole.wrong(f"{length} bytes are said to follow, {len(data) - _HEADER} do", 10)
        parts = {name: self._section(whole, number) for number, name in _SECTIONS.items()}
        self._strings = self._read(parts["strings"], "strings", self._string)
        spelled = self._read(parts["types"], "types", self._spelled)
        # Long types are written once: lines are short, and the place of their bytes is seen.
        self._aliases = {f"!t{n}": t for n, t in enumerate(spelled, 1) if t.startswith("!")}
        names = {text: alias for alias, text in self._aliases.items()}
        self._types = ["", *(names.get(text, text) for text in spelled)]
        self._attrs = ["", *self._read(parts["attributes"], "attributes", self._spelled)]
        self._constants = self._read(parts["constants"], "constants", self._constant)
        self._module = parts["module"]
        self._names: dict[int, dict[int, str]] = {}
        while whole.at < whole.end:
            number = whole.data[whole.at]
            part = self._section(whole, number)
            if number == _DEBUG:
                self._debug(part)
            elif number != _EXTRA:
                raise whole.wrong(f"there is no section {number}", part.at - 5)

    def _section(self, whole: _Bytes, number: int) -> _Bytes:
        start = whole.at
        found, length = whole.fixed(1), whole.fixed(4)
        if found != number:
            wanted = _SECTIONS.get(number, "debug")
            raise whole.wrong(f"section {found} stands where the {wanted} should", start)
        at = whole.at
        whole.take(length)
        return _Bytes(whole.data, at, at + length, whole.file)

    def _read(self, part: _Bytes, what: str, read: Callable[[_Bytes], T]) -> list[T]:
        found = part.listed(what, lambda: read(part))
        part.done(what)
        return found

    # ---- tables --------------------------------------------------------------------------------

    def _string(self, part: _Bytes) -> str:
        start = part.at
        try:
            return part.take(part.number()).decode("utf-8")
        except UnicodeDecodeError:
            raise part.wrong("a string is not UTF-8 text", start) from None

    def _spelled(self, part: _Bytes) -> str:
        """A type or an attribute: a tag, flags, and its text."""
        start = part.at
        part.fixed(1)
        if not part.fixed(1) & 1:
            raise part.wrong("a type or attribute has no text", start)
        text = self._named(part)
        if not text.isprintable():
            raise part.wrong("a type or attribute is no text of one line", start)
        return text

    def _named(self, part: _Bytes) -> str:
        return self._at(part, self._strings, "string")

    def _at(self, part: _Bytes, table: list[str], what: str) -> str:
        start, number = part.at, part.number()
        if number >= len(table):
            raise part.wrong(f"there is no {what} {number}", start)
        return table[number]

    def _constant(self, part: _Bytes) -> str:
        start, tag = part.at, part.fixed(1)
        if tag == 3:  # a list of indices, which no operation takes
            part.listed("numbers", lambda: part.number(is_signed=True))
            return ""
        if tag not in (1, 2, 4):
            raise part.wrong(f"there is no constant of kind {tag}", start)
        type_ = self._at(part, self._types, "type")
        if tag == 1:
            number = part.number(is_signed=True)
            return str(bool(number)).lower() if type_ == "i1" else f"{number} : {type_}"
        digits = part.take(part.count("bytes"))[::-1].hex()
        return (
            f"0x{digits.upper()} : {type_}" if tag == 2 else f"{int(digits or '0', 16)} : {type_}"
        )

    def _debug(self, part: _Bytes) -> None:
        """Files, names of values, and two tables of places that are not needed."""
        for _ in range(part.count("files")):
            part.number()
            if part.fixed(1):
                part.take(part.number())
        for _ in range(part.count("names")):
            function, value = part.number(), part.number()
            self._names.setdefault(function, {})[value] = self._named(part)
        for numbers in (7, 3):
            part.listed("places", lambda n=numbers: [part.number() for _ in range(n)])
        part.done("debug section")

    # ---- the module ----------------------------------------------------------------------------

    def text(self) -> str:
        part = self._module
        part.take(2)  # a profile, and the width of an index
        attrs = self._dictionary(part)
        if part.number():
            raise part.wrong("global variables are not known")
        heads = part.listed("functions", lambda: self._head(part))
        lines = [f"{alias} = {text}" for alias, text in self._aliases.items()]
        lines.append('"builtin.module"() ({')
        for number, (head, flags, rest) in enumerate(heads):
            body = _Body(self._names.get(number, {}))
            body.lines.append(f"  {head} ({{")
            if not flags & 1:
                self._region(part, body, 0)
            lines += [*body.lines, f"  }}){rest} : () -> ()"]
        part.done("module")
        return "\n".join([*lines, f"}}){attrs} : () -> ()", ""])

    def _head(self, part: _Bytes) -> tuple[str, int, str]:
        start, name = part.at, self._named(part)
        kind, flags, attrs = (
            self._at(part, self._types, "type"),
            part.fixed(1),
            self._dictionary(part),
        )
        if not name.isprintable() or '"' in name or "\\" in name or not name:
            raise part.wrong("a function has no name", start)
        return f'"func.func"() <{{function_type = {kind}, sym_name = "{name}"}}>', flags, attrs

    def _dictionary(self, part: _Bytes) -> str:
        """Attributes with a space in front, or nothing."""
        text = self._at(part, self._attrs, "attribute")
        return f" {text}" if text not in ("", "{}") else ""

    def _region(self, part: _Bytes, body: _Body, depth: int) -> None:
        """The lines of a region; it has one block, or is not there."""
        start = part.at
        blocks = part.count("blocks")
        if blocks > 1:
            raise part.wrong(
                "a region has one block: where jumps lead to is not in the file", start
            )
        if depth > _DEEPEST:
            raise part.wrong(f"regions lie in each other more than {_DEEPEST} times", start)
        outside = set(body.taken)  # names of one region may be used again in the next
        for _ in range(blocks):
            types = part.listed("arguments", lambda: self._at(part, self._types, "type"))
            if types:
                args = ", ".join(f"{body.value(t)}: {t}" for t in types)
                body.lines.append(f"{'  ' * depth}  ^bb0({args}):")
            for _ in range(part.count("operations")):
                self._operation(part, body, depth)
        body.taken = outside

    def _operation(self, part: _Bytes, body: _Body, depth: int) -> None:
        start = part.at
        number, attrs = part.fixed(2), self._dictionary(part)
        if number == _GENERIC:
            name = self._named(part)
            types = part.listed("results", lambda: self._at(part, self._types, "type"))
            operands = self._operands(part, body, part.count("operands"))
            regions = part.count("regions")
        else:
            name, more, operands, types, regions = self._numbered(part, body, number, start)
            if more and not (_SEGMENTS in more and _SEGMENTS in attrs):
                attrs = f" {{{', '.join(filter(None, (attrs[2:-1], more)))}}}"
        if not _OP_NAME.fullmatch(name):
            raise part.wrong(f"an operation has the name {name!r}", start)
        names = [body.value(each) for each in types]
        lead = "  " * (depth + 2)
        left = f"{', '.join(names)} = " if names else ""
        given = ", ".join(value for value, _ in operands)
        signature = f"({', '.join(t for _, t in operands)}) -> ({', '.join(types)})"
        place = f"  // byte 0x{start:x}"
        self._left -= len(given) + len(attrs) + len(signature)
        if self._left < 0:
            raise part.wrong("the text of the program is longer than a text may be", start)
        if not regions:
            body.lines.append(f'{lead}{left}"{name}"({given}){attrs} : {signature}{place}')
            return
        body.lines.append(f'{lead}{left}"{name}"({given}) ({{{place}')
        for region in range(regions):
            if region:
                body.lines.append(f"{lead}}}, {{")
            self._region(part, body, depth + 2)
        body.lines.append(f"{lead}}}){attrs} : {signature}")

    def _operands(self, part: _Bytes, body: _Body, count: int) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for _ in range(count):
            start, number = part.at, part.number()
            if number >= len(body.values):
                raise part.wrong(f"there is no value {number} yet", start)
            found.append(body.values[number])
        return found

    def _numbered(
        self, part: _Bytes, body: _Body, number: int, start: int
    ) -> tuple[str, str, list[tuple[str, str]], list[str], int]:
        """An operation whose number says what follows it."""
        known = _KNOWN.get(number)
        if known is None:
            raise part.wrong(f"there is no operation 0x{number:04x}", start)
        name, count = _RENAMED.get(known.name, known.name), 0
        if number in _VARIANTS:
            variants = list(_VARIANTS[number].items())
            which = part.fixed(1)
            if which >= len(variants):
                raise part.wrong(f"{name} has no variant {which}", part.at - 1)
            short, count = variants[which]
            name = f"pto.{short}"
        more = self._immediate(part, known.mark)
        if known.operands.endswith("+"):
            if part.fixed(1):
                raise part.wrong(f"{name} has its lists in a way that is not known", part.at - 1)
            lists = [part.count("operands"), part.count("operands")]
            count = int(known.operands[:-1]) + sum(lists)
            more = _segments([int(known.operands[:-1]), *lists])
        elif known.operands == "?":
            mask = part.fixed(1)
            places = [int(mask & bit != 0) for bit in _MASK]
            count, more = sum(places), _segments(places)
        elif known.operands == "*":
            count = part.count("operands")
        elif known.operands != "v":
            count = int(known.operands)
        operands = self._operands(part, body, count)
        if number in _ORDERS and len(operands) == len(_ORDERS[number]):
            operands = [operands[place] for place in _ORDERS[number]]
        made = part.count("results") if known.results == "*" else int(known.results)
        types = [self._at(part, self._types, "type") for _ in range(made)]
        return name, more, operands, types, known.regions

    def _immediate(self, part: _Bytes, mark: str) -> str:
        """What stands in front of the operands, as attributes."""
        start = part.at
        if mark == "p":
            predicate = part.fixed(1)
            if predicate >= _PREDICATES:
                raise part.wrong(f"there is no predicate {predicate}", start)
            return f"predicate = {predicate} : i64"
        if mark == "c":
            value = self._at(part, self._constants, "constant")
            if not value:
                raise part.wrong("a list of indices is no constant", start)
            return f"value = {value}"
        if mark == "e":
            kinds = {"src_op": "sync_op_type", "dst_op": "sync_op_type", "event_id": "event"}
            found = [f"{key} = {self._member(part, kind)}" for key, kind in kinds.items()]
            return ", ".join(found)
        return ""

    def _member(self, part: _Bytes, kind: str) -> str:
        number = part.fixed(1)
        members = {value: name for name, value in enumeration(kind).members.items()}
        if number not in members:
            raise part.wrong(f"{kind} has no member {number}", part.at - 1)
        return f"#pto.{kind}<{members[number]}>"


def _segments(places: list[int]) -> str:
    return f"{_SEGMENTS} = array<i32: {', '.join(map(str, places))}>"
