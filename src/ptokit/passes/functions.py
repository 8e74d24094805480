"""Rules of whole functions and of the pipes between them."""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.diagnostics import Diagnostic
from ptokit.base.tiles import TileSpec
from ptokit.ir.attributes import Attribute, BoolAttr, IntAttr, StringAttr, SymbolAttr
from ptokit.ir.core import Function, Module, Op, Value
from ptokit.ir.dialects import definition_of, fifo
from ptokit.ir.dialects.fifo import IMPORT, RESERVE
from ptokit.ir.dialects.func import CALL
from ptokit.ir.entries import is_entry, is_helper, is_marked, kind_of
from ptokit.ir.fifos import fifo_of, is_transfer, opens_pipe
from ptokit.ir.flow import core_of
from ptokit.ir.ordering import orders_pipes
from ptokit.ir.types import TileBufType
from ptokit.passes.function_attributes import check_function
from ptokit.passes.structure import complaint

_OF_PIPES = frozenset(fifo.DEFINITIONS)


def check_functions(module: Module) -> Iterator[Diagnostic]:
    """Every rule that looks at more than one operation."""
    for function in module.functions:
        yield from _entry(function, module)
        yield from check_function(function)
        if not any(definition_of(op) in _OF_PIPES or is_transfer(op) for op in function.walk()):
            continue
        yield from _kernel_kind(function)
        yield from _reserved(function, module)
        yield from _pops(function)
        yield from _front_end_splits(function)
        yield from _front_end_buffers(function)
        yield from _low_level_pipes(function, module)
    yield from _peer_splits(module)
    yield from _recursion(module)


def _entry(function: Function, module: Module) -> Iterator[Diagnostic]:
    if is_marked(function) and function.body is None:
        yield Diagnostic(
            "entry-body",
            f"the kernel @{function.name} has a body: what makes an entry is only valid on "
            "definitions",
            function.location,
            fix="leave the attribute out of the declaration",
        )
    if is_helper(function):
        yield from _helper(function)
    for param in function.params:
        if isinstance(param.type, TileBufType):
            yield from _stated_sizes(function, param.type.spec)
    if is_entry(function, module) and function.results:
        yield Diagnostic(
            "entry-result",
            f"the kernel @{function.name} must return void",
            function.location,
            (("results", ", ".join(map(str, function.results))),),
            "write results into global memory",
        )


_ANYWHERE = ("SA-0065", "SA-0095")  # what holds of a type wherever it is written


def _stated_sizes(function: Function, spec: TileSpec) -> Iterator[Diagnostic]:
    for broken in spec.violations():
        if broken.code in _ANYWHERE:
            text = f"@{function.name}: {broken.rule}"
            values = tuple((name, str(value)) for name, value in broken.got)
            yield Diagnostic(broken.code, text, function.location, values)


def _helper(function: Function) -> Iterator[Diagnostic]:
    """A helper of a front end is a piece of micro-code: one compound operation to its caller."""
    wrong = [(op, "calls") for op in function.walk() if CALL.matches(op)]
    wrong += [(op, "synchronises pipes") for op in function.walk() if orders_pipes(op)]
    for op, what in wrong:
        text = f"tileop helpers must not do it: @{function.name} {what}"
        yield complaint(op, "tileop-helper", text, fix="do it in the caller")
    if function.results:
        text = f"tileop helpers must not return values: @{function.name} does"
        yield Diagnostic("tileop-helper", text, function.location, fix="write into a tile")


def _recursion(module: Module) -> Iterator[Diagnostic]:
    calls: dict[str, list[tuple[str, Op]]] = {
        f.name: [(_symbol(op.attrs["callee"]), op) for op in f.walk() if CALL.matches(op)]
        for f in module.functions
    }

    def reaches(start: str, goal: str, seen: set[str]) -> bool:
        if start in seen:
            return False
        seen.add(start)
        return any(
            to == goal or reaches(to, goal, seen) for to, _ in calls.get(start, ()) if to in calls
        )

    for name, made in calls.items():
        for callee, op in made:
            if callee == name or reaches(callee, name, set()):
                yield complaint(
                    op,
                    "recursion",
                    f"recursive function calls are not allowed: @{callee} leads back to @{name}",
                )


