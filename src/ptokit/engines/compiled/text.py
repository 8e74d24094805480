"""Writing LLVM: one function, line by line, with loops that look like loops.

Values are strings: names such as `%12`, or constants. A type is the text LLVM has for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Value = str
_HEAD = "define void @{}(ptr noalias readonly %args, ptr noalias readonly %bases) nounwind"


class Function:
    """A function of the library: it is handed its words, and where the memories begin."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lines: list[str] = []
        self._declared: dict[str, None] = {}
        self._rooms: list[str] = []
        self._count = 0
        self._block = "entry"

    def do(self, text: str) -> Value:
        """An instruction with a result."""
        self._count += 1
        self._lines.append(f"  %v{self._count} = {text}")
        return f"%v{self._count}"

    def act(self, text: str) -> None:
        """An instruction without one."""
        self._lines.append(f"  {text}")

    def call(self, result: str, name: str, *args: tuple[str, Value]) -> Value:
        """Call an intrinsic function."""
        types = ", ".join(kind for kind, _ in args)
        self._declared[f"declare {result} @{name}({types})"] = None
        given = ", ".join(f"{kind} {value}" for kind, value in args)
        text = f"call {result} @{name}({given})"
        if result == "void":
            self.act(text)
            return ""
        return self.do(text)

    # ---- integers ----------------------------------------------------------------------------

    def word(self, index: int) -> Value:
        """A word of the arguments."""
        at = self.do(f"getelementptr i64, ptr %args, i64 {index}")
        return self.do(f"load i64, ptr {at}")

    def number(self, name: str, left: Value, right: Value) -> Value:
        """An operation on 64-bit integers."""
        return self.do(f"{name} i64 {left}, {right}")

    def pointer(self, index: int) -> Value:
        """An operand: the number of its memory and the bytes behind its beginning."""
        memory = self.do(f"getelementptr i64, ptr %bases, i64 {self.word(index)}")
        begin = self.do(f"load ptr, ptr {memory}")
        return self.do(f"getelementptr i8, ptr {begin}, i64 {self.word(index + 1)}")

    def behind(self, pointer: Value, offset: Value) -> Value:
        """So many bytes further."""
        return self.do(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    # ---- memory of its own -------------------------------------------------------------------

    def room(self, nbytes: int) -> Value:
        """Bytes that are there as long as it runs."""
        name = f"%room{len(self._rooms)}"
        self._rooms.append(f"  {name} = alloca [{nbytes} x i8], align 64")
        return name

    def table(self, content: bytes) -> Value:
        """Bytes that are the same in every run."""
        written = "".join(f"\\{byte:02X}" for byte in content)
        made = f'private unnamed_addr constant [{len(content)} x i8] c"{written}", align 64'
        for line in self._declared:
            name, _, known = line.partition(" = ")
            if known == made:
                return name
        name = f"@table{len(self._declared)}"
        self._declared[f"{name} = {made}"] = None
        return name

    # ---- flow --------------------------------------------------------------------------------

    def label(self, name: str) -> None:
        self._lines.append(f"{name}:")
        self._block = name

    def fresh(self, name: str) -> str:
        self._count += 1
        return f"{name}{self._count}"

    def loop(
        self,
        start: Value,
        stop: Value,
        step: Value,
        body: Callable[..., Sequence[Value]],
        carried: Sequence[tuple[str, Value]] = (),
    ) -> list[Value]:
        """`body(i, *carried)` for every i; it hands on what is carried, which is the result."""
        head, inside, done = (self.fresh(name) for name in ("head", "body", "done"))
        before = self._block
        self.act(f"br label %{head}")
        self.label(head)
        place = len(self._lines)
        index = self.do("phi")
        held = [self.do("phi") for _ in carried]
        more = self.do(f"icmp slt i64 {index}, {stop}")
        self.act(f"br i1 {more}, label %{inside}, label %{done}")
        self.label(inside)
        handed = list(body(index, *held))
        after = self.number("add", index, step)
        last = self._block
        self.act(f"br label %{head}")
        kinds = ["i64", *(kind for kind, _ in carried)]
        firsts = [start, *(value for _, value in carried)]
        for row, (kind, first, next_) in enumerate(
            zip(kinds, firsts, [after, *handed], strict=True)
        ):
            name = self._lines[place + row].split("=", 1)[0]
            ways = f"[{first}, %{before}], [{next_}, %{last}]"
            self._lines[place + row] = f"{name}= phi {kind} {ways}"
        self.label(done)
        return held

    def when(
        self, test: Value, body: Callable[[], None], otherwise: Callable[[], None] | None = None
    ) -> None:
        """Do something where a test holds, and something else where it does not."""
        inside, done = self.fresh("then"), self.fresh("after")
        other = done if otherwise is None else self.fresh("else")
        self.act(f"br i1 {test}, label %{inside}, label %{other}")
        for name, part in ((inside, body), (other, otherwise)):
            if part is not None:
                self.label(name)
                part()
                self.act(f"br label %{done}")
        self.label(done)

    def text(self) -> str:
        """The module that holds the function."""
        head = [_HEAD.format(self.name) + " {", "entry:", *self._rooms]
        lines = [*self._declared, *head, *self._lines]
        return "\n".join([*lines, "  ret void", "}", ""])
