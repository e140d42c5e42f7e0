/* SPDX-License-Identifier: MIT */
/*
 * Every offset of every frame, at every width, aligned or not, read and written:
 * it always answers, and as the reference does. Then the edges of the frames, by
 * offset and by guest-physical address.
 */
#include <errno.h>
#include <gic_arch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "pair.h"

struct variant {
	const char *name;
	enum vgic_profile profile;
	uint32_t num_vcpus;
	uint32_t num_spis;
	bool has_features; /* else the profile's own */
	uint32_t features;
};

static const struct variant variants[] = {
	{ "native", VGIC_PROFILE_NATIVE, 2, 64, false, 0 },
	{ "native, no feature, 988 SPIs", VGIC_PROFILE_NATIVE, 1, 988, true, 0 },
	{ "native, all features but LPIs, 32 SPIs", VGIC_PROFILE_NATIVE, 1, 32, true,
	  VGIC_FEATURES_ALL & ~VGIC_FEATURE_LPIS },
	{ "kvm", VGIC_PROFILE_KVM, 2, 256, false, 0 },
};

#define NUM_VARIANTS (sizeof(variants) / sizeof(variants[0]))

static uint64_t random_state = 1;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static uint32_t frame_size(uint32_t vcpu)
{
	return vcpu == PAIR_DIST ? VGIC_DIST_FRAME_SIZE : VGIC_REDIST_FRAME_SIZE;
}

static void sweep_offset(struct pair *pair, uint32_t vcpu, uint32_t offset, unsigned width)
{
	const uint64_t values[] = { 0, ~0ull, next_random() };

	pair_read(pair, vcpu, offset, width);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		pair_write(pair, vcpu, offset, width, values[i]);
		pair_read(pair, vcpu, offset, width);
	}
	pair_compare_counters(pair);
}

static void sweep_frame(struct pair *pair, uint32_t vcpu)
{
	for (unsigned width = 1; width <= 8; width *= 2) {
		for (uint32_t offset = 0; offset <= frame_size(vcpu) - width; offset++)
			sweep_offset(pair, vcpu, offset, width);
		pair_compare_all(pair);
	}
}

/* Off the frame's end, and widths that there are not: both refuse, with the same error. */
static void sweep_frame_edges(struct pair *pair, uint32_t vcpu)
{
	static const unsigned wrong_widths[] = { 0, 3, 5, 6, 7, 9, 16, 4096, UINT32_MAX };
	const uint32_t size = frame_size(vcpu);

	for (unsigned width = 1; width <= 8; width *= 2) {
		const uint32_t outside[] = { size - width + 1, size, size + width, UINT32_MAX - width + 1, UINT32_MAX };

		for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
			if (outside[i] == size - width)
				continue;
			pair_read(pair, vcpu, outside[i], width);
			pair_write(pair, vcpu, outside[i], width, ~0ull);
		}
	}
	for (size_t i = 0; i < sizeof(wrong_widths) / sizeof(wrong_widths[0]); i++) {
		pair_read(pair, vcpu, 0, wrong_widths[i]);
		pair_write(pair, vcpu, 0, wrong_widths[i], ~0ull);
	}
}

/* Every word by address, and every byte around each frame's edges. */
static void sweep_addresses(struct pair *pair, uint64_t base, uint64_t size)
{
	for (uint64_t offset = 0; offset < size; offset += 4) {
		pair_read_address(pair, base + offset, 4);
		pair_write_address(pair, base + offset, 4, next_random());
		pair_compare_counters(pair);
	}
	for (uint64_t edge = base; edge <= base + size; edge += VGIC_DIST_FRAME_SIZE) {
		for (unsigned width = 1; width <= 8; width *= 2) {
			for (uint64_t address = edge - 17; address != edge + 17; address++) {
				pair_read_address(pair, address, width);
				pair_write_address(pair, address, width, next_random());
				pair_compare_counters(pair);
			}
		}
	}
}

static void run_variant(const struct variant *variant)
{
	struct pair pair;

	pair_configure(&pair, variant->profile, variant->num_vcpus);
	pair.name = variant->name;
	pair.config.num_spis = variant->num_spis;
	if (variant->has_features)
		pair.config.features = variant->features;
	pair.regions[1].num_frames = 2; /* neither vCPU nor anything else behind it */
	pair_create(&pair);

	sweep_frame(&pair, PAIR_DIST);
	for (uint32_t v = 0; v < pair.num_vcpus; v++)
		sweep_frame(&pair, v);
	sweep_frame_edges(&pair, PAIR_DIST);
	for (uint32_t v = 0; v < pair.num_vcpus; v++)
		sweep_frame_edges(&pair, v);
	sweep_addresses(&pair, pair.config.dist_base, VGIC_DIST_FRAME_SIZE);
	for (uint32_t i = 0; i < pair.config.num_redist_regions; i++)
		sweep_addresses(&pair, pair.regions[i].base,
				(uint64_t)pair.regions[i].num_frames * VGIC_REDIST_FRAME_SIZE);
	pair_read_address(&pair, 0, 4);
	pair_read_address(&pair, UINT64_MAX, 1);
	pair_read_address(&pair, UINT64_MAX - 6, 8);
	pair_compare_all(&pair);
	pair_destroy(&pair);
}

/* Without bases there is nothing at any address, and the calls by frame work. */
static void run_without_addresses(void)
{
	struct pair pair;

	pair_configure(&pair, VGIC_PROFILE_NATIVE, 2);
	pair.name = "no addresses";
	pair.config.has_dist_base = false;
	pair.config.num_redist_regions = 0;
	pair.config.redist_regions = NULL;
	pair_create(&pair);
	for (uint64_t address = 0; address <= 0x10000; address += 0x1000) {
		pair_read_address(&pair, address, 4);
		pair_write_address(&pair, pair.config.dist_base + address, 4, ~0ull);
	}
	pair_compare_all(&pair);
	pair_destroy(&pair);
}

int main(void)
{
	unsigned number = 0;

	printf("1..%zu\n", NUM_VARIANTS + 1);
	for (size_t i = 0; i < NUM_VARIANTS; i++) {
		run_variant(&variants[i]);
		printf("ok %u - every offset answers as the reference does: %s\n", ++number, variants[i].name);
		fflush(stdout);
	}
	run_without_addresses();
	printf("ok %u - no addresses, no answer\n", ++number);
	return 0;
}
