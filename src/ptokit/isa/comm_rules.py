"""What the copies and collectives between devices share: chunks, and the rules said once.

Data crosses from one device to another through a staging tile. A tensor that fits the valid region
of the tile is moved at once; otherwise a window of that size slides over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from ptokit.base.comm_enums import CollEngine
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.tiles import DYNAMIC
from ptokit.isa.load import TLOAD
from ptokit.isa.rules import disjoint, listed, located, must, same_valid
from ptokit.isa.services import Refused, World
from ptokit.isa.spec import Asm, Attr, Operand, Pipe, Rule, Types, View, rule, thing
from ptokit.isa.store import TSTORE

DEVICES = "a2a3 a5"  # those that have a link to others
ENGINE = Attr("engine", CollEngine, CollEngine.AIV, "CCU: the collective unit of A5 moves the data")

STAGES = 3  # event ids that staging tiles use by themselves, between any two of these pipes
PIPES = {"TLOAD": Pipe.MTE2, "TSTORE_VEC": Pipe.MTE3}  # what a copy issues, chunk by chunk

Dims = tuple[int, ...]
ShapeOf = Callable[[Any], Dims]


# ---- chunks --------------------------------------------------------------------------------------


class Chunk(NamedTuple):
    """A part of a tensor: index of its first element, and extents."""

    at: Dims
    shape: Dims

    def below(self, rows: int) -> Chunk:
        """The same part, so many rows further down."""
        return Chunk((*self.at[:3], self.at[3] + rows, self.at[4]), self.shape)


def fits(shape: Dims, vr: int, vc: int) -> bool:
    """Whether a tensor goes through a tile with this valid region at once."""
    return prod(shape[:4]) <= vr and shape[4] <= vc


def chunks(shape: Dims, vr: int, vc: int) -> Iterator[Chunk]:
    """Divide a tensor into parts of at most vr x vc elements, in the order they are moved."""
    if 0 in shape:
        return
    if fits(shape, vr, vc):
        yield Chunk((0, 0, 0, 0, 0), shape)
        return
    d0, d1, d2, d3, d4 = shape
    for i0 in range(d0):
        for i1 in range(d1):
            for i2 in range(d2):
                for r in range(0, d3, vr):
                    for c in range(0, d4, vc):
                        yield Chunk((i0, i1, i2, r, c), (1, 1, 1, min(vr, d3 - r), min(vc, d4 - c)))


# ---- operands ------------------------------------------------------------------------------------


def tensor(name: str, role: str, note: str) -> Operand:
    """A view of global memory, near or far, that is moved in chunks."""
    return Operand(name, role, kinds=("global",), view=View.OBJECT, note=note)


def staging(name: str, note: str = "", optional: bool = False) -> Operand:
    """A Vec tile the data goes through; its contents are lost."""
    return Operand(name, "tmp", view=View.OBJECT, note=note, optional=optional)


def group(role: str, note: str) -> Operand:
    return thing("parallelGroup", role, kind="parallel_group", note=note)


CCU = thing(
    "trigger", "in", kind="ccu_trigger_context", optional=True, note="with CollEngine.CCU only"
)


def staged_text(name: str, fixed: str, tiles: str, ping: str, pong: str) -> Asm:
    """`pto.comm.tput(%dst, %src, buf(%ping, %pong) : T, T, T, T)`: the types in one list."""
    names = fixed.split()
    listed = ", ".join([*(f"%{n}" for n in names), f"{tiles}(%{ping}[?, %{pong}?])"])
    types = ", ".join([*(f"T({n})" for n in names), f"T({ping})[?, T({pong})?]"])
    return Asm(syntax={name.lower(): f"({listed} : {types}) {{}}"}, extents="alike")


def collective_text(
    name: str, fixed: str, ping: str = "stagingTileData", pong: str = "pongTile"
) -> Asm:
    """`pto.comm.tgather(%dst, recv(%ping), group(%p0, %p1) : T, T, T, T) {root = 0 : i32}`."""
    (syntax,) = staged_text(name, fixed, "recv", ping, pong).syntax.values()
    listed, _, types = syntax.removesuffix(") {}").partition(" : ")
    whole = f"{listed}, group(%parallelGroup...) : {types}, T(parallelGroup...)) {{}}"
    return Asm(
        syntax={name.lower(): whole},
        types={"root": "i32"},
        attrs={"op": "reduceOp"},
        extents="static",
    )


def moved_types(name: str, *also: Types) -> Types:
    """The element types that TLOAD and TSTORE take on the devices, and further ones where given."""
    lists = [TLOAD.types[0], TSTORE.types[0], *also]
    allowed = {
        target: frozenset.intersection(*(each.allowed[target] for each in lists))
        for target in DEVICES.split()
    }
    return Types((name,), allowed)


# ---- rules ---------------------------------------------------------------------------------------


def same_type(*names: str, id: str) -> Rule:
    """Nothing is converted on the way."""
    return must(id)(
        f"element types of {listed(names)} are identical",
        lambda o: len({o[n].dtype for n in names if o[n] is not None}) == 1,
        "declare tensors and tiles with one element type",
    )


def same_layout(a: str, b: str, id: str) -> Rule:
    return must(id)(
        f"{a} and {b} have the same layout",
        lambda o: o[a].layout == o[b].layout,
        "declare both tensors with one layout",
    )


def chunk_rules(shape: ShapeOf, view: str, tile: str, *others: str) -> list[Rule]:
    """The staging tile serves the tensor whose extents drive the loop."""

    def whole(o: Any) -> bool:
        return fits(shape(o), o[tile].vr, o[tile].vc)

    def divides(id: str, what: str, static: str, size: str, axis: int) -> Rule:
        def holds(o: Any) -> bool:
            staged = o[tile]
            if whole(o) or getattr(staged, static) == DYNAMIC or not getattr(staged, size):
                return True
            return shape(o)[axis] % getattr(staged, size) == 0

        named = static.title().replace("_", "")
        return must(id, DEVICES)(
            f"a tensor that does not fit {tile} has a multiple of its valid {what}, unless they "
            "are DYNAMIC",
            holds,
            f"declare {named} of the staging tile as DYNAMIC, or choose a divisor of the {what}",
        )

    tiles = (tile, *others)
    return [
        must("CH-1")(
            f"the valid region of {tile} is not empty",
            lambda o: o[tile].vr > 0 and o[tile].vc > 0,
            "the valid region of the staging tile is the size of a chunk",
        ),
        divides("CH-2", "rows", "valid_row", "vr", 3),
        divides("CH-3", "columns", "valid_col", "vc", 4),
        located("Vec", *tiles, id="CH-7", on=DEVICES),
        must("CH-7", DEVICES)(
            f"{tile} is arranged as the tensors are: both ND, both DN or both NZ",
            lambda o: f"{o[view].layout.name}-{o[tile].layout}" in ("ND-ND", "DN-DN", "NZ-NZ"),
            "declare the staging tile with the layout of the tensors",
        ),
    ]


def twin_rules(first: str, *others: str) -> list[Rule]:
    """Tiles that take turns are alike, and apart."""
    tiles = (first, *others)
    return [
        must("PP-1")(
            f"{listed(tiles)} have the same type",
            lambda o: len({o[n].spec for n in tiles if o[n] is not None}) == 1,
            "declare the tiles with one Tile[...] type",
        ),
        disjoint(*tiles, id="PP-2"),
        same_valid(*tiles, id="PP-3"),
    ]


def covers(big: str, shape: ShapeOf, id: str, text: str) -> Rule:
    """One tensor is at least as large as the part that is moved."""
    return must(id)(
        text,
        lambda o: all(have >= need for have, need in zip(o[big].shape, shape(o), strict=True)),
        f"make every extent of {big} at least that large",
    )


def group_rules() -> list[Rule]:
    """What makes a group of ranks."""
    return [
        rule("PG-1", "a group has at least one member", lambda o: o.parallelGroup.nranks > 0),
        must("PG-2")(
            "the root is the index of a member",
            lambda o: 0 <= o.parallelGroup.rootIdx < o.parallelGroup.nranks,
            "ParallelGroup(tensors, root): the root counts from 0 inside the group",
        ),
        must("PG-4")(
            "all members have equal extents and equal strides",
            lambda o: (
                len(set(o.parallelGroup.shapes)) <= 1 and len(set(o.parallelGroup.strides)) <= 1
            ),
            "extents and strides of one member are applied to all",
        ),
    ]


def engine_rules(id: str) -> list[Rule]:
    """Who moves the data."""
    return [
        must(id)(
            "a CcuTriggerContext is given with CollEngine.CCU, and only then",
            lambda o: (o.trigger is not None) == (o.attrs["engine"] == CollEngine.CCU),
            "TREDUCE[CollEngine.CCU](..., trigger), or leave the engine out",
        ),
        must("ccu-target", "a2a3")(
            "this target has no collective unit",
            lambda o: o.attrs["engine"] == CollEngine.AIV,
            "leave the engine out: the vector core moves the data",
        ),
    ]


def stacked(shape: Dims, nranks: int) -> Dims:
    """The extents of all members on top of each other."""
    return (*shape[:3], nranks * shape[3], shape[4])


def only_root(group: Any, world: World, id: str) -> None:
    """Refuse to run on a rank that does not hold the buffer of the root."""
    owner = world.rank_of(group[group.rootIdx])
    if owner is not None and world.rank is not None and owner != world.rank:
        raise Refused(
            id,
            "only the root executes a collective",
            got=[("running on", f"rank {world.rank}"), ("buffer of the root", f"on rank {owner}")],
            fix="call it on the root alone, and tell the others with TNOTIFY",
        )
