"""What is said about the package where others read it: versions, Pythons, the log of changes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
HEADINGS = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
PYTHONS = ("3.11", "3.12", "3.13")


def test_every_python_is_classified_and_tested() -> None:
    named = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c]
    assert tuple(named) == PYTHONS
    text = (ROOT / ".github/workflows/tests.yml").read_text("utf-8")
    matrices = re.findall(r"python: \[(.*?)\]", text)
    assert len(matrices) == 2  # the checkout, and the wheel
    assert {tuple(re.findall(r"[\d.]+", each)) for each in matrices} == {PYTHONS}


def test_the_log_has_versions_with_dates_the_newest_first() -> None:
    first, *released = HEADINGS
    assert first == "[Unreleased]"
    versions: list[Version] = []
    for heading in released:
        found = re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d", heading)
        assert found, heading
        versions.append(Version(found.group(1)))
    assert versions == sorted(set(versions), reverse=True)
    assert str(versions[0]) == PROJECT["version"]


def test_sections_of_the_log_are_those_of_the_format() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        sections = re.findall(r"^### (.*)$", part, re.M)
        assert {*sections} <= kinds
        assert len({*sections}) == len(sections)


@pytest.mark.parametrize("extra", ["", *PROJECT["optional-dependencies"]])
def test_locked_versions_are_in_the_ranges_that_are_asked_for(extra: str) -> None:
    lines = (ROOT / "dev.lock").read_text("utf-8").splitlines()
    pins = {
        re.sub(r"[-_.]+", "-", name).lower(): version
        for name, _, version in (each.partition("==") for each in lines if not each.startswith("#"))
    }
    asked = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    for each in map(Requirement, asked):
        pin = pins.get(re.sub(r"[-_.]+", "-", each.name).lower())
        assert pin is not None or extra not in ("", "dev"), each.name  # others are optional there
        assert pin is None or each.specifier.contains(pin), f"{each} and {pin}"
