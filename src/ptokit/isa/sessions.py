"""Sessions of the SDMA engine: how one is configured, and what makes a configuration usable."""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.dataclass import dataclass
from ptokit.base.entry import public_record
from ptokit.base.enums import TileType
from ptokit.base.tensors import ConvSpec
from ptokit.base.tiles import TileSpec, Violation

QUEUES = 48  # channels of the engine
OWN_GROUP = 0xFFFFFFFF  # the channel group of the block
SCRATCH_BYTES = 256  # of UB, which the descriptors of a session take by default
_LEAST_SCRATCH = 8
_SYNC_IDS = 8


@public_record
@dataclass(frozen=True)
class SdmaBaseConfig:
    """How a transfer is divided: bytes per entry, an offset to both addresses, queues per core."""

    block_bytes: int = 1 << 20
    comm_block_offset: int = 0
    queue_num: int = 1


TEXT_CONFIG = SdmaBaseConfig(1 << 15)  # of a session for which the text says nothing


def scratch_faults(scratch: TileSpec | ConvSpec) -> Iterator[Violation]:
    """The static rule of the scratch tile."""
    if scratch.loc != TileType.Vec:
        yield Violation("BS-1", "the scratch is a Vec tile", (("scratch", scratch),))


def session_faults(
    scratch: TileSpec | ConvSpec, sync_id: int, config: SdmaBaseConfig, group: int | None
) -> Iterator[Violation]:
    """Why a session cannot be used; `group` is None where it is known only at run time."""
    queues = config.queue_num
    if scratch.nbytes < _LEAST_SCRATCH:
        rule = f"the scratch has at least {_LEAST_SCRATCH} bytes"
        yield Violation("BS-2", rule, (("bytes", scratch.nbytes),))
    if not 0 <= sync_id < _SYNC_IDS:
        yield Violation("BS-3", f"sync_id lies in 0..{_SYNC_IDS - 1}", (("sync_id", sync_id),))
    if not 1 <= queues <= QUEUES:
        yield Violation("BS-4", f"queue_num lies in 1..{QUEUES}", (("queue_num", queues),))
    elif group is not None and not 0 <= group < groups(config):
        rule = f"the channel group lies in 0..{groups(config) - 1} with so many queues"
        yield Violation("BS-5", rule, (("group", group), ("queue_num", queues)))
    if config.block_bytes <= 0 or config.comm_block_offset < 0:
        rule = "block_bytes is positive and comm_block_offset not negative"
        sizes = (
            ("block_bytes", config.block_bytes),
            ("comm_block_offset", config.comm_block_offset),
        )
        yield Violation("sizes", rule, sizes)


def groups(config: SdmaBaseConfig) -> int:
    """How many channel groups there are."""
    return QUEUES // config.queue_num
