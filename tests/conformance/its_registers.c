/* SPDX-License-Identifier: MIT */
/*
 * The registers of an ITS as the guest sees them: reset values, the features of
 * each configuration, 32-bit halves, the command queue's pointers, the tables'
 * registers, enabling and Quiescent, and the doorbell's page.
 */
#include <errno.h>

#include "its_guest.h"

#define BASER_DEVICES_FIXED     0x0107000000000200ull
#define BASER_COLLECTIONS_FIXED 0x0407000000000200ull
/* Cacheability and shareability: inner cacheable and inner shareable at reset. */
#define BASER_RESET_ATTRIBUTES  0x1800000000000400ull

/* Frames by offset, no tables: an ITS as reset leaves it. */
static struct machine *its_fresh(void)
{
	return machine_start(its_describe(1, 1));
}

/* With tables, but disabled. */
static struct machine *its_ready(void)
{
	struct machine *m = its_fresh();

	lpis_set_up(m);
	its_tables_set_up(m, 0);
	return m;
}

static void registers_have_their_reset_values(void **state)
{
	struct machine *m = its_fresh();

	(void)state;
	assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_QUIESCENT);
	assert_int_equal(its_read(m, 0, GITS_IIDR, 4), dist_read(m, GICD_IIDR));
	assert_int_equal(its_read(m, 0, GITS_CBASER, 8), 0);
	assert_int_equal(its_read(m, 0, GITS_CWRITER, 8), 0);
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), 0);
	assert_int_equal(its_read(m, 0, GITS_BASER0, 8), BASER_DEVICES_FIXED | BASER_RESET_ATTRIBUTES);
	assert_int_equal(its_read(m, 0, GITS_BASER1, 8), BASER_COLLECTIONS_FIXED | BASER_RESET_ATTRIBUTES);
	for (uint32_t n = 2; n < GITS_NUM_BASERS; n++)
		assert_int_equal(its_read(m, 0, GITS_BASER0 + 8 * n, 8), 0);
	assert_int_equal(its_read(m, 0, GIC_PIDR2, 4) >> 4 & 15, 3);
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

static void reset_gives_reset_values(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	map_device(m, 1, 4);
	map_collection(m, 0, 0);
	map_event(m, 1, 0, 8192, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	assert_int_equal(vgic_reset(m->vgic), 0);
	assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_QUIESCENT);
	assert_int_equal(its_read(m, 0, GITS_CBASER, 8), 0);
	assert_int_equal(its_read(m, 0, GITS_CWRITER, 8), 0);
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), 0);
	assert_int_equal(its_read(m, 0, GITS_BASER0, 8), BASER_DEVICES_FIXED | BASER_RESET_ATTRIBUTES);
	assert_int_equal(its_read(m, 0, GITS_BASER1, 8), BASER_COLLECTIONS_FIXED | BASER_RESET_ATTRIBUTES);
	assert_int_equal(redist_read(m, 0, GICR_CTLR) & GICR_CTLR_ENABLE_LPIS, 0);
	assert_int_equal(redist_read_width(m, 0, GICR_PROPBASER, 8), 0);
	assert_int_equal(redist_read_width(m, 0, GICR_PENDBASER, 8), 0);
	assert_int_equal(its_stats(m, 0).num_devices, 0);
	assert_int_equal(its_stats(m, 0).num_translations, 0);
	assert_int_equal(msi(m, 1, 0), -EBUSY);
	machine_stop(m);
}

static void check_typer(uint32_t device_bits, uint32_t event_bits)
{
	struct machine *m = its_describe(1, 1);
	uint64_t typer;

	its_configs[0].device_id_bits = device_bits;
	its_configs[0].event_id_bits = event_bits;
	its_configs[0].max_devices = 4;
	its_configs[0].max_translations = 4;
	machine_start(m);
	typer = its_read(m, 0, GITS_TYPER, 8);
	assert_int_equal(GITS_TYPER_DEVBITS(typer), (device_bits ? device_bits : 16) - 1);
	assert_int_equal(GITS_TYPER_ID_BITS(typer), (event_bits ? event_bits : 16) - 1);
	assert_int_equal(GITS_TYPER_ITT_ENTRY(typer), GITS_ENTRY_SIZE - 1);
	/* Physical LPIs; RDbase is a processor number; collections are in memory and have 16 bits. Nothing else. */
	assert_int_equal(typer & ~0x3fff0ull, GITS_TYPER_PHYSICAL);
	machine_stop(m);
}

