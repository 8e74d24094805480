"""What a timed launch has to say: how long, which pipes work, who waits for whom, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import where
from ptokit.base.files import write_text
from ptokit.base.location import Location
from ptokit.base.namedtuple import NamedTuple
from ptokit.timing.advice import Advice, Proof, advice
from ptokit.timing.model import Model, Outcome, Stall, Timed, core_and_index
from ptokit.timing.params import Params, load
from ptokit.timing.streams import PIPE_NAMES, Item, Streams

_SHOWN = 8  # lines of a table
_ADVISED = 20_000  # events of a launch that a summary has advice for
_MOST_ASSUMED = 1 / 3  # of the work of a launch: with more of it a prediction is not validated


class Wait(NamedTuple):
    """Time that a pipe stood still, with both ends of the reason."""

    pipe: str
    core: str
    share: float  # of the whole time
    us: float
    reason: str
    line: Location
    behind: Location | None  # the work, or the signal with none before it, that was waited for

    def __str__(self) -> str:
        return f"{self.pipe} waits {100 * self.share:.1f} %{self.reason} ({self.core})"


class Step(NamedTuple):
    """What a line contributes to the longest chain of work."""

    label: str
    line: Location | None  # none: the launch
    us: float
    share: float


class Span(NamedTuple):
    """One instruction on a pipe, in microseconds."""

    label: str
    line: Location
    core: str
    pipe: str
    start: float
    end: float


def _short(line: Location) -> str:
    return (line.origin or line).brief


def _with_caller(line: Location) -> str:
    """A line, and that of the call which led there: helpers hide the one that matters."""
    line = line.origin or line
    return _short(line) + "".join(f" called at {_short(each)}" for each in line.callers[:1])


def _in_brackets(line: Location | None) -> str:
    return "" if line is None else f" ({_short(line)})"


@dataclass(frozen=True)
class Timing:
    """How long a launch takes on a device.

    `us` is the whole time, `busy` the share of it that each pipe works, `waits` where they stand
    still and for whom, `critical` the longest chain of work by line, `roofline_us` what the busiest
    pipe would need at its best rate. `what_if` asks the same with other numbers.
    """

    kernel: str
    streams: Streams = field(repr=False)
    params: Params = field(repr=False)
    cores: int
    clock: float  # GHz
    outcome: Outcome = field(repr=False)
    proof: Proof | None = field(default=None, repr=False, compare=False)

    @staticmethod
    def of(
        kernel: str,
        streams: Streams,
        *,
        params: Params | None = None,
        cores: int | None = None,
        clock: float | None = None,
        trace: bool = True,
        proof: Proof | None = None,
    ) -> Timing:
        """Time what was issued; without a trace nobody can ask for spans or the longest chain.

        `proof` knows whether the program is as good without some of its lines.
        """
        found = params or load(streams.target)
        if cores is None:
            kinds = {core.kind for block in streams.blocks for core in block.cores}
            whole = "vector" if kinds == {"vector"} else "cube"
            cores = int(found[f"device.{whole}_cores"])
        outcome = Model(streams, found, cores, trace=trace).run()
        clock = clock or found["device.clock"]
        return Timing(kernel, streams, found, cores, clock, outcome, proof)

    def what_if(
        self,
        constants: Mapping[str, float] | None = None,
        *,
        cores: int | None = None,
        clock: float | None = None,
    ) -> Timing:
        """The same launch with other constants, by their names in the parameter file."""
        params = self.params.changed_by(constants or {})
        return Timing.of(
            self.kernel,
            self.streams,
            params=params,
            cores=cores or self.cores,
            clock=clock or self.clock,
            proof=self.proof,
        )

    def again(self, streams: Streams) -> Timing:
        """The same with other streams."""
        return Timing.of(
            self.kernel,
            streams,
            params=self.params,
            cores=self.cores,
            clock=self.clock,
            proof=self.proof,
        )

    @cached_property
    def advice(self) -> tuple[Advice, ...]:
        """What would make it faster, each change timed, the best first."""
        return advice(self, self.proof)

    @property
    def is_advised(self) -> bool:
        """Whether a summary tries changes as well: each of them is timed, and some are run."""
        return self.streams.events <= _ADVISED

    # ---- numbers --------------------------------------------------------------------------------

    def _us(self, cycles: float) -> float:
        return cycles / self.clock / 1e3

    @property
    def cycles(self) -> float:
        return self.outcome.cycles

    @property
    def us(self) -> float:
        """Microseconds from the launch to the last byte stored."""
        return self._us(self.outcome.cycles)

    @cached_property
    def busy(self) -> dict[str, float]:
        """The share of the time that each pipe works, over the cores that use it."""
        found: dict[int, tuple[float, int]] = {}
        for core in self.outcome.cores:
            for pipe, cycles in core.busy.items():
                before, heads = found.get(pipe, (0.0, 0))
                found[pipe] = before + cycles * core.weight, heads + core.weight
        return {
            PIPE_NAMES[pipe]: cycles / (heads / self.rows) / self.cycles
            for pipe, (cycles, heads) in sorted(found.items())
        }

    @property
    def rows(self) -> float:
        """Blocks that a core runs, one after the other."""
        blocks = len(self.streams.blocks)
        per_block = len(self.streams.blocks[0].cores) if blocks else 1
        places = max(1, min(blocks, self.cores) * per_block)
        return max(1.0, sum(core.weight for core in self.outcome.cores) / places)

    @property
    def roofline_us(self) -> float:
        """What the busiest pipe of any core needs for its work alone, at the best of rates."""
        least = (max(core.least.values(), default=0.0) for core in self.outcome.cores)
        return self._us(max(least, default=0.0))

    @property
    def serial_us(self) -> float:
        """The time if nothing ever happened at the same time: no launch takes longer."""
        params = self.params
        per_item = sum(params[f"scalar.{each}"] for each in ("issue", "order", "work"))
        per_item += sum(params[f"flags.{each}"] for each in ("latency", "barrier", "meeting"))
        total = sum(params[f"launch.{each}"] for each in ("start", "cluster", "end"))
        for core in self.outcome.cores:
            total += sum(core.busy.values()) + params["launch.block"]
            for item in map(self._item, core.stream.items):
                total += per_item
                if item.cost is not None and item.pipe:
                    total += params.law(item.cost.insn, item.cost.kind).tail
        return self._us(total)

    @cached_property
    def assumed(self) -> dict[str, float]:
        """Classes of operations without a figure behind them, with their share of all work."""
        spent: dict[str, float] = {}
        for core in self.outcome.cores:
            for what, _, start, end, _ in core.nodes:
                cost = self._item(what).cost
                kind = "" if cost is None else cost.kind
                spent[kind] = spent.get(kind, 0.0) + (end - start) * core.weight
        total = sum(spent.values()) or 1.0
        found = {k: n / total for k, n in spent.items() if n and self.params.is_assumed(k)}
        return dict(sorted(found.items(), key=lambda each: -each[1]))

    @property
    def band(self) -> str:
        """How far off a prediction of this target was found to be."""
        if not self.params.band or self.params.changed:
            return "not validated"
        if not self.validated:
            share = 100 * sum(self.assumed.values())
            most = list(self.assumed)[:2]
            kinds = "; ".join([*most, *(["others"] if len(self.assumed) > len(most) else [])])
            return f"not validated: numbers of {share:.0f} % of the work are assumed ({kinds})"
        median, most = self.params.band
        fitted = self.params.validated
        return (
            f"±{median:g} % at the median, ±{most:g} % at most, on what it was fitted to: {fitted}"
        )

    @property
    def validated(self) -> bool:
        """Whether figures stand behind its numbers: as they are, and of what the launch does."""
        is_as_fitted = bool(self.params.validated) and not self.params.changed
        return is_as_fitted and sum(self.assumed.values()) <= _MOST_ASSUMED

    # ---- why ------------------------------------------------------------------------------------

    def _item(self, number: int) -> Item:
        return self.streams.items[number]

    def core_name(self, core: Timed) -> str:
        """What a core is called, with those that do the same."""
        count = "" if core.weight == 1 else f" and {core.weight - 1} like it"
        return f"{core.stream.place} of block {core.blocks[0]}{count}"

    @cached_property
    def waits(self) -> tuple[Wait, ...]:
        """Every place where a pipe stands still, the longest first."""
        found: dict[
            tuple[str, str, str], Wait
        ] = {}  # the same lines, however often they are unrolled
        for core in self.outcome.cores:
            for stall in core.stalls.values():
                wait = self._wait(core, stall)
                key = wait.core, wait.pipe, wait.reason
                other = found.get(key)
                if other is not None:
                    share, us = other.share + wait.share, other.us + wait.us
                    wait = other._replace(share=share, us=us)
                found[key] = wait
        return tuple(sorted(found.values(), key=lambda wait: -wait.us))

    def _wait(self, core: Timed, stall: Stall) -> Wait:
        item = self._item(stall.item)
        here = f"{item.label} {_with_caller(where(item.site))}"
        signal = self._item(stall.giver) if stall.giver >= 0 else None
        work = self._item(stall.behind) if stall.behind >= 0 else None
        other = work or signal
        behind = None if other is None else where(other.site)
        if signal is not None:
            reason = f" for {PIPE_NAMES[signal.pipe]}: {here}, set"
        elif item.cost is not None:
            slow = "had not yet issued" if work is None else "was held before it issued"
            reason = f" for the scalar unit, which {slow} {here}"
        else:
            reason = f" for {PIPE_NAMES[(work or item).pipe]}: {here}"
        if work is not None and behind is not None:
            comma = "" if signal is not None else ","
            reason += f"{comma} after {work.label} {_with_caller(behind)}"
        elif behind is not None:
            reason += f" {_with_caller(behind)}"
        return Wait(
            PIPE_NAMES[stall.pipe],
            self.core_name(core),
            stall.cycles / self.cycles,
            self._us(stall.cycles),
            reason,
            where(item.site),
            behind,
        )

    @cached_property
    def path(self) -> tuple[tuple[int, int], ...]:
        """The longest chain of work, the last piece first: core and node."""
        cores = self.outcome.cores
        ends = [
            (node[3], core, index)
            for core, timed in enumerate(cores)
            for index, node in enumerate(timed.nodes)
        ]
        if not ends:
            return ()
        _, core, index = max(ends)
        found: list[tuple[int, int]] = []
        while True:
            found.append((core, index))
            before = cores[core].nodes[index][4]
            if before < 0:
                return tuple(found)
            core, index = core_and_index(before)

    @cached_property
    def critical(self) -> tuple[Step, ...]:
        """The longest chain of work, by line."""
        by_line: dict[tuple[str, Location], float] = {}
        for core, index in self.path:
            what, _, start, end, _ = self.outcome.cores[core].nodes[index]
            item = self._item(what)
            key = item.label, where(item.site)
            by_line[key] = by_line.get(key, 0.0) + end - start
        steps = [
            Step(label, line, self._us(cycles), cycles / self.cycles)
            for (label, line), cycles in by_line.items()
        ]
        return tuple(sorted(steps, key=lambda step: -step.us))

    @cached_property
    def breakdown(self) -> tuple[Step, ...]:
        """All of the time: the launch, the longest chain of work, and what lies between its pieces.

        Between two pieces of work the second has been waiting for what comes behind the first:
        stores that land, signals on their way, the scalar unit that issues.
        """
        at: dict[tuple[str, Location | None], float] = {}

        def spend(label: str, line: Location | None, cycles: float) -> None:
            if cycles > 0:
                at[label, line] = at.get((label, line), 0.0) + cycles

        now, behind = 0.0, "launch"
        line: Location | None = None
        for core, index in reversed(self.path):
            what, _, start, end, _ = self.outcome.cores[core].nodes[index]
            spend(behind, line, start - now)
            item = self._item(what)
            line = where(item.site)
            spend(item.label, line, end - max(start, now))
            now, behind = max(now, end), f"after {item.label}"
        spend(behind, line, self.cycles - now)
        steps = [
            Step(label, line, self._us(cycles), cycles / self.cycles)
            for (label, line), cycles in at.items()
        ]
        return tuple(sorted(steps, key=lambda step: -step.us))

    @property
    def spans(self) -> list[Span]:
        """Every instruction of every core that was followed, in order of time."""
        found = [
            Span(
                self._item(what).label,
                where(self._item(what).site),
                self.core_name(core),
                PIPE_NAMES[pipe],
                self._us(start),
                self._us(end),
            )
            for core in self.outcome.cores
            for what, pipe, start, end, _ in core.nodes
        ]
        return sorted(found, key=lambda span: span.start)

    def svg(self) -> str:
        """The work of every pipe over time, as a picture."""
        from ptokit.pictures.timeline import timeline_svg

        lanes: dict[tuple[str, str], list[tuple[str, float, float]]] = {}
        for core in self.outcome.cores:
            name = self.core_name(core)
            lanes |= {(name, PIPE_NAMES[pipe]): [] for pipe in sorted(core.busy)}
            for what, pipe, start, end, _ in sorted(core.nodes, key=lambda node: node[2]):
                work = self._item(what).label, self._us(start), self._us(end)
                lanes[name, PIPE_NAMES[pipe]].append(work)
        return timeline_svg(lanes, self.us)

    def _repr_html_(self) -> str:
        from ptokit.pictures.notebook import beside, card, plain

        head, *more = str(self).splitlines()
        return card(head, beside(self.svg()), plain("\n".join(line[2:] for line in more)))

    # ---- what is written ------------------------------------------------------------------------

    def as_dict(self) -> dict[str, Any]:
        """The numbers, for a file."""
        return {
            "kernel": self.kernel,
            "target": self.streams.target,
            "cores": self.cores,
            "clock_ghz": self.clock,
            "us": round(self.us, 3),
            "busy": {pipe: round(share, 4) for pipe, share in self.busy.items()},
            "roofline_us": round(self.roofline_us, 3),
            "validated": self.validated,
            "assumed": {kind: round(share, 4) for kind, share in self.assumed.items()},
            "band": self.band,
            "params": self.params.digest,
            "waits": [
                {
                    "pipe": wait.pipe,
                    "core": wait.core,
                    "us": round(wait.us, 3),
                    "reason": wait.reason,
                    "line": _short(wait.line),
                    "behind": None if wait.behind is None else _short(wait.behind),
                }
                for wait in self.waits
            ],
            "critical": [
                {
                    "label": step.label,
                    "line": step.line and _short(step.line),
                    "us": round(step.us, 3),
                }
                for step in self.critical
            ],
            "advice": [
                {"text": each.text, "line": _short(each.line), "us": round(each.us, 3)}
                for each in (self.advice if self.is_advised else ())
            ],
        }

    def chrome(self, path: str | Path) -> None:
        """Write a trace for Perfetto or chrome://tracing, with arrows from signals to waits."""
        write_text(path, self.chrome_text())

    def chrome_text(self) -> str:
        """The trace that `chrome` writes."""
        events: list[dict[str, Any]] = []
        for number, core in enumerate(self.outcome.cores):
            name = {"name": "process_name", "ph": "M", "pid": number}
            events.append({**name, "args": {"name": self.core_name(core)}})
            for pipe in core.busy:
                thread = {"name": "thread_name", "ph": "M", "pid": number, "tid": pipe}
                events.append({**thread, "args": {"name": PIPE_NAMES[pipe]}})
            for index, (what, pipe, start, end, before) in enumerate(core.nodes):
                item = self._item(what)
                at = {"pid": number, "tid": pipe, "ts": self._us(start)}
                line = _short(where(item.site))
                events.append(
                    {"name": item.label, "ph": "X", "dur": self._us(end - start), **at}
                    | {"args": {"line": line}}
                )
                events += self._arrow(number, index, pipe, start, before)
        return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})

    def _arrow(
        self, core: int, index: int, pipe: int, start: float, before: int
    ) -> list[dict[str, Any]]:
        if before < 0:
            return []
        other, at = core_and_index(before)
        _, giver, _, end, _ = self.outcome.cores[other].nodes[at]
        if (other, giver) == (core, pipe):
            return []
        flow = {"name": "signal", "cat": "signal", "id": f"{core}.{index}"}
        here = {"ph": "s", "pid": other, "tid": giver, "ts": self._us(end)}
        there = {"ph": "f", "bp": "e", "pid": core, "tid": pipe, "ts": self._us(start)}
        return [{**flow, **here}, {**flow, **there}]

    def __str__(self) -> str:
        blocks = len(self.streams.blocks)
        lines = [
            f"{self.kernel} on {self.streams.target}: {self.us:.1f} us ({self.band})",
            f"  {blocks} block{'s' if blocks != 1 else ''} on {self.cores} cores at "
            f"{self.clock:g} GHz; parameters {self.params.digest}; roofline "
            f"{self.roofline_us:.1f} us, {100 * self.roofline_us / self.us:.0f} %",
            "  busy: " + ", ".join(f"{pipe} {100 * s:.1f} %" for pipe, s in self.busy.items()),
        ]
        if self.waits:
            lines += ["  waits:", *(f"    {wait}" for wait in self.waits[:_SHOWN])]
        if self.critical:
            lines.append("  the time, along the longest chain:")
            lines += [
                f"    {100 * step.share:5.1f} %  {step.label}{_in_brackets(step.line)}"
                for step in self.breakdown[:_SHOWN]
            ]
        if self.is_advised and self.advice:
            lines += ["  advice:", *(f"    {each}" for each in self.advice[:_SHOWN])]
        return "\n".join(lines)


class Comparison(NamedTuple):
    """Two timings of what should do the same."""

    before: Timing
    after: Timing

    @property
    def speedup(self) -> float:
        return self.before.us / self.after.us

    def __str__(self) -> str:
        old, new = self.before, self.after
        lines = [f"{old.us:.1f} us -> {new.us:.1f} us: {self.speedup:.2f} times as fast"]
        for pipe in sorted({*old.busy, *new.busy}):
            was, now = old.busy.get(pipe, 0.0), new.busy.get(pipe, 0.0)
            lines.append(f"  {pipe:14} busy {100 * was:5.1f} % -> {100 * now:5.1f} %")
        return "\n".join(lines)


def compare(before: Timing, after: Timing) -> Comparison:
    """How much faster a launch became, pipe by pipe."""
    return Comparison(before, after)


__all__ = ["Comparison", "Span", "Step", "Timing", "Wait", "compare"]
