/*
 * embed - both images of the kernels as bytes of the program
 *
 * The host module is built just before; meson.build puts its path and that of the PTX here.
 */
	.section .rodata
	.balign 64
	.globl prog_host_image
	.globl prog_host_image_end
prog_host_image:
	.incbin PROG_HOST_IMAGE
prog_host_image_end:
	.byte 0
	.globl prog_ptx_image
prog_ptx_image:
	.incbin PROG_PTX_IMAGE
	.byte 0
	.section .note.GNU-stack, "", %progbits
