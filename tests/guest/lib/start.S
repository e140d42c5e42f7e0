/* SPDX-License-Identifier: MIT */
/*
 * Where CPUs begin: the boot CPU by the loader at the image's first byte, the
 * others by PSCI CPU_ON at secondary_start. Both arrive at EL1 with the MMU off
 * and interrupts masked, get their stack and their struct cpu, and go on in C.
 */

	.equ	R_AARCH64_RELATIVE, 1027

	.macro	address_of register, symbol
	adrp	\register, \symbol
	add	\register, \register, :lo12:\symbol
	.endm

	.section .head, "ax"

	/* The header of an arm64 Image: loaders want it to pass a device tree in x0. */
	.global image_header
	.hidden image_end
image_header:
	b	boot_start			/* code0 */
	.word	0				/* code1 */
	.quad	0x80000				/* text_offset from a multiple of 2 MiB */
	.quad	image_end - image_header
	.quad	0xa				/* flags: little-endian, 4 KiB pages, anywhere in memory */
	.quad	0, 0, 0
	.ascii	"ARM\x64"
	.word	0

	.text

boot_start:
	mov	x19, x0				/* the device tree */

	/* Pointers in the image were linked for address 0. */
	address_of x0, rela_start
	address_of x1, rela_end
	address_of x2, image_header
1:	cmp	x0, x1
	b.hs	2f
	ldp	x3, x4, [x0], #16		/* r_offset, r_info */
	ldr	x5, [x0], #8			/* r_addend */
	cmp	x4, #R_AARCH64_RELATIVE
	b.ne	hang				/* the linker makes no others of programs like these */
	add	x5, x5, x2
	str	x5, [x2, x3]
	b	1b

2:	address_of x0, bss_start
	address_of x1, bss_end
3:	cmp	x0, x1
	b.hs	4f
	str	xzr, [x0], #8
	b	3b

4:	address_of x0, cpus			/* the boot CPU is cpus[0] */
	bl	set_up_cpu
	mov	x0, x19
	bl	boot_main
	b	hang

	/* x0: the struct cpu that CPU_ON was given as its context. */
	.global secondary_start
secondary_start:
	bl	set_up_cpu
	bl	secondary_main

hang:
	wfi
	b	hang

	/* x0: struct cpu; its first member is the top of the stack. Keeps x19. */
set_up_cpu:
	msr	daifset, #15
	msr	tpidr_el1, x0
	address_of x1, vector_table
	msr	vbar_el1, x1
	msr	spsel, #1
	ldr	x1, [x0]
	cbnz	x1, 1f
	address_of x1, boot_stack_top		/* .bss was just cleared: the boot CPU has no other yet */
1:	mov	sp, x1
	isb
	ret

	.bss
	.balign 16
	.skip	0x8000
boot_stack_top:
