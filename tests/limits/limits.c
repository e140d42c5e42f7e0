/* SPDX-License-Identifier: MIT */
/*
 * What a hostile guest can make one access cost, whatever it has prepared: each line
 * of the table in docs/assurance.md is a case here, with the worst state that we know
 * of and what it may cost at most. Counts, never times.
 *
 *   limits           check them (TAP)
 *   limits --table   print the table
 *
 * The longest loop is the number of executions of the basic block that was executed
 * most often; it is the same whatever the compiler does with the rest.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "count.h"
#include "its_guest.h"

#define NUM_VCPUS 512u
#define NUM_LPIS  57344u

struct limit {
	const char *access;
	const char *state;
	void (*prepare)(struct machine *m);
	void (*act)(struct machine *m);
	uint64_t max_loop;
	uint64_t max_blocks;
	uint64_t max_guest_accesses;
	uint64_t max_kicks;
};

/* ---- The machine: 512 vCPUs, one ITS, everything on ----------------------------------------- */

static struct vgic_redist_region regions[NUM_VCPUS];

static void lpis_of_two_vcpus(struct machine *m)
{
	ram_fill(PROPERTY_TABLE, 0xa0 | LPI_ENABLED, NUM_LPIS);
	for (uint32_t v = 0; v < 2; v++) {
		redist_write_width(m, v, GICR_PROPBASER, 8, PROPERTY_TABLE | 15);
		redist_write_width(m, v, GICR_PENDBASER, 8, PENDING_TABLE(v) | GICR_PENDBASER_PTZ);
		lpis_enable(m, v);
	}
}

static struct machine *boot(void)
{
	struct machine *m = its_describe(NUM_VCPUS, 1);

	m->config.num_spis = VGIC_MAX_SPIS;
	for (uint32_t v = 0; v < NUM_VCPUS; v++)
		regions[v] = (struct vgic_redist_region){ .base = 0x100000000ull + 0x40000ull * v, .num_frames = 1 };
	m->config.num_redist_regions = NUM_VCPUS;
	m->config.redist_regions = regions;
	count_guest_memory(m);
	machine_start(m);
	machine_open_switches(m);
	lpis_of_two_vcpus(m);
	its_tables_set_up(m, 0);
	its_write(m, 0, GITS_CBASER, 8, GITS_CBASER_VALID | QUEUE(0) | 0xff);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	its_run(m, 0, cmd_mapc(0, 0, true));
	its_run(m, 0, cmd_mapc(1, 1, true));
	return m;
}

/* ---- States ------------------------------------------------------------------------------------ */

static void prepare_nothing(struct machine *m)
{
	(void)m;
}

static void submit_when_full(struct machine *m, uint32_t n)
{
	if (n % 16384 != 16383)
		return;
	its_submit(m, 0);
	finish_work(m);
}

/* One device with as many events as there can be; those past the LPIs share some. */
static void prepare_mapped(struct machine *m)
{
	its_run(m, 0, cmd_mapd(1, 15, ITT(0), true));
	for (uint32_t event = 0; event < 65536; event++) {
		its_place(m, 0, cmd_mapti(1, event, GIC_FIRST_LPI + event % NUM_LPIS, 0));
		submit_when_full(m, event);
	}
	assert_int_equal(its_stats(m, 0).num_translations, 65536);
}

static void prepare_pending(struct machine *m)
{
	prepare_mapped(m);
	for (uint32_t event = 0; event < NUM_LPIS; event++)
		msi(m, 1, event);
}

/* The pending table is full of LPIs that are mapped. */
static void prepare_disabled(struct machine *m)
{
	prepare_pending(m);
	redist_write(m, 0, GICR_CTLR, 0);
	finish_work(m);
	redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0));
}

static void prepare_masked(struct machine *m)
{
	prepare_pending(m);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0);
}

/* vCPU 0 has a hint for each LPI, and each LPI has gone elsewhere. */
static void prepare_stale(struct machine *m)
{
	prepare_pending(m);
	its_place(m, 0, cmd_movall(0, 1));
	its_submit(m, 0);
	finish_work(m);
}

/* 32000 commands alike; the queue is submitted by the access. */
static void fill_queue(struct machine *m, struct its_cmd cmd)
{
	for (uint32_t i = 0; i < 32000; i++)
		its_place(m, 0, cmd);
}

static void prepare_movall(struct machine *m)
{
	prepare_pending(m);
	fill_queue(m, cmd_movall(0, 1));
}

static void prepare_invall(struct machine *m)
{
	prepare_pending(m);
	fill_queue(m, cmd_invall(0));
}

static void prepare_mapc(struct machine *m)
{
	prepare_pending(m);
	fill_queue(m, cmd_mapc(0, 1, true));
}

