"""What an editor asks about a file: `ptokit lsp` is a server of the language server protocol.

`texts.py` answers about texts without knowing who asks; `server.py` speaks the protocol.
"""
