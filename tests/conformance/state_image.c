/* SPDX-License-Identifier: MIT */
/*
 * The image of a whole controller: what it holds, where it can be restored, and
 * images that were damaged or made by an enemy; pausing MSIs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vgic/state.h>

#include "its_guest.h"

#define HEADER_SIZE 32u

/* ---- Allocations: the linker sends the library's through here -------------------------------- */

static unsigned long num_allocations, fail_at;
static long num_live;

void *__real_port_alloc_zeroed(size_t size, size_t align);
void __real_port_free(void *memory);
void *__wrap_port_alloc_zeroed(size_t size, size_t align);
void __wrap_port_free(void *memory);

void *__wrap_port_alloc_zeroed(size_t size, size_t align)
{
	void *memory = ++num_allocations == fail_at ? NULL : __real_port_alloc_zeroed(size, align);

	num_live += memory != NULL;
	return memory;
}

void __wrap_port_free(void *memory)
{
	num_live -= memory != NULL;
	__real_port_free(memory);
}

/* ---- Images ------------------------------------------------------------------------------------------ */

struct image {
	uint8_t *bytes;
	size_t size;
};

static struct image save(struct machine *m)
{
	struct image image = { 0 };
	size_t used = 0;

	assert_int_equal(vgic_save_size(m->vgic, &image.size), 0);
	image.bytes = malloc(image.size);
	assert_non_null(image.bytes);
	assert_int_equal(vgic_save(m->vgic, image.bytes, image.size, &used), 0);
	assert_int_equal(used, image.size);
	return image;
}

static struct image copy_of(const struct image *image)
{
	struct image copy = { .bytes = malloc(image->size), .size = image->size };

	assert_non_null(copy.bytes);
	memcpy(copy.bytes, image->bytes, image->size);
	return copy;
}

static int try_restore(struct machine *m, const struct image *image, struct vgic_restore_error *why)
{
	*why = (struct vgic_restore_error){ .size = sizeof(*why) };
	return vgic_restore(m->vgic, image->bytes, image->size, why);
}

static void restore(struct machine *m, const struct image *image)
{
	struct vgic_restore_error why;
	const int err = try_restore(m, image, &why);

	if (err)
		print_message("# %d: %s: %llu, here %llu, at byte %llu\n", err, why.what,
			      (unsigned long long)why.in_image, (unsigned long long)why.here,
			      (unsigned long long)why.image_offset);
	assert_int_equal(err, 0);
}

/* The controller is what the image says, to the byte. */
static void expect_state(struct machine *m, const struct image *expected)
{
	struct image now = save(m);

	assert_int_equal(now.size, expected->size);
	assert_memory_equal(now.bytes, expected->bytes, now.size);
	free(now.bytes);
}

static uint64_t get(const uint8_t *p, unsigned n)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < n; i++)
		value |= (uint64_t)p[i] << (8 * i);
	return value;
}

static void put(uint8_t *p, uint64_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		p[i] = (uint8_t)(value >> (8 * i));
}

/* CRC-32C bit by bit: not the library's. */
static uint32_t crc_of(const uint8_t *p, size_t n)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}

/* Length and checksums that fit, whatever was changed. */
static void seal(struct image *image)
{
	put(image->bytes + 16, image->size, 8);
	put(image->bytes + 24, crc_of(image->bytes + HEADER_SIZE, image->size - HEADER_SIZE), 4);
	put(image->bytes + 28, crc_of(image->bytes, 28), 4);
}

/* The header of the first section of a type, or NULL. */
static uint8_t *section(const struct image *image, const char *type)
{
	size_t at = HEADER_SIZE;

	while (at < image->size) {
		if (!memcmp(image->bytes + at, type, 4))
			return image->bytes + at;
		at += 16 + (get(image->bytes + at + 8, 8) + 7) / 8 * 8;
	}
	return NULL;
}

static uint8_t *payload(const struct image *image, const char *type)
{
	return section(image, type) + 16;
}

/* ---- A controller with something of everything ----------------------------------------------------------- */

static void describe_rich(struct machine *m)
{
	static const uint32_t ids[] = { 7, 0, 300 };

	for (uint32_t v = 0; v < m->config.num_vcpus; v++)
		m->vcpus[v].id = v < 3 ? ids[v] : 1000 + v;
	m->config.has_dist_base = true;
	m->config.dist_base = MACHINE_DIST_BASE;
}

static void fill_distributor(struct machine *m)
{
	for (uint32_t intid = 32; intid < 64; intid++)
		irq_set_up(m, intid % 3, intid, intid & 1, (uint8_t)(8 * (intid - 30)));
	irq_set_edge(m, 0, 40, false);
	irq_set_edge(m, 0, 41, false);
	vgic_set_spi(m->vgic, 40, 5, true);
	vgic_set_spi(m->vgic, 40, 23, true);
	vgic_set_spi(m->vgic, 41, 0, true);
	vgic_set_spi(m->vgic, 42, 3, true); /* an edge and a line that stays high */
	vgic_pulse_spi(m->vgic, 50);
	spi_route(m, 55, GICD_IROUTER_IRM);
	spi_route(m, 56, GICD_IROUTER_IRM);
	vgic_pulse_spi(m->vgic, 55);
	spi_route(m, 57, 0x123456); /* nobody */
	vgic_pulse_spi(m->vgic, 57);
	irq_write_bit(m, 0, GICD_ISACTIVER, 60);
	dist_write_width(m, 0x9000, 4, 0); /* reserved: STATUSR */
}

static void fill_vcpus(struct machine *m)
{
	for (uint32_t v = 0; v < 3; v++) {
		for (uint32_t intid = 0; intid < 32; intid += 3)
			irq_set_up(m, v, intid, (intid + v) & 1, (uint8_t)(8 * (intid + v)));
		vgic_set_ppi(vcpu_of(m, v), 20 + v, v, true);
		irq_write_bit(m, v, GICD_ISPENDR, v);
		irq_write_bit(m, v, GICD_ISACTIVER, 25 + v);
		icc_write(m, v, VGIC_ICC_PMR_EL1, 0x80 + 8 * v);
		icc_write(m, v, VGIC_ICC_BPR0_EL1, 2 + v);
		icc_write(m, v, VGIC_ICC_BPR1_EL1, 4 + v);
		icc_write(m, v, VGIC_ICC_AP1R0_EL1, 1u << (20 + v));
		icc_write(m, v, VGIC_ICC_CTLR_EL1, v);
		icc_write(m, v, VGIC_ICC_IGRPEN0_EL1, v != 1);
	}
	redist_write(m, 1, GICR_WAKER, GICR_WAKER_PROCESSOR_SLEEP);
	redist_write(m, 2, GICR_CTLR, GICR_CTLR_ENABLE_LPIS | GICR_CTLR_DPG1NS);
	vgic_vcpu_set_online(vcpu_of(m, 1), false);
}

