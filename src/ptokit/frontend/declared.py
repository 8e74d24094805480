"""The arguments that a kernel declares in its signature, for whoever checks it without a call.

    @kernel
    def scale(x: float32[256, 64], y: float32[256, 64], n: int = 4, *, factor=2.0): ...

An array is declared by its element type and shape, anything else by its default value; a constant
may say which values it can have, `*, tile: Literal[64, 128] = 64`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args, get_origin

import numpy as np

from ptokit.base.dtypes import ArrayType
from ptokit.base.layout import Array
from ptokit.frontend.drawn import Drawn

MISSING = inspect.Parameter.empty
_INTEGERS = 8  # drawn below this: small enough for a count, an index or an exponent


def declared(function: Callable[..., Any]) -> Mapping[str, Any]:
    """What each parameter declares: an ArrayType, a default value, or MISSING."""
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            kind = _array_type(parameter.annotation, function)
            found[name] = parameter.default if kind is None else kind
    return found


def choices(function: Callable[..., Any]) -> Mapping[str, tuple[Any, ...]]:
    """The values of the constants that declare some: `*, tile: Literal[64, 128] = 64`."""
    found: dict[str, tuple[Any, ...]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            annotation = _evaluated(parameter.annotation, function)
            if get_origin(annotation) is Literal:
                found[name] = get_args(annotation)
    return found


def sample(kind: ArrayType, rng: np.random.Generator | Drawn) -> Array:
    """An array of a declared type: normally distributed, or small integers."""
    element = kind.element
    if element.is_float and not element.stores_codes:
        return rng.standard_normal(kind.shape).astype(element.np)
    return rng.integers(0, _INTEGERS, kind.shape).astype(element.np)


def _array_type(annotation: Any, function: Callable[..., Any]) -> ArrayType | None:
    annotation = _evaluated(annotation, function)
    kinds = (annotation, *get_args(annotation))  # alone, or inside Annotated[...]
    return next((each for each in kinds if isinstance(each, ArrayType)), None)


def _evaluated(annotation: Any, function: Callable[..., Any]) -> Any:
    if isinstance(annotation, str):  # under `from __future__ import annotations`
        try:
            return eval(annotation, getattr(function, "__globals__", {}))
        except Exception:  # a name for type checkers only: it declares nothing
            return None
    return annotation
