"""How flags and barriers are written: in Python with the names a file imports, or in text."""

from __future__ import annotations

import ast
import re
from typing import Protocol

from ptokit.base.location import Location
from ptokit.ir.ordering import written
from ptokit.ir.printer import print_op
from ptokit.isa.effects import Reach
from ptokit.isa.spec import Insn, Pipe
from ptokit.isa.sync import (
    SYNCALL,
    ffts_cross_core_sync,
    pipe_barrier,
    set_flag,
    set_intra_block,
    sync_set,
    sync_wait,
    wait_flag,
    wait_flag_dev,
    wait_intra_block,
)
from ptokit.repair.signals import core_signals, signal_of

_NOWHERE = Location("", 0)
SECOND = 16  # the counters of vector core 1 lie so far behind those of vector core 0


def _numbers(id: int, from_cube: bool) -> tuple[list[int], list[int]]:
    """The counters to raise, and those to wait for: the cube core has one for each vector core."""
    both = [id, id + SECOND]
    return (both, [id]) if from_cube else ([id], both)


def _words(insn: Insn) -> list[str]:
    assert insn.asm is not None
    return list(insn.asm.syntax)


class Spelling(Protocol):
    """The words of one program."""

    def flag(self, insn: Insn, src: Pipe, dst: Pipe, id: int | str) -> str:
        """`set_flag` or `wait_flag`; the id may be an expression of the program."""
        ...

    def barrier(self, pipe: Pipe) -> str: ...

    def meeting(self, kind: str) -> str:
        """Where all vector cores of a launch meet, all cube cores, or (mix) all of them."""
        ...

    def signal(
        self, src: Pipe, dst: Pipe, id: int, *, by_core: bool, from_cube: bool
    ) -> tuple[list[str], list[str]]:
        """A signal to the other cores of a cluster: the lines that give it, and those that wait.

        `by_core`: each core of the cluster has a counter of its own.
        """
        ...

    def awaited(self, code: str, dst: Pipe, id: str) -> str:
        """The wait for a signal that a line gives."""
        ...

    def heading(self, code: str) -> tuple[int, str] | None:
        """What an inserted line needs beside itself: a line number, and an import behind it."""
        ...


class TextSpelling:
    """Operations as the printer writes them."""

    def flag(self, insn: Insn, src: Pipe, dst: Pipe, id: int | str) -> str:
        assert isinstance(id, int)
        return print_op(written(insn, (src, dst, id), _NOWHERE)).strip()

    def barrier(self, pipe: Pipe) -> str:
        return print_op(written(pipe_barrier, (pipe,), _NOWHERE)).strip()

    def meeting(self, kind: str) -> str:
        word = {"vector": "aiv_only", "cube": "aic_only"}.get(kind, kind)
        attributes = f"mode = #pto.sync_all_mode<hard>, core_type = #pto.sync_core_type<{word}>"
        return f"pto.{next(iter(_words(SYNCALL)))}() {attributes}"

    def signal(
        self, src: Pipe, dst: Pipe, id: int, *, by_core: bool, from_cube: bool
    ) -> tuple[list[str], list[str]]:
        def line(insn: Insn, pipe: Pipe, id: int) -> str:
            return print_op(written(insn, (pipe, id), _NOWHERE)).strip()

        if not by_core:
            return [line(sync_set, src, id)], [line(sync_wait, dst, id)]
        sets, waits = _numbers(id, from_cube)
        return (
            [line(set_intra_block, src, n) for n in sets],
            [line(wait_intra_block, dst, n) for n in waits],
        )

    def awaited(self, code: str, dst: Pipe, id: str) -> str:
        signal = signal_of(code)
        assert signal is not None
        for given, taken in zip(_words(signal.gives), _words(signal.takes), strict=True):
            code = re.sub(rf"\b{re.escape(given)}\b", taken, code, count=1)
        return re.sub(r"PIPE_\w+", f"PIPE_{dst.name}", code, count=1)

    def heading(self, code: str) -> tuple[int, str] | None:
        return None


