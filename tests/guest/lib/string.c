/* SPDX-License-Identifier: MIT */
/* The functions that a compiler may call although the program is freestanding. */
#include <stddef.h>
#include <stdint.h>

void *memset(void *to, int value, size_t n);
void *memcpy(void *restrict to, const void *restrict from, size_t n);

void *memset(void *to, int value, size_t n)
{
	for (uint8_t *p = to; n; n--)
		*p++ = (uint8_t)value;
	return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	const uint8_t *q = from;

	for (uint8_t *p = to; n; n--)
		*p++ = *q++;
	return to;
}
