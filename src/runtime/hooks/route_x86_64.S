/*
 * route - dlsym, dlvsym and dlopen as programs enter them (x86-64)
 *
 * The C library's dlsym looks at its return address to know which library asks for RTLD_NEXT. So a
 * name that we do not answer is passed on by a jump, not a call. We never answer RTLD_NEXT: the C
 * library gives our export to a library in front of us, and a later library's function to one
 * behind us.
 *
 * In: rdi handle, rsi name, rdx version (dlvsym). All three are kept for the jump. At entry the
 * stack is 8 off a multiple of 16; three pushes align it for a call.
 */
#define RTLD_NEXT -1

.macro ENTRY name, ours, find_real
	.globl \name
	.hidden \name
	.type \name, @function
\name:
	endbr64
	cmpq $RTLD_NEXT, %rdi
	je 1f
	testq %rsi, %rsi
	jz 1f
	cmpb $'c', (%rsi)
	je 4f
	cmpb $'n', (%rsi)
	jne 1f
	cmpb $'v', 1(%rsi)
	je 2f
	jmp 1f
4:	cmpb $'u', 1(%rsi)
	je 2f
1:	/* Not ours. */
	pushq %rdi
	pushq %rsi
	pushq %rdx
	call \find_real
	popq %rdx
	popq %rsi
	popq %rdi
	testq %rax, %rax
	jz 3f
	jmpq *%rax
2:	/* Perhaps ours. */
	pushq %rdi
	pushq %rsi
	pushq %rdx
	movq %rsi, %rdi
	call sl_route_knows
	popq %rdx
	popq %rsi
	popq %rdi
	testb %al, %al
	jz 1b
	jmp \ours
3:	ret
	.size \name, . - \name
.endm

	.text
	ENTRY sl_entry_dlsym, sl_route_dlsym, sl_route_real_dlsym
	ENTRY sl_entry_dlvsym, sl_route_dlvsym, sl_route_real_dlvsym

/*
 * dlopen searches the RUNPATH of its caller, which it finds by the return address. So this entry
 * jumps, too. In: rdi file, esi flags, from which RTLD_DEEPBIND may be removed (route.h).
 */
	.globl sl_entry_dlopen
	.hidden sl_entry_dlopen
	.type sl_entry_dlopen, @function
sl_entry_dlopen:
	endbr64
	pushq %rdi
	subq $16, %rsp
	movl %esi, %edi
	call sl_route_open_flags
	movl %eax, (%rsp)
	call sl_route_real_dlopen
	movl (%rsp), %esi
	addq $16, %rsp
	popq %rdi
	testq %rax, %rax
	jz 5f
	jmpq *%rax
5:	ret
	.size sl_entry_dlopen, . - sl_entry_dlopen

/* Under both versions that programs may have been linked with. */
.macro EXPORT alias, target, version
	.globl \alias
	.type \alias, @function
	.set \alias, \target
	.symver \alias, \version, remove
.endm
	EXPORT sl_dlsym_old, sl_entry_dlsym, dlsym@GLIBC_2.2.5
	EXPORT sl_dlsym_new, sl_entry_dlsym, dlsym@@GLIBC_2.34
	EXPORT sl_dlvsym_old, sl_entry_dlvsym, dlvsym@GLIBC_2.2.5
	EXPORT sl_dlvsym_new, sl_entry_dlvsym, dlvsym@@GLIBC_2.34
	EXPORT sl_dlopen_old, sl_entry_dlopen, dlopen@GLIBC_2.2.5
	EXPORT sl_dlopen_new, sl_entry_dlopen, dlopen@@GLIBC_2.34

	.section .note.GNU-stack, "", @progbits
