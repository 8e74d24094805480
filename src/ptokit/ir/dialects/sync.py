"""Ordering inside a core and between cores: flags, events, barriers, buffer tokens, sections."""

from __future__ import annotations

from ptokit.ir.dialects.definition import define

_PIPES = "src_pipe:pipe dst_pipe:pipe event_id:event"
_CLASSES = "src_op:pipe_event_type dst_op:pipe_event_type event_id:event"

DEFINITIONS = [
    define("pto.set_flag", "", "[@src_pipe, @dst_pipe, @event_id] {}", _PIPES),
    define("pto.wait_flag", "", "[@src_pipe, @dst_pipe, @event_id] {}", _PIPES),
    define("pto.set_flag_dyn", "event_id:index", "[@src_pipe, @dst_pipe, %event_id] {}", _PIPES),
    define("pto.wait_flag_dyn", "event_id:index", "[@src_pipe, @dst_pipe, %event_id] {}", _PIPES),
    define("pto.record_event", "", "[@src_op, @dst_op, @event_id] {}", _CLASSES),
    define("pto.wait_event", "", "[@src_op, @dst_op, @event_id] {}", _CLASSES),
    define("pto.tsync", "events*:any", "ins(%events... : T(events...)) {}"),
    define("pto.barrier", "", "@pipe {}", "pipe:pipe"),
    define("pto.barrier_sync", "", "[@op_type] {}", "op_type:sync_op_type"),
    define("pto.get_buf", "", "[@op_type, @buf_id] {}", "op_type:pipe_event_type buf_id:i32"),
    define("pto.rls_buf", "", "[@op_type, @buf_id] {}", "op_type:pipe_event_type buf_id:i32"),
    define("pto.declare_eventid_array", "-> array:eventid_array", "{} -> T(array)"),
    define(
        "pto.eventid_array_get",
        "array:eventid_array index:index -> result:index",
        "%array[%index] {} : T(array)",
    ),
    define(
        "pto.eventid_array_set",
        "array:eventid_array index:index value:index",
        "%array[%index], %value {} : T(array)",
    ),
    # ---- between the cores of a cluster
    define("pto.set_ffts", "ffts:any", "%ffts {} : T(ffts)"),
    define(
        "pto.sync.set",
        "event_id_dyn?:index",
        "@pipe, [?@event_id?][?%event_id_dyn?] {}",
        "pipe:pipe event_id:i32",
    ),
    define(
        "pto.sync.wait",
        "event_id_dyn?:index",
        "@pipe, [?@event_id?][?%event_id_dyn?] {}",
        "pipe:pipe event_id:i32",
    ),
    define("pto.section.cube", "", "R {}"),
    define("pto.section.vector", "", "R {}"),
]