static void fill_its(struct machine *m)
{
	for (uint32_t d = 1; d <= 4; d++) {
		map_device(m, 10 * d, 4 + d);
		for (uint32_t e = 0; e < 10; e++)
			map_event(m, 10 * d, 11 - e, 8192 + 100 * d + e, e % 4);
	}
	map_event(m, 10, 12, 8192 + 100, 2); /* a second event on an LPI */
	map_collection(m, 0, 0);
	map_collection(m, 1, 1);
	map_collection(m, 2, 2); /* 3 is not mapped */
	for (uint32_t e = 2; e < 12; e++)
		msi(m, 20, e);
	its_run(m, 0, cmd_movall(0, 7)); /* away from where their collection is */
	set_property(8192 + 300, 0);
	its_run(m, 0, cmd_event(ITS_CMD_INV, 30, 11));
	redist_write(m, 0, GICR_CTLR, 0);
	finish_work(m);
	its_run(m, 0, cmd_movi(20, 10, 0)); /* pending, at a redistributor that is off */
}

static struct machine *boot_rich_as(struct machine *m)
{
	describe_rich(m);
	machine_start(m);
	its_set_up(m);
	fill_distributor(m);
	fill_vcpus(m);
	fill_its(m);
	return m;
}

static struct machine *boot_rich(void)
{
	return boot_rich_as(its_describe(3, 2));
}

/* An empty one of the same description. */
static struct machine *start_empty(uint32_t num_vcpus, uint32_t num_itses)
{
	struct machine *m = its_describe(num_vcpus, num_itses);

	describe_rich(m);
	return machine_start(m);
}

/* ---- Round trips --------------------------------------------------------------------------------------------- */

static void a_restored_controller_saves_the_same(void **state)
{
	struct machine *m = boot_rich();
	struct image image = save(m);

	(void)state;
	expect_state(m, &image); /* a save changes nothing */
	machine_stop(m);
	m = start_empty(3, 2);
	restore(m, &image);
	expect_state(m, &image);
	restore(m, &image); /* over what is there */
	expect_state(m, &image);
	assert_int_equal(vgic_reset(m->vgic), 0);
	restore(m, &image);
	expect_state(m, &image);
	free(image.bytes);
	machine_stop(m);
}

/* Every part of the state is in the image: each changes it. */
#define CHANGES(m, ...)                                                                                                \
	do {                                                                                                           \
		struct image before_ = save(m), after_;                                                                \
		__VA_ARGS__;                                                                                           \
		after_ = save(m);                                                                                      \
		assert_true(before_.size != after_.size || memcmp(before_.bytes, after_.bytes, after_.size) != 0);     \
		restore(m, &before_);                                                                                  \
		expect_state(m, &before_);                                                                             \
		restore(m, &after_);                                                                                   \
		expect_state(m, &after_);                                                                              \
		free(before_.bytes);                                                                                   \
		free(after_.bytes);                                                                                    \
	} while (0)

static void every_part_of_the_state_is_in_the_image(void **state)
{
	struct machine *m = boot_rich();

	(void)state;
	CHANGES(m, dist_write(m, GICD_CTLR, GICD_CTLR_ENABLE_GRP0));
	CHANGES(m, dist_write(m, GICD_STATUSR, 0xf));
	CHANGES(m, irq_set_priority(m, 0, 33, 0xc8));
	CHANGES(m, irq_set_group(m, 0, 33, 0));
	CHANGES(m, irq_set_edge(m, 0, 33, false));
	CHANGES(m, irq_write_bit(m, 0, GICD_ICENABLER, 33));
	CHANGES(m, irq_write_bit(m, 0, GICD_ISPENDR, 34));
	CHANGES(m, irq_write_bit(m, 0, GICD_ISACTIVER, 35));
	CHANGES(m, spi_route(m, 36, 2));
	CHANGES(m, spi_route(m, 36, GICD_IROUTER_IRM));
	CHANGES(m, vgic_set_spi(m->vgic, 40, 7, true));
	CHANGES(m, vgic_set_spi(m->vgic, 40, 5, false));
	CHANGES(m, dist_write(m, GICD_SETSPI_NSR, 41));
	CHANGES(m, vgic_set_ppi(vcpu_of(m, 2), 30, 1, true));
	CHANGES(m, redist_write(m, 2, GICR_ISENABLER0, 1u << 31));
	CHANGES(m, redist_write(m, 1, GICR_WAKER, 0));
	CHANGES(m, redist_write(m, 1, GICR_CTLR, GICR_CTLR_ENABLE_LPIS | GICR_CTLR_DPG0));
	CHANGES(m, redist_read_width(m, 1, 0x8000, 4)); /* STATUSR */
	CHANGES(m, redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(9)));
	CHANGES(m, redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(9) | GICR_PENDBASER_PTZ));
	CHANGES(m, redist_write_width(m, 0, GICR_PROPBASER, 8, PROPERTY_TABLE | 14));
	CHANGES(m, redist_write(m, 0, GICR_CTLR, GICR_CTLR_ENABLE_LPIS); finish_work(m));
	CHANGES(m, vgic_vcpu_set_online(vcpu_of(m, 1), true));
	CHANGES(m, icc_write(m, 0, VGIC_ICC_PMR_EL1, 0x38));
	CHANGES(m, icc_write(m, 0, VGIC_ICC_BPR0_EL1, 7));
	CHANGES(m, icc_write(m, 0, VGIC_ICC_BPR1_EL1, 7));
	CHANGES(m, icc_write(m, 0, VGIC_ICC_AP0R0_EL1, 0x4000));
	CHANGES(m, icc_write(m, 0, VGIC_ICC_AP1R0_EL1, 0x2000));
	CHANGES(m, icc_write(m, 0, VGIC_ICC_CTLR_EL1, 3));
	CHANGES(m, icc_write(m, 0, VGIC_ICC_IGRPEN0_EL1, 0));
	CHANGES(m, icc_write(m, 0, VGIC_ICC_IGRPEN1_EL1, 0));
	CHANGES(m, assert_int_equal(msi(m, 30, 10), 1));
	CHANGES(m, set_property(8192 + 101, 0); its_run(m, 0, cmd_event(ITS_CMD_INV, 10, 10)));
	CHANGES(m, its_run(m, 0, cmd_movi(10, 10, 2)));
	CHANGES(m, its_run(m, 0, cmd_event(ITS_CMD_DISCARD, 10, 9)));
	CHANGES(m, map_collection(m, 3, 1));
	CHANGES(m, map_collection(m, 77, 2));
	CHANGES(m, its_run(m, 0, cmd_mapd(11, 4, ITT(5), true)));
	CHANGES(m, its_run(m, 0, cmd_mapd(10, 0, 0, false)));
	CHANGES(m, its_place(m, 1, cmd_sync(0)); its_submit(m, 1); finish_work(m));
	CHANGES(m, its_write(m, 1, GITS_CTLR, 4, 0); finish_work(m));
	CHANGES(m, its_write(m, 1, GITS_BASER1, 8, 0); finish_work(m));
	CHANGES(m, its_write(m, 1, GITS_BASER0, 8, GITS_BASER_VALID | GITS_BASER_INDIRECT | DEVICE_TABLE(3) | 3));
	CHANGES(m, its_write(m, 1, GITS_CBASER, 8, GITS_CBASER_VALID | QUEUE(3) | 5));
	CHANGES(m, its_write(m, 1, GITS_CWRITER, 8, 0x40));
	machine_stop(m);
}

