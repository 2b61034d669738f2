"""Access to debug information through elfutils' libdw: the library by ctypes, files that it opens, and their DIEs.

It imports `elf`, `shell` and, of `dwarf`, the constants alone.
"""
