/*
 * switch_x86_64.S: leaving one user-level thread for another.
 *
 * A context is the stack pointer after the callee-saved registers were pushed; x86_64.h describes this layout to
 * debuggers.  The unwind information holds at every instruction, on either stack, since both look alike.
 */
#if defined(__x86_64__)
        .text

/*
 * void context_switch(uint64_t *saved, uint64_t next)
 * Stores the caller's context in *saved (the rank's record in the registry) and goes on in `next`.
 */
        .globl  context_switch
        .hidden context_switch
        .type   context_switch, @function
        .p2align 4
context_switch:
        .cfi_startproc
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r15, 0
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        /* The psABI makes these two control words callee-saved: a rank's rounding mode and traps are its own. */
        stmxcsr (%rsp)
        fnstcw  4(%rsp)
        movq    %rsp, (%rdi)
        movq    %rsi, %rsp
        ldmxcsr (%rsp)
        fldcw   4(%rsp)
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r15
        popq    %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r14
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r12
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbp
        ret
        .cfi_endproc
        .size   context_switch, . - context_switch

/*
 * The outermost frame of every rank: calls the function that machine_first_frame() left in r12 with the argument in r13.  Its
 * return address is undefined, which is where unwinders end.
 */
        .globl  rank_entry
        .type   rank_entry, @function
        .p2align 4
rank_entry:
        .cfi_startproc
        .cfi_undefined %rip
        .cfi_undefined %rbp
        xorl    %ebp, %ebp
        movq    %r13, %rdi
        call    *%r12
        ud2
        .cfi_endproc
        .size   rank_entry, . - rank_entry
        .globl  rank_entry_end
        .hidden rank_entry_end
rank_entry_end:
#endif

        .section .note.GNU-stack, "", @progbits
