/* SPDX-License-Identifier: MIT */
/* The C side of vectors.S: dispatches interrupts to the tests' handlers and keeps the records that they look at. */
#include "exception.h"

#include "gic.h"
#include "tap.h"
#include "uart.h"

/*
 * An interrupt that nobody quiets (a level that stays high, say) would keep the CPU in its handler for ever. Far above
 * what any test provokes; then the program ends.
 */
#define STORM_LIMIT 100000u

static interrupt_handler *volatile handlers[NUM_COUNTED];

/* The place of an interrupt in handlers[] and cpu->handled[]; NUM_COUNTED if it has none. */
static unsigned place_of(uint32_t intid)
{
	if (intid < NUM_INTIDS)
		return intid;
	if (intid >= LPI_FIRST && intid < LPI_FIRST + NUM_COUNTED_LPIS)
		return NUM_INTIDS + (intid - LPI_FIRST);
	return NUM_COUNTED;
}

void set_interrupt_handler(uint32_t intid, interrupt_handler *handler)
{
	if (place_of(intid) == NUM_COUNTED)
		tap_bail_out("no place for a handler of this LPI");
	handlers[place_of(intid)] = handler;
	dsb();
}

void reset_interrupt_records(void)
{
	for (unsigned i = 0; i < NUM_COUNTED; i++)
		handlers[i] = NULL;
	for (unsigned c = 0; c < num_cpus; c++) {
		struct cpu *cpu = &cpus[c];

		cpu->depth = 0;
		cpu->spurious = 0;
		cpu->num_records = 0;
		for (unsigned i = 0; i < NUM_COUNTED; i++)
			cpu->handled[i] = 0;
	}
	dsb();
}

uint32_t handled_by(unsigned cpu, uint32_t intid)
{
	const unsigned place = place_of(intid);

	return place < NUM_COUNTED ? cpus[cpu].handled[place] : 0;
}

uint32_t handled_by_all(uint32_t intid)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < num_cpus; i++)
		sum += handled_by(i, intid);
	return sum;
}

void exception_arm(void)
{
	this_cpu()->exception_expected = true;
}

bool exception_was_taken(void)
{
	return !this_cpu()->exception_expected;
}

static void record_interrupt(struct cpu *cpu, unsigned group, uint32_t intid)
{
	uint32_t n = cpu->num_records;

	if (n == MAX_RECORDS)
		return;
	cpu->records[n] = (struct interrupt_record){
		.intid = (uint16_t)intid,
		.group = (uint8_t)group,
		.depth = (uint8_t)cpu->depth,
		.running_priority = (uint8_t)gic_running_priority(),
	};
	dsb();
	cpu->num_records = n + 1;
}

static void handle_interrupt(unsigned group)
{
	struct cpu *cpu = this_cpu();
	uint32_t intid = gic_acknowledge(group);
	const unsigned place = place_of(intid);

	if (intid >= NUM_INTIDS && intid < LPI_FIRST) {
		if (++cpu->spurious == STORM_LIMIT)
			tap_bail_out("an interrupt is signalled for ever, but there is nothing to acknowledge");
		return;
	}
	cpu->depth++;
	record_interrupt(cpu, group, intid);
	if (place < NUM_COUNTED && handlers[place])
		handlers[place](intid);
	mask_all();
	cpu->depth--;
	gic_end(group, intid);
	if (gic_has_split_eoi() && intid < NUM_INTIDS)
		gic_deactivate_by_dir(intid);
	dsb();
	if (place < NUM_COUNTED && ++cpu->handled[place] == STORM_LIMIT)
		tap_bail_out("an interrupt comes for ever");
}

static bool handle_expected_exception(struct exception_frame *frame)
{
	struct cpu *cpu = this_cpu();

	if (!cpu->exception_expected)
		return false;
	cpu->exception_esr = frame->esr;
	cpu->exception_elr = frame->elr;
	cpu->exception_expected = false;
	if (ESR_EC(frame->esr) != EC_SVC64) /* an SVC returns behind itself already */
		frame->elr += 4;
	return true;
}

void handle_exception(struct exception_frame *frame, uint64_t vector)
{
	if (vector == VECTOR_IRQ) {
		handle_interrupt(GROUP1);
		return;
	}
	if (vector == VECTOR_FIQ) {
		handle_interrupt(GROUP0);
		return;
	}
	if (vector == VECTOR_SYNC && handle_expected_exception(frame))
		return;
	uart_printf("# CPU %u: unexpected exception, vector %lu: ESR %#lx ELR %#lx FAR %#lx SPSR %#lx\n",
		    this_cpu()->index, vector, frame->esr, frame->elr, frame->far, frame->spsr);
	tap_bail_out("unexpected exception");
}