/* What a guest then takes is what it would have taken. */
static void deliveries_after_a_restore_are_the_same(void **state)
{
	uint32_t taken[2][3][64];
	struct machine *m = boot_rich();
	struct image image = save(m);

	(void)state;
	for (unsigned run = 0; run < 2; run++) {
		restore(m, &image);
		vgic_vcpu_set_online(vcpu_of(m, 1), true);
		for (uint32_t v = 0; v < 3; v++) {
			icc_write(m, v, VGIC_ICC_AP1R0_EL1, 0);
			icc_write(m, v, VGIC_ICC_PMR_EL1, 0xff);
			icc_write(m, v, VGIC_ICC_IGRPEN0_EL1, 1);
			for (unsigned i = 0; i < 64; i++) {
				const unsigned lines = lines_of(m, v);

				taken[run][v][i] = lines == VGIC_LINE_FIQ ? ack0(m, v) : ack1(m, v);
				if (lines == VGIC_LINE_FIQ)
					icc_write(m, v, VGIC_ICC_EOIR0_EL1, taken[run][v][i]);
				else if (lines)
					icc_write(m, v, VGIC_ICC_EOIR1_EL1, taken[run][v][i]);
			}
		}
	}
	assert_memory_equal(taken[0], taken[1], sizeof(taken[0]));
	assert_int_not_equal(taken[0][2][3], NO_INTERRUPT);
	free(image.bytes);
	machine_stop(m);
}

/* A vCPU that waits is kicked when a restore brings it something. */
static void a_waiting_vcpu_is_kicked(void **state)
{
	struct machine *m = machine_open(1);
	struct image image;

	(void)state;
	irq_set_up(m, 0, 40, 1, 0x80);
	vgic_pulse_spi(m->vgic, 40);
	image = save(m);
	machine_stop(m);
	m = machine_native(1);
	assert_int_equal(vgic_prepare_wait(vcpu_of(m, 0)), 0);
	restore(m, &image);
	assert_true(m->num_kicks > 0);
	vgic_finish_wait(vcpu_of(m, 0));
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	assert_int_equal(ack1(m, 0), 40);
	free(image.bytes);
	machine_stop(m);
}

static void guest_memory_is_not_touched(void **state)
{
	struct machine *m = boot_rich();
	struct image image;
	uint64_t reads, writes;

	(void)state;
	reads = ram.num_reads;
	writes = ram.num_writes;
	image = save(m);
	restore(m, &image);
	assert_int_equal(ram.num_reads, reads);
	assert_int_equal(ram.num_writes, writes);
	free(image.bytes);
	machine_stop(m);
}

/* A command that is under way is finished; those behind it are executed where the guest goes on. */
static void commands_that_wait_are_executed_after_a_restore(void **state)
{
	struct machine *m = its_boot(2, 1);
	struct image image;
	uint64_t at, commands;

	(void)state;
	map_device(m, 1, 10);
	map_collection(m, 0, 0);
	for (uint32_t e = 0; e < 1000; e++)
		map_event(m, 1, e, 8192 + e, 0);
	at = its_read(m, 0, GITS_CREADR, 8);
	its_place(m, 0, cmd_movall(0, 1));
	its_place(m, 0, cmd_movall(1, 0));
	its_place(m, 0, cmd_mapd(2, 4, ITT(2), true));
	its_submit(m, 0);
	/* The write did a part of the first one: the image has it whole, and the others not at all. */
	image = save(m);
	assert_int_equal(get(payload(&image, "ITS ") + 40, 8), at + 0x20);
	finish_work(m);
	commands = its_stats(m, 0).commands;
	assert_int_equal(its_stats(m, 0).num_devices, 2);
	restore(m, &image);
	finish_work(m);
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), its_read(m, 0, GITS_CWRITER, 8));
	assert_int_equal(its_stats(m, 0).commands, commands + 2);
	assert_int_equal(its_stats(m, 0).num_devices, 2);
	free(image.bytes);
	machine_stop(m);
}

/* ---- Other controllers ------------------------------------------------------------------------------------------ */

/* vCPUs in another order, regions elsewhere: the image has the same bytes, and each vCPU what belongs to its id. */
static void the_order_of_vcpus_does_not_matter(void **state)
{
	struct machine *m = boot_rich();
	struct image image = save(m);
	struct machine *other = its_describe(3, 2);

	(void)state;
	describe_rich(other);
	for (uint32_t v = 0; v < 3; v++)
		other->vcpus[v] = m->vcpus[2 - v];
	machine_stop(m);
	machine_add_region(other, 0x20000000, 1);
	machine_add_region(other, 0x30000000, 2);
	machine_start(other);
	restore(other, &image);
	expect_state(other, &image);
	assert_int_equal(icc_read(other, 2, VGIC_ICC_PMR_EL1), 0x80);
	assert_int_equal(icc_read(other, 0, VGIC_ICC_PMR_EL1), 0x90);
	assert_int_equal(redist_read(other, 0, GICR_CTLR) & GICR_CTLR_DPG1NS, GICR_CTLR_DPG1NS);
	free(image.bytes);
	machine_stop(other);
}