def _symbol(attr: Attribute | None) -> str:
    return attr.name if isinstance(attr, SymbolAttr) else ""


# ---- pipes of a front end ------------------------------------------------------------------------


def _kernel_kind(function: Function) -> Iterator[Diagnostic]:
    """The ends of a pipe belong to one kind of core each."""
    kind = kind_of(function)
    for op in function.walk():
        wanted = "" if op.regions else core_of(op)
        if wanted and kind != wanted:
            yield complaint(
                op,
                "kernel-kind",
                f"this operation belongs into a {wanted} kernel",
                {"kernel kind": kind or "none given"},
                f"write attributes {{pto.kernel_kind = #pto.kernel_kind<{wanted}>}}",
            )


def _reserved(function: Function, module: Module) -> Iterator[Diagnostic]:
    for op in function.walk():
        if RESERVE.matches(op):
            automatic = op.attrs.get("autoAlloc") == BoolAttr(True)
            if not automatic and "base" not in op.attrs:
                yield complaint(op, "reserved-base", "a buffer with auto = false needs base")
        elif IMPORT.matches(op):
            yield from _imported(op, module)


def _imported(op: Op, module: Module) -> Iterator[Diagnostic]:
    peer = module.function(_symbol(op.attrs.get("peer_func")))
    name = op.attrs.get("name")
    if peer is None:
        yield complaint(op, "peer-function", f"there is no function {op.attrs.get('peer_func')}")
        return
    reserved = [o for o in peer.walk() if RESERVE.matches(o)]
    if not any(o.attrs.get("name") == name for o in reserved):
        have = ", ".join(str(o.attrs.get("name")) for o in reserved) or "none"
        yield complaint(
            op,
            "peer-buffer",
            f"@{peer.name} reserves no buffer {name}",
            {"its buffers": have},
        )


def _pops(function: Function) -> Iterator[Diagnostic]:
    for op in function.walk():
        if not is_transfer(op) or not op.results or not op.operands:
            continue
        type_ = op.result.type
        if isinstance(type_, TileBufType) and not (
            type_.spec.valid_row < 0 and type_.spec.valid_col < 0
        ):
            yield complaint(
                op,
                "pop-valid",
                "a pop with valid operands makes a tile of dynamic validShape (?, ?)",
                {"result": type_.spec},
                "write v_row=?, v_col=? in its type, or leave the operands out",
            )


def _users(function: Function) -> list[Op]:
    """The operations of a front end that move entries through a pipe."""
    return [op for op in function.walk() if is_transfer(op) and core_of(op)]


def _front_end_splits(function: Function) -> Iterator[Diagnostic]:
    """A pipe that says it splits its entries is not used whole."""
    whole = {fifo_of(op) for op in _users(function) if _number(op.attrs.get("split")) == 0}
    for op in function.walk():
        if not opens_pipe(op) or not core_of(op):
            continue
        if op.attrs.get("nosplit") == BoolAttr(False) and fifo_of(op) in whole:
            yield complaint(
                op, "pipe-split", "explicit 'nosplit = false' conflicts with a user of split = 0"
            )


_BUFFERS = ((1, "c2v_consumer_buf"), (2, "v2c_consumer_buf"))  # by the bit of their direction


def _front_end_buffers(function: Function) -> Iterator[Diagnostic]:
    """A pipe names the buffer of the consumer for each direction it has."""
    for op in function.walk():
        if not opens_pipe(op) or not core_of(op):
            continue
        mask = _number(op.attrs.get("dir_mask"))
        for bit, name in _BUFFERS:
            if mask & bit and op.operand(name) is None:
                text = f"a pipe of this direction has a {name}"
                yield complaint(op, "pipe-address", text, {"dir_mask": mask}, f"write {name} = %x")


