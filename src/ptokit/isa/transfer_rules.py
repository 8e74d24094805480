"""The rules of the data paths that TMOV, TEXTRACT and TINSERT share, each said once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ptokit.base.dtypes import DType, dtype
from ptokit.base.enums import AccToVecMode, Layout, ReluPreMode, TileType
from ptokit.base.tiles import BLOCK_BYTES
from ptokit.isa.fixpipe import is_accumulator, tile_conversions
from ptokit.isa.rules import DEVICES, NOT_A2A3
from ptokit.isa.spec import Rule, rule
from ptokit.isa.transfer import DUAL, c0, is_plain, is_row, path

CUBE = "Mat>Left Mat>Right"
Unit = int | Callable[[Any], int]  # a size, or one that depends on the tile's element type


def along(paths: str, rules: Iterable[Rule]) -> list[Rule]:
    """Restrict rules to some paths."""
    allowed = tuple(paths.split())

    def narrowed(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
        return lambda o: path(o) not in allowed or holds(o)

    return [replace(each, holds=narrowed(each.holds)) for each in rules]


def paths_exist(id: str, paths: str, on: str) -> Rule:
    """The target can move data between these two spaces."""
    allowed = tuple(paths.split())
    return rule(
        id,
        f"data moves along one of {', '.join(allowed)}",
        lambda o: path(o) in allowed,
        on,
        "move the data in two steps, through a space that both paths share",
    )


def holds_type(id: str, kinds: str, on: str, what: str) -> Rule:
    """The destination has one of these element types on the path `what` describes."""
    allowed: tuple[DType, ...] = tuple(dtype(kind) for kind in kinds.split())
    return rule(
        id,
        f"the element type {what} is one of {kinds}",
        lambda o: o.dst.dtype in allowed,
        on,
    )


def same_type(id: str, on: str | None = None) -> Rule:
    """Only the fix pipe converts."""
    return rule(
        id,
        "src and dst have the same element type unless src is an accumulator",
        lambda o: is_accumulator(o) or o.src.dtype is o.dst.dtype,
        on,
        "declare both tiles with one element type, or convert with TCVT first",
    )


# ---- accumulators ------------------------------------------------------------------------------


def needs_accumulator(id: str, on: str, words: str) -> Rule:
    """Quantisation and ReLU happen in the fix pipe, which drains accumulators."""
    names = tuple(words.split())
    return rule(
        id,
        "a quantisation word, ReLU or a receiving vector core needs an accumulator as src",
        lambda o: (
            (
                all(o[name] is None for name in names)
                and o.attrs["reluPreMode"] == ReluPreMode.NoRelu
                and o.attrs["accToVecMode"] is None
            )
            or o.src.loc == TileType.Acc
        ),
        on,
        "leave them out, or move from an Acc tile",
    )


def fp_rules(column: Callable[[Any], int], columns: Callable[[Any], int]) -> list[Rule]:
    """The quantisation vector: `columns` words from `column` on, in the Scaling space."""
    return [
        rule(
            "SA-0052",
            "fp is a Scaling tile",
            lambda o: o.fp is None or o.fp.loc == TileType.Scaling,
            fix="bring the words over with TMOV from a Mat tile",
        ),
        rule(
            "fp-words",
            "fp holds a 64-bit word for every column",
            lambda o: o.fp is None or (o.fp.itemsize == 8 and column(o) + columns(o) <= o.fp.cols),
            fix="declare fp as a uint64 tile of one row with as many columns as the source",
        ),
        rule(
            "fp-alignment",
            "the first word used lies at a multiple of 128 bytes",
            lambda o: (
                o.fp is None or (0 if o.mode == "auto" else o.fp.addr) % 128 + column(o) % 16 == 0
            ),
            DEVICES,
            "bind fp to a multiple of 128; window columns start at multiples of 16",
        ),
    ]


def drain_rules(words: str) -> list[Rule]:
    """Every move out of an accumulator; `words` names the quantisation operands."""

    def drained(id: str, text: str, holds: Callable[[Any], bool], on: str, fix: str = "") -> Rule:
        return rule(id, text, lambda o: not is_accumulator(o) or holds(o), on, fix)

    def line(o: Any) -> int:
        return (o.dst.rows if o.dst.layout == "DN" else o.dst.cols) * o.dst.itemsize

    return [
        drained("SA-0107", "the accumulator is NZ", lambda o: o.src.layout == "NZ", DEVICES),
        *tile_conversions(words),
        drained(
            "SA-0014",
            "an accumulator moves to a Mat tile",
            lambda o: o.dst.loc == TileType.Mat,
            "a2a3",
            "store it to global memory with TSTORE, or move it to a Mat tile",
        ),
        drained(
            "SA-0029",
            "the Mat tile that takes an accumulator is NZ",
            lambda o: o.dst.layout == "NZ",
            "a2a3",
        ),
        drained(
            "SA-0013",
            "the Mat tile that takes an accumulator has boxes of 512 bytes",
            lambda o: o.dst.fractal == 512,
            "a2a3",
        ),
        drained(
            "SA-0031",
            "rows of the Mat tile that takes an accumulator are whole 32-byte blocks",
            lambda o: o.dst.cols > 0 and o.dst.cols * o.dst.itemsize % BLOCK_BYTES == 0,
            "a2a3",
        ),
        drained(
            "SA-0088",
            "the tile that takes an accumulator is ND, DN or NZ",
            lambda o: o.dst.layout in ("ND", "DN", "NZ"),
            "a5 kirin9030",
        ),
        drained(
            "dst-layout",
            "the tile that takes an accumulator is ND or NZ",
            lambda o: o.dst.layout in ("ND", "NZ"),
            "kirinx90",
        ),
        drained(
            "SA-0030",
            "lines of the tile that takes an accumulator (columns of a DN tile, otherwise rows) "
            "are whole 32-byte blocks",
            lambda o: line(o) > 0 and line(o) % BLOCK_BYTES == 0,
            NOT_A2A3,
        ),
    ]


def mode_rules(words: str, moved: str = "src") -> list[Rule]:
    """The choice of the receiving vector cores; `moved` is the tile whose valid size moves."""
    names = tuple(words.split())

    def split(o: Any) -> int:
        if o.attrs["accToVecMode"] == AccToVecMode.DualModeSplitM:
            return o[moved].vr % 2
        return o[moved].vc % (32 if o.dst.itemsize == 4 else 2)

    def dual(id: str, text: str, holds: Callable[[Any], bool], fix: str = "") -> Rule:
        return rule(
            id, text, lambda o: o.attrs["accToVecMode"] not in DUAL or holds(o), NOT_A2A3, fix
        )

    return [
        rule(
            "vec-mode",
            "the forms that name a vector core do not exist here",
            lambda o: o.attrs["accToVecMode"] is None,
            "a2a3",
            "store to global memory, or leave the mode out",
        ),
        rule(
            "SA-0012",
            "a mode that names a vector core has a Vec destination",
            lambda o: o.attrs["accToVecMode"] is None or o.dst.loc == TileType.Vec,
            NOT_A2A3,
        ),
        dual(
            "SA-0092",
            "a dual-destination mode takes no quantisation word",
            lambda o: all(o[name] is None for name in names),
            "use a single-destination mode",
        ),
        dual(
            "SA-0042",
            "a dual-destination mode has no DN destination",
            lambda o: o.dst.layout != "DN",
        ),
        dual(
            "dual-halves",
            "a dual-destination mode divides an even number of valid rows (DualModeSplitM) or "
            "columns (DualModeSplitN; a multiple of 32 for 4-byte results)",
            lambda o: split(o) == 0,
        ),
    ]


# ---- matmul operands ---------------------------------------------------------------------------


def _edge(tile: Any) -> int:
    """Edge of a box that the load can transpose."""
    return 32 if tile.itemsize == 1 else 16


_UNITS: dict[Unit, str] = {c0: "32 / sizeof", _edge: "16 (32 for 1-byte types)"}
# destination, whether the inner order stays, dimension, unit, ids for src, dst and index
_MULTIPLES: tuple[tuple[str, bool, str, Unit, str, str, str], ...] = (
    ("Mat>Left", True, "rows", 16, "SA-0120", "SA-0039", "PA-0015"),
    ("Mat>Left", True, "cols", c0, "SA-0115", "SA-0036", "PA-0013"),
    ("Mat>Right", True, "rows", c0, "SA-0121", "SA-0040", "PA-0016"),
    ("Mat>Right", True, "cols", 16, "SA-0114", "SA-0035", "PA-0012"),
    (CUBE, False, "rows", _edge, "SA-0119", "SA-0038", "PA-0014"),
    (CUBE, False, "cols", _edge, "SA-0113", "SA-0034", "PA-0011"),
)


def box_multiples(on: str, indexed: bool) -> list[Rule]:
    """Sizes and window corners of a matmul operand are whole boxes."""
    found: list[Rule] = []
    for paths, keeps, dim, unit, src_id, dst_id, index_id in _MULTIPLES:
        corner = "indexRow" if dim == "rows" else "indexCol"
        rules = [
            _multiple(src_id, f"src.{dim}", keeps, unit, on),
            _multiple(dst_id, f"dst.{dim}", keeps, unit, on),
        ]
        if indexed:
            rules.append(_multiple(index_id, corner, keeps, unit, on))
        found += along(paths, rules)
    return found


def _multiple(id: str, name: str, keeps: bool, unit: Unit, on: str) -> Rule:
    told = _UNITS.get(unit, str(unit))
    order = "in the inner order of src" if keeps else "when the inner order is transposed"

    def holds(o: Any) -> bool:
        if is_row(o.src) or (o.src.slayout == o.dst.slayout) != keeps:
            return True
        operand, _, dim = name.partition(".")
        size: int = getattr(o[operand], dim) if dim else index(o, name)
        return size % (unit(o.src) if callable(unit) else unit) == 0

    return rule(id, f"{name} is a multiple of {told} {order}", holds, on)


def index(o: Any, name: str) -> int:
    """A window corner; left out, it is 0."""
    return 0 if o[name] is None else o[name].value


def transposed_multiples(on: str) -> list[Rule]:
    """The A5 check of the transposing load: every size is a whole box."""
    return along(
        CUBE,
        [
            rule(
                "transposed-boxes",
                "all sizes are multiples of 16 (32 for 1-byte types) when the inner order changes",
                lambda o: (
                    is_row(o.src)
                    or o.src.slayout == o.dst.slayout
                    or all(
                        size % _edge(o.src) == 0
                        for size in (o.src.rows, o.src.cols, o.dst.rows, o.dst.cols)
                    )
                ),
                on,
            )
        ],
    )


def vector_operand(on: str, source_unit: int = 512, indexed: bool = True) -> list[Rule]:
    """One row becomes the left operand of a matrix-vector product, in units of 512 bytes."""
    corner = ", indexCol" if indexed else ""

    def holds(o: Any) -> bool:
        if not is_row(o.src):
            return True
        start = index(o, "indexCol") if indexed else 0
        size = o.src.itemsize
        return (
            o.src.cols * size % source_unit == 0
            and start * size % source_unit == 0
            and o.dst.cols * size % 512 == 0
        )

    units = "512 bytes" if source_unit == 512 else f"{source_unit} bytes, dst Cols of 512 bytes"
    text = f"a one-row source: src Cols{corner} and dst Cols are multiples of {units}"
    return along("Mat>Left", [rule("vector-operand", text, holds, on)])


def layouts(id: str, text: str, paths: str, holds: Callable[[Any], bool], on: str) -> list[Rule]:
    """The layouts a path takes."""
    return along(paths, [rule(id, text, holds, on)])


def boxed_source(id: str, on: str, plain: bool = False) -> list[Rule]:
    """A matmul operand comes from an NZ or ZN tile, or from one row."""
    extra = "a row-major tile" if plain else "one row"
    return layouts(
        id,
        f"src is NZ, ZN or {extra}",
        CUBE,
        lambda o: o.src.layout in ("NZ", "ZN") or (o.src.is_row_major if plain else is_row(o.src)),
        on,
    )


def operand_layouts(on: str, left: str, left_id: str, right_id: str) -> list[Rule]:
    """Left and Right have the order the matrix unit reads."""
    return [
        *layouts(left_id, f"Left is {left}", "Mat>Left", lambda o: o.dst.layout == left, on),
        *layouts(right_id, "Right is ZN", "Mat>Right", lambda o: o.dst.layout == "ZN", on),
    ]


def scale_layouts(on: str) -> list[Rule]:
    """MX scale factors keep their boxes of 32 bytes."""
    return [
        *layouts(
            "scale-left",
            "src and dst are ZZ with boxes of 32 bytes",
            "Mat>ScaleLeft",
            lambda o: (o.src.layout, o.src.fractal, o.dst.layout, o.dst.fractal) == ("ZZ", 32) * 2,
            on,
        ),
        *layouts(
            "scale-right",
            "src and dst are NN with boxes of 32 bytes",
            "Mat>ScaleRight",
            lambda o: (o.src.layout, o.src.fractal, o.dst.layout, o.dst.fractal) == ("NN", 32) * 2,
            on,
        ),
    ]


def weights_to_right() -> Rule:
    """The one path a convolution tile has."""
    return rule(
        "weights",
        "a convolution tile holds FRACTAL_Z weights of at least four dimensions and moves to Right",
        lambda o: (
            o.src.kind != "conv"
            or (
                o.dst.loc == TileType.Right
                and o.src.layout in (Layout.FRACTAL_Z, Layout.FRACTAL_Z_3D)
                and len(o.src.shape) >= 4
            )
        ),
    )


def weight_rules(on: str, kinds: str, layouts: tuple[Layout, ...]) -> list[Rule]:
    """Convolution weights become a right operand."""
    allowed = tuple(dtype(kind) for kind in kinds.split())
    names = " or ".join(layout.name for layout in layouts)
    rules = [
        rule("weight-dtype", f"weights are of type {kinds}", lambda o: o.dst.dtype in allowed, on),
        rule("weight-layout", f"src is {names}", lambda o: o.src.layout in layouts, on),
        rule("weight-right", "Right is ZN", lambda o: o.dst.layout == "ZN", on),
        rule(
            "weight-boxes",
            "four-dimensional weights end in 16 x C0, C0 = 32 / sizeof",
            lambda o: len(o.src.shape) != 4 or o.src.shape[2:] == (16, c0(o.src)),
            on,
        ),
    ]
    return along("Conv>Right", rules)


def is_matching(o: Any) -> bool:
    """Whether both tiles are plain rows, or both NZ."""
    return (is_plain(o.src) and is_plain(o.dst)) or o.src.layout == o.dst.layout == "NZ"