class PythonSpelling:
    """Calls, with the names that the file has for them."""

    def __init__(self, text: str) -> None:
        self._names: dict[str, str] = {}
        self._all, self._module, self._line = False, "", 0
        for node in ast.parse(text).body:
            if isinstance(node, ast.ImportFrom) and node.module == "ptokit":
                self._all |= any(alias.name == "*" for alias in node.names)
                self._names |= {alias.name: alias.asname or alias.name for alias in node.names}
                self._line = node.end_lineno or node.lineno
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name == "ptokit":
                        self._module = alias.asname or alias.name

    def _named(self, name: str) -> str:
        if name in self._names or self._all or not self._module:
            return self._names.get(name, name)
        return f"{self._module}.{name}"

    def flag(self, insn: Insn, src: Pipe, dst: Pipe, id: int | str) -> str:
        number = self._named(f"EVENT_ID{id}") if isinstance(id, int) else id
        pipes = ", ".join(self._named(f"PIPE_{pipe.name}") for pipe in (src, dst))
        return f"{self._named(insn.name)}({pipes}, {number})"

    def barrier(self, pipe: Pipe) -> str:
        return f"{self._named(pipe_barrier.name)}({self._named(f'PIPE_{pipe.name}')})"

    def meeting(self, kind: str) -> str:
        name = {"vector": "AIVOnly", "cube": "AICOnly"}.get(kind, "Mix")
        return f"{self._named(SYNCALL.name)}[{self._named('SyncCoreType')}.{name}]()"

    def signal(
        self, src: Pipe, dst: Pipe, id: int, *, by_core: bool, from_cube: bool
    ) -> tuple[list[str], list[str]]:
        def line(insn: Insn, pipe: Pipe, id: int) -> str:
            return f"{self._named(insn.name)}({self._named(f'PIPE_{pipe.name}')}, {id})"

        if not by_core:
            sent = f"{self._named('getFFTSMsg')}({Reach.CLUSTER.value}, {id})"
            given = f"{self._named(ffts_cross_core_sync.name)}({self._named(f'PIPE_{src.name}')}"
            return [f"{given}, {sent})"], [f"{self._named(wait_flag_dev.name)}({id})"]
        sets, waits = _numbers(id, from_cube)
        return (
            [line(set_intra_block, src, n) for n in sets],
            [line(wait_intra_block, dst, n) for n in waits],
        )

    def awaited(self, code: str, dst: Pipe, id: str) -> str:
        signal = signal_of(code)
        assert signal is not None
        *pipes, _ = (each for each in signal.takes.operands if not each.optional)
        given = ", ".join([self._named(f"PIPE_{dst.name}")] * len(pipes) + [id])
        return f"{self._named(signal.takes.name)}({given})"

    def heading(self, code: str) -> tuple[int, str] | None:
        if self._all or self._module or not self._names:
            return None
        wanted = dict.fromkeys(re.findall(r"\b[A-Za-z_]\w*(?=[(,)\[.])", code))
        missing = [name for name in wanted if name not in self._names and _is_ours(name)]
        return (self._line, f"from ptokit import {', '.join(missing)}") if missing else None


def _is_ours(name: str) -> bool:
    signals = (insn for each in core_signals() for insn in (each.gives, each.takes))
    ours = {insn.name for insn in (set_flag, wait_flag, pipe_barrier, SYNCALL, *signals)}
    ours |= {"getFFTSMsg", "SyncCoreType"}
    return name in ours or re.fullmatch(r"PIPE_\w+|EVENT_ID\d", name) is not None


def other_end(code: str) -> str:
    """The statement at the other end of a flag: the wait of a set, the set of a wait."""
    ends = {set_flag.name: wait_flag.name, wait_flag.name: set_flag.name}
    return re.sub(
        rf"\b({'|'.join(ends)})(?=\b|_dyn\b)", lambda found: ends[found[0]], code, count=1
    )
