/* SPDX-License-Identifier: MIT */
/*
 * guest_its.c - a guest's driver for LPIs and an ITS (guest_its.h).
 */
#include "guest_its.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Registers ---- */

#define GICD_CTLR      0x0000u
#define GICD_TYPER     0x0004u
#define GICR_CTLR      0x0000u
#define GICR_TYPER     0x0008u
#define GICR_WAKER     0x0014u
#define GICR_PROPBASER 0x0070u
#define GICR_PENDBASER 0x0078u
#define GITS_CTLR      0x0000u
#define GITS_TYPER     0x0008u
#define GITS_CBASER    0x0080u
#define GITS_CWRITER   0x0088u
#define GITS_CREADR    0x0090u
#define GITS_BASER     0x0100u

#define GICD_CTLR_ENABLE_GRP1  (1u << 1)
#define GICD_CTLR_ARE          (1u << 4)
#define GICR_CTLR_ENABLE_LPIS  (1u << 0)
#define GICR_CTLR_RWP          (1u << 3)
#define GICR_WAKER_ASLEEP      (1u << 2)
#define GICR_PENDBASER_PTZ     (UINT64_C(1) << 62)
#define GITS_CTLR_ENABLED      (1u << 0)
#define GITS_CTLR_QUIESCENT    (1u << 31)
#define GITS_VALID             (UINT64_C(1) << 63)
#define GITS_BASER_DEVICES     1u
#define GITS_BASER_COLLECTIONS 4u
#define GITS_NUM_BASERS        8u

#define FIRST_LPI        8192u
#define PMR_ALL          0xf8u
#define TABLE_PAGE       UINT64_C(0x10000)
#define QUEUE_SIZE       TABLE_PAGE
#define COMMAND_SIZE     32u
#define COLLECTION_PAGES 1u

/* A controller that does not answer: so many reads of a register that shows no progress. */
#define MAX_POLLS 1000000

static uint64_t field(uint64_t value, unsigned shift, unsigned bits)
{
	return value >> shift & ((UINT64_C(1) << bits) - 1);
}

static uint64_t round_up(uint64_t value, uint64_t align)
{
	return (value + align - 1) & ~(align - 1);
}

/* ---- The guest's memory ---- */

int guest_ram_init(struct guest_ram *ram, uint64_t base, uint64_t size)
{
	*ram = (struct guest_ram){ .base = base, .size = size };
	size = round_up(size, TABLE_PAGE);
	ram->bytes = aligned_alloc(TABLE_PAGE, size);
	if (!ram->bytes)
		return -ENOMEM;
	memset(ram->bytes, 0, size);
	return 0;
}

void guest_ram_free(struct guest_ram *ram)
{
	free(ram->bytes);
	*ram = (struct guest_ram){ 0 };
}

uint64_t guest_ram_alloc(struct guest_ram *ram, uint64_t size, uint64_t align)
{
	const uint64_t address = round_up(ram->base + ram->used, align);

	if (address - ram->base > ram->size || size > ram->size - (address - ram->base))
		return 0;
	ram->used = address - ram->base + size;
	return address;
}

void *guest_ram_at(const struct guest_ram *ram, uint64_t address, uint64_t size)
{
	if (address < ram->base || address - ram->base > ram->size || size > ram->size - (address - ram->base))
		return NULL;
	return ram->bytes + (address - ram->base);
}

int guest_ram_read(const struct guest_ram *ram, uint64_t address, void *buffer, size_t size)
{
	const void *bytes = guest_ram_at(ram, address, size);
	uint64_t value;

	if (!bytes)
		return -EFAULT;
	if (size == sizeof(value) && address % sizeof(value) == 0) {
		value = __atomic_load_n((const uint64_t *)bytes, __ATOMIC_RELAXED);
		bytes = &value;
	}
	memcpy(buffer, bytes, size);
	return 0;
}

int guest_ram_write(struct guest_ram *ram, uint64_t address, const void *buffer, size_t size)
{
	void *bytes = guest_ram_at(ram, address, size);
	uint64_t value;

	if (!bytes)
		return -EFAULT;
	if (size == sizeof(value) && address % sizeof(value) == 0) {
		memcpy(&value, buffer, size);
		__atomic_store_n((uint64_t *)bytes, value, __ATOMIC_RELAXED);
		return 0;
	}
	memcpy(bytes, buffer, size);
	return 0;
}

