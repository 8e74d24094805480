"""Control flow: loops and branches stay what they are; what they carry becomes variables."""

from __future__ import annotations

import re

from ptokit.base.tiles import DYNAMIC
from ptokit.emit.expressions import AND, FALSE, SUM, TRUE, Expr, negated, value_type
from ptokit.emit.lines import Line
from ptokit.emit.scopes import register_type
from ptokit.emit.uses import is_named
from ptokit.emit.writer import Writer
from ptokit.ir.attributes import ArrayAttr, IntAttr, SymbolAttr
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects import arith
from ptokit.ir.types import BufferType, RegisterType, TileBufType, Type


class ControlFlow(Writer):
    """Writes loops, branches and calls of functions."""

    def call_function(self, op: Op) -> None:
        callee = op.attrs["callee"]
        assert isinstance(callee, SymbolAttr)
        callee_body = self.module.function(callee.name)
        if callee_body is None or callee_body.body is None:
            raise self._refuse(f"a call of @{callee.name}, which is declared but not defined", op)
        call = f"{callee.name}({', '.join(self._use(v) for v in op.operands)})"
        if len(op.results) > 1:
            raise self._refuse(f"a call of @{callee.name}, which returns several values", op)
        if op.results:
            self._local(op, call)
        else:
            self._line(f"{call};")

    def loop(self, op: Op) -> None:
        body = op.regions[0]
        carried = list(zip(body.args[1:], op.group("inits"), strict=True))
        for arg, init in carried:
            self._carry(op, arg, init)
        lower, upper, step = (self._expr(op.operand(n)) for n in ("lower", "upper", "step"))  # type: ignore[arg-type]
        with self._scope():
            counter = body.args[0]  # `_` has no name, either
            has_name = is_named(counter) and counter.name.strip("_")
            i = self._declare(counter, "" if has_name else "i")
            advance = f"++{i}" if step.number == 1 else f"{i} += {step.text}"
            head = f"for (int64_t {i} = {lower.text}; {i} < {upper.within(SUM)}; {advance}) {{"
            self._line(head, outside=True)
            for arg, _ in carried:
                self._make_carried(arg)
            self._block(body)
            self._yield(op, body.ops[-1].group("args"), body.args[1:])
        self._line("}")
        for (arg, _), result in zip(carried, op.results, strict=True):
            self._take_over(result, arg)

    def branch(self, op: Op) -> None:
        for result in op.results:
            self._carry(op, result, None)
        condition = self._expr(op.operands[0])
        for index, region in enumerate(op.regions):
            if index and len(region.ops) == 1 and not op.results:
                break  # an else branch that does nothing
            self._line(f"if ({condition.text}) {{" if index == 0 else "} else {")
            with self._scope():
                self._block(region)
                self._yield(op, region.ops[-1].group("args"), op.results)
        self._line("}")
        for result in op.results:
            self._make_carried(result)

    def transparent(self, op: Op) -> None:
        """A region that runs once, where it stands: its results are what it hands on."""
        (body,) = op.regions
        self._block(body)
        for result, value in zip(op.results, body.ops[-1].group("args"), strict=True):
            self._stand_for(result, value)

    def switch(self, op: Op) -> None:
        for result in op.results:
            self._carry(op, result, None)
        cases = op.attrs["cases"]
        assert isinstance(cases, ArrayAttr)
        default, *regions = op.regions
        heads = [f"case {n.value}: {{" for n in cases.items if isinstance(n, IntAttr)]
        self._line(f"switch ({self._use(op.operands[0])}) {{")
        for head, region in zip([*heads, "default: {"], [*regions, default], strict=True):
            self._line(head)
            with self._scope():
                self._block(region)
                self._yield(op, region.ops[-1].group("args"), op.results)
                self._line("break;")
            self._line("}")
        self._line("}")
        for result in op.results:
            self._make_carried(result)

    def while_loop(self, op: Op) -> None:
        """`while (condition)`, or a loop that is left in its middle where that takes statements."""
        before, after = op.regions
        declared: dict[Value, Line] = {}
        for arg, init in zip(before.args, op.operands, strict=True):
            self._carry(op, arg, init)
            declared[arg] = self.lines.last
        stop = before.ops[-1]
        handed = [
            (arg, value, result)
            for arg, value, result in zip(after.args, stop.operands[1:], op.results, strict=True)
            if self.uses.count(arg) or self.uses.count(result)
        ]
        own = [arg for arg, value, _ in handed if value not in before.args]
        for arg in own:  # computed in the loop, needed behind it
            self._carry(op, arg, None)
        self._line("while (true) {")
        head, start = self.lines.last, len(self.lines)
        leaves = counter = None
        with self._scope():
            for arg in before.args:
                self._make_carried(arg)
            self._block(before)
            self._yield(op, [value for arg, value, _ in handed if arg in own], own)
            for arg, value, _ in handed:
                if arg not in own:
                    self._stand_for(arg, value)
            condition = self._expr(stop.operands[0])
            if len(self.lines) == start:
                leaves, condition = self._left_by(op, condition)
                counter = self._counter(op, condition)
                head.text = self._head(op, condition, counter)
            else:
                self._line(f"if ({negated(condition).text}) break;")
            for arg in own:
                self._make_carried(arg)
            self._block(after)
            self._end_round(op, leaves, counter)
        self._line("}")
        for arg in (leaves, counter):
            if arg is not None:
                self.lines.drop(declared[arg])
        for arg, _, result in handed:
            self._take_over(result, arg)

    def _left_by(self, op: Op, condition: Expr) -> tuple[Value | None, Expr]:
        """The variable that stands for `break`, and what else the loop goes on for.

        Nobody looks at it but the condition: setting it at the end of a round is leaving there.
        """
        before, after = op.regions
        for arg, inner, result in zip(before.args, after.args, op.results, strict=True):
            others = self.uses.count(inner) + self.uses.count(result)
            starts = op.operands[before.args.index(arg)]
            mark = f"!{self.names[arg]}"
            if others or self.uses.count(arg) != 2 or self._expr(starts) != FALSE:
                continue  # it is taken once to be inverted, once to be handed on
            if condition.text == mark:
                return arg, TRUE
            if condition.text.startswith(f"{mark} && "):
                return arg, Expr(condition.text.removeprefix(f"{mark} && "), AND)
        return None, condition

    def _counter(self, op: Op, condition: Expr) -> Value | None:
        """The variable that a loop counts with, where nobody looks at it after the loop."""
        before, after = op.regions
        ends = after.ops[-1].group("args")
        for arg, inner, end, result in zip(before.args, after.args, ends, op.results, strict=True):
            is_own = self.uses.count(end) == 1 and not self.uses.count(result)
            is_tested = condition.text.startswith(f"{self.names[arg]} < ")
            if is_own and is_tested and _step(end, (arg, inner)) is not None:
                return arg
        return None

    def _head(self, op: Op, condition: Expr, counter: Value | None) -> str:
        if counter is None:
            return f"while ({condition.text}) {{"
        before, after = op.regions
        at = before.args.index(counter)
        step = _step(after.ops[-1].group("args")[at], (counter, after.args[at]))
        name, start = self.names[counter], self._use(op.operands[at])
        advance = f"++{name}" if step == 1 else f"{name} += {step}"
        return f"for (int64_t {name} = {start}; {condition.text}; {advance}) {{"

    def _end_round(self, op: Op, leaves: Value | None, counter: Value | None) -> None:
        before, after = op.regions
        values = dict(zip(before.args, after.ops[-1].group("args"), strict=True))
        if counter is not None:
            del values[counter]  # the head does it
        ends = values.pop(leaves, None) if leaves is not None else None
        condition = self._expr(ends) if ends is not None else FALSE
        changed = {self.names[arg] for arg in values} & set(re.findall(r"\w+", condition.text))
        if changed:
            kept = self._unused("stop")
            self._line(f"const bool {kept} = {condition.text};")
            condition = Expr(kept)
        self._yield(op, list(values.values()), list(values))
        if condition != FALSE:
            self._line(f"if ({condition.text}) break;")

    def _stand_for(self, name: Value, value: Value) -> None:
        """Another name for a value."""
        for kept in (self.names, self.folded, self.constants, self.slots, self.views, self._kinds):
            if value in kept:
                kept[name] = kept[value]  # type: ignore[index]

    def _carry(self, op: Op, value: Value, init: Value | None) -> None:
        """Declare a variable for a value that changes: a number, a register, a tile's address."""
        name = self._declare(value)
        kind = value.type
        if written := register_type(kind):
            self._line(f"{written} {name};")
            if init is not None:
                self._assign(name, self._use(init), kind)
            return
        if written := value_type(kind):
            start = f" = {self._use(init)}" if init is not None else ""
            self._line(f"{written} {name}{start};")
            return
        if not isinstance(kind, TileBufType) or DYNAMIC in (
            kind.spec.valid_row,
            kind.spec.valid_col,
        ):
            raise self._refuse(f"a value of type {kind} carried through control flow", op)
        slot = self._unused(f"{name}_address")
        self.slots[value] = Expr(slot)
        start = f" = {self._address(op, init).text}" if init is not None else ""
        self._line(f"int64_t {slot}{start};")

    def _make_carried(self, value: Value) -> None:
        """Make the tile of a carried handle, at the address it has here."""
        if value in self.slots and self.uses.count(value):
            assert isinstance(value.type, TileBufType)
            alias = self._kinds[value] = self._tile_type(value.type.spec)
            self._line(f"{alias} {self.names[value]};")
            self._bind(self.names[value], self.slots[value])

    def _take_over(self, result: Value, arg: Value) -> None:
        """What a loop leaves behind is what its variable holds at the end."""
        if arg in self.slots:
            self._declare(result)
            self.slots[result] = self.slots[arg]
            self._make_carried(result)
        else:
            self._stand_for(result, arg)

    def _address(self, op: Op, value: Value) -> Expr:
        found = self.slots.get(value)
        if found is None:
            raise self._refuse("a tile without an address carried through control flow", op)
        assert isinstance(value.type, BufferType)
        if self._spec(value) != value.type.spec:
            raise self._refuse("a window with gaps carried through control flow", op)
        return found

    def _yield(self, op: Op, values: list[Value], targets: list[Value]) -> None:
        """Assign all targets at once: one that is still to be read is saved first."""
        pairs: list[tuple[str, str]] = []
        kinds = {self.names.get(target): target.type for target in targets}
        for target, value in zip(targets, values, strict=True):
            is_tile = isinstance(target.type, TileBufType)
            where = self.slots[target].text if is_tile else self.names[target]
            what = self._address(op, value).text if is_tile else self._use(value)
            if where != what:
                pairs.append((where, what))
        written: set[str] = set()
        saved: dict[str, str] = {}
        for where, what in pairs:
            for word in sorted(set(re.findall(r"\w+", what)) & written - set(saved)):
                saved[word] = self._unused(f"{word}_before")
                self._line(f"const auto {saved[word]} = {word};")
            written.add(where)
        for where, what in pairs:
            for word, kept in saved.items():
                what = re.sub(rf"\b{word}\b", kept, what)
            added = what.removeprefix(f"{where} + ")
            if added != what and re.fullmatch(r"[\w.]+", added):
                self._line(f"{where} += {added};")
            else:
                self._assign(where, what, kinds.get(where))

    def _assign(self, where: str, what: str, kind: Type | None) -> None:
        is_register = isinstance(kind, RegisterType)
        self._line(f"vmov({where}, {what});" if is_register else f"{where} = {what};")


def _step(end: Value, counted: tuple[Value, Value]) -> int | None:
    """How far a round goes on, where its end is a sum of what is counted and a constant."""
    owner = end.owner
    if not isinstance(owner, Op) or arith.operator_of(owner) != "+":
        return None
    first, second = owner.operands
    made = second.owner
    if first not in counted or not isinstance(made, Op) or not arith.CONSTANT.matches(made):
        return None
    number = made.attrs["value"]
    return number.value if isinstance(number, IntAttr) else None