/* More of everything works, and what the image does not have is as after a reset. */
static void a_larger_controller_takes_the_image(void **state)
{
	struct machine *m = boot_rich();
	struct image image = save(m), again, twice;
	struct machine *large = its_describe(5, 3);

	(void)state;
	machine_stop(m);
	describe_rich(large);
	large->config.num_spis = 512;
	large->config.lpi_id_bits = 17;
	its_configs[0].max_devices = 5;
	its_configs[0].max_translations = 41;
	machine_start(large);
	restore(large, &image);
	assert_int_equal(dist_read(large, GICD_IPRIORITYR + 40), 8 * 10 | 8 * 11 << 8 | 8 * 12 << 16 | 8u * 13 << 24);
	assert_int_equal(icc_read(large, 3, VGIC_ICC_PMR_EL1), 0);
	assert_int_equal(its_read(large, 2, GITS_CTLR, 4), GITS_CTLR_QUIESCENT);
	assert_int_equal(its_stats(large, 0).num_translations, 41);
	again = save(large);
	restore(large, &again);
	twice = save(large);
	assert_int_equal(again.size, twice.size);
	assert_memory_equal(again.bytes, twice.bytes, again.size);
	free(image.bytes);
	free(again.bytes);
	free(twice.bytes);
	machine_stop(large);
}

/* Refused, with this error and this reason; the controller stays what it was. */
static void expect_refused(struct machine *m, const struct image *image, int err, const char *what)
{
	struct image before = save(m);
	struct vgic_restore_error why;

	assert_int_equal(try_restore(m, image, &why), err);
	assert_string_equal(why.what, what);
	expect_state(m, &before);
	free(before.bytes);
}

static void smaller_controllers_are_told_what_they_lack(void **state)
{
	struct machine *rich = its_describe(3, 2);
	struct image image;
	struct machine *m;

	(void)state;
	rich->config.lpi_id_bits = 17;
	boot_rich_as(rich);
	image = save(rich);
	machine_stop(rich);

#define LACKS(err, what, change)                                                                                       \
	do {                                                                                                           \
		m = its_describe(3, 2);                                                                                \
		describe_rich(m);                                                                                      \
		m->config.lpi_id_bits = 17;                                                                            \
		change;                                                                                                \
		machine_start(m);                                                                                      \
		expect_refused(m, &image, err, what);                                                                  \
		machine_stop(m);                                                                                       \
	} while (0)

	LACKS(-E2BIG, "number of SPIs", m->config.num_spis = 224);
	LACKS(-E2BIG, "bits of an LPI's INTID", m->config.lpi_id_bits = 16);
	LACKS(-E2BIG, "number of vCPUs", m->config.num_vcpus = 2);
	LACKS(-ENODEV, "number of ITSes", m->config.num_itses = 1);
	LACKS(-ENODEV, "id of a vCPU", m->vcpus[2].id = 299);
	LACKS(-ENODEV, "affinity of a vCPU", m->vcpus[1].affinity = 5);
	LACKS(-EOPNOTSUPP, "profile", m->config.profile = VGIC_PROFILE_KVM);
	LACKS(-EOPNOTSUPP, "features", m->config.features &= ~VGIC_FEATURE_RSS);
	LACKS(-EOPNOTSUPP, "features", m->config.features &= ~VGIC_FEATURE_LPIS; m->config.num_itses = 0);
	LACKS(-E2BIG, "bits of a DeviceID", its_configs[1].device_id_bits = 15);
	LACKS(-E2BIG, "bits of an EventID", its_configs[0].event_id_bits = 15);
	LACKS(-E2BIG, "devices", its_configs[0].max_devices = 3);
	LACKS(-E2BIG, "events", its_configs[0].max_translations = 40);
#undef LACKS
	free(image.bytes);
}

/* Of what is smaller only what is in use counts. */
static void an_image_without_lpis_fits_where_there_are_some(void **state)
{
	struct machine *m = machine_start(machine_describe(VGIC_PROFILE_NATIVE, 2));
	struct image image;

	(void)state;
	irq_set_up(m, 1, 40, 1, 0x40);
	image = save(m);
	machine_stop(m);
	m = machine_start(its_describe(2, 1));
	restore(m, &image);
	assert_int_equal(dist_read(m, GICD_IPRIORITYR + 40), 0x40);
	free(image.bytes);
	machine_stop(m);
}

static void the_revision_of_kvm_is_part_of_the_state(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_KVM, 1);
	struct image image;

	(void)state;
	m->config.kvm_revision = 2;
	machine_start(m);
	image = save(m);
	machine_stop(m);
	m = machine_start(machine_describe(VGIC_PROFILE_KVM, 1));
	restore(m, &image);
	assert_int_equal(dist_read(m, GICD_IIDR), 0x4b00243b);
	free(image.bytes);
	machine_stop(m);
}

/* ---- Calls that fail ----------------------------------------------------------------------------------------------- */

static void arguments_are_checked(void **state)
{
	struct machine *m = boot_rich();
	struct image image = save(m);
	struct vgic_restore_error why = { .size = 1 };
	size_t used = 0;

	(void)state;
	assert_int_equal(vgic_save_size(NULL, &used), -EINVAL);
	assert_int_equal(vgic_save_size(m->vgic, NULL), -EINVAL);
	assert_int_equal(vgic_save(NULL, image.bytes, image.size, &used), -EINVAL);
	assert_int_equal(vgic_save(m->vgic, NULL, image.size, &used), -EINVAL);
	assert_int_equal(vgic_save(m->vgic, image.bytes, image.size, NULL), -EINVAL);
	assert_int_equal(vgic_restore(NULL, image.bytes, image.size, NULL), -EINVAL);
	assert_int_equal(vgic_restore(m->vgic, NULL, image.size, NULL), -EINVAL);
	assert_int_equal(vgic_restore(m->vgic, image.bytes, image.size, &why), -EINVAL);
	assert_int_equal(vgic_restore(m->vgic, image.bytes, image.size, NULL), 0);
	assert_int_equal(vgic_restore(m->vgic, image.bytes, image.size - 1, NULL), -EBADMSG);
	vgic_enter_guest(vcpu_of(m, 2));
	assert_int_equal(vgic_save_size(m->vgic, &used), -EBUSY);
	assert_int_equal(vgic_save(m->vgic, image.bytes, image.size, &used), -EBUSY);
	assert_int_equal(vgic_restore(m->vgic, image.bytes, image.size, NULL), -EBUSY);
	vgic_exit_guest(vcpu_of(m, 2));
	expect_state(m, &image);
	free(image.bytes);
	machine_stop(m);
}

