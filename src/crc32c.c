/* SPDX-License-Identifier: MIT */
/*
 * crc32c.c - CRC-32C, eight bytes at a time.
 *
 * The tables are made anew for each call, on the stack: 8 KiB and some microseconds,
 * against an image of a megabyte. The library has no state outside of its objects.
 */
#include "crc32c.h"

#define POLYNOMIAL 0x82f63b78u /* reflected */

/* table[n][b] is what byte b contributes when n more bytes follow it. */
struct tables {
	uint32_t table[8][256];
};

static void make_tables(struct tables *t)
{
	for (uint32_t b = 0; b < 256; b++) {
		uint32_t crc = b;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		t->table[0][b] = crc;
	}
	for (uint32_t b = 0; b < 256; b++) {
		for (int n = 1; n < 8; n++)
			t->table[n][b] = t->table[n - 1][b] >> 8 ^ t->table[0][t->table[n - 1][b] & 0xff];
	}
}

static uint32_t get_u32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t crc32c(const void *data, size_t size)
{
	const uint8_t *p = data;
	uint32_t crc = UINT32_MAX;
	struct tables t;

	make_tables(&t);
	for (; size >= 8; size -= 8, p += 8) {
		const uint32_t a = crc ^ get_u32(p), b = get_u32(p + 4);

		crc = t.table[7][a & 0xff] ^ t.table[6][a >> 8 & 0xff] ^ t.table[5][a >> 16 & 0xff] ^
		      t.table[4][a >> 24] ^ t.table[3][b & 0xff] ^ t.table[2][b >> 8 & 0xff] ^
		      t.table[1][b >> 16 & 0xff] ^ t.table[0][b >> 24];
	}
	for (; size; size--, p++)
		crc = crc >> 8 ^ t.table[0][(crc ^ *p) & 0xff];
	return ~crc;
}
