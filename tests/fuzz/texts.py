"""Mutated texts through every door of a text: `python -m tests.fuzz.texts --seeds 0:5000`.

Real programs - our own and every instruction of the table, or the `.pto` files of `--folder` - are
spoiled a little: tokens, numbers, lines, regions, bytes. Each is loaded, checked, converted to each
form, written as C++ and formatted. A door may refuse it with a diagnostic that has a place, and has
a few seconds for that. Whatever else comes out is a bug of ptokit, and is printed with its seed.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

import ptokit
from ptokit.base.diagnostics import InternalError, PtoError
from ptokit.from_text import Program, formatted
from ptokit.ir.printer import print_module
from ptokit.tasks import Executor, Task, Work
from tests.text.table import forms, module_of

ROOT = Path(__file__).resolve().parents[2]
CHUNK = 50
SECONDS = 10.0  # of processor time that one door may take
LONGEST = 40_000  # bytes of a text: longer ones take their time without showing more
LEVELS = ("sync", "l1", "l2", "l3")
TARGETS = (None, "a2a3", "a5")


# ---- texts -------------------------------------------------------------------------------------


@cache
def corpus(folder: str = "") -> tuple[tuple[str, bytes], ...]:
    """Names and contents; those of a folder instead of our own, where one is given."""
    if folder:
        files = sorted(Path(folder).rglob("*.pto"))
        found = [(str(p.relative_to(folder)), p.read_bytes()) for p in files]
    else:
        found = [(p.name, p.read_bytes()) for p in sorted((ROOT / "tests").rglob("*.pto"))]
        found += list(_of_pages()) + list(_of_the_table())
    return tuple((name, text) for name, text in found if len(text) <= LONGEST)


def _of_pages() -> Iterator[tuple[str, bytes]]:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        blocks = re.findall(r"```mlir\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        for number, block in enumerate(blocks):
            yield f"{page.stem}-{number}", block.encode()


def _of_the_table() -> Iterator[tuple[str, bytes]]:
    for number, form in enumerate(forms()):
        module = module_of(form, is_value=bool(number % 2))
        if module is not None:
            yield form.insn.name, print_module(module, generic=number % 3 == 0).encode()


# ---- mutations ---------------------------------------------------------------------------------

_TOKEN = re.compile(rb"%[\w.#$-]+|[\w.]+|->|[^\w\s]|\s+")
_NAME = re.compile(rb"%[\w.$-]+")
_NUMBER = re.compile(rb"(?<![\w%.#])\d+(?:\.\d+)?|(?<=[\d?]x)\d+")  # also the sizes of a shape
_KIND = re.compile(rb"(?<![A-Za-z_])(?:b?f|[su]?i)\d+(?:E\dM\d\w*)?\b|index\b")
_WORD = re.compile(rb"(?<=[<=. (])[A-Za-z_]\w*")
_NUMBERS = rb"""0 1 -1 2 7 8 16 31 32 64 128 255 65536 ? 007 0x 0x7F 1.5 -1.5 1e999 1e-320
    2147483647 2147483648 -2147483649 9223372036854775807 9223372036854775808 18446744073709551616
    0xFFFFFFFFFFFFFFFFFF 99999999999999999999999999999999999999999999999999999""".split()
_KINDS = (
    rb"f32 f16 bf16 i32 i16 i8 ui8 si32 i64 i1 index f64 i7 hif8 f8E4M3FN none f4E2M1x2".split()
)
_WORDS = rb"""!pto. #pto< <> dense< memref< !loc loc( @tile( %a:3 %0#1 ^bb0 -> ... unit true // {}
    ins( outs( " \\ module scf.for scf.while scf.if scf.yield func.call return pto.tadd "pto.tmov"
    !pto.pipe !pto.ptr<f32> !pto.tile_buf<vec,16x64xf32> !pto.tensor_view<?x?xf32> row_major
    array<i32:x> col_major left right acc mat bias scaling nd dn nz a5 a3 PIPE_V PIPE_ALL
""".split()

Mutation = Callable[[random.Random, bytes], bytes]


def _spans(pattern: re.Pattern[bytes], text: bytes) -> list[tuple[int, int]]:
    return [m.span() for m in pattern.finditer(text)]


def _replaced(rng: random.Random, text: bytes, at: tuple[int, int], by: bytes) -> bytes:
    return text[: at[0]] + by + text[at[1] :]


def drop_token(rng: random.Random, text: bytes) -> bytes:
    return _replaced(rng, text, rng.choice(_spans(_TOKEN, text) or [(0, 0)]), b"")


def swap_tokens(rng: random.Random, text: bytes) -> bytes:
    spans = _spans(_TOKEN, text) or [(0, 0)]
    (a, b), (c, d) = sorted((rng.choice(spans), rng.choice(spans)))
    return text if b > c else text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


def copy_token(rng: random.Random, text: bytes) -> bytes:
    """One token stands in the place of another, as after a wrong completion."""
    spans = _spans(_TOKEN, text) or [(0, 0)]
    first, last = rng.choice(spans)
    return _replaced(rng, text, rng.choice(spans), text[first:last])


def other_word(rng: random.Random, text: bytes) -> bytes:
    return _replaced(rng, text, rng.choice(_spans(_TOKEN, text) or [(0, 0)]), rng.choice(_WORDS))


def other_number(rng: random.Random, text: bytes) -> bytes:
    return _replaced(rng, text, rng.choice(_spans(_NUMBER, text) or [(0, 0)]), rng.choice(_NUMBERS))


def everywhere(rng: random.Random, text: bytes) -> bytes:
    """A number, an element type or a word becomes another wherever it stands: types still fit."""
    pattern, others = rng.choice(
        ((_NUMBER, _NUMBERS), (_NUMBER, _NUMBERS), (_KIND, _KINDS), (_WORD, _WORDS))
    )
    found = sorted({m.group() for m in pattern.finditer(text)})
    if not found:
        return text
    old, new = rng.choice(found), rng.choice(others)
    if pattern is _WORD and rng.random() < 0.7:
        new = rng.choice(found)
    return pattern.sub(lambda m: new if m.group() == old else m.group(), text)


def _statements(rng: random.Random, text: bytes) -> tuple[list[bytes], int]:
    """The lines, and one that makes no name which others need, if there is any."""
    lines = text.split(b"\n")
    free = [n for n, line in enumerate(lines) if re.match(rb"\s+[a-z\"](?!.*\{$)", line)]
    return lines, rng.choice(free or range(len(lines)))


def drop_statement(rng: random.Random, text: bytes) -> bytes:
    lines, at = _statements(rng, text)
    return b"\n".join(lines[:at] + lines[at + 1 :])


def double_statement(rng: random.Random, text: bytes) -> bytes:
    lines, at = _statements(rng, text)
    return b"\n".join(lines[:at] + [lines[at]] * rng.choice((2, 2, 3, 40)) + lines[at + 1 :])


def swap_statements(rng: random.Random, text: bytes) -> bytes:
    (lines, a), (_, b) = _statements(rng, text), _statements(rng, text)
    lines[a], lines[b] = lines[b], lines[a]
    return b"\n".join(lines)


def other_name(rng: random.Random, text: bytes) -> bytes:
    """A value in the place of another one."""
    spans = _spans(_NAME, text) or [(0, 0)]
    first, last = rng.choice(spans)
    return _replaced(rng, text, rng.choice(spans), text[first:last])


def _lines(rng: random.Random, text: bytes) -> tuple[list[bytes], int]:
    lines = text.split(b"\n")
    return lines, rng.randrange(len(lines))


def drop_line(rng: random.Random, text: bytes) -> bytes:
    lines, at = _lines(rng, text)
    return b"\n".join(lines[:at] + lines[at + 1 :])


def double_line(rng: random.Random, text: bytes) -> bytes:
    lines, at = _lines(rng, text)
    return b"\n".join(lines[:at] + [lines[at]] * rng.choice((2, 2, 3, 40)) + lines[at + 1 :])


def move_line(rng: random.Random, text: bytes) -> bytes:
    lines, at = _lines(rng, text)
    line = lines.pop(at)
    lines.insert(rng.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


def truncate(rng: random.Random, text: bytes) -> bytes:
    return text[: rng.randrange(len(text) + 1)]


def unbalance(rng: random.Random, text: bytes) -> bytes:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice((b"{", b"}", b"(", b")", b"[", b"]", b"<", b">")) + text[at:]


def deepen(rng: random.Random, text: bytes) -> bytes:
    """Regions, lists or types inside each other where one stood."""
    at = rng.randrange(len(text) + 1)
    opening, closing = rng.choice(
        ((b"scf.if %c {", b"}"), (b"[", b"]"), (b"(", b")"), (b"<", b">"))
    )
    depth = rng.choice((2, 10, 80, 1000))
    return text[:at] + opening * depth + closing * depth + text[at:]


def noise(rng: random.Random, text: bytes) -> bytes:
    data = bytearray(text)
    for _ in range(rng.choice((1, 1, 4, 30))):
        data[rng.randrange(len(data) + 1) :][:1] = b""
        at = rng.randrange(len(data) + 1)
        data[at : at + 1] = bytes([rng.randrange(256)])
    return bytes(data)


MUTATIONS: tuple[Mutation, ...] = (
    *(drop_token, swap_tokens, copy_token, other_word, truncate, unbalance, deepen, noise),
    *(other_number, other_name, drop_line, double_line, move_line) * 2,
    *(everywhere,) * 6,
)
# After these most texts are still read, and the doors behind have something to do.
GENTLE: tuple[Mutation, ...] = (
    *(everywhere, everywhere, other_number, drop_statement, double_statement, swap_statements),
)


def mutated(seed: int, folder: str = "") -> tuple[str, bytes]:
    """The text of a seed, with the name of what it was made of."""
    rng = random.Random(seed)
    name, text = rng.choice(corpus(folder))
    mutations = rng.choice((MUTATIONS, GENTLE))
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = rng.choice(mutations)(rng, text)
    return name, text


# ---- doors -------------------------------------------------------------------------------------


class TooLongError(BaseException):
    """A door has taken all its time; nothing between here and there may take it for its own."""


@dataclass(frozen=True)
class Bug:
    """What should not have come out of a door."""

    seed: int
    source: str
    door: str
    kind: str  # the error and the line of ours that raised it: bugs of one kind are one bug
    message: str


@dataclass(frozen=True)
class Outcome:
    """Whether a text was loaded, whether all doors took it, and what went wrong."""

    is_loaded: bool
    is_taken: bool
    bugs: tuple[Bug, ...]


def outcome(seed: int, folder: str = "") -> Outcome:
    """Put the text of a seed through every door."""
    name, data = mutated(seed, folder)
    return judged(data, seed, name)


def judged(data: bytes, seed: int = 0, name: str = "text") -> Outcome:
    """Put a text through every door."""
    bugs: list[Bug] = []
    on = TARGETS[seed % len(TARGETS)]
    loaded: list[Program] = []
    taken: list[str] = []

    def through(door: str, call: Callable[[], object]) -> None:
        error = _raised(call)
        if error is None:
            taken.append(door)
        elif kind := _bug(error):
            bugs.append(Bug(seed, name, door, kind, str(error)[:100]))

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "fuzz.pto")
        file.write_bytes(data)
        through("load", lambda: loaded.append(ptokit.load(file)))
        if loaded:
            program = loaded[0]
            doors: dict[str, Callable[[], object]] = {
                "check": lambda: program.check(on),
                **{f"asm {to}": lambda to=to: str(program.convert(to, on)) for to in LEVELS},
                "generic": lambda: print_module(program.module, generic=True),
                "emit": lambda: program.cpp(on),
                "fmt": lambda: formatted(data.decode("utf-8-sig")),
            }
            for door, call in doors.items():
                through(door, call)
    return Outcome(bool(loaded), len(taken) == 9, tuple(bugs))


def _raised(call: Callable[[], object]) -> BaseException | None:
    signal.signal(signal.SIGVTALRM, _out_of_time)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except (Exception, TooLongError) as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None


def _out_of_time(number: int, frame: FrameType | None) -> None:
    raise TooLongError


def _bug(error: BaseException) -> str:
    """What is wrong with an error; empty: it is a diagnostic with a place."""
    if isinstance(error, PtoError) and not isinstance(error, InternalError):
        nowhere = [d.code for d in error.diagnostics if d.location is None or not d.location.file]
        return f"no location: {nowhere[0]}" if nowhere else ""
    ours = os.path.dirname(ptokit.__file__)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(ours)]
    last = frames[-1] if frames else None
    at = f"{os.path.relpath(last.filename, ours)}:{last.lineno}" if last else "?"
    return f"{type(error).__name__} at {at}"


# ---- command -----------------------------------------------------------------------------------


def chunk(seeds: range, folder: str) -> list[Outcome]:
    return [outcome(seed, folder) for seed in seeds]


def unchanged(folder: str) -> list[Outcome]:
    """The texts as they are."""
    return [judged(text, number, name) for number, (name, text) in enumerate(corpus(folder))]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.texts", description=__doc__)
    parser.add_argument("--seeds", default="0:5000", metavar="FROM:TO")
    parser.add_argument("--folder", default="", help="mutate its .pto files instead of our own")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", action="store_true", help="print the texts of the seeds, no more")
    parser.add_argument("--unchanged", action="store_true", help="the texts as they are, no seeds")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    if options.show:
        for seed in range(first, last):
            sys.stdout.buffer.write(mutated(seed, options.folder)[1])
        return 0
    done = loaded = taken = 0
    bugs: Counter[str] = Counter()
    chunks = [range(n, min(n + CHUNK, last)) for n in range(first, last, CHUNK)]
    began = time.monotonic()
    if options.unchanged:
        results = iter([unchanged(options.folder)])
    else:
        tasks = (Task(str(seeds), seeds) for seeds in chunks)
        work = Work(chunk, (options.folder,))
        found = Executor(options.jobs).results(work, tasks, ordered=True)
        results = (each.get() for each in found)
    for outcomes in results:
        for each in outcomes:
            loaded += each.is_loaded
            taken += each.is_taken
            for bug in each.bugs:
                if bug.kind not in bugs:
                    where = f"seed {bug.seed} ({bug.source}), {bug.door}"
                    print(f"{where}: {bug.kind}: {bug.message}", flush=True)
                bugs[bug.kind] += 1
        done += len(outcomes)
        if sys.stderr.isatty():
            rate = done / (time.monotonic() - began)
            print(f"\r{done}, {rate:.0f}/s", end="", file=sys.stderr)
    of = options.folder or "our texts"
    seeds = "as they are" if options.unchanged else f"of seeds {first}:{last}"
    said = f"{loaded} loaded, {taken} through every door, {bugs.total()} bugs of {len(bugs)} kinds"
    print(f"fuzz.texts: {done} texts {seeds} from {of}: {said}")
    return 1 if bugs else 0


if __name__ == "__main__":
    sys.exit(main())