/* ---- Distributor, redistributors, CPU interfaces ---- */

uint32_t guest_gic_processor_number(struct vgic_vcpu *vcpu)
{
	uint64_t typer = 0;

	vgic_redist_read(vcpu, GICR_TYPER, 8, &typer);
	return (uint32_t)field(typer, 8, 16);
}

/* The LPI tables of a redistributor. The configuration table is shared. */
static int enable_lpis(struct guest_gic *gic, struct vgic_vcpu *vcpu, uint64_t pending_table)
{
	uint64_t ctlr = 0;
	int error;

	error = vgic_redist_write(vcpu, GICR_PROPBASER, 8, gic->config_table | (gic->id_bits - 1));
	error |= vgic_redist_write(vcpu, GICR_PENDBASER, 8, pending_table | GICR_PENDBASER_PTZ);
	error |= vgic_redist_write(vcpu, GICR_CTLR, 4, GICR_CTLR_ENABLE_LPIS);
	for (unsigned polls = 0; !error && polls < MAX_POLLS; polls++) {
		error = vgic_redist_read(vcpu, GICR_CTLR, 4, &ctlr);
		if ((ctlr & (GICR_CTLR_ENABLE_LPIS | GICR_CTLR_RWP)) == GICR_CTLR_ENABLE_LPIS)
			return error;
	}
	return -EIO;
}

static int boot_vcpu(struct guest_gic *gic, struct vgic_vcpu *vcpu, uint64_t pending_table)
{
	uint64_t waker = 0;
	int error;

	error = vgic_redist_write(vcpu, GICR_WAKER, 4, 0);
	error |= vgic_redist_read(vcpu, GICR_WAKER, 4, &waker);
	error |= vgic_icc_write(vcpu, VGIC_ICC_PMR_EL1, PMR_ALL);
	error |= vgic_icc_write(vcpu, VGIC_ICC_IGRPEN1_EL1, 1);
	if (error || (waker & GICR_WAKER_ASLEEP))
		return -EIO;
	return enable_lpis(gic, vcpu, pending_table);
}

static int alloc_tables(struct guest_gic *gic, uint8_t property)
{
	const uint64_t num_intids = UINT64_C(1) << gic->id_bits;
	const uint32_t num_vcpus = vgic_num_vcpus(gic->vgic);

	gic->pending_tables = calloc(num_vcpus, sizeof(*gic->pending_tables));
	gic->config_table = guest_ram_alloc(gic->ram, num_intids - FIRST_LPI, TABLE_PAGE);
	if (!gic->pending_tables || !gic->config_table)
		return -ENOMEM;
	memset(guest_ram_at(gic->ram, gic->config_table, num_intids - FIRST_LPI), property, num_intids - FIRST_LPI);
	for (uint32_t i = 0; i < num_vcpus; i++) {
		gic->pending_tables[i] = guest_ram_alloc(gic->ram, num_intids / 8, TABLE_PAGE);
		if (!gic->pending_tables[i])
			return -ENOMEM;
	}
	return 0;
}

int guest_gic_boot(struct guest_gic *gic, struct vgic *vgic, struct guest_ram *ram, uint8_t property)
{
	uint64_t typer = 0;
	int error;

	*gic = (struct guest_gic){ .vgic = vgic, .ram = ram };
	error = vgic_dist_read(vgic, GICD_TYPER, 4, &typer);
	error |= vgic_dist_write(vgic, GICD_CTLR, 4, GICD_CTLR_ARE | GICD_CTLR_ENABLE_GRP1);
	gic->id_bits = (unsigned)field(typer, 19, 5) + 1;
	if (error || (UINT64_C(1) << gic->id_bits) <= FIRST_LPI)
		return -EIO;
	error = alloc_tables(gic, property);
	for (uint32_t i = 0; i < vgic_num_vcpus(vgic) && !error; i++)
		error = boot_vcpu(gic, vgic_vcpu_by_index(vgic, i), gic->pending_tables[i]);
	if (error)
		guest_gic_free(gic);
	return error;
}

void guest_gic_free(struct guest_gic *gic)
{
	free(gic->pending_tables);
	*gic = (struct guest_gic){ 0 };
}

