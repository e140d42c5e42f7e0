/* SPDX-License-Identifier: MIT */
/*
 * The decoder of register frames, with a table of its own: every offset at every
 * width, read and write, against a plain list of what each byte of the frame is.
 */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "frame.h"
#include "gic_regs.h"

#define FRAME_SIZE 0x200u

/* ---- The registers, and a record of the handlers' calls ---- */

static struct {
	unsigned reads, writes;
	uint32_t index;
	uint64_t value, mask;
} seen;

/* What register @index of any array reads as: every byte different. */
static uint64_t content(uint32_t index)
{
	return UINT64_C(0x8877665544332211) + index * UINT64_C(0x0101010101010101);
}

static uint64_t read_content(const struct frame_access *a)
{
	seen.reads++;
	seen.index = a->index;
	return content(a->index);
}

static void write_content(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	seen.writes++;
	seen.index = a->index;
	seen.value = value;
	seen.mask = mask;
}

// clang-format off
static const struct frame_register registers[] = {
	REG(0x000,                     1, W32,       "FIRST",     read_content, write_content),
	REG(0x004,                     1, W32,       "READ_ONLY", read_content, NULL),
	REG(0x008,                     1, W32,       "WRITE_ONLY", NULL,        write_content),
	REG(0x010,                     1, W32 | W64, "PAIR",      read_content, write_content),
	REG(0x020,                     4, W8 | W32,  "BYTES",     read_content, write_content),
	REG(0x040,                     3, W32 | W64, "WIDE",      read_content, write_content),
	REG_IF(VGIC_FEATURE_MBIS, 0x060, 2, W32,     "IF_MBIS",   read_content, write_content),
	REG(0x070,                     2, W64,       "ONLY_64",   read_content, NULL),
	REG(0x080,                     3, W16 | W32, "HALVES",    read_content, write_content),
	REG(0x090,                     2, W16 | W64, "LOW_HALF",  read_content, write_content),
	REG(0x100,                    32, W32,       "BANK",      read_content, write_content),
	REG(0x1f8,                     2, W8 | W32,  "LAST",      read_content, write_content),
};
// clang-format on

static const struct frame frame = {
	.name = "test frame",
	.size = FRAME_SIZE,
	.registers = registers,
	.num_registers = sizeof(registers) / sizeof(registers[0]),
};

/* The same frame once more, by hand. */
struct area {
	uint32_t first, end; /* bytes */
	uint32_t size;       /* of one register */
	unsigned widths[2];
	bool readable, writable, if_mbis;
};

// clang-format off
static const struct area areas[] = {
	{ 0x000, 0x004, 4, { 4, 4 }, true,  true,  false },
	{ 0x004, 0x008, 4, { 4, 4 }, true,  false, false },
	{ 0x008, 0x00c, 4, { 4, 4 }, false, true,  false },
	{ 0x010, 0x018, 8, { 4, 8 }, true,  true,  false },
	{ 0x020, 0x030, 4, { 1, 4 }, true,  true,  false },
	{ 0x040, 0x058, 8, { 4, 8 }, true,  true,  false },
	{ 0x060, 0x068, 4, { 4, 4 }, true,  true,  true },
	{ 0x070, 0x080, 8, { 8, 8 }, true,  false, false },
	{ 0x080, 0x08c, 4, { 2, 4 }, true,  true,  false },
	{ 0x090, 0x0a0, 8, { 2, 8 }, true,  true,  false },
	{ 0x100, 0x180, 4, { 4, 4 }, true,  true,  false },
	{ 0x1f8, 0x200, 4, { 1, 4 }, true,  true,  false },
};
// clang-format on

static const struct area *area_of(uint32_t offset, bool has_mbis)
{
	for (size_t i = 0; i < sizeof(areas) / sizeof(areas[0]); i++) {
		if (offset >= areas[i].first && offset < areas[i].end)
			return areas[i].if_mbis && !has_mbis ? NULL : &areas[i];
	}
	return NULL;
}

static uint64_t low_bits(unsigned width)
{
	return width == 8 ? ~UINT64_C(0) : (UINT64_C(1) << (8 * width)) - 1;
}

