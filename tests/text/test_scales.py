"""Scales of block-scaled products in texts, which do not say how they lie in global memory."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ptokit import PtoError, loads
from ptokit.ir.printer import print_module
from ptokit.passes.scales import with_scale_layouts

M, K, N = 32, 128, 63  # the last box of the scales of b is begun, and not filled
BOXED = "blayout=col_major, slayout=row_major, fractal=512, pad=0"
ROWS = "blayout=row_major, slayout=row_major, fractal=32, pad=0"
COLS = "blayout=col_major, slayout=col_major, fractal=32, pad=0"


def _tile(place: str, kind: str, rows: int, cols: int, valid: tuple[int, int], config: str) -> str:
    sizes = f"rows={rows}, cols={cols}, v_row={valid[0]}, v_col={valid[1]}"
    return f"!pto.tile_buf<loc={place}, dtype={kind}, {sizes}, {config}>"


def program(k: int = K, scale: str = "!pto.f8E8M0", layout: str = "", b_cols: int = 64) -> str:
    """c = a * b with valid sizes M x k x N; the scales come as a matrix for each operand."""
    groups = 2 * -(-k // 64)
    padded = 32 * groups
    types = {
        "ma": _tile("mat", "f8E4M3FN", M, padded, (M, k), BOXED),
        "mb": _tile("mat", "f8E5M2", padded, b_cols, (k, N), BOXED),
        "msa": _tile("mat", scale, M, groups, (M, groups), ROWS),
        "msb": _tile("mat", scale, groups, 64, (groups, N), COLS),
        "a": _tile("left", "f8E4M3FN", M, padded, (M, k), BOXED),
        "b": _tile(
            "right", "f8E5M2", padded, b_cols, (k, N),
            "blayout=row_major, slayout=col_major, fractal=512, pad=0",
        ),
        "sa": _tile("scaling", scale, M, groups, (M, groups), ROWS),
        "sb": _tile("scaling", scale, groups, 64, (groups, N), COLS),
        "c": _tile(
            "acc", "f32", M, b_cols, (M, N),
            "blayout=col_major, slayout=row_major, fractal=1024, pad=0",
        ),
    }  # fmt: skip
    sizes = {"ma": (M, k), "mb": (k, N), "msa": (M, groups), "msb": (groups, N), "c": (M, N)}
    kinds = {"ma": "f8E4M3FN", "mb": "f8E5M2", "msa": scale, "msb": scale, "c": "f32"}
    numbers = sorted({n for size in sizes.values() for n in size} | {0, 1})
    lines = [f"%c{n} = arith.constant {n} : index" for n in numbers]
    lines += [f"%{name} = pto.alloc_tile : {type_}" for name, type_ in types.items()]
    for name, (rows, cols) in sizes.items():
        said = f" {{layout = #pto.layout<{layout}>}}" if layout and name == "msb" else ""
        whole = f"!pto.tensor_view<?x?x{kinds[name]}>"
        lines += [
            f"%w{name} = pto.make_tensor_view %g{name}, shape = [%c{rows}, %c{cols}], "
            f"strides = [%c{cols}, %c1]{said} : {whole}",
            f"%v{name} = pto.partition_view %w{name}, offsets = [%c0, %c0], "
            f"sizes = [%c{rows}, %c{cols}] : {whole}",
        ]
    views = {n: f"!pto.partition_tensor_view<{r}x{c}x{kinds[n]}>" for n, (r, c) in sizes.items()}
    lines += [
        f"pto.tload ins(%v{n} : {views[n]}) outs(%{n} : {types[n]})"
        for n in ("ma", "mb", "msa", "msb")
    ]
    lines += [
        f"pto.tmov ins(%m{n} : {types['m' + n]}) outs(%{n} : {types[n]})"
        for n in ("a", "b", "sa", "sb")
    ]
    given = ("a", "sa", "b", "sb")
    lines += [
        f"pto.tget_scale_addr ins(%{n} : {types[n]}) outs(%s{n} : {types['s' + n]})" for n in "ab"
    ]
    lines += [
        f"pto.tmatmul.mx ins({', '.join('%' + n for n in given)} : "
        f"{', '.join(types[n] for n in given)}) outs(%c : {types['c']})",
        f"pto.tstore ins(%c : {types['c']}) outs(%vc : {views['c']})",
    ]
    params = ", ".join(f"%g{name}: !pto.ptr<{kind}>" for name, kind in kinds.items())
    body = "\n  ".join([*lines, "return"])
    cube = "{pto.entry, pto.kernel_kind = #pto.kernel_kind<cube>}"
    return f"func.func @product({params}) attributes {cube} {{\n  {body}\n}}"


def _boxed_rows(scales: np.ndarray) -> np.ndarray:
    """16 rows by 2 groups, box behind box along a row of them."""
    rows, groups = scales.shape
    return scales.reshape(rows // 16, 16, groups // 2, 2).transpose(0, 2, 1, 3).reshape(-1)


def _run(text: str, k: int) -> tuple[np.ndarray, np.ndarray]:
    """What the program computes, and what it should."""
    rng = np.random.default_rng(7)
    groups = 2 * -(-k // 64)
    a = rng.integers(-3, 4, (M, k)).astype(ml_dtypes.float8_e4m3fn)
    b = rng.integers(-3, 4, (k, N)).astype(ml_dtypes.float8_e5m2)
    of_a = rng.integers(125, 130, (M, groups)).astype(np.uint8)
    of_b = rng.integers(125, 130, (groups, N)).astype(np.uint8)
    scales = [_boxed_rows(of_a), _boxed_rows(np.pad(of_b, ((0, 0), (0, 1))).T)]
    c = np.zeros((M, N), np.float32)
    given = (each.view(ml_dtypes.float8_e8m0fnu) for each in scales)
    program = loads(text)
    program["product"][1](a, b, *given, c, target="a5", rules="release")
    power_a, power_b = (2.0 ** (each.astype(int) - 127) for each in (of_a, of_b))
    full_a = a.astype(np.float64) * np.repeat(power_a, 32, axis=1)[:, :k]
    full_b = b.astype(np.float64) * np.repeat(power_b, 32, axis=0)[:k]
    return c, (full_a @ full_b).astype(np.float32)


@pytest.mark.parametrize("layout", ["", "mx_b_nn"])
def test_a_matrix_of_scales_lies_in_the_boxes_of_its_tile(layout: str) -> None:
    found, wanted = _run(program(layout=layout), K)
    np.testing.assert_array_equal(found, wanted)


def test_the_layout_is_written_where_a_program_is_placed() -> None:
    placed = loads(str(loads(program()).convert("l3", "a5", rules="release")))
    assert "layout = #pto.layout<mx_a_zz>" in str(placed)
    assert "layout = #pto.layout<mx_b_nn>" in str(placed)
    found, wanted = _run(str(placed), K)
    np.testing.assert_array_equal(found, wanted)


def test_a_view_with_other_uses_keeps_its_layout() -> None:
    """Scales that are loaded into tiles of two kinds lie in no boxes; numbers never do."""
    text = program()
    load = next(line for line in text.splitlines() if "tload ins(%vmsb" in line)
    again = load.replace("%msb :", "%more :").replace(COLS, ROWS)
    more = f"%more = pto.alloc_tile : {_tile('mat', '!pto.f8E8M0', 4, 64, (4, N), ROWS)}"
    module = loads(text.replace(load, f"{load}\n{more}\n{again}")).module
    printed = print_module(with_scale_layouts(module))
    assert "mx_b_nn" not in printed
    assert "mx_a_zz" in printed


def test_boxes_of_scales_in_cpp() -> None:
    made = loads(program()).cpp("a5", rules="release")
    boxes = "Shape<1, 4, 2, 16, 2>, Stride<256, 64, 32, 2, 1>, Layout::MX_B_NN"
    assert f"GlobalTensor<float8_e8m0_t, {boxes}>" in made


def test_k_that_is_not_padded_is_told_of() -> None:
    text = program(k=110)
    assert [each.code for each in loads(text).check("a5") if each.code != "mx-even"] == [
        "TMATMUL_MX.padded-k"
    ]
    found, wanted = _run(text, 110)
    np.testing.assert_array_equal(found, wanted)


def test_bytes_of_wider_scales_are_scales() -> None:
    """The hardware is given no tile of them, so its type cannot matter."""
    kinds = ("f8E4M3FN", "f8E5M2")
    a = _tile("left", kinds[0], 1, 512, (1, 128), BOXED)
    b = _tile("right", kinds[1], 128, 32, (128, 32),
              "blayout=row_major, slayout=col_major, fractal=512, pad=0")  # fmt: skip
    sa, sb = (
        _tile("scaling", "f16", 1, 4, (1, 4), ROWS),
        _tile("scaling", "f16", 4, 32, (4, 32), COLS),
    )
    c = _tile("acc", "f32", 1, 32, (1, 32),
              "blayout=col_major, slayout=row_major, fractal=1024, pad=0")  # fmt: skip
    text = f"""func.func @f(%a: {a}, %b: {b}, %sa: {sa}, %sb: {sb}, %c: {c}) {{
      pto.tgemv.mx ins(%a, %sa, %b, %sb : {a}, {sa}, {b}, {sb}) outs(%c : {c})
      return }}"""
    found = loads(text).check("a5", rules="release")
    assert [(each.code, each.severity) for each in found] == [("TGEMV_MX.scale-type", "warning")]


def test_scales_of_a_tile_that_a_caller_places_are_its_callers_too() -> None:
    made = program().replace("%sb = pto.alloc_tile", "%other = pto.alloc_tile")
    sb = _tile("scaling", "!pto.f8E8M0", 4, 64, (4, N), COLS)
    made = made.replace("func.func @product(", f"func.func @product(%sb: {sb}, ")
    with pytest.raises(PtoError, match=r"place.scales"):
        loads(made).convert("l3", "a5", rules="release")
