"""Several modules in one program: what they inherit, and whose functions they mean.

A module in a module is a compilation unit. Its functions have names of their own: one with a body
is exported unless it is `private`, and one without is an import of what another unit exports. Here
the units become one program, in which no two definitions share a name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ptokit.ir.attributes import StringAttr, SymbolAttr
from ptokit.ir.core import Function, Module, Op, Unit
from ptokit.ir.reader import Reader
from ptokit.ir.typetext import suggestion

_OF_FUNCTIONS = ("pto.kernel_kind",)  # a module says it for those of its functions that do not
_BACK_ENDS = ("emitc", "vpto")  # of the compiler that a module is for; it means the same here
_OF_PROGRAMS = ("pto.target_arch", "pto.device-spec")  # a program has one, whoever says it


def link(reader: Reader, module: Module, modules: list[Unit]) -> None:
    """Make one program of the modules of a file; `modules` are the outermost."""
    if len(modules) == 1:  # what is written around all others is the program itself
        (outer,) = modules
        module.attrs.update(outer.attrs)
        for function in module.functions:
            function.unit = None if function.unit is outer else function.unit
    units = list(dict.fromkeys(f.unit for f in module.functions))
    for unit in units:
        if unit is not None:  # an inner module has what the outer one says without saying it
            unit.attrs = {k: v for k, v in unit.attrs.items() if module.attrs.get(k) != v}
    _inherit(reader, module, [u for u in units if u is not None])
    if len(units) > 1:
        _Names(reader, module).settle()


def _inherit(reader: Reader, module: Module, units: list[Unit]) -> None:
    for key in _OF_PROGRAMS:
        said = {str(u.attrs[key]): u.attrs[key] for u in units if key in u.attrs}
        if len(said) > 1:
            reader.note(
                "not-supported",
                f"the modules of a program have one {key}, not {' and '.join(said)}",
                module.location,
                "cut the file into one for each",
            )
        elif said:
            module.attrs[key] = next(iter(said.values()))
    for attrs in (module.attrs, *(u.attrs for u in units)):
        backend = attrs.get("pto.backend", StringAttr(_BACK_ENDS[0]))
        if not isinstance(backend, StringAttr) or backend.value not in _BACK_ENDS:
            what = f"there is no back end {backend}"
            fix = suggestion(str(backend), _BACK_ENDS) or f"one of {', '.join(_BACK_ENDS)}"
            reader.note("bad-attribute", what, module.location, fix)
    for function in module.functions:
        own = function.unit.attrs if function.unit else {}
        for key in _OF_FUNCTIONS:
            found = own.get(key, module.attrs.get(key))
            if found is not None:
                function.attrs.setdefault(key, found)


class _Names:
    """Whose function a name is, in each unit."""

    def __init__(self, reader: Reader, module: Module) -> None:
        self._reader = reader
        self._functions = module.functions
        self._own = {(f.unit, f.name): f for f in module.functions}
        self._defined: defaultdict[str, list[Function]] = defaultdict(list)
        for function in module.functions:
            if function.body is not None:
                self._defined[function.name].append(function)

    def settle(self) -> None:
        """Give definitions names of their own, and everyone the names of those they mean."""
        renamed = dict(self._unique())
        meant = {(u, n): self._meant(u, n, f) for (u, n), f in self._own.items()}
        for function in self._functions:
            for op, key, name in _references(function):
                if (function.unit, name) not in meant:
                    meant[function.unit, name] = self._meant(function.unit, name, op)
                found = meant[function.unit, name]
                if found in renamed:
                    op.attrs[key] = SymbolAttr(renamed[found])
        for (_, name), function in self._own.items():
            found = meant[function.unit, name]
            function.name = renamed.get(found, name) if found else name

    def _unique(self) -> Iterator[tuple[Function, str]]:
        """Those that give their name away: to one that is exported, or to an import of others."""
        taken = {f.name for f in self._functions}
        imported = {f.name for f in self._functions if f.body is None}
        for name, functions in list(self._defined.items()):
            exported = [f for f in functions if not f.is_private]
            kept = exported[:1] or ([] if name in imported else functions[:1])
            for number, function in enumerate((f for f in functions if f not in kept), 1):
                while (new := f"{name}_{number}") in taken:
                    number += 1
                taken.add(new)
                yield function, new

    def _meant(self, unit: Unit | None, name: str, who: Function | Op) -> Function | None:
        """The definition that a name stands for in a unit; None: nobody here has it."""
        own = self._own.get((unit, name))
        if own is not None and own.body is not None:
            return own
        others = [f for f in self._defined[name] if f.unit is not unit]
        found = [f for f in others if not f.is_private]
        if len(found) > 1:
            what = f"@{name} is ambiguous: several modules export it"
            fix = "make all but one of them private"
            self._reader.note("ambiguous-function", what, who.location, fix)
        elif others and not found and isinstance(who, Op):
            what = f"there is no function @{name} here: that of another module is private"
            fix = f"export it: func.func @{name}"
            self._reader.note("unknown-function", what, who.location, fix)
        return found[0] if found else None


def _references(function: Function) -> Iterator[tuple[Op, str, str]]:
    for op in function.walk():
        for key, value in op.attrs.items():
            if isinstance(value, SymbolAttr):
                yield op, key, value.name
