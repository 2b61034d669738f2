"""Relocations that store an address, by number and name (x86-64 psABI, table 4.10)."""

from __future__ import annotations

R_64, R_GLOB_DAT, R_JUMP_SLOT, R_RELATIVE, R_IRELATIVE = 1, 6, 7, 8, 37
ADDRESS_RELOCATIONS = {
    R_64: "R_X86_64_64",
    R_GLOB_DAT: "R_X86_64_GLOB_DAT",
    R_JUMP_SLOT: "R_X86_64_JUMP_SLOT",
    R_RELATIVE: "R_X86_64_RELATIVE",
    R_IRELATIVE: "R_X86_64_IRELATIVE",
}
