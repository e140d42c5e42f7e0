/* SPDX-License-Identifier: MIT */
/*
 * guestmem.c - guest memory through the VMM's callbacks, page by page.
 */
#include "guestmem.h"

#include <string.h>

#include "bytes.h"

#define PAGE 4096u

static bool wraps(uint64_t address, uint64_t size)
{
	return size && address > UINT64_MAX - (size - 1);
}

static size_t part_in_page(uint64_t address, size_t size)
{
	const size_t rest = PAGE - (size_t)(address % PAGE);

	return size < rest ? size : rest;
}

bool guest_read(struct vgic *vgic, uint64_t address, void *buffer, size_t size)
{
	unsigned char *to = buffer;

	memset(buffer, 0, size);
	if (!vgic->ops.guest_read || wraps(address, size))
		goto failed;
	for (size_t done = 0; done < size;) {
		const size_t part = part_in_page(address + done, size - done);

		if (vgic->ops.guest_read(vgic->opaque, address + done, to + done, part) < 0) {
			memset(buffer, 0, size);
			goto failed;
		}
		done += part;
	}
	return true;
failed:
	guest_error(vgic, VGIC_GUEST_MEMORY, "read of guest memory", address, size);
	return false;
}

bool guest_write(struct vgic *vgic, uint64_t address, const void *buffer, size_t size)
{
	const unsigned char *from = buffer;

	if (!vgic->ops.guest_write || wraps(address, size))
		goto failed;
	for (size_t done = 0; done < size;) {
		const size_t part = part_in_page(address + done, size - done);

		if (vgic->ops.guest_write(vgic->opaque, address + done, from + done, part) < 0)
			goto failed;
		done += part;
	}
	return true;
failed:
	guest_error(vgic, VGIC_GUEST_MEMORY, "write of guest memory", address, size);
	return false;
}

bool guest_range_exists(struct vgic *vgic, uint64_t address, uint64_t size)
{
	unsigned char byte;

	if (!vgic->ops.guest_read || size == 0 || wraps(address, size))
		return false;
	return vgic->ops.guest_read(vgic->opaque, address, &byte, 1) == 0 &&
	       vgic->ops.guest_read(vgic->opaque, address + size - 1, &byte, 1) == 0;
}

bool guest_read_u64(struct vgic *vgic, uint64_t address, uint64_t *value)
{
	unsigned char bytes[8];
	const bool ok = guest_read(vgic, address, bytes, sizeof(bytes));

	*value = bytes_get_u64(bytes);
	return ok;
}
