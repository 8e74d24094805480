"""What to write instead: of a name that nobody knows, of an operator or a NumPy function on a tile.

Tiles are operands of instructions, not numbers: an expression has no place to put its result. Each
message names the instruction that was meant, with the operands of its first form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from ptokit.base import spelling
from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.entry import is_library, public
from ptokit.base.location import Location, Site, is_ours
from ptokit.isa.spec import INSTRUCTIONS

# Python's operators -> how they are written, and the instruction on tiles.
OPERATORS = {
    "add": ("+", "TADD"),
    "sub": ("-", "TSUB"),
    "mul": ("*", "TMUL"),
    "truediv": ("/", "TDIV"),
    "floordiv": ("//", "TDIV"),
    "mod": ("%", "TREM"),
    "pow": ("**", "TPOW"),
    "matmul": ("@", "TMATMUL"),
    "and": ("&", "TAND"),
    "or": ("|", "TOR"),
    "xor": ("^", "TXOR"),
    "lshift": ("<<", "TSHL"),
    "rshift": (">>", "TSHR"),
    "lt": ("<", "TCMP"),
    "le": ("<=", "TCMP"),
    "gt": (">", "TCMP"),
    "ge": (">=", "TCMP"),
    "neg": ("-", "TNEG"),
    "invert": ("~", "TNOT"),
    "abs": ("abs()", "TABS"),
}
_COMPARISONS = ("lt", "le", "gt", "ge")
_UNARY = ("neg", "invert", "abs")
# NumPy's functions -> the instructions; those called alike (exp, TEXP) are not listed.
FUNCTIONS = {
    "absolute": "TABS",
    "amax": "TROWMAX",
    "amin": "TROWMIN",
    "argmax": "TROWARGMAX",
    "argmin": "TROWARGMIN",
    "astype": "TCVT",
    "bitwise_and": "TAND",
    "bitwise_or": "TOR",
    "bitwise_xor": "TXOR",
    "concatenate": "TCONCAT",
    "divide": "TDIV",
    "dot": "TMATMUL",
    "fmod": "TFMOD",
    "invert": "TNOT",
    "left_shift": "TSHL",
    "max": "TROWMAX",
    "maximum": "TMAX",
    "min": "TROWMIN",
    "minimum": "TMIN",
    "multiply": "TMUL",
    "negative": "TNEG",
    "power": "TPOW",
    "prod": "TROWPROD",
    "reciprocal": "TRECIP",
    "remainder": "TREM",
    "reshape": "TRESHAPE",
    "right_shift": "TSHR",
    "subtract": "TSUB",
    "sum": "TROWSUM",
    "transpose": "TTRANS",
    "where": "TSEL",
}


def call_of(name: str) -> str:
    """How an instruction is called: `TADD(dst, src0, src1)`."""
    return f"{name}({', '.join(INSTRUCTIONS[name].forms[0])})"


def meant(name: str, known: Iterable[str] = ()) -> str:
    """The question after a name that does not exist; empty when nothing is called alike."""
    if name[:1].isupper() and any(hasattr(c, name) for c in NotANumber.__subclasses__()):
        return f"write x.{name}(...): it is a member, not a function"
    words = {*INSTRUCTIONS, *known}
    return spelling.meant(name, words, shown=lambda n: call_of(n) if n in INSTRUCTIONS else n)


def unknown_name(name: str, known: Iterable[str], site: Site | Location) -> PtoError:
    """A kernel uses a name that nothing defines."""
    return fail("unknown-name", f"name {name!r} is not defined", fix=meant(name, known), site=site)


def unknown_attribute(error: AttributeError, site: Site | Location) -> PtoError:
    """A kernel asks something for an attribute that it does not have."""
    message, _, hint = str(error).partition("; ")
    subject, name = error.obj, error.name or ""
    names = [each for each in dir(subject) if each[0] != "_"]
    if isinstance(subject, NotANumber):  # of ours, only what the pages speak of
        names = [*getattr(subject, "attributes", ())] or [n for n in names if n[0].isupper()]
        message = f"{_kind(subject)} has no attribute {name!r}"
        hint = f"it has {', '.join(names)}"
    if not hint or isinstance(subject, NotANumber):  # others know better
        hint = spelling.meant(name, names) or hint
    return fail("unknown-attribute", message, fix=hint, site=site)


def at_the_users_line(error: NameError | AttributeError) -> PtoError | None:
    """The error of a name that a running kernel does not know; None: somebody else's exception."""
    trace = error.__traceback__
    if trace is None or isinstance(error, UnboundLocalError):
        return None
    while trace.tb_next is not None and not _is_question(trace.tb_next.tb_frame):
        trace = trace.tb_next
    frame = trace.tb_frame
    if is_ours(frame) or is_library(frame):
        return None
    site = Site(frame.f_code, trace.tb_lasti)
    if isinstance(error, AttributeError):
        return unknown_attribute(error, site)
    return unknown_name(error.name or "", [*frame.f_locals, *frame.f_globals], site)


