"""Control flow: loops and branches stay what they are; what they carry becomes variables."""

from __future__ import annotations

from ptokit.base.tiles import DYNAMIC
from ptokit.emit.expressions import value_type
from ptokit.emit.writer import Writer
from ptokit.ir.attributes import ArrayAttr, IntAttr, SymbolAttr
from ptokit.ir.core import Op, Value
from ptokit.ir.types import BufferType, TileBufType


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
        lower, upper, step = (self._use(op.operand(n)) for n in ("lower", "upper", "step"))  # type: ignore[arg-type]
        i = self._declare(body.args[0])
        advance = f"++{i}" if step == "1" else f"{i} += {step}"
        self._line(f"for (int64_t {i} = {lower}; {i} < {upper}; {advance}) {{")
        self._depth += 1
        for arg, _ in carried:
            self._bind(arg)
        self._block(body)
        self._yield(op, body.ops[-1].group("args"), body.args[1:])
        self._depth -= 1
        self._line("}")
        for (arg, _), result in zip(carried, op.results, strict=True):
            self._take_over(result, arg)

    def branch(self, op: Op) -> None:
        for result in op.results:
            self._carry(op, result, None)
        for index, region in enumerate(op.regions):
            if index and len(region.ops) == 1 and not op.results:
                break  # an else branch that does nothing
            word = f"if ({self._use(op.operands[0])}) {{" if index == 0 else "} else {"
            self._line(word)
            self._depth += 1
            self._block(region)
            self._yield(op, region.ops[-1].group("args"), op.results)
            self._depth -= 1
        self._line("}")
        for result in op.results:
            self._bind(result)

    def transparent(self, op: Op) -> None:
        """A region that runs once, where it stands: its results are what it hands on."""
        (body,) = op.regions
        self._block(body)
        for result, value in zip(op.results, body.ops[-1].group("args"), strict=True):
            self.names[result] = self._use(value)
            self.slots |= {result: self.slots[value]} if value in self.slots else {}

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
            self._depth += 1
            self._block(region)
            self._yield(op, region.ops[-1].group("args"), op.results)
            self._line("break;")
            self._depth -= 1
            self._line("}")
        self._line("}")
        for result in op.results:
            self._bind(result)

    def while_loop(self, op: Op) -> None:
        before, after = op.regions
        for arg, init in zip(before.args, op.operands, strict=True):
            self._carry(op, arg, init)
        stop = before.ops[-1]
        handed = list(zip(after.args, stop.operands[1:], strict=True))
        own = [arg for arg, value in handed if value not in before.args]
        for arg in own:  # computed in the loop, needed behind it
            self._carry(op, arg, None)
        self._line("while (true) {")
        self._depth += 1
        for arg in before.args:
            self._bind(arg)
        self._block(before)
        self._yield(op, [value for arg, value in handed if arg in own], own)
        for arg, value in handed:
            if arg not in own:
                self.names[arg] = self._use(value)
                self.slots |= {arg: self.slots[value]} if value in self.slots else {}
        self._line(f"if (!({self._use(stop.operands[0])})) break;")
        for arg in own:
            self._bind(arg)
        self._block(after)
        self._yield(op, after.ops[-1].group("args"), before.args)
        self._depth -= 1
        self._line("}")
        for (arg, _), result in zip(handed, op.results, strict=True):
            self._take_over(result, arg)

    def _carry(self, op: Op, value: Value, init: Value | None) -> None:
        """Declare a variable for a value that changes: a number, or the address of a tile."""
        name = self._declare(value)
        kind = value.type
        if written := value_type(kind):
            start = f" = {self._use(init)}" if init is not None else ""
            self._line(f"{written} {name}{start};")
            return
        if not isinstance(kind, TileBufType) or DYNAMIC in (
            kind.spec.valid_row,
            kind.spec.valid_col,
        ):
            raise self._refuse(f"a value of type {kind} carried through control flow", op)
        slot = self.slots[value] = self._unused(f"{name}_address")
        start = f" = {self._address(op, init)}" if init is not None else ""
        self._line(f"int64_t {slot}{start};")

    def _bind(self, value: Value) -> None:
        """Make the tile of a carried handle, at the address it has here."""
        if value in self.slots:
            assert isinstance(value.type, TileBufType)
            self._line(f"{self._tile_type(value.type.spec)} {self.names[value]};")
            self._line(f"TASSIGN({self.names[value]}, {self.slots[value]});")

    def _take_over(self, result: Value, arg: Value) -> None:
        """What a loop leaves behind is what its variable holds at the end."""
        if arg in self.slots:
            self._declare(result)
            self.slots[result] = self.slots[arg]
            self._bind(result)
        else:
            self.names[result] = self.names[arg]

    def _address(self, op: Op, value: Value) -> str:
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
        for target, value in zip(targets, values, strict=True):
            is_tile = isinstance(target.type, TileBufType)
            where = self.slots[target] if is_tile else self.names[target]
            what = self._address(op, value) if is_tile else self._use(value)
            if where != what:
                pairs.append((where, what))
        written: set[str] = set()
        saved: dict[str, str] = {}
        for where, what in pairs:
            if what in written and what not in saved:
                saved[what] = self._unused(f"{what}_before")
                self._line(f"const auto {saved[what]} = {what};")
            written.add(where)
        for where, what in pairs:
            self._line(f"{where} = {saved.get(what, what)};")
