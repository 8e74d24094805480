"""Operations of the level below tiles: registers, predicates, threads, single transfers.

The public dialect has several hundred of them beside the tile operations. They are known by name
so that a program that uses one is told which, rather than that nobody knows it.
"""

from __future__ import annotations

from ptokit.base.patterns import regex

# What the names of each group begin with, or consist of: its title stands in messages.
_GROUPS: dict[str, str] = {
    "the virtual vector instructions": r"vmi\..+",
    "the vector unit": r"v[a-z]\w*|(strict_)?vecscope|init_align|uvld|[cd]histv2|sprclr|sprst[is]"
    r"|p(and|or|xor|not|sel|bitcast|u?n?pack|ldi|lds|sti|sts|stu"
    r"|(set|lt|ltm|ge|intlv|dintlv)_b\d+)",
    "the vector unit of A2/A3": r"ub\..+",
    "single transfers": r"mte_\w+|copy_\w+|load_cbuf_\w+|create_cbuf_matrix|raw_fill_l1"
    r"|set_(loop\w+|\w+_para|pad_val\w*|mov_pad_val|quant_pre|relu_alpha|fix_clip_relu|fpc)"
    r"|set_(atomic_\w+|store_atomic_cfg)",
    "the matrix unit": r"mad(_\w+)?",
    "threads": r"simt_\w+|section\.simt|get_(tid|block_dim|block_idx|grid_dim)_[xyz]|get_lane\w+"
    r"|get_(veccoreid|clock\d+)|atomic_\w+|shuffle_\w+|vote_\w+|redux_\w+|ldg|stg|load|store|keep"
    r"|resume|syncthreads|threadfence\w*|store_vfsimt_info|prmt|absf|ceil|floor|convert|cos|sin"
    r"|exp|log|pow|sqrt|rint|round|fma|fmax|fmin|mulhi|mul_i32toi64",
}
_PATTERNS = {group: regex(rf"pto\.({names})") for group, names in _GROUPS.items()}
_TYPES = regex(r"!llvm\..*")


def micro_group(name: str) -> str:
    """What a micro-operation belongs to, by its full name; empty for every other operation."""
    if name.startswith("llvm."):
        return "threads"
    return next((group for group, names in _PATTERNS.items() if names.fullmatch(name)), "")


def is_micro_type(text: str) -> bool:
    """Whether a type belongs to these operations."""
    return _TYPES.fullmatch(text) is not None