def _is_question(frame: FrameType) -> bool:
    """Whether this is an object of ours that is asked for an attribute it does not have."""
    return frame.f_code.co_name == "__getattr__" and is_ours(frame)


def _kind(thing: Any) -> str:
    if getattr(thing, "operand_kind", None) == "pointer":
        return "an array of global memory"
    is_view = getattr(thing, "operand_kind", None) == "global" or hasattr(thing, "pointer")
    return "a view of global memory" if is_view else "a tile"


def _on_tiles(thing: Any, shown: str, name: str, with_number: bool = False) -> PtoError:
    """The error of an operator or a function that was given a tile or a view."""
    what = _kind(thing)
    view = "GlobalTensor(array)" if "array" in what else "view"
    load = "" if what == "a tile" else f"load it into a tile, TLOAD(tile, {view}), then "
    scalar = f"{name}S"
    chosen = scalar if with_number and scalar in INSTRUCTIONS else name
    known = chosen in INSTRUCTIONS
    written = f"write {call_of(chosen)}" if known else "see `ptokit isa` for what there is"
    if "array" in what and shown == "+":
        written += "; ptr(array, offset) is a place inside it"
    return fail(
        "tile-operator",
        f"{shown} does not take {what}: instructions compute, and write the result into a tile",
        fix=f"{load}{written}",
    )


def numpy_function(name: str) -> str:
    """The instruction for a function of NumPy's, whether or not there is one."""
    return FUNCTIONS.get(name, f"T{name.upper()}")


@public
class NotANumber:
    """Whatever is an operand of instructions and must not be computed with in Python."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        number = not all(isinstance(each, NotANumber) for each in inputs)
        raise _on_tiles(self, f"np.{ufunc.__name__}", numpy_function(ufunc.__name__), number)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise _on_tiles(self, f"np.{function.__name__}", numpy_function(function.__name__))

    def __array__(self, *args: Any, **named: Any) -> Any:
        raise fail(
            "tile-operator",
            "this is no array inside a kernel",
            fix="after the launch arrays hold what TSTORE wrote; in `with device(...)` there is "
            "tile.numpy()",
        )

    def __float__(self) -> float:
        raise fail(
            "tile-operator",
            f"{_kind(self)} is not one number",
            fix="tile.GetValue(offset) and load_scalar(array, offset) read one element",
        )

    def __int__(self) -> int:
        return int(float(self))

    def __getitem__(self, index: Any) -> Any:
        raise fail(
            "tile-operator",
            "a tile has no brackets of its own",
            got=[("index", index)],
            fix="GetValue(offset) reads one element, TSUBVIEW and TEXTRACT take a part",
        )


def _operator(name: str, shown: str, instruction: str) -> Callable[..., Any]:
    def refuse(self: Any, *other: Any) -> Any:
        number = bool(other) and not isinstance(other[0], NotANumber)
        raise _on_tiles(self, shown, instruction, number)

    refuse.__name__ = refuse.__qualname__ = name
    return public(refuse)


def _no_len(self: Any) -> int:
    what = _kind(self)
    raise fail(
        "tile-operator",
        f"{what} has no len()",
        fix="tile.GetValidRow() and tile.GetValidCol() are its sizes"
        if what == "a tile"
        else "view.GetShape(dim) is one of its five sizes, GlobalTensorDim.DIM_3 that of the rows",
    )


setattr(NotANumber, "__len__", public(_no_len))  # noqa: B010 - wrapped, unlike other lengths
setattr(NotANumber, "__bool__", lambda self: True)  # noqa: B010 - and none is needed for `if`
for _name, (_shown, _instruction) in OPERATORS.items():
    _forms = [f"__{_name}__"]
    if _name not in _UNARY and _name not in _COMPARISONS:
        _forms.append(f"__r{_name}__")
    for _form in _forms:
        setattr(NotANumber, _form, _operator(_form, _shown, _instruction))