static void an_image_that_does_not_fit_is_not_begun(void **state)
{
	struct machine *m = boot_rich();
	struct image image = save(m);
	uint8_t *small = malloc(image.size);
	size_t used = 0;

	(void)state;
	memset(small, 0x5a, image.size);
	assert_int_equal(vgic_save(m->vgic, small, image.size - 1, &used), -ENOSPC);
	assert_int_equal(used, image.size);
	for (size_t i = 0; i < image.size; i++)
		assert_int_equal(small[i], 0x5a);
	assert_int_equal(msi(m, 30, 9), 1); /* nothing stays paused */
	free(small);
	free(image.bytes);
	machine_stop(m);
}

static void both_survive_every_failed_allocation(void **state)
{
	struct machine *m = boot_rich();
	struct image image = save(m);
	unsigned long needed;
	size_t used;
	long live = num_live;

	(void)state;
	num_allocations = 0;
	assert_int_equal(vgic_save(m->vgic, image.bytes, image.size, &used), 0);
	needed = num_allocations;
	assert_true(needed >= 5);
	for (unsigned long n = 1; n <= needed; n++) {
		num_allocations = 0;
		fail_at = n;
		assert_int_equal(vgic_save(m->vgic, image.bytes, image.size, &used), -ENOMEM);
		assert_int_equal(num_live, live);
	}
	fail_at = 0;
	num_allocations = 0;
	restore(m, &image);
	needed = num_allocations;
	assert_true(needed >= 5);
	for (unsigned long n = 1; n <= needed; n++) {
		num_allocations = 0;
		fail_at = n;
		assert_int_equal(vgic_restore(m->vgic, image.bytes, image.size, NULL), -ENOMEM);
		assert_int_equal(num_live, live);
	}
	fail_at = 0;
	expect_state(m, &image);
	free(image.bytes);
	machine_stop(m);
}

/* ---- Damaged images -------------------------------------------------------------------------------------------------- */

static void every_flipped_bit_is_noticed(void **state)
{
	struct machine *m = boot_rich();
	struct image image = save(m);

	(void)state;
	for (size_t i = 0; i < image.size; i += i < 512 ? 1 : 37) {
		const uint8_t bit = (uint8_t)(1u << (i % 8));

		image.bytes[i] ^= bit;
		assert_int_equal(vgic_restore(m->vgic, image.bytes, image.size, NULL), -EBADMSG);
		image.bytes[i] ^= bit;
	}
	for (size_t size = 0; size < image.size; size += size < 100 ? 1 : 97)
		assert_int_equal(vgic_restore(m->vgic, image.bytes, size, NULL), -EBADMSG);
	expect_state(m, &image);
	free(image.bytes);
	machine_stop(m);
}

static void the_version_of_the_format_is_checked(void **state)
{
	struct machine *m = boot_rich();
	struct image image = save(m);

	(void)state;
	assert_memory_equal(image.bytes, "libvgic", 8);
	put(image.bytes + 10, 7, 2); /* a later minor version: only additions */
	seal(&image);
	restore(m, &image);
	put(image.bytes + 8, 2, 2);
	seal(&image);
	expect_refused(m, &image, -EPROTONOSUPPORT, "version of the format");
	free(image.bytes);
	machine_stop(m);
}

/* Put a section behind the others. */
static struct image with_section(const struct image *image, const char *type, uint16_t version, uint16_t flags)
{
	struct image longer = { .size = image->size + 16 + 8 };

	longer.bytes = malloc(longer.size);
	memcpy(longer.bytes, image->bytes, image->size);
	memcpy(longer.bytes + image->size, type, 4);
	put(longer.bytes + image->size + 4, version, 2);
	put(longer.bytes + image->size + 6, flags, 2);
	put(longer.bytes + image->size + 8, 5, 8);
	memset(longer.bytes + image->size + 16, 0xee, 8);
	seal(&longer);
	return longer;
}

static void unknown_sections_are_skipped_unless_they_are_required(void **state)
{
	struct machine *m = boot_rich();
	struct image image = save(m), more;

	(void)state;
	more = with_section(&image, "XTRA", 1, 0);
	restore(m, &more);
	expect_state(m, &image);
	free(more.bytes);
	more = with_section(&image, "XTRA", 1, 1);
	expect_refused(m, &more, -EPROTONOSUPPORT, "a section that must be understood");
	free(more.bytes);
	more = with_section(&image, "LPIS", 2, 0); /* the optional part of a later version */
	restore(m, &more);
	free(more.bytes);
	more = with_section(&image, "LPIS", 2, 1);
	expect_refused(m, &more, -EPROTONOSUPPORT, "a section that must be understood");
	free(more.bytes);
	more = with_section(&image, "LPIS", 1, 1);
	expect_refused(m, &more, -EBADMSG, "a section that is there twice");
	free(more.bytes);
	free(image.bytes);
	machine_stop(m);
}

/* Each of them is needed. */
static void missing_sections_are_noticed(void **state)
{
	static const char *const types[] = { "CONF", "DIST", "VCPU", "PRIV", "SPIS", "LPIS", "ITS " };
	static const uint8_t unknown[4] = { 'G', 'O', 'N', 'E' };
	struct machine *m = boot_rich();
	struct image image = save(m);

	(void)state;
	for (unsigned i = 0; i < 7; i++) {
		struct image less = copy_of(&image);
		struct vgic_restore_error why;
		uint8_t *header = section(&less, types[i]);

		memcpy(header, unknown, sizeof(unknown));
		put(header + 6, 0, 2);
		seal(&less);
		assert_int_equal(try_restore(m, &less, &why), -EBADMSG);
		assert_memory_equal(why.what, "no section", 10);
		free(less.bytes);
	}
	expect_state(m, &image);
	free(image.bytes);
	machine_stop(m);
}

