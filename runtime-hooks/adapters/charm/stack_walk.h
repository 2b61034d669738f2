/*
 * stack_walk.h: the frames of a stack by call frame information (DWARF 5, 6.4; LSB, .eh_frame), in a signal handler.
 *
 * x86-64.  Memory is read as code_read() does, so a broken stack ends the walk and nothing else.
 */
#ifndef CHARM_STACK_WALK_H
#define CHARM_STACK_WALK_H

#include "address_lookup.h"

#define FRAME_REGISTERS 17 /* DWARF numbers of the x86-64 psABI; 16 is the return address */
#define FRAME_SP 7
#define FRAME_PC 16

struct frame {
    uint64_t values[FRAME_REGISTERS];
    uint32_t known;    /* a bit for each register whose value is known */
    bool is_innermost; /* its pc is the next instruction, not one after a call */
};

/* Makes it its caller's frame; false if there is none, or none that the tables lead to. */
bool frame_up(struct frame *frame);

#endif
