"""The registers of a rank as debuggers number them: GDB's default layout of x86-64, and what LLDB takes instead.

Takes values by DWARF number (x86-64 psABI, figure 3.36); gives what the packets `g` and `p` answer, and target
descriptions. A register that is not known is unavailable, never 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

UNKNOWN = b"x"


@dataclass(frozen=True)
class Register:
    """One register; `size` in bytes, `dwarf` its DWARF number or -1."""

    name: str
    size: int
    type: str
    dwarf: int = -1
    group: str = ""


WORDS = ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", *(f"r{number}" for number in range(8, 16)), "rip")
DWARF = {"rax": 0, "rdx": 1, "rcx": 2, "rbx": 3, "rsi": 4, "rdi": 5, "rbp": 6, "rsp": 7, "rip": 16, "eflags": 49}
DWARF.update({f"r{number}": number for number in range(8, 16)})
TYPES = {"rbp": "data_ptr", "rsp": "data_ptr", "rip": "code_ptr", "eflags": "i386_eflags"}
SEGMENT = {"e": 50, "c": 51, "s": 52, "d": 53, "f": 54, "g": 55}
X87 = {"fctrl": 65, "fstat": 66}
X87_CONTROL = ("fctrl", "fstat", "ftag", "fiseg", "fioff", "foseg", "fooff", "fop")
GENERIC = {"rip": "pc", "rsp": "sp", "rbp": "fp", "fs_base": "tp"}

CORE = (
    *(Register(name, 8, TYPES.get(name, "int64"), DWARF[name]) for name in WORDS),
    Register("eflags", 4, "i386_eflags", DWARF["eflags"]),
    *(Register(f"{letter}s", 4, "int32", SEGMENT[letter]) for letter in "csdefg"),
    *(Register(f"st{number}", 10, "i387_ext", 33 + number) for number in range(8)),
    *(Register(name, 4, "int", X87.get(name, -1), "float") for name in X87_CONTROL),
)
SSE = (
    *(Register(f"xmm{number}", 16, "vec128", 17 + number) for number in range(16)),
    Register("mxcsr", 4, "i386_mxcsr", 64, "vector"),
)
LINUX = (Register("orig_rax", 8, "int"),)
FS_BASE = 58  # the thread's pointer
SEGMENTS = (Register("fs_base", 8, "int", FS_BASE), Register("gs_base", 8, "int"))
INTEGERS = (*CORE[: len(WORDS) + 1], SEGMENTS[0])
OF_RUNNING = (*INTEGERS, *SSE)
ALL = (*CORE, *SSE, *LINUX, *SEGMENTS)
PC = next(number for number, one in enumerate(ALL) if one.name == "rip")
# GDB takes for a Linux target only what has orig_rax, and inferiors that it has not set up yet have this very layout.
FEATURES = {"core": CORE, "sse": SSE, "linux": LINUX, "segments": SEGMENTS}

FLAGS_TYPE = "".join(
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
SSE_TYPES = """<vector id="v4f" type="ieee_single" count="4"/><vector id="v2d" type="ieee_double" count="2"/>
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
TYPES_OF = {"core": FLAGS_TYPE, "sse": SSE_TYPES}
HEAD = '<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd"><target version="1.0">'
MACHINE = "<architecture>i386:x86-64</architecture><osabi>GNU/Linux</osabi>"


def description() -> str:
    """The target description for GDB."""
    features = "".join(
        f'<feature name="org.gnu.gdb.i386.{name}">{TYPES_OF.get(name, "")}{"".join(map(_element, registers))}</feature>'
        for name, registers in FEATURES.items()
    )
    return f"{HEAD}{MACHINE}{features}</target>"


def _element(register: Register) -> str:
    group = f' group="{register.group}"' if register.group else ""
    return f'<reg name="{register.name}" bitsize="{8 * register.size}" type="{register.type}"{group}/>'


def description_of(known: Mapping[int, int], every: bool) -> str:
    """The target description for LLDB, which knows no unavailable register: with the integers that the rank has.

    `every`: with all that a rank may have once it runs. LLDB 19 crashes where a function returns in another register.
    """
    found = "".join(
        f'<reg name="{register.name}" bitsize="{8 * register.size}" regnum="{number}" type="{register.type}"'
        f' dwarf_regnum="{register.dwarf}" ehframe_regnum="{register.dwarf}"{_generic(register)}/>'
        for number, register in enumerate(ALL)
        if (register.dwarf in known and register in INTEGERS) or (every and register in OF_RUNNING)
    )
    return f'{HEAD}{MACHINE}<feature name="org.gnu.gdb.i386.core">{FLAGS_TYPE}{found}</feature></target>'


def _generic(register: Register) -> str:
    return f' generic="{GENERIC[register.name]}"' if register.name in GENERIC else ""


def all_values(known: Mapping[int, int]) -> bytes:
    """What `g` answers, in GDB's layout."""
    return b"".join(_digits(register, known) for register in ALL)


def value(number: int, known: Mapping[int, int]) -> bytes:
    """What `p` answers; raises `ValueError` for a register that there is not."""
    if number >= len(ALL):
        raise ValueError("no such register")
    return _digits(ALL[number], known)


def known_values(known: Mapping[int, int]) -> Iterator[tuple[int, bytes]]:
    """(number, digits) of every integer register that is known: LLDB asks for others when it wants them."""
    return (
        (number, _digits(register, known))
        for number, register in enumerate(ALL)
        if register.dwarf in known and register in INTEGERS
    )


def _digits(register: Register, known: Mapping[int, int]) -> bytes:
    if register.dwarf not in known:
        return UNKNOWN * (2 * register.size)
    return (known[register.dwarf] & ((1 << 8 * register.size) - 1)).to_bytes(register.size, "little").hex().encode()