static void prepare_unmap(struct machine *m)
{
	prepare_pending(m);
	fill_queue(m, cmd_mapd(1, 0, 0, false));
}

static void prepare_discard(struct machine *m)
{
	prepare_pending(m);
	for (uint32_t i = 0; i < 32000; i++)
		its_place(m, 0, cmd_event(ITS_CMD_DISCARD, 1, i));
}

static void prepare_mapti(struct machine *m)
{
	prepare_pending(m);
	for (uint32_t i = 0; i < 32000; i++)
		its_place(m, 0, cmd_mapti(1, i, GIC_FIRST_LPI + (i + 1) % NUM_LPIS, i % 2));
}

/* Devices come and go through an indirect table: level 1, entry and both ends of the ITT are looked at each time. */
static void prepare_mapd(struct machine *m)
{
	its_write(m, 0, GITS_CTLR, 4, 0);
	finish_work(m);
	ram_set_u64(DEVICE_TABLE(0), LEVEL2_TABLE(0) | GITS_LEVEL1_VALID);
	its_write(m, 0, GITS_BASER0, 8, GITS_BASER_VALID | GITS_BASER_INDIRECT | DEVICE_TABLE(0));
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	for (uint32_t i = 0; i < 32000; i++)
		its_place(m, 0, cmd_mapd(i % 1024, 15, ITT(0), true));
}

static void prepare_wrong(struct machine *m)
{
	fill_queue(m, cmd_event(ITS_CMD_INT, 1, 0));
}

static void prepare_its_off(struct machine *m)
{
	prepare_mapped(m);
	its_write(m, 0, GITS_CTLR, 4, 0);
	finish_work(m);
}

/* An SPI pending at each vCPU. */
static void prepare_spis(struct machine *m)
{
	for (uint32_t v = 0; v < NUM_VCPUS; v++) {
		irq_set_up(m, v, 32 + v, 1, 0x80);
		vgic_pulse_spi(m->vgic, 32 + v);
	}
}

static void prepare_spis_with_groups_off(struct machine *m)
{
	dist_write(m, GICD_CTLR, 0);
	prepare_spis(m);
	for (uint32_t v = 0; v < NUM_VCPUS; v++)
		lines_of(m, v);
}

/* Every SPI is 1-of-N and pending, and only the last vCPU takes part. */
static void prepare_one_of_n(struct machine *m)
{
	for (uint32_t v = 0; v < NUM_VCPUS - 1; v++)
		icc_write(m, v, VGIC_ICC_IGRPEN1_EL1, 0);
	for (uint32_t intid = 32; intid < 32 + VGIC_MAX_SPIS; intid++) {
		irq_set_up(m, 0, intid, 1, 0x80);
		spi_route(m, intid, GICD_IROUTER_IRM);
		vgic_pulse_spi(m->vgic, intid);
	}
}

static void prepare_one_of_n_disabled(struct machine *m)
{
	prepare_one_of_n(m);
	dist_write(m, GICD_ICENABLER + 8, UINT32_MAX);
	finish_work(m);
}

/* SGIs and PPIs are active at every priority that preempts, one over the other, and every LPI is pending. */
static void prepare_nested(struct machine *m)
{
	prepare_pending(m);
	icc_write(m, 0, VGIC_ICC_BPR1_EL1, 0);
	for (uint32_t i = 0; i < 16; i++) {
		irq_set_up(m, 0, i, 1, (uint8_t)(0x98 - 8 * i));
		irq_write_bit(m, 0, GICD_ISPENDR, i);
		ack1(m, 0);
	}
}

/* ---- Accesses ------------------------------------------------------------------------------------- */

static void disable_lpis(struct machine *m)
{
	redist_write(m, 0, GICR_CTLR, 0);
}

static void enable_lpis(struct machine *m)
{
	redist_write(m, 0, GICR_CTLR, GICR_CTLR_ENABLE_LPIS);
}

static void invalidate_all(struct machine *m)
{
	redist_write_width(m, 0, GICR_INVALLR, 8, 0);
}

static void submit(struct machine *m)
{
	its_submit(m, 0);
}

static void switch_its_off(struct machine *m)
{
	its_write(m, 0, GITS_CTLR, 4, 0);
}

static void drop_device_table(struct machine *m)
{
	its_write(m, 0, GITS_BASER0, 8, 0);
}

static void drop_collection_table(struct machine *m)
{
	its_write(m, 0, GITS_BASER1, 8, 0);
}

static void groups_off(struct machine *m)
{
	dist_write(m, GICD_CTLR, 0);
}

static void groups_on(struct machine *m)
{
	dist_write(m, GICD_CTLR, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
}

static void disable_spis(struct machine *m)
{
	dist_write(m, GICD_ICENABLER + 8, UINT32_MAX);
}

static void enable_spis(struct machine *m)
{
	dist_write(m, GICD_ISENABLER + 8, UINT32_MAX);
}

static void sgi_to_all(struct machine *m)
{
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, 1ull << 40 | 1ull << 24);
}