static void typer_shows_the_configuration(void **state)
{
	(void)state;
	check_typer(0, 0);
	for (uint32_t device_bits = 1; device_bits <= 32; device_bits++)
		check_typer(device_bits, 16);
	for (uint32_t event_bits = 1; event_bits <= 16; event_bits++)
		check_typer(16, event_bits);
	check_typer(1, 1);
	check_typer(32, 1);
}

static void distributor_shows_the_lpi_bits(void **state)
{
	(void)state;
	for (uint32_t bits = VGIC_MIN_LPI_BITS; bits <= VGIC_MAX_LPI_BITS; bits++) {
		struct machine *m = its_describe(1, 1);

		m->config.lpi_id_bits = bits;
		machine_start(m);
		assert_int_equal(dist_read(m, GICD_TYPER) >> GICD_TYPER_IDBITS_SHIFT & 31, bits - 1);
		assert_int_equal(dist_read(m, GICD_TYPER) & GICD_TYPER_LPIS, GICD_TYPER_LPIS);
		/* INTIDs of more than 16 bits need a CPU interface that has them. */
		assert_int_equal(icc_read(m, 0, VGIC_ICC_CTLR_EL1) >> ICC_CTLR_IDBITS_SHIFT & 7, bits > 16);
		assert_int_equal(redist_read_width(m, 0, GICR_TYPER, 8) & GICR_TYPER_PLPIS, GICR_TYPER_PLPIS);
		assert_int_equal(redist_read_width(m, 0, GICR_TYPER, 8) & GICR_TYPER_DIRECT_LPI, 0);
		machine_stop(m);
	}
}

static void wide_registers_have_halves(void **state)
{
	static const uint32_t offsets[] = {
		GITS_TYPER, GITS_CBASER, GITS_CWRITER, GITS_CREADR, GITS_BASER0, GITS_BASER1
	};
	struct machine *m = its_ready();

	(void)state;
	its_place(m, 0, cmd_sync(0));
	its_submit(m, 0);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		const uint64_t whole = its_read(m, 0, offsets[i], 8);

		assert_true(whole != 0);
		assert_int_equal(its_read(m, 0, offsets[i], 4), (uint32_t)whole);
		assert_int_equal(its_read(m, 0, offsets[i] + 4, 4), whole >> 32);
	}
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

static void wide_registers_are_written_by_halves(void **state)
{
	struct machine *m = its_fresh();

	(void)state;
	its_write(m, 0, GITS_CBASER, 4, (uint32_t)QUEUE(0) | 3);
	assert_int_equal(its_read(m, 0, GITS_CBASER, 8), (uint32_t)QUEUE(0) | 3);
	its_write(m, 0, GITS_CBASER + 4, 4, 0x80000000u | QUEUE(0) >> 32);
	assert_int_equal(its_read(m, 0, GITS_CBASER, 8), GITS_CBASER_VALID | QUEUE(0) | 3);
	its_write(m, 0, GITS_BASER0 + 4, 4, 0xc0000000u);
	its_write(m, 0, GITS_BASER0, 4, (uint32_t)DEVICE_TABLE(0) | 7);
	assert_int_equal(its_read(m, 0, GITS_BASER0, 8),
			 GITS_BASER_VALID | GITS_BASER_INDIRECT | BASER_DEVICES_FIXED | DEVICE_TABLE(0) | 7);
	its_write(m, 0, GITS_CWRITER, 4, 0x40);
	assert_int_equal(its_read(m, 0, GITS_CWRITER, 8), 0x40);
	its_write(m, 0, GITS_CWRITER + 4, 4, 0xffffffff);
	assert_int_equal(its_read(m, 0, GITS_CWRITER, 8), 0x40);
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

static void read_only_registers_ignore_writes(void **state)
{
	static const struct {
		uint32_t offset;
		unsigned width;
	} registers[] = {
		{ GITS_IIDR, 4 }, { GITS_TYPER, 8 }, { GITS_TYPER + 4, 4 }, { GITS_CREADR, 8 }, { GIC_PIDR2, 4 }
	};
	struct machine *m = its_ready();

	(void)state;
	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		const uint64_t before = its_read(m, 0, registers[i].offset, registers[i].width);

		its_write(m, 0, registers[i].offset, registers[i].width, ~before);
		assert_int_equal(its_read(m, 0, registers[i].offset, registers[i].width), before);
		assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_READ_ONLY), i + 1);
	}
	machine_stop(m);
}

