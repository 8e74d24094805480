"""The programs of docs/guide/rules.md print what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs/guide/rules.md"


def test_programs_print_what_they_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    source = "\n".join(blocks)
    path = tmp_path / "page.py"
    path.write_text(source, "utf-8")  # kernels are read from their file
    exec(compile(source, str(path), "exec"), {"__name__": "page"})
    said = [line.split("  # ")[1] for line in source.splitlines() if line.startswith("print(")]
    assert capsys.readouterr().out.splitlines() == said
    assert len(said) == 2


def test_the_settings_are_read(tmp_path: Path) -> None:
    from ptokit.frontend.policies import project_policy

    (block,) = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    (tmp_path / "ptokit.toml").write_text(block, "utf-8")
    kernel = tmp_path / "kernel.py"
    kernel.write_text("", "utf-8")
    policy = project_policy(str(kernel))
    assert policy.profile == "release"
    assert sorted(map(str, policy.allow)) == ["E8@softmax.py:41", "PA-0044"]
