"""Programs for the bindings of MLIR: they build programs of ours, and run as those do."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from ptokit import compat
from ptokit.base.diagnostics import PtoError
from ptokit.compat.operations import operation_named
from ptokit.from_text import Program
from ptokit.ir.dialects import DEFINITIONS
from ptokit.ir.instructions import mnemonics
from tests.command import command
from tests.compat.programs import ADD


@pytest.fixture(autouse=True)
def stand_in() -> Iterator[None]:
    compat.install(replace=True)
    yield
    compat.install()  # as the import has left it


def dialect(name: str) -> Any:
    return importlib.import_module(f"mlir.dialects.{name}")


def ir() -> Any:
    return importlib.import_module("mlir.ir")


def built(*inputs: Any, body: Callable[..., None]) -> Any:
    """A module with one function `k` that has this body."""
    func, mlir = dialect("func"), ir()
    module = mlir.Module.create()
    with mlir.InsertionPoint(module.body):
        func.FuncOp.from_py_func(*inputs, name="k")(body)
    return module


def vector(rows: int, cols: int, element: str = "f32") -> Any:
    pto = dialect("pto")
    return pto.TileBufType.get([rows, cols], ir().Type.parse(element), pto.AddressSpace.VEC)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "add.py"
    file.write_text(ADD, "utf-8")
    return file


def test_a_script_builds_a_program_that_runs(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = compat.programs_of(script)
    assert "pto.tadd" in capsys.readouterr().out
    x, y = (np.random.default_rng(n).random((16, 64), np.float32) for n in (1, 2))
    z = np.zeros_like(x)
    program["add"][1](x, y, z, sync="insert")
    np.testing.assert_array_equal(z, x + y)


def test_both_packages_are_answered() -> None:
    assert importlib.import_module("ptoas.mlir.ir").Module is ir().Module
    assert importlib.import_module("ptoas.mlir.dialects.pto") is dialect("pto")


def test_bindings_that_are_installed_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mlir").mkdir()
    (tmp_path / "mlir" / "__init__.py").write_text("real = True\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    compat.install()
    assert importlib.import_module("mlir").real
    del sys.modules["mlir"]
    compat.install(replace=True)
    assert not hasattr(importlib.import_module("mlir"), "real")


def test_uninstalled_it_answers_nothing() -> None:
    compat.uninstall()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("mlir.ir")


_CLASSES = [
    name for name in (*DEFINITIONS, *mnemonics()) if name.partition(".")[0] in ("pto", "arith")
]


@pytest.mark.parametrize("start", range(0, len(_CLASSES), 200))
def test_every_operation_has_a_class_and_a_function(start: int) -> None:
    for name in _CLASSES[start : start + 200]:
        of, _, rest = name.partition(".")
        words = re.split(r"[._]", rest)
        as_class = "".join(word[:1].upper() + word[1:] for word in words) + "Op"
        assert operation_named(of, as_class), name
        assert operation_named(of, rest.replace(".", "_")), name


def test_the_text_is_that_of_the_program(script: Path) -> None:
    (program,) = compat.programs_of(script)
    again = Program(program.module)
    assert [op.name for op in again.module.walk()].count("pto.tload") == 2


def test_operations_have_the_line_of_python(script: Path) -> None:
    (program,) = compat.programs_of(script)
    line = next(n for n, text in enumerate(ADD.splitlines(), 1) if "TAddOp" in text)
    (add,) = (op for op in program.module.walk() if op.name == "pto.tadd")
    assert add.location.origin is not None
    assert (add.location.origin.file, add.location.origin.line) == (str(script), line)


# ---- arguments -----------------------------------------------------------------------------------


def _ops(module: Any, name: str) -> list[Any]:
    return [op for op in module.ours.walk() if op.name == name]


def test_operands_by_name_and_position_mean_the_same() -> None:
    pto = dialect("pto")

    def body() -> None:
        a, b, c = (pto.AllocTileOp(vector(8, 64)).result for _ in range(3))
        pto.TSubOp(a, b, c)
        pto.TSubOp(dst=c, src1=b, src0=a)
        pto.tsub(a, b, dst=c)

    first, second, third = _ops(built(body=body), "pto.tsub")
    assert first.labels == second.labels == third.labels
    assert first.operands == second.operands == third.operands


def test_what_an_operation_does_not_take_is_refused_by_its_kind() -> None:
    pto = dialect("pto")

    def body() -> None:
        tiles = [pto.AllocTileOp(vector(1, 128)).result for _ in range(2)]
        out, scratch = (pto.AllocTileOp(vector(1, 256)).result for _ in range(2))
        counts = dialect("pto").AllocTileOp(vector(1, 64, "i16")).result
        pto.TMrgSortOp(srcs=tiles, dsts=[out], tmp=scratch, excuted=counts)

    # The list of counts is no tile in the dialect: it is refused by what it takes, not by its name.
    with pytest.raises(TypeError, match=r"pto\.tmrgsort"):
        built(body=body)


def test_attributes_are_members_names_or_numbers() -> None:
    pto, mlir = dialect("pto"), ir()

    def body() -> None:
        a, b = (pto.AllocTileOp(vector(8, 64, e)).result for e in ("f32", "f16"))
        pto.TCvtOp(a, b, rmode=pto.RoundModeAttr.get(pto.RoundMode.FLOOR))
        pto.TCvtOp(a, b, rmode="FLOOR")
        pto.TCvtOp(a, b, rmode=mlir.Attribute.parse("#pto<round_mode FLOOR>"))

    found = [op.attrs for op in _ops(built(body=body), "pto.tcvt")]
    assert found[0] == found[1] == found[2] != {}


def test_flags_take_pipes_and_ids_as_members_or_numbers() -> None:
    pto = dialect("pto")

    def body() -> None:
        pto.set_flag(pto.PIPE.PIPE_MTE2, pto.PIPE.PIPE_V, 3)
        pto.wait_flag(pto.PIPE.PIPE_MTE2, pto.PIPE.PIPE_V, pto.EVENT_ID3)
        pto.record_event(pto.TLOAD, pto.TVEC, pto.EVENT_ID0)
        pto.wait_event(pto.TLOAD, pto.TVEC, pto.EVENT_ID0)
        pto.barrier(pto.PIPE.PIPE_V)
        pto.barrier(pto.TVEC)

    text = str(built(body=body))
    assert text.count("<PIPE_MTE2>, <PIPE_V>, <EVENT_ID3>") == 2
    assert "pto.barrier_sync" in text


def test_a_number_is_no_member_while_something_else_is_a_number() -> None:
    pto, mlir = dialect("pto"), ir()
    part = pto.PartitionTensorViewType.get([64], mlir.F32Type.get())

    def body(x: Any, y: Any, z: Any) -> None:
        tile = pto.AllocTileOp(vector(1, 64)).result
        pto.TBroadcastOp(x, tile, [y, z], 1)

    (op,) = _ops(built(part, part, part, body=body), "pto.comm.tbroadcast")
    assert {key: str(value) for key, value in op.attrs.items()} == {"root": "1 : i32"}


def test_types_of_registers() -> None:
    pto, mlir = dialect("pto"), ir()
    f32, i32 = mlir.F32Type.get(), mlir.Type.parse("i32")
    register, mask = pto.VRegType.get(64, f32), pto.MaskType.get("b32")
    assert (str(register), register.element_count, register.element_type) == (
        "!pto.vreg<64xf32>",
        64,
        f32,
    )
    assert (str(mask), mask.granularity) == ("!pto.mask<b32>", "b32")
    logical, its_mask = pto.VMIVRegType.get(256, f32), pto.VMIMaskType.get(256)
    assert (str(logical), logical.element_count) == ("!pto.vmi.vreg<256xf32>", 256)
    assert (its_mask.element_count, its_mask.granularity) == (256, "pred")
    assert str(pto.StructType.get([i32, f32])) == "!pto.struct<i32, f32>"
    for made in (register, mask, logical, its_mask):
        assert mlir.Type.parse(str(made)) == made
        assert type(mlir.Type.parse(str(made))) is type(made)
    with pytest.raises(ValueError, match="256 bytes"):
        pto.VRegType.get(32, f32)


def test_results_are_inferred_where_the_bindings_infer_them() -> None:
    pto, arith, mlir = dialect("pto"), dialect("arith"), ir()
    index = mlir.IndexType.get()
    seen: list[str] = []

    def body(n: Any) -> None:
        total = arith.AddIOp(n, arith.ConstantOp(index, 2)).result
        seen.append(str(total.type))
        less = arith.CmpIOp(arith.CmpIPredicate.slt, total, n)
        seen.append(str(arith.SelectOp(less, total, n).result.type))
        seen.append(str(arith.IndexCastOp(index, pto.GetBlockIdxOp()).result.type))

    built(index, body=body)
    assert seen == ["index", "index", "index"]


def test_loops_and_branches() -> None:
    scf, arith, pto, mlir = dialect("scf"), dialect("arith"), dialect("pto"), ir()
    index, point = mlir.IndexType.get(), mlir.InsertionPoint
    pointer = pto.PtrType.get(mlir.F32Type.get())

    def body(out: Any, n: Any) -> None:
        c0, c1 = (arith.ConstantOp(index, k).result for k in (0, 1))
        loop = scf.ForOp(c0, n, c1, [c0])
        with point(loop.body):
            odd = arith.CmpIOp(arith.CmpIPredicate.eq, loop.induction_variable, c1)
            branch = scf.IfOp(odd, [index], hasElse=True)
            with point(branch.then_block):
                scf.YieldOp([c1])
            with point(branch.else_block):
                scf.YieldOp([c0])
            more = arith.AddIOp(loop.inner_iter_args[0], branch.result)
            scf.YieldOp([more.result])
        one = arith.ConstantOp(mlir.F32Type.get(), 1.5).result
        pto.store_scalar(out, loop.results[0], one)

    program = compat.program(built(pointer, index, body=body))
    out = np.zeros(4, np.float32)
    program["k"][1](out, 5)
    assert out.tolist() == [0, 1.5, 0, 0]


def test_an_operation_by_its_name() -> None:
    pto, mlir = dialect("pto"), ir()

    def body() -> None:
        tile = pto.AllocTileOp(vector(8, 64)).result
        mlir.Operation.create("pto.tneg", operands=[tile, tile])

    assert len(_ops(built(body=body), "pto.tneg")) == 1


# ---- what is refused -----------------------------------------------------------------------------


def test_what_is_unknown_is_told_by_name_with_its_line(script: Path) -> None:
    wrong = ADD.replace("pto.TAddOp", "pto.TAdddOp")
    script.write_text(wrong, "utf-8")
    line = next(n for n, text in enumerate(wrong.splitlines(), 1) if "TAdddOp" in text)
    with pytest.raises(PtoError, match=r"mlir\.dialects\.pto has no TAdddOp") as told:
        compat.programs_of(script)
    (found,) = told.value.diagnostics
    assert found.location is not None
    assert found.location.line == line
    assert "tadd" in found.message


def test_unknown_operands_and_attributes_are_told_with_those_there_are() -> None:
    pto = dialect("pto")

    def operand() -> None:
        tile = pto.AllocTileOp(vector(8, 64)).result
        pto.TAddOp(tile, tile, wrong=tile)

    def key() -> None:
        tile = pto.AllocTileOp(vector(8, 64)).result
        pto.TAddOp(tile, tile, tile, wrong=3)

    for body in (operand, key):
        with pytest.raises(TypeError, match=r"pto\.tadd: there is no .*wrong.*src0") as told:
            built(body=body)
        assert "test_stand_in.py:" in str(told.value)


def test_a_type_that_does_not_fit_is_told_at_its_line() -> None:
    arith, mlir = dialect("arith"), ir()

    def body(n: Any) -> None:
        arith.AddIOp(n, arith.ConstantOp(mlir.F32Type.get(), 1.0))

    with pytest.raises(PtoError, match="lhs and rhs have one type") as told:
        built(mlir.IndexType.get(), body=body)
    assert "test_stand_in.py" in str(told.value)


def test_an_operation_outside_of_blocks() -> None:
    with pytest.raises(ValueError, match="InsertionPoint"):
        dialect("pto").GetBlockIdxOp()


def test_texts_are_read_and_mistakes_in_them_are_errors_of_the_bindings() -> None:
    mlir = ir()
    assert "@k" in str(mlir.Module.parse("func.func @k() { return }"))
    with pytest.raises(mlir.MLIRError, match=r"pto\.nothing"):
        mlir.Module.parse("func.func @k() { pto.nothing }")


def test_isinstance_asks_for_types_and_attributes() -> None:
    mlir, pto = ir(), dialect("pto")
    assert isinstance(mlir.IntegerType.get_signless(32), mlir.IntegerType)
    assert isinstance(vector(8, 64), pto.TileBufType)
    assert not isinstance(mlir.F32Type.get(), mlir.IntegerType)
    assert isinstance(mlir.BoolAttr.get(True), mlir.BoolAttr)
    assert isinstance(pto.PIPE.PIPE_V, pto.PIPE)
    assert vector(8, 64).element_type == mlir.F32Type.get()
    assert vector(8, 64).shape == [8, 64]


# ---- the command ---------------------------------------------------------------------------------


def test_the_command_runs_a_script(script: Path, tmp_path: Path) -> None:
    done = command(
        "run", "--compat", script, "f32[16,64]", "f32[16,64]", "f32[16,64]", "--out", tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "arg2.npy").is_file()
    drawn = command("run", "--compat", script, "--seed", "1")
    assert "1 ran" in drawn.stdout


def test_the_command_says_what_a_script_lacks(tmp_path: Path) -> None:
    empty = tmp_path / "empty.py"
    empty.write_text("import mlir.ir\n", "utf-8")
    done = command("run", "--compat", empty)
    assert "has built no module" in done.stderr
    wants = tmp_path / "wants.py"
    wants.write_text("import sys\nsys.exit(len(sys.argv) - 3)\n", "utf-8")
    told = command("run", "--compat", wants, "--", "one").stderr
    assert "wants.py ended with exit code -1" in told
    assert "after --" in told
    two = tmp_path / "two.py"
    two.write_text(ADD + "    build()\n", "utf-8")
    assert "builds 2 programs" in command("run", "--compat", two).stderr


def test_modules_are_of_the_stand_in() -> None:
    assert isinstance(dialect("scf"), ModuleType)
    with pytest.raises(ModuleNotFoundError):
        dialect("nothing")


def test_the_programs_of_the_guide(tmp_path: Path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs/guide/compat.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 2
    for number, code in enumerate(blocks):  # kernels are read again: they stand in files
        file = tmp_path / f"guide_{number}.py"
        file.write_text(code, "utf-8")
        exec(compile(code, str(file), "exec"), {"__name__": "guide"})


def test_a_misspelt_operand_is_named() -> None:
    pto = dialect("pto")
    tile = vector(16, 64)

    def body() -> None:
        a, b = pto.AllocTileOp(tile).result, pto.AllocTileOp(tile).result
        with pytest.raises(TypeError, match=r"no operand tmpp; did you mean 'tmp'"):
            pto.TRowMaxOp(src=a, tmpp=b, dst=b)
        with pytest.raises(TypeError, match=r"no operand s; its operands: .*src"):
            pto.TExpOp(s=a, dst=b)
        pto.TExpOp(src=a, dst=b)

    built(body=body)


def test_names_that_classes_have_and_records_do_not() -> None:
    pto, tiles = dialect("pto"), {}
    for name, space in (("lhs", "LEFT"), ("rhs", "RIGHT"), ("dst", "ACC")):
        tiles[name] = pto.TileBufType.get(
            [16, 16], ir().F32Type.get(), getattr(pto.AddressSpace, space)
        )

    def body() -> None:
        made = {name: pto.AllocTileOp(kind).result for name, kind in tiles.items()}
        pto.TMatmulOp(None, **made)

    assert "pto.tmatmul" in str(built(body=body))


def test_names_that_single_classes_have() -> None:
    pto, arith, mlir = dialect("pto"), dialect("arith"), ir()
    index, i64, f32 = mlir.IndexType.get(), mlir.Type.parse("i64"), mlir.F32Type.get()
    pointer = pto.PtrType.get(f32)

    def body(ptr: Any) -> None:
        tile = pto.AllocTileOp(vector(8, 64)).result
        word, number = arith.ConstantOp(i64, 7).result, arith.ConstantOp(f32, 2.0).result
        for given in ({"tile": tile}, {"obj": tile}):
            pto.TAssignOp(**given, addr=word)
        for rows in (pto.TileValidRowsOp(index, src=tile), pto.TileValidRowsOp(index, tile)):
            assert rows.result.type == index
        pto.CastPtrOp(i64, input=ptr)
        pto.SetFFTsOp(ffts=word)
        pto.SetQuantScalarOp(scale=word)
        pto.CmoCacheInvalidOp(addr=ptr)
        pto.TPowSOp(src=tile, scalar=number, dst=tile)
        pto.TPushToAivOp(tile=tile, split=0)

    module = built(pointer, body=body)
    first, second = _ops(module, "pto.tassign")
    assert (first.labels, first.operands) == (second.labels, second.operands)
    for name in ("castptr", "set_ffts", "set_quant_scalar", "cmo.cacheinvalid", "tpows"):
        assert len(_ops(module, f"pto.{name}")) == 1


def test_names_of_operands_of_registers() -> None:
    pto, mlir = dialect("pto"), ir()
    f32, index = mlir.F32Type.get(), mlir.IndexType.get()
    register, mask = pto.VRegType.get(64, f32), pto.MaskType.get("b32")
    local = pto.PtrType.get(f32, pto.AddressSpace.VEC)

    def body(p: Any, q: Any) -> None:
        at = dialect("arith").ConstantOp(index, 0).result
        every = pto.PsetB32Op(mask, "PAT_ALL").result
        x = pto.VldsOp(register, source=p, offset=at).result
        y = pto.VaddOp(register, lhs=x, rhs=x, mask=every).result
        pto.VstsOp(value=y, destination=q, offset=at, mask=every)

    module = built(local, local, body=body)
    (store,), (load,) = _ops(module, "pto.vsts"), _ops(module, "pto.vlds")
    assert dict(zip(load.labels, load.operands, strict=True))["base"].name == "arg0"
    assert dict(zip(store.labels, store.operands, strict=True))["base"].name == "arg1"


def test_a_name_of_one_class_is_none_of_another() -> None:
    """`slope` is the number of one instruction and `indices` the tile of one; src7 is nothing."""
    pto = dialect("pto")

    def made(name: str, **given: str) -> str:
        def body() -> None:
            tiles = {
                "t": pto.AllocTileOp(vector(8, 64)).result,
                "i": pto.AllocTileOp(vector(8, 64, "i32")).result,
                "s": dialect("arith").constant(ir().F32Type.get(), 2.0),
            }
            getattr(pto, name)(None, **{key: tiles[each] for key, each in given.items()})

        return str(built(body=body))

    assert "pto.tlrelu" in made("TLReluOp", src="t", slope="s", dst="t")
    assert "pto.tgather" in made("TGatherOp", src="t", indices="i", tmp="i", dst="t")
    for name, wrong in (
        ("TAddSOp", {"src": "t", "slope": "s", "dst": "t"}),
        ("TAddOp", {"src0": "t", "indices": "t", "dst": "t"}),
        ("TAbsOp", {"src7": "t", "dst": "t"}),
        ("TAbsOp", {"src": "t", "src0": "t", "dst": "t"}),
    ):
        with pytest.raises(TypeError, match=r"there is no operand|given twice"):
            made(name, **wrong)


def test_older_classes_have_the_result_behind_the_first_operand() -> None:
    pto = dialect("pto")
    texts: set[str] = set()
    for order in ((0, 1, 2), (0, 2, 1)):

        def body(order: tuple[int, ...] = order) -> None:
            kinds = vector(1, 32), vector(1, 32, "ui32"), vector(1, 64)
            tiles = [pto.AllocTileOp(kind).result for kind in kinds]
            pto.TSort32Op(*(tiles[n] for n in order))

        (line,) = (each for each in str(built(body=body)).splitlines() if "tsort32" in each)
        texts.add(line)
    assert len(texts) == 1


def test_older_programs_gather_without_a_temporary() -> None:
    """They leave it out, which texts do not: it is a tile like that of the indices."""
    pto, mlir = dialect("pto"), ir()
    kinds = [pto.PtrType.get(mlir.Type.parse(each)) for each in ("f32", "i32", "f32")]

    def body(*pointers: Any) -> None:
        tiles: list[Any] = []
        views: list[Any] = []
        n1, n64 = (dialect("arith").ConstantOp(mlir.IndexType.get(), n).result for n in (1, 64))
        n0 = dialect("arith").ConstantOp(mlir.IndexType.get(), 0).result
        for pointer, element in zip(pointers, ("f32", "i32", "f32"), strict=True):
            kind = mlir.Type.parse(element)
            whole = pto.MakeTensorViewOp(
                pto.TensorViewType.get(2, kind), pointer, [n1, n64], [n64, n1]
            ).result
            part = pto.PartitionTensorViewType.get([1, 64], kind)
            views.append(pto.PartitionViewOp(part, whole, [n0, n0], [n1, n64]).result)
            tiles.append(pto.AllocTileOp(vector(1, 64, element)).result)
        pto.TLoadOp(None, views[0], tiles[0])
        pto.TLoadOp(None, views[1], tiles[1])
        pto.TGatherOp(tiles[0], tiles[2], indices=tiles[1])
        pto.TStoreOp(None, tiles[2], views[2])

    program = compat.program(built(*kinds, body=body))
    x = np.random.default_rng(1).standard_normal(64).astype(np.float32)
    places, y = np.arange(64, dtype=np.int32)[::-1].copy(), np.zeros(64, np.float32)
    program["k"][1](x, places, y, sync="insert")
    np.testing.assert_array_equal(y, x[::-1])


def test_verify_says_what_the_language_does_not_allow() -> None:
    """As its verifier does; what only a device asks for is told when the program is for one."""
    pto, mlir = dialect("pto"), ir()
    f32 = mlir.F32Type.get()

    def read_from(space: Any) -> Any:
        def body() -> None:
            tile = pto.AllocTileOp(pto.TileBufType.get([16, 16], f32, space)).result
            pto.TGetValOp(f32, tile, dialect("arith").ConstantOp(mlir.IndexType.get(), 0).result)

        return built(body=body)

    assert read_from(pto.AddressSpace.VEC).operation.verify()
    with pytest.raises(mlir.MLIRError, match=r"GETVAL\.location"):
        read_from(pto.AddressSpace.MAT).operation.verify()

    def with_tmp() -> None:
        column = pto.TileBufType.get(
            [16, 1],
            f32,
            pto.AddressSpace.VEC,
            [16, 1],
            pto.TileBufConfigAttr.get(pto.BLayout.ColMajor, pto.SLayout.NoneBox, 512, 0),
        )
        kinds = vector(16, 64), column, vector(8, 64, "i32"), vector(16, 64)
        src0, src1, tmp, dst = (pto.AllocTileOp(each).result for each in kinds)
        pto.TRowExpandMaxOp(src0=src0, src1=src1, tmp=tmp, dst=dst)

    with pytest.raises(mlir.MLIRError, match=r"tmp-type"):
        built(body=with_tmp).operation.verify()

    def product_in_ub() -> None:
        tiles = [pto.AllocTileOp(vector(16, 16)).result for _ in range(3)]
        pto.TMatmulOp(None, *tiles)

    module = built(body=product_in_ub)
    assert module.operation.verify()
    with pytest.raises(PtoError):
        compat.program(module)["k"][1]()


def test_a_program_that_says_its_target_is_verified_for_that_one() -> None:
    """A5 has gathers by index without a temporary; a text that says A2/A3 does not."""
    text = """module attributes {"pto.target_arch" = "%s"} { func.func @k() {
      %%a = pto.alloc_tile : !pto.tile_buf<vec, 1x64xf32>
      %%i = pto.alloc_tile : !pto.tile_buf<vec, 1x64xi32>
      %%b = pto.alloc_tile : !pto.tile_buf<vec, 1x64xf32>
      pto.tgather ins(%%a, %%i : !pto.tile_buf<vec, 1x64xf32>, !pto.tile_buf<vec, 1x64xi32>)
        outs(%%b : !pto.tile_buf<vec, 1x64xf32>)
      return
    } }"""
    module = ir().Module
    assert module.parse(text % "a5").operation.verify()
    assert module.parse(text.replace('attributes {"pto.target_arch" = "%s"}', "") % ()).verify()
    with pytest.raises(ir().MLIRError, match=r"TGATHER\.index-tmp"):
        module.parse(text % "a3").operation.verify()


def test_a_mask_says_for_which_lanes_it_is() -> None:
    pto = dialect("pto")
    assert str(pto.MaskType.get("b16")) == "!pto.mask<b16>"
    with pytest.raises(TypeError, match="for which lanes it is"):
        pto.MaskType.get()


def test_operations_go_in_front_of_others() -> None:
    pto, mlir = dialect("pto"), ir()
    tile = vector(16, 64)

    def body() -> None:
        t = pto.AllocTileOp(tile).result
        last = pto.TExpOp(t, t)
        with mlir.InsertionPoint(last):
            pto.TLogOp(t, t)
            loop = dialect("scf").ForOp(*(dialect("arith").constant(n) for n in (0, 4, 1)))
            with mlir.InsertionPoint(loop.body):
                inner = pto.TSqrtOp(t, t)
            with mlir.InsertionPoint(inner):
                pto.TAbsOp(t, t)

    names = re.findall(r"pto\.t(\w+) ins", str(built(body=body)))
    assert names == ["log", "abs", "sqrt", "exp"]


def test_blocks_that_jump_to_each_other_are_refused_by_name() -> None:
    def body() -> None:
        arith, scf = dialect("arith"), dialect("scf")
        loop = scf.ForOp(*(arith.constant(n) for n in (0, 4, 1)))
        with pytest.raises(PtoError, match=r"compat\.blocks.*one block"):
            loop.body_region.append()

    built(body=body)


# ---- what newer libraries ask for ----------------------------------------------------------------


def test_a_module_inside_another_holds_functions_of_its_own() -> None:
    mlir, func = ir(), dialect("func")
    module = mlir.Module.create()
    module.operation.attributes["pto.target_arch"] = mlir.StringAttr.get("a5")
    with mlir.InsertionPoint(module.body):
        inner = mlir.Operation.create("builtin.module", regions=1)
        inner.attributes["pto.backend"] = mlir.StringAttr.get("emitc")
        body = inner.regions[0].blocks.append()
        func.FuncOp.from_py_func(name="outside")(lambda: None)
    with mlir.InsertionPoint(body):
        made = func.FuncOp("inside", func.FunctionType.get([vector(16, 64)], []))
    with mlir.InsertionPoint(made.add_entry_block()):
        func.ReturnOp([])
    assert made.name.value == "inside"
    assert made.operation.parent.attributes["pto.backend"].value == "emitc"
    assert made.operation.parent.parent is module
    assert [each.name.value for each in inner.body.operations] == ["inside"]
    read = compat.program(module).module
    assert {f.name: f.unit is not None for f in read.functions} == {
        "outside": False,
        "inside": True,
    }
    assert 'pto.backend = "emitc"' in str(module)
    with mlir.InsertionPoint(made.entry_block), pytest.raises(ValueError, match="a module stands"):
        mlir.Operation.create("builtin.module", regions=1)


def test_operations_know_where_they_are_and_can_be_moved() -> None:
    pto, arith, scf, mlir = (*map(dialect, ("pto", "arith", "scf")), ir())
    names: list[str] = []

    def body(tile: Any) -> None:
        one = arith.ConstantOp(mlir.IndexType.get(), 1)
        loop = scf.ForOp(one, one, one)
        with mlir.InsertionPoint(loop.body):
            assert mlir.InsertionPoint.current.block.owner.name == "scf.for"
            first = pto.TAddOp(tile, tile, tile)
            second = pto.TMulOp(tile, tile, tile)
            gone = pto.TSubOp(tile, tile, tile)
        assert first.operation.parent.name == "scf.for"
        assert loop.operation.parent.name.value == "k"
        second.move_before(first)
        gone.operation.erase()
        assert gone.operation.parent is None
        after = arith.ConstantOp(mlir.IndexType.get(), 2)
        after.move_after(one)

    module = built(vector(16, 64), body=body)

    def note(op: Any) -> Any:
        names.append(op.name)
        return mlir.WalkResult.ADVANCE

    module.operation.walk(note)
    inner = ["pto.tmul", "pto.tadd", "scf.for"]
    assert names == ["arith.constant", "arith.constant", *inner, "func.return"]
    names.clear()
    module.operation.walk(lambda op: (note(op), mlir.WalkResult.INTERRUPT)[1])
    assert names == ["arith.constant"]


def test_types_with_a_shape_are_told_from_others() -> None:
    mlir, pto = ir(), dialect("pto")
    f32, unknown = mlir.F32Type.get(), mlir.ShapedType.get_dynamic_size()
    view = pto.TensorViewType.get([unknown, 4], f32)
    assert isinstance(view, mlir.ShapedType)
    assert not isinstance(f32, mlir.ShapedType)
    assert view.shape == [unknown, 4]
    layout = mlir.StridedLayoutAttr.get(unknown, [unknown, 1])
    assert str(mlir.MemRefType.get([4, 4], f32, layout)) == (
        "memref<4x4xf32, strided<[?, 1], offset: ?>>"
    )
    assert str(mlir.StridedLayoutAttr.get(0, [4, 1])) == "strided<[4, 1]>"


def test_a_type_is_of_the_class_that_it_is_made_of() -> None:
    mlir, pto = ir(), dialect("pto")
    f32 = mlir.F32Type.get()
    view = pto.TensorViewType.get([4, 4], f32)
    assert pto.TensorViewType(view) == view
    assert mlir.FloatType(mlir.Type.parse("f32")) == mlir.Type(f32) == f32
    for given, other in ((f32, pto.TensorViewType), (view, pto.TileBufType)):
        with pytest.raises(ValueError, match=f"is no {other.__name__}"):
            other(given)


@pytest.mark.parametrize(("name", "operation"), [("math", "ExpOp"), ("llvm", "GEPOp")])
def test_dialects_without_operations_here_refuse_each_by_its_name(
    name: str, operation: str
) -> None:
    with pytest.raises(AttributeError, match=f"mlir.dialects.{name} has no {operation}"):
        getattr(dialect(name), operation)
