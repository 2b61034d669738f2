"""Which libraries GDB has symbols of: it forgets some, reads others later, and leaves the originals of ranks' copies.

It imports the rest of `gdb_api`.
"""
