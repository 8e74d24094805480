"""Kernels: what can be launched, and everything that can be asked of it.

    @kernel(mode="auto")
    def add(x, y, z): ...

    add[1](x, y, z, target="a2a3")     # runs the body as it stands: print and breakpoint() work
    add[1](x, y, z, path="lowered")    # the same through IR, placed and synchronised in auto mode
    add.text(x, y, z)                  # PTO text of this specialisation
    add.check("all", x, y, z)          # the rules of every target, as one table

    load("add.pto")["add"][4](x, y, z) # the same Kernel, from a text

There is one Kernel, one Launch and one Run. What differs between a Python function and a function
of a text is its `Source`: how arguments are bound, and how the IR comes about.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from inspect import signature
from math import inf, prod
from typing import Any, ClassVar, NamedTuple, Protocol

from ptokit.base.diagnostics import (
    Diagnostic,
    InternalError,
    NotSupported,
    ProgramError,
    PtoError,
    PtoWarning,
    UsageError,
    fail,
    tell,
    unrepeated,
    usage_error,
    with_doubts,
)
from ptokit.base.entry import public
from ptokit.base.evidence import Finding, causes
from ptokit.base.location import Location
from ptokit.base.policy import Policy
from ptokit.emit.cpp import emit_cpp
from ptokit.engines import REPEATING, Runnable
from ptokit.engines import engine as find_engine
from ptokit.engines.compiled.replay import Replays
from ptokit.engines.outline import NoOutline, Outline, Walked, untimed
from ptokit.engines.verdicts import blocks_meet, question, says_nothing
from ptokit.frontend.arguments import leaves_of
from ptokit.frontend.declared import choices
from ptokit.frontend.launch import Options, Outcome, Schedule, progress, run
from ptokit.frontend.policies import policy_for
from ptokit.frontend.session import current
from ptokit.ir.core import Function, Module, Value
from ptokit.ir.printer import print_module
from ptokit.ir.types import MultiTileType, PlacedType
from ptokit.isa.devices import TARGETS as DEVICES
from ptokit.isa.targets import Target
from ptokit.isa.targets import target as find_target
from ptokit.isa.targets.defines import Defines, parse_defines
from ptokit.isa.verify import offers_values
from ptokit.machine.arena import Arena
from ptokit.machine.budget import Budget
from ptokit.machine.core import Core
from ptokit.machine.dataless import DatalessExecutor
from ptokit.machine.explore import Exploration, Explorer, witnesses
from ptokit.machine.faults import OutOfBounds
from ptokit.machine.gm import Roomy, as_array, shared_memory
from ptokit.machine.jobs import Keeper
from ptokit.machine.machine import Machine
from ptokit.machine.ranks import here
from ptokit.machine.recording import Recording
from ptokit.machine.scheduler import MOST_BLOCKS
from ptokit.passes.accesses import accesses_of
from ptokit.passes.finish import OPEN, VERDICT, Steps
from ptokit.passes.levels import ConvertLevel
from ptokit.passes.liveness import live_ranges, order_of
from ptokit.passes.pipe_rules import refuse_deeper_copies
from ptokit.passes.verify import Verify
from ptokit.repair.omit import without_statements
from ptokit.repair.search import Repair, Trial, repair
from ptokit.report.memory_map import Map, Placed, Step
from ptokit.report.page import Page
from ptokit.report.page_data import page_data
from ptokit.report.verdicts import Report
from ptokit.timing.params import load as load_params
from ptokit.timing.report import Timing
from ptokit.timing.schedules import predicted
from ptokit.timing.streams import Recorder
from ptokit.timing.tuning import Trial as TunedTrial
from ptokit.timing.tuning import Tuned, settings, sweep


class Asked(NamedTuple):
    """What a call asks for, or the kernel and its project where the call says nothing."""

    target: Target  # one per set of defines
    policy: Policy
    steps: Steps
    blocks: int = 1  # of a kernel whose program is known by running it


class Finished(NamedTuple):
    """A program that can run, and what is to be said of it nevertheless."""

    module: Module
    doubts: tuple[Diagnostic, ...]


# Told of every launch before it runs, with its arguments and constants: how `ptokit check` learns
# what the kernels of a file are called with.
LISTENERS: list[Callable[[Launch, tuple[Any, ...], Mapping[str, Any]], None]] = []

_MOST_VERDICTS = 256  # of a kernel
_TRIAL_SECONDS = 10.0  # of a run without some of its order


class Source(Protocol):
    """Where a kernel comes from."""

    paths: ClassVar[tuple[str, ...]]  # the ways it can run, the usual one first

    @property
    def name(self) -> str: ...

    @property
    def function(self) -> Any:
        """What it is made of: a Python function, or a function of a text."""
        ...

    @property
    def file(self) -> str:
        """The file it was written in; its project may say which findings are allowed."""
        ...

    @property
    def target(self) -> Target:
        """The target it asks for, when a call names none."""
        ...

    def bind(self, args: tuple[Any, ...], consts: dict[str, Any]) -> Mapping[str, Any]:
        """The arguments by parameter; a call that does not fit is a usage error."""
        ...

    def cache_key(self, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """All that the IR depends on, beside the target."""
        ...

    def fits(self, target: Target) -> None:
        """Refuse a target that it cannot run on, whatever its program is."""
        ...

    def written(self, target: Target, arguments: Mapping[str, Any], blocks: int) -> Module:
        """The program as it was written, before any pass; `blocks` where that is found by a run."""
        ...

    def finished(
        self, written: Module, asked: Asked, told: list[Diagnostic] | None = None
    ) -> Module:
        """The program checked, placed and ordered: ready to run, or to be written as C++.

        `told` takes the warnings.
        """
        ...

    def programs(self, module: Module | None, arguments: Mapping[str, Any]) -> Programs:
        """What runs on which cores: the function as it stands where there is no module."""
        ...

    @property
    def text(self) -> str:
        """The whole text it is written in."""
        ...

    def sampled(self) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """Arguments and constants that it can be run with, as far as it says what it takes."""
        ...

    def rewritten(self, text: str) -> Source:
        """The same kernel, where its text reads otherwise; its `file` is the name of that text."""
        ...

    def recorded(self, module: Module) -> Source:
        """A kernel that issues the same where anybody can hear it, given what a run did."""
        ...


@dataclass(frozen=True)
class Programs:
    """What a launch runs."""

    cores: tuple[str, ...]
    mode: str  # "manual": the program says the order of the pipes, and it is checked
    body: Callable[[], Any] | None = None  # a Python function, called on every core; or
    function: Function | None = None  # a function of the module
    args: tuple[Any, ...] = ()
    # Of compiled code, which may crash and runs in a process of its own.
    keeper: Keeper | None = None


@dataclass(frozen=True)
class Run:
    """What a launch leaves behind."""

    kernel: str
    target: Target
    mode: str
    path: str
    blocks: int
    seconds: float
    machine: Machine  # of the last block
    events: Recording | None = None  # of every executed operation, when the launch was asked to
    warnings: tuple[Diagnostic, ...] = ()  # rules that were broken without stopping it
    chosen: Sequence[tuple[int, int]] = ()  # of `Schedule.choices`: what was chosen of how many
    timing: Timing | None = None  # how long it takes on the device, when the launch was asked to
    _page: Callable[[Run], Page] | None = field(default=None, repr=False, compare=False)

    def report(self) -> Page:
        """The launch as a page: where the time goes on the device, and what was found.

        A notebook shows it; `run.report().write("k.html")` keeps it as one file.
        """
        assert self._page is not None
        return self._page(self)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The warnings, grouped by what would mend them; errors are raised, and have the same."""
        return causes(self.warnings)

    def __repr__(self) -> str:
        return (
            f"<{self.kernel} on {self.target.name}, {self.mode} mode, {self.path}: "
            f"{self.blocks} block{'s' if self.blocks > 1 else ''} in {self.seconds * 1e3:.1f} ms>"
        )


