"""Where the table differs from the specification, and why.

An id without a target differs on all devices: "SA-0012@a5,kirin9030" only on these.
"""

from __future__ import annotations

# Records without an entry.
OUTSIDE: dict[str, str] = {
    "copy_cbuf_to_ubuf": "a raw copy that C++ kernels write themselves",
    "TSETHF32MODE": "a register of the cube that the entries of matrix.yaml only mention",
    "TSETTF32MODE": "a register of the cube that the entries of matrix.yaml only mention",
    "TADDRELU": "an operation of the text, in text-current.md",
    "cacheinvalid": "an operation of the text, in text-current.md",
    "barrier_all": "an operation of the text, in text-current.md",
    "sync_set": "an operation of the text, in text-current.md",
    "sync_wait": "an operation of the text, in text-current.md",
    "set_cross_block": "an operation of the text, in text-current.md",
    "wait_cross_block": "an operation of the text, in text-current.md",
    "set_ffts_base_addr": "stated in internal-sync.yaml: it has no effect here",
}

# Entries without a record.
NOT_INSTRUCTIONS: dict[str, str] = {
    "Event<SrcOp, DstOp, AutoToken=true, EventID=EVENT_ID0>": "a type of the API",
    "RecordEvent": "a type of the API",
    "TPipe": "a type of the API",
    "instruction wrapper contract": "what holds for all instructions",
    "PtoSetWaitFlag": "set_flag and wait_flag in one call; the API writes both",
    "get_block_idx": "a query without effect: a plain function",
    "get_block_num": "a query without effect: a plain function",
    "get_subblockid": "a query without effect: a plain function",
    "get_subblockdim": "a query without effect: a plain function",
    "get_coreid, get_task_cookie, get_ctrl/set_ctrl, sbitset0/1": "control registers, not modelled",
    "mem_bar": "orders accesses of one pipe inside a micro program",
    "pto.get_vms4_sr": "of the micro instruction set",
    "pto.vecscope / pto.strict_vecscope": "of the micro instruction set",
}

# Instruction -> the devices whose element types differ, and why.
OTHER_TYPES: dict[str, tuple[str, str]] = {
    "TADDC": ("a2a3 a5 kirin9030 kirinx90", "declared, implemented nowhere: types as TADD"),
    "TSUBC": ("a2a3 a5 kirin9030 kirinx90", "declared, implemented nowhere: types as TSUB"),
    "TLOAD": ("kirinx90", "the entry points to A2A3; bf16 is another name of f16 on Kirin"),
    "TEXPANDS": ("a2a3", "the shorter list of the page is a rule of its own"),
    "TGATHER": ("kirin9030 kirinx90", "the byte patterns of the other form are checked by a rule"),
    "TQUANT": ("a5", "the MX formats are a record of their own, TQUANT_MX"),
}

