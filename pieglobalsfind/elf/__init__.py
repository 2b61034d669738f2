"""ELF files and loaded images: headers, symbol tables, where an object's file is, demangled names.

It knows neither DWARF nor ranks.
"""
