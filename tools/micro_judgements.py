"""Why files of the micro level are refused rightly; `docs/micro-corpus.md` quotes this.

A file is explained by its name, by the group of the operation that is not in the table, or by the
code under which it is refused.
"""

from __future__ import annotations

STAGES = (
    "what refuses it is a pass of the public compiler, which cannot lower it yet or wants another "
    "stage: what the program means is known, and here it runs"
)
_LOWERED = (
    "the operation that it is lowered to is refused, not the one that is written: what that means "
    "is known"
)
_HELPERS = "a rule about helpers of the public Python front end, of which texts keep nothing"
_THREADS = "threads of a vector core (simt), which are refused by name"

BY_GROUP: dict[str, str] = {
    "threads": _THREADS,
    "the vector unit of A2/A3": "the level below tiles of A2/A3: repeats over memory, no registers",
    "single transfers": "a raw form of a transfer that no recorded run shows",
    "the vector unit": "an operation that no page describes and no recorded run shows",
}
BY_CODE: dict[str, str] = {
    "scope-border": "a kernel that is handed registers, or code whose registers leave a scope: "
    "the file shows what is printed for single lines, nobody can launch it",
    "scope-inside": "control flow that a scope does not have: jumps between blocks, regions that "
    "only the compiler makes",
    "type-mismatch": "a memref, or a cast that passes leave behind, where there are pointers",
    "micro-target": "transfers by address of A2/A3, whose level below tiles is not modelled",
    "micro-saturate": "written for an older compiler: today's asks for saturate too; it may be "
    "allowed, and runs then",
    "unknown-type": _THREADS,
    "unknown-op": "an operation of MLIR that no page of the language has",
    "SA-0256": "quantisation words of another type than the device reads",
    "syntax": "a clause of a raw transfer that no recorded run shows",
}
BY_FILE: dict[str, str] = {
    "vmi_to_vpto_group_reduce_legacy_slots_invalid": STAGES,
    "vmi_to_vpto_reduce_addi_i16_invalid": _LOWERED,
    "vmi_to_vpto_trunci_i8_signed_invalid": _LOWERED,
    "ptodsl_tileop_reject_contract_edges": _HELPERS,
    "aicore_ld_st_dev_invalid": "a rule about an entry without a mark or the release of a library, "
    "or an attribute that is only handed on",
    "vpto_scheduler_coverage": "a register of transfers is set inside a scope, where no transfer "
    "stands",
    "vshift_mixed_signedness_verify": "integers without a word about their sign are signed in "
    "registers, as everywhere in the public examples",
}
