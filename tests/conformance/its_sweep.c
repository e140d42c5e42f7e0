/* SPDX-License-Identifier: MIT */
/*
 * Every offset of an ITS's frame, and of a redistributor's with LPIs, at every
 * width, aligned or not, read and written: it always answers, and as the reference
 * does. There is no guest memory at all: whatever is enabled by chance finds none.
 */
#include <errno.h>
#include <gic_arch.h>
#include <inttypes.h>
#include <its_arch.h>
#include <ref_its.h>
#include <stdio.h>
#include <stdlib.h>

#include "pair.h"

static uint64_t random_state = 1;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static int no_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	(void)opaque;
	(void)address;
	(void)buffer;
	(void)size;
	return -EFAULT;
}

static int no_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	(void)opaque;
	(void)address;
	(void)buffer;
	(void)size;
	return -EFAULT;
}

static void differ(uint32_t offset, unsigned width, const char *what, uint64_t value, uint64_t expected)
{
	printf("Bail out! ITS+0x%" PRIx32 " width %u: %s 0x%" PRIx64 ", the reference 0x%" PRIx64 "\n", offset, width,
	       what, value, expected);
	exit(1);
}

static void its_read(struct pair *pair, uint32_t offset, unsigned width)
{
	uint64_t value = 0x5a5a, expected = 0x5a5a;
	const int error = vgic_its_read(vgic_its_by_index(pair->vgic, 0), offset, width, &value);
	const int ref_error = ref_its_read(ref_lpis(pair->ref), 0, offset, width, &expected);

	if (error != ref_error)
		differ(offset, width, "returned", (uint64_t)error, (uint64_t)ref_error);
	if (value != expected)
		differ(offset, width, "reads", value, expected);
}

static void its_write(struct pair *pair, uint32_t offset, unsigned width, uint64_t value)
{
	const int error = vgic_its_write(vgic_its_by_index(pair->vgic, 0), offset, width, value);
	const int ref_error = ref_its_write(ref_lpis(pair->ref), 0, offset, width, value);

	if (error != ref_error)
		differ(offset, width, "returned", (uint64_t)error, (uint64_t)ref_error);
	while (vgic_run_work(pair->vgic))
		;
}

static void sweep_its(struct pair *pair)
{
	for (unsigned width = 1; width <= 8; width *= 2) {
		for (uint32_t offset = 0; offset <= VGIC_ITS_FRAME_SIZE - width; offset++) {
			its_read(pair, offset, width);
			its_write(pair, offset, width, 0);
			its_write(pair, offset, width, ~0ull);
			its_read(pair, offset, width);
			its_write(pair, offset, width, next_random());
			its_read(pair, offset, width);
			pair_compare_counters(pair);
		}
	}
}

static void sweep_edges(struct pair *pair)
{
	static const unsigned wrong_widths[] = { 0, 3, 5, 6, 7, 9, 16, UINT32_MAX };

	for (unsigned width = 1; width <= 8; width *= 2) {
		its_read(pair, VGIC_ITS_FRAME_SIZE - width + 1, width);
		its_write(pair, VGIC_ITS_FRAME_SIZE - width + 1, width, ~0ull);
		its_read(pair, VGIC_ITS_FRAME_SIZE, width);
		its_write(pair, UINT32_MAX, width, ~0ull);
	}
	for (size_t i = 0; i < sizeof(wrong_widths) / sizeof(wrong_widths[0]); i++) {
		its_read(pair, 0, wrong_widths[i]);
		its_write(pair, 0, wrong_widths[i], ~0ull);
	}
	pair_compare_counters(pair);
}

/* The first page of RD_base, where the LPI registers are; the rest is swept without LPIs. */
static void sweep_redist(struct pair *pair)
{
	for (unsigned width = 1; width <= 8; width *= 2) {
		for (uint32_t offset = 0; offset < 0x200; offset++) {
			const uint64_t values[] = { 0, ~0ull, next_random() };

			for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
				pair_write(pair, 0, offset, width, values[i]);
				while (vgic_run_work(pair->vgic))
					;
				pair_read(pair, 0, offset, width);
			}
			pair_compare_counters(pair);
		}
	}
}

static void configure(struct pair *pair, struct vgic_its_config *its, enum vgic_profile profile)
{
	pair_configure(pair, profile, 1);
	pair->name = "ITS";
	pair->config.num_redist_regions = 0;
	pair->config.num_spis = 32;
	pair->config.lpi_id_bits = 14;
	pair->config.features |= VGIC_FEATURE_LPIS;
	pair->config.num_itses = its ? 1 : 0;
	pair->config.itses = its;
	pair->config.ops.guest_read = no_read;
	pair->config.ops.guest_write = no_write;
	pair_create(pair);
}

int main(void)
{
	struct vgic_its_config its = { .max_devices = 4, .max_translations = 4 };
	struct pair pair;

	printf("1..4\n");
	for (int profile = 0; profile < 2; profile++) {
		configure(&pair, &its, profile ? VGIC_PROFILE_KVM : VGIC_PROFILE_NATIVE);
		sweep_its(&pair);
		sweep_edges(&pair);
		pair_destroy(&pair);
		printf("ok %d - every offset of an ITS answers as the reference does: %s\n", profile + 1,
		       profile ? "kvm" : "native");
		fflush(stdout);
	}
	configure(&pair, &its, VGIC_PROFILE_NATIVE);
	sweep_redist(&pair);
	pair_destroy(&pair);
	printf("ok 3 - every offset of a redistributor with LPIs answers\n");
	configure(&pair, NULL, VGIC_PROFILE_NATIVE);
	sweep_redist(&pair);
	pair_destroy(&pair);
	printf("ok 4 - every offset of a redistributor with direct LPIs answers\n");
	return 0;
}
