/* SPDX-License-Identifier: MIT */
/* Software generated interrupts: who gets them, how often, and in which group. */
#include "test.h"

#define NUM_SGIS 16u

/* A write to ICC_SGI1R that another CPU shall make. */
static uint64_t write_sgi1r_here(uint64_t value)
{
	gic_write_sgi1r(value);
	return 0;
}

/* Exactly the CPUs in @mask have handled @intid, each @times times. */
static void expect_handled_by(uint32_t mask, uint32_t intid, uint32_t times)
{
	for (unsigned i = 0; i < num_cpus; i++)
		if (mask & 1u << i)
			EXPECT(WAIT_FOR(cpus[i].handled[intid] >= times));
	smp_settle();
	for (unsigned i = 0; i < num_cpus; i++)
		EXPECT_EQ(cpus[i].handled[intid], mask & 1u << i ? times : 0);
}

static void enable_sgi_everywhere(uint32_t intid)
{
	for (unsigned i = 0; i < num_cpus; i++)
		gic_enable(i, intid);
}

static void each_sgi_reaches_its_sender(void)
{
	smp_unmask_all();
	for (uint32_t intid = 0; intid < NUM_SGIS; intid++) {
		enable_sgi_everywhere(intid);
		gic_send_sgi(0, intid);
		EXPECT_PASS(expect_handled_by(1u << 0, intid, 1));
	}
	EXPECT_EQ(cpus[0].num_records, NUM_SGIS);
	EXPECT_EQ(cpus[0].spurious, 0);
}

static void each_cpu_reaches_each_cpu(void)
{
	uint32_t intid = 0;

	smp_unmask_all();
	for (unsigned from = 0; from < num_cpus; from++) {
		for (unsigned to = 0; to < num_cpus; to++) {
			intid = (intid + 1) % NUM_SGIS;
			enable_sgi_everywhere(intid);
			uint32_t before = cpus[to].handled[intid], all_before = handled_by_all(intid);

			smp_call(from, write_sgi1r_here, gic_sgi_value(to, intid));
			EXPECT(WAIT_FOR(cpus[to].handled[intid] == before + 1));
			smp_settle();
			EXPECT_EQ(cpus[to].handled[intid], before + 1);
			EXPECT_EQ(handled_by_all(intid), all_before + 1);
		}
	}
}

/* The part of an SGI value that names the cluster and the range. */
static uint64_t cluster_of(uint64_t sgi_value)
{
	return sgi_value & ~0xffffull;
}

static void target_list_reaches_all_that_it_names(void)
{
	uint64_t value = gic_sgi_value(0, 5);
	uint32_t mask = 1u << 0;

	for (unsigned i = 1; i < num_cpus; i++) {
		if (cluster_of(gic_sgi_value(i, 5)) != cluster_of(value))
			continue;
		value |= gic_sgi_value(i, 5);
		mask |= 1u << i;
	}
	enable_sgi_everywhere(5);
	smp_unmask_all();
	gic_write_sgi1r(value);
	EXPECT_PASS(expect_handled_by(mask, 5, 1));
}

static void target_list_ignores_cpus_that_do_not_exist(void)
{
	const uint64_t absent_cluster = 0xabull << 32 | 0xcdull << 16;

	enable_sgi_everywhere(5);
	smp_unmask_all();
	gic_write_sgi1r(gic_sgi_value(0, 5) | 0xffff);
	EXPECT(WAIT_FOR(cpus[0].handled[5] == 1));
	for (unsigned i = 0; i < num_cpus; i++) {
		bool same_cluster = cluster_of(gic_sgi_value(i, 5)) == cluster_of(gic_sgi_value(0, 5));

		EXPECT(WAIT_FOR(cpus[i].handled[5] == same_cluster));
	}
	uint32_t before = handled_by_all(5);

	gic_write_sgi1r(absent_cluster | 5ull << 24 | 0xffff);
	smp_settle();
	EXPECT_EQ(handled_by_all(5), before);
}

/* The redistributors at which @intid is pending, as a mask. */
static uint64_t pending_at(uint32_t intid)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < num_redistributors; i++) {
		uint32_t pending = mmio_read32(redistributors[i].frame + GICR_SGI_BASE + GICD_ISPENDR);

		mask |= (uint64_t)(pending >> intid & 1) << i;
	}
	return mask;
}

