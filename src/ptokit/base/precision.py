"""Precision selectors of the transcendental instructions: one enumeration per instruction family.

They are distinct types on purpose: a bracket argument such as ``TDIV[DivAlgorithm.DEFAULT]`` is
matched to its template parameter by its type.
"""

from enum import IntEnum


class PowAlgorithm(IntEnum):
    DEFAULT = 0
    HIGH_PRECISION = 1


class DivAlgorithm(IntEnum):
    DEFAULT = 0
    HIGH_PRECISION = 1


class SqrtAlgorithm(IntEnum):
    DEFAULT = 0
    HIGH_PRECISION = 1


class RsqrtAlgorithm(IntEnum):
    DEFAULT = 0
    HIGH_PRECISION = 1


class RecipAlgorithm(IntEnum):
    DEFAULT = 0
    HIGH_PRECISION = 1


class ExpAlgorithm(IntEnum):
    DEFAULT = 0
    HIGH_PRECISION = 1


class LogAlgorithm(IntEnum):
    DEFAULT = 0
    HIGH_PRECISION = 1


class FmodAlgorithm(IntEnum):
    DEFAULT = 0
    HIGH_PRECISION = 1


class FmodSAlgorithm(IntEnum):
    DEFAULT = 0
    HIGH_PRECISION = 1


class RemAlgorithm(IntEnum):
    DEFAULT = 0
    HIGH_PRECISION = 1


class RemSAlgorithm(IntEnum):
    DEFAULT = 0
    HIGH_PRECISION = 1
