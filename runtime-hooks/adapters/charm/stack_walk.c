/*
 * stack_walk.c: finds the entry for an instruction, runs its program and applies the rules.
 */
#include "stack_walk.h"

#include <string.h>

#define SIGNED_DISTANCE 0x1b /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
#define TABLE_ENCODING 0x3b  /* DW_EH_PE_datarel | DW_EH_PE_sdata4 */
#define COUNT_ENCODING 0x03  /* DW_EH_PE_udata4 */
#define MOST_REMEMBERED 8
#define STACK_DEPTH 32 /* of an expression */

enum rule_kind { SAME, UNDEFINED, AT_OFFSET, IS_OFFSET, IN_REGISTER, AT_EXPRESSION, IS_EXPRESSION };

struct rule {
    enum rule_kind kind;
    int64_t offset;            /* from the CFA; a register's number */
    const uint8_t *expression; /* its length comes first */
};

struct rules {
    struct rule registers[FRAME_REGISTERS];
    uint64_t cfa_register;
    int64_t cfa_offset;
    const uint8_t *cfa_expression;
};

/* What is common to many entries, and the entry's own part. */
struct entry {
    uint64_t code_alignment;
    int64_t data_alignment;
    const uint8_t *common, *common_end;
    const uint8_t *own, *own_end;
    uint64_t start, size;
};

/* LEB128 (DWARF 5, 7.6); bits beyond the 64th are dropped. */
static uint64_t number(const uint8_t **at, bool is_signed) {
    uint64_t value = 0;
    uint8_t byte;
    unsigned shift = 0;
    do {
        byte = *(*at)++;
        value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
        shift += 7;
    } while (byte & 0x80);
    return is_signed && shift < 64 && byte & 0x40 ? value | ~UINT64_C(0) << shift : value;
}

static uint64_t unsigned_number(const uint8_t **at) {
    return number(at, false);
}

static int64_t signed_number(const uint8_t **at) {
    return (int64_t)number(at, true);
}

static uint32_t fixed(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t distant(const uint8_t *at) {
    return (uintptr_t)at + (uint64_t)(int64_t)(int32_t)fixed(at);
}

/* The entry whose function begins last before the address, by the sorted table of .eh_frame_hdr; NULL without one. */
static const uint8_t *entry_for(const struct code *code, uint64_t address) {
    const uint8_t *header = (const void *)code->frame_header;
    if (!header || header[0] != 1 || header[1] != SIGNED_DISTANCE || header[2] != COUNT_ENCODING ||
        header[3] != TABLE_ENCODING)
        return NULL;
    uint32_t low = 0, high = fixed(header + 8);
    const uint8_t *table = header + 12;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (code->frame_header + (uint64_t)(int64_t)(int32_t)fixed(table + 8 * (uint64_t)middle) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return NULL;
    return header + (int64_t)(int32_t)fixed(table + 8 * (uint64_t)(low - 1) + 4);
}

/* Personality and language-specific data are skipped by their encoded sizes; only 4- and 8-byte ones are in use. */
static const uint8_t *skip_pointer(const uint8_t *at, uint8_t encoding) {
    bool is_long = (encoding & 0x07) == 0x04 || (encoding & 0x07) == 0;
    return at + (is_long ? 8 : 4);
}

/* False for anything but what compilers write for x86-64 in .eh_frame. */
static bool parse_common(const uint8_t *at, struct entry *entry) {
    entry->common_end = at + 4 + fixed(at);
    const char *augmentation = (const char *)at + 9;
    if (fixed(at) == UINT32_MAX || fixed(at + 4) != 0 || at[8] != 1 || augmentation[0] != 'z')
        return false;
    at += 9 + strlen(augmentation) + 1;
    entry->code_alignment = unsigned_number(&at);
    entry->data_alignment = signed_number(&at);
    if (*at++ != FRAME_PC)
        return false;
    uint64_t size = unsigned_number(&at);
    entry->common = at + size;
    for (const char *letter = augmentation + 1; *letter; letter++) {
        if (*letter == 'R' && *at++ != SIGNED_DISTANCE)
            return false;
        if (*letter == 'L')
            at++;
        if (*letter == 'P')
            at = skip_pointer(at + 1, *at);
    }
    return true;
}

static bool parse_entry(const uint8_t *at, struct entry *entry) {
    uint32_t length = fixed(at);
    if (length == 0 || length == UINT32_MAX || !parse_common(at + 4 - fixed(at + 4), entry))
        return false;
    entry->own_end = at + 4 + length;
    entry->start = distant(at + 8);
    entry->size = fixed(at + 12);
    at += 16;
    uint64_t size = unsigned_number(&at);
    entry->own = at + size;
    return true;
}

static void set(struct rules *rules, uint64_t number, enum rule_kind kind, int64_t offset, const uint8_t *expression) {
    if (number < FRAME_REGISTERS)
        rules->registers[number] = (struct rule){kind, offset, expression};
}

static void skip_block(const uint8_t **at) {
    uint64_t size = unsigned_number(at);
    *at += size;
}

/* Runs one program as far as `wanted`, the distance from the function's start; false for what is unknown. */
static bool run(const struct entry *entry, const uint8_t *at, const uint8_t *end, uint64_t wanted,
                const struct rules *first, struct rules *rules) {
    struct rules remembered[MOST_REMEMBERED];
    int depth = 0;
    uint64_t here = 0, number;
    while (at < end) {
        uint8_t operation = *at++, low = operation & 0x3f;
        switch (operation & 0xc0) {
        case 0x40: /* advance_loc */
            here += low * entry->code_alignment;
            if (here > wanted)
                return true;
            continue;
        case 0x80: /* offset */
            set(rules, low, AT_OFFSET, (int64_t)unsigned_number(&at) * entry->data_alignment, NULL);
            continue;
        case 0xc0: /* restore */
            if (low < FRAME_REGISTERS)
                rules->registers[low] = first->registers[low];
            continue;
        }
        switch (operation) {
        case 0x00: /* nop */
            break;
        case 0x02: /* advance_loc1, 2, 4 */
            here += *at * entry->code_alignment;
            at += 1;
            break;
        case 0x03:
            here += (uint64_t)(at[0] | at[1] << 8) * entry->code_alignment;
            at += 2;
            break;
        case 0x04:
            here += fixed(at) * entry->code_alignment;
            at += 4;
            break;
        case 0x05: /* offset_extended */
            number = unsigned_number(&at);
            set(rules, number, AT_OFFSET, (int64_t)unsigned_number(&at) * entry->data_alignment, NULL);
            break;
        case 0x06: /* restore_extended */
            number = unsigned_number(&at);
            if (number < FRAME_REGISTERS)
                rules->registers[number] = first->registers[number];
            break;
        case 0x07: /* undefined */
            set(rules, unsigned_number(&at), UNDEFINED, 0, NULL);
            break;
        case 0x08: /* same_value */
            set(rules, unsigned_number(&at), SAME, 0, NULL);
            break;
        case 0x09: /* register */
            number = unsigned_number(&at);
            set(rules, number, IN_REGISTER, (int64_t)unsigned_number(&at), NULL);
            break;
        case 0x0a: /* remember_state */
            if (depth == MOST_REMEMBERED)
                return false;
            remembered[depth++] = *rules;
            break;
        case 0x0b: /* restore_state */
            if (!depth)
                return false;
            *rules = remembered[--depth];
            break;
        case 0x0c: /* def_cfa */
            rules->cfa_register = unsigned_number(&at);
            rules->cfa_offset = (int64_t)unsigned_number(&at);
            rules->cfa_expression = NULL;
            break;
        case 0x0d: /* def_cfa_register */
            rules->cfa_register = unsigned_number(&at);
            break;
        case 0x0e: /* def_cfa_offset */
            rules->cfa_offset = (int64_t)unsigned_number(&at);
            break;
        case 0x0f: /* def_cfa_expression */
            rules->cfa_expression = at;
            skip_block(&at);
            break;
        case 0x10: /* expression, val_expression */
        case 0x16:
            number = unsigned_number(&at);
            set(rules, number, operation == 0x10 ? AT_EXPRESSION : IS_EXPRESSION, 0, at);
            skip_block(&at);
            break;
        case 0x11: /* offset_extended_sf */
            number = unsigned_number(&at);
            set(rules, number, AT_OFFSET, signed_number(&at) * entry->data_alignment, NULL);
            break;
        case 0x12: /* def_cfa_sf, def_cfa_offset_sf */
            rules->cfa_register = unsigned_number(&at);
            rules->cfa_offset = signed_number(&at) * entry->data_alignment;
            rules->cfa_expression = NULL;
            break;
        case 0x13:
            rules->cfa_offset = signed_number(&at) * entry->data_alignment;
            break;
        case 0x14: /* val_offset */
            number = unsigned_number(&at);
            set(rules, number, IS_OFFSET, (int64_t)unsigned_number(&at) * entry->data_alignment, NULL);
            break;
        case 0x2e: /* GNU_args_size */
            unsigned_number(&at);
            break;
        default:
            return false;
        }
        if (here > wanted)
            return true;
    }
    return true;
}

/* Operations that entries for x86-64 use: of a PLT's stubs, of realigned stacks and of signal frames. */
static bool evaluate(const uint8_t *at, const struct frame *frame, const uint64_t *cfa, uint64_t *result) {
    uint64_t stack[STACK_DEPTH];
    int depth = 0;
    uint64_t size = unsigned_number(&at);
    if (cfa)
        stack[depth++] = *cfa;
    for (const uint8_t *end = at + size; at < end;) {
        uint8_t operation = *at++;
        bool is_binary =
            operation == 0x1a || operation == 0x1c || operation == 0x22 || operation == 0x24 || operation == 0x2a;
        if (depth >= STACK_DEPTH - 1 || (is_binary && depth < 2))
            return false;
        uint64_t top = depth ? stack[depth - 1] : 0;
        if (operation >= 0x70 && operation <= 0x80) { /* breg0 to breg16 */
            stack[depth++] = frame->values[operation - 0x70] + (uint64_t)signed_number(&at);
        } else if (operation >= 0x30 && operation <= 0x4f) { /* lit0 to lit31 */
            stack[depth++] = operation - 0x30u;
        } else if (operation == 0x08) { /* const1u */
            stack[depth++] = *at++;
        } else if (operation == 0x09) { /* const1s */
            stack[depth++] = (uint64_t)(int64_t)(int8_t)*at++;
        } else if (operation == 0x10) { /* constu */
            stack[depth++] = unsigned_number(&at);
        } else if (operation == 0x11) { /* consts */
            stack[depth++] = (uint64_t)signed_number(&at);
        } else if (operation == 0x06) { /* deref */
            if (!depth || !code_read(top, &stack[depth - 1], sizeof top))
                return false;
        } else if (operation == 0x23) { /* plus_uconst */
            if (!depth)
                return false;
            stack[depth - 1] += unsigned_number(&at);
        } else if (is_binary) {
            uint64_t other = stack[--depth - 1];
            stack[depth - 1] = operation == 0x1a   ? (other & top)                   /* and */
                               : operation == 0x1c ? other - top                     /* minus */
                               : operation == 0x22 ? other + top                     /* plus */
                               : operation == 0x24 ? other << (top & 63)             /* shl */
                                                   : (int64_t)other >= (int64_t)top; /* ge */
        } else {
            return false;
        }
    }
    if (!depth)
        return false;
    *result = stack[depth - 1];
    return true;
}

static bool apply(const struct rule *rule, int number, const struct frame *frame, uint64_t cfa, struct frame *caller) {
    uint64_t value, address = cfa + (uint64_t)rule->offset;
    switch (rule->kind) {
    case UNDEFINED:
        return true;
    case SAME:
        if (!(frame->known >> number & 1))
            return true;
        value = frame->values[number];
        break;
    case IN_REGISTER:
        if (rule->offset < 0 || rule->offset >= FRAME_REGISTERS || !(frame->known >> rule->offset & 1))
            return true;
        value = frame->values[rule->offset];
        break;
    case IS_OFFSET:
        value = address;
        break;
    case AT_EXPRESSION:
    case IS_EXPRESSION:
        if (!evaluate(rule->expression, frame, &cfa, &address))
            return false;
        value = address;
        if (rule->kind == AT_EXPRESSION && !code_read(address, &value, sizeof value))
            return false;
        break;
    default:
        if (!code_read(address, &value, sizeof value))
            return false;
    }
    caller->values[number] = value;
    caller->known |= 1u << number;
    return true;
}

bool frame_up(struct frame *frame) {
    /* What called is one instruction before where it returns to: a call may be a function's last instruction. */
    uint64_t pc = frame->values[FRAME_PC] - !frame->is_innermost;
    struct place place = code_at(pc);
    struct entry entry;
    struct rules rules = {0}, first;
    const uint8_t *found = place.code ? entry_for(place.code, place.original) : NULL;
    if (!found || !parse_entry(found, &entry) || place.original - entry.start >= entry.size)
        return false;
    if (!run(&entry, entry.common, entry.common_end, UINT64_MAX, &rules, &rules))
        return false;
    first = rules;
    if (!run(&entry, entry.own, entry.own_end, place.original - entry.start, &first, &rules))
        return false;
    uint64_t cfa = 0;
    if (rules.cfa_expression) {
        if (!evaluate(rules.cfa_expression, frame, NULL, &cfa))
            return false;
    } else if (rules.cfa_register < FRAME_REGISTERS && frame->known >> rules.cfa_register & 1) {
        cfa = frame->values[rules.cfa_register] + (uint64_t)rules.cfa_offset;
    }
    if (cfa <= frame->values[FRAME_SP] && !frame->is_innermost)
        return false;
    struct frame caller = {.known = 1u << FRAME_SP};
    caller.values[FRAME_SP] = cfa;
    for (int number = 0; number < FRAME_REGISTERS; number++)
        if (number != FRAME_SP && !apply(&rules.registers[number], number, frame, cfa, &caller))
            return false;
    bool has_caller = rules.registers[FRAME_PC].kind == AT_OFFSET || rules.registers[FRAME_PC].kind == AT_EXPRESSION;
    *frame = caller;
    return has_caller && frame->values[FRAME_PC] != 0;
}