static void sgi_to_list(struct machine *m)
{
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, 0xffff | 1ull << 24 | 1ull << 16);
}

static void acknowledge(struct machine *m)
{
	ack1(m, 0);
}

static void look_at_hppir(struct machine *m)
{
	icc_read(m, 0, VGIC_ICC_HPPIR1_EL1);
}

static void enter_guest(struct machine *m)
{
	vgic_enter_guest(vcpu_of(m, 0));
}

static void drop_priority(struct machine *m)
{
	eoi1(m, 0, 15);
}

static void leave_one_of_n(struct machine *m)
{
	icc_write(m, NUM_VCPUS - 1, VGIC_ICC_IGRPEN1_EL1, 0);
}

static void read_last_frame(struct machine *m)
{
	uint64_t value;

	vgic_mmio_read(m->vgic, regions[NUM_VCPUS - 1].base + GICR_TYPER, 8, &value);
}

static void signal_first_event(struct machine *m)
{
	msi(m, 1, 0);
}

static void signal_unmapped_event(struct machine *m)
{
	msi(m, 1, 65536);
}

static void do_some_work(struct machine *m)
{
	vgic_run_work(m->vgic);
}

static void prepare_work_left(struct machine *m)
{
	prepare_movall(m);
	its_submit(m, 0);
}

static void read_irouter_bank(struct machine *m)
{
	dist_read_width(m, GICD_IROUTER + 8 * 500, 8);
}

// clang-format off
static const struct limit limits[] = {
	{ "GICR_CTLR.EnableLPIs=0", "57344 LPIs pending", prepare_pending, disable_lpis, 16384, 338500, 512, 0 },
	{ "GICR_CTLR.EnableLPIs=1", "57344 LPIs pending in the table", prepare_disabled, enable_lpis, 16384, 905300, 512, 0 },
	{ "GICR_INVALLR", "57344 LPIs pending", prepare_pending, invalidate_all, 16384, 383400, 256, 0 },
	{ "GITS_CWRITER", "32000 MOVALL of 57344 LPIs", prepare_movall, submit, 16384, 798600, 4, 1 },
	{ "GITS_CWRITER", "32000 INVALL of 57344 LPIs", prepare_invall, submit, 16384, 383500, 260, 0 },
	{ "GITS_CWRITER", "32000 MAPC of 65536 events", prepare_mapc, submit, 4097, 211500, 4, 1 },
	{ "GITS_CWRITER", "MAPD V=0 of 65536 events", prepare_unmap, submit, 4097, 150000, 6, 0 },
	{ "GITS_CWRITER", "32000 MAPD V=1, indirect table", prepare_mapd, submit, 24576, 656800, 36864, 0 },
	{ "GITS_CWRITER", "32000 DISCARD", prepare_discard, submit, 24576, 583600, 16384, 0 },
	{ "GITS_CWRITER", "32000 MAPTI of other LPIs", prepare_mapti, submit, 24576, 902300, 20480, 1 },
	{ "GITS_CWRITER", "32000 commands that are wrong", prepare_wrong, submit, 24576, 457100, 16384, 0 },
	{ "GITS_CTLR.Enabled=0", "65536 events", prepare_mapped, switch_its_off, 4097, 33200, 0, 0 },
	{ "GITS_BASER0.Valid=0", "65536 events", prepare_its_off, drop_device_table, 4097, 137600, 0, 0 },
	{ "GITS_BASER1.Valid=0", "65536 events", prepare_its_off, drop_collection_table, 4097, 131500, 0, 0 },
	{ "vgic_run_work()", "a MOVALL is under way", prepare_work_left, do_some_work, 16384, 798500, 0, 0 },
	{ "GICD_CTLR, groups off", "512 vCPUs, an SPI pending at each", prepare_spis, groups_off, 512, 7000, 0, 0 },
	{ "GICD_CTLR, groups on", "512 vCPUs, an SPI pending at each", prepare_spis_with_groups_off, groups_on, 512, 8600, 0, 512 },
	{ "GICD_ICENABLER", "32 SPIs pending, 1-of-N of 512", prepare_one_of_n, disable_spis, 512, 2900, 0, 0 },
	{ "GICD_ISENABLER", "32 SPIs pending, 1-of-N of 512", prepare_one_of_n_disabled, enable_spis, 256, 3400, 0, 0 },
	{ "GICD_IROUTER, read", "any", prepare_nothing, read_irouter_bank, 8, 100, 0, 0 },
	{ "ICC_IGRPEN1=0", "988 SPIs pending, 1-of-N, the last vCPU leaves", prepare_one_of_n, leave_one_of_n, 16796, 164300, 0, 0 },
	{ "ICC_SGI1R, IRM=1", "512 vCPUs", prepare_nothing, sgi_to_all, 512, 7700, 0, 0 },
	{ "ICC_SGI1R, list", "16 targets", prepare_nothing, sgi_to_list, 16, 300, 0, 0 },
	{ "ICC_IAR1", "57344 LPIs pending", prepare_pending, acknowledge, 8, 100, 0, 0 },
	{ "ICC_IAR1", "57344 stale hints", prepare_stale, acknowledge, 4097, 81300, 0, 0 },
	{ "ICC_IAR1", "57344 LPIs pending, all masked", prepare_masked, acknowledge, 8, 100, 0, 0 },
	{ "ICC_HPPIR1", "57344 stale hints", prepare_stale, look_at_hppir, 4097, 81200, 0, 0 },
	{ "ICC_EOIR1", "16 priorities active, 57344 LPIs pending", prepare_nested, drop_priority, 8, 100, 0, 0 },
	{ "vgic_enter_guest()", "57344 stale hints", prepare_stale, enter_guest, 4097, 81200, 0, 0 },
	{ "vgic_enter_guest()", "57344 LPIs pending, all masked", prepare_masked, enter_guest, 8, 100, 0, 0 },
	{ "vgic_its_signal()", "65536 events, LPI not pending", prepare_mapped, signal_first_event, 8, 100, 0, 1 },
	{ "vgic_its_signal()", "65536 events, LPI pending", prepare_pending, signal_first_event, 8, 100, 0, 0 },
	{ "vgic_its_signal()", "an event that is not mapped", prepare_mapped, signal_unmapped_event, 8, 100, 0, 0 },
	{ "vgic_mmio_read()", "512 regions", prepare_nothing, read_last_frame, 512, 1700, 0, 0 },
};
// clang-format on

