"""A mistake at any public door ends in the user's line: no frame of ptokit is shown above it.

The table of doors is checked against the public names: a new one without a mistake fails here.
"""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable
from enum import EnumType
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ptokit
from ptokit import *
from ptokit import comm
from ptokit.frontend.instruction import Instruction
from ptokit.frontend.launch import explore, launch

X = np.zeros((16, 16), np.float32)
BYTES = np.zeros(1 << 16, np.uint8)
TileT = Tile[TileType.Vec, float32, 16, 16]
Narrow = Tile[TileType.Vec, float32, 16, 16, BLayout.RowMajor, DYNAMIC, DYNAMIC]
GT = GlobalTensor[float32, Shape[1, 1, 1, 16, 16], Stride[256, 256, 256, 16, 1]]
ConvT = ConvTile[TileType.Mat, half, 4096, Layout.NC1HWC0, ConvTileShape[1, 1, 8, 16, 16]]
ConvD = ConvTile[TileType.Mat, half, 4096, Layout.NC1HWC0, ConvTileShape[1, DYNAMIC, 8, 16, 16]]
Pipe = TPipe[0, Direction.DIR_C2V, 1024, 2]
MPipe = TMPipe[0, FIFOType.GM_FIFO, 2, TileT, TileT]
TEXT = "func.func @f(%a: index) {\n  return\n}\n"


@kernel
def copy(x: Any, y: Any) -> None:
    t = TileT()
    TASSIGN(t, 0)
    TLOAD(t, GlobalTensor(x))
    PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
    TSTORE(GlobalTensor(y), t)


@kernel
def unbound(x: Any) -> None:
    TLOAD(TileT(), GlobalTensor(x))


@kernel(mode="auto")
def too_big(x: Any) -> None:
    t = Tile[TileType.Vec, float32, 256, 512]()
    TLOAD(t, GlobalTensor(x))


def mistake() -> None:
    TADD(TileT(), TileT())


def in_world(program: Callable[[Any], Any]) -> Any:
    return program(comm.World(2))


def as_cube(program: Callable[[], Any]) -> None:
    """Run on a cube core."""
    launch({"cube": program}, "a2a3")


def sent(event: Any) -> Any:
    with device("a5"):
        return event()


def run_small(**options: Any) -> Any:
    return copy[1](X, X.copy(), **options)


