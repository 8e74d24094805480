"""The server of the language server protocol: one process for an editor, over standard input.

Texts are checked as they are typed, and run on arrays of ones when they are saved, with a budget.
A file of Python is checked when it is opened and saved, by a process of its own that imports it;
the client turns that off with the initialisation option `{"python": false}`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.workspace import PositionCodec

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, PtoError, UsageError
from ptokit.base.location import Location
from ptokit.editor import texts
from ptokit.from_text import formatted, loads
from ptokit.machine.codes import CODES

SECONDS = 5.0  # that a text may run when it is saved
REPAIR = "ptokit.repair"
# Not every file of Python has kernels, and not every kernel says what it is called with.
_NOT_WRONG = ("check.no-kernel", "check.arguments")
_SEVERITY = {"error": lsp.DiagnosticSeverity.Error, "warning": lsp.DiagnosticSeverity.Warning}


def server() -> LanguageServer:
    """A server with all that it answers to."""
    made = LanguageServer("ptokit", version("ptokit"))
    checks_python = [True]

    @made.feature(lsp.INITIALIZE)
    def initialize(asked: lsp.InitializeParams) -> None:
        options: Any = asked.initialization_options
        if isinstance(options, dict):
            checks_python[0] = options.get("python", True) is not False

    async def look(uri: str, is_saved: bool) -> None:
        document = made.workspace.get_text_document(uri)
        if _is_python(uri):
            if not is_saved or not checks_python[0]:
                return
            found = await _check_file(Path(document.path))
        else:
            run = partial(_judged, document.path, document.source, is_saved)
            found = await asyncio.to_thread(run)
        codec = made.workspace.position_codec
        shown = [_shown(each, document.source, codec) for each in found]
        asked = lsp.PublishDiagnosticsParams(uri, shown, document.version)
        made.text_document_publish_diagnostics(asked)

    @made.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def opened(asked: lsp.DidOpenTextDocumentParams) -> None:
        await look(asked.text_document.uri, True)

    @made.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(asked: lsp.DidChangeTextDocumentParams) -> None:
        await look(asked.text_document.uri, False)

    @made.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def saved(asked: lsp.DidSaveTextDocumentParams) -> None:
        await look(asked.text_document.uri, True)

    @made.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(asked: lsp.HoverParams) -> lsp.Hover | None:
        place = _Place.of(made, asked)
        found = texts.word_at(place.source, place.line, place.column)
        page = texts.page_of(found[0]) if found else ""
        if found is None or not page:
            return None
        content = lsp.MarkupContent(lsp.MarkupKind.Markdown, page)
        return lsp.Hover(content, place.range(found[1]))

    completion = lsp.CompletionOptions(trigger_characters=[".", "%", "@"])

    @made.feature(lsp.TEXT_DOCUMENT_COMPLETION, completion)
    def complete(asked: lsp.CompletionParams) -> lsp.CompletionList:
        place = _Place.of(made, asked)
        found = texts.word_at(place.source, place.line, place.column)
        if _is_python(asked.text_document.uri):
            offers = texts.names_of_python(found[0]) if found else []
        else:
            offers = texts.offers(place.source, place.line, place.column)
        start = found[1].start if found else place.column
        begun = place.range(texts.Span(place.line, start, place.column))
        return lsp.CompletionList(False, [_item(each, begun) for each in offers])

    @made.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def define(asked: lsp.DefinitionParams) -> lsp.Location | None:
        place = _Place.of(made, asked)
        span = texts.definition(place.source, place.line, place.column)
        return None if span is None else lsp.Location(asked.text_document.uri, place.range(span))

    @made.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def form(asked: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        document = made.workspace.get_text_document(asked.text_document.uri)
        if _is_python(document.uri):
            return None
        try:
            after = formatted(document.source, document.path)
        except PtoError:
            return None  # what is wrong is shown already
        return [] if after == document.source else [_all_of(document.source, after)]

    @made.feature(lsp.TEXT_DOCUMENT_CODE_ACTION)
    def act(asked: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        repairable = [each for each in asked.context.diagnostics if each.code in CODES]
        if not repairable:
            return []
        command = lsp.Command("Repair", REPAIR, arguments=[asked.text_document.uri])
        title = "Repair the order of the pipes (ptokit fix)"
        kind = lsp.CodeActionKind.QuickFix
        return [lsp.CodeAction(title, kind, diagnostics=repairable, command=command)]

    @made.command(REPAIR)
    async def repair(uri: str) -> None:
        document = made.workspace.get_text_document(uri)
        after, told = await _repaired(Path(document.path), document.source)
        if after and after != document.source:
            edit = lsp.WorkspaceEdit({uri: [_all_of(document.source, after)]})
            await made.workspace_apply_edit_async(lsp.ApplyWorkspaceEditParams(edit, "ptokit fix"))
        asked = lsp.ShowMessageParams(lsp.MessageType.Info, told)
        made.window_show_message(asked)

    return made


# ---- what is found -----------------------------------------------------------------------------


def _judged(name: str, text: str, runs: bool) -> list[Diagnostic]:
    found = texts.findings(name, text)
    if not runs or any(each.severity == "error" for each in found):
        return found
    try:
        program = loads(text, name)
        kernel = program.entry()
        values, _ = kernel.source.sampled()
        found += kernel[1](*values, max_seconds=SECONDS).warnings
    except UsageError:
        pass  # it takes numbers, and only its author knows which
    except PtoError as error:  # it races, hangs, leaves its arrays, or takes too long
        found += error.diagnostics
    return found


async def _check_file(path: Path) -> list[Diagnostic]:
    """What `ptokit check` says of a file of Python."""
    answer = await _asked(path, "check", str(path))
    found = [_read(each) for each in answer.get("diagnostics", [])]
    return [each for each in found if each.code not in _NOT_WRONG]


async def _repaired(path: Path, source: str) -> tuple[str, str]:
    """The repaired program, and a sentence about it."""
    answer = await _asked(path, "fix", "-", given=source)
    remedies = answer.get("remedies", [])
    return answer.get("text", ""), "; ".join(remedies) or "ptokit found no repair"


async def _asked(path: Path, *words: str, given: str = "") -> dict[str, Any]:
    """The answer of a command of ours, which runs in the folder of the file."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ptokit", *words, "--json", cwd=path.parent,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    out, _ = await process.communicate(given.encode())
    try:
        return json.loads(out)
    except ValueError:
        return {}