#define NUM_LIMITS (sizeof(limits) / sizeof(limits[0]))

/* ---- Measuring ---------------------------------------------------------------------------------------- */

static struct cost measure(const struct limit *l)
{
	struct machine *m = boot();
	struct cost cost;

	l->prepare(m);
	count_begin(m);
	l->act(m);
	count_end(m, &cost);
	machine_stop(m);
	return cost;
}

static void print_row(const struct limit *l, const struct cost *c)
{
	printf("| %s | %s | %llu | %llu | %llu | %llu | %u |\n", l->access, l->state, (unsigned long long)c->hottest,
	       (unsigned long long)c->blocks, (unsigned long long)c->guest_accesses, (unsigned long long)c->kicks,
	       c->lock_depth);
}

static bool is_within(const struct limit *l, const struct cost *c)
{
	/* Without a block there was no counting. */
	return c->blocks > 0 && c->hottest <= l->max_loop && c->blocks <= l->max_blocks &&
	       c->guest_accesses <= l->max_guest_accesses && c->kicks <= l->max_kicks && c->lock_depth <= 1 &&
	       c->allocations == 0;
}

static bool check(size_t i, const struct cost *c)
{
	const struct limit *l = &limits[i];
	const bool ok = is_within(l, c);

	printf("%s %zu - %s: %s\n", ok ? "ok" : "not ok", i + 1, l->access, l->state);
	printf("# longest loop %llu of %llu, blocks %llu of %llu, guest memory %llu of %llu, kicks %llu of %llu, "
	       "locks at one time %u, allocations %u\n",
	       (unsigned long long)c->hottest, (unsigned long long)l->max_loop, (unsigned long long)c->blocks,
	       (unsigned long long)l->max_blocks, (unsigned long long)c->guest_accesses,
	       (unsigned long long)l->max_guest_accesses, (unsigned long long)c->kicks,
	       (unsigned long long)l->max_kicks, c->lock_depth, c->allocations);
	return ok;
}

int main(int argc, char **argv)
{
	const bool table = argc > 1 && strcmp(argv[1], "--table") == 0;
	bool all_ok = true;

	if (argc > 1 && !table) {
		fprintf(stderr,
			"Usage: limits [--table]\n\nCounts what one access can cost at most, whatever a guest "
			"has prepared, and checks it\nagainst the limits. --table prints the counts as a table.\n");
		return strcmp(argv[1], "--help") == 0 ? 0 : 2;
	}
	if (table)
		printf("| Access | State | Longest loop | Blocks | Guest memory | Kicks | Locks |\n|---|---|---:|---:|---:|---:|---:|\n");
	else
		printf("1..%zu\n", NUM_LIMITS);
	for (size_t i = 0; i < NUM_LIMITS; i++) {
		const struct cost cost = measure(&limits[i]);

		if (table)
			print_row(&limits[i], &cost);
		else
			all_ok &= check(i, &cost);
	}
	return all_ok ? 0 : 1;
}