#define NO_ERROR (-1)

/* The guest's error that an access makes, or NO_ERROR. */
static int error_of(uint32_t offset, unsigned width, bool write, bool has_mbis)
{
	const struct area *a = area_of(offset, has_mbis);

	if (!a)
		return VGIC_GUEST_MMIO_RESERVED;
	if (offset % width || (width != a->widths[0] && width != a->widths[1]))
		return VGIC_GUEST_MMIO_WIDTH;
	/* A halfword reaches the low half of a register only. */
	if (width == 2 && (offset - a->first) % a->size)
		return VGIC_GUEST_MMIO_WIDTH;
	if (write)
		return a->writable ? NO_ERROR : VGIC_GUEST_MMIO_READ_ONLY;
	return a->readable ? NO_ERROR : VGIC_GUEST_MMIO_WRITE_ONLY;
}

static uint32_t status_of(int error, bool write)
{
	switch (error) {
	case NO_ERROR:
		return 0;
	case VGIC_GUEST_MMIO_READ_ONLY:
		return 8; /* WROD */
	case VGIC_GUEST_MMIO_WRITE_ONLY:
		return 4; /* RWOD */
	default:
		return write ? 2 : 1; /* WRD, RRD */
	}
}

/* Exactly one error of this kind, or none at all, since @before. */
static void check_errors(struct unit *u, const uint64_t *before, int error)
{
	for (int kind = 0; kind < VGIC_NUM_GUEST_ERRORS; kind++)
		assert_int_equal(load_relaxed(&u->vgic->guest_errors[kind]) - before[kind], kind == error);
}

static void check_access(struct unit *u, struct frame_access *access, uint32_t offset, unsigned width, bool write)
{
	const bool has_mbis = u->vgic->features & VGIC_FEATURE_MBIS;
	const struct area *a = area_of(offset, has_mbis);
	const int error = error_of(offset, width, write, has_mbis);
	uint64_t before[VGIC_NUM_GUEST_ERRORS], value = UINT64_C(0xdeadbeefdeadbeef);
	uint32_t *statusr = access->vcpu ? &access->vcpu->redist_statusr : &u->vgic->dist_statusr;

	for (int kind = 0; kind < VGIC_NUM_GUEST_ERRORS; kind++)
		before[kind] = load_relaxed(&u->vgic->guest_errors[kind]);
	memset(&seen, 0, sizeof(seen));
	*statusr = 0;
	if (write)
		assert_int_equal(frame_write(&frame, access, offset, width, UINT64_C(0xa1b2c3d4e5f60718)), 0);
	else
		assert_int_equal(frame_read(&frame, access, offset, width, &value), 0);
	check_errors(u, before, error);
	assert_int_equal(*statusr, status_of(error, write));
	assert_int_equal(seen.reads, error == NO_ERROR && !write);
	assert_int_equal(seen.writes, error == NO_ERROR && write);
	if (error != NO_ERROR) {
		if (!write)
			assert_int_equal(value, 0);
		return;
	}
	const uint32_t index = (offset - a->first) / a->size, byte = (offset - a->first) % a->size;

	assert_int_equal(seen.index, index);
	if (write) {
		assert_int_equal(seen.value, (UINT64_C(0xa1b2c3d4e5f60718) & low_bits(width)) << (8 * byte));
		assert_int_equal(seen.mask, low_bits(width) << (8 * byte));
	} else {
		assert_int_equal(value, content(index) >> (8 * byte) & low_bits(width));
	}
}

static void check_every_access(struct unit *u, struct vgic_vcpu *vcpu)
{
	struct frame_access access = { .vgic = u->vgic, .vcpu = vcpu };

	for (unsigned width = 1; width <= 8; width *= 2) {
		for (uint32_t offset = 0; offset + width <= FRAME_SIZE; offset++) {
			check_access(u, &access, offset, width, false);
			check_access(u, &access, offset, width, true);
		}
	}
}

static void every_offset_at_every_width(void **state)
{
	struct unit *u = unit_start(2, 0, 16);

	(void)state;
	check_every_access(u, NULL);
	check_every_access(u, unit_vcpu(u, 1));
	assert_int_equal(unit_vcpu(u, 0)->redist_statusr, 0);
	unit_stop(u);
}

