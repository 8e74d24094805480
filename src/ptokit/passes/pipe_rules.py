"""Rules of FIFOs: openings, transfers, the buffers and the other end they share.

What single instructions demand stands in their records; here is what one end, or both together,
must say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, fail
from ptokit.base.dtypes import bf16, f16, f32, i64, u64
from ptokit.base.enums import BLayout, Direction, LayoutMode_t, SLayout, TileType
from ptokit.base.tiles import DYNAMIC
from ptokit.ir.attributes import BoolAttr, EnumAttr, StringAttr, SymbolAttr
from ptokit.ir.core import Block, Function, Module, Op, Value
from ptokit.ir.dialects import definition_of
from ptokit.ir.dialects.fifo import AIC_PIPE, GM_PIPE, IMPORT, RESERVE
from ptokit.ir.entries import kind_of
from ptokit.ir.fifos import (
    Epilogue,
    entry_of,
    epilogue_of,
    flags_of,
    front_insn,
    is_transfer,
    number_of,
    opens_pipe,
    slots_of,
    split_of,
)
from ptokit.ir.flow import core_of
from ptokit.ir.types import TileBufType, ViewType
from ptokit.isa.binding import SET_QUANT_SCALAR, SET_QUANT_VECTOR
from ptokit.isa.fifos import FLAG_IDS
from ptokit.isa.pipes import TFREE, TPOP, TPUSH
from ptokit.isa.targets import Target
from ptokit.passes.lower_pipes import popped_type
from ptokit.passes.pipe_groups import CONSUMERS, End, Group, buffer_of, flag_bases, groups_of
from ptokit.passes.structure import complaint

Found = Iterator[Diagnostic]


def check_pipes(module: Module, target: Target) -> Found:
    """Every rule of the FIFOs of a program."""
    groups = groups_of(module)
    if not groups and not any(_concerns_pipes(op) for op in module.walk()):
        return
    of_opening = {end.op: group for group in groups for end in group.ends}
    for function in module.functions:
        scene = _Scene(module, function, target, of_opening)
        if function.body is not None:
            yield from _block(function.body, scene, kind_of(function))
    for group in groups:
        yield from _group(group)
    yield from _flags(groups)


def _concerns_pipes(op: Op) -> bool:
    return front_insn(op) is not None or definition_of(op) in (RESERVE, IMPORT) or "id" in op.attrs


@dataclass(frozen=True)
class _Scene:
    """Where rules are asked."""

    module: Module
    function: Function
    target: Target
    groups: dict[Op, Group]

    @property
    def is_direct(self) -> bool:
        return self.target.fifos is not None and self.target.fifos.is_direct

    def openings(self, id: int) -> list[Op]:
        """The pipes of a front end with an id."""
        found = (op for op in self.groups if opens_pipe(op) and not op.results)
        mine = set(self.function.walk())
        return [op for op in found if op in mine and number_of(op, "id") == id]


def _block(block: Block, scene: _Scene, kind: str) -> Found:
    """The operations of a block, inside a kernel or section of a kind."""
    for op in block.ops:
        yield from _op(op, scene, kind, block)
        for region in op.regions:
            yield from _block(region, scene, core_of(op) or kind)


def _op(op: Op, scene: _Scene, kind: str, block: Block) -> Found:
    wanted = "" if op.regions else core_of(op)
    if wanted:
        yield from _side(op, wanted, kind)
    if wanted and wanted != kind:
        return  # nothing else can be said of it
    if RESERVE.matches(op):
        yield from _reserved(op, scene)
    elif IMPORT.matches(op):
        yield from _imported(op, scene)
    elif opens_pipe(op):
        yield from (_low_opening(op) if op.results else _front_opening(op, scene))
    elif front_insn(op) is not None:
        yield from _front_transfer(op, scene, block)
    elif is_transfer(op):
        yield from _low_transfer(op)
    elif op.insn in (SET_QUANT_SCALAR, SET_QUANT_VECTOR) and "id" in op.attrs:
        yield from _scales(op, scene)


def _side(op: Op, wanted: str, kind: str) -> Found:
    """The ends of a pipe belong to one kind of core each."""
    if kind != wanted:
        yield complaint(
            op,
            "kernel-kind",
            f"this operation belongs into a {wanted} kernel or section",
            {"kernel kind": kind or "none given"},
            f"write attributes {{pto.kernel_kind = #pto.kernel_kind<{wanted}>}}",
        )
    yield from _hidden(op)


def _hidden(op: Op) -> Found:
    for key in (key for key in op.attrs if key.lower().replace("_", "") in _HIDDEN):
        text = "front ends do not choose how the fix pipe stores an entry"
        yield complaint(op, "pipe-key", text, {"attribute": key}, "leave it out")


_HIDDEN = frozenset(
    {"stphase", "atomictype", "subblockid", "cliprelumode", "ischannelsplit", "channelsplit"}
)


# ---- buffers -------------------------------------------------------------------------------------


def _name(op: Op) -> str:
    name = op.attrs.get("name")
    return name.value if isinstance(name, StringAttr) else ""


def _peer(op: Op) -> str:
    peer = op.attrs.get("peer_func")
    return peer.name if isinstance(peer, SymbolAttr) else ""


def _reserved(op: Op, scene: _Scene) -> Found:
    if op.attrs.get("autoAlloc") != BoolAttr(True) and "base" not in op.attrs:
        yield complaint(op, "reserved-base", "a buffer with auto = false needs base")
    if number_of(op, "base") < 0 or number_of(op, "size") <= 0:
        got = {"size": number_of(op, "size"), "base": number_of(op, "base")}
        yield complaint(op, "reserved-base", "a buffer has a positive size and base", got)
    location = op.attrs.get("location")
    if not isinstance(location, EnumAttr) or location.value not in ("vec", "mat"):
        text = "a buffer lies in vec, for vector cores, or in mat, for cube cores"
        yield complaint(op, "reserved-base", text, {"location": location})
    same = [o for o in scene.function.walk() if RESERVE.matches(o) and _name(o) == _name(op)]
    if same[0] is not op:
        yield complaint(op, "peer-buffer", f"the name {_name(op)!r} is reserved twice")


def _imported(op: Op, scene: _Scene) -> Found:
    peer, name = scene.module.function(_peer(op)), _name(op)
    if peer is None:
        yield complaint(op, "peer-function", f"there is no function @{_peer(op)}")
        return
    imports = (o for o in scene.function.walk() if IMPORT.matches(o))
    same = [o for o in imports if (_name(o), _peer(o)) == (name, peer.name)]
    if same[0] is not op:
        yield complaint(op, "peer-buffer", f"the buffer {name!r} of @{peer.name} is imported twice")
    reserved = [_name(o) for o in peer.walk() if RESERVE.matches(o)]
    if name not in reserved:
        have = {"its buffers": ", ".join(reserved) or "none"}
        yield complaint(op, "peer-buffer", f'@{peer.name} reserves no buffer "{name}"', have)


# ---- openings ------------------------------------------------------------------------------------


def _numbers(op: Op) -> Found:
    """Direction, sizes and flags of a pipe are numbers that there are."""
    mask = number_of(op, "dir_mask")
    if mask not in (1, 2, 3) and not (op.results and mask in list(Direction)):
        yield complaint(op, "pipe-direction", "dir_mask is 1, 2 or 3", {"dir_mask": mask})
    for key, least in (("id", 0), ("slot_size", 1), ("slot_num", 1), ("local_slot_num", 1)):
        if key in op.attrs and number_of(op, key) < least:
            got = {key: number_of(op, key)}
            yield complaint(op, "pipe-slots", f"{key} is greater than {least - 1}", got)
    if _copies_too_many(op):
        text = f"local_slot_num is less than or equal to slot_num ({slots_of(op)})"
        yield complaint(op, "pipe-slots", text, {"local_slot_num": number_of(op, "local_slot_num")})
    base = number_of(op, "flag_base")
    if base < 0 or base + flags_of(op) > FLAG_IDS:
        text = f"the flags of a pipe fit within {FLAG_IDS} hardware flag ids"
        yield complaint(op, "pipe-flags", text, {"flag_base": base, "flags": flags_of(op)})


def _copies_too_many(op: Op) -> bool:
    return number_of(op, "local_slot_num", 1) > slots_of(op) > 0


def refuse_deeper_copies(module: Module) -> None:
    """Refuse to write as text what only C++ allows: a consumer that keeps more entries than slots.

    A smaller number in its place would let a pop overwrite an entry that is still in use.
    """
    for op in module.walk():
        if opens_pipe(op) and _copies_too_many(op):
            slots, local = slots_of(op), number_of(op, "local_slot_num")
            raise fail(
                "convert-level",
                f"{op.name}: texts have at most as many local slots as slots",
                got=[("SlotNum", slots), ("LocalSlotNum", local)],
                fix=f"TPipe[FlagID, DirType, SlotSize, {slots}, {slots}], or {local} slots",
                site=op.location,
            )


def _front_opening(op: Op, scene: _Scene) -> Found:
    yield from _numbers(op)
    id, mask = number_of(op, "id"), number_of(op, "dir_mask")
    if scene.openings(id)[0] is not op:
        yield complaint(op, "pipe-id", "the id of a pipe is unique in its function", {"id": id})
    sides = {AIC_PIPE.matches(o) for o in scene.function.walk() if opens_pipe(o) and not o.results}
    if len(sides) > 1:
        yield complaint(op, "kernel-kind", "one function opens pipes of one kind of core")
    given = {label for _, label in CONSUMERS if op.operand(label) is not None}
    slot = op.operand("gm_slot_tensor")
    if slot is not None:
        yield from _slot(op, slot, given)
    elif not scene.is_direct and op.operand("gm_slot_buffer") is None:
        text = "the slots of this pipe lie in global memory"
        yield complaint(op, "pipe-address", text, fix="write gm_slot_buffer = %pointer")
    for bit, label in CONSUMERS if given or slot is None else ():
        if mask & bit and label not in given:
            text = f"a pipe of this direction has a {label}"
            yield complaint(op, "pipe-address", text, {"dir_mask": mask}, f"write {label} = %x")
    if "local_slot_num" in op.attrs and (scene.is_direct or not given):
        where = "global memory alone" if not given else f"{scene.target.name}"
        text = f"local_slot_num has no meaning on {where}: there is no copy of the slots"
        yield complaint(op, "pipe-slots", text, fix="leave it out")
    if (epilogue := epilogue_of(op)) is not None:
        yield from _epilogue(op, epilogue, scene)


def _slot(op: Op, slot: Value, given: set[str]) -> Found:
    if op.operand("gm_slot_buffer") is not None:
        text = "the slots of a pipe are a gm_slot_tensor or a gm_slot_buffer, not both"
        yield complaint(op, "pipe-address", text)
    if given and (number_of(op, "dir_mask") != 1 or given != {"c2v_consumer_buf"}):
        text = "tiles go through a gm_slot_tensor in one direction, with a c2v_consumer_buf"
        yield complaint(op, "pipe-address", text, {"dir_mask": number_of(op, "dir_mask")})
    type_ = slot.type
    if isinstance(type_, ViewType) and DYNAMIC not in type_.shape:
        yield from _entry_bytes(op, type_, number_of(op, "slot_size"), is_split=True)


def _entry_bytes(op: Op, view: ViewType, size: int, *, is_split: bool) -> Found:
    """An entry fills a slot; divided between two cores, half of one."""
    kind = view.element.dtype
    need = 0 if kind is None or DYNAMIC in view.shape else prod(view.shape) * kind.bits // 8
    if need and need != size and not (is_split and 2 * need == size):
        text = "slot_size is the bytes of an entry" + ", or twice that where it is divided"
        yield complaint(op, "pipe-entry", text, {"entry": need, "slot_size": size})


def _low_opening(op: Op) -> Found:
    yield from _numbers(op)
    local, peer = op.operand("local_addr"), op.operand("peer_local_addr")
    both = number_of(op, "dir_mask") == Direction.DIR_BOTH
    if GM_PIPE.matches(op) and local is None:
        if "local_slot_num" in op.attrs:
            text = "local_slot_num is the depth of a copy: a pipe without local_addr has none"
            yield complaint(op, "pipe-slots", text, fix="leave it out")
    elif both and peer is None:
        text = "a pipe of both directions has a peer_local_addr"
        yield complaint(op, "pipe-address", text)


# ---- both ends -----------------------------------------------------------------------------------


def _group(group: Group) -> Found:
    """The ends of a FIFO are two, and say the same of it."""
    first = group.ends[0]
    if not first.keys:
        if "flag_base" not in first.op.attrs and first.buffers:
            what = "the buffer of the consumer" if first.is_front else "local_addr"
            text = f"without flag_base, requires {what} to come from reserve_buffer or "
            text += "import_reserved_buffer"
            yield complaint(first.op, "pipe-address", text)
    elif first.buffers and (len(group.ends) != 2 or len(group.functions) != 2):
        names = ", ".join(sorted({name for end in group.ends for _, name, _ in end.keys}))
        text = f"buffer {names!r} needs a complete compatible peer init pair, one per function"
        yield complaint(first.op, "pipe-peer", text, {"openings": len(group.ends)})
    shapes = [_shape(end.op) for end in group.ends]
    for end, shape in zip(group.ends, shapes, strict=True):
        pairs = {key: (shapes[0][key], shape[key]) for key in shape}
        values = {key: f"{a} and {b}" for key, (a, b) in pairs.items() if a != b}
        if values:
            text = "both ends of a pipe agree on its direction and slots"
            yield complaint(end.op, "pipe-peer", text, values)
    yield from _splits(group)


def _shape(op: Op) -> dict[str, Any]:
    return {
        "dir_mask": number_of(op, "dir_mask"),
        "slot_size": number_of(op, "slot_size"),
        "slot_num": slots_of(op),
        "local_slot_num": number_of(op, "local_slot_num", slots_of(op)),
    }


def _splits(group: Group) -> Found:
    """Entries are split on both ends of a pipe or on neither."""
    users = [(end, user) for end in group.ends for user in end.users]
    for end, user in users:
        if (split_of(user) == 0) != (split_of(users[0][1]) == 0):
            where = f"@{users[0][0].function.name} and @{end.function.name}"
            text = f"conflicting pipe split usage: {where} disagree"
            values = {"split": f"{split_of(users[0][1])} and {split_of(user)}"}
            yield complaint(user, "pipe-split", text, values)
            break
    said = {}
    for end in group.ends:
        given = end.op.attrs.get("nosplit")
        if not isinstance(given, BoolAttr):
            continue
        said[given.value] = end
        if any(given.value != (split_of(user) == 0) for user in end.users):
            needs = "0" if not given.value else "1, 2, 3 or 4"
            text = f"explicit 'nosplit = {str(given.value).lower()}' conflicts with a user of split"
            yield complaint(end.op, "pipe-split", f"{text} = {needs}")
    if len(said) > 1:
        yield complaint(said[False].op, "pipe-split", "both ends say the same of nosplit")


def _flags(groups: Iterable[Group]) -> Found:
    """Every FIFO of a function has flags of its own."""
    for group, base in flag_bases(groups).items():
        if base is None:
            op = group.ends[0].op
            text = f"all pipes of a function fit within {FLAG_IDS} hardware flag ids"
            yield complaint(op, "pipe-flags", text, {"flags": flags_of(op)})


# ---- transfers -----------------------------------------------------------------------------------


def _front_transfer(op: Op, scene: _Scene, block: Block) -> Found:
    id, insn = number_of(op, "id"), front_insn(op)
    assert insn is not None
    if id < 0:
        yield complaint(op, "pipe-id", "id is non-negative", {"id": id})
    entry = op.results[0] if op.results else op.operand("entry")
    yield from _lane(op, entry)
    yield from _valid(op, entry)
    found = scene.openings(id)
    if len(found) != 1:
        text = f"this function has no pipe {id}" if not found else f"two pipes have the id {id}"
        yield complaint(op, "pipe-id", text, fix="name a pipe that the function opens")
        return
    opening, order = found[0], list(scene.function.walk())
    if order.index(opening) > order.index(op):
        yield complaint(op, "pipe-id", f"the pipe {id} is opened before it is used")
    is_c2v = (core_of(op) == "cube") == (insn.end == "producer")
    mask = number_of(opening, "dir_mask")
    if not mask & (1 if is_c2v else 2):
        text = f"pipe {id} does not go this way"
        fix = f"open it with dir_mask = {1 if is_c2v else 2} or 3"
        yield complaint(op, "pipe-direction", text, {"dir_mask": mask}, fix)
    slot = opening.operand("gm_slot_tensor")
    has_buffer = any(opening.operand(label) is not None for _, label in CONSUMERS)
    is_odd_pipe = is_c2v and mask == 1 and opening.operand("c2v_consumer_buf") is not None
    backed = slot is not None or (not scene.is_direct and opening.operand("gm_slot_buffer"))
    yield from _split(op, entry, bool(is_odd_pipe and backed), is_c2v)
    if entry is not None and isinstance(entry.type, ViewType):
        yield from _view_entry(op, entry.type, slot, number_of(opening, "slot_size"))
    elif entry is not None and not has_buffer and insn is not TFREE:
        text = "entries of a pipe without the buffer of a consumer are views of its slots"
        yield complaint(op, "pipe-entry", text, {"entry": entry.type})
    if (epilogue := epilogue_of(opening)) is not None and not epilogue.faults:
        yield from _converted(op, entry, epilogue, block)


def _low_transfer(op: Op) -> Found:
    pipe, entry = op.operand("pipe"), entry_of(op)
    opening = pipe.owner if pipe is not None else None
    if not isinstance(opening, Op) or not opens_pipe(opening):
        text = "the pipe comes from initialize_l2l_pipe or initialize_l2g2l_pipe"
        yield complaint(op, "pipe-id", text)
        return
    gm, local = opening.operand("gm_addr"), opening.operand("local_addr")
    is_c2v = number_of(opening, "dir_mask") == Direction.DIR_C2V
    yield from _split(op, entry, is_c2v and gm is not None and local is not None, is_c2v)
    yield from _lane(op, entry)
    view = None if entry is None else entry.type
    if isinstance(view, ViewType) and gm is not None and isinstance(gm.type, ViewType):
        yield from _view_entry(op, view, gm, number_of(opening, "slot_size"))


def _split(op: Op, entry: Value | None, takes_odd: bool, is_c2v: bool) -> Found:
    """How an entry is divided, and whether it can be."""
    split, type_ = split_of(op), None if entry is None else entry.type
    if not 0 <= split <= 4:
        yield complaint(op, "pipe-split", "split is 0, 1, 2, 3 or 4", {"split": split})
        return
    is_odd = split > 2
    if is_odd and (not takes_odd or isinstance(type_, ViewType)):
        text = "odd entries are divided on pipes of tiles to vector cores, through global memory"
        yield complaint(op, "pipe-split", text, {"split": split}, "use split = 1 or 2")
    insn = front_insn(op) or op.insn
    if is_odd and insn is TPOP and op.results and op.operand("valid_row") is None:
        text = "a pop of an odd split says its valid sizes, which differ between the cores"
        yield complaint(op, "pipe-split", text, fix="write tpop_from_aic(%rows, %cols)")
    pushed = insn is TPUSH and is_c2v
    if not split or not pushed or not isinstance(type_, TileBufType | ViewType):
        return
    spec = type_.spec if isinstance(type_, TileBufType) else None
    sizes = type_.shape if isinstance(type_, ViewType) else ()
    if spec is not None:
        sizes = (spec.valid_row, spec.valid_col)
    size = sizes[0 if split in (1, 3) else 1] if len(sizes) == 2 else DYNAMIC
    if size != DYNAMIC and (size % 2 == 1) != is_odd:
        axis = "rows" if split in (1, 3) else "columns"
        text = f"split = {split} divides an {'odd' if is_odd else 'even'} number of valid {axis}"
        yield complaint(op, "pipe-split", text, {axis: size}, f"use split = {(split + 1) % 4 + 1}")


def _lane(op: Op, entry: Value | None) -> Found:
    """`aiv_subblockid` names the vector core whose part of a tile it is."""
    if op.operand("subBlockId") is None or entry is None:
        return
    values = {"split": split_of(op), "entry": entry.type}
    if split_of(op) == 0:
        yield complaint(op, "pipe-lane", "aiv_subblockid names a part of a divided entry", values)
    elif not isinstance(entry.type, TileBufType):
        yield complaint(op, "pipe-lane", "aiv_subblockid is of tiles, not of views", values)
    elif entry.type.spec.loc != TileType.Vec:
        yield complaint(op, "pipe-lane", "aiv_subblockid is of the vector cores", values)


def _valid(op: Op, entry: Value | None) -> Found:
    """Valid sizes that are given are not in the type."""
    if entry is None or op.operand("valid_row") is None:
        return
    if isinstance(entry.type, ViewType):
        yield complaint(
            op, "pop-valid", "a view of a slot has no valid sizes", {"result": entry.type}
        )
    elif isinstance(entry.type, TileBufType):
        spec = entry.type.spec
        if spec.valid_row != DYNAMIC or spec.valid_col != DYNAMIC:
            yield complaint(
                op,
                "pop-valid",
                "a pop with valid operands makes a tile of dynamic validShape (?, ?)",
                {"result": spec},
                "write v_row=?, v_col=? in its type, or leave the operands out",
            )


def _view_entry(op: Op, view: ViewType, slot: Value | None, size: int) -> Found:
    """A view of a slot has the type of the slot."""
    type_ = None if slot is None else slot.type
    if not isinstance(type_, ViewType):
        text = "entries of this pipe are tiles: it has no gm_slot_tensor"
        yield complaint(op, "pipe-entry", text, {"entry": view}, "write gm_slot_tensor = %view")
        return
    pairs = zip(view.shape, type_.shape, strict=False)
    is_same = len(view.shape) == len(type_.shape) and all(
        a == b or DYNAMIC in (a, b) for a, b in pairs
    )
    if view.element != type_.element or not is_same:
        text = "an entry has the element type, rank and dimensions of its slot"
        yield complaint(op, "pipe-entry", text, {"entry": view, "slot": type_})
    else:
        yield from _entry_bytes(op, view, size, is_split=split_of(op) != 0)


# ---- conversion on the way -----------------------------------------------------------------------

_ARRANGED = {
    LayoutMode_t.NZ2ND: (BLayout.RowMajor, SLayout.NoneBox),
    LayoutMode_t.NZ2DN: (BLayout.ColMajor, SLayout.NoneBox),
    LayoutMode_t.NZ2NZ: (BLayout.ColMajor, SLayout.RowMajor),
}
_DIRECT_ONLY = ("qs322bf16", "qf322hif8", "qf322fp8")


def _epilogue(op: Op, epilogue: Epilogue, scene: _Scene) -> Found:
    """A pipe that converts: which it is, the buffer it shares, and its other end."""

    def broken(text: str, values: dict[str, Any] | None = None) -> Diagnostic:
        return complaint(op, "pipe-epilogue", text, values)

    if epilogue.faults:
        values = {"unknown or missing": ", ".join(epilogue.faults)}
        yield broken("acc_push_epilogue has a layout, a quant and a relu that there are", values)
        return
    quant, mask = epilogue.words["quant"], number_of(op, "dir_mask")
    if mask != 1:
        yield broken(
            "a pipe that converts goes from cube to vector: dir_mask = 1", {"dir_mask": mask}
        )
        return
    if op.attrs.get("nosplit") != BoolAttr(True):
        yield broken("a pipe that converts does not divide its entries: nosplit = true")
    if quant.startswith(_DIRECT_ONLY) and not scene.is_direct:
        yield broken(f"{quant} exists on A5 only", {"quant": quant})
    if epilogue.words["layout"] != "nz2nd" and not scene.is_direct:
        yield broken("a pop takes rows out of global memory: layout = nz2nd", dict(epilogue.words))
    buffer = op.operand("c2v_consumer_buf")
    if buffer is None or buffer_of(buffer, scene.function) is None:
        text = "the c2v_consumer_buf of a pipe that converts comes from reserve_buffer or "
        yield broken(text + "import_reserved_buffer")
        return
    if not AIC_PIPE.matches(op) and isinstance(buffer.owner, Op) and IMPORT.matches(buffer.owner):
        yield broken("the consumer reserves its buffer; only the producer imports it")
        return
    others = [end for end in scene.groups[op].ends if end.op is not op]
    if len(others) != 1:
        side = "consumer" if AIC_PIPE.matches(op) else "producer"
        yield broken(f"the peer {side} opens the pipe over the same buffer", {"found": len(others)})
        return
    theirs = epilogue_of(others[0].op)
    if theirs is None or theirs.words != epilogue.words:
        yield broken(
            "both ends have the same acc_push_epilogue",
            {"here": _said(epilogue), "there": "none" if theirs is None else _said(theirs)},
        )
    elif not AIC_PIPE.matches(op):
        yield from _consumed(op, epilogue, scene, others[0], broken)


def _said(epilogue: Epilogue) -> str:
    return ", ".join(epilogue.words.values())


def _consumed(op: Op, epilogue: Epilogue, scene: _Scene, producer: End, broken: Any) -> Found:
    """What the consumer takes out is what the producer has put in."""
    mine = End(op, scene.function)
    popped = [u.results[0].type for u in mine.users if front_insn(u) is TPOP]
    if not popped:
        yield broken("a pipe that converts is popped: pops say the type of its entries")
        return
    tile = popped_type(Group([mine]))
    if tile is None or any(t != tile or str(t) != str(tile) for t in popped):
        yield broken("all pops of a pipe that converts make tiles of one type")
        return
    values: dict[str, Any] = {"popped": tile, "quant": epilogue.words["quant"]}
    for source in [*(epilogue.sources), *_pushed(producer)]:
        if source in epilogue.sources and epilogue.is_popped_as(source, tile):
            break
    else:
        yield broken("the popped element type is that of the quant mode", values)
    for source in _pushed(producer):
        if source in epilogue.sources and not epilogue.is_popped_as(source, tile):
            values |= {"pushed": source.name}
            yield broken("pushed and popped element types are those of the quant mode", values)
    if (tile.spec.blayout, tile.spec.slayout) != _ARRANGED[epilogue.params.LayoutMode] or (
        tile.spec.loc != TileType.Vec
    ):
        yield broken("popped tiles are arranged as layout says", values | dict(epilogue.words))
    for end in (mine, producer):
        if number_of(end.op, "slot_size") < tile.spec.nbytes:
            values = {"slot_size": number_of(end.op, "slot_size"), "needed": tile.spec.nbytes}
            yield broken(f"the slots of @{end.function.name} hold the entry that is popped", values)


def _pushed(producer: End) -> list[Any]:
    found = (u.operand("entry") for u in producer.users if front_insn(u) is TPUSH)
    return [v.type.spec.dtype for v in found if v is not None and isinstance(v.type, TileBufType)]


def _converted(op: Op, entry: Value | None, epilogue: Epilogue, block: Block) -> Found:
    """Transfers of a pipe that converts."""

    def broken(text: str, values: dict[str, Any] | None = None) -> Diagnostic:
        return complaint(op, "pipe-epilogue", text, values)

    if split_of(op) != 0:
        yield broken("a pipe that converts has split = 0", {"split": split_of(op)})
    if front_insn(op) is not TPUSH or entry is None:
        return
    if not isinstance(entry.type, TileBufType) or entry.type.spec.loc != TileType.Acc:
        yield broken("what is converted is an accumulator", {"source": entry.type})
        return
    source = entry.type.spec.dtype
    if source not in epilogue.sources:
        values = {"source": source.name, "quant": epilogue.words["quant"]}
        yield broken("the accumulator has the element type that the quant mode takes", values)
    setter, id = epilogue.setter, number_of(op, "id")
    before = block.ops[: block.ops.index(op)]
    if setter is not None and not any(
        o.insn is setter and "id" in o.attrs and number_of(o, "id") == id for o in before
    ):
        word = "scalar" if setter is SET_QUANT_SCALAR else "vector"
        text = f"a pto.set_quant_{word} with id = {id} comes before it in the same block"
        yield broken(text, {"quant": epilogue.words["quant"]})


def _scales(op: Op, scene: _Scene) -> Found:
    """`set_quant_*` of a pipe: one that takes such scales."""

    def broken(text: str, values: dict[str, Any] | None = None) -> Diagnostic:
        return complaint(op, "pipe-scales", text, values)

    yield from _hidden(op)
    id = number_of(op, "id")
    found = scene.openings(id)
    epilogue = epilogue_of(found[0]) if len(found) == 1 else None
    if epilogue is None or not AIC_PIPE.matches(found[0]) or epilogue.faults:
        yield broken(f"pipe {id} of this function is the producer of a pipe that converts")
        return
    if epilogue.setter is not op.insn:
        yield broken(f"pipe {id} does not take such scales", {"quant": epilogue.words["quant"]})
    type_ = op.operands[0].type
    if op.insn is SET_QUANT_SCALAR:
        if str(type_) != "f32":
            yield broken("the scale is an f32", {"scale": type_})
        return
    if not isinstance(type_, TileBufType) or type_.spec.loc != TileType.Scaling:
        yield broken("the scales lie in a tile of loc=scaling", {"scales": type_})
        return
    words = (f16, bf16, f32) if scene.is_direct else (i64, u64)
    if type_.spec.dtype not in words:
        names = "f16, bf16 or f32" if scene.is_direct else "packed i64 or ui64"
        yield broken(f"the scales are {names} on this target", {"scales": type_.spec.dtype.name})