# Public name -> mistakes made with it. Each is called on its own, in a session of its own.
MISTAKES: dict[str, list[Callable[[], Any]]] = {
    "Tile": [
        lambda: Tile[TileType.Vec, float32, 3, 3],
        lambda: Tile[TileType.Vec, float32],
        lambda: Tile[TileType.Vec, "float31", 16, 16],
        lambda: Tile["Vec", float32, 16, 16],
        lambda: Tile(),
        lambda: TileT(3),
        lambda: Narrow(17, 16),
        lambda: Narrow(16, "x"),
        lambda: TileT().numpy(),
        lambda: TileT().fill(np.zeros((3, 3))),
        lambda: TileT().fill(0),
        lambda: TileT().SetValidRow(3),
        lambda: TileT().SetValidCol(3),
        lambda: Narrow(16, 16).SetValidShape(17, 1),
        lambda: TileT().GetValue(0),
        lambda: TileT().SetValue(-1, 0),
        lambda: Tile.NoSuch,
        lambda: TileT.NoSuch,
    ],
    **{
        name: [
            lambda name=name: getattr(ptokit, name)[half, 3, 3],
            lambda name=name: getattr(ptokit, name)[half],
            lambda name=name: getattr(ptokit, name)["half", 16, "x"],
        ]
        for name in ptokit.__all__
        if name.startswith(("TileLeft", "TileRight", "TileAcc"))
    },
    "TileShape2D": [
        lambda: TileShape2D[float32, 16, 15, Layout.NZ],
        lambda: TileShape2D[float32],
        lambda: TileShape2D["x", 16, 16],
        lambda: TileShape2D[float32, 16, 16, 99],
    ],
    "BaseShape2D": [
        lambda: BaseShape2D[float32, 16, 15, Layout.NZ],
        lambda: BaseShape2D[float32, 16],
        lambda: BaseShape2D[float32, "x", 16],
    ],
    "ConvTile": [
        lambda: ConvTile[TileType.Mat, half, 16, Layout.NC1HWC0, ConvTileShape[1, 1, 8, 16, 16]],
        lambda: ConvTile[TileType.Mat, half],
        lambda: ConvTile[TileType.Mat, half, 16, Layout.NC1HWC0, SimpleNamespace(dims="ab")],
        lambda: ConvTile(),
        lambda: ConvT(1, 2),
        lambda: ConvT().numpy(),
        lambda: ConvT().fill(0),
        lambda: ConvD().SetDynamicShape(),
        lambda: ConvT().SetFmapH(1 << 40),
        lambda: ConvT().SetFmapW("x"),
        lambda: ConvT().SetPadValue("x"),
        lambda: ConvT().SetPadListArray((1, 2)),
    ],
    "ConvTileShape": [lambda: ConvTileShape["x"], lambda: ConvTileShape[1.5]],
    "GlobalTensor": [
        lambda: GlobalTensor[float32],
        lambda: GlobalTensor[float32, 16, 16],
        lambda: GlobalTensor(),
        lambda: GlobalTensor(3),
        lambda: GlobalTensor(np.zeros(3, np.float64)),
        lambda: GlobalTensor(np.zeros((1,) * 6, np.float32)),
        lambda: GT(np.zeros(256, np.int32)),
        lambda: GT(X, Shape[1, 1, 1, 16, DYNAMIC](1, 2)),
        lambda: GT(X, 16),
        lambda: GT().data(),
        lambda: GT(np.zeros(3, np.float32)).numpy(),
        lambda: GT(X).GetShape(5),
        lambda: GT(X).GetStride(-1),
        lambda: GT(X)[0:17, 0:1],
        lambda: GT(X)[::2],
        lambda: GT(X)["x"],
        lambda: GT(X)[0, 1, 2],
    ],
    "Shape": [
        lambda: Shape[1, 2],
        lambda: Shape[1, 1, 1, "x", 1],
        lambda: Shape[1, 1, 1, DYNAMIC, DYNAMIC](1),
        lambda: Shape[1, 1, 1, DYNAMIC, DYNAMIC](1, "x"),
    ],
    "Stride": [lambda: Stride[1], lambda: Stride[1, 1, 1, DYNAMIC, 1](1, 2)],
    "ptr": [lambda: ptr(3), lambda: ptr(X, "x"), lambda: ptr(X) + "x", lambda: ptr(X) - None],
    "dtype": [lambda: dtype("float31"), lambda: dtype(np.float64), lambda: dtype(object())],
    "device": [
        lambda: device("a9"),
        lambda: device(7),
        lambda: device("a5", "maybe"),
        lambda: device(defines={"PTO_X": 1}),
    ],
    "supports": [lambda: supports("TLAOD"), lambda: supports("TLOAD", target="a9"),
                 lambda: supports("TLOAD", dtype="x")],
    "kernel": [
        lambda: kernel(mode="maybe"),
        lambda: kernel(core="both"),
        lambda: kernel(target="a9"),
        lambda: kernel(defines={"PTO_X": 1}),
    ],
    "Kernel": [
        lambda: copy(X, X),
        lambda: copy[0],
        lambda: copy["x"],
        lambda: copy[1](X),
        lambda: copy[1](X, X, 3),
        lambda: copy[1](X, 3),
        lambda: copy[1](X, X.astype(np.int8)),
        lambda: run_small(target="a9"),
        lambda: run_small(path="sideways"),
        lambda: run_small(check="maybe"),
        lambda: run_small(jobs=0),
        lambda: run_small(defines={"PTO_X": 1}),
        lambda: unbound[1](X),
        lambda: copy.check("a9", X, X),
        lambda: copy.check("all", X),
        lambda: copy.lower(X),
        lambda: copy.lower(X, X.astype(np.int8)),
        lambda: copy.text(X, X, form="bad"),
        lambda: copy.cpp(X),
        lambda: copy.memory_map(X),
        lambda: too_big.lower(np.zeros((256, 512), np.float32)),
    ],
    "load": [
        lambda: ptokit.load("/no/such/file.pto"),
        lambda: ptokit.loads(TEXT, part="x"),
    ],
    "cpp": [
        lambda: ptokit.cpp("/no/such/file.cpp"),
        lambda: ptokit.cpp(__file__).nothing,
        lambda: ptokit.cpp(__file__, core="bad"),
        lambda: ptokit.cpp(__file__, target="a9"),
    ],
    "run_folder": [
        lambda: ptokit.run_folder("/no/such/folder"),
        lambda: ptokit.run_folder("/no/such/folder", jobs=0),
    ],
    "run_goldens": [lambda: ptokit.run_goldens("/no/such/folder")],
    "load_parts": [lambda: ptokit.load_parts("/no/such/file.pto")],
    "TextLimits": [
        lambda: TextLimits(depth=3),
        lambda: loads("", limits=TextLimits(nesting=0)),
        lambda: loads("", limits=TextLimits(digits=10_000)),
        lambda: loads("", limits=3),
    ],
    "loads": [
        lambda: ptokit.loads("func.func @f( {"),
        lambda: ptokit.loads(TEXT)["g"],
        lambda: ptokit.loads("").entry(),
        lambda: ptokit.loads(TEXT).check("a9"),
        lambda: ptokit.loads(TEXT).convert("l9"),
        lambda: ptokit.loads(TEXT)["f"][0],
        lambda: ptokit.loads(TEXT)["f"][1](),
        lambda: ptokit.loads(TEXT)["f"][1](1, target="a9"),
    ],
    "MrgSortExecutedNumList": [
        lambda: MrgSortExecutedNumList()[0],
        lambda: MrgSortExecutedNumList().mrgSortList1,
        lambda: list(MrgSortExecutedNumList()),
    ],
    "Event": [
        lambda: Event[Op.TLOAD],
        lambda: Event["TLOAD", Op.TADD],
        lambda: Event[Op.TLOAD, Op.TADD, False, 99],
        lambda: Event[Op.TLOAD, Op.TADD, False, "x"],
        lambda: Event[Op.TLOAD, Op.TADD](3),
        lambda: Event[Op.TLOAD, Op.TADD]().Record(3),
        lambda: Event[Op.TLOAD, Op.TADD]().Wait(),
        lambda: Event[Op.TLOAD, Op.TADD]().InitAddr(0),
        lambda: sent(lambda: Event[Op.TMOV_A2V, Op.TADD]()),
        lambda: sent(lambda: Event[Op.TMOV_A2V, Op.TADD, False]().Record()),
    ],
    "Op": [lambda: Op.TLAOD],
    "PtoSetWaitFlag": [lambda: PtoSetWaitFlag[PIPE_V, PIPE_S](9), lambda: PtoSetWaitFlag[PIPE_V]],
    "getFFTSMsg": [lambda: getFFTSMsg(2)],
    "TPipe": [
        lambda: TPipe[0],
        lambda: TPipe[0, Direction.DIR_C2V, 1024, 0],
        lambda: TPipe[99, Direction.DIR_C2V, 1024, 2],
        lambda: TPipe[0, "C2V", 1024, 2],
        lambda: TPipe["x", Direction.DIR_C2V, 1024, 2],
        lambda: TPipe(),
        lambda: Pipe(3),
        lambda: Pipe(BYTES[:8]),
        lambda: Pipe(BYTES, "x"),
        lambda: Pipe.NoSuch,
    ],
    "TMPipe": [
        lambda: TMPipe[0],
        lambda: TMPipe[0, "GM", 2, TileT, TileT],
        lambda: TMPipe(BYTES),
        lambda: MPipe(3),
        lambda: MPipe(BYTES, "x"),
    ],
    "subblock": [lambda: subblock(2), lambda: as_cube(lambda: subblock(0).__enter__())],
    "cube": [lambda: as_cube(lambda: cube().__enter__())],
    "BuildAsyncSession": [
        lambda: BuildAsyncSession(3, BYTES, AsyncSession()),
        lambda: BuildAsyncSession[comm.DmaEngine.URMA](BYTES, AsyncSession()),
        lambda: BuildAsyncSession(TileT()),
    ],
    "async_session": [lambda: async_session(comm.DmaEngine.URMA)],
    "World": [
        lambda: comm.World(0),
        lambda: comm.World("x"),
        lambda: comm.World(2, "a9"),
        lambda: comm.World(2, mode="maybe"),
        lambda: comm.World(2).run(lambda: None),
        lambda: comm.World(2).run(lambda rank: None, 3),
        lambda: in_world(lambda w: w.rank(2)),
        lambda: in_world(lambda w: w.window((2, 2), "float31")),
        lambda: in_world(lambda w: w.remote(GT(X), 1)),
        lambda: in_world(lambda w: w.run(lambda rank: mistake())),
    ],
    "SymmetricWindow": [
        lambda: in_world(lambda w: w.window(4).tensor(2)),
        lambda: in_world(lambda w: w.signals().signal(2)),
        lambda: in_world(lambda w: w.window(4).group(0, [5])),
        lambda: in_world(lambda w: w.window(4)[2]),
    ],
    "Signal2D": [
        lambda: comm.Signal2D(BYTES),
        lambda: comm.Signal2D[2],
        lambda: comm.Signal2D["x", 2],
        lambda: comm.Signal2D[2, 2](3),
    ],
    "ParallelGroup": [
        lambda: comm.ParallelGroup([GT(X)], 3, 0),
        lambda: comm.ParallelGroup([GT(X)])[1],
        lambda: comm.ParallelGroup([GT(X), GlobalTensor(BYTES)]),
        lambda: comm.ParallelGroup([3]),
        lambda: comm.ParallelGroup([]).shape,
        lambda: comm.ParallelGroup([]).dtype,
        lambda: comm.ParallelGroup.Create([GT(X)], 3, 0),
    ],
    "launch": [lambda: launch({"mix": mistake}), lambda: launch({"mix": mistake}, hazards="odd")],
    "explore": [lambda: explore({"mix": mistake}, [3])],
    "TTRANS.tmp_bytes": [lambda: TTRANS.tmp_bytes(TileT), lambda: TTRANS.no_such],
}  # fmt: skip
BEYOND = {"launch", "explore", "TTRANS.tmp_bytes"}  # reached by import, or through an instruction

