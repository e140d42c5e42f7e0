/* SPDX-License-Identifier: MIT */
/*
 * payload.S - what a vCPU of the oracle runs: one request after the other.
 *
 * x19 is the vCPU's mailbox, x21 where the results of a sweep go, x20 an address
 * where there is nothing: the store to it returns to the host, which has read the answer and put the next request into
 * the mailbox when the vCPU runs again. Interrupts are masked all the time; the
 * MMU is off. struct mailbox in target_kvm.c has the same layout.
 */
	.arch	armv8-a

#define MAILBOX_OP      0	/* offset of the handler from payload_ops */
#define MAILBOX_ADDRESS 8
#define MAILBOX_VALUE   16
#define MAILBOX_RESULT  24
#define MAILBOX_ESR     32	/* of an exception, or 0 */
#define MAILBOX_COUNT   40

	.section .rodata
	.balign	2048
	.global	payload_begin, payload_end, payload_entry

payload_begin:
	/* Exception vectors; only synchronous ones can come: skip the instruction, and say which it was. */
	.balign	2048
	.skip	0x200
	mrs	x9, esr_el1
	str	x9, [x19, #MAILBOX_ESR]
	mrs	x9, elr_el1
	add	x9, x9, #4
	msr	elr_el1, x9
	eret
	.balign	2048

payload_entry:
	adr	x9, payload_begin
	msr	vbar_el1, x9
	isb
1:	str	xzr, [x19, #MAILBOX_ESR]
	ldr	x9, [x19, #MAILBOX_OP]
	ldr	x1, [x19, #MAILBOX_ADDRESS]
	ldr	x0, [x19, #MAILBOX_VALUE]
	ldr	x2, [x19, #MAILBOX_COUNT]
	adr	x10, payload_ops
	add	x10, x10, x9
	dsb	sy
	blr	x10
	dsb	sy
	isb
	str	x0, [x19, #MAILBOX_RESULT]
	dsb	sy
	str	wzr, [x20]
	b	1b

	/* Eight bytes each. Loads and stores of 1, 2, 4 and 8 bytes, the lines, then each register's read and write. */
	.balign	8
payload_ops:
	ldrb	w0, [x1]
	ret
	ldrh	w0, [x1]
	ret
	ldr	w0, [x1]
	ret
	ldr	x0, [x1]
	ret
	strb	w0, [x1]
	ret
	strh	w0, [x1]
	ret
	str	w0, [x1]
	ret
	str	x0, [x1]
	ret
	mrs	x0, isr_el1
	ret
	/* enum sysreg. Write-only ones are read, and read-only ones written, on purpose. */
	.irp	reg, s3_0_c4_c6_0, s3_0_c12_c8_0, s3_0_c12_c8_1, s3_0_c12_c8_2, s3_0_c12_c8_3, s3_0_c12_c8_4, s3_0_c12_c8_5, \
		s3_0_c12_c9_0, s3_0_c12_c9_1, s3_0_c12_c11_1, s3_0_c12_c11_3, s3_0_c12_c11_5, s3_0_c12_c11_6, \
		s3_0_c12_c11_7, s3_0_c12_c12_0, s3_0_c12_c12_1, s3_0_c12_c12_2, s3_0_c12_c12_3, s3_0_c12_c12_4, \
		s3_0_c12_c12_5, s3_0_c12_c12_6, s3_0_c12_c12_7
	mrs	x0, \reg
	ret
	msr	\reg, x0
	ret
	.endr
	b	sweep
	nop
	b	flood
	nop
	b	spin
	nop

	/* Plain loads and stores: the hypervisor gets no syndrome for those that also change the address register. */
sweep:
	mov	x3, x21
1:	cbz	x2, 2f
	ldr	w4, [x1]
	str	w4, [x3]
	add	x1, x1, #4
	add	x3, x3, #4
	sub	x2, x2, #1
	b	1b
2:	ret

flood:
	cbz	x2, 2b
	str	w0, [x1]
	add	x1, x1, #4
	sub	x2, x2, #1
	b	flood

	/* Until the host takes the vCPU out and puts it elsewhere. */
spin:
	mov	x4, #1
	str	x4, [x19, #MAILBOX_RESULT]
1:	b	1b
payload_end:
	.section .note.GNU-stack, "", %progbits