static void clear_pending_everywhere(uint32_t intid)
{
	for (unsigned i = 0; i < num_redistributors; i++)
		mmio_write32(redistributors[i].frame + GICR_SGI_BASE + GICD_ICPENDR, 1u << intid);
	dsb();
}

/* All that the machine has, in whatever cluster, powered on or not: the SGI is pending there and nowhere else. */
static void each_redistributor_has_an_address_of_its_own(void)
{
	for (unsigned i = 0; i < num_redistributors; i++) {
		gic_write_sgi1r(gic_sgi_value_for(redistributors[i].mpidr, 5));
		EXPECT_EQ(pending_at(5), 1ull << i);
		clear_pending_everywhere(5);
		EXPECT_EQ(pending_at(5), 0);
	}
}

static void broadcast_is_pending_at_all_redistributors_but_the_senders(void)
{
	uint64_t others = num_redistributors == 64 ? ~0ull : (1ull << num_redistributors) - 1;

	for (unsigned i = 0; i < num_redistributors; i++)
		if (redistributors[i].mpidr == cpus[0].mpidr)
			others &= ~(1ull << i);
	gic_write_sgi1r(ICC_SGIR_IRM | 5ull << 24);
	EXPECT_EQ(pending_at(5), others);
	clear_pending_everywhere(5);
}

static void empty_target_list_reaches_nobody(void)
{
	enable_sgi_everywhere(5);
	smp_unmask_all();
	gic_write_sgi1r(cluster_of(gic_sgi_value(0, 5)));
	smp_settle();
	EXPECT_EQ(handled_by_all(5), 0);
}

/* RS selects Aff0 16*RS to 16*RS + 15: the list must not be taken for that of another range. */
static void range_selector_is_honoured(void)
{
	SKIP_UNLESS(gicd_read(GICD_TYPER) & GICD_TYPER_RSS && read_sysreg(ICC_CTLR) & ICC_CTLR_RSS,
		    "no range selector");
	enable_sgi_everywhere(5);
	smp_unmask_all();
	gic_write_sgi1r((gic_sgi_value(0, 5) ^ 1ull << 44) | 0xffff);
	smp_settle();
	EXPECT_EQ(cpus[0].handled[5], 0);
	gic_write_sgi1r(gic_sgi_value(0, 5));
	EXPECT(WAIT_FOR(cpus[0].handled[5] == 1));
}

static void broadcast_reaches_all_but_the_sender(void)
{
	smp_unmask_all();
	for (unsigned from = 0; from < num_cpus; from++) {
		uint32_t intid = 8 + from;

		enable_sgi_everywhere(intid);
		/* With IRM=1 the target list and the affinities are ignored. */
		smp_call(from, write_sgi1r_here, ICC_SGIR_IRM | (uint64_t)intid << 24 | (from ? 0xffff : 0));
		EXPECT_PASS(expect_handled_by(((1u << num_cpus) - 1) & ~(1u << from), intid, 1));
	}
}

static void sgi_sent_twice_while_pending_comes_once(void)
{
	gic_enable(0, 3);
	gic_send_sgi(0, 3);
	gic_send_sgi(0, 3);
	EXPECT(WAIT_FOR(gic_is_pending(0, 3)));
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), 3);
	gic_end(GROUP1, 3);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
}

static void sgi_sent_while_active_comes_again(void)
{
	gic_enable(0, 3);
	gic_send_sgi(0, 3);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), 3);
	gic_send_sgi(0, 3);
	EXPECT(WAIT_FOR(gic_is_pending(0, 3)));
	EXPECT(gic_is_active(0, 3));
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	gic_end(GROUP1, 3);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), 3);
	gic_end(GROUP1, 3);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
}

static void pending_sgi_shows_at_its_target_only(void)
{
	gic_send_sgi(1, 7);
	EXPECT(WAIT_FOR(gic_is_pending(1, 7)));
	EXPECT(!gic_is_pending(0, 7));
	gic_clear_pending(1, 7);
	EXPECT(!gic_is_pending(1, 7));
	gic_enable(1, 7);
	smp_unmask_all();
	smp_settle();
	EXPECT_EQ(handled_by_all(7), 0);
}

static void sgi_can_be_set_pending_at_another_cpu(void)
{
	gic_enable(1, 7);
	smp_unmask_all();
	gic_set_pending(1, 7);
	EXPECT_PASS(expect_handled_by(1u << 1, 7, 1));
}

