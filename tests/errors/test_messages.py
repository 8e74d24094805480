"""Error messages: position, sentence, values and fix, and nothing of our insides."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest

import ptokit
from ptokit import *
from ptokit.frontend import advice
from ptokit.machine.faults import OutOfBounds

V = TileType.Vec


def caught_line(error: BaseException) -> str:
    """The source line the first diagnostic points at."""
    (first, *_) = error.diagnostics  # type: ignore[attr-defined]
    return first.location.text.strip()


def test_the_caret_stands_under_the_call() -> None:
    with device("a2a3"):
        a, b = Tile[V, uint8, 16, 32](), Tile[V, uint8, 16, 32]()
        TASSIGN[0](a)
        TASSIGN[0x400](b)
        with pytest.raises(ProgramError) as caught:
            TADD(a, a, b)
    text = str(caught.value)
    head, line, caret, got, fix = text.strip().splitlines()
    assert head.endswith(
        "error[SA-0134] [a2a3]: TADD: element type of dst must be one of f16 f32 i16 i32"
    )
    assert head.startswith(__file__)
    start = line.index("TADD")
    assert caret[start : start + len("TADD(a, a, b)")] == "^" * len("TADD(a, a, b)")
    assert got == "  got: dst.dtype = u8"
    assert fix.startswith("  fix: use one of these element types")


def test_all_violations_come_at_once() -> None:
    with device("a2a3", rules="strict"):
        a = Tile[V, float32, 16, 16]()
        b = Tile[V, half, 16, 32]()
        TASSIGN[0](a)
        TASSIGN[0x1000](b)
        with pytest.raises(ProgramError) as caught:
            TADD(a, a, b)
    assert caught.value.codes == ("TADD.same-dtype", "PA-0017")


def test_no_frame_or_file_of_ours_shows() -> None:
    package = ptokit.__path__[0]
    with device("a2a3"):
        a = Tile[V, float32, 16, 16]()
        TASSIGN[0](a)
        with pytest.raises(ProgramError) as caught:
            TADD(a, a, a)
    assert caught.value.codes == ("poison-read",)
    assert package not in str(caught.value)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert not [f for f in frames if f.filename.startswith(package)]


def test_poison_names_the_element() -> None:
    with device("a2a3"):
        tile = Tile[V, float32, 16, 16, BLayout.RowMajor, DYNAMIC, DYNAMIC](4, 16)
        TASSIGN[0](tile)
        tile.fill(1)
        tile.SetValidRow(5)
        with pytest.raises(
            ProgramError, match=r"TADD reads src0\[4, 0\], which nothing has written"
        ):
            TADD(tile, tile, tile)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda a: TADD(a, a), "no form of TADD takes these operands"),
        (lambda a: TADD(a, a, 3), "no form of TADD takes these operands"),
        (lambda a: TADD(a, a, "x"), "no form of TADD takes these operands"),
        (lambda a: TADD[CmpMode.EQ](a, a, a), "TADD has no template parameter for this argument"),
        (lambda a: device("a6"), "there is no target 'a6'"),
        (lambda a: device("a5", mode="fast"), "mode is one of"),
        (lambda a: Tile[V, "float99", 8, 8], "float99"),
        (lambda a: Tile[V], "Tile does not take these template arguments: their number is wrong"),
        (lambda a: Tile["Vec", float32, 8, 8], "write TileType.Vec, not 'Vec'"),
        (lambda a: Tile[V, float32, 8.5, 8], "cannot be interpreted as an integer"),
        (lambda a: Tile[V, float32, 8, 8, SLayout.RowMajor], "SLayout.RowMajor is not a BLayout"),
        (lambda a: TileLeft[half, 64], "fix: TileLeft[DType, Rows, Cols, ValidRow, ValidCol]"),
        (lambda a: ConvTile[V, half], "fix: ConvTile[Loc, DType, BufferSize, Layout"),
        (lambda a: GlobalTensor[float32], "fix: GlobalTensor[DType, Shape[...], Stride[...]"),
        (lambda a: TLOAD(a, np.zeros((16, 16))), "once it is wrapped: GlobalTensor(array)"),
        (lambda a: TADD(type(a), a, a), "a tile is made by calling its type"),
        (lambda a: TADD(dst=a, src0=a, src=a), "no argument named src; did you mean src1"),
        (lambda a: TADD(a, src0=a), "TADD does not take these arguments together"),
        (lambda a: TCVT(a, a, mod=RoundMode.CAST_CEIL), "named mod; did you mean mode?"),
        (
            lambda a: GlobalTensor(np.zeros((4, 4), "f4"), banana=3),
            "no argument named banana",
        ),
        (lambda a: GlobalTensor(np.zeros((4, 4), "f4"), shap=3), "did you mean shape?"),
        (lambda a: type(a)(rows=3), "takes no argument named rows"),
        (lambda a: a.fill(np.zeros((3, 3))), "got: values = (3, 3), valid region = (16, 16)"),
        (lambda a: Event[TLOAD, TADD], "fix: name the operations by their class"),
        (lambda a: GlobalTensor(np.zeros((4, 4), np.float32))[0:5], "0 <= start < stop <= 4"),
        (lambda a: supports("TAD"), "there is no instruction 'TAD'"),
    ],
)
def test_wrong_calls_get_a_sentence(call: object, sentence: str) -> None:
    with device("a2a3"):
        a = Tile[V, float32, 16, 16]()
        TASSIGN[0](a)
        with pytest.raises(PtoError) as caught:
            call(a)  # type: ignore[operator]
    assert sentence in str(caught.value)
    assert "test_messages.py" in caught_line(caught.value) or "lambda" in caught_line(caught.value)


def test_a_name_that_no_enumeration_has_gets_the_nearest() -> None:
    for attribute, meant in (
        (lambda: TileType.Vek, "TileType has no member 'Vek'; did you mean TileType.Vec?"),
        (lambda: RoundMode.CAST_RNE, "did you mean RoundMode.CAST_RINT?"),
        (lambda: BLayout.Column, "one of RowMajor, ColMajor"),
        (lambda: Op.TLOADD, "did you mean Op.TLOAD?"),
    ):
        with pytest.raises(AttributeError) as caught:
            attribute()
        assert meant in str(caught.value)
    assert not hasattr(TileType, "Vek")


@pytest.mark.parametrize(
    ("name", "said"),
    [("In", ""), ("Or", "did you mean TOR("), ("add", "did you mean TADD("), ("TLOADD", "TLOAD(")],
)
def test_short_names_are_like_few_others(name: str, said: str) -> None:
    """Two letters are part of many names."""
    found = advice.meant(name)
    assert found.startswith(said) or said in found
    assert bool(found) == bool(said)


@pytest.mark.parametrize("address", [-32, 192 * 1024 - 32])
def test_a_tile_outside_its_memory_cannot_be_looked_into(address: int) -> None:
    with device("a2a3"):
        tile = Tile[V, float32, 16, 16]()
        TASSIGN(tile, address)
        for look in (tile.numpy, lambda: tile.fill(0)):
            with pytest.raises(OutOfBounds, match="the tile lies inside UB"):
                look()


def test_template_type_arguments_are_checked_against_the_operands() -> None:
    TileT, Other = Tile[V, float32, 16, 16], Tile[V, half, 16, 16]
    with device("a2a3"):
        a = TileT()
        TASSIGN[0](a)
        a.fill(1)
        TADD[TileT, TileT, TileT](a, a, a)
        with pytest.raises(ProgramError, match="type argument"):
            TADD[Other](a, a, a)


def test_errors_are_plain_data_for_tools() -> None:
    with device("a2a3"), pytest.raises(ProgramError) as caught:
        TASSIGN[0x40000](Tile[V, float32, 16, 16]())
    data = caught.value.diagnostics[0].to_json()
    assert data["code"] == "SA-0353"
    assert data["location"]["file"] == __file__
    assert data["got"]["UB.capacity"] == "196608"


@kernel(mode="auto")
def behind_wide_characters(x: Any) -> None:
    a = Tile[TileType.Vec, float32, 16, 64]()
    _ = "é\N{GRINNING FACE}中文 😀"; TADDS(a, x, 1.0)  # fmt: skip  # noqa: E702


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_columns_count_characters(path: str) -> None:
    """Python counts bytes; a caret and an editor want characters."""
    with pytest.raises(PtoError) as caught:
        behind_wide_characters[1](np.zeros((16, 64), np.float32), path=path)
    at = caught.value.diagnostics[0].location
    assert at is not None
    assert at.text[at.col - 1 : at.end_col - 1] == "TADDS(a, x, 1.0)"
