"""Precision selectors of the transcendental instructions: one enumeration per instruction family.

They are distinct types on purpose: a bracket argument such as ``TDIV[DivAlgorithm.DEFAULT]`` is
matched to its template parameter by its type.
"""

from enum import IntEnum

PowAlgorithm = IntEnum("PowAlgorithm", "DEFAULT HIGH_PRECISION", start=0)
DivAlgorithm = IntEnum("DivAlgorithm", "DEFAULT HIGH_PRECISION", start=0)
SqrtAlgorithm = IntEnum("SqrtAlgorithm", "DEFAULT HIGH_PRECISION", start=0)
RsqrtAlgorithm = IntEnum("RsqrtAlgorithm", "DEFAULT HIGH_PRECISION", start=0)
RecipAlgorithm = IntEnum("RecipAlgorithm", "DEFAULT HIGH_PRECISION", start=0)
ExpAlgorithm = IntEnum("ExpAlgorithm", "DEFAULT HIGH_PRECISION", start=0)
LogAlgorithm = IntEnum("LogAlgorithm", "DEFAULT HIGH_PRECISION", start=0)
FmodAlgorithm = IntEnum("FmodAlgorithm", "DEFAULT HIGH_PRECISION", start=0)
FmodSAlgorithm = IntEnum("FmodSAlgorithm", "DEFAULT HIGH_PRECISION", start=0)
RemAlgorithm = IntEnum("RemAlgorithm", "DEFAULT HIGH_PRECISION", start=0)
RemSAlgorithm = IntEnum("RemSAlgorithm", "DEFAULT HIGH_PRECISION", start=0)