static void disabled_sgi_waits_until_it_is_enabled(void)
{
	smp_unmask_all();
	gic_send_sgi(num_cpus - 1, 9);
	smp_settle();
	EXPECT_EQ(handled_by_all(9), 0);
	EXPECT(gic_is_pending(num_cpus - 1, 9));
	gic_enable(num_cpus - 1, 9);
	EXPECT_PASS(expect_handled_by(1u << (num_cpus - 1), 9, 1));
}

static void sgi_waits_for_the_group_enable_of_the_cpu(void)
{
	gic_enable(0, 9);
	gic_enable_group(GROUP1, false);
	unmask_all();
	gic_send_sgi(0, 9);
	smp_settle();
	EXPECT_EQ(cpus[0].handled[9], 0);
	EXPECT(gic_is_pending(0, 9));
	gic_enable_group(GROUP1, true);
	EXPECT(WAIT_FOR(cpus[0].handled[9] == 1));
}

static void sgi_waits_for_the_group_enable_of_the_distributor(void)
{
	gic_enable(0, 9);
	gicd_write(GICD_CTLR, GICD_CTLR_ARE | GICD_CTLR_ENABLE_GRP0);
	unmask_all();
	gic_send_sgi(0, 9);
	smp_settle();
	EXPECT_EQ(cpus[0].handled[9], 0);
	EXPECT(gic_is_pending(0, 9));
	gicd_write(GICD_CTLR, GICD_CTLR_ARE | GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
	EXPECT(WAIT_FOR(cpus[0].handled[9] == 1));
}

static void sgis_are_edge_triggered_for_ever(void)
{
	uintptr_t icfgr0 = gic_register_of(0, 0, GICD_ICFGR);

	EXPECT_EQ(mmio_read32(icfgr0), 0xaaaaaaaa);
	mmio_write32(icfgr0, 0);
	dsb();
	EXPECT_EQ(mmio_read32(icfgr0), 0xaaaaaaaa);
}

/* Which SGI register reaches which group, for one security state. */

static void sgi0r_reaches_group_0_as_fiq(void)
{
	gic_set_group(0, 4, GROUP0);
	gic_enable(0, 4);
	unmask_all();
	gic_write_sgi0r(gic_sgi_value(0, 4));
	EXPECT(WAIT_FOR(cpus[0].handled[4] == 1));
	EXPECT_EQ(cpus[0].records[0].group, GROUP0);
}

static void sgi0r_does_not_reach_group_1(void)
{
	gic_enable(0, 4);
	unmask_all();
	gic_write_sgi0r(gic_sgi_value(0, 4));
	smp_settle();
	EXPECT_EQ(cpus[0].handled[4], 0);
	EXPECT(!gic_is_pending(0, 4));
}

static void sgi1r_reaches_group_0_too(void)
{
	SKIP_UNLESS(gic_is_libvgic(), "a choice of libvgic and KVM");
	gic_set_group(0, 4, GROUP0);
	gic_enable(0, 4);
	unmask_all();
	gic_send_sgi(0, 4);
	EXPECT(WAIT_FOR(cpus[0].handled[4] == 1));
	EXPECT_EQ(cpus[0].records[0].group, GROUP0);
}

static void asgi1r_reaches_group_0_only(void)
{
	SKIP_UNLESS(gic_is_libvgic(), "a choice of libvgic and KVM");
	gic_set_group(0, 4, GROUP0);
	gic_enable(0, 4);
	gic_enable(0, 6);
	unmask_all();
	gic_write_asgi1r(gic_sgi_value(0, 4));
	EXPECT(WAIT_FOR(cpus[0].handled[4] == 1));
	EXPECT_EQ(cpus[0].records[0].group, GROUP0);
	gic_write_asgi1r(gic_sgi_value(0, 6));
	smp_settle();
	EXPECT_EQ(cpus[0].handled[6], 0);
	EXPECT(!gic_is_pending(0, 6));
}

static void sgi0r_reaches_another_cpu_and_broadcasts(void)
{
	for (unsigned i = 0; i < num_cpus; i++)
		gic_set_group(i, 4, GROUP0);
	enable_sgi_everywhere(4);
	smp_unmask_all();
	gic_write_sgi0r(gic_sgi_value(1, 4));
	EXPECT_PASS(expect_handled_by(1u << 1, 4, 1));
	gic_write_sgi0r(ICC_SGIR_IRM | 4ull << 24);
	EXPECT(WAIT_FOR(cpus[1].handled[4] == 2));
	for (unsigned i = 2; i < num_cpus; i++)
		EXPECT(WAIT_FOR(cpus[i].handled[4] == 1));
	EXPECT_EQ(cpus[0].handled[4], 0);
	gic_write_sgi0r(ICC_SGIR_IRM | 6ull << 24); /* in Group 1 everywhere */
	EXPECT_EQ(pending_at(6), 0);
}

/* An SGI goes round all CPUs, each passes it on to the next: none may be lost and none doubled. */

#define RING_ROUNDS 30u

static void pass_sgi_on(uint32_t intid)
{
	unsigned next = (this_cpu()->index + 1) % num_cpus;

	if (this_cpu()->index == 0 && cpus[0].handled[intid] == RING_ROUNDS - 1)
		return;
	gic_send_sgi(next, intid);
}

static void sgi_passed_round_all_cpus_is_never_lost(void)
{
	enable_sgi_everywhere(2);
	set_interrupt_handler(2, pass_sgi_on);
	smp_unmask_all();
	gic_send_sgi(1 % num_cpus, 2);
	EXPECT(WAIT_FOR(cpus[0].handled[2] == RING_ROUNDS));
	EXPECT_PASS(expect_handled_by((1u << num_cpus) - 1, 2, RING_ROUNDS));
}

/* Every CPU sends each of its SGIs to its neighbour while it is sent others: exact counts at the end. */

#define STORM_SGIS 60u

static uint64_t send_and_await(uint64_t intid)
{
	struct cpu *target = &cpus[(this_cpu()->index + 1) % num_cpus];

	for (uint32_t i = 1; i <= STORM_SGIS; i++) {
		gic_send_sgi(target->index, (uint32_t)intid);
		if (!WAIT_FOR(target->handled[intid] == i))
			return i;
	}
	return 0;
}

static void crossing_sgis_are_counted_exactly(void)
{
	for (unsigned i = 0; i < num_cpus; i++)
		enable_sgi_everywhere(i);
	smp_unmask_all();
	for (unsigned i = 1; i < num_cpus; i++)
		smp_start(i, send_and_await, i);
	EXPECT_EQ(send_and_await(0), 0);
	for (unsigned i = 1; i < num_cpus; i++) {
		EXPECT(smp_wait(i));
		EXPECT_EQ(cpus[i].result, 0);
	}
	for (unsigned i = 0; i < num_cpus; i++)
		EXPECT_PASS(expect_handled_by(1u << ((i + 1) % num_cpus), i, STORM_SGIS));
}

const struct test tests[] = {
	TEST(each_sgi_reaches_its_sender, 1),
	TEST(each_cpu_reaches_each_cpu, 1),
	TEST(target_list_reaches_all_that_it_names, 1),
	TEST(target_list_ignores_cpus_that_do_not_exist, 1),
	TEST(each_redistributor_has_an_address_of_its_own, 1),
	TEST(broadcast_is_pending_at_all_redistributors_but_the_senders, 1),
	TEST(empty_target_list_reaches_nobody, 1),
	TEST(range_selector_is_honoured, 1),
	TEST(broadcast_reaches_all_but_the_sender, 2),
	TEST(sgi_sent_twice_while_pending_comes_once, 1),
	TEST(sgi_sent_while_active_comes_again, 1),
	TEST(pending_sgi_shows_at_its_target_only, 2),
	TEST(sgi_can_be_set_pending_at_another_cpu, 2),
	TEST(disabled_sgi_waits_until_it_is_enabled, 1),
	TEST(sgi_waits_for_the_group_enable_of_the_cpu, 1),
	TEST(sgi_waits_for_the_group_enable_of_the_distributor, 1),
	TEST(sgis_are_edge_triggered_for_ever, 1),
	TEST(sgi0r_reaches_group_0_as_fiq, 1),
	TEST(sgi0r_does_not_reach_group_1, 1),
	TEST(sgi1r_reaches_group_0_too, 1),
	TEST(asgi1r_reaches_group_0_only, 1),
	TEST(sgi0r_reaches_another_cpu_and_broadcasts, 2),
	TEST(sgi_passed_round_all_cpus_is_never_lost, 1),
	TEST(crossing_sgis_are_counted_exactly, 1),
};
const unsigned num_tests = ARRAY_SIZE(tests);
