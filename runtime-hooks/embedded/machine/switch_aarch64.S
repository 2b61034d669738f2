/*
 * switch_aarch64.S: leaving one user-level thread for another.
 *
 * A context is the stack pointer after the callee-saved registers were stored; aarch64.h describes this layout to
 * debuggers.  The unwind information holds at every instruction, on either stack, since both look alike.
 */
#if defined(__aarch64__)
        .text

/*
 * void context_switch(uint64_t *saved, uint64_t next)
 * Stores the caller's context in *saved (the rank's record in the registry) and goes on in `next`.
 */
        .globl  context_switch
        .hidden context_switch
        .type   context_switch, %function
        .p2align 4
context_switch:
        .cfi_startproc
        hint    #34 /* bti c: a call may lead here */
        sub     sp, sp, #0xb0
        .cfi_adjust_cfa_offset 0xb0
        stp     d8, d9, [sp, #0x00]
        stp     d10, d11, [sp, #0x10]
        stp     d12, d13, [sp, #0x20]
        stp     d14, d15, [sp, #0x30]
        stp     x19, x20, [sp, #0x40]
        .cfi_rel_offset x19, 0x40
        .cfi_rel_offset x20, 0x48
        stp     x21, x22, [sp, #0x50]
        .cfi_rel_offset x21, 0x50
        .cfi_rel_offset x22, 0x58
        stp     x23, x24, [sp, #0x60]
        .cfi_rel_offset x23, 0x60
        .cfi_rel_offset x24, 0x68
        stp     x25, x26, [sp, #0x70]
        .cfi_rel_offset x25, 0x70
        .cfi_rel_offset x26, 0x78
        stp     x27, x28, [sp, #0x80]
        .cfi_rel_offset x27, 0x80
        .cfi_rel_offset x28, 0x88
        stp     x29, x30, [sp, #0x90]
        .cfi_rel_offset x29, 0x90
        .cfi_rel_offset x30, 0x98
        /* A rank's rounding mode and traps are its own, as on other processors. */
        mrs     x9, fpcr
        str     x9, [sp, #0xa0]
        mov     x9, sp
        stlr    x9, [x0] /* who sees the context sees what it leads to */
        mov     sp, x1
        ldr     x9, [sp, #0xa0]
        mrs     x10, fpcr
        cmp     x9, x10
        b.eq    1f
        msr     fpcr, x9
1:      ldp     d8, d9, [sp, #0x00]
        ldp     d10, d11, [sp, #0x10]
        ldp     d12, d13, [sp, #0x20]
        ldp     d14, d15, [sp, #0x30]
        ldp     x19, x20, [sp, #0x40]
        .cfi_restore x19
        .cfi_restore x20
        ldp     x21, x22, [sp, #0x50]
        .cfi_restore x21
        .cfi_restore x22
        ldp     x23, x24, [sp, #0x60]
        .cfi_restore x23
        .cfi_restore x24
        ldp     x25, x26, [sp, #0x70]
        .cfi_restore x25
        .cfi_restore x26
        ldp     x27, x28, [sp, #0x80]
        .cfi_restore x27
        .cfi_restore x28
        ldp     x29, x30, [sp, #0x90]
        .cfi_restore x29
        .cfi_restore x30
        add     sp, sp, #0xb0
        .cfi_adjust_cfa_offset -0xb0
        ret
        .cfi_endproc
        .size   context_switch, . - context_switch

/*
 * The outermost frame of every rank: calls the function that machine_first_frame() left in x19 with the argument in
 * x20.  Its return address is undefined, which is where unwinders end.
 */
        .globl  rank_entry
        .type   rank_entry, %function
        .p2align 4
rank_entry:
        .cfi_startproc
        .cfi_undefined x30
        .cfi_undefined x29
        hint    #36 /* bti j */
        mov     x29, xzr
        mov     x30, xzr
        mov     x0, x20
        blr     x19
        brk     #1
        .cfi_endproc
        .size   rank_entry, . - rank_entry
        .globl  rank_entry_end
        .hidden rank_entry_end
rank_entry_end:
#endif

        .section .note.GNU-stack, "", %progbits
