/* SPDX-License-Identifier: MIT */
/*
 * LPIs at the redistributor: GICR_PROPBASER, GICR_PENDBASER and the pending table,
 * EnableLPIs with RWP and CES, GICR_INVLPIR, GICR_INVALLR, GICR_SYNCR, and what a
 * CPU interface makes of an LPI.
 */
#include <errno.h>

#include "its_guest.h"

#define PROPBASER_WRITABLE 0x070fffffffffff9full
#define PENDBASER_WRITABLE 0x070fffffffff0f80ull

/* Two vCPUs; collections 0 and 1 at them; device 1, events 0 to 31 to LPIs 8192 to 8223, the first 16 at vCPU 0. */
static struct machine *boot_mapped(void)
{
	struct machine *m = its_boot_device();

	for (uint32_t event = 0; event < 32; event++)
		map_event(m, 1, event, 8192 + event, event / 16);
	return m;
}

static void lpis_disable(struct machine *m, uint32_t vcpu)
{
	redist_write(m, vcpu, GICR_CTLR, 0);
	finish_work(m);
	assert_int_equal(redist_read(m, vcpu, GICR_CTLR) & (GICR_CTLR_RWP | GICR_CTLR_ENABLE_LPIS), 0);
}

/* ---- Registers -------------------------------------------------------------------------------------- */

static void registers_have_their_reset_values(void **state)
{
	struct machine *m = machine_start(its_describe(2, 1));

	(void)state;
	for (uint32_t v = 0; v < 2; v++) {
		assert_int_equal(redist_read(m, v, GICR_CTLR), GICR_CTLR_CES | GICR_CTLR_IR);
		assert_int_equal(redist_read_width(m, v, GICR_PROPBASER, 8), 0);
		assert_int_equal(redist_read_width(m, v, GICR_PENDBASER, 8), 0);
		assert_int_equal(redist_read(m, v, GICR_SYNCR), 0);
	}
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

static void table_registers_keep_their_fields(void **state)
{
	struct machine *m = machine_start(its_describe(2, 1));

	(void)state;
	redist_write_width(m, 0, GICR_PROPBASER, 8, ~0ull);
	redist_write_width(m, 0, GICR_PENDBASER, 8, ~0ull);
	assert_int_equal(redist_read_width(m, 0, GICR_PROPBASER, 8), PROPBASER_WRITABLE);
	/* PTZ is for writing only. */
	assert_int_equal(redist_read_width(m, 0, GICR_PENDBASER, 8), PENDBASER_WRITABLE);
	/* One configuration table for all, a pending table for each. */
	assert_int_equal(redist_read_width(m, 1, GICR_PROPBASER, 8), PROPBASER_WRITABLE);
	assert_int_equal(redist_read_width(m, 1, GICR_PENDBASER, 8), 0);
	/* By halves. */
	redist_write(m, 1, GICR_PROPBASER, 0);
	assert_int_equal(redist_read_width(m, 0, GICR_PROPBASER, 8), PROPBASER_WRITABLE & ~0xffffffffull);
	assert_int_equal(redist_read(m, 0, GICR_PROPBASER + 4), PROPBASER_WRITABLE >> 32);
	redist_write(m, 0, GICR_PENDBASER + 4, 0);
	assert_int_equal(redist_read_width(m, 0, GICR_PENDBASER, 8), PENDBASER_WRITABLE & 0xffffffff);
	machine_stop(m);
}

static void table_registers_are_fixed_while_lpis_are_enabled(void **state)
{
	struct machine *m = its_boot(2, 1);
	const uint64_t propbaser = redist_read_width(m, 0, GICR_PROPBASER, 8);
	const uint64_t pendbaser = redist_read_width(m, 0, GICR_PENDBASER, 8);

	(void)state;
	redist_write_width(m, 0, GICR_PROPBASER, 8, 0x50000000);
	redist_write_width(m, 0, GICR_PENDBASER, 8, 0x50000000);
	assert_int_equal(redist_read_width(m, 0, GICR_PROPBASER, 8), propbaser);
	assert_int_equal(redist_read_width(m, 0, GICR_PENDBASER, 8), pendbaser);
	lpis_disable(m, 0);
	redist_write_width(m, 0, GICR_PENDBASER, 8, 0x50000000);
	assert_int_equal(redist_read_width(m, 0, GICR_PENDBASER, 8), 0x50000000);
	machine_stop(m);
}

static void without_lpis_there_is_nothing(void **state)
{
	static const uint32_t offsets[] = { GICR_SETLPIR,   GICR_CLRLPIR, GICR_PROPBASER,
					    GICR_PENDBASER, GICR_INVLPIR, GICR_INVALLR };
	struct machine *m = machine_open(1);

	(void)state;
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		redist_write_width(m, 0, offsets[i], 8, ~0ull);
		assert_int_equal(redist_read_width(m, 0, offsets[i], 8), 0);
	}
	redist_write(m, 0, GICR_CTLR, GICR_CTLR_ENABLE_LPIS);
	assert_int_equal(redist_read(m, 0, GICR_CTLR), 0);
	assert_int_equal(redist_read(m, 0, GICR_SYNCR), 0);
	assert_int_equal(redist_read(m, 0, GICR_TYPER) & GICR_TYPER_PLPIS, 0);
	assert_int_equal(dist_read(m, GICD_TYPER) & GICD_TYPER_LPIS, 0);
	machine_stop(m);
}