# Public names that take nothing which could be wrong.
HARMLESS = {
    "reset", "cube_section", "vector_section", "get_block_idx", "get_block_num",
    "get_coreid", "get_subblockdim", "get_subblockid", "get_rank_id", "get_rank_num",
    "static_range",  # is `range`, and says what range says
    "RecordEvent", "Waitable",  # made by instructions
    "AsyncEvent", "AsyncSession", "PrefetchAsyncContext", "SdmaBaseConfig", "FixpipeParams",
    "CcuTriggerContext",  # plain records
    "DType", "PadCustom", "PadValueCustom", "PadValueCustom16",
    "GlobalSignal", "Signal",  # GlobalTensor types
}  # fmt: skip


def public_names() -> dict[str, Any]:
    return {
        name: value
        for module in (ptokit, comm)
        for name in module.__all__
        if callable(value := getattr(module, name)) or name in MISTAKES
        if not isinstance(value, EnumType | DType | Instruction)
        if not (isinstance(value, type) and issubclass(value, Exception))
    }


def test_every_public_name_has_its_mistakes() -> None:
    assert set(public_names()) == (set(MISTAKES) - BEYOND) | HARMLESS


INSTRUCTIONS = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (comm, ptokit)
    for name in module.__all__
    if isinstance(getattr(module, name), Instruction)
}
CASES = [
    pytest.param(mistake, id=f"{name}-{number}")
    for name, mistakes in MISTAKES.items()
    for number, mistake in enumerate(mistakes)
] + [
    pytest.param(mistake, id=f"{name}-{what}")
    for name, each in INSTRUCTIONS.items()
    for what, mistake in {
        "operands": lambda each=each: each(*[object()] * 9),
        "names": lambda each=each: each(dst=3),
        "template": lambda each=each: each["no such argument"],
    }.items()
]


