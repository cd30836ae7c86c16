/* embed - the beginning of every C text made from PTX; meson.build puts the files' paths here. */
	.section .rodata
	.globl sl_ptx_prelude
	.hidden sl_ptx_prelude
sl_ptx_prelude:
	.incbin HOSTMODULE_TEXT
	.incbin DEVICE_TEXT
	.byte 0
	.section .note.GNU-stack, "", %progbits