static void control_registers_have_32_bits(void **state)
{
	struct machine *m = its_ready();

	(void)state;
	its_write(m, 0, GITS_CTLR, 8, GITS_CTLR_ENABLED);
	assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_QUIESCENT);
	assert_int_equal(its_read(m, 0, GITS_CTLR, 8), 0);
	assert_int_equal(its_read(m, 0, GITS_CTLR, 1), 0);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_WIDTH), 3);
	machine_stop(m);
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static void baser_fixed_fields_cannot_be_written(void **state)
{
	struct machine *m = its_fresh();

	(void)state;
	for (uint32_t n = 0; n < 2; n++) {
		const uint32_t offset = GITS_BASER0 + 8 * n;
		const uint64_t fixed = n == 0 ? BASER_DEVICES_FIXED : BASER_COLLECTIONS_FIXED;
		const uint64_t indirect = n == 0 ? GITS_BASER_INDIRECT : 0;

		its_write(m, 0, offset, 8, ~0ull);
		/* Valid, Indirect, attributes, address bits 47:16 and 51:48 (in 15:12), Size. */
		assert_int_equal(its_read(m, 0, offset, 8),
				 fixed | GITS_BASER_VALID | indirect | 0x38e0fffffffffcffull);
		its_write(m, 0, offset, 8, 0);
		assert_int_equal(its_read(m, 0, offset, 8), fixed);
	}
	machine_stop(m);
}

static void unimplemented_basers_are_res0(void **state)
{
	struct machine *m = its_fresh();

	(void)state;
	for (uint32_t n = 2; n < GITS_NUM_BASERS; n++) {
		its_write(m, 0, GITS_BASER0 + 8 * n, 8, ~0ull);
		assert_int_equal(its_read(m, 0, GITS_BASER0 + 8 * n, 8), 0);
	}
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

static void tables_cannot_change_while_the_its_is_on(void **state)
{
	static const uint32_t offsets[] = { GITS_CBASER, GITS_BASER0, GITS_BASER1 };
	struct machine *m = its_boot(1, 1);

	(void)state;
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		const uint64_t before = its_read(m, 0, offsets[i], 8);

		its_write(m, 0, offsets[i], 8, 0);
		assert_int_equal(its_read(m, 0, offsets[i], 8), before);
	}
	its_run(m, 0, cmd_sync(0));
	assert_int_equal(its_all_errors(m, 0), 0);
	machine_stop(m);
}

static void devices_go_with_their_table(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	map_collection(m, 0, 0);
	for (uint32_t device = 0; device < 3; device++) {
		map_device(m, device, 4);
		map_event(m, device, 1, 8192 + device, 0);
	}
	assert_int_equal(its_stats(m, 0).num_translations, 3);
	its_write(m, 0, GITS_CTLR, 4, 0);
	its_write(m, 0, GITS_BASER0, 8, DEVICE_TABLE(0));
	assert_int_equal(its_stats(m, 0).num_devices, 0);
	assert_int_equal(its_stats(m, 0).num_translations, 0);
	its_write(m, 0, GITS_BASER0, 8, GITS_BASER_VALID | DEVICE_TABLE(0));
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	assert_int_equal(msi(m, 1, 1), 0);
	assert_int_equal(its_stats(m, 0).dropped_unmapped_event, 1);
	/* Collections have a table of their own. */
	map_device(m, 1, 4);
	map_event(m, 1, 1, 8192, 0);
	assert_int_equal(msi(m, 1, 1), 1);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

static void collections_go_with_their_table(void **state)
{
	struct machine *m = its_boot(2, 1);

	(void)state;
	map_collection(m, 0, 0);
	map_collection(m, 1, 1);
	map_device(m, 1, 4);
	map_event(m, 1, 0, 8192, 0);
	map_event(m, 1, 1, 8193, 1);
	its_write(m, 0, GITS_CTLR, 4, 0);
	its_write(m, 0, GITS_BASER1, 8, COLLECTION_TABLE(0));
	its_write(m, 0, GITS_BASER1, 8, GITS_BASER_VALID | COLLECTION_TABLE(0));
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	assert_int_equal(its_stats(m, 0).num_translations, 2);
	assert_int_equal(msi(m, 1, 0), 0);
	assert_int_equal(msi(m, 1, 1), 0);
	assert_int_equal(its_stats(m, 0).dropped_unmapped_collection, 2);
	expect_nothing(m);
	map_collection(m, 0, 1);
	assert_int_equal(msi(m, 1, 0), 1);
	assert_int_equal(msi(m, 1, 1), 0);
	expect_only(m, 1, 8192);
	machine_stop(m);
}

/* ---- The queue's registers --------------------------------------------------------------------- */

static void new_queue_begins_at_its_first_command(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	its_run(m, 0, cmd_sync(0));
	its_run(m, 0, cmd_sync(0));
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), 0x40);
	its_write(m, 0, GITS_CTLR, 4, 0);
	its_write(m, 0, GITS_CBASER, 8, GITS_CBASER_VALID | QUEUE(0));
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), 0);
	assert_int_equal(its_read(m, 0, GITS_CWRITER, 8), 0);
	machine_stop(m);
}