/* Records that a later version has made longer: the known part counts. */
static void longer_records_are_read(void **state)
{
	struct machine *m = machine_native(2);
	struct image image, longer;
	uint8_t *spis;
	size_t before, n;

	(void)state;
	irq_set_up(m, 1, 40, 1, 0x40);
	image = save(m);
	spis = section(&image, "SPIS"); /* the last one */
	before = (size_t)(spis - image.bytes);
	n = get(spis + 16, 4);
	longer = (struct image){ .size = before + 16 + 8 + n * 32 };
	longer.bytes = malloc(longer.size);
	memcpy(longer.bytes, image.bytes, before + 24);
	put(longer.bytes + before + 8, 8 + n * 32, 8);
	put(longer.bytes + before + 20, 32, 4);
	for (size_t i = 0; i < n; i++) {
		memcpy(longer.bytes + before + 24 + 32 * i, spis + 24 + 24 * i, 24);
		memset(longer.bytes + before + 24 + 32 * i + 24, 0xdd, 8);
	}
	seal(&longer);
	vgic_reset(m->vgic);
	restore(m, &longer);
	expect_state(m, &image);
	free(longer.bytes);
	free(image.bytes);
	machine_stop(m);
}

/*
 * Every byte, to several values, with checksums that fit: the image is taken, and then it is a state that can be saved
 * and used; or it is refused, and nothing has changed.
 */
static void every_byte_may_come_from_an_enemy(void **state)
{
	struct machine *m = its_describe(2, 1);
	struct image image;
	unsigned taken = 0, refused = 0;

	(void)state;
	m->config.num_spis = 32;
	m->config.lpi_id_bits = 14;
	its_configs[0].max_devices = 3;
	its_configs[0].max_translations = 6;
	machine_start(m);
	its_set_up(m);
	map_collection(m, 0, 0);
	map_collection(m, 9, 1);
	map_device(m, 1, 3);
	map_device(m, 2, 3);
	map_event(m, 1, 0, 8192, 0);
	map_event(m, 1, 3, 8193, 9);
	map_event(m, 2, 1, 8200, 0);
	msi(m, 1, 3);
	spi_route(m, 40, GICD_IROUTER_IRM);
	image = save(m);
	for (size_t i = 0; i < image.size; i++) {
		static const uint8_t changes[] = { 0x01, 0x80, 0xff, 0x10 };

		for (unsigned c = 0; c < sizeof(changes); c++) {
			struct image changed = copy_of(&image), now;
			int err;

			changed.bytes[i] ^= changes[c];
			put(changed.bytes + 24, crc_of(changed.bytes + HEADER_SIZE, changed.size - HEADER_SIZE), 4);
			put(changed.bytes + 28, crc_of(changed.bytes, 28), 4);
			err = vgic_restore(m->vgic, changed.bytes, changed.size, NULL);
			if (err) {
				assert_true(err == -EBADMSG || err == -EPROTONOSUPPORT || err == -ENODEV ||
					    err == -E2BIG || err == -EOPNOTSUPP);
				refused++;
				if (c > 0) { /* the comparison takes longest */
					free(changed.bytes);
					continue;
				}
			} else {
				taken++;
				now = save(m);
				restore(m, &now);
				free(now.bytes);
				msi(m, 1, 3);
				ack1(m, 0);
				ack1(m, 1);
				finish_work(m);
				restore(m, &image);
			}
			expect_state(m, &image);
			free(changed.bytes);
		}
	}
	print_message("# %u taken, %u refused\n", taken, refused);
	assert_true(taken > 500);
	assert_true(refused > 500);
	free(image.bytes);
	machine_stop(m);
}

/* ---- A stored image -------------------------------------------------------------------------------------------------------- */

/* What the first version of the format was: made by this program with --make, by the code of that time. */
static const char *stored_path;

static void the_first_version_is_still_read(void **state)
{
	struct machine *m = start_empty(3, 2);
	struct image image = { 0 };
	FILE *file = fopen(stored_path, "rb");

	(void)state;
	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	image.size = (size_t)ftell(file);
	rewind(file);
	image.bytes = malloc(image.size);
	assert_int_equal(fread(image.bytes, 1, image.size, file), image.size);
	fclose(file);
	restore(m, &image);
	/* A few things of boot_rich(), each in another section. */
	assert_int_equal(icc_read(m, 2, VGIC_ICC_PMR_EL1), 0x90);
	assert_true(irq_is_pending(m, 0, 50));
	assert_true(irq_is_active(m, 0, 60));
	assert_int_equal(redist_read(m, 1, GICR_WAKER), GICR_WAKER_PROCESSOR_SLEEP | GICR_WAKER_CHILDREN_ASLEEP);
	assert_int_equal(its_stats(m, 0).num_devices, 4);
	assert_int_equal(its_stats(m, 0).num_translations, 41);
	expect_state(m, &image); /* a later minor version will compare less */
	assert_int_equal(msi(m, 30, 9), 1);
	free(image.bytes);
	machine_stop(m);
}

static int make_stored(const char *path)
{
	struct machine *m = boot_rich();
	struct image image = save(m);
	FILE *file = fopen(path, "wb");

	if (!file || fwrite(image.bytes, 1, image.size, file) != image.size || fclose(file)) {
		perror(path);
		return 1;
	}
	free(image.bytes);
	machine_stop(m);
	return 0;
}

/* ---- Pausing ------------------------------------------------------------------------------------------------------------------- */

