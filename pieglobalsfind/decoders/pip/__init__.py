"""Tasks of Process-in-Process as ranks, from the library's own data.

It imports `elf`, the vocabulary and the decoders that are not in a folder.
"""
