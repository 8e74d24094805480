"""Kernels: what can be launched, and everything that can be asked of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from hashlib import sha256
from math import prod
from typing import TYPE_CHECKING, Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import (
    Diagnostic,
    ProgramError,
    PtoError,
    PtoWarning,
    usage_error,
)
from ptokit.base.entry import public
from ptokit.frontend.declared import choices
from ptokit.ir.core import Module
from ptokit.isa.devices import TARGETS as DEVICES
from ptokit.isa.targets import Target
from ptokit.isa.targets.defines import Defines
from ptokit.kernels.launch import Launch, unheard
from ptokit.kernels.programs import ProgramCache
from ptokit.kernels.source import Source
from ptokit.machine.scheduler import MOST_BLOCKS
from ptokit.tasks import Executor, Jobs, Work, progress

if TYPE_CHECKING:
    from ptokit.repair.search import Repair, Trial
    from ptokit.report.memory_map import Map
    from ptokit.report.page import Page
    from ptokit.report.verdicts import Report
    from ptokit.timing.report import Timing
    from ptokit.timing.tuning import Trial as TunedTrial
    from ptokit.timing.tuning import Tuned


@public
@dataclass(eq=False)
class Kernel:
    """A program that can be launched: brackets choose the number of blocks."""

    source: Source
    defines: Mapping[str, int] = field(default_factory=dict[str, int])
    rules: str | None = None  # unless a call says otherwise
    allow: tuple[str, ...] = ()  # and what calls may allow beside

    def __post_init__(self) -> None:
        self.programs = ProgramCache(self.source, self.defines, self.rules, self.allow)

    def __reduce__(self) -> tuple[Any, ...]:
        """What is sent is the program; what launches of it have found out stays here."""
        return Kernel, (self.source, dict(self.defines), self.rules, self.allow)

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def function(self) -> Any:
        """What the kernel is made of: a Python function, or a function of a text."""
        return self.source.function

    @property
    def coverage(self) -> dict[str, str]:
        """What Python has executed of launches that run compiled: instructions, or whole functions
        (@name), and why."""
        return self.programs.memory.interpreted

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
        asked = self.programs.asked(target, defines, rules, allow, place, sync, grid)
        return self.programs.shown(asked, self.source.bind(args, consts))

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
        from ptokit.ir.printer import print_module  # for whoever asks for text
        from ptokit.passes.levels import ConvertLevel
        from ptokit.passes.pipe_rules import refuse_deeper_copies  # for whoever asks for text

        asked = self.programs.asked(target, defines, rules, allow, place, sync, grid)
        arguments = self.source.bind(args, consts)
        if form in ("", "l3"):  # the finished program; the other forms are of the written one
            module = self.programs.shown(asked, arguments)
        else:
            written = self.programs.written(asked.target, arguments, asked.blocks)
            module = ConvertLevel(form).run(written, asked.target)
        refuse_deeper_copies(module)
        return print_module(module, origins=not self.programs.is_lowered)

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
        from ptokit.emit.cpp import emit_cpp

        asked = self.programs.asked(target, defines, rules, allow, place, sync, grid)
        module = self.programs.shown(asked, self.source.bind(args, consts))
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
        from ptokit.report.verdicts import Report

        names = list(DEVICES) if targets == "all" else [t for t in targets.split(",") if t]
        found: dict[str, tuple[Diagnostic, ...]] = {}
        for name in names:
            asked = self.programs.asked(name, defines, rules, allow, place, sync)
            try:
                found[name] = self.programs.ready(asked, self.source.bind(args, consts)).doubts
            except ProgramError as error:
                found[name] = error.diagnostics
        return Report(self.name, found)

    def fix(self, *args: Any, grid: int = 1, rules: str | None = None, **options: Any) -> Repair:
        """The kernel with the order that it lacks: `print(k.fix(x, y))` shows the change as a diff.

        It is run on copies of the arguments - of those it declares, when none are given - with the
        options of a launch. Every change is tried before it is kept; `Repair.remaining` is what
        nothing was found for.
        """
        from ptokit.repair.search import Trial, repair

        if not args:
            args, consts = self.source.sampled()
            options = {**consts, **options}

        def check(text: str) -> Trial:
            source = self.source.rewritten(text)
            kernel = self.with_source(source)
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
        jobs: Jobs = 1,
        known: Tuned | None = None,
        resume: bool | None = None,
        data: bool = False,
        **options: Any,
    ) -> Tuned:
        """Its constants tried in every combination, ranked by predicted time; `tuned.best` wins.

        A constant declares its values, `*, tile: Literal[64, 128] = 64`, or `over` does. The grid
        may be a function of them. What breaks a rule, does not fit or, unless `check` is False,
        races is discarded with the reason. `jobs` spreads the settings over processes or a cluster;
        `known` is an earlier result, of which nothing is tried again that depends on the same. With
        `resume` what was tried is kept until all is: True goes on where a call was stopped.
        """
        from ptokit.kernels.sending import Sent, timed
        from ptokit.timing.params import load as load_params
        from ptokit.timing.tuning import Tries, settings, sweep, trial

        values = {**self.choices, **(over or {})}
        if not values or not all(isinstance(v, Sequence) and v for v in values.values()):
            raise usage_error(
                "tune",
                f"{self.name} has no values to try",
                got=[("values", dict(values))],
                fix="*, tile: Literal[64, 128] = 64, or tune(..., over={'tile': (64, 128)})",
            )

        def blocks(setting: Mapping[str, Any]) -> int:
            return grid(**setting) if callable(grid) else grid

        def attempt(setting: Mapping[str, Any]) -> TunedTrial:
            how = {**options, **setting}
            return trial(
                setting, lambda: self.checked_us(blocks(setting), args, check, data=data, **how)
            )

        def sent(setting: Mapping[str, Any]) -> Sequence[Sent]:
            return [self[blocks(setting)].sent(tuple(args), {**options, **setting})]

        wanted = list(settings(values))
        sizes = [getattr(a, "shape", a) for a in args]
        target = self.programs.target(options.get("target"), options.get("defines"))
        params = load_params(target.name).digest
        of_what = (self.source.text, target.name, sorted(target.overrides.items()), params, sizes)
        how = (check, data, sorted(options.items()), None if callable(grid) else grid)
        digest = sha256(repr((of_what, how)).encode()).hexdigest()[:16]
        with progress(len(wanted), "settings", 2) as done:
            return sweep(
                self.name,
                digest,
                wanted,
                Tries(attempt, sent, Work(timed, (check, data))),
                executor=Executor.of(jobs),
                known=known,
                resume=resume,
                done=done or unheard,
            )

    def checked_us(
        self, grid: int | tuple[int, ...], args: Sequence[Any], check: bool, **options: Any
    ) -> float:
        """The time of a launch, which is run as well if it is to be checked: it raises or is right.

        Options are those of `time`.
        """
        timing = self.time(grid, args, **options)
        if check:
            options.pop("data", None)
            self[grid](*[a.copy() if hasattr(a, "copy") else a for a in args], **options)
        return timing.us

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
        from ptokit.report.placement import map_of

        chosen = self.programs.target(target, defines)
        module = self.lower(*args, target=chosen, rules=rules, allow=allow, **consts)
        return map_of(self.name, module, chosen)

    def with_source(self, source: Source) -> Kernel:
        """Another program under the same rules."""
        return Kernel(source, self.defines, self.rules, self.allow)

    def __repr__(self) -> str:
        return f"<kernel {self.source}>"

    def _repr_html_(self) -> str:
        """What every target says of it: for its last launch, or for what it declares."""
        from ptokit.pictures.notebook import card, toned

        try:
            args, consts = self.programs.memory.last or self.source.sampled()
        except PtoError:
            said = toned(f'{self.name}.check("all", ...) says what each target finds', "soft")
        else:
            with warnings.catch_warnings(action="ignore", category=PtoWarning):
                said = self.check("all", *args, **consts).table()
        return card(self.name, said, note=str(self.source))