# Ids that are reported where the specification does not state them: reason -> where.
MORE_IDS: dict[str, dict[str, str]] = {
    "C++ writes it as TADD, whose assertions hold": {
        "TADDRELU": "PA-0017@a2a3 PA-0020@a2a3 SA-0083@a2a3 SA-0084@a2a3",
    },
    "the entry words the check without its id": {
        "TNOT TRELU TADDC TSUBC TPOW TPOWS TAXPY TANDS TORS TXORS": "PA-0017 PA-0020",
        "TNEG": "PA-0017 PA-0020 SA-0231",
        "TXOR": "PA-0017@a2a3 PA-0020@a2a3",
        "TREM": "PA-0017@kirin9030 PA-0020@kirin9030",
        "TREMS": "PA-0017@a2a3,kirin9030 PA-0020@a2a3,kirin9030 SA-0231@a2a3,kirin9030",
        "TLRELU": "PA-0017@a2a3 PA-0020@a2a3 SA-0231@a2a3",
        "TADDSC TSUBSC": "PA-0017@a2a3,a5 PA-0020@a2a3,a5",
        "TCMP TCMPS": "SA-0230@a5,kirin9030,kirinx90 SA-0232@a5,kirin9030,kirinx90",
        "TRSQRT": "PA-0060@a5,kirin9030,kirinx90 PA-0061@a5,kirin9030,kirinx90 "
        "SA-0320@a5,kirin9030,kirinx90 SA-0321@a5,kirin9030,kirinx90 "
        "SA-0322@a5,kirin9030,kirinx90",
        "TRECIP": "PA-0055 PA-0056 SA-0297 SA-0298 SA-0299 SA-0300",
        "TCI": "SA-0046@a2a3",
    },
    "asserted on A2/A3 only, enforced elsewhere too until severity follows the origin": {
        "TSYNC": "SA-0096@a5,kirin9030,kirinx90",
    },
    "the entry says in words that the target follows another one": {
        "TLOAD": "SA-0041@kirin9030 SA-0055@kirin9030",
        "TSTORE": "PA-0028@kirinx90 PA-0029@kirinx90 PA-0042@kirinx90 PA-0043@kirinx90 "
        "PA-0044@kirinx90 PA-0045@kirinx90 PA-0046@kirinx90 PA-0047@kirinx90 SA-0011@kirinx90 "
        "SA-0100@kirin9030 SA-0101@kirinx90 SA-0105@kirinx90 SA-0124@kirin9030 "
        "SA-0125@kirin9030 SA-0338@kirinx90 SA-0350@kirinx90",
        "TSTORE_FP": "SA-0025@a5 SA-0126@a5 SA-0191@a5 SA-0201@a5 SA-0337@a5",
        "TEXTRACT": "SA-0012@a5,kirin9030,kirinx90 SA-0030@kirin9030,kirinx90 "
        "SA-0042@kirin9030,kirinx90 SA-0052@kirin9030 SA-0088@kirin9030 "
        "SA-0092@kirin9030,kirinx90 SA-0107@kirin9030,kirinx90 SA-0161@kirin9030 "
        "SA-0165@kirin9030",
        "TEXTRACT_FP": "PA-0040@kirinx90 PA-0041@kirinx90 SA-0030@kirin9030,kirinx90 "
        "SA-0088@kirin9030 SA-0107@kirin9030,kirinx90",
        "TINSERT": "SA-0012@a5,kirin9030,kirinx90 SA-0030@a5,kirin9030,kirinx90 "
        "SA-0042@a5,kirin9030,kirinx90 SA-0052@a5,kirin9030,kirinx90 SA-0088@a5,kirin9030 "
        "SA-0092@a5,kirin9030,kirinx90 SA-0106@a5 SA-0107@a5,kirin9030,kirinx90 SA-0194@a5 "
        "SA-0195@a5 SA-0198@a5 SA-0200@a5",
        "TINSERT_FP TMOV_FP": "SA-0030@kirin9030,kirinx90 SA-0088@kirin9030 "
        "SA-0107@kirin9030,kirinx90",
        "TMOV": "SA-0012@a5,kirin9030,kirinx90 SA-0030@kirin9030,kirinx90 SA-0034@kirinx90 "
        "SA-0035@kirinx90 SA-0036@kirinx90 SA-0038@kirinx90 SA-0039@kirinx90 SA-0040@kirinx90 "
        "SA-0042@kirin9030,kirinx90 SA-0088@kirin9030 SA-0092@kirin9030,kirinx90 "
        "SA-0107@kirin9030,kirinx90 SA-0113@kirinx90 SA-0114@kirinx90 SA-0115@kirinx90 "
        "SA-0119@kirinx90 SA-0120@kirinx90 SA-0121@kirinx90 SA-0160@kirinx90 SA-0163@kirinx90 "
        "SA-0164@kirinx90 SA-0166@kirinx90 SA-0254@kirin9030 SA-0255@kirin9030 "
        "SA-0256@kirin9030,kirinx90 SA-0258@a5,kirin9030,kirinx90 SA-0259@kirin9030 "
        "SA-0262@kirin9030,kirinx90 SA-0266@kirin9030,kirinx90 SA-0269@kirin9030,kirinx90 "
        "SA-0270@kirin9030,kirinx90 SA-0273@kirin9030,kirinx90",
    },
}

# Statements none of whose ids is reported, by the first of them: reason -> where.
UNSTATED_IDS: dict[str, dict[str, str]] = {
    "the instruction has ids of its own for the valid extents": {
        "TABS TEXP TLOG TSQRT TRSQRT TRECIP": "SA-0083",
    },
    "the statement is about the other forms of TFILLPAD": {
        "TFILLPAD_INPLACE": "SA-0172",
        "TFILLPAD_EXPAND": "SA-0173",
    },
    "the entry points to A2A3 and takes this part back": {
        "TLOAD": "PA-0029@kirinx90",
        "TEXTRACT": "SA-0162@kirinx90",
    },
    "assertions of A2/A3 and of the simulator; other devices have a name of our own": {
        "TMATMUL TMATMUL_ACC TMATMUL_BIAS": "SA-0059@a5,kirin9030,kirinx90",
        "TGEMV TGEMV_ACC TGEMV_BIAS": "SA-0059@a5,kirin9030,kirinx90",
    },
    "lines of either order are transposed there, as the golden cases show": {
        "TTRANS": "SA-0347@a5,kirin9030,kirinx90",
    },
}

# Rules whose statement is stronger than what a ruling leaves of it.
RULED: dict[str, str] = {
    "mx-open": "debug",  # the page wants static sizes, the header takes open ones as well
}