int guest_gic_configure_lpi(struct guest_gic *gic, uint32_t intid, uint8_t property)
{
	if (intid < FIRST_LPI || intid >= UINT64_C(1) << gic->id_bits)
		return -EINVAL;
	return guest_ram_write(gic->ram, gic->config_table + (intid - FIRST_LPI), &property, 1);
}

/* ---- Tables of an ITS ---- */

/* Give GITS_BASER @n a table of its own, if it asks for one. */
static int boot_table(struct guest_its *g, unsigned n, unsigned device_id_bits)
{
	uint64_t baser = 0, num_pages, address;
	unsigned type, entry_size;

	if (vgic_its_read(g->its, GITS_BASER + 8 * n, 8, &baser))
		return -EIO;
	type = (unsigned)field(baser, 56, 3);
	entry_size = (unsigned)field(baser, 48, 5) + 1;
	if (type == GITS_BASER_DEVICES)
		num_pages = round_up((UINT64_C(1) << device_id_bits) * entry_size, TABLE_PAGE) / TABLE_PAGE;
	else if (type == GITS_BASER_COLLECTIONS)
		num_pages = COLLECTION_PAGES;
	else
		return 0;
	address = guest_ram_alloc(g->ram, num_pages * TABLE_PAGE, TABLE_PAGE);
	if (!address)
		return -ENOMEM;
	return vgic_its_write(g->its, GITS_BASER + 8 * n, 8, GITS_VALID | UINT64_C(2) << 8 | address | (num_pages - 1));
}

int guest_its_boot(struct guest_its *g, struct vgic_its *its, struct guest_ram *ram, unsigned device_id_bits)
{
	uint64_t typer = 0;
	int error;

	*g = (struct guest_its){ .its = its, .ram = ram, .queue_size = QUEUE_SIZE };
	if (vgic_its_read(its, GITS_TYPER, 8, &typer))
		return -EIO;
	g->itt_entry_size = (unsigned)field(typer, 4, 4) + 1;
	if (field(typer, 13, 5) + 1 < device_id_bits)
		return -EINVAL;
	for (unsigned n = 0; n < GITS_NUM_BASERS; n++) {
		error = boot_table(g, n, device_id_bits);
		if (error)
			return error;
	}
	g->queue = guest_ram_alloc(ram, g->queue_size, TABLE_PAGE);
	if (!g->queue)
		return -ENOMEM;
	error = vgic_its_write(its, GITS_CBASER, 8, GITS_VALID | g->queue | (g->queue_size / 4096 - 1));
	error |= vgic_its_write(its, GITS_CWRITER, 8, 0);
	return error ? -EIO : guest_its_enable(g, true);
}

int guest_its_enable(struct guest_its *g, bool enable)
{
	uint64_t ctlr = 0;

	if (vgic_its_write(g->its, GITS_CTLR, 4, enable ? GITS_CTLR_ENABLED : 0))
		return -EIO;
	for (unsigned polls = 0; polls < MAX_POLLS; polls++) {
		if (vgic_its_read(g->its, GITS_CTLR, 4, &ctlr))
			return -EIO;
		if (ctlr & (enable ? GITS_CTLR_ENABLED : GITS_CTLR_QUIESCENT))
			return 0;
	}
	return -EIO;
}

uint64_t guest_its_alloc_itt(struct guest_its *g, unsigned event_bits)
{
	return guest_ram_alloc(g->ram, (UINT64_C(1) << event_bits) * g->itt_entry_size, 256);
}

/* ---- Commands ---- */

enum {
	CMD_MOVI = 0x01,
	CMD_INT = 0x03,
	CMD_CLEAR = 0x04,
	CMD_SYNC = 0x05,
	CMD_MAPD = 0x08,
	CMD_MAPC = 0x09,
	CMD_MAPTI = 0x0a,
	CMD_MAPI = 0x0b,
	CMD_INV = 0x0c,
	CMD_INVALL = 0x0d,
	CMD_MOVALL = 0x0e,
	CMD_DISCARD = 0x0f,
};

static uint64_t header(unsigned opcode, uint32_t devid)
{
	return (uint64_t)devid << 32 | opcode;
}

