"""Convolution tiles in text: every type and every parameter, in both forms, buffers and values."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit.base.convs import CONV_FIELDS as FIELDS
from ptokit.base.convs import ConvField
from ptokit.base.diagnostics import PtoError
from ptokit.base.dtypes import ALL, f16
from ptokit.base.enums import Layout, TileType
from ptokit.base.tensors import ConvSpec
from ptokit.from_text import loads
from ptokit.ir.attributes import Attribute, BoolAttr, FloatAttr, IntAttr, StringAttr
from ptokit.ir.builder import Builder
from ptokit.ir.core import Block, Function, Module, Value
from ptokit.ir.dialects.conv import GET_PARAM, SET_PARAM, field_type
from ptokit.ir.parser import parse
from ptokit.ir.printer import print_module
from ptokit.ir.rewrite import same_module
from ptokit.ir.types import F64, LAYOUTS, LOCATIONS, ConvTileType, ScalarType
from ptokit.ir.typetext import parse_type
from ptokit.isa.targets import TARGETS
from ptokit.passes.verify import Verify

SHAPES = [(1,), (4, 16), (1, 2, -1, -1, 16), (1, 1, 2, 4, 4, 32)]
INTEGERS = st.integers(0, 255)
FLOATS = st.floats(width=64, allow_nan=False)


@pytest.mark.parametrize("is_value", [False, True], ids=["buffer", "value"])
def test_every_type_reads_back(is_value: bool) -> None:
    for loc, layout in product(LOCATIONS.values(), LAYOUTS.values()):
        for kind, shape in zip((*ALL, f16), SHAPES * len(ALL), strict=False):
            type_ = ConvTileType(ConvSpec.of(loc, kind, 4096, layout, shape), is_value)
            assert parse_type(str(type_)) == type_


def module_with(type_: ConvTileType, said: dict[str, object], late: set[str]) -> Module:
    """A module that sets parameters: those of `late` are values known only at run time."""
    body = Block()
    tile = Value("t", type_, body)
    params = {name: Value(f"p_{name}", field_type(FIELDS[name], type_), body) for name in late}
    body.args = [tile, *params.values()]
    builder = Builder(body)
    for name, value in said.items():
        given = params.get(name)
        if given is None:
            wanted = field_type(FIELDS[name], type_)
            kind = F64 if wanted.is_float else wanted
            attr = {"value": constant_of(value, kind)}
            given = builder.op("arith.constant", {}, [kind], attr).result
        attrs = {"field": StringAttr(name)}
        results = [type_] if type_.is_value else []
        op = builder.op(SET_PARAM.name, {"tile": tile, "value": given}, results, attrs)
        tile = op.result if results else tile
    builder.op("func.return")
    return Module([Function("f", body)])


def constant_of(value: object, kind: ScalarType) -> Attribute:
    assert isinstance(value, int | float)
    if kind.is_float:
        return FloatAttr(float(value), kind)
    return BoolAttr(bool(value)) if kind.name == "i1" else IntAttr(int(value), kind)


def values_for(field: ConvField, kind: str) -> st.SearchStrategy[object]:
    if field.kind == "i1":
        return st.booleans()
    return FLOATS if field.kind == "num" and kind == "f16" else INTEGERS


@pytest.mark.parametrize("kind", ["f16", "i8"])
@pytest.mark.parametrize("is_value", [False, True], ids=["buffer", "value"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_parameters_read_back(kind: str, is_value: bool, data: st.DataObject) -> None:
    element = ScalarType(kind).dtype
    assert element is not None
    spec = ConvSpec.of(TileType.Mat, element, 512, Layout.NC1HWC0, (1, 2, 4, 4, 16))
    names = data.draw(st.lists(st.sampled_from(list(FIELDS)), min_size=1, unique=True))
    said = {n: data.draw(values_for(FIELDS[n], kind)) for n in names}
    late = set(data.draw(st.lists(st.sampled_from(names), unique=True)))
    module = module_with(ConvTileType(spec, is_value), said, late)
    for generic in (False, True):
        text = print_module(module, generic=generic)
        assert same_module(parse(text), module), text
    assert not Verify().check(module, TARGETS["a5"])


@pytest.mark.parametrize("name", FIELDS)
def test_every_parameter_is_read_back_when_it_runs(name: str) -> None:
    """A number given as text arrives in the tile: it is stored where the caller sees it."""
    spec = ConvSpec.of(TileType.Mat, f16, 512, Layout.NC1HWC0, (1, 2, 4, 4, 16))
    tile, field = ConvTileType(spec), FIELDS[name]
    values = {"i1": "true", "num": "3.0 : f32", "index": "3 : index"}
    value, kind = values[field.kind], "i32"
    cast = {
        "index": "%n = arith.index_cast %v : index to i32",
        "f32": "%n = arith.fptosi %v : f32 to i32",
        "i1": "%n = arith.extui %v : i1 to i32",
    }[str(field_type(field, tile))]
    text = f"""func.func @f(%p: !pto.ptr<{kind}>) {{
      %c0 = arith.constant 0 : index
      %t = pto.alloc_tile : {tile}
      %given = arith.constant {value}
      {SET_PARAM} %t["{name}"], %given : {tile}, {field_type(field, tile)}
      %v = {GET_PARAM} %t["{name}"] : {tile} -> {field_type(field, tile)}
      {cast}
      pto.store_scalar %n, %p[%c0] : !pto.ptr<{kind}>, {kind}
      return
    }}"""
    y = np.zeros(1, np.int32)
    loads(text)["f"][1](y)
    assert y[0] == (1 if field.kind == "i1" else 3)


# ---- Level 1 -------------------------------------------------------------------------------------

T = "!pto.conv_tile<loc=mat, dtype=f16, size=512, layout=nc1hwc0, shape=1x2x4x4x16>"
VIEW = "!pto.tensor_view<1x2x4x4x16xf16>"
PART = "!pto.partition_tensor_view<1x2x4x4x16xf16>"
VALUES = f"""func.func @f(%p: !pto.ptr<f16>, %out: !pto.ptr<i32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  %v = pto.make_tensor_view %p, shape = [%c1, %c2, %c4, %c4, %c16],
       strides = [%c512, %c256, %c64, %c16, %c1] {{layout = #pto.layout<NC1HWC0>}} : {VIEW}
  %part = pto.partition_view %v, offsets = [%c0, %c0, %c0, %c0, %c0],
          sizes = [%c1, %c2, %c4, %c4, %c16] : {VIEW} -> {PART}
  %f = pto.tload %part : {PART} -> {T}
  %c5 = arith.constant 5 : index
  %g = {SET_PARAM} %f["stride_h"], %c5 : {T}, index -> {T}
  %new = {GET_PARAM} %g["stride_h"] : {T} -> index
  %old = {GET_PARAM} %f["stride_h"] : {T} -> index
  %i = arith.index_cast %old : index to i32
  %j = arith.index_cast %new : index to i32
  pto.store_scalar %i, %out[%c0] : !pto.ptr<i32>, i32
  pto.store_scalar %j, %out[%c1] : !pto.ptr<i32>, i32
  return
}}"""


@pytest.mark.parametrize("door", ["check", "run", "l2", "cpp"])
def test_an_old_value_that_is_still_used_has_no_buffer(door: str) -> None:
    """One buffer has one set of parameters, whichever way the program goes."""
    made = loads(VALUES)
    if door == "check":
        (found,) = made.check()
    else:
        doors = {
            "run": lambda: made["f"][1](np.zeros(512, np.float16), np.zeros(2, np.int32)),
            "l2": lambda: made.convert("l2"),
            "cpp": made.cpp,
        }
        with pytest.raises(PtoError) as caught:
            doors[door]()
        (found,) = caught.value.diagnostics
    assert "used with its old parameters" in found.message
    assert '%f["stride_h"], %c5' in found.location.text


def test_a_value_with_new_parameters_only_has_one() -> None:
    out = np.zeros(2, np.int32)
    only_new = VALUES.replace(f"{GET_PARAM} %f", f"{GET_PARAM} %g")
    loads(only_new).convert("l2")["f"][1](np.zeros(512, np.float16), out)
    assert out.tolist() == [5, 5]
