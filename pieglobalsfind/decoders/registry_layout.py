"""The records of runtime-hooks/include/rank_debug.h, ABI version 1, as struct formats.

This is the one place in Python that knows the layout; tests/abi holds it against the C compiler's.
"""

from __future__ import annotations

import struct

MAGIC = b"RANKDBG\x01"
ABI_VERSION = 1
MAPPING_NAME = "memfd:rank_debug_registry"
SYMBOL = "rank_debug_registry"
NONE = 0xFFFFFFFF

# The header up to its tables, then the tables in this order.
HEADER = struct.Struct("<8sIIQQQIIIIIIQQQQQ16s16s32s64s64s")
HEADER_FIELDS = (
    "magic abi_version header_size generation mapping_address mapping_size machine process_id process_index "
    "process_count rank_count reserved0 event_function entry_function entry_function_size constructor_heap "
    "constructor_heap_size method rewrite_mode runtime job_id node"
).split()
TABLE = struct.Struct("<QII")
TABLES = (
    "strings objects segments ranks copies tls_blocks redirections roots context_registers calls blocks"
).split()
HEADER_SIZE = HEADER.size + len(TABLES) * TABLE.size
GENERATION = struct.Struct("<Q")
GENERATION_OFFSET = 16

OBJECT = struct.Struct("<QQQQQQQQIIIII36s")
SEGMENT = struct.Struct("<QQQII")
RANK = struct.Struct("<iIIIQQQQQQQQIIiiQQ")
COPY = struct.Struct("<iIQ")
TLS_BLOCK = struct.Struct("<iIIIQQ")
REDIRECTION = struct.Struct("<iIQQQQ")
ROOT = struct.Struct("<iIIIQ")
REGISTER = struct.Struct("<IIq")
CALL = struct.Struct("<32s")
BLOCK = struct.Struct("<QQ")
RECORDS = {
    "strings": struct.Struct("<B"),
    "objects": OBJECT,
    "segments": SEGMENT,
    "ranks": RANK,
    "copies": COPY,
    "tls_blocks": TLS_BLOCK,
    "redirections": REDIRECTION,
    "roots": ROOT,
    "context_registers": REGISTER,
    "calls": CALL,
    "blocks": BLOCK,
}
