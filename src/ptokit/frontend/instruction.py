"""From a call to a record: how `TSTORE[AtomicType.AtomicAdd](g, tile, event)` reaches the machine.

Template arguments go in brackets and are matched by their type; type arguments may be given, are
then checked against the operands, and may be left out. The operands follow in the order of the
page, wait events last. Which overload is meant follows from the number and kind of the operands.
Operands behind the first ones, and template arguments, may be given by their names instead.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from typing import Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import InternalError, PtoError, fail
from ptokit.base.dtypes import DType
from ptokit.base.entry import hide_frames, public
from ptokit.base.location import Site, is_ours
from ptokit.frontend.arguments import unknown_names
from ptokit.frontend.events import RecordEvent, Waitable, not_an_event
from ptokit.frontend.session import current
from ptokit.isa.effects import Pipe
from ptokit.isa.facts import shown
from ptokit.isa.spec import INSTRUCTIONS, Attr, Insn, Operand
from ptokit.isa.words import DECLARED, OVERLOAD, enumerations_of
from ptokit.machine.calls import NUMBERS
from ptokit.machine.foreign import as_number, carries_array
from ptokit.machine.objects import ConvObject, GlobalObject, Pointer, TileObject, pointer


class Operation:
    """What a kernel calls so that something is done: an instruction, or what it consists of."""

    __slots__ = ()

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise NotImplementedError


class Instruction(Operation):
    """One instruction of the API. Calling it runs it on the machine in force."""

    def __init__(self, insn: Insn) -> None:
        self.insn = insn
        self._defaults = tuple(a.default for a in insn.attrs)
        self._arity = len(insn.operands)
        # One form without scalars needs no matching: the operands are the arguments.
        self._plain = len(insn.forms) == 1 and all(
            o.kinds in (("tile",), ("tile", "conv")) for o in insn.operands
        )
        # Argument types seen before that need no matching, and the operands they leave out.
        self._matched: dict[tuple[type, ...], tuple[None, ...]] = {}

    @classmethod
    def named(cls, name: str) -> Instruction:
        """The instruction of a name, whose record loads when something is asked of it."""
        found = cls.__new__(cls)
        vars(found)["_name"] = name
        return found

    @property
    def __name__(self) -> str:
        return self.insn.name

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return self.insn.doc

    @public
    def __getitem__(self, given: Any) -> Specialised:
        args = given if isinstance(given, tuple) else (given,)
        # Of the records called by one name, the first with a parameter for every argument.
        for insn in (self.insn, *INSTRUCTIONS.called(OVERLOAD, self.insn.name)):
            attrs, types, refused = _template(insn, args)
            if not refused:
                chosen = self if insn is self.insn else Instruction(insn)
                return Specialised(chosen, attrs, types)
        raise _no_parameter(self.insn, args)

    def __call__(self, *args: Any, **named: Any) -> RecordEvent:
        """Run the instruction: operands in page order, then any wait events."""
        try:
            if named:
                return self.call(*_by_name(self.insn, args, self._defaults, named), ())
            if self._plain and len(args) == self._arity:
                return self.execute(args, self._defaults)
            left_out = self._matched.get(tuple(map(type, args)))
            if left_out is not None:
                return self.execute(args + left_out, self._defaults)
            return self.call(args, self._defaults, ())
        except PtoError as error:
            hide_frames(error)
            raise

    def call(
        self, args: tuple[Any, ...], attrs: tuple[Any, ...], types: tuple[Any, ...]
    ) -> RecordEvent:
        """Match arguments to an overload, wait for the events, and run."""
        count = len(args)
        while count and isinstance(args[count - 1], Waitable):
            count -= 1
        if count and isinstance(args[count - 1], RecordEvent):
            raise not_an_event(self.insn.name, args[count - 1])
        given = args[:count]
        left_out = self._matched.get(tuple(map(type, given))) if attrs is self._defaults else None
        if left_out is not None:
            operands = given + left_out
        else:
            given, attrs = _run_time_modes(self.insn, given, attrs)
            operands = _match(self.insn, given, attrs)
            if attrs is self._defaults:
                self._remember(given, operands)
        _check_types(self.insn, types, operands)
        for event in args[count:]:
            event.precede(self.insn)
        return self.execute(operands, attrs)

    def _remember(self, args: tuple[Any, ...], operands: tuple[Any, ...]) -> None:
        """Note arguments that are the operands already: tiles, tensors, numbers, in order."""
        left_out = operands[len(args) :]
        if (
            all(isinstance(a, TileObject | ConvObject | GlobalObject | int | float) for a in args)
            and all(a is o for a, o in zip(args, operands, strict=False))
            and not any(o is not None for o in left_out)
        ):
            self._matched[tuple(map(type, args))] = left_out

    def execute(self, operands: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Run with operands in record order; give back its value, if it has one, or its event."""
        frame = sys._getframe(2)
        while is_ours(frame) and frame.f_back is not None:
            frame = frame.f_back
        site = Site(frame.f_code, frame.f_lasti)
        machine = current()
        try:
            value = machine.execute(self.insn, operands, attrs, site)
        except Exception as error:
            if not isinstance(error, PtoError) or isinstance(error, InternalError):
                check_operands(self.insn, operands, error)
            raise
        if value is None:
            return RecordEvent(self.insn, self.insn.pipe, site)
        # A float of the device is an f32, also while the kernel goes on computing with it.
        return np.float32(value) if isinstance(value, float) else value

    @public
    def __getattr__(self, name: str) -> Any:
        """The helper functions of the record: `TTRANS.tmp_bytes(dst, src)`."""
        own = vars(self)
        if "insn" not in own and "_name" in own:
            self.__init__(INSTRUCTIONS[own["_name"]])
            return getattr(self, name)
        helper = own["insn"].helpers.get(name) if "insn" in own else None
        if helper is None:
            raise AttributeError(f"{self!r} has no helper {name!r}")
        return public(helper)

    def __repr__(self) -> str:
        return f"<instruction {self.insn.name}>"


