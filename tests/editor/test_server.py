"""`ptokit lsp` as an editor talks to it: over standard input and output."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls")

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

RACY = """\
func.func @racy(%x: memref<16x64xf32, #pto.address_space<gm>>) {
  %a = arith.constant 0 : i64
  %t = pto.alloc_tile addr = %a : !pto.tile_buf<vec, 16x64xf32>
  pto.tload ins(%x : memref<16x64xf32, #pto.address_space<gm>>) outs(%t : !pto.tile_buf<vec, 16x64xf32>)
  pto.tadd ins(%t, %t : !pto.tile_buf<vec, 16x64xf32>, !pto.tile_buf<vec, 16x64xf32>) outs(%t : !pto.tile_buf<vec, 16x64xf32>)
  pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
  pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
  pto.tstore ins(%t : !pto.tile_buf<vec, 16x64xf32>) outs(%x : memref<16x64xf32, #pto.address_space<gm>>)
  return
}
"""  # noqa: E501
PYTHON = """\
from ptokit import *

T = Tile[TileType.Vec, float32, 16, 64]


@kernel
def racy(x: float32[16, 64], y: float32[16, 64]):
    t = T()
    TASSIGN(t, 0)
    TLOAD(t, GlobalTensor(x))
    TSTORE(GlobalTensor(y), t)
"""

Talk = Callable[["Editor"], Coroutine[Any, Any, None]]


class Editor:
    """An editor with one file."""

    def __init__(self, client: LanguageClient, path: Path) -> None:
        self.client = client
        self.path = path
        self.uri = path.as_uri()
        self.document = lsp.TextDocumentIdentifier(self.uri)
        self.told: asyncio.Queue[list[lsp.Diagnostic]] = asyncio.Queue()
        self.edits: asyncio.Queue[str] = asyncio.Queue()

    async def open(self) -> list[lsp.Diagnostic]:
        item = lsp.TextDocumentItem(self.uri, "pto", 1, self.path.read_text("utf-8"))
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return await asyncio.wait_for(self.told.get(), 20)


def talk(path: Path, body: Talk, options: Any = None) -> None:
    async def go() -> None:
        client = LanguageClient("test", "1")
        editor = Editor(client, path)

        @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(asked: lsp.PublishDiagnosticsParams) -> None:
            editor.told.put_nowait(list(asked.diagnostics))

        @client.feature(lsp.WORKSPACE_APPLY_EDIT)
        def edited(asked: lsp.ApplyWorkspaceEditParams) -> lsp.ApplyWorkspaceEditResult:
            (edit,) = asked.edit.changes[editor.uri]  # type: ignore[index]
            editor.edits.put_nowait(edit.new_text)  # type: ignore[union-attr]
            return lsp.ApplyWorkspaceEditResult(True)

        @client.feature(lsp.WINDOW_SHOW_MESSAGE)
        def shown(asked: lsp.ShowMessageParams) -> None: ...

        await client.start_io(sys.executable, "-m", "ptokit", "lsp")
        try:
            able = lsp.ClientCapabilities()
            asked = lsp.InitializeParams(able, initialization_options=options)
            await client.initialize_async(asked)
            client.initialized(lsp.InitializedParams())
            await body(editor)
        finally:
            await client.shutdown_async(None)
            client.exit(None)
            await client.stop()

    asyncio.run(go())


def file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_a_text(tmp_path: Path) -> None:
    """What is wrong, the page of a word, where a value comes from, offers, form, and a repair."""

    async def body(editor: Editor) -> None:
        found = await editor.open()
        assert [(d.code, d.range.start.line) for d in found] == [("E6", 4)]
        assert "fix: " in found[0].message
        (other,) = found[0].related_information or []
        assert (other.location.uri, other.location.range.start.line) == (editor.uri, 3)
        assert "the other access" in other.message
        place = lsp.Position(4, 7)
        hover = await editor.client.text_document_hover_async(
            lsp.HoverParams(editor.document, place)
        )
        assert hover is not None
        assert hover.contents.value.startswith("# TADD")  # type: ignore[union-attr]
        made = await editor.client.text_document_definition_async(
            lsp.DefinitionParams(editor.document, lsp.Position(4, 16))
        )
        assert made.range.start == lsp.Position(2, 2)  # type: ignore[union-attr]
        offers = await editor.client.text_document_completion_async(
            lsp.CompletionParams(editor.document, lsp.Position(4, 9))
        )
        assert "pto.tadds" in [each.label for each in offers.items]  # type: ignore[union-attr]
        edits = await editor.client.text_document_formatting_async(
            lsp.DocumentFormattingParams(editor.document, lsp.FormattingOptions(2, True))
        )
        assert edits is not None
        assert "func.func @racy" in edits[0].new_text
        context = lsp.CodeActionContext(found)
        actions = await editor.client.text_document_code_action_async(
            lsp.CodeActionParams(editor.document, found[0].range, context)
        )
        assert actions is not None
        assert "ptokit.repair" in str(actions[0].command)
        asked = lsp.ExecuteCommandParams("ptokit.repair", [editor.uri])
        await editor.client.workspace_execute_command_async(asked)
        after = await asyncio.wait_for(editor.edits.get(), 20)
        changed = lsp.TextDocumentContentChangeWholeDocument(after)
        version = lsp.VersionedTextDocumentIdentifier(2, editor.uri)
        editor.client.text_document_did_change(lsp.DidChangeTextDocumentParams(version, [changed]))
        assert await asyncio.wait_for(editor.told.get(), 20) == []
        editor.client.text_document_did_save(lsp.DidSaveTextDocumentParams(editor.document))
        assert await asyncio.wait_for(editor.told.get(), 20) == []

    talk(file(tmp_path, "k.pto", RACY), body)


def test_kernels_in_python(tmp_path: Path) -> None:
    async def body(editor: Editor) -> None:
        found = await editor.open()
        assert [(d.code, d.range.start.line) for d in found] == [("E6", 10)]
        place = lsp.Position(9, 6)
        hover = await editor.client.text_document_hover_async(
            lsp.HoverParams(editor.document, place)
        )
        assert hover is not None
        assert hover.contents.value.startswith("# TLOAD")  # type: ignore[union-attr]

    talk(file(tmp_path, "k.py", PYTHON), body)


HELPER = """\
from ptokit import *


def moved(t, x, y):
    TLOAD(t, GlobalTensor(x))
    TSTORE(GlobalTensor(y), t)
"""
CALLER = """\
from ptokit import *
from helper import moved

T = Tile[TileType.Vec, float32, 16, 64]


@kernel
def racy(x: float32[16, 64], y: float32[16, 64]):
    t = T()
    TASSIGN(t, 0)
    moved(t, x, y)
"""


def test_what_is_wrong_in_another_file_is_not_shown_as_a_line_of_this_one(tmp_path: Path) -> None:
    helper = file(tmp_path, "helper.py", HELPER)

    async def body(editor: Editor) -> None:
        (found,) = await editor.open()
        assert found.code == "E6"
        assert found.message.startswith("helper.py:6: ")
        assert found.range.start.line in (0, 10)  # where it is called, if that is known
        here, *_ = found.related_information or []
        assert (here.location.uri, here.location.range.start.line) == (helper.as_uri(), 5)

    talk(file(tmp_path, "k.py", CALLER), body)


WARNED = """\
from ptokit import *

T = Tile[TileType.Vec, float32, 16, 64]


@kernel(mode="auto")
def narrow(x: float32[16, 64], y: float32[16, 128]):
    t = T()
    TLOAD(t, GlobalTensor(x))
    TSTORE(GlobalTensor(y), t)  # the left half
"""


def test_a_warning_can_be_allowed_on_its_line(tmp_path: Path) -> None:
    path = file(tmp_path, "k.py", WARNED)

    async def body(editor: Editor) -> None:
        found = await editor.open()
        assert {d.range.start.line for d in found} == {9}
        start = WARNED.splitlines()[9].index("TSTORE")
        assert found[0].range.start.character == start
        assert found[0].range.end.character == start + len("TSTORE(GlobalTensor(y), t)")
        lines = WARNED.splitlines()
        for one in found:
            actions = await editor.client.text_document_code_action_async(
                lsp.CodeActionParams(editor.document, one.range, lsp.CodeActionContext([one]))
            )
            (action,) = actions or []
            assert action.title == f"Allow {one.code} on this line"
        (edit,) = action.edit.changes[editor.uri]  # type: ignore[union-attr, index]
        assert edit.range.start == edit.range.end
        at = edit.range.start
        row = lines[at.line]
        lines[at.line] = row[: at.character] + edit.new_text + row[at.character :]
        assert lines[at.line].endswith(f"# the left half  # ptokit: allow {one.code}")
        path.write_text("\n".join(lines) + "\n")
        editor.client.text_document_did_save(lsp.DidSaveTextDocumentParams(editor.document))
        left = await asyncio.wait_for(editor.told.get(), 20)
        assert len(left) == len(found) - 1
        closed = lsp.DidCloseTextDocumentParams(editor.document)
        editor.client.text_document_did_close(closed)
        assert await asyncio.wait_for(editor.told.get(), 20) == []

    talk(path, body)


def test_python_is_not_run_where_that_is_turned_off(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    text = PYTHON + f"\nopen({str(mark)!r}, 'w').close()\n"

    async def body(editor: Editor) -> None:
        item = lsp.TextDocumentItem(editor.uri, "python", 1, text)
        editor.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(editor.told.get(), 3)

    talk(file(tmp_path, "k.py", text), body, {"python": False})
    assert not mark.exists()


def test_columns_are_those_of_the_editor(tmp_path: Path) -> None:
    """Editors count in UTF-16 where nothing else was agreed on: some characters are two."""

    async def body(editor: Editor) -> None:
        text = editor.path.read_text("utf-8")
        item = lsp.TextDocumentItem(editor.uri, "python", 1, text)
        editor.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        line = text.splitlines()[1]
        start = line.index("TLOAD") + 2  # two characters in front of it have two units each
        hover = await editor.client.text_document_hover_async(
            lsp.HoverParams(editor.document, lsp.Position(1, start + 5))
        )
        assert hover is not None
        assert hover.range == lsp.Range(lsp.Position(1, start), lsp.Position(1, start + 5))

    text = 'from ptokit import *\nname = "\N{GRINNING FACE}\N{GRINNING FACE}"; TLOAD\n'
    talk(file(tmp_path, "wide.py", text), body, {"python": False})


def test_the_server_ends_without_a_word(tmp_path: Path) -> None:
    asked = [
        {
            "id": 1,
            "method": "initialize",
            "params": {"processId": None, "rootUri": None, "capabilities": {}},
        },
        {"id": 2, "method": "shutdown"},
        {"method": "exit"},
    ]
    said = [json.dumps({"jsonrpc": "2.0", **each}).encode() for each in asked]
    given = b"".join(b"Content-Length: %d\r\n\r\n" % len(each) + each for each in said)
    command = [sys.executable, "-m", "ptokit", "lsp"]
    done = subprocess.run(command, input=given, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