static void propbaser_bits_bound_the_lpis(void **state)
{
	static const struct {
		unsigned field;
		uint32_t largest; /* INTID; 0: none */
	} cases[] = { { 0, 0 }, { 12, 0 }, { 13, 16383 }, { 14, 32767 }, { 15, 65535 }, { 16, 65535 }, { 31, 65535 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct machine *m = machine_start(its_describe(1, 1));
		const uint32_t largest = cases[i].largest;

		machine_open_switches(m);
		ram_fill(PROPERTY_TABLE, 0xa1, 65536 - GIC_FIRST_LPI);
		redist_write_width(m, 0, GICR_PROPBASER, 8, PROPERTY_TABLE | cases[i].field);
		redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0) | GICR_PENDBASER_PTZ);
		lpis_enable(m, 0);
		its_tables_set_up(m, 0);
		its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
		map_collection(m, 0, 0);
		map_device(m, 1, 16);
		if (largest == 0) {
			its_run_wrong(m, 0, cmd_mapti(1, 0, 8192, 0), VGIC_ITS_MAPTI_PHYSICALID_OOR);
		} else {
			its_run_wrong(m, 0, cmd_mapti(1, 0, largest + 1, 0), VGIC_ITS_MAPTI_PHYSICALID_OOR);
			map_event(m, 1, 0, largest, 0);
			assert_int_equal(msi(m, 1, 0), 1);
			expect_only(m, 0, largest);
		}
		machine_stop(m);
	}
}

static void every_size_of_lpi_space_works_at_its_ends(void **state)
{
	(void)state;
	for (uint32_t bits = VGIC_MIN_LPI_BITS; bits <= VGIC_MAX_LPI_BITS; bits++) {
		struct machine *m = its_describe(1, 1);
		const uint32_t end = 1u << bits;

		m->config.lpi_id_bits = bits;
		machine_start(m);
		its_set_up(m);
		map_collection(m, 0, 0);
		map_device(m, 1, 4);
		map_event(m, 1, 0, 8192, 0);
		map_event(m, 1, 1, end - 1, 0);
		its_run_wrong(m, 0, cmd_mapti(1, 2, end, 0), VGIC_ITS_MAPTI_PHYSICALID_OOR);
		assert_int_equal(msi(m, 1, 0), 1);
		expect_only(m, 0, 8192);
		assert_int_equal(msi(m, 1, 1), 1);
		expect_only(m, 0, end - 1);
		assert_int_equal(msi(m, 1, 1), 1);
		lpis_disable(m, 0);
		assert_true(table_pending(0, end - 1));
		assert_false(table_pending(0, end - 2));
		redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0));
		lpis_enable(m, 0);
		expect_only(m, 0, end - 1);
		machine_stop(m);
	}
}

/* ---- EnableLPIs ------------------------------------------------------------------------------------------ */