static void msis_are_refused_during_a_pause(void **state)
{
	struct machine *m = its_boot(2, 2);
	struct image before, during;

	(void)state;
	m->vgic = m->vgic;
	map_collection(m, 0, 0);
	map_device(m, 1, 5);
	map_event(m, 1, 0, 8192, 0);
	map_event(m, 1, 1, 8192, 0); /* two events on one LPI */
	map_event(m, 1, 2, 8193, 3); /* nowhere */
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	before = save(m);
	assert_int_equal(vgic_pause(m->vgic), 0);
	assert_int_equal(vgic_pause(m->vgic), 0);
	assert_int_equal(msi(m, 1, 0), -EAGAIN);
	assert_int_equal(msi(m, 1, 1), -EAGAIN);
	assert_int_equal(msi(m, 1, 2), -EAGAIN);
	assert_int_equal(msi(m, 9, 9), -EAGAIN);
	assert_int_equal(vgic_signal_msi(m->vgic, ITS_BASE(0) + VGIC_ITS_DOORBELL, 0, 1, VGIC_MSI_VALID_DEVID),
			 -EAGAIN);
	assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_ENABLED); /* the guest sees nothing of it */
	during = save(m);
	assert_int_equal(during.size, before.size);
	assert_memory_equal(during.bytes, before.bytes, before.size);
	assert_int_equal(msi(m, 1, 0), -EAGAIN); /* a save's own pause has ended, this one not */
	assert_int_equal(vgic_resume(m->vgic), 0);
	assert_int_equal(msi(m, 1, 0), -EAGAIN);
	assert_int_equal(its_stats(m, 0).dropped_its_off, 0);
	assert_int_equal(vgic_resume(m->vgic), 0);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	assert_int_equal(msi(m, 1, 1), 1);
	expect_only(m, 0, 8192);
	assert_int_equal(msi(m, 1, 2), 0);
	assert_int_equal(vgic_resume(m->vgic), -EINVAL);
	free(before.bytes);
	free(during.bytes);
	machine_stop(m);
}

static void message_based_spis_are_refused_during_a_pause(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 1);
	const uint64_t doorbell = MACHINE_DIST_BASE + GICD_SETSPI_NSR;

	(void)state;
	m->config.has_dist_base = true;
	m->config.dist_base = MACHINE_DIST_BASE;
	machine_start(m);
	vgic_pause(m->vgic);
	assert_int_equal(vgic_signal_msi(m->vgic, doorbell, 40, 0, 0), -EAGAIN);
	vgic_resume(m->vgic);
	assert_int_equal(vgic_signal_msi(m->vgic, doorbell, 40, 0, 0), 1);
	machine_stop(m);
}

static void commands_wait_during_a_pause(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	vgic_pause(m->vgic);
	its_place(m, 0, cmd_mapd(1, 4, ITT(1), true));
	its_submit(m, 0);
	finish_work(m);
	assert_int_equal(its_stats(m, 0).commands, 0);
	vgic_resume(m->vgic);
	finish_work(m);
	assert_int_equal(its_stats(m, 0).commands, 1);
	/* Switched off meanwhile, it stays off. */
	vgic_pause(m->vgic);
	its_write(m, 0, GITS_CTLR, 4, 0);
	vgic_resume(m->vgic);
	finish_work(m);
	assert_int_equal(msi(m, 1, 0), -EBUSY);
	vgic_pause(m->vgic);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	assert_int_equal(msi(m, 1, 0), -EAGAIN);
	vgic_resume(m->vgic);
	assert_int_equal(msi(m, 1, 0), 0);
	machine_stop(m);
}

/* ---- KVM's attributes and the image tell the same ------------------------------------------------------------------------------------ */

struct moved {
	struct machine *from, *to;
};

static void move(struct moved *x, uint32_t group, uint64_t attr)
{
	uint64_t value = 0;

	assert_int_equal(vgic_attr_get(x->from->vgic, group, attr, &value), 0);
	assert_int_equal(vgic_attr_set(x->to->vgic, group, attr, value), 0);
}

static void move_its(struct moved *x, uint32_t its, uint64_t attr)
{
	uint64_t value = 0;

	assert_int_equal(vgic_its_attr_get(its_of(x->from, its), VGIC_GRP_ITS_REGS, attr, &value), 0);
	assert_int_equal(vgic_its_attr_set(its_of(x->to, its), VGIC_GRP_ITS_REGS, attr, value), 0);
}

static void move_distributor(struct moved *x)
{
	static const uint32_t banks[] = { GICD_IGROUPR, GICD_ISENABLER, GICD_ISACTIVER };

	move(x, VGIC_GRP_DIST_REGS, GICD_IIDR);
	move(x, VGIC_GRP_DIST_REGS, GICD_CTLR);
	move(x, VGIC_GRP_DIST_REGS, GICD_STATUSR);
	for (unsigned b = 0; b < 3; b++) {
		for (uint32_t i = 1; i < 9; i++)
			move(x, VGIC_GRP_DIST_REGS, banks[b] + 4 * i);
	}
	for (uint32_t i = 2; i < 18; i++)
		move(x, VGIC_GRP_DIST_REGS, GICD_ICFGR + 4 * i);
	for (uint32_t i = 8; i < 72; i++)
		move(x, VGIC_GRP_DIST_REGS, GICD_IPRIORITYR + 4 * i);
	for (uint32_t i = 32; i < 288; i++) {
		move(x, VGIC_GRP_DIST_REGS, GICD_IROUTER + 8 * i);
		move(x, VGIC_GRP_DIST_REGS, GICD_IROUTER + 8 * i + 4);
	}
	for (uint32_t i = 1; i < 9; i++)
		move(x, VGIC_GRP_DIST_REGS, GICD_ISPENDR + 4 * i);
}

static void move_vcpu(struct moved *x, uint64_t vcpu)
{
	static const uint32_t registers[] = { GICR_STATUSR,    GICR_WAKER,         GICR_PROPBASER, GICR_PROPBASER + 4,
					      GICR_PENDBASER,  GICR_PENDBASER + 4, GICR_CTLR,      GICR_IGROUPR0,
					      GICR_ISENABLER0, GICR_ISACTIVER0,    GICR_ICFGR1,    GICR_ISPENDR0 };
	static const uint32_t icc[] = { VGIC_ICC_SRE_EL1,  VGIC_ICC_PMR_EL1,     VGIC_ICC_BPR0_EL1,
					VGIC_ICC_BPR1_EL1, VGIC_ICC_AP0R0_EL1,   VGIC_ICC_AP1R0_EL1,
					VGIC_ICC_CTLR_EL1, VGIC_ICC_IGRPEN0_EL1, VGIC_ICC_IGRPEN1_EL1 };

	for (unsigned i = 0; i < sizeof(registers) / sizeof(registers[0]); i++)
		move(x, VGIC_GRP_REDIST_REGS, vcpu | registers[i]);
	for (uint32_t i = 0; i < 8; i++)
		move(x, VGIC_GRP_REDIST_REGS, vcpu | (GICR_IPRIORITYR + 4 * i));
	for (unsigned i = 0; i < sizeof(icc) / sizeof(icc[0]); i++)
		move(x, VGIC_GRP_CPU_SYSREGS, vcpu | icc[i]);
	move(x, VGIC_GRP_LEVEL_INFO, vcpu);
}