static void register_of_a_missing_feature_is_reserved(void **state)
{
	struct unit *u = unit_start(1, 0, 16);

	(void)state;
	u->vgic->features &= ~VGIC_FEATURE_MBIS;
	check_every_access(u, NULL);
	unit_stop(u);
}

/* ---- Accesses that are no accesses ---- */

static void odd_widths_are_refused(void **state)
{
	static const unsigned widths[] = { 0, 3, 5, 6, 7, 9, 12, 16, 32, 255, 256 + 4, ~0u };
	struct unit *u = unit_start(1, 0, 16);
	struct frame_access access = { .vgic = u->vgic };
	uint64_t value = 77;

	(void)state;
	memset(&seen, 0, sizeof(seen));
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		assert_int_equal(frame_read(&frame, &access, 0x10, widths[i], &value), -EINVAL);
		assert_int_equal(frame_write(&frame, &access, 0x10, widths[i], 1), -EINVAL);
		/* Both wrong: the width is told. */
		assert_int_equal(frame_read(&frame, &access, FRAME_SIZE, widths[i], &value), -EINVAL);
	}
	assert_int_equal(value, 77);
	assert_int_equal(seen.reads + seen.writes, 0);
	assert_int_equal(u->num_reports, 0);
	unit_stop(u);
}

static void accesses_past_the_end_are_refused(void **state)
{
	static const uint32_t offsets[] = { FRAME_SIZE,  FRAME_SIZE + 1, FRAME_SIZE + 4,
					    0x80000000u, 0xfffffffcu,    0xffffffffu };
	struct unit *u = unit_start(1, 0, 16);
	struct frame_access access = { .vgic = u->vgic };
	uint64_t value = 77;

	(void)state;
	memset(&seen, 0, sizeof(seen));
	for (unsigned width = 1; width <= 8; width *= 2) {
		for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
			assert_int_equal(frame_read(&frame, &access, offsets[i], width, &value), -ENXIO);
			assert_int_equal(frame_write(&frame, &access, offsets[i], width, 1), -ENXIO);
		}
		/* It begins inside and ends outside. */
		for (uint32_t offset = FRAME_SIZE - width + 1; offset < FRAME_SIZE; offset++) {
			assert_int_equal(frame_read(&frame, &access, offset, width, &value), -ENXIO);
			assert_int_equal(frame_write(&frame, &access, offset, width, 1), -ENXIO);
		}
	}
	assert_int_equal(value, 77);
	assert_int_equal(seen.reads + seen.writes, 0);
	for (int kind = 0; kind < VGIC_NUM_GUEST_ERRORS; kind++)
		assert_int_equal(load_relaxed(&u->vgic->guest_errors[kind]), 0);
	unit_stop(u);
}

/* ---- What is reported ---- */

static void report_names_the_register_the_offset_and_the_value(void **state)
{
	struct unit *u = unit_start(1, 0, 16);
	struct frame_access access = { .vgic = u->vgic };
	uint64_t value;

	(void)state;
	assert_int_equal(frame_write(&frame, &access, 0x004, 4, UINT64_C(0x1122334455667788)), 0);
	assert_int_equal(u->last_report.kind, VGIC_GUEST_MMIO_READ_ONLY);
	assert_string_equal(u->last_report.what, "READ_ONLY");
	assert_int_equal(u->last_report.address, 0x004);
	assert_int_equal(u->last_report.value, 0x55667788);

	assert_int_equal(frame_read(&frame, &access, 0x008, 4, &value), 0);
	assert_int_equal(u->last_report.kind, VGIC_GUEST_MMIO_WRITE_ONLY);
	assert_string_equal(u->last_report.what, "WRITE_ONLY");
	assert_int_equal(u->last_report.address, 0x008);
	assert_int_equal(u->last_report.value, 0);

	assert_int_equal(frame_write(&frame, &access, 0x026, 2, 0x12345), 0);
	assert_int_equal(u->last_report.kind, VGIC_GUEST_MMIO_WIDTH);
	assert_string_equal(u->last_report.what, "BYTES");
	assert_int_equal(u->last_report.address, 0x026);
	assert_int_equal(u->last_report.value, 0x2345);

	assert_int_equal(frame_read(&frame, &access, 0x0ff, 1, &value), 0);
	assert_int_equal(u->last_report.kind, VGIC_GUEST_MMIO_RESERVED);
	assert_string_equal(u->last_report.what, "test frame");
	assert_int_equal(u->last_report.address, 0x0ff);
	assert_int_equal(u->num_reports, 4);
	unit_stop(u);
}

