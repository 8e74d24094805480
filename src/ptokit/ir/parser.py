"""The parser: modules, functions, blocks and operations. Errors do not stop it.

`parse` reads Level 1, 2 and 3 and the generic form; assembly ("sync") text is recognised by its
look and handed to `asmform`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ptokit.base.diagnostics import Diagnostic, ProgramError
from ptokit.base.location import Location
from ptokit.ir import generic, origins
from ptokit.ir.attributes import Attribute, OpaqueAttr, SymbolAttr
from ptokit.ir.core import Block, Function, Module, Op, Unit, Value
from ptokit.ir.dialects import DEFINITIONS, cf
from ptokit.ir.dialects.func import CALL, RETURN
from ptokit.ir.extents import broken_extents
from ptokit.ir.flow import is_terminator
from ptokit.ir.insntext import read_instruction
from ptokit.ir.instructions import forms_of, mnemonics
from ptokit.ir.lexer import Source
from ptokit.ir.limits import TextLimits, read_source
from ptokit.ir.linking import link
from ptokit.ir.micro import micro_group
from ptokit.ir.pairs import count_singles
from ptokit.ir.reader import Abandon, Head, Reader
from ptokit.ir.types import SINGLES_OF, BufferType, ElidedType, Type, same_type
from ptokit.ir.typetext import suggestion

_SHORT = {"return": RETURN.name, "call": CALL.name}
_NESTING = {"{": 1, "(": 1, "[": 1, "}": -1, ")": -1, "]": -1}


def parse(text: str, file: str = "<text>", limits: TextLimits | None = None) -> Module:
    """Read a program; raises ProgramError with all mistakes found."""
    return parse_source(Source(text, file, TextLimits.in_force(limits)))


def parse_file(path: str | Path, limits: TextLimits | None = None) -> Module:
    """Read a program from a file."""
    limits = TextLimits.in_force(limits)
    return parse_source(Source(read_source(path, limits), str(path), limits))


def parse_source(source: Source) -> Module:
    """Read a program; raises ProgramError with all mistakes found."""
    module, errors = parse_with_errors(source)
    if errors:
        raise ProgramError(errors)
    return module


def parse_with_errors(source: Source) -> tuple[Module, list[Diagnostic]]:
    """Read a program as far as it can be read."""
    from ptokit.ir import asmform

    if asmform.looks_like(source.text):
        return asmform.read(source)
    parser = Parser(source)
    module = parser.module()
    more = count_singles(module) if any(pair in source.text for pair in SINGLES_OF) else []
    return module, [*parser.errors, *more]


class Parser(Reader):
    """A recursive-descent parser over the tokens of one text."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._modules: list[Unit] = []  # of the file, in order
        self._unit: Unit | None = None  # the one that is being read

    # ---- file --------------------------------------------------------------------------------

    def module(self) -> Module:
        """A whole file: one module, or functions without one."""
        module = Module(location=self.place(0))
        while self.kind != "end":
            start = self.at
            try:
                self._top_level(module)
            except Abandon:
                self._recover_at_top(start)
        link(self, module, self._modules)
        self._check_calls(module)
        for name, type_ in self.type_aliases.items():
            if isinstance(type_, BufferType):
                line = (module.location.file, 0)
                module.names.note_type(line, name.removeprefix("!"), type_.spec, line)
        return module

    def _top_level(self, module: Module) -> None:
        if self.kind in ("type", "attr") and self.texts[self.at + 1] == "=":
            self._alias()
        else:
            self.symbol_or_module(module)

    def symbol_or_module(self, module: Module) -> None:
        """What stands in a module: a function, or a module."""
        is_generic = self.kind == "string" and self.text == '"builtin.module"'
        if not is_generic and not self.sees("module"):
            self._function(module)
            return
        outer, own = self._unit, Unit(dict(self._unit.attrs) if self._unit else {})
        is_inner = outer is not None
        if is_inner:
            self.enter()
        else:
            self._modules.append(own)
        self._unit = own
        try:
            if is_generic:
                generic.read_module(self, module, own)
            else:
                self._module(module, own)
        finally:
            self.depth -= is_inner
            self._unit = outer

    def _module(self, module: Module, own: Unit) -> None:
        self.expect("module")
        if self.kind == "symbol":
            self.symbol()
        if self.accept("attributes"):
            own.attrs.update(self.attr_dict())
        self.expect("{")
        while not self.accept("}"):
            if self.kind == "end":
                raise self.unexpected("'}' to close the module")
            start = self.at
            try:
                self.symbol_or_module(module)
            except Abandon:
                self._recover_at_top(start)
        self.skip_location()

    def _alias(self) -> None:
        name = self.text
        is_type = self.kind == "type"
        self.at += 2
        if is_type:
            self.type_aliases[name] = self.type()
        elif self.sees("loc"):
            self.skip_location()
            self.attr_aliases[name] = OpaqueAttr(name)
        else:
            self.attr_aliases[name] = self.attribute()

    def _recover_at_top(self, start: int) -> None:
        """Go on with the next function or module."""
        self.at = max(self.at, start + 1)
        while self.kind != "end" and self.text not in ("func.func", "module", '"func.func"'):
            self.at += 1

    # ---- functions ---------------------------------------------------------------------------

    def _function(self, module: Module) -> None:
        if self.kind == "string" and self.text == '"func.func"':
            self._keep(module, generic.read_function(self))
            return
        if not self.sees("func.func"):
            near = suggestion(self.text, ("func.func", "module"))
            if self.sees("func"):
                near += " (the language with func @name and bare mnemonics is obsolete)"
            raise self.fail(
                f"expected a function or a module, found {self.text!r}",
                fix=near or "operations belong inside func.func @name(...) { ... }",
            )
        self.at += 1
        private = self.accept("private")
        if not private:
            self.accept("public")
        place = self.place()
        name = self.symbol()
        self.values = {}
        params, inputs = self._parameters()
        results = tuple(self.result_types()) if self.accept("->") else ()
        attrs: dict[str, Attribute] = self.attr_dict() if self.accept("attributes") else {}
        body = self.block(params) if self.sees("{") else None
        function = Function(name, body, results, attrs, inputs, private, place)
        self.check_return(function)
        self._keep(module, function)
        self.skip_location()

    def _keep(self, module: Module, function: Function) -> None:
        self.undefined.clear()
        function.unit = self._unit
        if any(f.name == function.name and f.unit is self._unit for f in module.functions):
            what = f"@{function.name} is defined twice"
            self.note("redefined-function", what, function.location)
        module.functions.append(function)

    def _parameters(self) -> tuple[list[tuple[str, Value]], tuple[Type, ...]]:
        params: list[tuple[str, Value]] = []
        types: list[Type] = []
        self.expect("(")
        while not self.accept(")"):
            if types:
                self.expect(",")
            if self.kind == "value":
                place = self.place()
                name = self.take("value", "a parameter")
                self.expect(":")
                types.append(self.type())
                params.append((name, Value(name[1:], types[-1], None, place)))
            else:
                types.append(self.type())
            if self.sees("{"):
                self.attr_dict()
            self.skip_location()
        return params, tuple(types)

    def check_return(self, function: Function) -> None:
        """A body ends with a return of the declared types, and nothing ends a block before."""
        if function.body is None:
            return
        self._check_ends(function.body)
        last = function.body.ops[-1] if function.body.ops else None
        if last is None or not RETURN.matches(last):
            if not self.errors:
                self.note(
                    "missing-return", f"@{function.name} ends without return", function.location
                )
            return
        got = [v.type for v in last.operands]
        if len(got) != len(function.results) or not all(map(same_type, got, function.results)):
            self.note(
                "type-mismatch",
                f"@{function.name} returns ({', '.join(map(str, function.results))})",
                last.location,
                f"got ({', '.join(map(str, got))})",
            )

    def _check_calls(self, module: Module) -> None:
        scopes: dict[Unit | None, dict[str, Function]] = {}
        for function in module.functions:
            scopes.setdefault(function.unit, {})[function.name] = function
        calls = ((f.unit, op) for f in module.functions for op in f.walk() if CALL.matches(op))
        for unit, call in calls:
            callee = call.attrs["callee"]
            assert isinstance(callee, SymbolAttr)
            function = scopes[unit].get(callee.name)
            if function is None:
                self.note(
                    "unknown-function",
                    f"there is no function @{callee.name}",
                    call.location,
                    suggestion(callee.name, scopes[unit]),
                )
                continue
            got = tuple(v.type for v in call.operands)
            wanted = function.input_types
            if len(got) != len(wanted) or not all(map(same_type, got, wanted)):
                self.note(
                    "type-mismatch",
                    f"@{callee.name} takes ({', '.join(map(str, wanted))})",
                    call.location,
                    f"got ({', '.join(map(str, got))})",
                )

    # ---- blocks and operations ---------------------------------------------------------------

    def block(self, args: list[tuple[str, Value]] | None = None) -> Block:
        """`{ operations }`, with an optional label that names its arguments."""
        self.expect("{")
        self.enter()
        scope = self.open_scope()
        block = Block()
        try:
            self._statements(block, args or [])
        finally:
            self.close_scope(scope)
            self.depth -= 1
        block.end = self.source.line(self.starts[self.at - 1])
        return block

    def _statements(self, block: Block, args: list[tuple[str, Value]]) -> None:
        for name, value in args:
            value.owner = block
            self.define(name, value, value.location)
            block.args.append(value)
        first, place = self.text if self.kind == "label" else "", self.place()
        if first:
            self._label(block)
        while not self.accept("}"):
            if self.kind == "end":
                raise self.unexpected("'}'")
            if self.kind == "label":
                self._blocks(block, first, place)
                return
            self._statement(block)

    def _check_ends(self, block: Block) -> None:
        """What ends a block is its last operation; an end that is implied stands behind it too."""
        for op in block.ops[:-1]:
            if is_terminator(op):
                what = f"nothing follows {op.name} in its block"
                self.note("block-end", what, op.location, "leave it out, or put a label after it")
        for op in block.ops:
            for region in op.regions:
                self._check_ends(region)

    def _blocks(self, block: Block, first: str, place: Location) -> None:
        """What follows are more blocks: all of them become one operation of the first."""
        current = Block(ops=block.ops)
        names, places = {first: current}, {first: place}
        while not self.accept("}"):
            if self.kind == "end":
                raise self.unexpected("'}'")
            if self.kind != "label":
                self._statement(current)
                continue
            name, current = self.text, Block()
            if name in names:
                self.note("redefined-block", f"{name} is defined twice")
            names[name], places[name] = current, self.place()
            self._label(current)
        unended = [n for n, each in names.items() if not any(map(is_terminator, each.ops[-1:]))]
        for name in unended:
            what = f"{name or 'the first block'} ends with a jump, or with what ends its region"
            self.note("block-end", what, places[name], "write a jump to the next block: cf.br")
        block.ops = [] if unended else cf.joined(self, names)

    def _label(self, block: Block) -> None:
        self.at += 1
        if self.accept("("):
            while not self.accept(")"):
                if block.args:
                    self.accept(",")
                place = self.place()
                name = self.take("value", "a block argument")
                self.expect(":")
                value = Value(name[1:], self.type(), block, place)
                self.define(name, value, place)
                block.args.append(value)
        self.expect(":")

    def _statement(self, block: Block) -> None:
        start = self.at
        head = Head("", self.place())
        try:
            head.results = self._result_names()
            op = self._operation(head)
        except Abandon:
            self.implied.clear()
            self._recover(start)
            for name, place in head.results:
                self.rename(name, Value(name[1:], ElidedType("<unknown>"), None, place))
            return
        block.ops += [*self.implied, op]
        self.implied.clear()
        for value in op.results:
            value.owner = op
        for value, (name, place) in zip(op.results, head.results, strict=False):
            self.define(name, value, place)

    def _result_names(self) -> list[tuple[str, Location]]:
        found: list[tuple[str, Location]] = []
        if self.kind != "value":
            return found
        while True:
            place = self.place()
            name = self.take("value", "a result")
            at = self.at
            count = self.integer() if self.accept(":") else -1
            named = len(found) + abs(count)
            if named > self.limits.results:
                raise self.over("results", "results of one operation", named, at)
            if count < 0:
                found.append((name, place))
            else:
                found += [(f"{name}#{n}", place) for n in range(count)]
            if not self.accept(","):
                break
        self.expect("=")
        return found

    def _operation(self, head: Head) -> Op:
        head.location = self.place()
        if self.kind == "string":
            head.name = self.string()
            op = generic.read_op(self, head)
        else:
            name = self.take("word", "an operation")
            head.name = _SHORT.get(name, name)
            op = self.operation(head)
        behind = self.at
        self.skip_location()
        if behind != self.at and (origin := origins.read(self.texts[behind : self.at])) is not None:
            op.location = replace(op.location, origin=origin)
        self.check_attributes(op)
        for what, fix in broken_extents(op):
            self.note("view-extents", f"{op.name}: {what}", op.location, fix)
        return op

    def operation(self, head: Head) -> Op:
        definition = DEFINITIONS.get(head.name)
        forms = forms_of(head.name[4:]) if head.name.startswith("pto.") else None
        if head.name == "pto.subview" and self.texts[self.at + 2] == "offsets":
            raise self.fail(
                "pto.subview of a tensor view is an obsolete spelling",
                "unknown-op",
                head.location,
                "write pto.partition_view %view, offsets = [...], sizes = [%rows, %cols]",
            )
        if definition is not None and definition.micro is not None and self.sees("ins"):
            definition = None  # the instruction on tiles that has the same name
        elif definition is not None and definition.micro is not None:
            forms = None
        is_older = forms is not None and definition is not None and definition.insn is None
        if definition is not None and not (is_older and self.texts[self.at + 1] != "["):
            return definition.read(self, head, definition)
        if forms is not None:
            return read_instruction(self, head, forms)
        raise self.unknown_operation(head)

    def unknown_operation(self, head: Head) -> Abandon:
        """Nothing has this name; say what may have been meant."""
        if group := micro_group(head.name):
            return self.fail(
                f"{head.name} is a micro-instruction of {group} that ptokit does not have",
                "not-supported",
                head.location,
                "write this part with tile instructions",
            )
        if head.name.startswith("affine."):
            return self.fail(
                f"{head.name} is left behind by an obsolete lowering; ptokit reads arith instead",
                "not-supported",
                head.location,
                "start from the file before the compiler lowered it",
            )
        if head.name.endswith("_dps"):
            return self.fail(
                f"{head.name} is an obsolete spelling",
                "unknown-op",
                head.location,
                f"write {head.name.removesuffix('_dps')} ins(...) outs(...)",
            )
        known = [*DEFINITIONS, *mnemonics()]
        return self.fail(
            f"there is no operation {head.name}",
            "unknown-op",
            head.location,
            suggestion(head.name, known),
        )

    def _recover(self, start: int) -> None:
        """Go on with the operation after the one that begins at token `start`.

        A region the broken operation opened is skipped as a whole.
        """
        stopped = self.at
        if self.kind == "end":
            return  # what is missing is missing for every operation around this one too
        line = self.source.line(self.starts[max(start, stopped - 1)])
        self.at = start
        depth = 0
        while self.kind != "end":
            text = self.text
            if depth == 0 and self.at > start:
                here = self.source.line(self.starts[self.at])
                if text == "}" or (self.at >= stopped and here > line and self._starts_op()):
                    return
            depth += _NESTING.get(text, 0)
            self.at += 1

    def _starts_op(self) -> bool:
        if self.kind == "value":
            return self.texts[self.at + 1] in ("=", ",") or self.kinds[self.at + 2] == "number"
        if self.kind == "word":
            return "." in self.text or self.text in _SHORT
        return self.kind == "string" and "." in self.text
