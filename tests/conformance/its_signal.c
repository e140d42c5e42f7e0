/* SPDX-License-Identifier: MIT */
/*
 * Signals of devices: what the calls return, the counters of what was dropped and
 * why, doorbells, several ITSes, and the promise that no signal takes a path that
 * a command has closed.
 */
#include <errno.h>

#include "its_guest.h"

/* Two vCPUs; collections 0 and 1 at them; device 1, events 0 to 2 to LPIs 8192 to 8194 at collection 0. */
static struct machine *boot_mapped(void)
{
	struct machine *m = its_boot_device();

	for (uint32_t event = 0; event < 3; event++)
		map_event(m, 1, event, 8192 + event, 0);
	return m;
}

static uint64_t num_dropped(struct machine *m)
{
	const struct vgic_its_stats stats = its_stats(m, 0);

	return stats.dropped_its_off + stats.dropped_lpis_disabled + stats.dropped_unmapped_collection +
	       stats.dropped_unmapped_event;
}

static void signals_are_delivered_and_merge(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	assert_int_equal(msi(m, 1, 0), 1);
	assert_int_equal(m->kicks[0], 1);
	assert_int_equal(msi(m, 1, 0), 1);
	assert_int_equal(m->num_kicks, 1);
	expect_only(m, 0, 8192);
	assert_int_equal(num_dropped(m), 0);
	machine_stop(m);
}

