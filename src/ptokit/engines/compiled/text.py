"""Writing LLVM: one function, line by line, with loops that look like loops.

Values are strings: names such as `%12`, or constants. A type is the text LLVM has for it.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Sequence

Value = str
_WORDS = "(ptr noalias readonly %args, ptr noalias readonly %bases)"
_HEAD = f"define void @{{}}{_WORDS} noinline nounwind"
_PART = f"define linkonce_odr void @{{}}{_WORDS} noinline nounwind"
_SCALES = {"1": "i8", "2": "i16", "4": "i32", "8": "i64"}  # by which an address may count elements

# Vectors, loops and addresses are written as a processor likes them: instructions can be chosen one
# by one, and stay where they were written, which takes less than half the time. Registers are given
# out as carefully as ever. It is not enough for sums of products, which are added to in place only
# if somebody looks at all of them together, and for functions of many steps: these are what the
# time of a kernel goes to, where others wait for memory.
_AS_WRITTEN = "optnone"
_LONG = ("llvm.fma.", "ptokit.")

# Of numbers that are not negative all readings agree.
_ORDER = {
    **{f"{sign}lt": operator.lt for sign in "su"},
    **{f"{sign}le": operator.le for sign in "su"},
    **{f"{sign}gt": operator.gt for sign in "su"},
    **{f"{sign}ge": operator.ge for sign in "su"},
    "eq": operator.eq,
    "ne": operator.ne,
}


def _is_constant(value: Value) -> bool:
    return value.isdecimal()


class Function:
    """A function of the library: it is handed its words, and where the memories begin.

    Others than those have a `head` of their own, and another `end`.
    """

    def __init__(self, name: str, head: str = _HEAD, end: str = "ret void") -> None:
        self.name = name
        self._head, self._end = head, end
        self._variables: list[str] = []
        self._lines: list[str] = []
        self._declared: dict[str, None] = {}
        self._rooms: list[str] = []
        self._count = 0
        self._block = "entry"
        self._is_long = False

    def do(self, text: str) -> Value:
        """An instruction with a result."""
        self._count += 1
        self._lines.append(f"  %v{self._count} = {text}")
        return f"%v{self._count}"

    def act(self, text: str) -> None:
        """An instruction without one."""
        self._lines.append(f"  {text}")

    def call(self, result: str, name: str, *args: tuple[str, Value]) -> Value:
        """Call an intrinsic function, or one of ours that becomes a part of this."""
        self._is_long = self._is_long or name.startswith(_LONG)
        types = ", ".join(kind for kind, _ in args)
        self._declared[f"declare {result} @{name}({types})"] = None
        given = ", ".join(f"{kind} {value}" for kind, value in args)
        text = f"call {result} @{name}({given})"
        if result == "void":
            self.act(text)
            return ""
        return self.do(text)

    def part(self, write: Callable[[Function], None]) -> None:
        """Call a function that has the same words; others that are compiled with it may share it.

        Most of what a compiler does for a function it does for every copy of it.
        """
        code = Function("", _PART)
        write(code)
        digest = hashlib.sha256("\n".join(code.definition()).encode()).hexdigest()
        code.name = f"part_{digest[:24]}"
        self._declared |= code._declared
        self.declare("\n".join(code.definition()))
        self.act(f"call void @{code.name}(ptr %args, ptr %bases)")

    def declare(self, line: str) -> None:
        """Something that stands beside the function."""
        self._declared[line] = None

    def constant(self, kind: str, values: Sequence[int]) -> Value:
        """A table of integers that lies beside the function."""
        listed = ", ".join(f"{kind} {value}" for value in values)
        name = f"@table_{hashlib.sha256(listed.encode()).hexdigest()[:16]}"
        self._declared[f"{name} = internal constant [{len(values)} x {kind}] [{listed}]"] = None
        return name

    # ---- integers ----------------------------------------------------------------------------

    def word(self, index: int) -> Value:
        """A word of the arguments."""
        at = self.do(f"getelementptr i64, ptr %args, i64 {index}")
        return self.do(f"load i64, ptr {at}")

    def number(self, name: str, left: Value, right: Value) -> Value:
        """An operation on 64-bit integers."""
        if name == "add" and "0" in (left, right):
            return right if left == "0" else left
        return self.do(f"{name} i64 {left}, {right}")

    def pointer(self, index: int) -> Value:
        """An operand: the number of its memory and the bytes past its beginning."""
        memory = self.do(f"getelementptr i64, ptr %bases, i64 {self.word(index)}")
        begin = self.do(f"load ptr, ptr {memory}")
        return self.do(f"getelementptr i8, ptr {begin}, i64 {self.word(index + 1)}")

    def behind(self, pointer: Value, offset: Value) -> Value:
        """So many bytes further."""
        return self.do(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def at(self, pointer: Value, index: Value, step: Value) -> Value:
        """So many steps further; what a load or store finds out itself is left to it."""
        if step in _SCALES:
            return self.do(f"getelementptr {_SCALES[step]}, ptr {pointer}, i64 {index}")
        return self.behind(pointer, self.number("mul", index, step))

    def stepped(self, pointer: Value, index: Value, step: Value) -> Value:
        """So many steps further, frozen as addresses are that a loop carries."""
        return self.do(f"freeze ptr {self.at(pointer, index, step)}")

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

    # ---- variables ---------------------------------------------------------------------------

    def variable(self, kind: str, value: Value | None = None) -> Value:
        """A variable of the function, with a value to begin with; LLVM makes registers of them."""
        name = f"%{self.fresh('slot')}"
        self._variables.append(f"  {name} = alloca {kind}")
        if value is not None:
            self.act(f"store {kind} {value}, ptr {name}")
        return name

    def load(self, pointer: Value, index: Value | int = 0, kind: str = "i64") -> Value:
        """An entry of an array."""
        return self.do(f"load {kind}, ptr {self.entry(pointer, index)}")

    def store(self, value: Value, pointer: Value, index: Value | int = 0) -> None:
        """Set an entry of an array of words."""
        self.act(f"store i64 {value}, ptr {self.entry(pointer, index)}")

    def entry(self, pointer: Value, index: Value | int) -> Value:
        """Where an entry of an array of words lies."""
        if index in (0, "0"):
            return pointer
        return self.do(f"getelementptr i64, ptr {pointer}, i64 {index}")

    def compare(self, test: str, left: Value, right: Value) -> Value:
        """A comparison of 64-bit integers; of constants, what it comes to."""
        if _is_constant(left) and _is_constant(right) and test in _ORDER:
            return "true" if _ORDER[test](int(left), int(right)) else "false"
        return self.do(f"icmp {test} i64 {left}, {right}")

    def both(self, tests: Sequence[Value]) -> Value:
        """Whether all tests hold."""
        found = "true"
        for test in (each for each in tests if each != "true"):
            found = test if found == "true" else self.do(f"and i1 {found}, {test}")
        return found

    # ---- flow --------------------------------------------------------------------------------

    def jump(self, label: str) -> None:
        self.act(f"br label %{label}")

    def branch(self, test: Value, then: str, otherwise: str) -> None:
        self.act(f"br i1 {test}, label %{then}, label %{otherwise}")

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
        """`body(i, *carried)` for every i; it hands on what is carried, which is the result.

        Whether there is another round is asked at its end, as processors like it: nobody turns
        loops around later. Addresses that are carried are frozen: to the compiler they are no sums
        of strides and counters of all loops around then, over which it would ponder a tenth of its
        time.
        """
        inside, done = self.fresh("body"), self.fresh("done")
        before = self._block
        self.branch(self.compare("slt", start, stop), inside, done)
        self.label(inside)
        kinds = ["i64", *(kind for kind, _ in carried)]
        firsts = [start, *(value for _, value in carried)]
        place = len(self._lines)
        index, *held = (self.do("phi") for _ in kinds)
        seen = [
            self.do(f"freeze ptr {value}") if kind == "ptr" else value
            for kind, value in zip(kinds[1:], held, strict=True)
        ]
        handed = [*body(index, *seen)]
        handed.insert(0, self.number("add", index, step))
        last = self._block
        self.branch(self.compare("slt", handed[0], stop), inside, done)
        ways = [
            f"phi {kind} [{first}, %{before}], [{next_}, %{last}]"
            for kind, first, next_ in zip(kinds, firsts, handed, strict=True)
        ]
        for row, (name, way) in enumerate(zip([index, *held], ways, strict=True)):
            self._lines[place + row] = f"  {name} = {way}"
        self.label(done)
        return [self.do(way) for way in ways[1:]]

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

    @property
    def _is_plain(self) -> bool:
        """Whether nothing is to be done but to choose instructions."""
        return self._head in (_HEAD, _PART) and not (self._variables or self._is_long)

    def text(self) -> str:
        """The module that holds the function."""
        return module_text([self])

    def declared(self) -> list[str]:
        """What it calls."""
        return list(self._declared)

    def definition(self) -> list[str]:
        """Its lines."""
        how = f" {_AS_WRITTEN}" if self._is_plain else ""
        return [
            f"{self._head.format(self.name)}{how} {{",
            "entry:",
            *self._rooms,
            *self._variables,
            *self._lines,
            f"  {self._end}",
            "}",
            "",
        ]


def module_text(functions: Sequence[Function]) -> str:
    """A module of several functions."""
    declared = dict.fromkeys(line for each in functions for line in each.declared())
    return "\n".join([*declared, *(line for each in functions for line in each.definition())])
