"""Ordering that is no single instruction: arrays of event ids, sections."""

from __future__ import annotations

from ptokit.ir.dialects.definition import define, definitions_in

ID_ARRAY = define("pto.declare_eventid_array", "-> array:eventid_array", "{} -> T(array)")
ID_GET = define(
    "pto.eventid_array_get",
    "array:eventid_array index:index -> result:index",
    "%array[%index] {} : T(array)",
)
ID_SET = define(
    "pto.eventid_array_set",
    "array:eventid_array index:index value:index",
    "%array[%index], %value {} : T(array)",
)
CUBE_SECTION = define("pto.section.cube", "", "R {}", core="cube")
VECTOR_SECTION = define("pto.section.vector", "", "R {}", core="vector")


DEFINITIONS = definitions_in(globals())
