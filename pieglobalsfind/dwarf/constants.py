"""Numbers of DWARF by the names that the standard gives them (DWARF 5, chapter 7), and GNU's extensions.

Only those that this project asks about.
"""

from __future__ import annotations

# Units (table 7.2)
DW_UT_type = 0x02
DW_UT_skeleton = 0x04

# Tags of entries (table 7.3)
DW_TAG_array_type = 0x01
DW_TAG_class_type = 0x02
DW_TAG_entry_point = 0x03
DW_TAG_enumeration_type = 0x04
DW_TAG_formal_parameter = 0x05
DW_TAG_lexical_block = 0x0B
DW_TAG_member = 0x0D
DW_TAG_template_type_parameter = 0x2F
DW_TAG_pointer_type = 0x0F
DW_TAG_reference_type = 0x10
DW_TAG_string_type = 0x12
DW_TAG_structure_type = 0x13
DW_TAG_subroutine_type = 0x15
DW_TAG_typedef = 0x16
DW_TAG_union_type = 0x17
DW_TAG_unspecified_parameters = 0x18
DW_TAG_common_block = 0x1A
DW_TAG_inheritance = 0x1C
DW_TAG_inlined_subroutine = 0x1D
DW_TAG_module = 0x1E
DW_TAG_ptr_to_member_type = 0x1F
DW_TAG_subrange_type = 0x21
DW_TAG_base_type = 0x24
DW_TAG_const_type = 0x26
DW_TAG_enumerator = 0x28
DW_TAG_subprogram = 0x2E
DW_TAG_variable = 0x34
DW_TAG_volatile_type = 0x35
DW_TAG_restrict_type = 0x37
DW_TAG_interface_type = 0x38
DW_TAG_namespace = 0x39
DW_TAG_unspecified_type = 0x3B
DW_TAG_rvalue_reference_type = 0x42
DW_TAG_atomic_type = 0x47
DW_TAG_call_site = 0x48
DW_TAG_call_site_parameter = 0x49
DW_TAG_GNU_call_site = 0x4109
DW_TAG_GNU_call_site_parameter = 0x410A

RECORDS = (DW_TAG_class_type, DW_TAG_structure_type, DW_TAG_union_type, DW_TAG_interface_type)

# Attributes (table 7.5)
DW_AT_location = 0x02
DW_AT_name = 0x03
DW_AT_byte_size = 0x0B
DW_AT_bit_offset = 0x0C
DW_AT_bit_size = 0x0D
DW_AT_low_pc = 0x11
DW_AT_comp_dir = 0x1B
DW_AT_const_value = 0x1C
DW_AT_containing_type = 0x1D
DW_AT_lower_bound = 0x22
DW_AT_upper_bound = 0x2F
DW_AT_abstract_origin = 0x31
DW_AT_artificial = 0x34
DW_AT_count = 0x37
DW_AT_data_member_location = 0x38
DW_AT_decl_file = 0x3A
DW_AT_decl_line = 0x3B
DW_AT_declaration = 0x3C
DW_AT_encoding = 0x3E
DW_AT_external = 0x3F
DW_AT_frame_base = 0x40
DW_AT_specification = 0x47
DW_AT_type = 0x49
DW_AT_allocated = 0x4E
DW_AT_associated = 0x4F
DW_AT_data_location = 0x50
DW_AT_byte_stride = 0x51
DW_AT_string_length = 0x19
DW_AT_call_file = 0x58
DW_AT_call_line = 0x59
DW_AT_signature = 0x69
DW_AT_data_bit_offset = 0x6B
DW_AT_linkage_name = 0x6E
DW_AT_dwo_name = 0x76
DW_AT_call_return_pc = 0x7D
DW_AT_call_value = 0x7E
DW_AT_call_origin = 0x7F
DW_AT_call_data_value = 0x86
DW_AT_alignment = 0x88
DW_AT_MIPS_linkage_name = 0x2007
DW_AT_GNU_vector = 0x2107
DW_AT_GNU_call_site_value = 0x2111
DW_AT_GNU_call_site_data_value = 0x2112
DW_AT_GNU_dwo_name = 0x2130

