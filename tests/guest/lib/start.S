/* SPDX-License-Identifier: MIT */
/*
 * Where CPUs begin: the boot CPU by the loader at the image's first byte, the
 * others by PSCI CPU_ON at secondary_start. Both arrive at EL1 with the MMU off
 * and interrupts masked, get their stack and their struct cpu, and go on in C.
 */

	.section .head, "ax"

	/* The header of an arm64 Image: loaders want it to pass a device tree in x0. */
	.global image_header
image_header:
	b	boot_start			/* code0 */
	.word	0				/* code1 */
	.quad	0x80000				/* text_offset from the start of RAM */
	.quad	image_size
	.quad	2				/* flags: little-endian, 4 KiB pages */
	.quad	0, 0, 0
	.ascii	"ARM\x64"
	.word	0

	.text

boot_start:
	mov	x19, x0				/* the device tree */

	ldr	x0, =bss_start
	ldr	x1, =bss_end
1:	cmp	x0, x1
	b.hs	2f
	str	xzr, [x0], #8
	b	1b

2:	ldr	x0, =cpus			/* the boot CPU is cpus[0] */
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
	ldr	x1, =vector_table
	msr	vbar_el1, x1
	msr	spsel, #1
	ldr	x1, [x0]
	cbnz	x1, 1f
	ldr	x1, =boot_stack_top		/* .bss was just cleared: the boot CPU has no other yet */
1:	mov	sp, x1
	isb
	ret

	.bss
	.balign 16
	.skip	0x8000
boot_stack_top:
