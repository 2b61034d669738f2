"""Ranks of stock Charm++/AMPI without a hook, from the runtime's own data.

It imports `elf`, the vocabulary and the decoders that are not in a folder.
"""