static void nothing_is_delivered_before_lpis_are_enabled(void **state)
{
	struct machine *m = machine_start(its_describe(1, 1));

	(void)state;
	machine_open_switches(m);
	redist_write_width(m, 0, GICR_PROPBASER, 8, PROPERTY_TABLE | 15);
	ram_fill(PROPERTY_TABLE, 0xa1, 64);
	its_tables_set_up(m, 0);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	map_collection(m, 0, 0);
	map_device(m, 1, 5);
	map_event(m, 1, 0, 8192, 0);
	assert_int_equal(msi(m, 1, 0), 0);
	assert_int_equal(its_stats(m, 0).dropped_lpis_disabled, 1);
	redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0) | GICR_PENDBASER_PTZ);
	lpis_enable(m, 0);
	expect_nothing(m);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

static void disabling_moves_pending_lpis_to_the_table(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	assert_int_equal(msi(m, 1, 9), 1);
	assert_int_equal(msi(m, 1, 16), 1);
	ram.num_kept = 0;
	lpis_disable(m, 0);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0xff);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	assert_int_equal(lines_of(m, 0), 0);
	/* Bit n of byte n/8, and nothing else. */
	assert_int_equal(ram_byte(PENDING_TABLE(0) + 1024), 0x01);
	assert_int_equal(ram_byte(PENDING_TABLE(0) + 1025), 0x02);
	for (uint64_t i = 0; i < 8192; i++) {
		if (i != 1024 && i != 1025)
			assert_int_equal(ram_byte(PENDING_TABLE(0) + i), 0);
		assert_int_equal(ram_byte(PENDING_TABLE(1) + i), 0);
	}
	/* Only what changed was written: one word. */
	assert_int_equal(ram.num_kept, 1);
	assert_int_equal(ram.writes[0].address, PENDING_TABLE(0) + 1024);
	assert_int_equal(ram.writes[0].size, 8);
	/* The other vCPU's LPIs are not concerned. */
	assert_int_equal(take(m, 1), 8208);
	machine_stop(m);
}

static void disabling_with_nothing_pending_writes_nothing(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	ram.num_writes = 0;
	lpis_disable(m, 0);
	assert_int_equal(ram.num_writes, 0);
	machine_stop(m);
}

static void disabling_clears_bits_that_are_no_longer_pending(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	lpis_disable(m, 0);
	table_set_pending(0, 8192);
	table_set_pending(0, 8193);
	redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0));
	lpis_enable(m, 0);
	assert_int_equal(take(m, 0), 8192);
	lpis_disable(m, 0);
	assert_false(table_pending(0, 8192));
	assert_true(table_pending(0, 8193));
	machine_stop(m);
}

static void enabling_reads_the_pending_table(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	lpis_disable(m, 0);
	table_set_pending(0, 8195);
	/* Bits of INTIDs that are no LPIs mean nothing. */
	ram_fill(PENDING_TABLE(0), 0xff, 1024);
	redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0));
	lpis_enable(m, 0);
	expect_only(m, 0, 8195);
	machine_stop(m);
}

static void ptz_says_that_the_table_is_zero(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	lpis_disable(m, 0);
	table_set_pending(0, 8195);
	redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0) | GICR_PENDBASER_PTZ);
	lpis_enable(m, 0);
	expect_nothing(m);
	/* What was left in it is wiped when the table is written. */
	lpis_disable(m, 0);
	assert_false(table_pending(0, 8195));
	machine_stop(m);
}

/* While LPIs are disabled the table is the only place that remembers: the guest may clear a bit of it. */
static void pending_state_is_in_the_table_only(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	assert_int_equal(msi(m, 1, 0), 1);
	assert_int_equal(msi(m, 1, 1), 1);
	lpis_disable(m, 0);
	ram_set_byte(PENDING_TABLE(0) + 1024, 0x02);
	redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0));
	lpis_enable(m, 0);
	expect_only(m, 0, 8193);
	machine_stop(m);
}

/* PTZ was said of the table as it was then, not of what disabling has written since. */
static void table_is_read_again_when_lpis_come_back(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	redist_write(m, 0, GICR_CTLR, 0);
	finish_work(m);
	redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0) | GICR_PENDBASER_PTZ);
	lpis_enable(m, 0);
	assert_int_equal(msi(m, 1, 5), 1);
	lpis_disable(m, 0);
	assert_true(table_pending(0, 8197));
	lpis_enable(m, 0);
	expect_only(m, 0, 8197);
	machine_stop(m);
}