def _peer_splits(module: Module) -> Iterator[Diagnostic]:
    """Entries are split on both ends of a pipe or on neither."""
    for function in module.functions:
        imports = (o for o in function.walk() if IMPORT.matches(o))
        for name in {_symbol(o.attrs.get("peer_func")): None for o in imports}:
            peer = module.function(name)
            pushed = [o for o in _users(function) if _pushes(o)]
            taken = [] if peer is None else [o for o in _users(peer) if not _pushes(o)]
            for pipe in {fifo_of(o): None for o in pushed}:
                ends = [[o for o in ops if fifo_of(o) == pipe] for ops in (pushed, taken)]
                kinds = [{bool(_number(o.attrs.get("split"))) for o in ops} for ops in ends]
                if all(kinds) and len(kinds[0] | kinds[1]) > 1:
                    yield complaint(
                        ends[1][0],
                        "pipe-split",
                        f"conflicting pipe split usage: @{function.name} and @{name} disagree",
                        {"pushed with split": ends[0][0].attrs.get("split", 0)},
                    )


def _pushes(op: Op) -> bool:
    return op.insn is not None and op.insn.end == "producer"


# ---- pipes as lowering makes them ----------------------------------------------------------------


def _low_level_pipes(function: Function, module: Module) -> Iterator[Diagnostic]:
    for op in function.walk():
        if not opens_pipe(op) or not op.results:
            continue
        yield from _splits(op, function)
        local = op.operand("local_addr")
        assert local is not None
        source = definition_of(local.owner) if isinstance(local.owner, Op) else None
        reserved = source in (RESERVE, IMPORT)
        if "flag_base" not in op.attrs and not reserved:
            yield complaint(
                op,
                "pipe-address",
                "without flag_base, requires local_addr to come from reserve_buffer or "
                "import_reserved_buffer",
            )
        elif reserved:
            yield from _peer(op, local, function, module)


def _splits(op: Op, function: Function) -> Iterator[Diagnostic]:
    users = [o for o in function.walk() if is_transfer(o) and op.result in o.operands]
    splits = {_number(o.attrs.get("split")) for o in users}
    if op.attrs.get("nosplit") == BoolAttr(False) and 0 in splits:
        yield complaint(
            op, "pipe-split", "explicit 'nosplit = false' conflicts with a user of split = 0"
        )
    if 0 in splits and len(splits) > 1:
        yield complaint(op, "pipe-split", "conflicting pipe split usage")


def _number(attr: Attribute | None) -> int:
    return attr.value if isinstance(attr, IntAttr) else 0


def _buffer_name(value: Value) -> Attribute | None:
    return value.owner.attrs.get("name") if isinstance(value.owner, Op) else None


def _peer(op: Op, local: Value, function: Function, module: Module) -> Iterator[Diagnostic]:
    """Both ends of a shared buffer make the pipe, and agree how entries are split."""
    name = _buffer_name(local)
    others = [
        (f, o)
        for f in module.functions
        if f is not function
        for o in f.walk()
        if opens_pipe(o) and o.results and name in {_buffer_name(v) for v in o.operands}
    ]
    if not others:
        shown = name.value if isinstance(name, StringAttr) else "?"
        yield complaint(
            op, "pipe-peer", f"buffer {shown!r} needs a complete peer init pair, one per function"
        )
        return
    for peer, other in others:
        mine, theirs = _split_kind(op, function), _split_kind(other, peer)
        if mine is not None and theirs is not None and mine != theirs:
            yield complaint(
                op,
                "pipe-split",
                f"conflicting pipe split usage: @{function.name} and @{peer.name} disagree",
            )


def _split_kind(op: Op, function: Function) -> bool | None:
    """Whether the users of a pipe split its entries; None when it has no users."""
    users = [o for o in function.walk() if is_transfer(o) and op.result in o.operands]
    return any(_number(o.attrs.get("split")) for o in users) if users else None
