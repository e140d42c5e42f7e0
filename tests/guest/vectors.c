/* SPDX-License-Identifier: MIT */
/*
 * The machine itself: CPUs and redistributors agree, and exceptions of each kind
 * arrive at their vector with the interrupted program intact.
 */
#include "test.h"

static bool has_redistributor(uint64_t mpidr)
{
	for (unsigned i = 0; i < num_redistributors; i++)
		if (redistributors[i].mpidr == mpidr)
			return true;
	return false;
}

static void device_tree_and_redistributors_name_the_same_cpus(void)
{
	EXPECT_EQ(num_redistributors, machine.num_cpus);
	for (unsigned i = 0; i < machine.num_cpus; i++)
		EXPECT(has_redistributor(machine.cpu_mpidr[i]));
	for (unsigned i = 1; i < num_cpus; i++) {
		EXPECT(cpus[i].online);
		EXPECT_EQ(psci_affinity_info(cpus[i].mpidr), PSCI_AFFINITY_ON);
	}
}

static void last_redistributor_is_the_last_of_its_region(void)
{
	SKIP_UNLESS(machine.num_redist_regions == 1, "several regions of redistributors");
	for (unsigned i = 0; i < num_redistributors; i++) {
		uint64_t typer = mmio_read64(redistributors[i].frame + GICR_TYPER);

		EXPECT_EQ(redistributors[i].frame, machine.redist_base[0] + i * GICR_STRIDE);
		EXPECT_EQ(!!(typer & GICR_TYPER_LAST), i == num_redistributors - 1);
	}
}

static uint64_t read_mpidr(uint64_t unused)
{
	(void)unused;
	return read_sysreg(mpidr_el1) & MPIDR_AFFINITY;
}

static void redistributor_affinity_is_the_cpus_mpidr(void)
{
	for (unsigned i = 0; i < num_cpus; i++)
		EXPECT_EQ(smp_call(i, read_mpidr, 0), cpus[i].mpidr);
}

static uint32_t processor_number(unsigned redistributor)
{
	return GICR_TYPER_PROCESSOR(mmio_read64(redistributors[redistributor].frame + GICR_TYPER));
}

static void processor_numbers_are_unique(void)
{
	for (unsigned i = 0; i < num_redistributors; i++)
		for (unsigned k = 0; k < i; k++)
			EXPECT(processor_number(i) != processor_number(k));
}

static void distributor_has_one_security_state(void)
{
	EXPECT_EQ(gicd_read(GICD_CTLR), GICD_CTLR_DS | GICD_CTLR_ARE | GICD_CTLR_ENABLE_GRP1 | GICD_CTLR_ENABLE_GRP0);
	EXPECT(gic_num_intids() >= 64);
	EXPECT(gic_num_intids() > SPI_H);
}

static void svc_reaches_the_synchronous_vector(void)
{
	uint64_t after;

	exception_arm();
	__asm__ volatile("svc #0x1234\n\tadr %0, ." : "=r"(after) : : "memory");
	EXPECT(exception_was_taken());
	EXPECT_EQ(ESR_EC(cpus[0].exception_esr), EC_SVC64);
	EXPECT_EQ(ESR_ISS(cpus[0].exception_esr), 0x1234);
	EXPECT_EQ(cpus[0].exception_elr, after);
}

static void undefined_instruction_reaches_the_synchronous_vector(void)
{
	uint64_t after;

	exception_arm();
	__asm__ volatile("udf #7\n\tadr %0, ." : "=r"(after) : : "memory");
	EXPECT(exception_was_taken());
	EXPECT_EQ(ESR_EC(cpus[0].exception_esr), EC_UNKNOWN);
	EXPECT_EQ(cpus[0].exception_elr, after - 4);
}

/* Run one access to a system register that must be UNDEFINED. */
#define EXPECT_UNDEFINED(access)                                                                                       \
	do {                                                                                                           \
		exception_arm();                                                                                       \
		access;                                                                                                \
		isb();                                                                                                 \
		EXPECT(exception_was_taken());                                                                         \
		EXPECT_EQ(ESR_EC(cpus[0].exception_esr), EC_UNKNOWN);                                                  \
	} while (0)

static void reads_of_write_only_registers_are_undefined(void)
{
	EXPECT_UNDEFINED((void)read_sysreg(ICC_EOIR0));
	EXPECT_UNDEFINED((void)read_sysreg(ICC_EOIR1));
	EXPECT_UNDEFINED((void)read_sysreg(ICC_DIR));
	EXPECT_UNDEFINED((void)read_sysreg(ICC_SGI1R));
	EXPECT_UNDEFINED((void)read_sysreg(ICC_ASGI1R));
	EXPECT_UNDEFINED((void)read_sysreg(ICC_SGI0R));
}

