"""A kernel with its grid: what `k[4](...)` is."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache
from hashlib import sha256
from inspect import signature
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, PtoError, PtoWarning, tell, unrepeated, usage_error
from ptokit.base.entry import public
from ptokit.base.location import Location
from ptokit.base.namedtuple import NamedTuple
from ptokit.frontend.arguments import leaves_of, outlined
from ptokit.frontend.launch import Schedule
from ptokit.isa.targets import Target
from ptokit.isa.targets.defines import Defines
from ptokit.kernels.execution import Execution, Wanted, is_followed
from ptokit.kernels.run import Run
from ptokit.kernels.shortcuts import USUAL, Shortcut, key_of
from ptokit.machine.budget import Budget
from ptokit.machine.faults import OutOfBounds
from ptokit.machine.gm import Roomy, as_array
from ptokit.machine.machine import Machine
from ptokit.tasks import Executor, Jobs, Journal, Task, Work, progress

if TYPE_CHECKING:
    from ptokit.kernels.kernel import Kernel
    from ptokit.kernels.sending import Sent
    from ptokit.kernels.spreading import Did, Part
    from ptokit.machine.explore import Exploration, Explorer
    from ptokit.report.memory_map import Placed
    from ptokit.report.page import Page
    from ptokit.timing.report import Timing
    from ptokit.timing.streams import Recorder

# Told of every launch before it runs, with its arguments and constants: how `ptokit check` learns
# what the kernels of a file are called with.
LISTENERS: list[Callable[[Launch, tuple[Any, ...], Mapping[str, Any]], None]] = []

_TRIAL_SECONDS = 10.0  # of a run without some of its order


@public
@dataclass(frozen=True)
class Launch:
    """A kernel with its grid."""

    kernel: Kernel
    blocks: int

    def __call__(
        self,
        *args: Any,
        target: str | Target | None = None,
        defines: Defines | None = None,
        path: str = "",
        place: bool | None = None,
        sync: str | None = None,
        check: bool | str = True,
        seed: int | None = None,
        schedule: Schedule | None = None,
        jobs: Jobs = 1,
        engine: str = "fast",
        events: bool = False,
        rules: str | None = None,
        allow: Iterable[str] = (),
        max_steps: int | None = None,
        max_seconds: float | None = None,
        max_bytes: int | None = None,
        timing: bool | str = False,
        slack: int = 0,
        **consts: Any,
    ) -> Run:
        """Run every block; arrays are updated in place.

        `defines` overrides sizes and alignments of the target's memories by macro name.
        `path` is "eager" (a Python function as it stands, the default) or "lowered" (through IR;
        a text always is, and so is a kernel of which `place` or `sync` asks something: see
        `lower`). `check` looks for races, hangs and leftover flags where the author orders the
        pipes: once for launches that can only come to the same verdict, or anew and step by step
        with "full"; "explore" also runs the kernel under many schedules, which must all give the
        same bytes. `seed` runs the cores and pipes in a random but repeatable order, `schedule` in
        a particular one. `jobs` is the number of threads among which the blocks of a launch are
        shared when it is repeated; "auto" or an `Executor` spreads blocks that never wait for each
        other over processes or a cluster, each time. `engine` is "fast", which repeats launches of
        the same sizes as compiled code - of functions that can be lowered, and call nothing that
        may do more than answer -, "stepwise", which does not, or "reference", which is small and
        slow and defines
        what the bytes must be. `events` records every executed operation with its accesses, signals
        and waits: `Run.events`. `rules` is
        "default", "strict" (every broken rule is an error) or "release" (what the device does);
        `allow` silences findings by id, "PA-0044", or by id and place, "E8@softmax.py:41". What
        was broken without stopping the kernel is `Run.warnings`, and is shown as Python's are.
        `max_steps` (instructions and rounds of loops), `max_seconds` and `max_bytes` (of simulated
        memory) end a run that takes more, with an error at the line where it was. `timing` says
        how long the launch takes on the device: `Run.timing`; with "only" nothing is computed.
        `slack` lets a kernel that leaves its arrays find so many bytes past each of them, at
        first 0; that it does is a warning.
        """
        for told in LISTENERS:
            told(self, args, consts)
        lowering = {"target": target, "defines": defines, "rules": rules, "allow": allow,
                    "place": place, "sync": sync}  # fmt: skip
        budget = Budget.of(max_steps, max_seconds, max_bytes)
        order = schedule or (USUAL if seed is None else Schedule(seed))
        if not isinstance(jobs, int):
            if events or timing or slack or order != Schedule() or check == "explore":
                what = "blocks that are spread over workers run in order, and are not followed"
                raise usage_error("spread", what, fix="leave jobs out")
            options = {**lowering, "check": check, "engine": engine, "max_steps": max_steps,
                       "max_seconds": max_seconds, "max_bytes": max_bytes, **consts}  # fmt: skip
            return self._spread(args, options, Executor.of(jobs))
        wanted = Wanted(path, check, order, jobs, engine, events, budget, timing)

        def attempt(values: tuple[Any, ...]) -> Run:
            return self._run(values, consts, lowering, wanted)

        return self._with_slack(slack, args, attempt) if slack else attempt(args)

    def _run(
        self,
        args: tuple[Any, ...],
        consts: dict[str, Any],
        lowering: Mapping[str, Any],
        wanted: Wanted,
    ) -> Run:
        kernel, memory = self.kernel, self.kernel.programs.memory
        key = self._key(args, consts, lowering, wanted)
        known = memory.shortcuts.get(key)
        if known is not None:
            run = self._again(known, args, {**lowering, **consts})
            if run is not None:
                return run
        asked = kernel.programs.asked(**lowering)
        execution = Execution(kernel, self.blocks, asked, wanted, args, consts)
        memory.last = tuple(map(outlined, args)), consts
        mode = execution.mode
        if wanted.timing and execution.programs.keeper is not None:
            # In a process of its own nobody hears what it issues: its text is timed.
            did = kernel.programs.shown(asked._replace(blocks=self.blocks), execution.arguments)
            heard = kernel.with_source(kernel.source.recorded(did))[self.blocks]
            on = {**lowering, "target": asked.target, "defines": None, "place": None, "sync": None}
            return replace(heard._run(args, {}, on, replace(wanted, path="")), mode=mode)
        done = execution.run()
        if key is not None and execution.is_known:
            memory.shortcuts.keep(key, execution.shortcut)
        for each in done.found:
            tell(each)
        outcome, shown = done.outcome, {**lowering, **consts}
        return Run(
            kernel.name,
            asked.target,
            mode,
            execution.path,
            self.blocks,
            done.seconds,
            outcome.machine,
            outcome.events,
            done.found,
            outcome.chosen,
            None if done.recorder is None else self._timed(done.recorder, args, shown),
            _Afterwards(self, args, shown),
        )

    def _spread(self, args: tuple[Any, ...], options: Mapping[str, Any], executor: Executor) -> Run:
        """Run groups of blocks wherever there is a worker, and bring together what they write."""
        from ptokit.kernels.spreading import (  # few launches are spread
            Merged,
            did,
            groups_of,
            refuse_meetings,
        )

        started, sent = time.perf_counter(), self.sent(args, options)
        source: Any = sent.launch.kernel.source
        target = self.kernel.programs.target(sent.options["target"], sent.options.get("defines"))
        refuse_meetings(self.kernel.name, source.program.module)
        leaves = (each for n, v in source.bind(sent.args, {}).items() for each in leaves_of(n, v))
        arrays = [(n, as_array(leaf)) for n, leaf in leaves if getattr(leaf, "shape", ())]
        merged, warned = Merged(self.kernel.name, arrays), list[Diagnostic]()
        tasks = (Task(str(each), each) for each in groups_of(self.blocks))
        with progress(self.blocks, "blocks of workers") as done:
            for each in executor.results(Work(did, (sent,)), tasks, ordered=True):
                came: Did = each.get()
                merged.add(each.task.data, came)
                warned += came.warnings
                if done is not None:
                    done(each.task.data.last - each.task.data.first)
        merged.check()
        found = tuple(unrepeated(warned))
        for each in found:
            tell(each)
        seconds = time.perf_counter() - started
        mode, machine = getattr(self.kernel.source, "mode", "manual"), Machine(target)
        shown = {n: v for n, v in options.items() if n not in ("check", "engine")}
        return Run(self.kernel.name, target, mode, "lowered", self.blocks, seconds, machine,
                   warnings=found, _again=_Afterwards(self, args, shown))  # fmt: skip

    def part(self, part: Part, args: tuple[Any, ...], options: Mapping[str, Any]) -> Run:
        """Run some of the blocks, and note what they touch."""
        given = {name: options.get(name) for name in _LOWERING}
        given["allow"] = options.get("allow", ())
        budget = Budget.of(*(options.get(n) for n in ("max_steps", "max_seconds", "max_bytes")))
        wanted = Wanted("lowered", options.get("check", True), Schedule(), 1,
                        options.get("engine", "fast"), False, budget, False, part)  # fmt: skip
        with warnings.catch_warnings(action="ignore", category=PtoWarning):
            return self._run(args, {}, given, wanted)

    def _key(
        self,
        args: tuple[Any, ...],
        consts: Mapping[str, Any],
        lowering: Mapping[str, Any],
        wanted: Wanted,
    ) -> Hashable | None:
        """What tells this launch from others of the kernel; None: that takes a closer look."""
        if wanted.part is not None or is_followed():
            return None
        if wanted.events or wanted.budget is not None or wanted.timing:
            return None
        state = self.kernel.source.state()
        if state is None:
            return None
        how = (self.blocks, wanted.path, repr(wanted.check), wanted.jobs, wanted.engine, state)
        return key_of(args, consts, lowering, wanted.schedule, how)

    def _again(
        self, known: Shortcut, args: tuple[Any, ...], shown: Mapping[str, Any]
    ) -> Run | None:
        """Repeat a launch that is known; None where it has to be run."""
        started, kernel = time.perf_counter(), self.kernel
        arrays = [value for value in args if value.__class__ is np.ndarray]
        outcome = kernel.programs.memory.replays.play(known.question, arrays, known.threads)
        if outcome is None:
            return None
        seconds = time.perf_counter() - started
        for each in known.found:
            tell(each)
        return Run(
            kernel.name,
            known.target,
            known.mode,
            known.path,
            self.blocks,
            seconds,
            outcome.machine,
            warnings=known.found,
            chosen=outcome.chosen,
            _again=_Afterwards(self, args, shown),
        )

    def _with_slack(
        self,
        slack: int,
        args: tuple[Any, ...],
        attempt: Callable[[tuple[Any, ...]], Run],
    ) -> Run:
        """Run as always; where that leaves an array, run again with room behind all of them."""
        if slack < 0:
            raise usage_error("arguments", "slack is a number of bytes", fix="slack=256")
        arrays = {id(a): as_array(a) for a in args if getattr(a, "shape", ())}
        before = {key: array.copy() for key, array in arrays.items()}
        try:
            return attempt(args)
        except OutOfBounds as error:
            left = replace(error.diagnostics[0], severity="warning")
        roomy = {key: Roomy.copy_of(array, slack) for key, array in before.items()}
        try:
            found = attempt(tuple(roomy.get(id(a), a) for a in args))
        finally:
            for key, array in arrays.items():
                if array.flags.writeable:
                    array[...] = roomy[key]
        tell(left)
        return replace(found, warnings=(left, *found.warnings))

    def explore(
        self,
        *args: Any,
        schedules: int = 500,
        seed: int = 0,
        jobs: Jobs = 1,
        resume: bool | None = None,
        **options: Any,
    ) -> Exploration:
        """Run the kernel under many schedules, which must all leave the same bytes in its arrays.

        It begins with what the model of time predicts for the device. A kernel whose pipes can do
        their work in at most so many orders is run in all of them; otherwise the schedules are a
        sample: the worst cases, then random ones from `seed` on.
        `jobs` spreads a sample over processes, or over a cluster, which is given the kernel as
        text: a number, "auto" or an `Executor`. With `resume` what was tried is kept until all is:
        True goes on where a run was stopped, False begins anew. The options are those of a launch.
        The arrays hold the result of a run in order in the end.
        """
        from ptokit.kernels.sending import explored  # few launches go elsewhere

        executor = Executor.of(jobs)
        work: Work | None = None
        if executor.is_remote:
            work = Work(explored, (self.sent(args, options),))
        with self._journal(args, options, (schedules, seed), resume) as journal:
            likely = self._predicted(args, options)
            explorer = self.explorer(args, options)
            with progress(schedules, "schedules") as done:
                return explorer.search(
                    schedules, seed, executor, done or unheard, likely, work=work, journal=journal
                )

    def _journal(
        self, args: tuple[Any, ...], options: Mapping[str, Any], how: object, resume: bool | None
    ) -> AbstractContextManager[Journal | None]:
        """Where schedules are kept that were tried; they depend on all that a run does."""
        if resume is None:
            return nullcontext()
        source = self.kernel.source
        given = [
            (a.dtype, a.shape, sha256(a.tobytes()).digest()) if isinstance(a, np.ndarray) else a
            for a in args
        ]
        asked = (source.text, source.name, self.blocks, given, sorted(options.items()), how)
        return Journal.of(asked, tuple[int, Diagnostic | None], resume=resume)

    def sent(self, args: tuple[Any, ...], options: Mapping[str, Any]) -> Sent:
        """The launch as data for other machines: placed, ordered, and written as text."""
        from ptokit.kernels.sending import Sent  # few launches go elsewhere

        kernel = self.kernel
        lowering: dict[str, Any] = {n: options.get(n) for n in _LOWERING}
        lowering["allow"] = options.get("allow", ())
        asked = kernel.programs.asked(**lowering)._replace(blocks=self.blocks)
        consts = {n: v for n, v in options.items() if n not in OPTIONS}
        bound = kernel.source.bind(args, consts)
        written = kernel.source.sent(lambda: kernel.programs.shown(asked, bound), bound)
        if written is None:  # it is a text
            return Sent(self, args, options)
        source, values = written
        how = {n: v for n, v in options.items() if n in OPTIONS and n != "path"}
        how |= {"target": asked.target, "defines": None, "place": False, "sync": "keep"}
        return Sent(Launch(kernel.with_source(source), self.blocks), values, how)

    def _predicted(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Schedule, ...]:
        """The schedules that a device would have, as far as its time can be told."""
        from ptokit.timing.schedules import predicted

        try:
            with warnings.catch_warnings(action="ignore", category=PtoWarning):
                timing = self.kernel.time(self.blocks, args, **{**options, "check": False})
        except PtoError:  # it fails, or has no device of which times are known
            return ()
        return predicted(timing.outcome)

    def witnessed(
        self, found: Iterable[Diagnostic], *args: Any, **options: Any
    ) -> tuple[Diagnostic, ...]:
        """Races with a schedule in which they show, and the values that they change there."""
        from ptokit.machine.explore import witnesses

        complaints = tuple(found)
        if not any(each.evidence is not None for each in complaints):
            return complaints
        try:
            return witnesses(self.explorer(args, options), complaints)
        except PtoError:  # it fails in order as well
            return complaints

    def explorer(self, args: tuple[Any, ...], options: Mapping[str, Any]) -> Explorer:
        """The launch, to be run under many schedules."""
        from ptokit.machine.explore import Explorer

        kernel = self.kernel
        consts = {n: v for n, v in options.items() if n not in OPTIONS}
        bound = kernel.source.bind(args, consts)
        leaves = (each for n, v in bound.items() for each in leaves_of(n, v))
        arrays = {n: as_array(leaf) for n, leaf in leaves if getattr(leaf, "shape", ())}
        options = {"path": kernel.source.paths[-1], **options, "check": False}

        def attempt(schedule: Schedule) -> Run:
            with warnings.catch_warnings(action="ignore", category=PtoWarning):
                return self(*args, schedule=schedule, **options)

        return Explorer(attempt, list(arrays.values()), list(arrays))

    # ---- time and pages --------------------------------------------------------------------

    def _timed(self, recorder: Recorder, args: Sequence[Any], options: Mapping[str, Any]) -> Timing:
        from ptokit.repair.omit import without_statements
        from ptokit.timing.report import Timing

        def proof(lines: Collection[Location]) -> bool:
            """Whether the program is as good without the statements on these lines."""
            source = self.kernel.source
            text = without_statements(source.text, source.file, lines)
            if text is None:
                return False
            found = self._complaints(text, args, options)
            return found < inf and found <= usual()  # of what fails anyway nothing is known

        @cache
        def usual() -> float:
            return self._complaints(self.kernel.source.text, args, options)

        return Timing.of(self.kernel.name, recorder.streams(), proof=proof)

    def _complaints(self, text: str, args: Sequence[Any], options: Mapping[str, Any]) -> float:
        """How much a checked run of the kernel finds when its text reads so; without end: errors.

        A run that takes long proves nothing.
        """
        kernel = self.kernel
        values = [a.copy() if hasattr(a, "copy") else a for a in args]
        try:
            changed = kernel.with_source(kernel.source.rewritten(text))
            with warnings.catch_warnings(action="ignore", category=PtoWarning):
                run = changed[self.blocks](*values, **options, max_seconds=_TRIAL_SECONDS)
        except PtoError:
            return inf
        return len(run.warnings)

    def page(
        self,
        timing: Timing,
        found: tuple[Diagnostic, ...] | None,
        args: Sequence[Any],
        options: Mapping[str, Any],
    ) -> Page:
        """A page of what is known of a launch; `found` is None where nobody has checked it."""
        from ptokit.emit.cpp import emit_cpp
        from ptokit.ir.printer import print_module  # for whoever asks for text
        from ptokit.report.page import Page
        from ptokit.report.page_data import page_data
        from ptokit.report.placement import map_of

        kernel = self.kernel
        given = {n: v for n, v in options.items() if n in _LOWERING or n not in OPTIONS}
        target = kernel.programs.target(options.get("target"), options.get("defines"))
        texts = {"ir": "", "cpp": ""}
        tiles: tuple[Placed, ...] = ()
        try:
            module = kernel.lower(*args, **given, grid=self.blocks)
            texts["ir"] = print_module(module, origins=True)
            tiles = map_of(kernel.name, module, target).tiles
            texts["cpp"] = emit_cpp(module, target, origins=True)
        except PtoError as error:  # what cannot be lowered or written is said in its place
            missing = "cpp" if texts["ir"] else "ir"
            texts[missing] = "\n".join(f"// {line}" for line in str(error).splitlines())
        data = page_data(timing, **texts, tiles=tiles, findings=found or ())
        data["checked"] = found is not None
        return Page(f"{kernel.name} on {target.name}", [data])


class _Afterwards(NamedTuple):
    """A launch that has ended, for whoever asks more of it."""

    launch: Launch
    args: Sequence[Any]
    options: Mapping[str, Any]

    def timing(self) -> Timing:
        with warnings.catch_warnings(action="ignore", category=PtoWarning):
            launch = self.launch
            return launch.kernel.time(launch.blocks, self.args, **self.options)

    def page(self, run: Run) -> Page:
        timing = run.timing or self.timing()
        with warnings.catch_warnings(action="ignore", category=PtoWarning):
            return self.launch.page(timing, run.warnings, self.args, self.options)


def unheard(_: int) -> None:
    """Nobody looks at the progress."""


OPTIONS = frozenset(signature(Launch.__call__).parameters)  # of a launch; all others are constants
# Those that say what is launched.
_LOWERING = frozenset({"target", "defines", "rules", "allow", "place", "sync"})
