"""The core of ranklens: from the bytes of a target to its ranks, and from any address to rank, object, symbol, line.

docs/architecture.md shows how the modules follow one another. It needs the standard library alone and
knows no debugger.
"""