/* "Mapped" decides whether a translation finds an LPI; one that is pending needs no mapping. */
static void pending_lpi_of_the_table_needs_no_mapping(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	lpis_disable(m, 0);
	table_set_pending(0, 9000);
	table_set_pending(0, 9001);
	redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0));
	lpis_enable(m, 0);
	assert_int_equal(take(m, 0), 9000);
	/* It goes where it is mapped to, if it is. */
	map_device(m, 2, 4);
	its_run(m, 0, cmd_mapti(2, 0, 9001, 1));
	expect_only(m, 1, 9001);
	machine_stop(m);
}

static void unmapped_pending_lpi_goes_back_to_the_table(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	lpis_disable(m, 0);
	table_set_pending(0, 9000);
	redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0));
	lpis_enable(m, 0);
	lpis_disable(m, 0);
	assert_true(table_pending(0, 9000));
	lpis_enable(m, 0);
	its_run(m, 0, cmd_movall(0, 1));
	expect_only(m, 1, 9000);
	machine_stop(m);
}

static void bit_of_an_lpi_that_is_elsewhere_is_ignored(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	lpis_disable(m, 0);
	table_set_pending(0, 8192 + 16);
	redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0));
	lpis_enable(m, 0);
	expect_nothing(m);
	machine_stop(m);
}

static void signals_to_a_disabled_redistributor_are_dropped(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	lpis_disable(m, 0);
	assert_int_equal(msi(m, 1, 0), 0);
	assert_int_equal(its_stats(m, 0).dropped_lpis_disabled, 1);
	assert_int_equal(msi(m, 1, 16), 1);
	expect_only(m, 1, 8208);
	lpis_enable(m, 0);
	expect_nothing(m);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

/* EnableLPIs may be cleared and set again: CES. LPIs that are mapped or moved meanwhile follow. */
static void mapping_follows_enable_lpis(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	lpis_disable(m, 1);
	map_event(m, 1, 0, 8192, 1);
	assert_int_equal(msi(m, 1, 0), 0);
	its_run(m, 0, cmd_movi(1, 1, 1));
	assert_int_equal(msi(m, 1, 1), 0);
	/* One that is pending when it comes waits. */
	assert_int_equal(msi(m, 1, 2), 1);
	its_run(m, 0, cmd_movi(1, 2, 1));
	expect_nothing(m);
	lpis_enable(m, 1);
	expect_only(m, 1, 8194);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8192);
	its_run(m, 0, cmd_movi(1, 16, 0));
	assert_int_equal(msi(m, 1, 16), 1);
	expect_only(m, 0, 8208);
	machine_stop(m);
}

/* An enable is not through when a disable comes: no bit of the table may be lost. */
static void enable_overtaken_by_disable_loses_nothing(void **state)
{
	static const uint32_t lpis[] = { 8192, 8200, 9000, 20000, 40000, 65535 };
	struct machine *m = boot_mapped();

	(void)state;
	its_run(m, 0, cmd_mapd(2, 3, ITT(2), true));
	its_run(m, 0, cmd_mapti(2, 0, 40000, 0));
	lpis_disable(m, 0);
	for (size_t i = 0; i < sizeof(lpis) / sizeof(lpis[0]); i++)
		table_set_pending(0, lpis[i]);
	redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0));
	redist_write(m, 0, GICR_CTLR, GICR_CTLR_ENABLE_LPIS);
	redist_write(m, 0, GICR_CTLR, 0);
	finish_work(m);
	for (size_t i = 0; i < sizeof(lpis) / sizeof(lpis[0]); i++)
		assert_true(table_pending(0, lpis[i]));
	lpis_enable(m, 0);
	for (size_t i = 0; i < sizeof(lpis) / sizeof(lpis[0]); i++)
		assert_int_not_equal(take(m, 0), NO_INTERRUPT);
	expect_nothing(m);
	machine_stop(m);
}

/* PROPBASER is one for all: a redistributor that is off can narrow it under those that are on. */
static void narrowed_propbaser_does_not_keep_lpis_from_being_disabled(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	its_run(m, 0, cmd_mapd(2, 3, ITT(2), true));
	its_run(m, 0, cmd_mapti(2, 0, 60000, 0));
	lpis_disable(m, 1);
	redist_write_width(m, 1, GICR_PROPBASER, 8, PROPERTY_TABLE | 13);
	assert_int_equal(msi(m, 2, 0), 1);
	lpis_disable(m, 0);
	expect_nothing(m);
	assert_int_equal(msi(m, 2, 0), 0);
	expect_nothing(m);
	machine_stop(m);
}

