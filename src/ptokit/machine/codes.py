"""What a checked run can find: code -> (meaning, way out)."""

from __future__ import annotations

CODES = {
    "E1": (
        "A wait that nothing will ever satisfy: no set precedes it, or cores wait for each "
        "other in a ring. The report lists every core and pipe that stands still, what each "
        "waits for, and the state of the FIFOs.",
        "Give the signal first; prime backward flags before a loop.",
    ),
    "E2": (
        "A flag is set again before anything waits for it. Per pair of pipes and id, sets and "
        "waits alternate.",
        "Wait in between, or use another id.",
    ),
    "E3": (
        "A flag, a cross-core signal or a buffer is left over at the end; it would satisfy a "
        "wait of the next kernel (signals: a warning).",
        "Drain what was primed; release what was acquired.",
    ),
    "E4": (
        "An id that does not exist: event ids end at 7, cross-core flags at 15, 11 to 14 "
        "belong to SYNCALL; or two FIFOs share flags.",
        "Choose other ids.",
    ),
    "E5": (
        "A pipe this kind of core does not have: V belongs to vector cores; M, MTE1 and FIX "
        "to cube cores.",
        "Issue the work from the other core.",
    ),
    "E6": (
        "Two pipes use the same bytes of an on-chip memory without an order (read after "
        "write, write after read, write after write), in one core or in two of a cluster. Also a "
        "configuration register that is set under work that uses it: a warning under `release`.",
        "The flag the message names, or a FIFO between cores.",
    ),
    "E7": (
        "The same for global memory: a store and a load in one core, or two cores, two blocks, two "
        "ranks of a world; or a transfer of a DMA engine whose event nobody has waited for, or of "
        "the collective unit, which tells the host alone. A warning where both vector cores of a "
        "cluster store equal bytes.",
        "MTE3 to MTE2 flag; FIFO or cross-core flag; SYNCALL between blocks; TNOTIFY and TWAIT "
        "between ranks; `event.Wait(session)` after a transfer.",
    ),
    "E8": (
        "Two instructions of one pipe that depend on each other without a barrier, where the "
        "pipe does not keep that order: V on A2/A3, MTE2 and MTE3 everywhere. Loads over each "
        "other land in order; on V the reader of exactly what was written stays behind where that "
        "is one stretch of more than 15 repeats. A warning where two stores write, or where both "
        "go through the same bytes position by position.",
        "`pipe_barrier(PIPE_x)` between the two lines.",
    ),
    "E9": (
        "A unit-flag handshake out of step: stored before the last accumulation, accumulated "
        "before it was stored, or left open.",
        "`AccPhase.Partial` ... `AccPhase.Final`, then `STPhase.Final`.",
    ),
    "E10": (
        "Misuse of a FIFO: slots not given back, entries not popped, one vector core missing "
        "on A2/A3, ring sizes its notifications do not protect, the local ring overwritten "
        "while in use, slot memory too small.",
        "As the message says.",
    ),
    "E11": (
        "More than 15 signals pending on a cross-core counter of 4 bits.",
        "Let the other side take some.",
    ),
    "E12": (
        "Cross-core signals on A2/A3 before `set_ffts_base_addr`.",
        "Call it at the start of the kernel.",
    ),
    "E13": (
        "SYNCALL entered by some of its participants only, or not equally often.",
        "Enter it on every core that takes part.",
    ),
    "E14": (
        "Scalar access to global memory spoilt by the data cache, which is coherent with nobody. "
        "A warning where two cores store to different words of one line.",
        "`dcci` and `dsb(DSB_DDR)` after a store, `dcci` before a load; a line of its own "
        "per core.",
    ),
    "E15": (
        "Flags in auto mode, where they do nothing (a warning).",
        "Leave them out.",
    ),
    "E16": (
        "A tile placed over the local slots of a FIFO.",
        "Move one of the two.",
    ),
    "E17": (
        "Two accesses of a scope of the vector unit to the same bytes that nothing orders: a load "
        "after a store, a store after a load whose value it is not made of, lanes of a scatter "
        "with one index and different values, vector and scalar accesses. A warning between two "
        "stores, which land in program order as far as anybody has seen.",
        "`pto.mem_bar` of the kind that the message names, between the two lines.",
    ),
    "E18": (
        "Bytes of an unaligned stream that are left in its state when the scope ends.",
        "End the stream with `pto.vstas`, or `pto.vstar` where AR counts its bytes.",
    ),
}