@dataclass(slots=True, eq=False)
class Specialised(Operation):
    """An instruction with its template arguments given."""

    _instruction: Instruction
    _attrs: tuple[Any, ...]
    _types: tuple[Any, ...]

    def __call__(self, *args: Any, **named: Any) -> RecordEvent:
        """Run the instruction with these template arguments."""
        try:
            attrs = self._attrs
            if named:
                args, attrs = _by_name(self._instruction.insn, args, attrs, named)
            return self._instruction.call(args, attrs, self._types)
        except PtoError as error:
            hide_frames(error)
            raise


def resolved(
    insn: Insn, template: tuple[Any, ...], args: tuple[Any, ...]
) -> tuple[Insn, tuple[Any, ...], tuple[Any, ...]]:
    """The record that a call means, with its operands and template arguments in record order."""
    if template:
        chosen = Instruction(insn)[template]
        insn, attrs = chosen._instruction.insn, chosen._attrs
    else:
        attrs = tuple(a.default for a in insn.attrs)
    given, attrs = _run_time_modes(insn, args, attrs)
    return insn, _match(insn, given, attrs), attrs


@cache
def namespace(name: str = "") -> Mapping[str, Instruction]:
    """The instructions of a C++ namespace by the name they have inside it, sorted."""
    found: dict[str, Instruction] = {}
    for full in sorted(INSTRUCTIONS):
        space, _, own = full.rpartition(".")
        if space == name:
            found[own] = Instruction.named(full)
    return found


def own_enumerations() -> Mapping[str, type[IntEnum]]:
    """The enumerations that are declared beside their instruction, by name."""
    return {
        kind.__name__: kind
        for name in sorted(INSTRUCTIONS.words(DECLARED))
        for kind in enumerations_of(INSTRUCTIONS.called(DECLARED, name)[0])
        if kind.__name__ == name
    }


# ---- template arguments ------------------------------------------------------------------------


def _template(insn: Insn, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], ...]:
    """Split bracket arguments: values of all template parameters, type arguments, and others."""
    values: dict[str, Any] = {a.name: a.default for a in insn.attrs}
    free = list(insn.attrs)
    types: list[Any] = []
    refused: list[Any] = []
    for arg in args:
        attr = next((a for a in free if _fits(a, arg)), None)
        if attr is not None:
            free.remove(attr)
            converts = attr.type is bool or isinstance(arg, attr.also)
            values[attr.name] = attr.type(arg) if converts else arg
        else:
            (types if isinstance(arg, (type, DType)) else refused).append(arg)
    return tuple(values.values()), tuple(types), tuple(refused)


def _no_parameter(insn: Insn, args: tuple[Any, ...]) -> PtoError:
    listed = ", ".join(f"{a.name}: {a.type.__name__}" for a in insn.attrs)
    has = f"template parameters: {listed}" if listed else f"{insn.name} takes no template arguments"
    return fail(
        f"{insn.name}.template",
        f"{insn.name} has no template parameter for this argument",
        got=[("argument", shown(_template(insn, args)[2][0]))],
        fix=has,
    )


