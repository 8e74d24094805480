"""Arrays and structs of the scalar unit: they lie on its stack, and no pipe knows of them."""

from __future__ import annotations

from ptokit.ir.dialects.definition import define, definitions_in

ARRAY = define("pto.declare_local_array", "-> array:local_array", "{} -> T(array)")
ARRAY_GET = define(
    "pto.local_array_get",
    "array:local_array indices*:index -> result:num",
    "%array[%indices...] {} : T(array) -> T(result)",
)
ARRAY_SET = define(
    "pto.local_array_set",
    "array:local_array indices*:index value:num",
    "%array[%indices...], %value {} : T(array), T(value)",
)
STRUCT = define("pto.declare_struct", "-> struct:struct", "{} -> T(struct)")
STRUCT_GET = define(
    "pto.struct_get",
    "struct:struct -> result:num",
    "%struct@path {} : T(struct) -> T(result)",
)
STRUCT_SET = define(
    "pto.struct_set",
    "struct:struct value:num",
    "%struct@path, %value {} : T(struct), T(value)",
)
DECLARATIONS = (ARRAY, STRUCT)
READS = (ARRAY_GET, STRUCT_GET)
WRITES = (ARRAY_SET, STRUCT_SET)

DEFINITIONS = definitions_in(globals())
