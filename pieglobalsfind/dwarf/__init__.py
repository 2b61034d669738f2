"""Debug information of ELF files: variables, types, lines, call frame rules, call sites.

Every address is a p_vaddr of the file, and no rank is known here.
"""