static void drops_are_counted_by_reason(void **state)
{
	struct machine *m = boot_mapped();
	struct vgic_its_stats stats;

	(void)state;
	assert_int_equal(msi(m, 1, 3), 0);
	assert_int_equal(msi(m, 1, 32), 0);
	assert_int_equal(msi(m, 2, 0), 0);
	assert_int_equal(msi(m, UINT32_MAX, UINT32_MAX), 0);
	assert_int_equal(msi(m, 65537, 0), 0);
	its_run(m, 0, cmd_mapc(0, 0, false));
	assert_int_equal(msi(m, 1, 0), 0);
	map_collection(m, 0, 0);
	redist_write(m, 0, GICR_CTLR, 0);
	finish_work(m);
	assert_int_equal(msi(m, 1, 0), 0);
	assert_int_equal(msi(m, 1, 1), 0);
	its_write(m, 0, GITS_CTLR, 4, 0);
	assert_int_equal(msi(m, 1, 0), -EBUSY);
	assert_int_equal(msi(m, 1, 0), -EBUSY);
	assert_int_equal(msi(m, 99, 99), -EBUSY);
	stats = its_stats(m, 0);
	assert_int_equal(stats.dropped_unmapped_event, 5);
	assert_int_equal(stats.dropped_unmapped_collection, 1);
	assert_int_equal(stats.dropped_lpis_disabled, 2);
	assert_int_equal(stats.dropped_its_off, 3);
	expect_nothing(m);
	/* None of these is the guest's error. */
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

/* A DeviceID above the ITS's bits must not find the device of its lower bits. */
static void device_ids_do_not_alias(void **state)
{
	struct machine *m = its_describe(1, 1);

	(void)state;
	its_configs[0].device_id_bits = 4;
	its_configs[0].event_id_bits = 4;
	machine_start(m);
	its_set_up(m);
	map_collection(m, 0, 0);
	map_device(m, 3, 4);
	map_event(m, 3, 5, 8192, 0);
	for (unsigned bit = 4; bit < 32; bit++) {
		assert_int_equal(msi(m, 3u | 1u << bit, 5), 0);
		assert_int_equal(msi(m, 3, 5u | 1u << bit), 0);
	}
	/* Nor may the two change places. */
	assert_int_equal(msi(m, 5, 3), 0);
	assert_int_equal(its_stats(m, 0).dropped_unmapped_event, 57);
	assert_int_equal(msi(m, 3, 5), 1);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

static void doorbell_calls_return_what_kvm_returns(void **state)
{
	struct machine *m = its_describe(2, 2);
	const uint64_t doorbell = ITS_BASE(0) + VGIC_ITS_DOORBELL;

	(void)state;
	m->config.has_dist_base = true;
	m->config.dist_base = MACHINE_DIST_BASE;
	machine_start(m);
	its_set_up(m);
	map_collection(m, 0, 0);
	map_device(m, 1, 5);
	map_event(m, 1, 7, 8192, 0);
	assert_int_equal(vgic_signal_msi(m->vgic, doorbell, 7, 1, VGIC_MSI_VALID_DEVID), 1);
	expect_only(m, 0, 8192);
	assert_int_equal(vgic_signal_msi(m->vgic, doorbell, 8, 1, VGIC_MSI_VALID_DEVID), 0);
	assert_int_equal(vgic_signal_msi(m->vgic, doorbell, 7, 1, 0), -EINVAL);
	assert_int_equal(vgic_signal_msi(m->vgic, doorbell, 7, 1, 2), -EINVAL);
	assert_int_equal(vgic_signal_msi(m->vgic, doorbell, 7, 1, VGIC_MSI_VALID_DEVID | 1u << 31), -EINVAL);
	assert_int_equal(vgic_signal_msi(m->vgic, doorbell + 4, 7, 1, VGIC_MSI_VALID_DEVID), -ENODEV);
	assert_int_equal(vgic_signal_msi(m->vgic, doorbell - 4, 7, 1, VGIC_MSI_VALID_DEVID), -ENODEV);
	assert_int_equal(vgic_signal_msi(m->vgic, ITS_BASE(0), 7, 1, VGIC_MSI_VALID_DEVID), -ENODEV);
	assert_int_equal(vgic_signal_msi(m->vgic, 0, 7, 1, VGIC_MSI_VALID_DEVID), -ENODEV);
	assert_int_equal(vgic_signal_msi(m->vgic, UINT64_MAX, 7, 1, 0), -ENODEV);
	/* The second ITS knows nothing of the first one's devices. */
	assert_int_equal(vgic_signal_msi(m->vgic, ITS_BASE(1) + VGIC_ITS_DOORBELL, 7, 1, VGIC_MSI_VALID_DEVID), 0);
	its_write(m, 0, GITS_CTLR, 4, 0);
	assert_int_equal(vgic_signal_msi(m->vgic, doorbell, 7, 1, VGIC_MSI_VALID_DEVID), -EBUSY);
	expect_nothing(m);
	machine_stop(m);
}

static void message_based_spis_have_a_doorbell(void **state)
{
	struct machine *m = its_describe(1, 1);
	const uint64_t doorbell = MACHINE_DIST_BASE + GICD_SETSPI_NSR;

	(void)state;
	m->config.has_dist_base = true;
	m->config.dist_base = MACHINE_DIST_BASE;
	machine_start(m);
	its_set_up(m);
	irq_set_up(m, 0, 40, 1, 0x80);
	assert_int_equal(vgic_signal_msi(m->vgic, doorbell, 40, 0, 0), 1);
	expect_only(m, 0, 40);
	assert_int_equal(vgic_signal_msi(m->vgic, doorbell, 31, 0, 0), 0);
	assert_int_equal(vgic_signal_msi(m->vgic, doorbell, 32 + 256, 0, 0), 0);
	assert_int_equal(vgic_signal_msi(m->vgic, doorbell, 8192, 0, 0), 0);
	assert_int_equal(vgic_signal_msi(m->vgic, MACHINE_DIST_BASE + GICD_CLRSPI_NSR, 40, 0, 0), -ENODEV);
	expect_nothing(m);
	machine_stop(m);

	m = its_describe(1, 1);
	m->config.has_dist_base = true;
	m->config.dist_base = MACHINE_DIST_BASE;
	m->config.features &= ~VGIC_FEATURE_MBIS;
	machine_start(m);
	assert_int_equal(vgic_signal_msi(m->vgic, doorbell, 40, 0, 0), -ENODEV);
	machine_stop(m);
}

static void rdbase_is_the_vcpu_id(void **state)
{
	static const uint32_t ids[] = { 5, 0, 9 };
	struct machine *m = its_describe(3, 1);

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		m->vcpus[i].id = ids[i];
	machine_start(m);
	its_set_up(m);
	map_device(m, 1, 5);
	for (uint32_t i = 0; i < 3; i++) {
		const uint64_t number = redist_read_width(m, i, GICR_TYPER, 8) >> GICR_TYPER_NUMBER_SHIFT & 0xffff;

		assert_int_equal(number, ids[i]);
		its_run(m, 0, cmd_mapc(i, number, true));
		map_event(m, 1, i, 8192 + i, i);
		assert_int_equal(msi(m, 1, i), 1);
		expect_only(m, i, 8192 + i);
	}
	/* Indices that are no ids. */
	its_run_wrong(m, 0, cmd_mapc(3, 1, true), VGIC_ITS_MAPC_PROCNUM_OOR);
	its_run_wrong(m, 0, cmd_mapc(3, 2, true), VGIC_ITS_MAPC_PROCNUM_OOR);
	its_run_wrong(m, 0, cmd_movall(5, 1), VGIC_ITS_MOVALL_PROCNUM_OOR);
	its_run_wrong(m, 0, cmd_sync(2), VGIC_ITS_SYNC_PROCNUM_OOR);
	assert_int_equal(msi(m, 1, 0), 1);
	its_run(m, 0, cmd_movall(5, 9));
	expect_only(m, 2, 8192);
	its_run(m, 0, cmd_movi(1, 0, 1));
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8192);
	machine_stop(m);
}

static void itses_have_their_own_devices_and_collections(void **state)
{
	struct machine *m = its_boot(2, 3);

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		its_run(m, i, cmd_mapc(7, i % 2, true));
		its_run(m, i, cmd_mapd(1, 4, ITT(i), true));
		its_run(m, i, cmd_mapti(1, 0, 8192 + i, 7));
		assert_int_equal(its_all_errors(m, i), 0);
	}
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(vgic_its_signal(its_of(m, i), 1, 0), 1);
		expect_only(m, i % 2, 8192 + i);
	}
	its_run(m, 1, cmd_mapd(1, 0, 0, false));
	assert_int_equal(vgic_its_signal(its_of(m, 1), 1, 0), 0);
	its_write(m, 2, GITS_CTLR, 4, 0);
	assert_int_equal(vgic_its_signal(its_of(m, 2), 1, 0), -EBUSY);
	assert_int_equal(vgic_its_signal(its_of(m, 0), 1, 0), 1);
	expect_only(m, 0, 8192);
	assert_int_equal(its_stats(m, 0).num_translations, 1);
	assert_int_equal(its_stats(m, 1).num_translations, 0);
	assert_int_equal(its_stats(m, 2).num_translations, 1);
	machine_stop(m);
}

