"""What the random kernels are made of, and that the wider ones meet every door as well."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.fuzz.programs import WIDER, random_program
from tests.fuzz.test_doors import CHUNK, agree

# Out of 400 kernels, at least so many use one of these.
WANTED = {
    "cube": ("TMATMUL|TMATMUL_ACC", 150),
    "half products": ("TMATMUL.acc, left16", 30),
    "reductions along rows": ("TROWSUM|TROWMIN|TROWMAX", 60),
    "reductions along columns": ("TCOLSUM|TCOLMIN|TCOLMAX", 60),
    "conversions to integers": (r"TCVT.i\d", 60),
    "conversions to halves": (r"TCVT.h\d", 60),
    "FIFOs to the vector cores": ("DIR_C2V", 60),
    "FIFOs to the cube core": ("DIR_V2C", 30),
    "manual mode": ("TASSIGN", 60),
    "loops": ("for ", 150),
}


def test_random_kernels_use_every_kind_of_instruction() -> None:
    found: Counter[str] = Counter()
    for seed in range(WIDER, WIDER + 400):
        source = random_program(seed).source.partition("@kernel")[2]
        found.update(what for what, (pattern, _) in WANTED.items() if re.search(pattern, source))
    assert not {what: found[what] for what, (_, least) in WANTED.items() if found[what] < least}


@pytest.mark.parametrize("first", range(WIDER, WIDER + 50, CHUNK))
def test_doors_agree_about_wider_kernels(first: int, tmp_path: Path) -> None:
    agree(map(random_program, range(first, first + CHUNK)), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(WIDER + 50, 2 * WIDER, 50))
def test_doors_agree_about_wider_kernels_for_long(first: int, tmp_path: Path) -> None:
    agree(map(random_program, range(first, first + 50)), tmp_path)
