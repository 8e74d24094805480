"""Why files are refused rightly, by the code they are refused under; `docs/corpus.md` quotes this.

Most of the files are tests of what the public assembler prints: nobody compiles it. What the
library's headers then refuse (static assertions, ids SA-...) is refused here too, and so is what
lies outside the tiles that a program declares, or has no meaning on the device.
"""

from __future__ import annotations

_STATIC = "a static assertion of the library: the C++ that is printed for the file does not compile"
_OUTSIDE = "it touches bytes past the tile, which another tile may own"
_WORDS = (
    "the fix pipe takes 8 bytes for every column, whatever the table is declared as: "
    "this one is shorter"
)

# Rules that the public assembler's verifier has too: operands of products, boxes of a tile.
ITS_OWN_RULES = frozenset({"SA-0225", "SA-0066"})

# Files that are not read, by name: each says something else than the others with its code.
BY_FILE: dict[str, str] = {
    "castptr_emitc_tile_and_int": "a memref as a parameter: no operation of the language takes"
    " one any more, and the cast that it has here belongs to a lowering",
    "vmi_to_vpto_unrealized_cast_non_vmi": "a cast of an integer to a float, on which a pass of the"
    " assembler is tested: it has no meaning, and the assembler does not lower it either",
    "dcci_dsb_vpto_llvm": "maintenance of a cache of on-chip memory, in a spelling of the back end"
    " for micro-instructions; `pto.cmo.cacheinvalid` and `pto.fence.barrier_all` are read",
    "pipe_event_dyn_sync_llvm": "flags of pipes that no device has (MTE4, MTE5, V2): the file"
    " prints all names that a type knows",
    "0": "`pto.subview` of a tensor view, which the assembler has given up as well",
}

JUDGEMENTS: dict[str, str] = {
    # ---- reading
    "pipe": "the target has no such pipe; the file prints all names that a type knows",
    "syntax": "a micro-operation, in a spelling that only its back end has",
    "type-mismatch": "a tile where a FIFO hands out a view, or a cast of what is no number",
    "unknown-op": "a spelling that the assembler has given up as well",
    # ---- checking
    "MGATHER.element-index": _STATIC,
    "MSCATTER.row-index": _STATIC,
    "PA-0006": "a product without rows: the size field of the instruction has no zero",
    "PA-0058": "the library takes 32 bytes of the source for every row: " + _OUTSIDE,
    "SA-0006": _STATIC,
    "SA-0066": _STATIC,
    "SA-0082": "a view that a caller gives, or of no scales, does not lie as the tile asks",
    "SA-0104": _STATIC,
    "SA-0166": _STATIC,
    "SA-0200": _STATIC,
    "SA-0225": "operands of a product lie in Left and Right; how they get there is left out",
    "SA-0235": _STATIC,
    "TEXTRACT.fp-words": _WORDS,
    "TGATHER.compare-scratch": _OUTSIDE,
    "TGATHER.index-type": "the library has no such gather: it picks the step by both element sizes",
    "TGATHER.row-room": _OUTSIDE,
    "TGET_SCALE_ADDR.auto-only": "the library derives scale addresses only where it places tiles",
    "TINSERT.fp-words": _WORDS,
    "TINSERT.vec-mat-layouts": _STATIC,
    "TLOAD.view-size": "the view has other rows and columns than the tile that is loaded",
    "TMOV.fp-words": _WORDS,
    "TMOV.separate": "it moves a tile over a part of itself",
    "TMOV.vector-layouts": "a column-major tile of several columns does not move row by row",
    "TQUANT.result-type": _STATIC,
    "TQUANT_MX.no-zz": "the fused form exists in the library's simulator only; the language has"
    " deprecated it",
    "TQUANT_MX.scratch-size": _OUTSIDE,
    "TREM.tmp-columns": _OUTSIDE,
    "TSORT32.idx-size": _OUTSIDE,
    "TSORT32.record-columns": "a record has 8 bytes: " + _OUTSIDE,
    "TSTORE_FP.quantised-result": _STATIC,
    "TSTORE_FP.word-count": _WORDS,
    "TSTORE_FP.word-size": _WORDS,
    "TTRANS.room": "the result has the shape of the source and not its transposed one",
    "comm.TBROADCAST.CH-3": "the staging tile does not divide the rows of the tensor",
    "comm.TGATHER.TGA-3": "the result is as large as one part: the others are written past it",
    "comm.TSCATTER.TSC-3": "the source is as large as one part: the others are read past it",
    "pipe-address": "on A2/A3 the slots of a FIFO lie in global memory, which is not given",
    "pipe-peer": "one end of a FIFO without the other",
    "place.overflow": "the table of the fix pipe is larger than its memory",
    "place.scales": "the device reads scales at a sixteenth of the address of their tile, which a"
    " caller decides here",
    "view-rank": "a view of one dimension with two sizes",
    # ---- running
    "E1": "one side of an exchange: nobody signals what it waits for",
    "E10": "the memory that the type of a parameter gives is smaller than the ring of its FIFO",
    "E4": "two FIFOs of one cluster with the same flags",
    "E7": "two transfers of an engine meet, and nothing waits for the first",
    "E9": "phases of an accumulator that no store drains",
    "MGATHER.index-range": "the table is a single row: no drawn index but zero names an entry",
    "TCONCAT.length": "lengths that are drawn, none of which the file rules out",
    "SA-0053": "an entry of a FIFO whose memory nobody gives",
    "TPOP.slot-size": "a slot smaller than what is pushed into it",
    "hidden-register": "it reads a register that nothing has set: only its text is tested",
    "argument-type": "a vector as a parameter: a caller on the device computes it",
    "declaration": "a function that another file defines",
    "int-address": "an address as a number: no array lies there",
    "local-bounds": "an index that an argument gives, whose meaning is not written in the file",
    "memory": "a view of more bytes than an address space has",
    "poison-read": "it reads what nothing has written: only the shape of the code is tested",
    "trap": "the program stops itself, which is what it tests",
    "unbound-tile": "a handle that a FIFO would fill, used without one",
    "valid-capacity": "sizes that an argument gives, whose meaning is not written in the file",
    "window-bounds": "a place that an argument gives, whose meaning is not written in the file",
}
