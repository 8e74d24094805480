"""Further names for storage: parts of tiles, and tiles under another type."""

from __future__ import annotations

from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.emit.expressions import PRODUCT, Expr, larger, plus, smaller, whole
from ptokit.emit.writer import Writer
from ptokit.ir.core import Op
from ptokit.ir.dialects.memory import window
from ptokit.ir.types import TileBufType


class Windows(Writer):
    """Writes windows and casts."""

    def window(self, op: Op) -> None:
        """A tile over a part of another one. Where the boxes of a layout lie is said by address."""
        parent, made = self._spec(op.operands[0]), op.result.type
        assert isinstance(parent, TileSpec)
        assert isinstance(made, TileBufType)
        source = self._use(op.operands[0])
        offsets = [self._expr(v) for v in op.group("offsets")]
        place = self._place_in(op, parent, offsets)
        self.windows[op.result] = window(made.spec, parent)
        name = self._make(op.result, self._window_sizes(op, made.spec, source, offsets))
        if parent.is_boxed:
            self._bind(name, place)
        else:
            self._line(f"TSUBVIEW({name}, {source}, {', '.join(e.text for e in offsets)});")

    def _window_sizes(self, op: Op, spec: TileSpec, source: str, offsets: list[Expr]) -> list[str]:
        """The valid sizes that are left to the run: given, or what the tile has left of them."""
        given = [self._use(v) for v in op.group("valid")]
        sizes: list[str] = []
        for axis, (valid, size) in enumerate(
            ((spec.valid_row, spec.rows), (spec.valid_col, spec.cols))
        ):
            if valid != DYNAMIC:
                continue
            if given:
                sizes.append(given[axis])
                continue
            left, getter = self._unused("left"), ("GetValidRow", "GetValidCol")[axis]
            offset = offsets[axis].within(PRODUCT)
            self._line(f"const int64_t {left} = {source}.{getter}() - {offset};")
            sizes.append(smaller(larger(Expr(left), whole(0)), whole(size)).text)
        return sizes

    def _place_in(self, op: Op, parent: TileSpec, offsets: list[Expr]) -> Expr:
        """The address of a window, as far as there is one: boxes lie at equal distances."""
        source = op.operands[0]
        if source not in self.slots or parent.compact:
            if parent.is_boxed:
                raise self._refuse("a window of boxes in a tile whose address is not known", op)
            return Expr("")
        places = parent.axis_map(parent.rows, parent.cols).offsets[
            :: parent.inner[0], :: parent.inner[1]
        ]
        steps = (places[1:2, 0], places[0, 1:2])
        moves: list[Expr] = []
        for at, box, step in zip(offsets, parent.inner, steps, strict=True):
            stride = int(step.sum()) * parent.itemsize
            if at.number is not None:
                moves.append(whole(at.number // box * stride))
            else:
                boxes = f"{at.within(PRODUCT)} / {box} * {stride}".replace(" / 1 *", " *")
                moves.append(Expr(boxes, PRODUCT))
        self.slots[op.result] = plus(self.slots[source], *moves)
        return self.slots[op.result]

    def bitcast(self, op: Op) -> None:
        source = op.operands[0]
        assert isinstance(source.type, TileBufType)
        if self._spec(source) != source.type.spec:
            raise self._refuse(f"{op.name} of a window with gaps", op)
        self._line(f"TRESHAPE({self._make(op.result)}, {self._use(source)});")
        if source in self.slots:
            self.slots[op.result] = self.slots[source]
