/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: what a guest's accesses and the devices' lines do, in lockstep with
 * the reference GIC. Any difference ends the program.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "pair.h"

#define MAX_OPS 256u

static void run_op(struct pair *pair, struct input *input)
{
	const uint8_t op = input_u8(input);
	const uint32_t vcpu = (op >> 5) % pair->num_vcpus;
	const uint32_t where = input_u16(input);

	switch (op & 7) {
	case 0:
		pair_read(pair, op & 8 ? vcpu : PAIR_DIST, where, op & 16 ? 8 : 4);
		break;
	case 1:
		pair_write(pair, op & 8 ? vcpu : PAIR_DIST, where, op & 16 ? 8 : 4, input_u32(input));
		break;
	case 2:
		pair_icc_read(pair, vcpu, where);
		break;
	case 3:
		pair_icc_write(pair, vcpu, where, input_u32(input));
		break;
	case 4:
		pair_set_spi(pair, where & 0x7ff, where >> 12, op & 8);
		break;
	case 5:
		pair_set_ppi(pair, vcpu, where & 0x3f, where >> 12, op & 8);
		break;
	case 6:
		pair_pulse_spi(pair, where & 0x7ff);
		break;
	default:
		pair_set_online(pair, vcpu, op & 8);
		break;
	}
	pair_compare(pair);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	struct pair pair;

	pair_configure(&pair, VGIC_PROFILE_NATIVE, 1 + input_u8(&input) % 4);
	pair.name = "mmio";
	pair_create(&pair);
	for (unsigned i = 0; i < MAX_OPS && !input_is_empty(&input); i++)
		run_op(&pair, &input);
	pair_destroy(&pair);
	return 0;
}