static void cbaser_keeps_its_fields(void **state)
{
	struct machine *m = its_fresh();

	(void)state;
	its_write(m, 0, GITS_CBASER, 8, ~0ull);
	/* Valid, InnerCache 61:59, OuterCache 55:53, address 51:12, Shareability 11:10, Size 7:0. */
	assert_int_equal(its_read(m, 0, GITS_CBASER, 8), 0xb8effffffffffcffull);
	its_write(m, 0, GITS_CBASER, 8, 0);
	assert_int_equal(its_read(m, 0, GITS_CBASER, 8), 0);
	machine_stop(m);
}

static void cwriter_past_the_queue_is_ignored(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	its_run(m, 0, cmd_sync(0));
	its_write(m, 0, GITS_CWRITER, 8, 0x1000);
	assert_int_equal(its_read(m, 0, GITS_CWRITER, 8), 0x20);
	its_write(m, 0, GITS_CWRITER, 8, 0xfffe0);
	assert_int_equal(its_read(m, 0, GITS_CWRITER, 8), 0x20);
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), 0x20);
	assert_int_equal(its_stats(m, 0).commands, 1);
	/* The last place of the queue is one. */
	its_write(m, 0, GITS_CWRITER, 8, 0xfe0);
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), 0xfe0);
	assert_int_equal(its_stats(m, 0).commands, 127);
	machine_stop(m);
}

static void cwriter_has_only_an_offset(void **state)
{
	struct machine *m = its_fresh();

	(void)state;
	its_write(m, 0, GITS_CBASER, 8, GITS_CBASER_VALID | QUEUE(0) | 0xff);
	its_write(m, 0, GITS_CWRITER, 8, ~0ull);
	assert_int_equal(its_read(m, 0, GITS_CWRITER, 8), 0xfffe0);
	its_write(m, 0, GITS_CWRITER, 8, 0x1f);
	assert_int_equal(its_read(m, 0, GITS_CWRITER, 8), 0);
	machine_stop(m);
}

static void cwriter_without_a_queue_is_ignored(void **state)
{
	struct machine *m = its_fresh();

	(void)state;
	its_write(m, 0, GITS_CBASER, 8, QUEUE(0));
	its_write(m, 0, GITS_CWRITER, 8, 0x20);
	assert_int_equal(its_read(m, 0, GITS_CWRITER, 8), 0);
	machine_stop(m);
}

static void creadr_wraps_and_each_command_runs_once(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	/* 128 commands fit into the queue. INT shows each of them by an interrupt of its own. */
	map_collection(m, 0, 0);
	map_device(m, 1, 9);
	for (uint32_t i = 0; i < 300; i++)
		map_event(m, 1, i, 8192 + i, 0);
	for (uint32_t i = 0; i < 300; i++) {
		its_run(m, 0, cmd_event(ITS_CMD_INT, 1, i));
		expect_only(m, 0, 8192 + i);
	}
	assert_int_equal(its_stats(m, 0).commands, 602);
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), 602 * ITS_CMD_SIZE % GITS_QUEUE_PAGE);
	assert_int_equal(its_all_errors(m, 0), 0);
	machine_stop(m);
}

