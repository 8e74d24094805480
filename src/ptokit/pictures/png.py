"""Matrices of colours as images that fit into a page."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Sequence
from struct import pack

import numpy as np

from ptokit.base.layout import Array

Colour = tuple[int, int, int]


def image(pixels: Array, palette: Sequence[Colour]) -> str:
    """The address of an image, for `src` or `href`: each element is a number of a colour.

    It is not compressed, so that the same numbers are the same text wherever it is made.
    """
    rows, cols = pixels.shape
    lines = np.zeros((rows, cols + 1), np.uint8)  # each begins with its filter: none
    lines[:, 1:] = pixels
    header = pack(">IIBBBBB", cols, rows, 8, 3, 0, 0, 0)  # 8 bits that name a colour
    colours = np.array(palette, np.uint8).tobytes()
    whole = b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", header),
            _chunk(b"PLTE", colours),
            _chunk(b"IDAT", zlib.compress(lines.tobytes(), 0)),
            _chunk(b"IEND", b""),
        ]
    )
    return "data:image/png;base64," + b64encode(whole).decode()


def between(first: Colour, last: Colour, steps: int) -> list[Colour]:
    """Colours that lead from one to another."""
    shares = np.linspace(0.0, 1.0, steps)[:, None]
    mixed = np.array(first) * (1 - shares) + np.array(last) * shares
    return [(int(r), int(g), int(b)) for r, g, b in np.rint(mixed)]


def _chunk(kind: bytes, content: bytes) -> bytes:
    return pack(">I", len(content)) + kind + content + pack(">I", zlib.crc32(kind + content))


__all__ = ["Colour", "between", "image"]
