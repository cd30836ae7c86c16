/*
 * embed - both images of the hash's kernel as bytes of libsluice.so
 *
 * The build makes the host module first; meson.build puts its path and that of the PTX here.
 */
	.section .rodata
	.balign 64
	.globl sl_hash_host_image
	.hidden sl_hash_host_image
sl_hash_host_image:
	.incbin HASH_HOST_IMAGE
	.byte 0
	.balign 64
	.globl sl_hash_ptx_image
	.hidden sl_hash_ptx_image
sl_hash_ptx_image:
	.incbin HASH_PTX_IMAGE
	.byte 0
	.section .note.GNU-stack, "", %progbits