static void submitting_across_the_end_runs_all(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	for (int i = 0; i < 120; i++)
		its_place(m, 0, cmd_sync(0));
	its_submit(m, 0);
	for (int i = 0; i < 20; i++)
		its_place(m, 0, cmd_sync(0));
	its_submit(m, 0);
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), 12 * ITS_CMD_SIZE);
	assert_int_equal(its_stats(m, 0).commands, 140);
	machine_stop(m);
}

static void largest_queue_is_used_to_its_end(void **state)
{
	struct machine *m = its_ready();

	(void)state;
	its_write(m, 0, GITS_CBASER, 8, GITS_CBASER_VALID | QUEUE(0) | 0xff);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	for (int i = 0; i < 32767; i++)
		its_place(m, 0, cmd_sync(0));
	its_submit(m, 0);
	finish_work(m);
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), 0xfffe0);
	its_run(m, 0, cmd_sync(0));
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), 0);
	assert_int_equal(its_stats(m, 0).commands, 32768);
	assert_int_equal(its_all_errors(m, 0), 0);
	machine_stop(m);
}

/* ---- Enabling ------------------------------------------------------------------------------------ */

static void enabling_needs_queue_and_tables(void **state)
{
	static const uint32_t missing[] = { GITS_CBASER, GITS_BASER0, GITS_BASER1 };

	(void)state;
	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		struct machine *m = its_ready();
		const uint64_t value = its_read(m, 0, missing[i], 8);

		its_write(m, 0, missing[i], 8, value & ~GITS_BASER_VALID);
		its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
		assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_QUIESCENT);
		assert_int_equal(msi(m, 0, 0), -EBUSY);
		its_write(m, 0, missing[i], 8, value);
		assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_QUIESCENT);
		its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
		assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_ENABLED);
		machine_stop(m);
	}
}

static void ctlr_has_one_writable_bit(void **state)
{
	struct machine *m = its_ready();

	(void)state;
	its_write(m, 0, GITS_CTLR, 4, ~1u);
	assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_QUIESCENT);
	its_write(m, 0, GITS_CTLR, 4, ~0u);
	assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_ENABLED);
	machine_stop(m);
}

static void enabling_leaves_creadr_alone(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	its_run(m, 0, cmd_sync(0));
	its_run(m, 0, cmd_sync(0));
	its_write(m, 0, GITS_CTLR, 4, 0);
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), 0x40);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), 0x40);
	assert_int_equal(its_stats(m, 0).commands, 2);
	machine_stop(m);
}

static void commands_wait_until_the_its_is_enabled(void **state)
{
	struct machine *m = its_ready();

	(void)state;
	its_place(m, 0, cmd_mapd(1, 3, ITT(0), true));
	its_submit(m, 0);
	assert_int_equal(its_read(m, 0, GITS_CWRITER, 8), 0x20);
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), 0);
	assert_int_equal(vgic_run_work(m->vgic), 0);
	assert_int_equal(its_stats(m, 0).num_devices, 0);
	assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_QUIESCENT);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), 0x20);
	assert_int_equal(its_stats(m, 0).num_devices, 1);
	machine_stop(m);
}

static void disabled_its_drops_signals_and_keeps_translations(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	map_collection(m, 0, 0);
	map_device(m, 1, 4);
	map_event(m, 1, 0, 8192, 0);
	its_write(m, 0, GITS_CTLR, 4, 0);
	assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_QUIESCENT);
	assert_int_equal(msi(m, 1, 0), -EBUSY);
	assert_int_equal(its_stats(m, 0).dropped_its_off, 1);
	expect_nothing(m);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

/* What was delivered before stays delivered. */
static void disabling_does_not_touch_pending_lpis(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	map_collection(m, 0, 0);
	map_device(m, 1, 4);
	map_event(m, 1, 0, 8192, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	its_write(m, 0, GITS_CTLR, 4, 0);
	assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_QUIESCENT);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

/* ---- The rest of the frame ------------------------------------------------------------------------ */

static void doorbell_page_reads_as_zero(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	map_collection(m, 0, 0);
	map_device(m, 0, 4);
	map_event(m, 0, 0, 8192, 0);
	assert_int_equal(its_read(m, 0, GITS_TRANSLATER, 4), 0);
	/* A CPU has no DeviceID. */
	its_write(m, 0, GITS_TRANSLATER, 4, 0);
	expect_nothing(m);
	assert_int_equal(errors_of_all_kinds(m), 0);
	assert_int_equal(its_read(m, 0, 0x10000, 8), 0);
	assert_int_equal(its_read(m, 0, 0x1fff8, 8), 0);
	its_write(m, 0, 0x10000, 8, ~0ull);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_RESERVED), 3);
	machine_stop(m);
}