static void writes_of_read_only_registers_are_undefined(void)
{
	EXPECT_UNDEFINED(write_sysreg(ICC_IAR0, 0));
	EXPECT_UNDEFINED(write_sysreg(ICC_IAR1, 0));
	EXPECT_UNDEFINED(write_sysreg(ICC_HPPIR0, 0));
	EXPECT_UNDEFINED(write_sysreg(ICC_HPPIR1, 0));
	EXPECT_UNDEFINED(write_sysreg(ICC_RPR, 0));
}

/* An interrupt to this CPU, once in each group; @group selects the vector. */
static void interrupt_reaches_its_vector(unsigned group)
{
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	gic_set_group(0, SPI_A, group);
	unmask_all();
	gic_set_pending(0, SPI_A);
	EXPECT(WAIT_FOR(cpus[0].handled[SPI_A] == 1));
	EXPECT_EQ(cpus[0].num_records, 1);
	EXPECT_EQ(cpus[0].records[0].intid, SPI_A);
	EXPECT_EQ(cpus[0].records[0].group, group);
	EXPECT_EQ(cpus[0].spurious, 0);
}

static void group_1_reaches_the_irq_vector(void)
{
	interrupt_reaches_its_vector(GROUP1);
}

static void group_0_reaches_the_fiq_vector(void)
{
	interrupt_reaches_its_vector(GROUP0);
}

static void masked_irq_waits_until_it_is_unmasked(void)
{
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	gic_set_pending(0, SPI_A);
	smp_settle();
	EXPECT_EQ(cpus[0].num_records, 0);
	unmask_irq();
	EXPECT(WAIT_FOR(cpus[0].handled[SPI_A] == 1));
}

static uint64_t send_sgi_to_this_cpu(uint64_t intid)
{
	gic_send_sgi(this_cpu()->index, (uint32_t)intid);
	return 0;
}

static void every_cpu_takes_interrupts(void)
{
	smp_unmask_all();
	for (unsigned i = 0; i < num_cpus; i++) {
		gic_enable(i, 1);
		smp_call(i, send_sgi_to_this_cpu, 1);
		EXPECT(WAIT_FOR(cpus[i].handled[1] == 1));
		EXPECT_EQ(handled_by_all(1), i + 1);
	}
}

static volatile uint64_t svc_in_handler_esr;

static void handler_that_calls_svc(uint32_t intid)
{
	(void)intid;
	exception_arm();
	__asm__ volatile("svc #0x55" : : : "memory");
	svc_in_handler_esr = cpus[0].exception_esr;
}

static void synchronous_exception_nests_in_an_interrupt(void)
{
	gic_enable(0, 1);
	set_interrupt_handler(1, handler_that_calls_svc);
	unmask_all();
	gic_send_sgi(0, 1);
	EXPECT(WAIT_FOR(cpus[0].handled[1] == 1));
	EXPECT(exception_was_taken());
	EXPECT_EQ(ESR_EC(svc_in_handler_esr), EC_SVC64);
	EXPECT_EQ(ESR_ISS(svc_in_handler_esr), 0x55);
}

/*
 * Sums over all general registers and the flags while SGIs to this CPU interrupt the loop: a register or flag that does
 * not survive changes the sum. register_test.S.
 */
uint64_t sum_while_interrupted(uint64_t sgi_value, uint64_t rounds);

static void registers_survive_interrupts(void)
{
	const uint64_t rounds = 100;

	gic_enable(0, 1);
	unmask_all();
	/* The registers hold 5 to 28, and each round ends with one more for the carry flag. */
	EXPECT_EQ(sum_while_interrupted(gic_sgi_value(0, 1), rounds), rounds * ((5 + 28) * 24 / 2 + 1));
	EXPECT(cpus[0].handled[1] > 0);
}

const struct test tests[] = {
	TEST(device_tree_and_redistributors_name_the_same_cpus, 1),
	TEST(last_redistributor_is_the_last_of_its_region, 1),
	TEST(redistributor_affinity_is_the_cpus_mpidr, 1),
	TEST(processor_numbers_are_unique, 1),
	TEST(distributor_has_one_security_state, 1),
	TEST(svc_reaches_the_synchronous_vector, 1),
	TEST(undefined_instruction_reaches_the_synchronous_vector, 1),
	TEST(reads_of_write_only_registers_are_undefined, 1),
	TEST(writes_of_read_only_registers_are_undefined, 1),
	TEST(group_1_reaches_the_irq_vector, 1),
	TEST(group_0_reaches_the_fiq_vector, 1),
	TEST(masked_irq_waits_until_it_is_unmasked, 1),
	TEST(every_cpu_takes_interrupts, 1),
	TEST(synchronous_exception_nests_in_an_interrupt, 1),
	TEST(registers_survive_interrupts, 1),
};
const unsigned num_tests = ARRAY_SIZE(tests);
