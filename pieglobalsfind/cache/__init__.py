"""Keep in the user's cache what was computed from ELF files, by each file's build-id and state.

Everything that reads files may import it.
"""
