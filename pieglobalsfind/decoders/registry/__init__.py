"""Ranks by the debug ABI (`rank_debug.h`): finding, reading, validating and decoding a registry.

It imports `elf`, the vocabulary and the decoders that are not in a folder.
"""