def _read(data: dict[str, Any]) -> Diagnostic:
    at = data.get("location")
    where = Location(at["file"], at["line"], at.get("col", 0)) if at else None
    got = tuple((str(k), str(v)) for k, v in dict(data.get("got", {})).items())
    words = {name: data.get(name, "") for name in ("code", "message", "fix", "target", "severity")}
    return Diagnostic(location=where, got=got, **words)


# ---- as the protocol has it --------------------------------------------------------------------


def _shown(found: Diagnostic, text: str, codec: PositionCodec) -> lsp.Diagnostic:
    lines = [found.message]
    if found.got:
        lines.append("got: " + ", ".join(f"{name} = {value}" for name, value in found.got))
    if found.fix:
        lines.append(f"fix: {found.fix}")
    at = found.location
    line = max(0, at.line - 1) if at else 0
    rows = texts.lines_of(text)
    start = max(0, at.col - 1) if at and at.col else 0
    end = len(rows[line]) if line < len(rows) else start
    return lsp.Diagnostic(
        _range(texts.Span(line, start, max(start, end)), text, codec), "\n".join(lines),
        _SEVERITY.get(found.severity, lsp.DiagnosticSeverity.Information),
        code=found.code, source="ptokit",
    )  # fmt: skip


def _range(span: texts.Span, source: str, codec: PositionCodec) -> lsp.Range:
    """Characters of a line as the editor counts them."""
    ends = lsp.Position(span.line, span.start), lsp.Position(span.line, span.end)
    return codec.range_to_client_units(texts.lines_of(source), lsp.Range(*ends))


def _all_of(before: str, after: str) -> lsp.TextEdit:
    end = lsp.Position(len(texts.lines_of(before)), 0)
    return lsp.TextEdit(lsp.Range(lsp.Position(0, 0), end), after)


def _item(offer: texts.Offer, begun: lsp.Range) -> lsp.CompletionItem:
    """An offer, which takes the place of what has been written of it."""
    return lsp.CompletionItem(
        offer.name, detail=offer.about, text_edit=lsp.TextEdit(begun, offer.name)
    )


@dataclass(frozen=True)
class _Place:
    """A place in a text, in characters; editors count otherwise, most of them in UTF-16."""

    source: str
    line: int
    column: int
    codec: PositionCodec

    @staticmethod
    def of(made: LanguageServer, asked: Any) -> _Place:
        document = made.workspace.get_text_document(asked.text_document.uri)
        codec = made.workspace.position_codec
        at = codec.position_from_client_units(texts.lines_of(document.source), asked.position)
        return _Place(document.source, at.line, at.character, codec)

    def range(self, span: texts.Span) -> lsp.Range:
        return _range(span, self.source, self.codec)


def _is_python(uri: str) -> bool:
    return uri.endswith(".py")
