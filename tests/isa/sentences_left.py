"""Sentences of the specification about broken rules that no rule of the table models, and why.

Reason -> instruction -> how the sentences begin.
"""

from __future__ import annotations

LEFT: dict[str, dict[str, tuple[str, ...]]] = {
    # ---- done, but not by a rule ----
    "found by the values when it runs: the body reports it and does what the sentence says": {
        "TGATHER": ("TGATHER.C.2:", "TGATHER.A3.14:", "TGATHER.A5.15:"),
        "TSCATTER": ("TSCATTER.C.6:",),
    },
    "nothing checks it, and what happens is what always happens": {
        "TGATHER": ("TGATHER.C.4:",),
        "TMRGSORT": ("TMRGSORT.C.11:",),
        "TSUBVIEW": ("resulting address should stay 32-byte aligned",),
    },
    "order and FIFOs are watched by the machine, which reports it as E2, E3, E10 or a hang": {
        "set_flag": ("SF-3:", "SF-4:"),
        "TFREE": ("Split must equal that of the TPOP",),
    },
    "the target points to A2/A3 and takes this part back": {
        "TLOAD": ("PA-0029:",),
    },
    "the other targets have no 64-bit elements": {
        "TTRI": ("A5 64-bit integer kernels",),
    },
    "said of the integer formats, which are a record of their own, or of the other axis": {
        "TQUANT_MX": ("DN interleave:",),
        "TQUANT": ("DN interleave:",),
    },
    # ---- an error, because what is stored is unknown ----
    "a push that pushes nothing leaves its consumer waiting": {
        "TPUSH": ("TConfig:",),
    },
    # ---- not modelled ----
    "convolution tiles are handed over by their dimensions, never by a part of their bytes": {
        "TTRANS": ("NCHW/GNCHW ->", "-> FRACTAL_Z:", "-> FRACTAL_Z_3D:"),
    },
    "steps that overwrite what later steps of the same instruction read": {
        "TGATHER": ("TGATHER.A3.6:", "TGATHER.A3.16:"),
        "TCONCAT": ("indexed: n0 >= 1",),
    },
}
