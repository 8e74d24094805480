"""`ptokit lsp`: the server that editors ask about kernels."""

from __future__ import annotations

from ptokit.base.diagnostics import usage_error


def command() -> None:
    """Speak the language server protocol over standard input and output."""
    try:
        from ptokit.editor.server import server
    except ImportError as error:
        raise usage_error(
            "missing-extra",
            f"the server for editors needs a package that is not installed: {error.name}",
            fix="pip install ptokit[lsp]",
        ) from None
    server().start_io()
