"""The user's cache: what was worked out from ELF files, kept per build-id.

It imports `shell` and may be imported by everything that reads files.
"""