/* ---- Configuration and delivery ------------------------------------------------------------------------ */

static void acknowledged_lpi_is_not_active(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	assert_int_equal(msi(m, 1, 0), 1);
	assert_int_equal(ack1(m, 0), 8192);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0xa0);
	/* It can be pending again at once, and is signalled once the priority has dropped. */
	assert_int_equal(msi(m, 1, 0), 1);
	assert_int_equal(lines_of(m, 0), 0);
	eoi1(m, 0, 8192);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0xff);
	expect_only(m, 0, 8192);
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

static void eoi_of_an_lpi_only_drops_the_priority(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	icc_write(m, 0, VGIC_ICC_CTLR_EL1, ICC_CTLR_EOIMODE);
	assert_int_equal(msi(m, 1, 0), 1);
	assert_int_equal(ack1(m, 0), 8192);
	eoi1(m, 0, 8192);
	assert_int_equal(msi(m, 1, 0), 1);
	assert_int_equal(ack1(m, 0), 8192);
	eoi1(m, 0, 8192);
	/* There is nothing to deactivate; DIR of an LPI is no error. */
	icc_write(m, 0, VGIC_ICC_DIR_EL1, 8192);
	expect_nothing(m);
	machine_stop(m);
}

static void lpis_obey_the_group_enables(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	dist_write(m, GICD_CTLR, GICD_CTLR_ENABLE_GRP0);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_nothing(m);
	dist_write(m, GICD_CTLR, GICD_CTLR_ENABLE_GRP1);
	icc_write(m, 0, VGIC_ICC_IGRPEN1_EL1, 0);
	expect_nothing(m);
	icc_write(m, 0, VGIC_ICC_IGRPEN1_EL1, 1);
	assert_int_equal(ack0(m, 0), NO_INTERRUPT);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

static void property_byte_holds_enable_and_priority(void **state)
{
	static const struct {
		uint8_t property, priority; /* of which five bits are implemented */
	} cases[] = { { 0xa5, 0xa0 }, { 0x01, 0x00 }, { 0x03, 0x00 }, { 0xef, 0xe8 }, { 0x0d, 0x08 }, { 0xf3, 0xf0 } };
	struct machine *m = boot_mapped();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_property(8192, cases[i].property);
		its_run(m, 0, cmd_event(ITS_CMD_INV, 1, 0));
		assert_int_equal(msi(m, 1, 0), 1);
		assert_int_equal(ack1(m, 0), 8192);
		assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), cases[i].priority);
		eoi1(m, 0, 8192);
	}
	/* Without bit 0 it is disabled, whatever else is set. */
	set_property(8192, 0xfe);
	its_run(m, 0, cmd_event(ITS_CMD_INV, 1, 0));
	assert_int_equal(msi(m, 1, 0), 1);
	expect_nothing(m);
	machine_stop(m);
}

static void priorities_order_and_mask_lpis(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	set_property(8192, 0xc1);
	set_property(8193, 0x41);
	set_property(8194, 0x81);
	its_run(m, 0, cmd_invall(0));
	for (uint32_t event = 0; event < 3; event++)
		assert_int_equal(msi(m, 1, event), 1);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0x40);
	assert_int_equal(lines_of(m, 0), 0);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0xc0);
	assert_int_equal(take(m, 0), 8193);
	assert_int_equal(take(m, 0), 8194);
	expect_nothing(m);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0xff);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

