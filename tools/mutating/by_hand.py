"""Changes made by hand: mistakes that somebody could make, each of which the tests must notice.

(file, function, what stands there, what stands there instead); one whose text is gone is left out.
"""

from __future__ import annotations

BY_HAND: tuple[tuple[str, str, str, str], ...] = ()
