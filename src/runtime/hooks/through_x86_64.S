/*
 * through - one trampoline per function that is passed through the door (x86-64)
 *
 * In: any arguments, in registers and up to WORDS words on the stack, which are copied whether the
 * function has them or not. At entry the stack is 8 off a multiple of 16.
 */
#define WORDS  12
#define CALLS  4 /* offset in struct sl_gate_thread */
#define CLOSED 5 /* SL_GATE_FENCED | SL_GATE_DOOR */

	.hidden sl_gate_word
	.hidden sl_through_slots
	.hidden sl_through_enter

	.text
/* In: eax the number of the function. Inside: rbx the thread's record or 0, r11 the driver's
 * function. */
	.p2align 4
	.type through, @function
through:
	.cfi_startproc
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq %rbx
	.cfi_offset %rbx, -24
	subq $(8 * WORDS + 8), %rsp
	leaq sl_through_slots(%rip), %r11
	movq (%r11, %rax, 8), %r11
	testq %r11, %r11
	jz 2f
	movq sl_door_self@gottpoff(%rip), %r10
	movq %fs:(%r10), %rbx
	testq %rbx, %rbx
	jz 2f
	/* As sl_door_enter(). */
	incl CALLS(%rbx)
	testl $CLOSED, sl_gate_word(%rip)
	jnz 1f
0:	.set word, 0
	.rept WORDS / 2
	movups 16 + word(%rbp), %xmm8
	movups %xmm8, word(%rsp)
	.set word, word + 16
	.endr
	call *%r11
	testq %rbx, %rbx
	jz 3f
	decl CALLS(%rbx)
3:	movq -8(%rbp), %rbx
	.cfi_remember_state
	leave
	.cfi_restore %rbx
	.cfi_restore %rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_restore_state
1:	decl CALLS(%rbx)
2:	pushq %rdi
	pushq %rsi
	pushq %rdx
	pushq %rcx
	pushq %r8
	pushq %r9
	subq $128, %rsp
	.set word, 0
	.irp register, 0, 1, 2, 3, 4, 5, 6, 7
	movups %xmm\register, word(%rsp)
	.set word, word + 16
	.endr
	movl %eax, %edi
	call sl_through_enter
	movq %rax, %rbx
	movq %rdx, %r11
	.set word, 0
	.irp register, 0, 1, 2, 3, 4, 5, 6, 7
	movups word(%rsp), %xmm\register
	.set word, word + 16
	.endr
	addq $128, %rsp
	popq %r9
	popq %r8
	popq %rcx
	popq %rdx
	popq %rsi
	popq %rdi
	jmp 0b
	.cfi_endproc
	.size through, . - through

/* 16 bytes each, side by side, in the order of the rows (through.c). */
	.p2align 4
	.globl sl_through_trampolines
	.hidden sl_through_trampolines
sl_through_trampolines:
	.set number, 0
.macro THROUGH symbol
	.p2align 4
	.globl \symbol
	.type \symbol, @function
\symbol:
	.cfi_startproc
	endbr64
	movl $number, %eax
	jmp through
	.cfi_endproc
	.size \symbol, . - \symbol
	.set number, number + 1
.endm
#define SL_HOW(class, text)
#define SL_WHY(word, text)
#define SL_DIRECT(symbol, word)
#define SL_THROUGH(symbol, word) THROUGH symbol
#include "runtime/real/entry-points.def"

	.section .note.GNU-stack, "", @progbits