static void invlpir_reads_one_lpi(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	set_property(8192, 0xa0);
	set_property(8193, 0xa0);
	redist_write_width(m, 0, GICR_INVLPIR, 8, 8192);
	assert_int_equal(redist_read(m, 0, GICR_SYNCR), 0);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_nothing(m);
	assert_int_equal(msi(m, 1, 1), 1);
	expect_only(m, 0, 8193);
	set_property(8192, 0xa1);
	redist_write(m, 0, GICR_INVLPIR, 8192);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

static void invlpir_of_what_is_no_lpi_is_ignored(void **state)
{
	static const uint32_t no_lpis[] = { 0, 5, 31, 32, 1023, 8191, 65536, 0xffffffff };
	struct machine *m = boot_mapped();
	const uint64_t reads = ram.num_reads;

	(void)state;
	for (size_t i = 0; i < sizeof(no_lpis) / sizeof(no_lpis[0]); i++)
		redist_write_width(m, 0, GICR_INVLPIR, 8, no_lpis[i]);
	/* The upper half by itself names nothing. */
	redist_write(m, 0, GICR_INVLPIR + 4, 8192);
	assert_int_equal(ram.num_reads, reads);
	assert_int_equal(errors_of_all_kinds(m), 0);
	assert_int_equal(redist_read_width(m, 0, GICR_INVLPIR, 8), 0);
	machine_stop(m);
}

static void invalidations_need_enabled_lpis(void **state)
{
	struct machine *m = boot_mapped();
	uint64_t reads;

	(void)state;
	lpis_disable(m, 0);
	reads = ram.num_reads;
	redist_write_width(m, 0, GICR_INVLPIR, 8, 8192);
	redist_write_width(m, 0, GICR_INVALLR, 8, 0);
	finish_work(m);
	assert_int_equal(ram.num_reads, reads);
	/* Enabling reads the configuration. */
	set_property(8192, 0xa0);
	lpis_enable(m, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_nothing(m);
	machine_stop(m);
}

static void invallr_reads_all_of_the_redistributor(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	ram_fill(PROPERTY_TABLE, 0xa0, 65536 - GIC_FIRST_LPI);
	redist_write_width(m, 0, GICR_INVALLR, 8, 0);
	finish_work(m);
	assert_int_equal(redist_read(m, 0, GICR_SYNCR), 0);
	for (uint32_t event = 0; event < 16; event++)
		assert_int_equal(msi(m, 1, event), 1);
	expect_nothing(m);
	assert_int_equal(msi(m, 1, 16), 1);
	expect_only(m, 1, 8208);
	ram_fill(PROPERTY_TABLE, 0xa1, 65536 - GIC_FIRST_LPI);
	redist_write(m, 0, GICR_INVALLR, 0);
	finish_work(m);
	for (uint32_t event = 0; event < 16; event++)
		assert_int_not_equal(take(m, 0), NO_INTERRUPT);
	expect_nothing(m);
	machine_stop(m);
}

/* ---- Direct LPIs: a system without an ITS --------------------------------------------------------------------- */

static struct machine *boot_direct(uint32_t num_vcpus)
{
	struct machine *m = machine_start(its_describe(num_vcpus, 0));

	lpis_set_up(m);
	return m;
}

/* KVM's redistributors have none of these registers, and a guest that was moved from there must not find them. */
static void kvm_has_no_direct_lpis(void **state)
{
	struct machine *m = its_describe(1, 0);

	(void)state;
	m->config.profile = VGIC_PROFILE_KVM;
	machine_start(m);
	lpis_set_up(m);
	assert_int_equal(redist_read_width(m, 0, GICR_TYPER, 8) & (GICR_TYPER_PLPIS | GICR_TYPER_DIRECT_LPI),
			 GICR_TYPER_PLPIS);
	redist_write_width(m, 0, GICR_SETLPIR, 8, GIC_FIRST_LPI);
	expect_nothing(m);
	machine_stop(m);
}

static void direct_lpis_exist_without_an_its(void **state)
{
	struct machine *m = boot_direct(2);

	(void)state;
	assert_int_equal(redist_read(m, 0, GICR_TYPER) & GICR_TYPER_DIRECT_LPI, GICR_TYPER_DIRECT_LPI);
	redist_write_width(m, 0, GICR_SETLPIR, 8, 8192);
	expect_only(m, 0, 8192);
	redist_write(m, 1, GICR_SETLPIR, 8192);
	expect_only(m, 1, 8192);
	redist_write(m, 1, GICR_SETLPIR, 65535);
	redist_write_width(m, 0, GICR_CLRLPIR, 8, 65535);
	redist_write_width(m, 1, GICR_SETLPIR, 8, 9000);
	redist_write_width(m, 1, GICR_CLRLPIR, 8, 9000);
	expect_only(m, 1, 65535);
	assert_int_equal(redist_read_width(m, 0, GICR_SETLPIR, 8), 0);
	assert_int_equal(redist_read_width(m, 0, GICR_CLRLPIR, 8), 0);
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

static void setlpir_of_what_is_no_lpi_is_ignored(void **state)
{
	static const uint32_t no_lpis[] = { 0, 15, 31, 32, 1019, 1023, 8191, 65536, 0xffffffff };
	struct machine *m = boot_direct(1);

	(void)state;
	for (size_t i = 0; i < sizeof(no_lpis) / sizeof(no_lpis[0]); i++) {
		redist_write_width(m, 0, GICR_SETLPIR, 8, no_lpis[i]);
		redist_write_width(m, 0, GICR_CLRLPIR, 8, no_lpis[i]);
	}
	redist_write(m, 0, GICR_SETLPIR + 4, 8192);
	expect_nothing(m);
	machine_stop(m);
}

static void direct_lpis_obey_enable_and_configuration(void **state)
{
	struct machine *m = boot_direct(1);

	(void)state;
	set_property(8192, 0x80);
	redist_write(m, 0, GICR_SETLPIR, 8192);
	expect_nothing(m);
	set_property(8192, 0x81);
	redist_write(m, 0, GICR_INVLPIR, 8192);
	assert_int_equal(ack1(m, 0), 8192);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0x80);
	eoi1(m, 0, 8192);
	redist_write(m, 0, GICR_SETLPIR, 8192);
	lpis_disable(m, 0);
	expect_nothing(m);
	assert_true(table_pending(0, 8192));
	redist_write(m, 0, GICR_SETLPIR, 8193);
	redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0));
	lpis_enable(m, 0);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

static void with_an_its_there_are_no_direct_lpis(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	redist_write_width(m, 0, GICR_SETLPIR, 8, 8192);
	expect_nothing(m);
	assert_int_equal(msi(m, 1, 0), 1);
	redist_write_width(m, 0, GICR_CLRLPIR, 8, 8192);
	expect_only(m, 0, 8192);
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_have_their_reset_values),
		cmocka_unit_test(table_registers_keep_their_fields),
		cmocka_unit_test(table_registers_are_fixed_while_lpis_are_enabled),
		cmocka_unit_test(without_lpis_there_is_nothing),
		cmocka_unit_test(propbaser_bits_bound_the_lpis),
		cmocka_unit_test(every_size_of_lpi_space_works_at_its_ends),
		cmocka_unit_test(nothing_is_delivered_before_lpis_are_enabled),
		cmocka_unit_test(disabling_moves_pending_lpis_to_the_table),
		cmocka_unit_test(disabling_with_nothing_pending_writes_nothing),
		cmocka_unit_test(disabling_clears_bits_that_are_no_longer_pending),
		cmocka_unit_test(enabling_reads_the_pending_table),
		cmocka_unit_test(ptz_says_that_the_table_is_zero),
		cmocka_unit_test(pending_state_is_in_the_table_only),
		cmocka_unit_test(table_is_read_again_when_lpis_come_back),
		cmocka_unit_test(pending_lpi_of_the_table_needs_no_mapping),
		cmocka_unit_test(unmapped_pending_lpi_goes_back_to_the_table),
		cmocka_unit_test(bit_of_an_lpi_that_is_elsewhere_is_ignored),
		cmocka_unit_test(signals_to_a_disabled_redistributor_are_dropped),
		cmocka_unit_test(mapping_follows_enable_lpis),
		cmocka_unit_test(enable_overtaken_by_disable_loses_nothing),
		cmocka_unit_test(narrowed_propbaser_does_not_keep_lpis_from_being_disabled),
		cmocka_unit_test(acknowledged_lpi_is_not_active),
		cmocka_unit_test(eoi_of_an_lpi_only_drops_the_priority),
		cmocka_unit_test(lpis_obey_the_group_enables),
		cmocka_unit_test(property_byte_holds_enable_and_priority),
		cmocka_unit_test(priorities_order_and_mask_lpis),
		cmocka_unit_test(invlpir_reads_one_lpi),
		cmocka_unit_test(invlpir_of_what_is_no_lpi_is_ignored),
		cmocka_unit_test(invalidations_need_enabled_lpis),
		cmocka_unit_test(invallr_reads_all_of_the_redistributor),
		cmocka_unit_test(kvm_has_no_direct_lpis),
		cmocka_unit_test(direct_lpis_exist_without_an_its),
		cmocka_unit_test(setlpir_of_what_is_no_lpi_is_ignored),
		cmocka_unit_test(direct_lpis_obey_enable_and_configuration),
		cmocka_unit_test(with_an_its_there_are_no_direct_lpis),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("lpi_redistributor", tests, NULL, NULL);
}