def _fits(attr: Attr, value: Any) -> bool:
    """Whether a bracket argument is meant for a parameter; flags may be written 0 and 1."""
    if not isinstance(value, int | np.integer | np.bool_ | attr.type):
        return False
    if attr.choices and value not in attr.choices:
        return False
    if isinstance(value, IntEnum):  # an IntEnum is an int, but never meant as a plain one
        return issubclass(attr.type, IntEnum) and isinstance(value, (attr.type, *attr.also))
    if issubclass(attr.type, IntEnum | DType):
        return isinstance(value, attr.type)
    if attr.type is bool:
        return isinstance(value, bool) or value in (0, 1)
    if attr.type is not int:
        return isinstance(value, attr.type)
    return isinstance(value, int) and not isinstance(value, bool)


def _check_types(insn: Insn, types: tuple[Any, ...], operands: tuple[Any, ...]) -> None:
    """Type arguments, where given, must be the types of operands of the call."""
    for kind in types:
        if isinstance(kind, DType) or any(isinstance(o, kind) for o in operands):
            continue
        raise fail(
            f"{insn.name}.type-argument",
            f"{insn.name}: a type argument in brackets is the type of one of the operands",
            got=[("type argument", kind.__name__)],
            fix="leave the type arguments out, or give those of the operands",
        )