# Forms of attributes (table 7.6)
DW_FORM_block2 = 0x03
DW_FORM_block4 = 0x04
DW_FORM_string = 0x08
DW_FORM_block = 0x09
DW_FORM_block1 = 0x0A
DW_FORM_sdata = 0x0D
DW_FORM_ref_addr = 0x10
DW_FORM_ref1 = 0x11
DW_FORM_ref2 = 0x12
DW_FORM_ref4 = 0x13
DW_FORM_ref8 = 0x14
DW_FORM_ref_udata = 0x15
DW_FORM_exprloc = 0x18
DW_FORM_ref_sup4 = 0x1C
DW_FORM_ref_sig8 = 0x20
DW_FORM_implicit_const = 0x21
DW_FORM_ref_sup8 = 0x24
DW_FORM_GNU_ref_alt = 0x1F20

# Operations of expressions (table 7.9)
DW_OP_addr = 0x03
DW_OP_deref = 0x06
DW_OP_const1u = 0x08
DW_OP_const1s = 0x09
DW_OP_const2u = 0x0A
DW_OP_const2s = 0x0B
DW_OP_const4u = 0x0C
DW_OP_const4s = 0x0D
DW_OP_const8u = 0x0E
DW_OP_const8s = 0x0F
DW_OP_constu = 0x10
DW_OP_consts = 0x11
DW_OP_dup = 0x12
DW_OP_drop = 0x13
DW_OP_over = 0x14
DW_OP_swap = 0x16
DW_OP_abs = 0x19
DW_OP_and = 0x1A
DW_OP_minus = 0x1C
DW_OP_mul = 0x1E
DW_OP_neg = 0x1F
DW_OP_not = 0x20
DW_OP_or = 0x21
DW_OP_plus = 0x22
DW_OP_plus_uconst = 0x23
DW_OP_shl = 0x24
DW_OP_shr = 0x25
DW_OP_shra = 0x26
DW_OP_xor = 0x27
DW_OP_bra = 0x28
DW_OP_eq = 0x29
DW_OP_ge = 0x2A
DW_OP_gt = 0x2B
DW_OP_le = 0x2C
DW_OP_lt = 0x2D
DW_OP_ne = 0x2E
DW_OP_skip = 0x2F
DW_OP_lit0 = 0x30
DW_OP_lit31 = 0x4F
DW_OP_reg0 = 0x50
DW_OP_breg0 = 0x70
DW_OP_regx = 0x90
DW_OP_fbreg = 0x91
DW_OP_bregx = 0x92
DW_OP_piece = 0x93
DW_OP_deref_size = 0x94
DW_OP_nop = 0x96
DW_OP_push_object_address = 0x97
DW_OP_form_tls_address = 0x9B
DW_OP_call_frame_cfa = 0x9C
DW_OP_implicit_value = 0x9E
DW_OP_stack_value = 0x9F
DW_OP_addrx = 0xA1
DW_OP_constx = 0xA2
DW_OP_entry_value = 0xA3
DW_OP_GNU_push_tls_address = 0xE0
DW_OP_GNU_entry_value = 0xF3
DW_OP_GNU_parameter_ref = 0xFA
DW_OP_GNU_addr_index = 0xFB
DW_OP_GNU_const_index = 0xFC

# Encodings of base types (table 7.11)
DW_ATE_address = 0x01
DW_ATE_boolean = 0x02
DW_ATE_complex_float = 0x03
DW_ATE_float = 0x04
DW_ATE_signed = 0x05
DW_ATE_signed_char = 0x06
DW_ATE_unsigned = 0x07
DW_ATE_unsigned_char = 0x08
DW_ATE_imaginary_float = 0x09
DW_ATE_decimal_float = 0x0F
DW_ATE_UTF = 0x10

# Languages (table 7.17)
DW_LANG_C89 = 0x01
DW_LANG_C = 0x02
DW_LANG_C_plus_plus = 0x04
DW_LANG_Fortran77 = 0x07
DW_LANG_Fortran90 = 0x08
DW_LANG_C99 = 0x0C
DW_LANG_Fortran95 = 0x0E
DW_LANG_C_plus_plus_11 = 0x1A
DW_LANG_C11 = 0x1D
DW_LANG_C_plus_plus_14 = 0x21
DW_LANG_Fortran03 = 0x22
DW_LANG_Fortran08 = 0x23
DW_LANG_C_plus_plus_20 = 0x2B
DW_LANG_C17 = 0x2C
DW_LANG_Fortran18 = 0x2D