/* ---- STATUSR ---- */

static void statusr_collects_errors_until_ones_are_written(void **state)
{
	struct unit *u = unit_start(2, 0, 16);
	struct frame_access dist = { .vgic = u->vgic }, redist = { .vgic = u->vgic, .vcpu = unit_vcpu(u, 1) };
	uint64_t value;

	(void)state;
	frame_read(&frame, &dist, 0x0f0, 4, &value);
	frame_write(&frame, &dist, 0x0f0, 4, 0);
	frame_read(&frame, &redist, 0x008, 4, &value);
	frame_write(&frame, &redist, 0x004, 4, 0);
	assert_int_equal(frame_read_statusr(&dist), STATUSR_RRD | STATUSR_WRD);
	assert_int_equal(frame_read_statusr(&redist), STATUSR_RWOD | STATUSR_WROD);

	frame_write_statusr(&redist, 0, 0xffffffff);
	assert_int_equal(frame_read_statusr(&redist), STATUSR_RWOD | STATUSR_WROD);
	frame_write_statusr(&redist, STATUSR_RWOD | STATUSR_RRD, 0xffffffff);
	assert_int_equal(frame_read_statusr(&redist), STATUSR_WROD);
	/* Only what the access writes counts. */
	frame_write_statusr(&redist, STATUSR_WROD, 0);
	assert_int_equal(frame_read_statusr(&redist), STATUSR_WROD);
	frame_write_statusr(&redist, 0xffffffff, 0xffffffff);
	assert_int_equal(frame_read_statusr(&redist), 0);
	assert_int_equal(frame_read_statusr(&dist), STATUSR_RRD | STATUSR_WRD);
	unit_stop(u);
}

static void statusr_stays_zero_without_the_feature(void **state)
{
	struct unit *u = unit_start(1, 0, 16);
	struct frame_access dist = { .vgic = u->vgic };
	uint64_t value;

	(void)state;
	u->vgic->features &= ~VGIC_FEATURE_STATUSR;
	frame_read(&frame, &dist, 0x0f0, 4, &value);
	frame_write(&frame, &dist, 0x004, 4, 0);
	assert_int_equal(frame_read_statusr(&dist), 0);
	assert_int_equal(load_relaxed(&u->vgic->guest_errors[VGIC_GUEST_MMIO_RESERVED]), 1);
	assert_int_equal(load_relaxed(&u->vgic->guest_errors[VGIC_GUEST_MMIO_READ_ONLY]), 1);
	unit_stop(u);
}

static void merge_replaces_the_masked_bits(void **state)
{
	(void)state;
	assert_int_equal(frame_merge(0xaaaa, 0x5555, 0x00ff), 0xaa55);
	assert_int_equal(frame_merge(0xaaaa, 0x5555, 0), 0xaaaa);
	assert_int_equal(frame_merge(~UINT64_C(0), 0, UINT64_C(0xffffffff) << 32), 0xffffffff);
	assert_int_equal(frame_read_zero(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_offset_at_every_width),
		cmocka_unit_test(register_of_a_missing_feature_is_reserved),
		cmocka_unit_test(odd_widths_are_refused),
		cmocka_unit_test(accesses_past_the_end_are_refused),
		cmocka_unit_test(report_names_the_register_the_offset_and_the_value),
		cmocka_unit_test(statusr_collects_errors_until_ones_are_written),
		cmocka_unit_test(statusr_stays_zero_without_the_feature),
		cmocka_unit_test(merge_replaces_the_masked_bits),
	};

	return RUN_TESTS("frame", tests);
}