static void itses_may_share_an_lpi(void **state)
{
	struct machine *m = its_boot(2, 2);

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		its_run(m, i, cmd_mapc(0, i, true));
		its_run(m, i, cmd_mapd(1, 4, ITT(i), true));
		its_run(m, i, cmd_mapti(1, 0, 8192, 0));
	}
	/* The last mapping was that of the second ITS. */
	assert_int_equal(vgic_its_signal(its_of(m, 0), 1, 0), 1);
	expect_only(m, 1, 8192);
	its_run(m, 1, cmd_event(ITS_CMD_DISCARD, 1, 0));
	assert_int_equal(vgic_its_signal(its_of(m, 1), 1, 0), 0);
	assert_int_equal(vgic_its_signal(its_of(m, 0), 1, 0), 1);
	expect_only(m, 1, 8192);
	/* The first ITS goes off and on: its mapping still works. */
	its_write(m, 0, GITS_CTLR, 4, 0);
	assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_QUIESCENT);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	assert_int_equal(vgic_its_signal(its_of(m, 0), 1, 0), 1);
	expect_only(m, 1, 8192);
	/* MOVALL concerns the LPIs of all ITSes. */
	its_run(m, 1, cmd_movall(1, 0));
	assert_int_equal(vgic_its_signal(its_of(m, 0), 1, 0), 1);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

/* MOVALL of one ITS while another's mapping has gone. */
static void movall_passes_over_what_another_its_has_removed(void **state)
{
	struct machine *m = its_boot(2, 2);

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		its_run(m, i, cmd_mapc(0, 0, true));
		its_run(m, i, cmd_mapd(1, 4, ITT(i), true));
		its_run(m, i, cmd_mapti(1, 0, 8192 + i, 0));
		assert_int_equal(vgic_its_signal(its_of(m, i), 1, 0), 1);
	}
	its_run(m, 1, cmd_event(ITS_CMD_DISCARD, 1, 0));
	its_run(m, 0, cmd_movall(0, 1));
	expect_only(m, 1, 8192);
	machine_stop(m);
}

/* ---- Nothing takes the old path ------------------------------------------------------------------------ */

static void expect_path(struct machine *m, int result, uint32_t vcpu, uint32_t lpi)
{
	assert_int_equal(msi(m, 1, 0), result);
	if (result == 1)
		expect_only(m, vcpu, lpi);
	else
		expect_nothing(m);
}

