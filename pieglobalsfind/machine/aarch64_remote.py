"""AArch64's registers in the Remote Serial Protocol (GDB manual, "AArch64 Features")."""

from __future__ import annotations

from pieglobalsfind.machine.remote import Feature, Register, RemoteLayout

_CPSR_TYPE = "".join(
    [
        '<flags id="cpsr_flags" size="4">',
        *(
            f'<field name="{name}" start="{bit}" end="{bit}"/>'
            for name, bit in (
                *(("SP", 0), ("F", 6), ("I", 7), ("A", 8), ("D", 9), ("BTYPE", 10), ("SSBS", 12), ("IL", 20)),
                *(("SS", 21), ("PAN", 22), ("UAO", 23), ("DIT", 24), ("TCO", 25), ("V", 28), ("C", 29), ("Z", 30)),
                ("N", 31),
            )
        ),
        "</flags>",
    ]
)
_CORE = (
    *(Register(f"x{number}", 8, "int", number) for number in range(31)),
    Register("sp", 8, "data_ptr", 31),
    Register("pc", 8, "code_ptr", 32),
    Register("cpsr", 4, "cpsr_flags"),
)
# No rank's are known: the kernel gives them by a record of its own, and contexts keep the lower halves of eight.
_FLOATING_POINT = (
    *(Register(f"v{number}", 16, "uint128", 64 + number) for number in range(32)),
    Register("fpsr", 4, "int"),
    Register("fpcr", 4, "int"),
)
# Bits 48 to 54 of an address hold its signature where a return address is signed (Linux,
# arch/arm64/include/asm/pointer_auth.h, for addresses of 48 bits): debuggers take them away.
_SIGNATURE = 0x7F << 48
_POINTER_AUTHENTICATION = tuple(Register(f"pauth_{kind}mask", 8, "int", always=_SIGNATURE) for kind in "dc")

AARCH64_REMOTE = RemoteLayout(
    architecture="aarch64",
    triple="aarch64-unknown-linux-gnu",
    features=(
        Feature("org.gnu.gdb.aarch64.core", _CORE, _CPSR_TYPE),
        Feature("org.gnu.gdb.aarch64.fpu", _FLOATING_POINT),
        Feature("org.gnu.gdb.aarch64.pauth", _POINTER_AUTHENTICATION),
    ),
    integers=_CORE[:33],
    of_running=_CORE[:33],
    generic={"pc": "pc", "sp": "sp", "x29": "fp", "x30": "ra"},
)
