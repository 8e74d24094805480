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
from ptokit.base.diagnostics import Diagnostic, Note, PtoError, UsageError
from ptokit.base.location import Location
from ptokit.editor import texts
from ptokit.from_text import formatted, loads
from ptokit.machine.codes import CODES

SECONDS = 5.0  # that a text may run when it is saved
REPAIR = "ptokit.repair"
# Not every file of Python has kernels, and not every kernel says what it is called with.
_NOT_WRONG = ("check.no-kernel", "check.arguments")
_ALLOWABLE = "allowable"  # the mark of a finding that a comment may silence
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
        page = _Page(document.path, document.source, codec)
        shown = [_shown(each, page) for each in found]
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

    @made.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(asked: lsp.DidCloseTextDocumentParams) -> None:
        gone = lsp.PublishDiagnosticsParams(asked.text_document.uri, [])
        made.text_document_publish_diagnostics(gone)

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
        ours = [each for each in asked.context.diagnostics if each.source == "ptokit"]
        repairable = [each for each in ours if each.code in CODES]
        uri, kind = asked.text_document.uri, lsp.CodeActionKind.QuickFix
        actions: list[lsp.CodeAction] = []
        if repairable:
            command = lsp.Command("Repair", REPAIR, arguments=[uri])
            title = "Repair the order of the pipes (ptokit fix)"
            actions.append(lsp.CodeAction(title, kind, diagnostics=repairable, command=command))
        document = made.workspace.get_text_document(uri)
        page = _Page(document.path, document.source, made.workspace.position_codec)
        for each in ours:
            if each.data == _ALLOWABLE:
                edit = lsp.WorkspaceEdit({uri: [_allowing(each, page)]})
                title = f"Allow {each.code} on this line"
                actions.append(lsp.CodeAction(title, kind, diagnostics=[each], edit=edit))
        return actions

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
    got = tuple((str(k), str(v)) for k, v in dict(data.get("got", {})).items())
    words = {name: data.get(name, "") for name in ("code", "message", "fix", "target", "severity")}
    notes = tuple(Note(each["text"], _place_of(each["location"])) for each in data.get("notes", []))
    allowable = bool(data.get("is_allowable"))
    where = _place_of(data.get("location"))
    return Diagnostic(location=where, got=got, notes=notes, is_allowable=allowable, **words)


def _place_of(at: dict[str, Any] | None) -> Location | None:
    if at is None:
        return None
    callers = tuple(filter(None, map(_place_of, at.get("callers", []))))
    return Location(at["file"], at["line"], at["col"], at.get("end_col", 0), callers=callers)


# ---- as the protocol has it --------------------------------------------------------------------


def _shown(found: Diagnostic, page: _Page) -> lsp.Diagnostic:
    lines = [found.message]
    if found.got:
        lines.append("got: " + ", ".join(f"{name} = {value}" for name, value in found.got))
    if found.fix:
        lines.append(f"fix: {found.fix}")
    lines += [f"note: {note.text}" for note in found.notes if note.location is None]
    related = [(note.text, note.location) for note in found.notes if note.location is not None]
    at = found.location
    if at is not None and not page.has(at):  # what is wrong stands in a file that this one uses
        lines[0] = f"{at.brief}: {lines[0]}"
        related.insert(0, ("here", at))
        at = next(filter(page.has, at.callers), None)
    is_here = at is not None and at is found.location
    is_allowable = is_here and (found.severity == "warning" or found.is_allowable)
    return lsp.Diagnostic(
        page.range(at), "\n".join(lines),
        _SEVERITY.get(found.severity, lsp.DiagnosticSeverity.Information),
        code=found.code, source="ptokit", data=_ALLOWABLE if is_allowable else None,
        related_information=[
            lsp.DiagnosticRelatedInformation(page.location(place), text) for text, place in related
        ] or None,
    )  # fmt: skip


def _allowing(found: lsp.Diagnostic, page: _Page) -> lsp.TextEdit:
    """The comment with which a line says that it means what it does."""
    line = found.range.start.line
    sign = "#" if _is_python(page.path) else "//"
    column, words = texts.allowance(texts.lines_of(page.source)[line], str(found.code), sign)
    span = texts.Span(line, column, column)
    return lsp.TextEdit(_range(span, page.source, page.codec), words)


@dataclass(frozen=True)
class _Page:
    """A file as it stands in the editor."""

    path: str
    source: str
    codec: PositionCodec

    def has(self, at: Location) -> bool:
        """Whether a place is in this file. Commands run in its folder: theirs may be relative."""
        return (Path(self.path).parent / at.file).resolve() == Path(self.path).resolve()

    def range(self, at: Location | None) -> lsp.Range:
        """The characters of a place; without one, the first line."""
        rows = texts.lines_of(self.source)
        line = max(0, at.line - 1) if at else 0
        start = max(0, at.col - 1) if at and at.col else 0
        last = len(rows[line]) if line < len(rows) else start
        end = min(last, at.end_col - 1) if at and at.end_col else last
        return _range(texts.Span(line, start, max(start, end)), self.source, self.codec)

    def location(self, at: Location) -> lsp.Location:
        """A place in this file or in another one."""
        if self.has(at):
            return lsp.Location(Path(self.path).as_uri(), self.range(at))
        file = (Path(self.path).parent / at.file).resolve()
        start = lsp.Position(max(0, at.line - 1), max(0, at.col - 1))
        return lsp.Location(file.as_uri(), lsp.Range(start, start))


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
