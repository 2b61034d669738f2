"""Keep in the user's cache what was computed from ELF files, by each file's build-id and state.

It imports `shell` and may be imported by everything that reads files.
"""
