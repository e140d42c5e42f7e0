/* SPDX-License-Identifier: MIT */
/*
 * uint64_t sum_while_interrupted(uint64_t sgi_value, uint64_t rounds)
 *
 * For the test registers_survive_interrupts in vectors.c: x5 to x28 hold their own
 * numbers, the carry flag is set, an SGI to this CPU interrupts, and all is summed.
 */

	.text
	.global sum_while_interrupted
sum_while_interrupted:
	stp	x29, x30, [sp, #-96]!
	stp	x19, x20, [sp, #16]
	stp	x21, x22, [sp, #32]
	stp	x23, x24, [sp, #48]
	stp	x25, x26, [sp, #64]
	stp	x27, x28, [sp, #80]
	mov	x2, #0				/* the sum */

	.irp	n, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28
	mov	x\n, #\n
	.endr

1:	cmp	xzr, xzr			/* sets the carry flag */
	msr	S3_0_C12_C11_5, x0		/* ICC_SGI1R_EL1 */
	isb
	b	2f				/* emulators deliver between blocks */
2:	nop
	b	3f
3:	adc	x2, x2, xzr
	.irp	n, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28
	add	x2, x2, x\n
	.endr
	sub	x1, x1, #1
	cbnz	x1, 1b

	mov	x0, x2
	ldp	x27, x28, [sp, #80]
	ldp	x25, x26, [sp, #64]
	ldp	x23, x24, [sp, #48]
	ldp	x21, x22, [sp, #32]
	ldp	x19, x20, [sp, #16]
	ldp	x29, x30, [sp], #96
	ret