/* After one signal has gone through, each way to close or change its path must show at the next one. */
static void every_change_shows_at_the_next_signal(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	expect_path(m, 1, 0, 8192);
	its_run(m, 0, cmd_movi(1, 0, 1));
	expect_path(m, 1, 1, 8192);
	its_run(m, 0, cmd_movall(1, 0));
	expect_path(m, 1, 0, 8192);
	map_collection(m, 1, 1);
	expect_path(m, 1, 1, 8192);
	its_run(m, 0, cmd_mapc(1, 0, false));
	expect_path(m, 0, 0, 0);
	map_collection(m, 1, 1);
	expect_path(m, 1, 1, 8192);
	map_event(m, 1, 0, 9000, 0);
	expect_path(m, 1, 0, 9000);
	its_run(m, 0, cmd_event(ITS_CMD_DISCARD, 1, 0));
	expect_path(m, 0, 0, 0);
	map_event(m, 1, 0, 8192, 0);
	expect_path(m, 1, 0, 8192);
	its_run(m, 0, cmd_mapd(1, 4, ITT(1), true));
	expect_path(m, 0, 0, 0);
	map_event(m, 1, 0, 8192, 0);
	expect_path(m, 1, 0, 8192);
	its_run(m, 0, cmd_mapd(1, 4, ITT(1), false));
	expect_path(m, 0, 0, 0);
	map_device(m, 1, 5);
	map_event(m, 1, 0, 8192, 0);
	its_write(m, 0, GITS_CTLR, 4, 0);
	expect_path(m, -EBUSY, 0, 0);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	expect_path(m, 1, 0, 8192);
	redist_write(m, 0, GICR_CTLR, 0);
	finish_work(m);
	expect_path(m, 0, 0, 0);
	lpis_enable(m, 0);
	expect_path(m, 1, 0, 8192);
	assert_int_equal(vgic_reset(m->vgic), 0);
	assert_int_equal(msi(m, 1, 0), -EBUSY);
	machine_stop(m);
}

static void reset_forgets_mappings_and_pending_lpis(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	for (uint32_t event = 0; event < 3; event++)
		assert_int_equal(msi(m, 1, event), 1);
	assert_int_equal(vgic_reset(m->vgic), 0);
	assert_int_equal(its_stats(m, 0).num_devices, 0);
	its_set_up(m);
	expect_nothing(m);
	assert_int_equal(msi(m, 1, 0), 0);
	map_collection(m, 0, 1);
	map_device(m, 1, 5);
	map_event(m, 1, 0, 8192, 0);
	expect_nothing(m);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8192);
	assert_int_equal(its_all_errors(m, 0), 0);
	machine_stop(m);
}

/* 300 LPIs pending on one vCPU: each comes exactly once. */
static void many_lpis_are_delivered_once_each(void **state)
{
	static uint8_t seen[65536];
	struct machine *m = its_boot(1, 1);

	(void)state;
	map_collection(m, 0, 0);
	map_device(m, 1, 9);
	for (uint32_t i = 0; i < 300; i++) {
		set_property(8192 + 191 * i,
			     (uint8_t)(i % 32 * 8 < 0xf0 ? i % 32 * 8 | LPI_ENABLED : 0xe8 | LPI_ENABLED));
		map_event(m, 1, i, 8192 + 191 * i, 0);
		seen[8192 + 191 * i] = 0;
	}
	for (uint32_t i = 0; i < 300; i++)
		assert_int_equal(msi(m, 1, i), 1);
	for (uint32_t i = 0; i < 300; i++) {
		const uint32_t intid = take(m, 0);

		assert_in_range(intid, 8192, 65535);
		assert_int_equal((intid - 8192) % 191, 0);
		assert_int_equal(seen[intid]++, 0);
	}
	expect_nothing(m);
	machine_stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signals_are_delivered_and_merge),
		cmocka_unit_test(drops_are_counted_by_reason),
		cmocka_unit_test(device_ids_do_not_alias),
		cmocka_unit_test(doorbell_calls_return_what_kvm_returns),
		cmocka_unit_test(message_based_spis_have_a_doorbell),
		cmocka_unit_test(rdbase_is_the_vcpu_id),
		cmocka_unit_test(itses_have_their_own_devices_and_collections),
		cmocka_unit_test(itses_may_share_an_lpi),
		cmocka_unit_test(movall_passes_over_what_another_its_has_removed),
		cmocka_unit_test(every_change_shows_at_the_next_signal),
		cmocka_unit_test(reset_forgets_mappings_and_pending_lpis),
		cmocka_unit_test(many_lpis_are_delivered_once_each),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("its_signal", tests, NULL, NULL);
}
