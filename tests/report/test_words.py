"""Pages in Chinese: one source, a catalogue, nothing left over on the pages that must be whole."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from ptokit.isa import INSTRUCTIONS
from ptokit.report import pages
from ptokit.report.pages import index, markdown, translated
from ptokit.report.words import Words, phrases
from tests.command import command

FIVE = ("TASSIGN", "TLOAD", "TALLOC", "TEXPANDS", "TTRANS")
ENGLISH = re.compile(r"(?<![\w-])(?:the|of|is|are|and|with|or|to|has|its|by)(?![\w-])")
FENCED = re.compile(r"^```.*?^```$|`[^`\n]*`", re.M | re.S)
# What the source pages say beside rules: terms, formulas, the rows of a table.
TERMS = {
    "TASSIGN": """片上地址 手动放置 内存空间 容量 对齐 自动模式 空操作 指针 编译时地址 运行时地址
        PTO_UBUF_SIZE_BYTES""",
    "TLOAD": """有效区域 布局 步长 形状 ND->ND DN->DN NZ->NZ ND->NZ DN->ZN SFractalSize PadVal
        GetValidRow staticShape[0..2] staticShape[3] staticShape[4] MX_A_ZZ MX_B_NN MX_A_ND MX_A_DN
        MX_B_ND MX_B_DN scaleA scaleB SLayout::NoneBox SLayout::RowMajor""",
    "TALLOC": """生产者 消费者 槽位 视图 空闲空间 SyncPeriod SlotNum SlotSize TILE_NO_SPLIT
        TILE_UP_DOWN TILE_LEFT_RIGHT 行半区 列半区 稀疏 数据就绪 DIR_C2V DIR_V2C getAllocateStatus
        shouldWaitFree""",
    "TEXPANDS": """标量 广播 有效区域 行主序 ConvTile NC1HWC0 FRACTAL_Z NDC1HWC0 FRACTAL_Z_3D
        32767""",
    "TTRANS": """转置域 临时 有效区域 RowStride ElemPerBlock 高效转置 NCHW NC1HWC0 GNCHW GNC1HWC0
        NCDHW FRACTAL_Z_3D C0 滤波器""",
}
FORMULAS = {
    "TASSIGN": ["Addr + tile_size <= capacity", "capacity > 0", "tile_size <= capacity"],
    "TLOAD": [
        "dst[i, j] = src[r0 + i, c0 + j]",
        "GetValidCol() % 2 == 0",
        "GetValidRow() % 2 == 0",
    ],
    "TALLOC": ["(SlotNum <= 2) ? SlotNum : SlotNum / 2", "SlotNum >= 1"],
    "TEXPANDS": ["dst[i, j] = scalar", "Rows * Cols * sizeof / 32"],
    "TTRANS": [
        "dst[i, j] = src[j, i]",
        "W * ceil(H / R) * R",
        "H * W * ceil(C0 / R) * R",
        "C0 * ceil(H * W / R) * R",
        "P + max(P, H * W * ceil(C0 / R) * R)",
        "P = N * C1 * C0 * H * W",
        "srcStride / ElemPerBlock <= 255",
        "C1 == (C + C0 - 1) / C0",
    ],
}
ROWS = [
    "| Vec | UB | 192 KB | 256 KB | 128 KB | 128 KB | 32 B |",
    "| Mat | L1 | 512 KB | 512 KB | 512 KB | 1024 KB | 32 B |",
    "| Left | L0A | 64 KB | 64 KB | 32 KB | 64 KB | 32 B |",
    "| Right | L0B | 64 KB | 64 KB | 32 KB | 64 KB | 32 B |",
    "| Acc | L0C | 128 KB | 256 KB | 64 KB | 128 KB | 32 B |",
    "| Bias | Bias | 1 KB | 4 KB | 1 KB | 1 KB | 32 B |",
    "| Scaling | FBuffer | 2 KB | 4 KB | 7 KB | 6 KB | 32 B |",
    "| ScaleLeft | L0A | N/A | 4 KB | N/A | N/A | 32 B |",
    "| ScaleRight | L0B | N/A | 4 KB | N/A | N/A | 32 B |",
]


def test_no_phrase_of_any_page_is_left_untranslated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that says something new in English has to say it in `zh.po`, too."""
    monkeypatch.setattr(pages, "_examples", lambda insn, say: [])  # programs are programs
    say = Words("zh")
    every = {name: translated(insn, say) for name, insn in INSTRUCTIONS.items()}
    assert not say.missing
    english = {name: ENGLISH.findall(FENCED.sub("", page)) for name, page in every.items()}
    assert not {name: found for name, found in english.items() if found}