static void frames_are_found_by_address(void **state)
{
	struct machine *m = its_describe(1, 3);
	uint64_t value = 0;

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		its_configs[i].device_id_bits = 5 + i;
	its_configs[2].has_base = false;
	machine_start(m);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(vgic_mmio_read(m->vgic, ITS_BASE(i) + GITS_TYPER, 8, &value), 0);
		assert_int_equal(GITS_TYPER_DEVBITS(value), 4 + i);
		assert_int_equal(vgic_mmio_write(m->vgic, ITS_BASE(i) + GITS_CBASER, 8, QUEUE(i)), 0);
	}
	assert_int_equal(its_read(m, 0, GITS_CBASER, 8), QUEUE(0));
	assert_int_equal(its_read(m, 1, GITS_CBASER, 8), QUEUE(1));
	/* The third has no address, and behind the second there is nothing. */
	assert_int_equal(vgic_mmio_read(m->vgic, ITS_BASE(2) + GITS_TYPER, 8, &value), -ENXIO);
	assert_int_equal(GITS_TYPER_DEVBITS(its_read(m, 2, GITS_TYPER, 8)), 6);
	assert_null(vgic_its_by_index(m->vgic, 3));
	assert_null(vgic_its_by_index(m->vgic, UINT32_MAX));
	machine_stop(m);
}

static void kvm_profile_shows_kvms_registers(void **state)
{
	struct machine *m = its_describe(2, 1);

	(void)state;
	m->config.profile = VGIC_PROFILE_KVM;
	m->config.features = VGIC_FEATURE_LPIS;
	machine_start(m);
	assert_int_equal(its_read(m, 0, GITS_TYPER, 8), 0x1ef71);
	assert_int_equal(its_read(m, 0, GITS_IIDR, 4), 0x4b00043b);
	assert_int_equal(its_read(m, 0, GITS_BASER0, 8), 0x1907000000000600ull);
	assert_int_equal(its_read(m, 0, GITS_BASER1, 8), 0x1c07000000000600ull);
	assert_int_equal(redist_read(m, 0, GICR_TYPER), 0x1);
	assert_int_equal(redist_read(m, 1, GICR_TYPER), 0x111);
	machine_stop(m);
}

static void kvm_its_shows_all_id_registers(void **state)
{
	static const uint32_t ids[12] = { 0x40, 0, 0, 0, 0x92, 0xb4, 0x3b, 0, 0x0d, 0xf0, 0x05, 0xb1 };
	struct machine *m = its_describe(1, 1);

	(void)state;
	m->config.profile = VGIC_PROFILE_KVM;
	m->config.features = VGIC_FEATURE_LPIS;
	machine_start(m);
	for (uint32_t i = 0; i < 12; i++) {
		assert_int_equal(its_read(m, 0, 0xffd0 + 4 * i, 4), ids[i]);
		assert_int_equal(redist_read(m, 0, 0xffd0 + 4 * i), i == 6 ? 0x3b : 0);
	}
	machine_stop(m);
}

