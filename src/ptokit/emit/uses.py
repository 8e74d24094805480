"""Who takes the values of a function: what nobody takes is left out, what one takes is folded."""

from __future__ import annotations

from ptokit.base.patterns import regex
from ptokit.emit.expressions import keeps_type
from ptokit.ir.core import Block, Function, Op, Value
from ptokit.ir.dialects import arith, definition_of, memory, scf, sync, system
from ptokit.ir.flow import is_terminator
from ptokit.ir.types import PtrType

# Names that say nothing: numbers of a printer, results of arithmetic, constants by their value.
_UNNAMED = regex(
    r"_?\d+|c(m|neg)?\d+(_\w+)?|chosen\d*|break|continue|return"
    r"|(v|cst|const|addr|true|false|arg|part|view|slot|tile)\d*(_\d+|_[iuf]\d+|_index)*"
)
_FOLDED = (*arith.DEFINITIONS, *system.QUERIES, memory.ADDPTR)
_ASIDE = (scf.IF, scf.EXECUTE, scf.FUSION, sync.CUBE_SECTION, sync.VECTOR_SECTION)


def is_named(value: Value) -> bool:
    """Whether the author has given a value a name."""
    owner = value.owner
    is_query = isinstance(owner, Op) and definition_of(owner) in system.QUERIES
    return not is_query and _UNNAMED.fullmatch(value.name) is None


class Uses:
    """The operations that take each value, those without an effect left out where nobody does."""

    def __init__(self, function: Function) -> None:
        self.users: dict[Value, list[Op]] = {}
        self._block: dict[Op, Block] = {}
        self._owner: dict[Block, Op] = {}
        assert function.body is not None
        self._enter(function.body)
        dead = [op for op in self._block if self._is_idle(op)]
        while dead:
            op = dead.pop()
            for value in op.operands:
                takers = self.users[value]
                if op in takers:
                    takers.remove(op)
                owner = value.owner
                if isinstance(owner, Op) and self._is_idle(owner):
                    dead.append(owner)

    def _enter(self, block: Block) -> None:
        for op in block.ops:
            self._block[op] = block
            for value in op.operands:
                self.users.setdefault(value, []).append(op)
            for region in op.regions:
                self._owner[region] = op
                self._enter(region)

    def _is_idle(self, op: Op) -> bool:
        definition = definition_of(op)
        if definition is None or op.regions or not op.results:
            return False
        is_free = definition.pure or definition.allocates or definition.renames
        return bool(is_free) and not any(self.users.get(r) for r in op.results)

    def is_dead(self, op: Op) -> bool:
        """Whether an operation does nothing but make a value that nobody takes."""
        return self._is_idle(op)

    def count(self, value: Value) -> int:
        return len(self.users.get(value, ()))

    def is_folded(self, op: Op) -> bool:
        """Whether an expression is written where it is taken: once, as often as it is computed."""
        if definition_of(op) not in _FOLDED or self.count(op.result) != 1:
            return False
        if is_named(op.result) and not is_terminator(self.users[op.result][0]):
            return False  # a variable of the author's; what is handed on goes to one
        if not (keeps_type(op.result.type) or isinstance(op.result.type, PtrType)):
            return False
        block = self._block[self.users[op.result][0]]
        while block is not self._block[op]:
            owner = self._owner.get(block)
            if owner is None or definition_of(owner) not in _ASIDE:
                return False
            block = self._block[owner]
        return True
