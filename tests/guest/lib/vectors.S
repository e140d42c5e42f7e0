/* SPDX-License-Identifier: MIT */
/*
 * The exception vectors. Each saves the whole interrupted context on the stack
 * of its CPU, so that handlers may unmask interrupts and nest, and calls
 * handle_exception(frame, vector) in exception.c.
 */

	.equ	FRAME_SIZE, 288			/* struct exception_frame */

	.macro	vector number
	.balign	0x80
	sub	sp, sp, #FRAME_SIZE
	stp	x0, x1, [sp]
	mov	x1, #\number
	b	enter_exception
	.endm

	.text
	.balign	0x800
	.global vector_table
vector_table:
	/* Numbers as in enum vector: 4 x {SP_EL0, SP_ELx, lower EL AArch64, lower EL AArch32} x {sync, IRQ, FIQ, SError} */
	vector	0
	vector	1
	vector	2
	vector	3
	vector	4
	vector	5
	vector	6
	vector	7
	vector	8
	vector	9
	vector	10
	vector	11
	vector	12
	vector	13
	vector	14
	vector	15

	.balign	0x80
enter_exception:
	stp	x2, x3, [sp, #16 * 1]
	stp	x4, x5, [sp, #16 * 2]
	stp	x6, x7, [sp, #16 * 3]
	stp	x8, x9, [sp, #16 * 4]
	stp	x10, x11, [sp, #16 * 5]
	stp	x12, x13, [sp, #16 * 6]
	stp	x14, x15, [sp, #16 * 7]
	stp	x16, x17, [sp, #16 * 8]
	stp	x18, x19, [sp, #16 * 9]
	stp	x20, x21, [sp, #16 * 10]
	stp	x22, x23, [sp, #16 * 11]
	stp	x24, x25, [sp, #16 * 12]
	stp	x26, x27, [sp, #16 * 13]
	stp	x28, x29, [sp, #16 * 14]
	mrs	x2, elr_el1
	stp	x30, x2, [sp, #16 * 15]
	mrs	x2, spsr_el1
	mrs	x3, esr_el1
	stp	x2, x3, [sp, #16 * 16]
	mrs	x2, far_el1
	str	x2, [sp, #16 * 17]

	mov	x0, sp
	bl	handle_exception

	ldp	x30, x2, [sp, #16 * 15]
	msr	elr_el1, x2
	ldr	x2, [sp, #16 * 16]
	msr	spsr_el1, x2
	ldp	x28, x29, [sp, #16 * 14]
	ldp	x26, x27, [sp, #16 * 13]
	ldp	x24, x25, [sp, #16 * 12]
	ldp	x22, x23, [sp, #16 * 11]
	ldp	x20, x21, [sp, #16 * 10]
	ldp	x18, x19, [sp, #16 * 9]
	ldp	x16, x17, [sp, #16 * 8]
	ldp	x14, x15, [sp, #16 * 7]
	ldp	x12, x13, [sp, #16 * 6]
	ldp	x10, x11, [sp, #16 * 5]
	ldp	x8, x9, [sp, #16 * 4]
	ldp	x6, x7, [sp, #16 * 3]
	ldp	x4, x5, [sp, #16 * 2]
	ldp	x2, x3, [sp, #16 * 1]
	ldp	x0, x1, [sp], #FRAME_SIZE
	eret
