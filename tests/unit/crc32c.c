/* SPDX-License-Identifier: MIT */
/*
 * CRC-32C: the published check values, and the definition, bit by bit, for each length
 * and alignment around those at which the code changes its way.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "crc32c.h"

static uint32_t by_definition(const uint8_t *p, size_t size)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < size; i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			const uint32_t in = (p[i] >> bit & 1) ^ (crc & 1);

			crc = crc >> 1 ^ (in ? 0x82f63b78u : 0);
		}
	}
	return ~crc;
}

/* RFC 3720, B.4, and the catalogue's "123456789". */
static void published_values(void **state)
{
	uint8_t bytes[32];

	(void)state;
	assert_int_equal(crc32c("", 0), 0);
	assert_int_equal(crc32c("123456789", 9), 0xe3069283);
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(crc32c(bytes, sizeof(bytes)), 0x8a9136aa);
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(crc32c(bytes, sizeof(bytes)), 0x62a8ab43);
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	assert_int_equal(crc32c(bytes, sizeof(bytes)), 0x46dd794e);
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(31 - i);
	assert_int_equal(crc32c(bytes, sizeof(bytes)), 0x113fdb5c);
}

static void each_length_and_alignment(void **state)
{
	const size_t around = 1024, most = 4096;
	struct rng rng = { 32 };
	uint8_t *bytes = malloc(most + 16);

	(void)state;
	assert_non_null(bytes);
	for (size_t i = 0; i < most + 16; i++)
		bytes[i] = (uint8_t)rng_next(&rng);
	for (unsigned offset = 0; offset < 16; offset++) {
		for (size_t size = 0; size < 64; size++)
			assert_int_equal(crc32c(bytes + offset, size), by_definition(bytes + offset, size));
		for (size_t size = around - 40; size < around + 40; size++)
			assert_int_equal(crc32c(bytes + offset, size), by_definition(bytes + offset, size));
		assert_int_equal(crc32c(bytes + offset, most), by_definition(bytes + offset, most));
	}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_values),
		cmocka_unit_test(each_length_and_alignment),
	};

	return RUN_TESTS("crc32c", tests);
}
