"""Small programs of our own in the style of those that use the bindings."""

from __future__ import annotations

ADD = """
from mlir.dialects import arith, func, pto
from mlir.ir import Context, F32Type, IndexType, InsertionPoint, Location, Module, UnitAttr


def build():
    with Context() as ctx, Location.unknown(ctx):
        pto.register_dialect(ctx, load=True)
        module = Module.create()
        f32 = F32Type.get(ctx)
        pointer = pto.PtrType.get(f32, ctx)
        whole = pto.TensorViewType.get(2, f32, ctx)
        part = pto.PartitionTensorViewType.get([16, 64], f32, ctx)
        config = pto.TileBufConfigAttr.get(
            pto.BLayoutAttr.get(pto.BLayout.RowMajor, ctx),
            pto.SLayoutAttr.get(pto.SLayout.NoneBox, ctx),
            pto.TileConfig.fractalABSize,
            pto.PadValueAttr.get(pto.PadValue.Null, ctx),
            ctx,
        )
        space = pto.AddressSpaceAttr.get(pto.AddressSpace.VEC, ctx)
        tile = pto.TileBufType.get([16, 64], f32, space, [16, 64], config, ctx)
        with InsertionPoint(module.body):
            function = func.FuncOp("add", func.FunctionType.get([pointer] * 3, []))
            function.operation.attributes["pto.entry"] = UnitAttr.get(ctx)
            entry = function.add_entry_block()
        with InsertionPoint(entry):
            index = IndexType.get(ctx)
            c0, c1, c16, c64 = (arith.ConstantOp(index, n).result for n in (0, 1, 16, 64))
            views = [
                pto.PartitionViewOp(
                    part,
                    pto.MakeTensorViewOp(whole, each, [c16, c64], [c64, c1]).result,
                    offsets=[c0, c0],
                    sizes=[c16, c64],
                ).result
                for each in entry.arguments
            ]
            a, b, c = (pto.AllocTileOp(tile).result for _ in range(3))
            pto.TLoadOp(None, views[0], a)
            pto.tload(None, views[1], b)
            pto.TAddOp(a, b, c)
            pto.TStoreOp(None, c, views[2])
            func.ReturnOp([])
        module.operation.verify()
        return module


if __name__ == "__main__":
    print(build())
"""
