"""Kernels in Python: `@kernel` makes one of a function, which runs as it stands or through IR."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, cast, overload

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, PtoError, fail, usage_error
from ptokit.base.dtypes import ArrayType
from ptokit.base.entry import public
from ptokit.base.location import Location
from ptokit.frontend.advice import at_the_users_line
from ptokit.frontend.arguments import admitted, as_passed, is_parameter, leaves_of
from ptokit.frontend.declared import MISSING, declared, sample
from ptokit.frontend.drawn import Drawn
from ptokit.frontend.lowering.lower import lower as lower_function
from ptokit.frontend.outside import Outside
from ptokit.frontend.policies import policy_for
from ptokit.frontend.sections import guarded
from ptokit.frontend.session import MODES
from ptokit.frontend.trees import is_record, taken_apart
from ptokit.ir.core import Module
from ptokit.isa.targets import Target
from ptokit.isa.targets import target as find_target
from ptokit.isa.targets.defines import Defines, parse_defines
from ptokit.kernels import Asked, Kernel, Programs
from ptokit.machine.foreign import carries_array
from ptokit.machine.gm import as_array
from ptokit.passes.finish import finish
from ptokit.passes.steps import AS_WRITTEN, FINISHED

if TYPE_CHECKING:
    from ptokit.from_text import TextSource

# What runs the body: one stream that plays every part, one kind of core, or a whole cluster.
CORES = {"single": ("mix",), "cube": ("cube",), "vector": ("vector",), "mix": ("cube", "vector")}


class _Bound(dict[str, Any]):
    """The arguments of one call by parameter."""

    key: tuple[Any, ...] | None = None  # what it is specialised for, once that was asked


@dataclass(frozen=True, eq=False)
class PythonSource:
    """A Python function. Parameters behind `*` are constants: they specialise the kernel.

    Arrays are specialised by element type, shape and strides.
    """

    paths: ClassVar[tuple[str, ...]] = ("eager", "lowered")
    function: Callable[..., Any]
    mode: str
    core: str
    given_target: Target | None

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def file(self) -> str:
        return self.function.__code__.co_filename

    @property
    def target(self) -> Target:
        return self.given_target or find_target("a2a3")

    @cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    @cached_property
    def consts(self) -> frozenset[str]:
        """The parameters that specialise: the keyword-only ones."""
        keyword = inspect.Parameter.KEYWORD_ONLY
        return frozenset(n for n, p in self.signature.parameters.items() if p.kind is keyword)

    @cached_property
    def outside(self) -> Outside:
        """What the kernel reads beside its arguments; it is specialised for that as well."""
        return Outside(cast(FunctionType, self.function))

    @cached_property
    def on_cluster(self) -> Callable[..., Any]:
        """The function as each core of a cluster runs it: without the sections of the others."""
        return guarded(cast(FunctionType, self.function))

    def bind(self, args: tuple[Any, ...], consts: dict[str, Any]) -> Mapping[str, Any]:
        try:
            bound = self.signature.bind(*args, **consts)
        except TypeError as error:
            raise usage_error(
                "arguments", f"{self.name}: {error}", fix=f"{self.name}{self.signature}"
            ) from None
        bound.apply_defaults()
        return _Bound((name, admitted(name, value)) for name, value in bound.arguments.items())

    def cache_key(self, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        if isinstance(arguments, _Bound) and arguments.key is not None:
            return arguments.key
        key = {n: v if n in self.consts else _specialised(v) for n, v in arguments.items()}
        if not _is_fixed(made := tuple(key.values())):
            raise _changeable(key)
        found = (*made, self.outside.state())
        if isinstance(arguments, _Bound):
            arguments.key = found
        return found

    def state(self) -> Hashable:
        return self.outside.state()

    def fits(self, target: Target) -> None:
        """Rules of the target are asked about the program."""

    def written(self, target: Target, arguments: Mapping[str, Any], blocks: int) -> Module:
        function = cast(FunctionType, self.function)
        return lower_function(function, dict(arguments), target, self.mode, self.core)

    def finished(
        self, written: Module, asked: Asked, told: list[Diagnostic] | None = None
    ) -> Module:
        steps = asked.steps.over(FINISHED if self.mode == "auto" else AS_WRITTEN)
        return finish(written, asked.target, steps, asked.policy, self.core != "mix", told)

    def programs(self, module: Module | None, arguments: Mapping[str, Any]) -> Programs:
        cores = CORES[self.core]
        given = {n: v for n, v in arguments.items() if n not in self.consts}
        leaves = (leaf for n, v in given.items() for _, leaf in leaves_of(n, v))
        parameters = tuple(leaf for leaf in leaves if is_parameter(leaf))
        if module is not None:  # auto mode has been ordered: its flags are checked like any others
            return Programs(cores, "manual", function=module.functions[0], args=parameters)
        passed = tuple(map(as_passed, given.values()))
        named = {n: v for n, v in arguments.items() if n in self.consts}
        function = self.on_cluster if self.core == "mix" else self.function

        def body() -> Any:
            try:
                return function(*passed, **named)
            except (NameError, AttributeError) as error:
                unknown = at_the_users_line(error)
                if unknown is None:
                    raise
                raise unknown from None

        return Programs(cores, self.mode, body=body, args=parameters)

    @property
    def text(self) -> str:
        return "".join(linecache.getlines(self.file))

    def sampled(self) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        parameters = declared(self.function)
        missing = [name for name, kind in parameters.items() if kind is MISSING]
        if missing:
            code = cast(FunctionType, self.function).__code__
            raise fail(
                "check.arguments",
                f"{self.name} does not say what it is called with",
                got=[("parameters without type and default", ", ".join(missing))],
                fix=f"declare arrays by type and shape, {missing[0]}: float32[16, 64], and numbers "
                f"by a default, {missing[-1]}=1; or call the kernel, or list calls in CASES",
                site=Location(code.co_filename, code.co_firstlineno),
                kind=PtoError,
            )
        rng = Drawn()
        values = {
            name: sample(kind, rng) if isinstance(kind, ArrayType) else kind
            for name, kind in parameters.items()
        }
        consts = {name: values.pop(name) for name in self.consts}
        return tuple(values.values()), consts

    def recorded(self, module: Module) -> PythonSource:
        return self  # anybody can hear what it issues

    def sent(
        self, finished: Callable[[], Module], arguments: Mapping[str, Any]
    ) -> tuple[TextSource, tuple[Any, ...]]:
        module = finished()
        from ptokit.from_text import written_source  # few programs go to other processes

        return written_source(module), self.programs(module, arguments).args

    def rewritten(self, text: str) -> PythonSource:
        from ptokit.frontend.reread import reread  # few functions are changed

        return replace(self, function=reread(cast(FunctionType, self.function), text))

    def __str__(self) -> str:
        return f"{self.name}{self.signature}, {self.mode} mode"


def _specialised(value: Any) -> Any:
    """What of an argument the lowered kernel depends on."""
    tree = taken_apart(value, is_record)
    if tree.shape != "leaf":
        return tree.shape, tuple(_specialised(leaf) for leaf in tree.leaves)
    if isinstance(value, bool | int | float | np.generic):
        return type(value)
    if carries_array(value):
        array = as_array(value)
        return array.dtype, array.shape, array.strides
    return value


def _is_fixed(value: Any) -> bool:
    """Whether a value cannot change, and so can be remembered."""
    try:
        hash(value)
    except (TypeError, ValueError):  # the second of memory that may be written
        return False
    return True


def _changeable(arguments: Mapping[str, Any]) -> PtoError:
    """The error of an argument that a kernel is specialised for although it may change."""
    name, value = next((n, v) for n, v in arguments.items() if not _is_fixed(v))
    fix = "pass arrays by position; a constant is a number, a string, a type or a tuple"
    with suppress(TypeError):
        fix = f"np.asarray({name}) is an array over its {memoryview(value).nbytes} bytes"
    return fail(
        "argument-type",
        f"{name} is fixed when the kernel is lowered, but a {type(value).__name__} may change",
        got=[(name, value)],
        fix=fix,
    )


@overload
def kernel(function: FunctionType, /) -> Kernel: ...
@overload
def kernel(
    *,
    mode: str = "manual",
    target: str | Target | None = None,
    core: str = "single",
    defines: Defines | None = None,
    rules: str | None = None,
    allow: Iterable[str] = (),
) -> Callable[[FunctionType], Kernel]: ...
@public
def kernel(
    function: FunctionType | None = None,
    /,
    *,
    mode: str = "manual",
    target: str | Target | None = None,
    core: str = "single",
    defines: Defines | None = None,
    rules: str | None = None,
    allow: Iterable[str] = (),
) -> Any:
    """Make a kernel of a Python function: `@kernel`, or `@kernel(mode="auto", target="a5")`.

    `defines` overrides sizes and alignments of the target's memories under their macro names, as
    `-D` does for a compiler: `@kernel(defines={"PTO_UBUF_SIZE_BYTES": 262144})`. `rules` and
    `allow` hold for every launch that does not say otherwise.
    """
    if mode not in MODES or core not in CORES:
        cores = ", ".join(CORES)
        raise usage_error("kernel", f"mode is one of {MODES}, core one of {cores}")
    overrides = parse_defines(defines)
    chosen = None if target is None else find_target(target)
    (chosen or find_target("a2a3")).override(overrides)  # a wrong one is an error right here

    allowed = (allow,) if isinstance(allow, str) else tuple(allow)

    def decorate(body: FunctionType) -> Kernel:
        policy_for(body.__code__.co_filename, rules, allowed)  # so is a wrong id
        return Kernel(PythonSource(body, mode, core, chosen), overrides, rules, allowed)

    return decorate if function is None else decorate(function)
