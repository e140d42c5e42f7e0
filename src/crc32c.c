/* SPDX-License-Identifier: MIT */
/*
 * crc32c.c - CRC-32C, sixteen bytes at a time.
 *
 * The tables are made anew for each call that is worth it, on the stack: 16 KiB and some
 * microseconds, against an image of a megabyte. The library has no state outside of its
 * objects.
 */
#include "crc32c.h"

#include "bytes.h"

#define POLYNOMIAL 0x82f63b78u /* reflected */

#define BLOCK       16u
#define TABLES_FROM 1024u /* fewer bytes go bit by bit */

/* table[n][b] is what byte b contributes when n more bytes follow it. */
struct tables {
	uint32_t table[BLOCK][256];
};

static uint32_t add_byte(uint32_t crc, uint8_t byte)
{
	crc ^= byte;
	for (int bit = 0; bit < 8; bit++)
		crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
	return crc;
}

static void make_tables(struct tables *t)
{
	for (uint32_t b = 0; b < 256; b++)
		t->table[0][b] = add_byte(0, (uint8_t)b);
	for (uint32_t b = 0; b < 256; b++) {
		for (unsigned n = 1; n < BLOCK; n++)
			t->table[n][b] = t->table[n - 1][b] >> 8 ^ t->table[0][t->table[n - 1][b] & 0xff];
	}
}

/* What four bytes contribute when @n more follow the first of them. */
static inline uint32_t look_up(const struct tables *t, uint32_t bytes, unsigned n)
{
	return t->table[n][bytes & 0xff] ^ t->table[n - 1][bytes >> 8 & 0xff] ^ t->table[n - 2][bytes >> 16 & 0xff] ^
	       t->table[n - 3][bytes >> 24];
}

/* Only the first four bytes of a block wait for the block before. */
static uint32_t add_blocks(uint32_t crc, const uint8_t *p, size_t num)
{
	struct tables t;

	make_tables(&t);
	for (; num; num--, p += BLOCK)
		crc = look_up(&t, crc ^ bytes_get_u32(p), 15) ^ look_up(&t, bytes_get_u32(p + 4), 11) ^
		      look_up(&t, bytes_get_u32(p + 8), 7) ^ look_up(&t, bytes_get_u32(p + 12), 3);
	return crc;
}

uint32_t crc32c(const void *data, size_t size)
{
	const size_t num_blocks = size >= TABLES_FROM ? size / BLOCK : 0;
	const uint8_t *p = data;
	uint32_t crc = UINT32_MAX;

	if (num_blocks)
		crc = add_blocks(crc, p, num_blocks);
	for (size_t i = num_blocks * BLOCK; i < size; i++)
		crc = add_byte(crc, p[i]);
	return ~crc;
}
