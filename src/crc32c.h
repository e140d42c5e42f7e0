/* SPDX-License-Identifier: MIT */
/*
 * crc32c.h - CRC-32C (Castagnoli), the checksum of images.
 */
#ifndef VGIC_CRC32C_H
#define VGIC_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of @size bytes. The CRC of "123456789" is 0xe3069283. */
uint32_t crc32c(const void *data, size_t size);

#endif /* VGIC_CRC32C_H */