static uint64_t rdbase_field(uint32_t rdbase)
{
	return (uint64_t)rdbase << 16;
}

int guest_its_send(struct guest_its *g, const uint64_t command[4])
{
	uint64_t *slot = guest_ram_at(g->ram, g->queue + g->write_offset, COMMAND_SIZE);
	uint64_t read_offset = 0;

	if (!slot)
		return -EFAULT;
	memcpy(slot, command, COMMAND_SIZE);
	g->write_offset = (g->write_offset + COMMAND_SIZE) % g->queue_size;
	if (vgic_its_write(g->its, GITS_CWRITER, 8, g->write_offset))
		return -EIO;
	for (unsigned polls = 0; polls < MAX_POLLS; polls++) {
		if (vgic_its_read(g->its, GITS_CREADR, 8, &read_offset))
			return -EIO;
		if (read_offset == g->write_offset)
			return 0;
	}
	return -EIO;
}

/* A command that names an event, with more in the upper half of its second word and in its third. */
static int send_event(struct guest_its *g, unsigned opcode, uint32_t devid, uint32_t eventid, uint32_t intid,
		      uint32_t icid)
{
	return guest_its_send(g, (uint64_t[]){ header(opcode, devid), (uint64_t)intid << 32 | eventid, icid, 0 });
}

int guest_its_mapd(struct guest_its *g, uint32_t devid, unsigned event_bits, uint64_t itt)
{
	return guest_its_send(g, (uint64_t[]){ header(CMD_MAPD, devid), event_bits - 1, GITS_VALID | itt, 0 });
}

int guest_its_unmapd(struct guest_its *g, uint32_t devid)
{
	return guest_its_send(g, (uint64_t[]){ header(CMD_MAPD, devid), 0, 0, 0 });
}

int guest_its_mapc(struct guest_its *g, uint32_t icid, uint32_t rdbase)
{
	return guest_its_send(g, (uint64_t[]){ header(CMD_MAPC, 0), 0, GITS_VALID | rdbase_field(rdbase) | icid, 0 });
}

int guest_its_unmapc(struct guest_its *g, uint32_t icid)
{
	return guest_its_send(g, (uint64_t[]){ header(CMD_MAPC, 0), 0, icid, 0 });
}

int guest_its_mapti(struct guest_its *g, uint32_t devid, uint32_t eventid, uint32_t intid, uint32_t icid)
{
	return send_event(g, CMD_MAPTI, devid, eventid, intid, icid);
}

int guest_its_mapi(struct guest_its *g, uint32_t devid, uint32_t eventid, uint32_t icid)
{
	return send_event(g, CMD_MAPI, devid, eventid, 0, icid);
}

int guest_its_movi(struct guest_its *g, uint32_t devid, uint32_t eventid, uint32_t icid)
{
	return send_event(g, CMD_MOVI, devid, eventid, 0, icid);
}

int guest_its_discard(struct guest_its *g, uint32_t devid, uint32_t eventid)
{
	return send_event(g, CMD_DISCARD, devid, eventid, 0, 0);
}

int guest_its_int(struct guest_its *g, uint32_t devid, uint32_t eventid)
{
	return send_event(g, CMD_INT, devid, eventid, 0, 0);
}

int guest_its_clear(struct guest_its *g, uint32_t devid, uint32_t eventid)
{
	return send_event(g, CMD_CLEAR, devid, eventid, 0, 0);
}

int guest_its_inv(struct guest_its *g, uint32_t devid, uint32_t eventid)
{
	return send_event(g, CMD_INV, devid, eventid, 0, 0);
}

int guest_its_invall(struct guest_its *g, uint32_t icid)
{
	return guest_its_send(g, (uint64_t[]){ header(CMD_INVALL, 0), 0, icid, 0 });
}

int guest_its_movall(struct guest_its *g, uint32_t from_rdbase, uint32_t to_rdbase)
{
	return guest_its_send(g, (uint64_t[]){ header(CMD_MOVALL, 0), 0, rdbase_field(from_rdbase),
					       rdbase_field(to_rdbase) });
}

int guest_its_sync(struct guest_its *g, uint32_t rdbase)
{
	return guest_its_send(g, (uint64_t[]){ header(CMD_SYNC, 0), 0, rdbase_field(rdbase), 0 });
}
