"""x86-64's registers in the Remote Serial Protocol: GDB's own layout (its i386 features; x86-64 psABI, figure 3.36)."""

from __future__ import annotations

from pieglobalsfind.machine.remote import Feature, Register, RemoteLayout

_WORDS = ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", *(f"r{number}" for number in range(8, 16)), "rip")
_DWARF = {"rax": 0, "rdx": 1, "rcx": 2, "rbx": 3, "rsi": 4, "rdi": 5, "rbp": 6, "rsp": 7, "rip": 16, "eflags": 49}
_DWARF.update({f"r{number}": number for number in range(8, 16)})
_TYPES = {"rbp": "data_ptr", "rsp": "data_ptr", "rip": "code_ptr", "eflags": "i386_eflags"}
_SEGMENT = {"e": 50, "c": 51, "s": 52, "d": 53, "f": 54, "g": 55}
_X87 = {"fctrl": 65, "fstat": 66}
_X87_CONTROL = ("fctrl", "fstat", "ftag", "fiseg", "fioff", "foseg", "fooff", "fop")

_CORE = (
    *(Register(name, 8, _TYPES.get(name, "int64"), _DWARF[name]) for name in _WORDS),
    Register("eflags", 4, "i386_eflags", _DWARF["eflags"]),
    *(Register(f"{letter}s", 4, "int32", _SEGMENT[letter]) for letter in "csdefg"),
    *(Register(f"st{number}", 10, "i387_ext", 33 + number) for number in range(8)),
    *(Register(name, 4, "int", _X87.get(name, -1), "float") for name in _X87_CONTROL),
)
_SSE = (
    *(Register(f"xmm{number}", 16, "vec128", 17 + number) for number in range(16)),
    Register("mxcsr", 4, "i386_mxcsr", 64, "vector"),
)
_LINUX = (Register("orig_rax", 8, "int"),)
_FS_BASE = 58  # the thread's pointer
_SEGMENTS = (Register("fs_base", 8, "int", _FS_BASE), Register("gs_base", 8, "int"))
_INTEGERS = (*_CORE[: len(_WORDS) + 1], _SEGMENTS[0])

_FLAGS_TYPE = "".join(
    [
        '<flags id="i386_eflags" size="4">',
        *(
            f'<field name="{name}" start="{bit}" end="{bit}"/>'
            for name, bit in (
                *(("CF", 0), ("", 1), ("PF", 2), ("AF", 4), ("ZF", 6), ("SF", 7), ("TF", 8), ("IF", 9), ("DF", 10)),
                *(("OF", 11), ("NT", 14), ("RF", 16), ("VM", 17), ("AC", 18), ("VIF", 19), ("VIP", 20), ("ID", 21)),
            )
        ),
        "</flags>",
    ]
)
_SSE_TYPES = """<vector id="v4f" type="ieee_single" count="4"/><vector id="v2d" type="ieee_double" count="2"/>
<vector id="v16i8" type="int8" count="16"/><vector id="v8i16" type="int16" count="8"/>
<vector id="v4i32" type="int32" count="4"/><vector id="v2i64" type="int64" count="2"/>
<union id="vec128"><field name="v4_float" type="v4f"/><field name="v2_double" type="v2d"/>
<field name="v16_int8" type="v16i8"/><field name="v8_int16" type="v8i16"/><field name="v4_int32" type="v4i32"/>
<field name="v2_int64" type="v2i64"/><field name="uint128" type="uint128"/></union>
<flags id="i386_mxcsr" size="4"><field name="IE" start="0" end="0"/><field name="DE" start="1" end="1"/>
<field name="ZE" start="2" end="2"/><field name="OE" start="3" end="3"/><field name="UE" start="4" end="4"/>
<field name="PE" start="5" end="5"/><field name="DAZ" start="6" end="6"/><field name="IM" start="7" end="7"/>
<field name="DM" start="8" end="8"/><field name="ZM" start="9" end="9"/><field name="OM" start="10" end="10"/>
<field name="UM" start="11" end="11"/><field name="PM" start="12" end="12"/>
<field name="FZ" start="15" end="15"/></flags>
"""

X86_64_REMOTE = RemoteLayout(
    architecture="i386:x86-64",
    triple="x86_64-pc-linux-gnu",
    # GDB takes for a Linux target only what has orig_rax; inferiors that it has not set up yet have this very layout.
    features=(
        Feature("org.gnu.gdb.i386.core", _CORE, _FLAGS_TYPE),
        Feature("org.gnu.gdb.i386.sse", _SSE, _SSE_TYPES),
        Feature("org.gnu.gdb.i386.linux", _LINUX),
        Feature("org.gnu.gdb.i386.segments", _SEGMENTS),
    ),
    integers=_INTEGERS,
    of_running=(*_INTEGERS, *_SSE),
    generic={"rip": "pc", "rsp": "sp", "rbp": "fp", "fs_base": "tp"},
    thread_pointer=_FS_BASE,
)
