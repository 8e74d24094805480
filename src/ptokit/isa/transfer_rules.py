"""The rules of the data paths that TMOV, TEXTRACT and TINSERT share, each said once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptokit.base.enums import AccToVecMode, Layout, ReluPreMode, TileType
from ptokit.base.tiles import BLOCK_BYTES
from ptokit.isa.conv_layout import WEIGHTS
from ptokit.isa.devices import A5_FAMILY, DEVICES, NEW, OLD
from ptokit.isa.effects import Steps, steps
from ptokit.isa.fixpipe import is_accumulator, tile_conversions
from ptokit.isa.rules import Predicate, Told, behind, in_types, must, under, when, where
from ptokit.isa.spec import Rule, rule
from ptokit.isa.transfer import DUAL, c0, dual_columns, is_plain, is_row, no_column, path, up

CUBE = "Mat>Left Mat>Right"
Unit = int | Callable[[Any], int]  # a size, or one that depends on the tile's element type


def along(paths: str, on: str | None = None) -> Callable[..., list[Rule]]:
    """Rules of some paths only: `*along("Mat>Left", "a5")(rule(...), rule(...))`."""
    allowed = tuple(paths.split())
    return where(lambda o: path(o) in allowed, on)


def paths_exist(id: str, paths: str, on: str) -> Rule:
    """The target can move data between these two spaces."""
    allowed = tuple(paths.split())
    return must(id, on)(
        f"data moves along one of {', '.join(allowed)}",
        lambda o: path(o) in allowed,
        "move the data in two steps, through a space that both paths share",
    )


def holds_type(id: str, kinds: str, on: str, what: str) -> Rule:
    """The destination has one of these element types on the path `what` describes."""
    return rule(id, f"the element type {what} is one of {kinds}", in_types("dst", kinds), on)


def same_type(id: str, on: str | None = None) -> Rule:
    """Only the fix pipe converts."""
    return must(id, on)(
        "src and dst have the same element type unless src is an accumulator",
        lambda o: is_accumulator(o) or o.src.dtype is o.dst.dtype,
        "declare both tiles with one element type, or convert with TCVT first",
    )


def same_capacity(id: str, on: str | None = None) -> Rule:
    """A whole tile moves."""
    return must(id, on)(
        "src and dst have the same Rows and Cols",
        lambda o: o.src.kind == "conv" or (o.src.rows, o.src.cols) == (o.dst.rows, o.dst.cols),
    )


def is_matching(o: Any) -> bool:
    """Whether both tiles are plain rows, or both NZ."""
    return (is_plain(o.src) and is_plain(o.dst)) or o.src.layout == o.dst.layout == "NZ"


def matching(id: str, on: str) -> Rule:
    """The move keeps the arrangement."""
    return rule(id, "src and dst are both row-major or both NZ", is_matching, on)


# ---- accumulators ------------------------------------------------------------------------------


def _without_word(o: Any) -> bool:
    return o.preQuantScalar is None and o.fp is None


def needs_accumulator(id: str, on: str) -> Rule:
    """Quantisation and ReLU happen in the fix pipe, which drains accumulators."""

    def is_plain_copy(o: Any) -> bool:
        plain = _without_word(o) and o.attrs["reluPreMode"] == ReluPreMode.NoRelu
        return plain and o.attrs["accToVecMode"] is None

    return must(id, on)(
        "a quantisation word, ReLU or a receiving vector core needs an accumulator as src",
        lambda o: is_plain_copy(o) or o.src.loc == TileType.Acc,
        "leave them out, or move from an Acc tile",
    )


def fp_rules(first: Callable[[Any], int], columns: Callable[[Any], int]) -> list[Rule]:
    """The quantisation vector: words for so many columns from the first on, in Scaling space."""
    return where(lambda o: o.fp is not None)(
        must("SA-0052")(
            "fp is a Scaling tile",
            lambda o: o.fp.loc == TileType.Scaling,
            "bring the words over with TMOV from a Mat tile",
        ),
        must("fp-words")(
            "fp holds a 64-bit word for every column",
            lambda o: o.fp.itemsize == 8 and first(o) + columns(o) <= o.fp.cols,
            "declare fp as a uint64 tile of one row with as many columns as the source",
            behind(
                "every column takes the 8 bytes that lie there, whatever fp is declared as",
                lambda o: (first(o) + columns(o)) * 8 <= o.fp.nbytes,
            ),
        ),
        must("fp-address", DEVICES)(
            "fp starts at a multiple of 128 bytes",
            lambda o: o.mode == "auto" or o.fp.addr % 128 == 0,
            "bind fp to a multiple of 128",
        ),
        *(() if first is no_column else (_word_of_window(first),)),
    )


def _word_of_window(first: Callable[[Any], int]) -> Rule:
    return must("fp-alignment", DEVICES)(
        "the first word used lies at a multiple of 128 bytes",
        lambda o: first(o) % 16 == 0,
        "window columns start at multiples of 16",
        "the low 7 bits of its address are dropped: words of earlier columns are used",
    )


def drain_rules(words: str = "preQuantScalar fp") -> list[Rule]:
    """Every move out of an accumulator; `words` names the quantisation operands."""

    def line(o: Any) -> int:
        return (o.dst.rows if o.dst.layout == "DN" else o.dst.cols) * o.dst.itemsize

    to_mat = "the Mat tile that takes an accumulator "
    return where(is_accumulator)(
        rule("SA-0107", "the accumulator is NZ", lambda o: o.src.layout == "NZ", DEVICES),
        tile_conversions(words),
        must("SA-0014", "a2a3")(
            "an accumulator moves to a Mat tile",
            lambda o: o.dst.loc == TileType.Mat,
            "store it to global memory with TSTORE, or move it to a Mat tile",
        ),
        rule("SA-0029", f"{to_mat}is NZ", lambda o: o.dst.layout == "NZ", "a2a3"),
        rule("SA-0013", f"{to_mat}has boxes of 512 bytes", lambda o: o.dst.fractal == 512, "a2a3"),
        must("SA-0031", "a2a3")(
            "rows of the Mat tile that takes an accumulator are whole 32-byte blocks",
            lambda o: o.dst.cols > 0 and o.dst.cols * o.dst.itemsize % BLOCK_BYTES == 0,
        ),
        must("SA-0088", "a5 kirin9030")(
            "the tile that takes an accumulator is ND, DN or NZ",
            lambda o: o.dst.layout in ("ND", "DN", "NZ"),
        ),
        must("dst-layout", "kirinx90")(
            "the tile that takes an accumulator is ND or NZ", lambda o: o.dst.layout in ("ND", "NZ")
        ),
        must("SA-0030", A5_FAMILY)(
            "lines of the tile that takes an accumulator (columns of a DN tile, otherwise "
            "rows) are whole 32-byte blocks",
            lambda o: line(o) > 0 and line(o) % BLOCK_BYTES == 0,
        ),
    )


def mode_rules(moved: str = "src", *, in_boxes: bool = False) -> list[Rule]:
    """The choice of the receiving vector cores; `moved` is the tile whose valid size moves.

    `in_boxes`: an NZ destination gets whole boxes, so that src must only hold them.
    """

    def split(o: Any) -> int:
        if in_boxes and o.dst.layout == "NZ":
            return up(o.src.vc, dual_columns(o)) > o.src.cols
        if o.attrs["accToVecMode"] == AccToVecMode.DualModeSplitM:
            return o[moved].vr % 2
        return o[moved].vc % (32 if o.dst.itemsize == 4 else 2)

    return [
        must("vec-mode", "a2a3")(
            "the forms that name a vector core do not exist here",
            lambda o: o.attrs["accToVecMode"] is None,
            "store to global memory, or leave the mode out",
        ),
        must("SA-0012", A5_FAMILY)(
            "a mode that names a vector core has a Vec destination",
            lambda o: o.attrs["accToVecMode"] is None or o.dst.loc == TileType.Vec,
        ),
        *where(lambda o: o.attrs["accToVecMode"] in DUAL, A5_FAMILY, "a dual-destination mode ")(
            must("SA-0092")(
                "takes no quantisation word", _without_word, "use a single-destination mode"
            ),
            rule("SA-0042", "has no DN destination", lambda o: o.dst.layout != "DN"),
            must("dual-halves")(
                "divides an even number of valid rows (DualModeSplitM) or columns (DualModeSplitN; "
                "a multiple of 32 for 4-byte results)",
                lambda o: split(o) == 0,
                otherwise=Told(
                    "the last row is not moved",
                    lambda o: o.attrs["accToVecMode"] == AccToVecMode.DualModeSplitM,
                ),
            ),
        ),
    ]


# ---- matmul operands ---------------------------------------------------------------------------


def index(o: Any, name: str) -> int:
    """A window corner; left out, it is 0."""
    return 0 if o[name] is None else o[name].value


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


def _multiple(id: str, name: str, keeps: bool, unit: Unit) -> Rule:
    told = _UNITS.get(unit, str(unit))
    order = "in the inner order of src" if keeps else "when the inner order is transposed"

    def holds(o: Any) -> bool:
        if is_row(o.src) or (o.src.slayout == o.dst.slayout) != keeps:
            return True
        operand, _, dim = name.partition(".")
        size: int = getattr(o[operand], dim) if dim else index(o, name)
        return size % (unit(o.src) if callable(unit) else unit) == 0

    return rule(id, f"{name} is a multiple of {told} {order}", holds)


def box_multiples(on: str, indexed: bool) -> list[Rule]:
    """Sizes and window corners of a matmul operand are whole boxes."""
    found: list[Rule] = []
    for paths, keeps, dim, unit, *ids in _MULTIPLES:
        names = (f"src.{dim}", f"dst.{dim}", "indexRow" if dim == "rows" else "indexCol")
        rows = list(zip(ids, names, strict=True))[: 3 if indexed else 2]
        found += along(paths, on)(_multiple(id, name, keeps, unit) for id, name in rows)
    return found


def operand_rules(*, source: str, plain: bool, layout: str, indexed: bool) -> list[Rule]:
    """What becomes a matmul operand, in the order the matrix unit reads.

    `source` and `layout` are the ids of the layouts of src and dst on A5 and Kirin 9030, `plain`
    says whether src may be any row-major tile there, `indexed` whether a window is taken.
    """

    def transposes(o: Any) -> bool:
        return not is_row(o.src) and o.src.slayout != o.dst.slayout

    def whole_boxes(o: Any) -> bool:
        sizes = o.src.rows, o.src.cols, o.dst.rows, o.dst.cols
        return all(size % _edge(o.src) == 0 for size in sizes)

    def whole_vectors(unit: int) -> Predicate:
        """One row becomes the left operand of a matrix-vector product, in units of 512 bytes."""
        return when(
            lambda o: is_row(o.src),
            lambda o: (
                o.src.cols * o.src.itemsize % unit == 0 and o.dst.cols * o.src.itemsize % 512 == 0
            ),
        )

    def starts_whole(unit: int) -> Predicate:
        return lambda o: not is_row(o.src) or index(o, "indexCol") * o.src.itemsize % unit == 0

    def scales(name: str, layout: str) -> list[Rule]:
        """MX scale factors keep their boxes of 32 bytes."""

        def holds(o: Any) -> bool:
            tiles = [(tile.layout, tile.fractal) for tile in (o.src, o.dst)]
            return tiles == [(layout, 32)] * 2

        text = f"src and dst are {layout} with boxes of 32 bytes"
        return along(f"Mat>Scale{name}", "a5")(rule(f"scale-{name.lower()}", text, holds))

    def boxed(o: Any) -> bool:
        return o.src.layout in ("NZ", "ZN")

    extra = "a row-major tile" if plain else "one row"
    one_row = "a one-row source: src Cols and dst Cols are multiples"
    corner = [
        must("vector-corner", "a2a3 a5 kirinx90")(
            "a one-row source: indexCol is a multiple of 512 bytes",
            starts_whole(512),
            otherwise="the part of indexCol inside 512 bytes is lost",
        ),
        must("vector-corner", "kirin9030")(
            "a one-row source: indexCol is a multiple of 32 bytes", starts_whole(32)
        ),
    ]
    return [
        *along(CUBE)(
            must("SA-0166", OLD)("src is NZ, ZN or one row", lambda o: boxed(o) or is_row(o.src)),
            must(source, NEW)(
                f"src is NZ, ZN or {extra}",
                lambda o: boxed(o) or (o.src.is_row_major if plain else is_row(o.src)),
            ),
        ),
        *along("Mat>Left")(
            rule("SA-0163", "Left is ZZ", lambda o: o.dst.layout == "ZZ", OLD),
            rule(layout, "Left is NZ", lambda o: o.dst.layout == "NZ", NEW),
        ),
        *along("Mat>Right")(
            under({"SA-0164": OLD, layout: NEW}, "Right is ZN", lambda o: o.dst.layout == "ZN")
        ),
        *box_multiples(OLD, indexed),
        *along(CUBE)(
            must("transposed-boxes", NEW, transposes)(
                "all sizes are multiples of 16 (32 for 1-byte types) when the inner order changes",
                whole_boxes,
            )
        ),
        *along("Mat>Left")(
            must("vector-operand", "a2a3 a5 kirinx90")(
                f"{one_row} of 512 bytes", whole_vectors(512)
            ),
            must("vector-operand", "kirin9030")(
                f"{one_row} of 32 bytes, dst Cols of 512 bytes", whole_vectors(32)
            ),
            *(corner if indexed else []),
        ),
        *scales("Left", "ZZ"),
        *scales("Right", "NN"),
    ]


# ---- convolution weights -------------------------------------------------------------------------

_WEIGHT_TYPES = {
    "a2a3": "i8 f16 bf16 f32",
    "kirinx90": "i8 f16 f32",
    "a5": "i8 u8 i16 u16 i32 u32 f16 bf16 f32",
    "kirin9030": "i8 u8 i16 u16 i32 u32 f16 f32",
}


def weights_to_right() -> Rule:
    """The one path a convolution tile has."""
    return must("weights")(
        "a convolution tile holds FRACTAL_Z weights of at least four dimensions and moves to Right",
        lambda o: (
            o.src.kind != "conv"
            or (o.dst.loc == TileType.Right and o.src.layout in WEIGHTS and len(o.src.shape) >= 4)
        ),
    )


def weight_rules(on: str, layouts: tuple[Layout, ...] = WEIGHTS) -> list[Rule]:
    """Convolution weights become a right operand, on these targets."""

    def of_target(target: str) -> list[Rule]:
        kinds = _WEIGHT_TYPES[target]
        return along("Conv>Right", target)(
            rule("weight-dtype", f"weights are of type {kinds}", in_types("dst", kinds)),
            rule("weight-layout", f"src is {names}", lambda o: o.src.layout in layouts),
            rule("weight-right", "Right is ZN", lambda o: o.dst.layout == "ZN"),
            must("weight-boxes")(
                "four-dimensional weights end in 16 x C0, C0 = 32 / sizeof",
                lambda o: len(o.src.shape) != 4 or o.src.shape[2:] == (16, c0(o.src)),
            ),
        )

    names = " or ".join(layout.name for layout in layouts)
    return [each for target in on.split() for each in of_target(target)]


# ---- windows in vector tiles: what TEXTRACT takes out and TINSERT puts in ------------------------

FP4 = "f4e2m1x2 f4e1m2x2"
VECTOR_TYPES = {
    "a2a3": "i8 u8 i16 u16 f16 bf16 f32 i32 u32",
    "a5": "f16 bf16 f32 i32 i8 hif8 f8e4m3 f8e5m2 f8e8m0 f4e2m1x2 f4e1m2x2",
    "kirin9030": "f16 f32 i32 i8",
    "kirinx90": "i8 u8 i16 u16 f16 f32 i32 u32",
}


def vector_types(on: str) -> list[Rule]:
    """The element types of windows in vector tiles."""
    return [
        holds_type("vector-dtype", VECTOR_TYPES[target], target, "of a vector tile")
        for target in on.split()
    ]


def window_rules(small: str, large: str) -> list[Rule]:
    """A window of one vector tile and the whole of another: TEXTRACT and TINSERT.

    `small` names the tile that gives the size of the window, `large` the one it lies in.
    """

    def plain(o: Any) -> bool:
        return is_plain(o[small])

    def is_single(o: Any) -> bool:
        """Whether one element is moved, which has a path of its own without alignment."""
        return (o[small].vr, o[small].vc) == (1, 1)

    def on_blocks(o: Any) -> bool:
        return index(o, "indexCol") * o[small].itemsize % BLOCK_BYTES == 0

    return [
        *vector_types(DEVICES),
        must("window-size", DEVICES)(
            f"{small} has at most the Rows and Cols of {large}",
            lambda o: (
                (not plain(o) or o[small].rows <= o[large].rows) and o[small].cols <= o[large].cols
            ),
        ),
        inside("window", small, large, DEVICES),
        *where(plain, OLD)(
            must("window-blocks")(
                "rows of both tiles are whole 32-byte blocks",
                lambda o: all(o[n].cols * o[n].itemsize % BLOCK_BYTES == 0 for n in (small, large)),
            ),
            must("even-bytes")(
                f"valid rows of {small} have an even number of bytes, unless one element moves",
                lambda o: is_single(o) or o[small].vc * o[small].itemsize % 2 == 0,
            ),
            must("window-corner")(
                "indexCol is a multiple of 32 bytes, unless one element moves",
                lambda o: is_single(o) or on_blocks(o),
            ),
        ),
        *where(lambda o: not plain(o), OLD)(
            must("box-sizes")(
                f"Rows of an NZ {small} are a multiple of 16 and Cols of 32 / sizeof",
                lambda o: o[small].rows % 16 == 0 and o[small].cols % c0(o[small]) == 0,
            ),
            must("box-corner")(
                "in NZ tiles indexRow is a multiple of 16 and indexCol of 32 / sizeof, unless one "
                "element moves",
                lambda o: (
                    is_single(o)
                    or (index(o, "indexRow") % 16 == 0 and index(o, "indexCol") % c0(o[small]) == 0)
                ),
            ),
        ),
        must("fp4-blocks", "a5", lambda o: in_types("dst", FP4)(o) and plain(o))(
            "4-bit types: rows, valid columns and indexCol are multiples of 32 elements",
            lambda o: (
                on_blocks(o)
                and not any(
                    size % BLOCK_BYTES for size in (o[small].cols, o[small].vc, o[large].cols)
                )
            ),
        ),
    ]


def one_element(small: str) -> Steps:
    """One element moves between vector tiles, which is work of the scalar unit."""
    return steps(
        "a2a3 a5",
        lambda o: path(o) == "Vec>Vec" and o[small].valid_row == o[small].valid_col == 1,
        start="V->S",
        end="S->V",
        complete=True,
    )


def inside(id: str, small: str, large: str, on: str | None = None) -> Rule:
    """The window lies in the tile."""
    return must(id, on)(
        f"the window, {small}'s valid size from (indexRow, indexCol) on, lies inside {large}",
        lambda o: (
            0 <= index(o, "indexRow") <= o[large].rows - o[small].vr
            and 0 <= index(o, "indexCol") <= o[large].cols - o[small].vc
        ),
        otherwise=where_it_lies(large),
    )


def where_it_lies(large: str) -> Told:
    """A window that leaves its tile goes on past it; indices have no sign."""
    done = "read" if large == "src" else "written"
    return Told(
        f"the window is {done} where it lies, also past {large}",
        lambda o: o.target.is_device and o.mode != "auto",
    )