@pytest.mark.parametrize("mistake", CASES)
def test_the_innermost_frame_is_the_users(mistake: Callable[[], Any]) -> None:
    ptokit.reset()
    with pytest.raises((PtoError, TypeError, ValueError, AttributeError, IndexError)) as caught:
        mistake()
    error = caught.value
    frames = traceback.extract_tb(error.__traceback__)
    assert Path(frames[-1].filename) == Path(__file__), frames[-1]
    ours = str(Path(ptokit.__file__).parent)
    shown = "".join(traceback.format_exception(error))
    assert f'File "{ours}' not in shown
    assert isinstance(error, PtoError) or _says_python(error), repr(error)


def _says_python(error: BaseException) -> bool:
    """Whether an error is one that Python itself gives, or gives in these words."""
    words = ("argument", "has no attribute", "there is no", "has no helper", "not a PTO element",
             "does not name a PTO", "index out of range")  # fmt: skip
    return any(word in str(error) for word in words)


@kernel(mode="auto")
def unwritten(x):
    TSTORE(GlobalTensor(x), Tile[TileType.Vec, float32, 16, 64]())


def test_frames_of_the_body_of_a_kernel_stay() -> None:
    """Where only the run finds what is wrong."""
    with pytest.raises(PtoError) as caught:
        unwritten[1](np.zeros((16, 64), np.float32))
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names == ["test_frames_of_the_body_of_a_kernel_stay", "unwritten"]


def test_bugs_and_development_keep_every_frame(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text("from ptokit import *\nTile[TileType.Vec, float32, 3, 3]\n")
    plain, full = (
        subprocess.run([sys.executable, *flags, str(file)], capture_output=True, text=True).stderr
        for flags in ([], ["-X", "dev"])
    )
    assert (plain.count("  File "), full.count("  File ") > 2) == (1, True)

    def bug() -> None:
        raise ptokit.InternalError([])

    with pytest.raises(ptokit.InternalError) as caught:
        launch({"mix": bug})
    assert len(traceback.extract_tb(caught.value.__traceback__)) > 3