def _run_time_modes(
    insn: Insn, args: tuple[Any, ...], attrs: tuple[Any, ...]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Take modes given as arguments, as in `TCMP(dst, a, b, CmpMode.LT)`, out of the operands."""
    for index, attr in enumerate(insn.attrs):
        if attr.argument and attr.type is bool and args and isinstance(args[-1], bool):
            args, attrs = args[:-1], (*attrs[:index], args[-1], *attrs[index + 1 :])
    kinds = [a.type for a in insn.attrs if issubclass(a.type, IntEnum)]
    modes = [a for a in args if isinstance(a, IntEnum) and type(a) in kinds]
    if not modes:
        return args, attrs
    given = {type(mode): mode for mode in modes}
    operands = tuple(a for a in args if not any(a is mode for mode in modes))
    values = zip(insn.attrs, attrs, strict=True)
    return operands, tuple(given.get(attr.type, value) for attr, value in values)


# ---- operands ----------------------------------------------------------------------------------


def _match(insn: Insn, args: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Find the overload that takes these arguments and lay them out in record order."""
    named = {a.name: value for a, value in zip(insn.attrs, attrs, strict=True)}
    for values in (args, _spread(args)):
        for form in insn.forms:
            if len(form) != len(values) or not insn.takes(form, named):
                continue
            declared = [insn.operand(name) for name in form]
            if all(_accepts(o, a) for o, a in zip(declared, values, strict=True)):
                given = {o.name: _converted(o, a) for o, a in zip(declared, values, strict=True)}
                return tuple(given.get(o.name) for o in insn.operands)
    raise _no_overload(insn, args)


def _spread(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Put the numbers of an array argument, such as the key of TRANDOM, in its place."""
    spread = [isinstance(a, list | tuple) or (isinstance(a, np.ndarray) and a.ndim) for a in args]
    parts = [a if several else (a,) for a, several in zip(args, spread, strict=True)]
    return tuple(each for part in parts for each in part)


def _accepts(operand: Operand, value: Any) -> bool:
    if operand.space and getattr(getattr(value, "spec", None), "loc", None) is not None:
        return value.spec.loc.name == operand.space
    kind = kind_of(value)
    return kind in operand.kinds or (kind == "scalar" and operand.takes is not None)


def kind_of(value: Any) -> str:
    """The operand kind of a run-time value."""
    if isinstance(value, TileObject):
        return "tile"
    if isinstance(value, GlobalObject):
        return "global"
    if isinstance(value, ConvObject):
        return "conv"
    if isinstance(value, int | float | np.integer | np.floating | np.bool_):
        return "object" if isinstance(value, np.timedelta64) else "scalar"
    if isinstance(value, Pointer) or carries_array(value):
        return "pointer" if getattr(value, "shape", None) != () else "scalar"
    return getattr(value, "operand_kind", "object")  # symbols of a kernel being lowered


def plain_number(value: Any, name: str = "the number") -> Any:
    """A number of Python's own, for one of NumPy's or in an array; a symbol stays what it is."""
    value = as_number(value, name)
    if isinstance(value, np.generic):
        value = value.item()
    return _plain(value) if isinstance(value, int | float | np.floating) else value


def _converted(operand: Operand, value: Any) -> Any:
    if isinstance(value, TileObject | GlobalObject):
        return value
    if isinstance(value, Pipe) and "pipe" in operand.kinds:
        return value
    value = plain_number(value, operand.name)
    if isinstance(value, int | float):
        return value
    if "pointer" in operand.kinds and kind_of(value) == "pointer":
        return value if hasattr(value, "operand_kind") else pointer(value)
    return value


def _plain(number: Any) -> Any:
    """A number of Python's own, for one of a subclass or of a type that is wider than its float."""
    if type(number) in NUMBERS:
        return number
    return int(number) if isinstance(number, int) else float(number)


def _no_overload(insn: Insn, args: tuple[Any, ...]) -> PtoError:
    forms = " | ".join(f"{insn.name}({', '.join(form)})" for form in insn.forms)
    described = ", ".join(map(_described, args))
    kinds = ", ".join(f"{o.name}: {'/'.join(map(_class_of, o.kinds))}" for o in insn.operands)
    fitting = (f for f in insn.forms if len(f) == len(args))
    pairs = ((insn.operand(n), a) for f in fitting for n, a in zip(f, args, strict=True))
    refused = [o.refused for o, a in pairs if o.refused and not _accepts(o, a)]
    return fail(
        refused[0] if refused else f"{insn.name}.operands",
        f"no form of {insn.name} takes these operands",
        got=[("operands", described or "none")],
        fix=_hint(insn, args) + f"{forms}, then wait events; kinds: {kinds}",
    )


def _class_of(kind: str) -> str:
    """A kind of operand in a message: handles go by the name of their class."""
    return kind.title().replace("_", "") if "_" in kind else kind


def _described(value: Any) -> str:
    """What an operand is, in the same words whether it runs or is lowered."""
    if isinstance(value, type):
        return f"the type {value.__name__}"
    kind, spec = kind_of(value), getattr(value, "spec", None)
    if spec is not None:
        return f"{kind} ({spec})"
    if kind == "pointer":
        element = getattr(value, "dtype", None)
        return f"array ({element.np if isinstance(element, DType) else element})"
    if kind == "scalar":
        return f"number ({shown(value)})" if isinstance(value, int | float) else "number"
    return f"{kind} ({type(value).__name__})"


def _hint(insn: Insn, args: tuple[Any, ...]) -> str:
    """What is most likely meant where the mistake is a common one."""
    if any(isinstance(a, type) and issubclass(a, TileObject | ConvObject) for a in args):
        return "a tile is made by calling its type, tile = TileT(); "
    if any(isinstance(a, type) and issubclass(a, Waitable) for a in args):
        return "an event is made by calling its type, e = Event[Op.TLOAD, Op.TADD](); "
    kinds = [kind_of(a) for a in args]
    if "pointer" in kinds and any("global" in o.kinds for o in insn.operands):
        return "an array is global memory once it is wrapped: GlobalTensor(array); "
    if kinds[-1:] == ["scalar"] and any(len(form) == len(args) - 1 for form in insn.forms):
        return "a number is no wait event: an event is, e = Event[Op.TLOAD, Op.TADD](TLOAD(...)); "
    twin = INSTRUCTIONS.get(f"{insn.name}S")  # the same with a number in place of a tile
    if twin is not None and "scalar" in kinds and any(len(f) == len(args) for f in twin.forms):
        return f"with a number it is {twin.name}({', '.join(twin.forms[0])}); "
    return ""


def _by_name(
    insn: Insn, args: tuple[Any, ...], attrs: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Put arguments given by name in their places: operands in the order of a form, wait events
    behind them, template arguments among the others."""
    forms = " | ".join(f"{insn.name}({', '.join(form)})" for form in insn.forms)
    rest, template = dict(named), list(attrs)
    for place, attr in enumerate(insn.attrs):
        if attr.name in rest:
            value = rest.pop(attr.name)
            if not _fits(attr, value):
                raise _no_parameter(insn, (value,))
            template[place] = bool(value) if attr.type is bool else value
    count = len(args)
    while count and isinstance(args[count - 1], Waitable):
        count -= 1
    for form in insn.forms:
        if set(form[count:]) == set(rest) and len(form) == count + len(rest):
            given = (*args[:count], *(rest[name] for name in form[count:]), *args[count:])
            return given, tuple(template)
    names = [o.name for o in insn.operands] + [a.name for a in insn.attrs]
    raise unknown_names(insn.name, rest, names, forms)


def check_operands(insn: Insn, operands: tuple[Any, ...], error: Exception | None = None) -> None:
    """Refuse operands of the wrong kind.

    Calls with one form of tiles alone are not matched before they run: what they stumble over
    becomes a sentence about the operand here.
    """
    for declared, value in zip(insn.operands, operands, strict=True):
        left_out = value is None and any(declared.name not in form for form in insn.forms)
        if not left_out and not _accepts(declared, value):
            raise _no_overload(insn, operands) from error