@public
@dataclass(eq=False)
class Kernel:
    """A program that can be launched: brackets choose the number of blocks."""

    source: Source
    defines: Mapping[str, int] = field(default_factory=dict[str, int])
    rules: str | None = None  # unless a call says otherwise
    allow: tuple[str, ...] = ()  # and what calls may allow beside
    _sources: dict[tuple[Any, ...], Module] = field(default_factory=dict[tuple[Any, ...], Module])
    _finished: dict[tuple[Any, ...], Finished] = field(
        default_factory=dict[tuple[Any, ...], "Finished"]
    )
    _told: set[tuple[Any, ...]] = field(default_factory=set[tuple[Any, ...]])  # of their doubts
    _advice: dict[tuple[Any, ...], dict[Any, str]] = field(
        default_factory=dict[tuple[Any, ...], dict[Any, str]]
    )
    _unlowered: set[tuple[Any, ...]] = field(default_factory=set[tuple[Any, ...]])
    _prepared: dict[tuple[str, Module], Runnable] = field(
        default_factory=dict[tuple[str, Module], Runnable]
    )
    # What checked launches were found to lack, by all that it depends on.
    _verdicts: dict[Hashable, tuple[Diagnostic, ...]] = field(
        default_factory=dict[Hashable, tuple[Diagnostic, ...]]
    )
    _replays: Replays = field(default_factory=Replays)  # launches that are repeated as they were
    # What launches of the program that ran last have left, and which program that was.
    _left: tuple[Any, list[Arena]] = (None, [])

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def function(self) -> Any:
        """What the kernel is made of: a Python function, or a function of a text."""
        return self.source.function

    def __getitem__(self, grid: int | tuple[int, ...]) -> Launch:
        """`k[6]`, or `k[2, 3]`: six blocks, of which get_block_idx() counts the last axis first."""
        sizes: tuple[Any, ...] = grid if isinstance(grid, tuple) else (grid,)
        if not 1 <= len(sizes) <= 3 or not all(isinstance(n, int) and n > 0 for n in sizes):
            raise usage_error(
                "grid",
                "the grid is a positive number of blocks, or up to three of them",
                got=[("grid", grid)],
                fix=f"{self.name}[4](...), or {self.name}[2, 3](...) for six blocks",
            )
        if prod(sizes) > MOST_BLOCKS:
            raise usage_error(
                "grid",
                "the number of blocks has 32 bits",
                got=[("blocks", prod(sizes))],
                fix=f"at most {MOST_BLOCKS}: loop over the rest in the kernel",
            )
        return Launch(self, prod(sizes))

    def __call__(self, *args: Any, **options: Any) -> Any:
        raise usage_error(
            "launch",
            f"{self.name} is a kernel: launch it with a number of blocks",
            fix=f"{self.name}[1](...)",
        )

    # ---- what comes out --------------------------------------------------------------------

    def lower(
        self,
        *args: Any,
        target: str | Target | None = None,
        defines: Defines | None = None,
        rules: str | None = None,
        allow: Iterable[str] = (),
        place: bool | None = None,
        sync: str | None = None,
        grid: int = 1,
        **consts: Any,
    ) -> Module:
        """The IR of the kernel for these arguments, ready to run.

        A kernel in auto mode is placed and ordered, one in manual mode is taken as written; a text
        as far as it leaves either open. `place=True` gives an address to tiles that have none,
        `sync="insert"` orders the pipes; `place=False` and `sync="keep"` leave that to the author.
        A C++ kernel is run on `grid` blocks, in vain: its program is what it did.
        """
        asked = self._asked(target, defines, rules, allow, place, sync, grid)
        return self._shown(asked, self.source.bind(args, consts))

    def text(
        self,
        *args: Any,
        form: str = "",
        target: str | Target | None = None,
        defines: Defines | None = None,
        rules: str | None = None,
        allow: Iterable[str] = (),
        place: bool | None = None,
        sync: str | None = None,
        grid: int = 1,
        **consts: Any,
    ) -> str:
        """PTO text of the kernel for these arguments.

        `form` is "sync", "l1", "l2" or "l3"; left out, it is the kernel as it runs: Level 3 with
        every address and flag.
        """
        asked = self._asked(target, defines, rules, allow, place, sync, grid)
        arguments = self.source.bind(args, consts)
        if form in ("", "l3"):  # the finished program; the other forms are of the written one
            module = self._shown(asked, arguments)
        else:
            written = self._written(asked.target, arguments, asked.blocks)
            module = ConvertLevel(form).run(written, asked.target)
        refuse_deeper_copies(module)
        return print_module(module, origins=not self._is_lowered)

    def cpp(
        self,
        *args: Any,
        target: str | Target | None = None,
        defines: Defines | None = None,
        rules: str | None = None,
        allow: Iterable[str] = (),
        place: bool | None = None,
        sync: str | None = None,
        grid: int = 1,
        guard_sync: bool = False,
        **consts: Any,
    ) -> str:
        """A PTO C++ kernel for these arguments, with a function that launches it.

        `guard_sync` puts what orders the pipes under `#ifndef __PTO_AUTO__`.
        """
        asked = self._asked(target, defines, rules, allow, place, sync, grid)
        module = self._shown(asked, self.source.bind(args, consts))
        return emit_cpp(module, asked.target, guard_sync=guard_sync)

    def check(
        self,
        targets: str,
        *args: Any,
        defines: Defines | None = None,
        rules: str | None = None,
        allow: Iterable[str] = (),
        place: bool | None = None,
        sync: str | None = None,
        **consts: Any,
    ) -> Report:
        """Verify the kernel for several targets at once: "all", or names with commas."""
        names = list(DEVICES) if targets == "all" else [t for t in targets.split(",") if t]
        found: dict[str, tuple[Diagnostic, ...]] = {}
        for name in names:
            asked = self._asked(name, defines, rules, allow, place, sync)
            try:
                found[name] = self._ready(asked, self.source.bind(args, consts)).doubts
            except ProgramError as error:
                found[name] = error.diagnostics
        return Report(self.name, found)

    def fix(self, *args: Any, grid: int = 1, rules: str | None = None, **options: Any) -> Repair:
        """The kernel with the order that it lacks: `print(k.fix(x, y))` shows the change as a diff.

        It is run on copies of the arguments - of those it declares, when none are given - with the
        options of a launch. Every change is tried before it is kept; `Repair.remaining` is what
        nothing was found for.
        """
        if not args:
            args, consts = self.source.sampled()
            options = {**consts, **options}

        def check(text: str) -> Trial:
            source = self.source.rewritten(text)
            kernel = Kernel(source, self.defines, self.rules, self.allow)
            values = [a.copy() if hasattr(a, "copy") else a for a in args]
            with warnings.catch_warnings(action="ignore", category=PtoWarning):
                try:
                    found = kernel[grid](*values, rules=rules, **options).warnings
                except ProgramError as error:
                    found = error.diagnostics
            return Trial(source.file, found)

        return repair(self.source.text, check, self.source.file)

    def time(
        self,
        grid: int | tuple[int, ...],
        args: Sequence[Any] = (),
        *,
        data: bool = False,
        **options: Any,
    ) -> Timing:
        """How long a launch takes on the device, and what holds it up: `print(k.time(24, (x, y)))`.

        Nothing is computed unless `data` asks for it, as a program does that branches on what it
        has computed. The other options are those of a launch; `Timing.what_if` asks for another
        number of cores, clock or constant.
        """
        timing = self[grid](*args, timing=True if data else "only", **options).timing
        assert timing is not None
        return timing

    @property
    def choices(self) -> Mapping[str, tuple[Any, ...]]:
        """The values that its constants may have, as far as it declares them."""
        return choices(self.function) if callable(self.function) else {}

    def tune(
        self,
        grid: int | Callable[..., int],
        args: Sequence[Any] = (),
        *,
        over: Mapping[str, Sequence[Any]] | None = None,
        check: bool = True,
        jobs: int = 1,
        known: Tuned | None = None,
        data: bool = False,
        **options: Any,
    ) -> Tuned:
        """Its constants tried in every combination, ranked by predicted time; `tuned.best` wins.

        A constant declares its values, `*, tile: Literal[64, 128] = 64`, or `over` does. The grid
        may be a function of them. What breaks a rule, does not fit or, unless `check` is False,
        races is discarded with the reason. `jobs` spreads the settings over processes; `known` is
        an earlier result, of which nothing is tried again that depends on the same.
        """
        values = {**self.choices, **(over or {})}
        if not values or not all(isinstance(v, Sequence) and v for v in values.values()):
            raise usage_error(
                "tune",
                f"{self.name} has no values to try",
                got=[("values", dict(values))],
                fix="*, tile: Literal[64, 128] = 64, or tune(..., over={'tile': (64, 128)})",
            )

        def attempt(setting: Mapping[str, Any]) -> TunedTrial:
            blocks = grid(**setting) if callable(grid) else grid
            how = {**options, **setting}
            try:
                with warnings.catch_warnings(action="ignore", category=PtoWarning):
                    timing = self.time(blocks, args, data=data, **how)
                    if check:
                        copies = [a.copy() if hasattr(a, "copy") else a for a in args]
                        self[blocks](*copies, **how)
            except (InternalError, UsageError):  # a call that no setting would make right
                raise
            except PtoError as error:
                found = error.diagnostics[0]
                return TunedTrial(setting, reason=f"{found.code}: {found.message}")
            except Exception as error:  # of the kernel's own: what it refuses is discarded
                return TunedTrial(setting, reason=f"{type(error).__name__}: {error}")
            return TunedTrial(setting, timing.us)

        wanted = list(settings(values))
        sizes = [getattr(a, "shape", a) for a in args]
        target = self._target(options.get("target"), options.get("defines"))
        params = load_params(target.name).digest
        of_what = (self.source.text, target.name, sorted(target.overrides.items()), params, sizes)
        how = (check, data, sorted(options.items()), None if callable(grid) else grid)
        digest = sha256(repr((of_what, how)).encode()).hexdigest()[:16]
        with progress(len(wanted), "settings", 2) as done:
            return sweep(
                self.name, digest, wanted, attempt, jobs=jobs, known=known, done=done or _ignore
            )

    def report(
        self,
        grid: int | tuple[int, ...],
        args: Sequence[Any] = (),
        *,
        check: bool = True,
        data: bool = False,
        **options: Any,
    ) -> Page:
        """A launch as one page: `k.report(24, (x, y)).write("k.html")`, or shown in a notebook.

        It is run on copies of the arguments, so that the page has the findings of the checker,
        unless `check` says that its time is all that matters. Other options are those of `time`.
        """
        launch = self[grid]
        found: tuple[Diagnostic, ...] | None = None
        if check:
            values = [a.copy() if hasattr(a, "copy") else a for a in args]
            try:
                with warnings.catch_warnings(action="ignore", category=PtoWarning):
                    found = launch(*values, **options).warnings
            except ProgramError as error:
                found = error.diagnostics
        with warnings.catch_warnings(action="ignore", category=PtoWarning):
            timing = self.time(grid, args, data=data, **options)
            return launch.page(timing, found, args, options)

    def memory_map(
        self,
        *args: Any,
        target: str | Target | None = None,
        defines: Defines | None = None,
        rules: str | None = None,
        allow: Iterable[str] = (),
        **consts: Any,
    ) -> Map:
        """Where the tiles of the kernel lie, and when they are live."""
        chosen = self._target(target, defines)
        module = self.lower(*args, target=chosen, rules=rules, allow=allow, **consts)
        return _mapped(self.name, module, chosen)

    # ---- what launches and questions share -------------------------------------------------

    def _target(self, given: str | Target | None, defines: Defines | None = None) -> Target:
        """The target in force. Defines of a call come first, then those of its target."""
        chosen = self.source.target if given is None else find_target(given)
        return chosen.override({**self.defines, **chosen.overrides, **parse_defines(defines)})

    def _policy(self, rules: str | None, allow: Iterable[str]) -> Policy:
        """What is an error here: the call says, then the kernel, then its project."""
        own = policy_for(self.source.file, self.rules, self.allow)
        return policy_for(self.source.file, rules, allow, own)

    def _asked(
        self,
        target: str | Target | None,
        defines: Defines | None,
        rules: str | None,
        allow: Iterable[str],
        place: bool | None,
        sync: str | None,
        grid: int = 1,
    ) -> Asked:
        policy = self._policy(rules, allow)
        return Asked(self._target(target, defines), policy, Steps(place, sync), grid)

    def _written(self, target: Target, arguments: Mapping[str, Any], blocks: int = 1) -> Module:
        """The program before any pass; they all start from this one, and leave it as it is."""
        key = (target, blocks, *self.source.cache_key(arguments))
        if key not in self._sources:
            self.source.fits(target)
            self._sources[key] = self.source.written(target, arguments, blocks)
        return self._sources[key]

    @property
    def _is_lowered(self) -> bool:
        """Whether it has a program that can be asked for without running it."""
        return "lowered" in self.source.paths

    def _key(self, asked: Asked, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        return (asked, *self.source.cache_key(arguments))

    def _ready(self, asked: Asked, arguments: Mapping[str, Any]) -> Finished:
        key = self._key(asked, arguments)
        if key not in self._finished:
            written = self._written(asked.target, arguments, asked.blocks)
            told: list[Diagnostic] = []
            module = self.source.finished(written, asked, told)
            self._finished[key] = Finished(module, tuple(told))
        return self._finished[key]

    def _shown(self, asked: Asked, arguments: Mapping[str, Any]) -> Module:
        """The finished program, after its warnings were shown."""
        module, doubts = self._ready(asked, arguments)
        key = self._key(asked, arguments)
        if key not in self._told:
            self._told.add(key)
            for each in doubts:
                tell(each)
        return module

    def _advised(
        self,
        found: tuple[Diagnostic, ...],
        target: Target,
        arguments: Mapping[str, Any],
        policy: Policy,
    ) -> tuple[Diagnostic, ...]:
        """Warnings of a running function with advice that was tried on all of it: a run has seen
        only the instructions before the one it speaks of."""
        if not self._is_lowered or not any(offers_values(each.fix) for each in found):
            return found
        key = (target, policy, *self.source.cache_key(arguments))
        if key not in self._advice:
            try:
                module = self._written(target, arguments)
            except Exception:  # it runs, but is not written in what can be lowered
                known = []
            else:
                known = Verify(policy=policy).check(module, target)
            self._advice[key] = {(d.code, d.location): d.fix for d in known}
        advice = self._advice[key]
        return tuple(replace(d, fix=advice.get((d.code, d.location), d.fix)) for d in found)

    def _judged(self, asked: Asked, arguments: Mapping[str, Any]) -> Finished | None:
        """What would run on a device of a kernel that is about to run as it stands.

        A run sees only the path it takes, and in auto mode gives every tile a storage of its own;
        whether they all fit, which operands share bytes, and what the other paths break is decided
        by the program that a device would be given: its errors are raised here. What cannot be
        lowered has no such program, and is judged call by call as it runs.
        """
        if not self._is_lowered:
            return None
        key = (asked.target, *self.source.cache_key(arguments))
        if key in self._unlowered:
            return None
        try:
            self._written(asked.target, arguments)
        except PtoError as error:
            if not all(code.startswith("lower.") for code in error.codes):
                raise
            self._unlowered.add(key)
            return None
        return self._ready(asked._replace(steps=VERDICT), arguments)

    def _prepare(self, engine: str, module: Module) -> Runnable:
        """The module ready to run."""
        if (engine, module) not in self._prepared:
            self._prepared[engine, module] = find_engine(engine).prepare(module)
        return self._prepared[engine, module]

    def _remember(self, asked: Hashable, verdict: tuple[Diagnostic, ...]) -> None:
        """Keep the verdict of a launch for others like it; who asks ever anew is not helped."""
        if len(self._verdicts) >= _MOST_VERDICTS:
            self._verdicts.clear()
        self._verdicts[asked] = verdict

    def _arenas(self, program: Any) -> list[Arena]:
        """What launches of a program have left; only the program that ran last keeps it."""
        if self._left[0] != program:
            self._left = program, []
        return self._left[1]

    def __repr__(self) -> str:
        return f"<kernel {self.source}>"


# What a program that auto mode has ordered cannot have: pipes or instructions in no order.
_OURS = ("E2", "E6", "E8")


def _blame_ourselves(error: ProgramError) -> None:
    """Auto mode orders the pipes: where it has failed, no advice to the author is in place."""
    if any(found.code in _OURS for found in error.diagnostics):
        fix = "please report the kernel; meanwhile order its pipes in manual mode"
        raise InternalError(
            replace(found, message=f"auto mode, a bug of ptokit: {found.message}", fix=fix)
            for found in error.diagnostics
        ) from error


def _mapped(kernel: str, module: Module, target: Target) -> Map:
    """The tiles of a program that have an address: where they lie, when they live, who uses them.

    Positions count on from one function to the next.
    """
    placed: list[Placed] = []
    steps: list[Step] = []
    loops: dict[tuple[int, int], None] = {}
    before = 0
    for function in module.functions:
        if function.body is None:
            continue
        accesses, order = accesses_of(function, target), order_of(function)
        uses: dict[Value, dict[int, bool]] = {}
        for op, touched in accesses.of.items():
            here = before + order.position[op]
            on_chip = [each for each in touched if not each.is_memory and not each.is_idle]
            if on_chip:
                name = op.insn.name if op.insn is not None else op.name
                steps.append(Step(here, name, op.location.line))
                loops.update(dict.fromkeys((before + a, before + b) for a, b in order.loops[op]))
            for each in on_chip:
                at = uses.setdefault(each.root, {})
                at[here] = at.get(here, True) and each.writes and not each.reads
        for live in live_ranges(function, accesses):
            handle = live.alloc.result
            assert isinstance(handle.type, PlacedType)
            spec = handle.type.spec
            address = accesses.known.number(live.alloc.operand("addr"))
            if address is not None:
                space = target.spaces[spec.loc]
                life = (before + live.start, before + live.stop)
                used = tuple(sorted(uses.get(handle, {}).items()))
                for name, at in _places(handle, address):
                    where = (space.memory, space.capacity, at, spec.nbytes)
                    placed.append(Placed(name, *where, str(spec), life, used))
        before += len(order.position) + sum(1 for op in order.position if op.regions)
    ordered = tuple(sorted(steps, key=lambda step: step.position))
    return Map(kernel, tuple(placed), ordered, tuple(loops))


def _places(handle: Value, address: int) -> Iterator[tuple[str, int]]:
    """The names and addresses of the tiles that a handle stands for."""
    if not isinstance(handle.type, MultiTileType):
        yield handle.name, address
        return
    for slot in range(handle.type.count):
        yield f"{handle.name}[{slot}]", address + slot * handle.type.stride


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
        jobs: int = 1,
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
        a particular one. `jobs` runs so many blocks at a time: in processes, or in threads where a
        lowered launch is repeated. `engine` is "fast", which repeats launches of the same sizes as
        compiled code, "stepwise", which does not, or "reference", which is small and slow and
        defines what the bytes must be. `events` records
        every executed operation with its accesses, signals and waits: `Run.events`. `rules` is
        "default", "strict" (every broken rule is an error) or "release" (what the device does);
        `allow` silences findings by id, "PA-0044", or by id and place, "E8@softmax.py:41". What
        was broken without stopping the kernel is `Run.warnings`, and is shown as Python's are.
        `max_steps` (instructions and rounds of loops), `max_seconds` and `max_bytes` (of simulated
        memory) end a run that takes more, with an error at the line where it was. `timing` says
        how long the launch takes on the device: `Run.timing`; with "only" nothing is computed.
        `slack` lets a kernel that leaves its arrays find so many bytes behind each of them, at
        first 0; that it does is a warning.
        """
        if slack:
            options = dict(locals())
            for name in ("self", "args", "consts", "slack"):
                del options[name]
            return self._with_slack(slack, args, options | consts)
        kernel = self.kernel
        for told in LISTENERS:
            told(self, args, consts)
        paths = kernel.source.paths
        asked = kernel._asked(target, defines, rules, allow, place, sync)
        if timing:
            _refuse_untimed(timing, jobs, engine, check)
            path = path or paths[-1]  # the program as a device is given it, with all its order
        path = path or (paths[0] if asked.steps == OPEN else "lowered")
        if path not in paths:
            raise usage_error("path", f"path is one of {paths}, not {path!r}")
        if path != "lowered" and asked.steps != OPEN:
            raise usage_error(
                "path",
                "a function that runs as it stands is not rewritten",
                got=[("place", place), ("sync", sync)],
                fix='path="lowered"',
            )
        chosen, policy = asked.target, asked.policy
        budget = Budget.of(max_steps, max_seconds, max_bytes)
        options_of_page = {"target": target, "defines": defines, "rules": rules, "allow": allow,
                           "place": place, "sync": sync, **consts}  # fmt: skip
        started = time.perf_counter()
        kernel.source.fits(chosen)
        arguments = kernel.source.bind(args, consts)
        ready = kernel._ready(asked, arguments) if path == "lowered" else None
        module = None if ready is None else ready.module
        programs = kernel.source.programs(module, arguments)
        if timing and programs.keeper is not None:  # in its own process nobody hears what it issues
            did = kernel._shown(asked._replace(blocks=self.blocks), arguments)
            heard = Kernel(kernel.source.recorded(did), kernel.defines, kernel.rules, kernel.allow)
            return replace(
                heard[self.blocks](
                    *args, target=chosen, check=check, seed=seed, schedule=schedule, events=events,
                    rules=rules, allow=allow, timing=timing,
                ),
                mode=programs.mode,
            )  # fmt: skip
        ready = ready or kernel._judged(asked, arguments)
        body = programs.body
        if module is not None:
            body = self._interpreted(kernel._prepare(engine, module), programs)
        assert body is not None
        arena, arenas = None, kernel._arenas((chosen, programs.mode, module, policy))
        processes = 1 if module is not None and jobs > 0 else jobs  # what is lowered has threads
        is_plain = processes == 1 and check != "explore" and budget is None and not timing
        if is_plain:  # one run in this process
            arena = arenas.pop() if arenas else Arena(chosen, programs.mode)
        order = schedule or Schedule(seed)
        named = [each for n, v in arguments.items() for each in leaves_of(n, v)]
        shared = shared_memory(named)
        asks = None
        # Ranks of a world meet at memory that others touch as well: there it matters each time.
        is_alone = arena is not None and here() is None
        if module is not None and is_alone and order == Schedule() and check in (True, False):
            asks = question(module, self.blocks, programs.args, policy)
        known = kernel._verdicts.get(asks) if check is True and asks and not events else None
        if timing and module is not None:
            _refuse_micro(module)
        listener = Recorder(chosen) if timing else None
        computes = timing != "only"
        watched = events or timing
        is_repeatable = engine == REPEATING and not watched and module and says_nothing(module)
        repeatable = asks if is_repeatable else None
        given = [as_array(v) for v in programs.args if getattr(v, "shape", ())]
        outcome = tape = None
        if repeatable is not None:
            if check is False or known is not None:
                # Blocks that a check has not objected to may run side by side.
                is_proved = kernel._verdicts.get(asks) == () and module and not blocks_meet(module)
                outcome = kernel._replays.play(repeatable, given, jobs if is_proved else 1)
            tape = kernel._replays.tape(repeatable, given)
        if outcome is None:
            options = Options(
                self.blocks,
                order,
                check if known is None and computes else False,
                [leaf for _, leaf in named],
                processes,
                arena,
                find_engine(engine).executor if computes else DatalessExecutor,
                events,
                policy=policy,
                budget=budget,
                listener=listener,
                follow=None if tape is None else tape.follow,
            )
            cores = dict.fromkeys(programs.cores, body)
            try:
                with nullcontext() if arena is None else arena.lock:
                    if listener is not None and not computes and module is not None:
                        parts = (module, programs, cores, chosen, options, listener)
                        outcome = self._outlined(*parts)
                    else:
                        outcome = run(cores, chosen, programs.mode, options, programs.keeper)
            except ProgramError as error:
                is_auto = asked.steps == OPEN and getattr(kernel.source, "mode", "") == "auto"
                if module is not None and is_auto:
                    _blame_ourselves(error)
                error.diagnostics = with_doubts(error.diagnostics, ready.doubts if ready else ())
                raise
            if tape is not None and arena is not None:
                kernel._replays.keep(repeatable, tape, outcome, arena.lock)
        if arena is not None:  # after a run that has gone well
            arenas.append(arena)
        seconds = time.perf_counter() - started
        mode = getattr(kernel.source, "mode", programs.mode)
        found = outcome.warnings
        if known is not None:
            found = tuple(unrepeated((*found, *known)))
        elif asks is not None and outcome.verdict is not None:
            kernel._remember(asks, outcome.verdict)
        if module is None:
            found = kernel._advised(found, chosen, arguments, policy)
        if ready is not None:  # what lies on other paths, and what no single call can see
            found = tuple(unrepeated((*found, *ready.doubts)))
        found = (*found, *policy.judge(filter(None, [each.told() for each in shared])))
        for each in found:
            tell(each)
        return Run(
            kernel.name,
            chosen,
            mode,
            path,
            self.blocks,
            seconds,
            outcome.machine,
            outcome.events,
            found,
            outcome.chosen,
            None if listener is None else self._timed(listener, args, options_of_page),
            lambda run: self.reported(run, args, options_of_page),
        )

    def _timed(self, recorder: Recorder, args: Sequence[Any], options: Mapping[str, Any]) -> Timing:
        def proof(lines: Collection[Location]) -> bool:
            """Whether the program is as good without the statements on these lines."""
            source = self.kernel.source
            text = without_statements(source.text, source.file, lines)
            return text is not None and self._complaints(text, args, options) <= usual()

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
            changed = Kernel(
                kernel.source.rewritten(text), kernel.defines, kernel.rules, kernel.allow
            )
            with warnings.catch_warnings(action="ignore", category=PtoWarning):
                run = changed[self.blocks](*values, **options, max_seconds=_TRIAL_SECONDS)
        except PtoError:
            return inf
        return len(run.warnings)

    def reported(self, run: Run, args: Sequence[Any], options: Mapping[str, Any]) -> Page:
        """The page of a run that has ended."""
        with warnings.catch_warnings(action="ignore", category=PtoWarning):
            timing = run.timing or self.kernel.time(self.blocks, args, **options)
            return self.page(timing, run.warnings, args, options)

    def page(
        self,
        timing: Timing,
        found: tuple[Diagnostic, ...] | None,
        args: Sequence[Any],
        options: Mapping[str, Any],
    ) -> Page:
        """A page of what is known of a launch; `found` is None where nobody has checked it."""
        kernel = self.kernel
        given = {n: v for n, v in options.items() if n in _LOWERING or n not in _OPTIONS}
        target = kernel._target(options.get("target"), options.get("defines"))
        texts = {"ir": "", "cpp": ""}
        tiles: tuple[Placed, ...] = ()
        try:
            module = kernel.lower(*args, **given, grid=self.blocks)
            texts["ir"] = print_module(module, origins=True)
            tiles = _mapped(kernel.name, module, target).tiles
            texts["cpp"] = emit_cpp(module, target, origins=True)
        except PtoError as error:  # what cannot be lowered or written is said in its place
            missing = "cpp" if texts["ir"] else "ir"
            texts[missing] = "\n".join(f"// {line}" for line in str(error).splitlines())
        data = page_data(timing, **texts, tiles=tiles, findings=found or ())
        data["checked"] = found is not None
        return Page(f"{kernel.name} on {target.name}", [data])

    def explore(
        self, *args: Any, schedules: int = 500, seed: int = 0, jobs: int = 1, **options: Any
    ) -> Exploration:
        """Run the kernel under many schedules, which must all leave the same bytes in its arrays.

        It begins with what the model of time predicts for the device. A kernel whose pipes can do
        their work in at most so many orders is run in all of them; otherwise the schedules are a
        sample: the worst cases, then random ones from `seed` on.
        `jobs` spreads a sample over processes. The options are those of a launch. The arrays hold
        the result of a run in order in the end.
        """
        with progress(schedules, "schedules") as done:
            likely = self._predicted(args, options)
            explorer = self._explorer(args, options)
            return explorer.search(schedules, seed, jobs, done or _ignore, likely)

    def _predicted(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Schedule, ...]:
        """The schedules that a device would have, as far as its time can be told."""
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
        complaints = tuple(found)
        if not any(each.evidence is not None for each in complaints):
            return complaints
        try:
            return witnesses(self._explorer(args, options), complaints)
        except PtoError:  # it fails in order as well
            return complaints

    def _explorer(self, args: tuple[Any, ...], options: dict[str, Any]) -> Explorer:
        kernel = self.kernel
        consts = {n: v for n, v in options.items() if n not in _OPTIONS}
        bound = kernel.source.bind(args, consts)
        leaves = (leaf for n, v in bound.items() for _, leaf in leaves_of(n, v))
        arrays = [as_array(leaf) for leaf in leaves if getattr(leaf, "shape", ())]
        options = {"path": kernel.source.paths[-1], **options, "check": False}

        def attempt(schedule: Schedule) -> Run:
            with warnings.catch_warnings(action="ignore", category=PtoWarning):
                return self(*args, schedule=schedule, **options)

        return Explorer(attempt, arrays)

    def _outlined(
        self,
        module: Module,
        programs: Programs,
        cores: Mapping[str, Callable[[], Any]],
        target: Target,
        options: Options,
        recorder: Recorder,
    ) -> Outcome:
        """Run one block of each outline, and note the others as repeating it.

        A program without an outline, or of several cores that wait for each other, runs whole.
        """
        function = programs.function
        assert function is not None
        outline, machine = Outline(module), Machine(target, programs.mode, policy=options.policy)
        machine.blocks, walked = self.blocks, list[Walked]()
        try:
            for block in range(self.blocks if len(cores) == 1 else 0):
                machine.core = Core(target, programs.cores[0], block)
                walked.append(outline.walk(machine, function, programs.args))
        except NoOutline:
            walked = []
        known, outcome = dict[Any, int](), None
        for block, (way, views) in enumerate(walked):
            like = known.setdefault(way, block)
            if like == block or not recorder.repeat(block, like, views):
                part = replace(options, blocks=range(block, block + 1))
                outcome = run(cores, target, programs.mode, part)
        return outcome or run(cores, target, programs.mode, options)

    def _with_slack(self, slack: int, args: tuple[Any, ...], options: Mapping[str, Any]) -> Run:
        """Run as always; where that leaves an array, run again with room behind all of them."""
        if slack < 0 or options["jobs"] != 1:
            what = "slack is a number of bytes, and such a launch runs in one process"
            raise usage_error("arguments", what, fix="slack=256, jobs=1")
        arrays = {id(a): as_array(a) for a in args if getattr(a, "shape", ())}
        before = {key: array.copy() for key, array in arrays.items()}
        try:
            return self(*args, **options)
        except OutOfBounds as error:
            left = replace(error.diagnostics[0], severity="warning")
        roomy = {key: Roomy.copy_of(array, slack) for key, array in before.items()}
        try:
            found = self(*(roomy.get(id(a), a) for a in args), **options)
        finally:
            for key, array in arrays.items():
                if array.flags.writeable:
                    array[...] = roomy[key]
        tell(left)
        return replace(found, warnings=(left, *found.warnings))

    def _interpreted(self, prepared: Runnable, programs: Programs) -> Callable[[], Any]:
        function, args = programs.function, programs.args
        assert function is not None
        return lambda: prepared.run(current(), function, args)


def _refuse_untimed(timing: bool | str, jobs: int, engine: str, check: bool | str) -> None:
    """A launch is timed as one run in this process."""
    if timing not in (True, "only"):
        raise usage_error("timing", f'timing is True or "only", not {timing!r}')
    if jobs > 1 or engine != "fast" or check == "explore":
        raise usage_error(
            "timing",
            "a launch is timed in one run of this process, on the fast engine",
            got=[("jobs", jobs), ("engine", engine), ("check", check)],
            fix="leave jobs and engine out, and explore in a launch of its own",
        )


def _refuse_micro(module: Module) -> None:
    found = untimed(module)
    if found is not None:
        raise fail(
            "timing.class",
            f"{found.name} works below instructions, of which no parameter file has numbers",
            fix="time the kernel with the instruction that does the same",
            site=found.location,
            kind=NotSupported,
        )


def _ignore(_: int) -> None:
    """Nobody looks at the progress."""


_OPTIONS = frozenset(signature(Launch.__call__).parameters)  # of a launch; all others are constants
_LOWERING = _OPTIONS & frozenset(signature(Kernel.lower).parameters)  # that say what is launched
