"""ELF files and loaded images: headers, symbol tables, where an object's file is, demangled names.

It imports the vocabulary (`errors`, `model`, `target`, `memory_map`) and knows neither DWARF nor ranks.
"""
