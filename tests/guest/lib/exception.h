/* SPDX-License-Identifier: MIT */
/*
 * Exceptions and interrupts.
 *
 * The IRQ handler acknowledges by ICC_IAR1, the FIQ handler by ICC_IAR0. Each
 * records what it got, calls what the test has set for that INTID, ends the
 * interrupt (and deactivates it with EOImode=1, but for an LPI, which is never
 * active) and counts it in cpu->handled[].
 */
#ifndef GUEST_EXCEPTION_H
#define GUEST_EXCEPTION_H

#include "smp.h"

#define ESR_EC(esr)  (((esr) >> 26) & 0x3f)
#define ESR_ISS(esr) ((esr)&0x1ffffff)
#define EC_UNKNOWN   0x00u
#define EC_SVC64     0x15u

struct exception_frame {
	uint64_t x[31];
	uint64_t elr;
	uint64_t spsr;
	uint64_t esr;
	uint64_t far;
	uint64_t unused;
};

enum vector {
	VECTOR_SYNC = 4, /* current EL with SP_ELx */
	VECTOR_IRQ = 5,
	VECTOR_FIQ = 6,
};

/* Runs between the acknowledge and the end of interrupt, with interrupts masked; it may unmask them. */
typedef void interrupt_handler(uint32_t intid);

/* For all CPUs; NULL: nothing is done. */
void set_interrupt_handler(uint32_t intid, interrupt_handler *handler);

/* Forget all handlers, counts and records. Interrupts must be masked on all CPUs. */
void reset_interrupt_records(void);

/* How often the handlers of one CPU, and of all, have handled @intid. LPIs from LPI_FIRST + NUM_COUNTED_LPIS on do not count. */
uint32_t handled_by(unsigned cpu, uint32_t intid);
uint32_t handled_by_all(uint32_t intid);

/*
 * The next synchronous exception of this CPU is recorded in cpu->exception_esr and _elr, and the instruction is skipped.
 * Every other one ends the program.
 */
void exception_arm(void);
/* Did it come? */
bool exception_was_taken(void);

void handle_exception(struct exception_frame *frame, uint64_t vector);

#endif