@pytest.mark.parametrize("name", FIVE)
def test_what_the_source_page_says_is_there(name: str) -> None:
    page = markdown(INSTRUCTIONS[name], "zh")
    missing = [term for term in TERMS[name].split() if term not in page]
    missing += [formula for formula in FORMULAS[name] if formula not in page]
    assert not missing


def test_the_memory_spaces_are_a_table() -> None:
    page = markdown(INSTRUCTIONS["TASSIGN"], "zh")
    assert [row for row in ROWS if row not in page] == []


@pytest.mark.parametrize("name", FIVE)
def test_codes_and_programs_are_those_of_the_english_page(name: str) -> None:
    both = [markdown(INSTRUCTIONS[name], lang) for lang in ("en", "zh")]
    blocks, ids = (
        [re.findall(pattern, page, re.M | re.S) for page in both]
        for pattern in (r"^```\w.*?^```$", r"^\| ([\w.-]+) \|")
    )
    assert blocks[0] == blocks[1]
    assert [i for i in ids[0] if "-" in i] == [i for i in ids[1] if "-" in i]


def test_every_instruction_has_a_chinese_summary() -> None:
    say = Words("zh")
    for insn in INSTRUCTIONS.values():
        say(insn.doc.splitlines()[0])
        say(insn.cost.name)
    assert not say.missing
    assert "两个 Tile 相加。" in index(list(INSTRUCTIONS.values()), "zh")


def test_the_catalogue_holds_nothing_that_no_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_examples", lambda insn, say: [])  # they are the same everywhere
    asked: set[str] = set()
    found = Words._found

    def noting(self: Words, text: str) -> str | None:
        asked.add(" ".join(text.split()))
        return found(self, text)

    monkeypatch.setattr(Words, "_found", noting)
    every = list(INSTRUCTIONS.values())
    index(every, "zh")
    for insn in every:
        translated(insn, Words("zh"))
    asked |= {"Example", "A mistake", "Sentences without a translation: {a}"}
    file = resources.files("ptokit.report").joinpath("zh.po").read_text("utf-8")
    idle = [
        source
        for source, _ in phrases(file)
        if source not in asked
        and not any(
            map(re.compile(re.sub(r"\\\{[a-z]\\\}", ".+", re.escape(source))).fullmatch, asked)
        )
    ]
    assert not idle


def test_what_has_no_translation_is_counted() -> None:
    say = Words("zh")
    assert say("nobody has translated this") == "nobody has translated this"
    assert [*say.missing] == ["nobody has translated this"]


def test_places_hold_names_and_phrases() -> None:
    say = Words("zh")
    assert say("dst, src0 and src1 are Vec tiles") == "dst、src0 和 src1 是 Vec Tile"
    assert say("ND to Nz: 1 <= S3 <= 16384") == "ND->NZ：1 <= S3 <= 16384"
    assert not say.missing


def test_the_command_line_speaks_chinese() -> None:
    done = command("isa", "TLOAD", "--lang", "zh", "--raw")
    assert done.stdout.startswith("# TLOAD\n\n从 GlobalTensor")
    assert command("isa", "TLOAD", "--lang", "fr").returncode == 2