/* Each cacheability and shareability that can be written, and what KVM shows for it. */
static void kvm_shows_the_table_attributes_that_it_would_use(void **state)
{
	static const uint64_t inner[8] = { 3, 3, 2, 3, 4, 5, 6, 7 }, outer[8] = { 0, 1 },
			      shareability[4] = { 0, 1, 1, 3 };
	struct machine *m = its_describe(1, 1);

	(void)state;
	m->config.profile = VGIC_PROFILE_KVM;
	m->config.features = VGIC_FEATURE_LPIS;
	machine_start(m);
	assert_int_equal(redist_read_width(m, 0, GICR_PROPBASER, 8), 0x580);
	assert_int_equal(redist_read_width(m, 0, GICR_PENDBASER, 8), 0x580);
	for (uint64_t i = 0; i < 8 * 8 * 4; i++) {
		const uint64_t in = i % 8, out = i / 8 % 8, share = i / 64;
		const uint64_t gits = in << 59 | out << 53 | share << 10, gicr = in << 7 | out << 56 | share << 10;
		const uint64_t gits_shown = inner[in] << 59 | outer[out] << 53 | shareability[share] << 10;
		const uint64_t gicr_shown = inner[in] << 7 | outer[out] << 56 | shareability[share] << 10;

		its_write(m, 0, GITS_CBASER, 8, QUEUE(0) | gits);
		assert_int_equal(its_read(m, 0, GITS_CBASER, 8), QUEUE(0) | gits_shown);
		its_write(m, 0, GITS_BASER0, 8, DEVICE_TABLE(0) | gits);
		assert_int_equal(its_read(m, 0, GITS_BASER0, 8), 0x0107000000000200ull | DEVICE_TABLE(0) | gits_shown);
		its_write(m, 0, GITS_BASER1, 8, COLLECTION_TABLE(0) | gits);
		assert_int_equal(its_read(m, 0, GITS_BASER1, 8),
				 0x0407000000000200ull | COLLECTION_TABLE(0) | gits_shown);
		redist_write_width(m, 0, GICR_PROPBASER, 8, PROPERTY_TABLE | 15 | gicr);
		assert_int_equal(redist_read_width(m, 0, GICR_PROPBASER, 8), PROPERTY_TABLE | 15 | gicr_shown);
		redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0) | gicr);
		assert_int_equal(redist_read_width(m, 0, GICR_PENDBASER, 8), PENDING_TABLE(0) | gicr_shown);
	}
	machine_stop(m);
}

static void kvm_queue_begins_at_64_kib(void **state)
{
	struct machine *m = its_describe(1, 1);

	(void)state;
	m->config.profile = VGIC_PROFILE_KVM;
	m->config.features = VGIC_FEATURE_LPIS;
	machine_start(m);
	its_write(m, 0, GITS_CBASER, 8, QUEUE(0) | 0xf000 | 3ull << 59);
	assert_int_equal(its_read(m, 0, GITS_CBASER, 8), QUEUE(0) | 3ull << 59);
	machine_stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_have_their_reset_values),
		cmocka_unit_test(reset_gives_reset_values),
		cmocka_unit_test(typer_shows_the_configuration),
		cmocka_unit_test(distributor_shows_the_lpi_bits),
		cmocka_unit_test(wide_registers_have_halves),
		cmocka_unit_test(wide_registers_are_written_by_halves),
		cmocka_unit_test(read_only_registers_ignore_writes),
		cmocka_unit_test(control_registers_have_32_bits),
		cmocka_unit_test(baser_fixed_fields_cannot_be_written),
		cmocka_unit_test(unimplemented_basers_are_res0),
		cmocka_unit_test(tables_cannot_change_while_the_its_is_on),
		cmocka_unit_test(devices_go_with_their_table),
		cmocka_unit_test(collections_go_with_their_table),
		cmocka_unit_test(new_queue_begins_at_its_first_command),
		cmocka_unit_test(cbaser_keeps_its_fields),
		cmocka_unit_test(cwriter_past_the_queue_is_ignored),
		cmocka_unit_test(cwriter_has_only_an_offset),
		cmocka_unit_test(cwriter_without_a_queue_is_ignored),
		cmocka_unit_test(creadr_wraps_and_each_command_runs_once),
		cmocka_unit_test(submitting_across_the_end_runs_all),
		cmocka_unit_test(largest_queue_is_used_to_its_end),
		cmocka_unit_test(enabling_needs_queue_and_tables),
		cmocka_unit_test(ctlr_has_one_writable_bit),
		cmocka_unit_test(enabling_leaves_creadr_alone),
		cmocka_unit_test(commands_wait_until_the_its_is_enabled),
		cmocka_unit_test(disabled_its_drops_signals_and_keeps_translations),
		cmocka_unit_test(disabling_does_not_touch_pending_lpis),
		cmocka_unit_test(doorbell_page_reads_as_zero),
		cmocka_unit_test(frames_are_found_by_address),
		cmocka_unit_test(kvm_profile_shows_kvms_registers),
		cmocka_unit_test(kvm_its_shows_all_id_registers),
		cmocka_unit_test(kvm_shows_the_table_attributes_that_it_would_use),
		cmocka_unit_test(kvm_queue_begins_at_64_kib),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("its_registers", tests, NULL, NULL);
}
