"""Sorting: runs of 32 elements into records of value and index, and the merge of sorted runs.

`sort_records.py` says what a record is and in which order records stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.enums import TileType
from ptokit.base.layout import Array
from ptokit.isa.costs import SORT
from ptokit.isa.devices import A5_FAMILY, DEVICES, on
from ptokit.isa.facts import Ops
from ptokit.isa.freedom import unspecified
from ptokit.isa.idioms import Merge, Sort
from ptokit.isa.rules import Told, behind, located, must, row_major, same_dtype, separate, where
from ptokit.isa.scalars import unsigned
from ptokit.isa.services import Poison
from ptokit.isa.sort_records import (
    RECORD_BYTES,
    MrgSortExecutedNumList,
    elements_per_record,
    sort_keys,
)
from ptokit.isa.spec import (
    Asm,
    Attr,
    Cpp,
    Extent,
    Operand,
    View,
    insn,
    out,
    rule,
    scalar,
    src,
    thing,
    tmp,
    types,
)
from ptokit.isa.vector_rules import by_target, ceil_to, per_block

RUN = 32  # elements per run of TSORT32
STEP = 255  # runs that one step of it sorts

_COUNTS_ELEMENTS = on("a2a3")  # to see whether a row is long; others count bytes
_PAD = {dt.f32: 0xFFC0_0000, dt.f16: 0xFE00}  # quiet NaNs with the sign set


# ---- TSORT32 -------------------------------------------------------------------------------------


def _simulated(o: Any) -> bool:
    return not o.target.is_device


def _has_tail(o: Any) -> bool:
    return o.tmp is not None and o.src.vc % RUN != 0


def _runs(o: Any) -> int:
    """Runs per row; without tmp a device ignores a short one at the end."""
    return o.src.vc // RUN if o.tmp is None and not _simulated(o) else -(-o.src.vc // RUN)


def _sorted_runs(o: Any) -> int:
    """Those that are sorted: 255 at a time, of which a last step with none left does nothing."""
    runs = _runs(o)
    stalls = runs > STEP and runs % STEP == 0 and not _has_tail(o) and not _simulated(o)
    return runs - STEP if stalls else runs


def _records(o: Any) -> int:
    """Records written per row: whole runs, but for the simulator."""
    return o.src.vc if _simulated(o) else _sorted_runs(o) * RUN


def _rows(o: Any) -> int:
    return o.src.vr if _simulated(o) else o.dst.vr


def _is_long(o: Any) -> bool:
    """Whether only the last run of a row goes through tmp."""
    return o.src.vc * (1 if _COUNTS_ELEMENTS(o) else o.src.itemsize) > 8160


def _filled_up(o: Any) -> View | Extent:
    """The bytes of tmp that a short run passes through, from its start on, whatever its size."""
    if _simulated(o):
        return View.WHOLE
    if not _has_tail(o):
        return slice(0, 0)  # wherever it lies
    elements = RUN if _is_long(o) else ceil_to(o.src.vc, RUN)
    return slice(0, -(-elements * o.src.itemsize // o.tmp.itemsize))


@insn(
    out("dst", view=lambda o: (_rows(o), _records(o) * elements_per_record(o.dst))),
    src("src", view=lambda o: (_rows(o), min(o.src.vc, _records(o)))),
    src("idx", view=lambda o: (1 if o.idx.vr == 1 else _rows(o), _records(o)), carries=True),
    tmp(
        "tmp",
        optional=True,
        view=_filled_up,
        lost=lambda o: _has_tail(o) and not _simulated(o),
        note="where the last run of a row is filled up; needed when src has an odd end",
    ),
    types=types(
        a2a3="f16 f32",
        a5="f16 f32",
        kirin="f16 f32",
        ids={"a2a3": "SA-0027"} | dict.fromkeys(A5_FAMILY.split(), "SA-0023"),
    ),
    rules=[
        by_target("SA-0028", "SA-0022", lambda i, on: same_dtype("dst", "src", id=i, on=on)),
        rule("SA-0058", "idx is u32", lambda o: o.idx.dtype is dt.u32),
        by_target(
            "SA-0229", "SA-0228", lambda i, on: located("Vec", "dst", "src", "idx", id=i, on=on)
        ),
        row_major("dst", "src", "idx", id="SA-0049"),
        must("whole-runs", DEVICES)(
            "without tmp, the valid columns of src are a multiple of 32",
            lambda o: o.tmp is not None or o.src.vc % RUN == 0,
            "pass a tmp, or round the valid columns up",
            "the columns past the last whole run are left out",
        ),
        must("record-columns")(
            "a row of dst holds 8 bytes for each element of the runs of src",
            lambda o: o.dst.cols >= _records(o) * elements_per_record(o.dst),
            "give dst twice as many columns as the runs of src have (f32), or four times (f16)",
            behind("records that do not fit lie in the next row, which then overwrites them"),
        ),
        must("idx-size")(
            "idx has one valid row or as many rows as dst has valid ones, and a column for each "
            "element of the runs of src",
            lambda o: (o.idx.vr == 1 or o.idx.rows >= _rows(o)) and o.idx.cols >= _records(o),
            otherwise=behind("what lies past idx counts as indices"),
        ),
        must("tmp-type")(
            "src and tmp have the same element type",
            lambda o: o.tmp is None or o.src.dtype is o.tmp.dtype,
            otherwise="only the address of tmp counts",
        ),
        must("run-count", DEVICES)(
            "the number of runs per row, where it exceeds what one step sorts, is not a multiple "
            "of 255",
            lambda o: (
                _runs(o) % STEP != 0 or (not _is_long(o) if _has_tail(o) else _runs(o) <= STEP)
            ),
            "split the row",
            Told("the last 255 runs of a row are not sorted", lambda o: not _has_tail(o)),
            unknown="with a tail the count of the last step wraps around: what it sorts is open",
        ),
        must("tmp-size", DEVICES, _has_tail)(
            "tmp holds a row of src filled up to whole runs, or one run for rows of more than 8160 "
            "elements (a2a3) or bytes (others)",
            lambda o: o.tmp.numel >= (RUN if _is_long(o) else ceil_to(o.src.vc, RUN)),
            "give tmp the element type and the columns of src",
            behind("what lies past tmp is overwritten"),
        ),
        separate("dst", "src", "idx"),
        *where(_has_tail)(separate("tmp", "dst", "src", "idx", id="tmp-apart")),
    ],
    asm=Asm(
        ins=("src", "idx", "tmp"),
        outs=("dst",),
        supplied={"tmp": lambda o: o.src.valid_col % RUN != 0},  # or it is open
    ),
    example={
        "dst": "Vec {T} 4x256",
        "src": "Vec {T} 4x64",
        "idx": "Vec u32 4x64",
    },
    more_examples="""
        dst           | src                     | idx          | tmp
        Vec f32 2x128 | Vec f32 2x64 valid 2x40 | Vec u32 1x64 | Vec f32 1x64
    """,
    freedom=unspecified(
        "NaN, +0 and -0",
        "Where NaNs go, and the order of +0 and -0, are not stated; the reference compares sign "
        "and magnitude of the bits and keeps zeros in order.",
    ),
    cost=SORT,
    idiom=lambda o: None if _simulated(o) or _has_tail(o) else Sort("dst", "src", "idx", RUN),
)
def TSORT32(
    dst: Array, src: Array, idx: Array, tmp: Array | None, ops: Ops, poison: Poison
) -> None:
    """Sort every 32 columns of a row in descending order, carrying an index with each value.

    dst receives 8-byte records of value and index; runs are sorted by themselves, equal values keep
    their order. The rows are the valid rows of dst, the columns those of src; an idx with one valid
    row serves all. A short run at the end needs tmp: it is filled up with negative NaNs, which come
    last, and their records hold whatever idx has there. TSORT32 takes no wait events. The
    permissive profile sorts a short run as it is, and breaks ties by the smaller index.
    """
    rows, used = src.shape
    records = idx.shape[1]
    poison.demand("idx", (slice(None), slice(0, used)))
    width = ceil_to(records, RUN)
    bits = np.full((rows, width), _PAD.get(ops.src.dtype, 0), f"u{src.itemsize}")
    bits[:, :used] = src.view(bits.dtype)
    keys = sort_keys(bits.view(src.dtype))
    keys[:, records:] = np.iinfo(np.int64).min + 1  # not there at all: the simulator's short run
    indices = np.zeros((rows, width), np.uint32)
    indices[:, :records] = idx
    in_runs = (rows, -1, RUN)
    if _simulated(ops):
        ties = indices.reshape(in_runs)
        order = np.lexsort((ties, -keys.reshape(in_runs)), axis=2)
    else:
        order = np.argsort(-keys.reshape(in_runs), axis=2, kind="stable")

    def ordered(values: Array) -> Array:
        return np.take_along_axis(values.reshape(in_runs), order, axis=2).reshape(rows, width)

    # One record per element: its bits, zero-extended, then its index.
    words = np.stack((ordered(bits).astype(np.uint32), ordered(indices)), axis=2)
    made = words.view(src.dtype).reshape(rows, -1)[:, : dst.shape[1]]
    if dst.shape[1] <= ops.dst.cols:
        dst[...] = made
    else:  # rows run into one another, and the later one stays
        for row, records_of_row in zip(dst, made, strict=True):
            row[...] = records_of_row

    undefined = poison.undefined("idx")
    if undefined is not None:  # only behind the columns of src
        lost = np.zeros((rows, width), np.bool_)
        lost[:, :records] = undefined
        fields = np.zeros((rows, width, elements_per_record(ops.dst)), np.bool_)
        fields[:, :, fields.shape[2] // 2 :] = ordered(lost)[:, :, None]
        poison.poison_where("dst", fields.reshape(rows, -1)[:, : dst.shape[1]])


# ---- TMRGSORT ------------------------------------------------------------------------------------

_LISTS = ("src0", "src1", "src2", "src3")
_TILES = ("dst", "tmp", *_LISTS)


def _in_blocks(o: Any) -> bool:
    return o.blockLen is not None


def _lists(o: Any) -> list[Any]:
    return [o[n] for n in _LISTS if o[n] is not None]


def _block(o: Any) -> int:
    """Elements of a block: whole records of it."""
    records = o.blockLen.value // elements_per_record(o.dst)
    return records * elements_per_record(o.dst)


def _merged_columns(o: Any) -> int:
    """Columns of the block form that are merged: groups of four blocks, counted in 8 bits."""
    valid = min(o.src0.vc, o.dst.vc) if _simulated(o) else o.src0.vc
    groups = valid // (4 * o.blockLen.value)
    return (groups if _simulated(o) else groups & 0xFF) * 4 * _block(o)


def _dst_extent(o: Any) -> Extent:
    if _in_blocks(o):
        return 1, _merged_columns(o)
    if _simulated(o):
        return 1, o.dst.vc // elements_per_record(o.dst) * elements_per_record(o.dst)
    return 1, ceil_to(o.dst.vc, per_block(o.dst))


def _list_columns(tile: Any) -> int:
    """Columns of a list, in whole records."""
    return tile.vc // elements_per_record(tile) * elements_per_record(tile)


def _merge_area(o: Any) -> tuple[int, int]:
    """Where lists are merged: all of their records, from the start of tmp on."""
    if _simulated(o):
        return 1, o.tmp.cols
    return 1, max(sum(map(_list_columns, _lists(o))), ceil_to(o.dst.vc, per_block(o.dst)))


def _merged_area(o: Any) -> Extent | None:
    """What holds other contents afterwards."""
    if o.tmp is None or _simulated(o):
        return None
    return slice(0, 1), slice(0, sum(map(_list_columns, _lists(o))))


def _list_operand(name: str, **more: Any) -> Operand:
    def extent(o: Any) -> Extent:
        return 1, _merged_columns(o) if _in_blocks(o) else _list_columns(o[name])

    return src(name, view=extent, **more)


def _capacity(o: Any) -> int:
    return o.target.spaces[TileType.Vec].capacity


def _widest_pair(o: Any) -> int:
    """Bytes of the tiles the hardware works on at once."""
    if _in_blocks(o):
        return o.dst.nbytes + o.src0.nbytes
    return max(o.tmp.nbytes + o.src0.nbytes, *(tile.nbytes for tile in _lists(o)[1:]))


def _valid_bytes(o: Any) -> int:
    rest = o.dst.vc if _in_blocks(o) else o.tmp.vc
    return (rest + sum(tile.vc for tile in _lists(o))) * o.dst.itemsize


_apart = separate("dst", "src0").holds


def _whole_merge(o: Any) -> Merge | None:
    """The lists that are merged to their ends; otherwise it tells how far it came."""
    if _in_blocks(o):
        return Merge("dst", ("src0",), _block(o) // elements_per_record(o.dst))
    if o.attrs["exhausted"] or _simulated(o):
        return None
    return Merge("dst", tuple(name for name in _LISTS if o[name] is not None))


@insn(
    out("dst", view=_dst_extent),
    thing(
        "executedNumList",
        "out",
        kind="mrg_sort_executed_num_list",
        optional=True,
        note="records taken from each list",
    ),
    tmp(
        "tmp",
        optional=True,
        view=_merge_area,
        lost=lambda o: False,
        unspecified=_merged_area,
        note="where lists are merged",
    ),
    _list_operand("src0"),
    _list_operand("src1", optional=True),
    _list_operand("src2", optional=True),
    _list_operand("src3", optional=True),
    scalar(
        "blockLen", unsigned(32), optional=True, note="elements per sorted block, indices included"
    ),
    attrs=[Attr("exhausted", bool, False, "stop as soon as one list is used up")],
    forms=[
        "dst src0 blockLen",
        "dst executedNumList tmp src0 src1",
        "dst executedNumList tmp src0 src1 src2",
        "dst executedNumList tmp src0 src1 src2 src3",
    ],
    types=types(a2a3="f16 f32", a5="f16 f32", kirin="f16 f32", ids="SA-0282"),
    rules=[
        same_dtype(*_TILES, id="SA-0275"),
        located("Vec", *_TILES, id="SA-0279"),
        must("SA-0278")(
            "all tiles have one row", lambda o: all(o[n] is None or o[n].rows == 1 for n in _TILES)
        ),
        row_major(*_TILES, id="SA-0277"),
        must("tmp-columns", DEVICES)(
            "tmp has as many columns as all lists together",
            lambda o: _in_blocks(o) or o.tmp.cols >= sum(tile.cols for tile in _lists(o)),
            otherwise=behind(
                "the records of the valid columns are merged from the start of tmp on, and "
                "overwrite what lies past it if there are more",
                lambda o: _merge_area(o)[1] <= o.tmp.cols,
            ),
        ),
        must("block", DEVICES, _in_blocks)(
            "a block holds at least one record",
            lambda o: o.blockLen.value >= elements_per_record(o.dst),
        ),
        must("PA-0001", "a2a3", _in_blocks)(
            "blockLen is a multiple of 64",
            lambda o: o.blockLen.value % 64 == 0,
            otherwise="the whole records of a block count, and blocks follow one another",
        ),
        must("block-records", "cpu", _in_blocks)(
            "a block holds whole records, at least one",
            lambda o: o.blockLen.value > 0 and o.blockLen.value % elements_per_record(o.dst) == 0,
        ),
        must("PA-0003", "a2a3", _in_blocks)(
            "the valid columns of src0 are a multiple of four blocks",
            lambda o: o.blockLen.value <= 0 or o.src0.vc % (4 * o.blockLen.value) == 0,
            otherwise="the blocks past the last group of four are left out",
        ),
        must("PA-0004", "a2a3", _in_blocks)(
            "src0 holds 1 to 255 groups of four blocks",
            lambda o: o.blockLen.value <= 0 or 1 <= o.src0.vc // (4 * o.blockLen.value) <= 255,
            otherwise="the number of groups is cut to 8 bits",
        ),
        must("dst-columns", DEVICES, _in_blocks)(
            "dst has as many columns as src0 has valid ones",
            lambda o: o.dst.cols >= o.src0.vc,
            otherwise=behind(
                "merged blocks go on past dst", lambda o: _merged_columns(o) <= o.dst.cols
            ),
        ),
        must("record-count", DEVICES)(
            "a block, and a list, holds at most 65535 records",
            lambda o: all(
                n * o.dst.itemsize // RECORD_BYTES <= 65535
                for n in ([o.blockLen.value] if _in_blocks(o) else [t.vc for t in _lists(o)])
            ),
        ),
        must("SA-0043", DEVICES)(
            "tmp and src0 together (dst and src0 in the block form), and every further list, fit "
            "into UB",
            lambda o: _widest_pair(o) <= _capacity(o),
        ),
        must("PA-0008", "a2a3")(
            "the valid columns of the lists and of tmp (of dst in the block form) together take "
            "less than UB",
            lambda o: _valid_bytes(o) < _capacity(o),
            otherwise="nothing changes as long as every tile lies inside UB",
        ),
        must("separate", None, _in_blocks)(
            "in the block form, dst shares no storage with src0",
            lambda o: _apart(o),
            "bind the tiles to addresses that do not overlap",
        ),
        separate("tmp", "dst", *_LISTS, id="tmp-apart"),
    ],
    asm=Asm(
        ins=(*_LISTS, "blockLen", "tmp"),
        outs=("dst", "executedNumList"),
        called={"excuted": "executedNumList"},
        attrs={"exhausted": "exhausted"},
        place={"exhausted": "own"},
        missing="no_tmp",
        beside={"exhausted": "src1"},
        order=("+".join(_LISTS), "blockLen", "dst", "tmp", "executedNumList"),
        is_counted=True,
    ),
    example={"dst": "Vec {T} 1x512", "src0": "Vec {T} 1x512", "blockLen": "64"},
    more_examples=[
        {
            "dst": "Vec f32 1x256",
            "executedNumList": "new MrgSortExecutedNumList",
            "tmp": "Vec f32 1x256",
            **dict.fromkeys(names, "Vec f32 1x64"),
            "exhausted": flag,
        }
        for names, flag in ((_LISTS, "True"), (_LISTS[:2], "False"))
    ],
    freedom=unspecified(
        "unsorted lists",
        "Unsorted input may come out in any order; the reference merges by the heads.",
    ),
    cpp=Cpp(
        (
            "dst tmp src0 src1 src2 src3 @exhausted",
            "dst tmp src0 src1 src2 @exhausted",
            "dst tmp src0 src1 @exhausted",
            "",
        )
    ),
    cost=SORT,
    idiom=_whole_merge,
)
def TMRGSORT(
    dst: Array,
    executedNumList: MrgSortExecutedNumList | None,
    tmp: Array | None,
    *rest: Any,
    exhausted: bool,
    ops: Ops,
    poison: Poison,
) -> None:
    """Merge descending lists of 8-byte records, as TSORT32 makes them, into one.

    `TMRGSORT(dst, src, blockLen)` merges every four neighbouring blocks of blockLen elements.
    `TMRGSORT[exhausted](dst, executed, tmp, src0, src1 ...)` merges two to four lists, as long as
    the valid columns of their tiles, into tmp, and copies as much as the valid columns of dst ask
    for: a shorter dst receives the top. With exhausted the merge stops as soon as one list is used
    up, and `executed` tells how many records were taken from each; what lies past them in dst is
    what tmp held there. Equal values keep the order of the lists.
    """
    elements = elements_per_record(ops.dst)
    *lists, blockLen = rest
    if blockLen is not None:
        groups = lists[0].reshape(-1, 4, _block(ops) // elements, elements)
        if len(groups):
            dst[0] = np.concatenate([_merge([*blocks])[0] for blocks in groups]).reshape(-1)
        return

    given = [s.reshape(-1, elements) for s in lists if s is not None]
    records, owners = _merge(given)
    count = len(records)
    if exhausted:
        ends = [np.flatnonzero(owners == k)[-1] + 1 for k in range(len(given)) if len(given[k])]
        count = min(ends, default=0)
    simulated = _simulated(ops)
    if simulated:  # it merges no further than dst reaches
        count = min(count, dst.shape[1] // elements)
    if executedNumList is not None and (exhausted or simulated):
        executedNumList.set(np.bincount(owners[:count], minlength=len(given)).tolist())

    stop = min(count * elements, dst.shape[1])
    before = poison.undefined("dst" if simulated else "tmp")
    dst[0, :stop] = records[:count].reshape(-1)[:stop]
    if not simulated and tmp is not None:  # all of dst is copied from tmp
        dst[0, stop:] = tmp[0, stop : dst.shape[1]]
    if before is not None:  # what the merge does not reach is what it was there
        before[0, :stop] = False
        poison.poison_where("dst", before[:, : dst.shape[1]])


def _merge(lists: Sequence[Array]) -> tuple[Array, Array]:
    """Merge lists of records by their heads; return the records and the list each came from.

    Taking the greatest head again and again, the first list on ties, is sorting by the smallest key
    seen so far in the record's list: what a smaller one holds back follows it at once.
    """
    keys = [np.minimum.accumulate(sort_keys(records[:, 0])) for records in lists]
    owners = np.repeat(np.arange(len(lists)), [len(k) for k in keys])
    order = np.argsort(-np.concatenate(keys), kind="stable")
    return np.concatenate(lists)[order], owners[order]
