/* SPDX-License-Identifier: MIT */
/*
 * bytes.h - little-endian values in memory, at any address: guest tables and images.
 *
 * Written out byte by byte, which is right on any machine; a compiler makes one access
 * of each where it may.
 */
#ifndef VGIC_BYTES_H
#define VGIC_BYTES_H

#include <stdint.h>

static inline uint8_t bytes_get_u8(const uint8_t *p)
{
	return p[0];
}

static inline uint16_t bytes_get_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] | (unsigned)p[1] << 8);
}

static inline uint32_t bytes_get_u32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t bytes_get_u64(const uint8_t *p)
{
	return bytes_get_u32(p) | (uint64_t)bytes_get_u32(p + 4) << 32;
}

static inline void bytes_put_u8(uint8_t *p, uint8_t value)
{
	p[0] = value;
}

static inline void bytes_put_u16(uint8_t *p, uint16_t value)
{
	p[0] = (uint8_t)value;
	p[1] = (uint8_t)(value >> 8);
}

static inline void bytes_put_u32(uint8_t *p, uint32_t value)
{
	bytes_put_u16(p, (uint16_t)value);
	bytes_put_u16(p + 2, (uint16_t)(value >> 16));
}

static inline void bytes_put_u64(uint8_t *p, uint64_t value)
{
	bytes_put_u32(p, (uint32_t)value);
	bytes_put_u32(p + 4, (uint32_t)(value >> 32));
}

#endif /* VGIC_BYTES_H */