static void move_itses(struct moved *x)
{
	for (uint32_t i = 0; i < 2; i++) {
		move_its(x, i, GITS_CBASER);
		move_its(x, i, GITS_CREADR);
		move_its(x, i, GITS_CWRITER);
		move_its(x, i, GITS_BASER0);
		move_its(x, i, GITS_BASER1);
		move_its(x, i, GITS_IIDR);
		assert_int_equal(vgic_its_attr_set(its_of(x->to, i), VGIC_GRP_CTRL, VGIC_CTRL_ITS_RESTORE_TABLES, 0),
				 0);
		move_its(x, i, GITS_CTLR);
	}
}

/*
 * One controller saved through the attributes, tables and pending tables in guest memory, and restored in another, of
 * other vCPU order. What the attributes do not hold is made equal before.
 */
static void the_attributes_hold_the_state_too(void **state)
{
	struct moved x = { .from = boot_rich() };
	struct image image;

	(void)state;
	vgic_vcpu_set_online(vcpu_of(x.from, 1), true);
	vgic_set_spi(x.from->vgic, 40, 0, true); /* a line has one source */
	vgic_set_spi(x.from->vgic, 40, 5, false);
	vgic_set_spi(x.from->vgic, 40, 23, false);
	vgic_set_spi(x.from->vgic, 42, 3, false);
	for (uint32_t v = 1; v < 3; v++) {
		vgic_set_ppi(vcpu_of(x.from, v), 20 + v, 0, true);
		vgic_set_ppi(vcpu_of(x.from, v), 20 + v, v, false);
	}
	irq_write_bit(x.from, 0, GICD_ICPENDR, 55); /* 1-of-N: where it is, is not in a register */
	spi_route(x.from, 55, 0);
	spi_route(x.from, 56, 0);
	icc_write(x.from, 1, VGIC_ICC_CTLR_EL1, 0); /* with CBPR=1, ICC_BPR1 shows the other */
	its_run(x.from, 0, cmd_mapc(0, 7, true));   /* LPIs where their collections are */
	its_run(x.from, 0, cmd_mapc(1, 0, true));
	its_run(x.from, 0, cmd_mapc(2, 300, true));
	redist_write(x.from, 0, GICR_CTLR, GICR_CTLR_ENABLE_LPIS);
	finish_work(x.from);
	for (uint32_t v = 0; v < 3; v++)
		redist_write(x.from, v, GICR_CTLR, GICR_CTLR_ENABLE_LPIS);
	vgic_pause(x.from->vgic);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(vgic_its_attr_set(its_of(x.from, i), VGIC_GRP_CTRL, VGIC_CTRL_ITS_SAVE_TABLES, 0), 0);
	assert_int_equal(vgic_attr_set(x.from->vgic, VGIC_GRP_CTRL, VGIC_CTRL_SAVE_PENDING_TABLES, 0), 0);
	image = save(x.from);
	{
		uint8_t *memory = malloc(RAM_SIZE);

		memcpy(memory, ram.bytes, RAM_SIZE);
		x.to = its_describe(3, 2);
		memcpy(ram.bytes, memory, RAM_SIZE);
		free(memory);
	}
	describe_rich(x.to);
	for (uint32_t v = 0; v < 3; v++)
		x.to->vcpus[v] = x.from->vcpus[(v + 1) % 3];
	machine_start(x.to);
	move_distributor(&x);
	for (uint32_t v = 0; v < 3; v++)
		move_vcpu(&x, VGIC_ATTR_VCPU(x.from->vcpus[v].affinity));
	for (uint32_t intid = 32; intid < 288; intid += 32)
		move(&x, VGIC_GRP_LEVEL_INFO, VGIC_ATTR_LEVEL(0, intid));
	move_itses(&x);
	/* PTZ is write-only: it has become 0 with the save. */
	expect_state(x.to, &image);
	free(image.bytes);
	machine_stop(x.from);
	machine_stop(x.to);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_restored_controller_saves_the_same),
		cmocka_unit_test(every_part_of_the_state_is_in_the_image),
		cmocka_unit_test(deliveries_after_a_restore_are_the_same),
		cmocka_unit_test(a_waiting_vcpu_is_kicked),
		cmocka_unit_test(guest_memory_is_not_touched),
		cmocka_unit_test(commands_that_wait_are_executed_after_a_restore),
		cmocka_unit_test(the_order_of_vcpus_does_not_matter),
		cmocka_unit_test(a_larger_controller_takes_the_image),
		cmocka_unit_test(smaller_controllers_are_told_what_they_lack),
		cmocka_unit_test(an_image_without_lpis_fits_where_there_are_some),
		cmocka_unit_test(the_revision_of_kvm_is_part_of_the_state),
		cmocka_unit_test(arguments_are_checked),
		cmocka_unit_test(an_image_that_does_not_fit_is_not_begun),
		cmocka_unit_test(both_survive_every_failed_allocation),
		cmocka_unit_test(every_flipped_bit_is_noticed),
		cmocka_unit_test(the_version_of_the_format_is_checked),
		cmocka_unit_test(unknown_sections_are_skipped_unless_they_are_required),
		cmocka_unit_test(missing_sections_are_noticed),
		cmocka_unit_test(longer_records_are_read),
		cmocka_unit_test(every_byte_may_come_from_an_enemy),
		cmocka_unit_test(the_first_version_is_still_read),
		cmocka_unit_test(msis_are_refused_during_a_pause),
		cmocka_unit_test(message_based_spis_are_refused_during_a_pause),
		cmocka_unit_test(commands_wait_during_a_pause),
		cmocka_unit_test(the_attributes_hold_the_state_too),
	};

	if (argc == 3 && !strcmp(argv[1], "--make"))
		return make_stored(argv[2]);
	if (argc != 2) {
		fprintf(stderr, "usage: state_image IMAGE, or state_image --make IMAGE\n");
		return 2;
	}
	stored_path = argv[1];
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("state_image", tests, NULL, NULL);
}
