/* SPDX-License-Identifier: MIT */
/*
 * its_tables.c - how much room the guest has given: command queue, device table
 * and collection table.
 *
 * What is mapped lives in the host's memory; the guest's tables bound which ids
 * there are, as they would in hardware, and hold the state when it is saved. All
 * limits are num_*, compared with < or >= in 64 bits.
 */
#include <errno.h>

#include "gic_regs.h"
#include "guestmem.h"
#include "its.h"

uint64_t its_queue_size_of(uint64_t cbaser)
{
	return (cbaser & GITS_CBASER_VALID) ? ((cbaser & GITS_CBASER_SIZE) + 1) * 4096 : 0;
}

uint64_t its_queue_size(const struct vgic_its *its)
{
	return its_queue_size_of(its->cbaser);
}

bool its_table_is_valid(const struct vgic_its *its, enum its_table table)
{
	return its->baser[table] & GITS_BASER_VALID;
}

/* With 64 KiB pages, bits 15:12 of the register are bits 51:48 of the address. */
static uint64_t table_address(uint64_t baser)
{
	return (baser & GITS_BASER_ADDRESS_47_16) | (baser & GITS_BASER_ADDRESS_51_48) << 36;
}

static uint64_t table_entries(uint64_t baser)
{
	return ((baser & GITS_BASER_SIZE) + 1) * ITS_TABLE_PAGE / ITS_ENTRY_SIZE;
}

uint64_t its_table_address(const struct vgic_its *its, enum its_table table)
{
	return table_address(its->baser[table]);
}

uint64_t its_table_entries(const struct vgic_its *its, enum its_table table)
{
	return table_entries(its->baser[table]);
}

uint32_t its_num_collections(const struct vgic_its *its)
{
	uint64_t num_entries;

	if (!its_table_is_valid(its, ITS_TABLE_COLLECTIONS))
		return 0;
	num_entries = table_entries(its->baser[ITS_TABLE_COLLECTIONS]);
	return num_entries < ITS_MAX_COLLECTIONS ? (uint32_t)num_entries : ITS_MAX_COLLECTIONS;
}

/* Level 1 of an indirect table is read from guest memory at each use. */
int its_device_entry_address(struct vgic_its *its, uint32_t devid, uint64_t *address)
{
	const uint64_t baser = its->baser[ITS_TABLE_DEVICES];
	const uint64_t num_per_page = ITS_TABLE_PAGE / ITS_ENTRY_SIZE;
	uint64_t level1;

	if (!(baser & GITS_BASER_INDIRECT)) {
		if (devid >= table_entries(baser))
			return -ENOENT;
		*address = table_address(baser) + (uint64_t)devid * ITS_ENTRY_SIZE;
		return 0;
	}
	if (devid / num_per_page >= table_entries(baser))
		return -ENOENT;
	if (!guest_read_u64(its->vgic, table_address(baser) + devid / num_per_page * ITS_ENTRY_SIZE, &level1))
		return -EFAULT;
	if (!(level1 & GITS_LEVEL1_VALID))
		return -ENOENT;
	*address = (level1 & GITS_LEVEL1_ADDRESS) + devid % num_per_page * ITS_ENTRY_SIZE;
	return 0;
}

bool its_device_id_is_valid(struct vgic_its *its, uint32_t devid)
{
	uint64_t address;

	if (devid >= UINT64_C(1) << its->device_id_bits || !its_table_is_valid(its, ITS_TABLE_DEVICES))
		return false;
	return its_device_entry_address(its, devid, &address) == 0 &&
	       guest_range_exists(its->vgic, address, ITS_ENTRY_SIZE);
}
