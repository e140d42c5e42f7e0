/* SPDX-License-Identifier: MIT */
/*
 * LPIs and ITSes of the reference GIC: see ref_its.h for what they are for.
 *
 * Order of the file: guest memory, LPIs, the redistributor's LPI registers, tables
 * and commands of an ITS, its registers, signals.
 */
#include "ref_its.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gic_arch.h"
#include "its_arch.h"

#define NOWHERE         UINT32_MAX
#define MAX_COLLECTIONS 65536u
#define LPIS_PER_WORD   64u /* of the pending table */
#define DEFAULT_ID_BITS 16u
#define DEFAULT_DEVICES 1024u
#define DEFAULT_EVENTS  65536u

#define PROPBASER_WRITABLE 0x070fffffffffff9full
#define PENDBASER_WRITABLE 0x070fffffffff0f80ull
#define BASER_WRITABLE     0xb8e0fffffffffcffull
#define CBASER_WRITABLE    0xb8effffffffffcffull
#define CWRITER_OFFSET     0xfffe0ull
#define ADDRESS_4K         0x000ffffffffff000ull
#define ADDRESS_64K        0x000fffffffff0000ull

struct lpi {
	struct irq irq;
	uint32_t target; /* vCPU index, or NOWHERE */
};

struct redist {
	uint32_t id;
	bool enabled;
	uint64_t pendbaser;
	bool ptz;
};

struct device {
	bool mapped;
	uint32_t devid;
	uint64_t num_events;
};

struct event {
	bool mapped;
	uint32_t devid;
	uint32_t eventid;
	uint32_t lpi; /* INTID */
	uint32_t icid;
};

struct its {
	uint64_t num_device_ids;
	uint32_t device_bits, event_bits;
	uint32_t max_devices, max_events;
	struct device *devices;
	struct event *events;
	uint32_t *collections; /* vCPU index by ICID, or NOWHERE */

	bool enabled;
	uint64_t cbaser, cwriter, creadr;
	uint64_t baser[2];
	struct vgic_its_stats stats;
};

struct ref_lpis {
	struct vgic_ops ops;
	void *opaque;
	uint64_t *guest_errors;
	bool kvm;
	uint32_t end;         /* INTID */
	struct lpi *lpis;     /* by INTID - 8192 */
	uint32_t pending_end; /* one past the highest INTID that was pending at any time: none is beyond */
	uint32_t num_vcpus;
	struct redist *redists;
	uint64_t propbaser;
	uint32_t num_itses;
	struct its *itses;
	uint64_t merged, shared;
};

/* ---- Guest memory --------------------------------------------------------------------------- */

/* What cannot be read is zero, and counted. None of these reads crosses a page. */
static bool read_memory(struct ref_lpis *r, uint64_t address, void *buffer, size_t size)
{
	if (r->ops.guest_read(r->opaque, address, buffer, size) >= 0)
		return true;
	memset(buffer, 0, size);
	r->guest_errors[VGIC_GUEST_MEMORY]++;
	return false;
}

static bool read_u64(struct ref_lpis *r, uint64_t address, uint64_t *value)
{
	uint8_t bytes[8];
	const bool ok = read_memory(r, address, bytes, sizeof(bytes));

	*value = 0;
	for (unsigned i = 0; i < 8; i++)
		*value |= (uint64_t)bytes[i] << (8 * i);
	return ok;
}

static void write_u64(struct ref_lpis *r, uint64_t address, uint64_t value)
{
	uint8_t bytes[8];

	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	if (r->ops.guest_write(r->opaque, address, bytes, sizeof(bytes)) < 0)
		r->guest_errors[VGIC_GUEST_MEMORY]++;
}

static bool range_exists(struct ref_lpis *r, uint64_t address, uint64_t size)
{
	uint8_t byte;

	return r->ops.guest_read(r->opaque, address, &byte, 1) >= 0 &&
	       r->ops.guest_read(r->opaque, address + size - 1, &byte, 1) >= 0;
}

/* ---- LPIs ------------------------------------------------------------------------------------- */

uint32_t ref_lpis_next_pending(const struct ref_lpis *r, uint32_t intid)
{
	for (; intid < r->pending_end; intid++) {
		if (r->lpis[intid - GIC_FIRST_LPI].irq.latch)
			return intid;
	}
	return 0;
}

static struct lpi *find_lpi(const struct ref_lpis *r, uint32_t intid)
{
	return intid >= GIC_FIRST_LPI && intid < r->end ? &r->lpis[intid - GIC_FIRST_LPI] : NULL;
}

static void make_pending(struct ref_lpis *r, struct lpi *lpi)
{
	const uint32_t intid = GIC_FIRST_LPI + (uint32_t)(lpi - r->lpis);

	lpi->irq.latch = true;
	if (intid >= r->pending_end)
		r->pending_end = intid + 1;
}

struct irq *ref_lpi(struct ref_lpis *r, uint32_t intid)
{
	struct lpi *lpi = find_lpi(r, intid);

	return lpi ? &lpi->irq : NULL;
}

bool ref_lpi_is_at(const struct ref_lpis *r, uint32_t intid, uint32_t vcpu)
{
	const struct lpi *lpi = find_lpi(r, intid);

	return lpi && lpi->target == vcpu && r->redists[vcpu].enabled;
}

/* One past the last INTID that the guest's IDbits allows. */
static uint32_t guest_end(const struct ref_lpis *r)
{
	const uint64_t end = 2ull << (r->propbaser & GICR_PROPBASER_IDBITS);

	if (end <= GIC_FIRST_LPI)
		return GIC_FIRST_LPI;
	return end < r->end ? (uint32_t)end : r->end;
}

/* Is any event of any ITS mapped to this LPI? */
static unsigned count_mappings(const struct ref_lpis *r, uint32_t intid)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < r->num_itses; i++) {
		for (uint32_t e = 0; e < r->itses[i].max_events; e++)
			count += r->itses[i].events[e].mapped && r->itses[i].events[e].lpi == intid;
	}
	return count;
}

static void set_property(struct lpi *lpi, uint8_t property)
{
	lpi->irq.enabled = property & LPI_ENABLED;
	lpi->irq.priority = property & GIC_PRIORITY_MASK;
}

static void read_property(struct ref_lpis *r, uint32_t intid)
{
	uint8_t property;

	if (intid >= guest_end(r))
		return;
	read_memory(r, (r->propbaser & ADDRESS_4K) + (intid - GIC_FIRST_LPI), &property, 1);
	set_property(find_lpi(r, intid), property);
}

/* Read the properties of those of 64 LPIs that are at a vCPU. */
static void read_properties(struct ref_lpis *r, uint32_t first, uint32_t vcpu)
{
	uint8_t properties[LPIS_PER_WORD];
	bool any = false;

	for (uint32_t i = 0; i < LPIS_PER_WORD; i++)
		any |= find_lpi(r, first + i)->target == vcpu;
	if (!any)
		return;
	read_memory(r, (r->propbaser & ADDRESS_4K) + (first - GIC_FIRST_LPI), properties, sizeof(properties));
	for (uint32_t i = 0; i < LPIS_PER_WORD; i++) {
		if (find_lpi(r, first + i)->target == vcpu)
			set_property(find_lpi(r, first + i), properties[i]);
	}
}

static void read_all_properties(struct ref_lpis *r, uint32_t vcpu)
{
	for (uint32_t first = GIC_FIRST_LPI; first < guest_end(r); first += LPIS_PER_WORD)
		read_properties(r, first, vcpu);
}

/* An event that led to this LPI does so no longer. */
static void lose_mapping(struct ref_lpis *r, uint32_t intid)
{
	struct lpi *lpi = find_lpi(r, intid);

	lpi->irq.latch = false;
	if (count_mappings(r, intid) == 0)
		lpi->target = NOWHERE;
}

/* ---- Redistributors ------------------------------------------------------------------------------ */

bool ref_lpis_are_direct(const struct ref_lpis *r)
{
	return r->num_itses == 0 && !r->kvm;
}

bool ref_lpis_enabled(const struct ref_lpis *r, uint32_t vcpu)
{
	return r->redists[vcpu].enabled;
}

static uint64_t pending_word_address(const struct ref_lpis *r, uint32_t vcpu, uint32_t first)
{
	return (r->redists[vcpu].pendbaser & ADDRESS_64K) + first / 8;
}

static bool has_any_lpi(const struct ref_lpis *r, uint32_t vcpu)
{
	for (uint32_t intid = GIC_FIRST_LPI; intid < r->end; intid++) {
		if (find_lpi(r, intid)->target == vcpu)
			return true;
	}
	return false;
}

/* EnableLPIs was set: a bit of the table counts for an LPI that is here, or mapped nowhere. */
static void take_pending_table(struct ref_lpis *r, uint32_t vcpu)
{
	if (r->redists[vcpu].ptz && !has_any_lpi(r, vcpu))
		return;
	for (uint32_t first = GIC_FIRST_LPI; first < guest_end(r); first += LPIS_PER_WORD) {
		uint64_t table = 0;

		if (!r->redists[vcpu].ptz)
			read_u64(r, pending_word_address(r, vcpu, first), &table);
		for (uint32_t i = 0; i < LPIS_PER_WORD; i++) {
			struct lpi *lpi = find_lpi(r, first + i);

			if (!(table >> i & 1))
				continue;
			if (lpi->target == NOWHERE && count_mappings(r, first + i) == 0)
				lpi->target = vcpu;
			if (lpi->target == vcpu)
				make_pending(r, lpi);
		}
		read_properties(r, first, vcpu);
	}
}

/* EnableLPIs was cleared: what is pending here goes to the table, and nothing else stays in it. */
static void give_pending_table(struct ref_lpis *r, uint32_t vcpu)
{
	for (uint32_t first = GIC_FIRST_LPI; first < r->end; first += LPIS_PER_WORD) {
		uint64_t table = 0, pending = 0;

		if (first < guest_end(r))
			read_u64(r, pending_word_address(r, vcpu, first), &table);
		for (uint32_t i = 0; i < LPIS_PER_WORD; i++) {
			struct lpi *lpi = find_lpi(r, first + i);

			if (lpi->target != vcpu)
				continue;
			if (lpi->irq.latch)
				pending |= 1ull << i;
			lpi->irq.latch = false;
		}
		if (pending != table && first < guest_end(r))
			write_u64(r, pending_word_address(r, vcpu, first), pending);
	}
	r->redists[vcpu].ptz = false;
}

void ref_lpis_enable(struct ref_lpis *r, uint32_t vcpu, bool enable)
{
	if (r->redists[vcpu].enabled == enable)
		return;
	r->redists[vcpu].enabled = enable;
	if (enable)
		take_pending_table(r, vcpu);
	else
		give_pending_table(r, vcpu);
}

void ref_lpis_forget(struct ref_lpis *r)
{
	for (uint32_t intid = GIC_FIRST_LPI; intid < r->end; intid++) {
		struct lpi *lpi = find_lpi(r, intid);

		/* It was moved to a redistributor with EnableLPIs=0: that has it in its table now. */
		if (lpi->target != NOWHERE && !r->redists[lpi->target].enabled)
			lpi->irq.latch = false;
		if (lpi->irq.latch || count_mappings(r, intid) != 0)
			read_property(r, intid);
		else
			lpi->target = NOWHERE;
	}
	for (uint32_t v = 0; v < r->num_vcpus; v++)
		r->redists[v].ptz = false;
}

uint64_t ref_lpis_read(const struct ref_lpis *r, uint32_t vcpu, uint32_t offset)
{
	if (offset == GICR_PROPBASER)
		return r->propbaser;
	return offset == GICR_PENDBASER ? r->redists[vcpu].pendbaser : 0;
}

/*
 * The cacheability and shareability that KVM shows for what was written: inner and outer cacheability in bits of which the
 * lowest are given, shareability in bits 11:10. The native profile shows what was written.
 */
static uint64_t accepted(const struct ref_lpis *r, uint64_t value, unsigned inner, unsigned outer)
{
	if (!r->kvm)
		return value;
	if ((value >> inner & 7) < 2)
		value = (value & ~(7ull << inner)) | 3ull << inner;
	if ((value >> outer & 7) > 1)
		value &= ~(7ull << outer);
	if ((value >> 10 & 3) == 2)
		value ^= 3ull << 10;
	return value;
}

static uint64_t merge(uint64_t old, uint64_t value, uint64_t mask)
{
	return (old & ~mask) | (value & mask);
}

static void write_direct(struct ref_lpis *r, uint32_t vcpu, uint32_t intid, bool set)
{
	struct lpi *lpi = intid < guest_end(r) ? find_lpi(r, intid) : NULL;

	if (!ref_lpis_are_direct(r) || !lpi)
		return;
	if (!set) {
		if (lpi->target == vcpu)
			lpi->irq.latch = false;
		return;
	}
	if (!r->redists[vcpu].enabled)
		return;
	if (lpi->target != vcpu) {
		read_property(r, intid);
		lpi->target = vcpu;
	}
	make_pending(r, lpi);
}

void ref_lpis_write(struct ref_lpis *r, uint32_t vcpu, uint32_t offset, uint64_t value, uint64_t mask)
{
	struct redist *redist = &r->redists[vcpu];
	/* The low half names an LPI; a write of the upper half alone names none. */
	const uint32_t intid = (uint32_t)(value & mask);

	switch (offset) {
	case GICR_SETLPIR:
		write_direct(r, vcpu, intid, true);
		break;
	case GICR_CLRLPIR:
		write_direct(r, vcpu, intid, false);
		break;
	case GICR_PROPBASER:
		if (!redist->enabled)
			r->propbaser = accepted(r, merge(r->propbaser, value, mask) & PROPBASER_WRITABLE, 7, 56);
		break;
	case GICR_PENDBASER:
		if (redist->enabled)
			break;
		redist->pendbaser = accepted(r, merge(redist->pendbaser, value, mask) & PENDBASER_WRITABLE, 7, 56);
		if (mask & GICR_PENDBASER_PTZ)
			redist->ptz = (value & GICR_PENDBASER_PTZ) != 0;
		break;
	case GICR_INVLPIR:
		if (redist->enabled && find_lpi(r, intid))
			read_property(r, intid);
		break;
	case GICR_INVALLR:
		if (redist->enabled)
			read_all_properties(r, vcpu);
		break;
	default:
		break;
	}
}

/* ---- Tables of an ITS ---------------------------------------------------------------------------- */

static uint64_t num_entries(const struct its *its, unsigned table)
{
	if (!(its->baser[table] & GITS_BASER_VALID))
		return 0;
	return ((its->baser[table] & 0xff) + 1) * GITS_TABLE_PAGE / GITS_ENTRY_SIZE;
}

static uint64_t queue_size(const struct its *its)
{
	return its->cbaser & GITS_CBASER_VALID ? ((its->cbaser & 0xff) + 1) * GITS_QUEUE_PAGE : 0;
}

static uint64_t table_base(uint64_t baser)
{
	return (baser & 0x0000ffffffff0000ull) | (baser >> 12 & 15) << 48;
}

static bool device_has_entry(struct ref_lpis *r, const struct its *its, uint32_t devid)
{
	const uint64_t baser = its->baser[0];
	const uint64_t per_page = GITS_TABLE_PAGE / GITS_ENTRY_SIZE;
	uint64_t level1;

	if (devid >= its->num_device_ids)
		return false;
	if (!(baser & GITS_BASER_INDIRECT))
		return devid < num_entries(its, 0) && range_exists(r, table_base(baser) + devid * 8ull, 8);
	if (devid / per_page >= num_entries(its, 0))
		return false;
	if (!read_u64(r, table_base(baser) + devid / per_page * 8, &level1) || !(level1 & GITS_LEVEL1_VALID))
		return false;
	return range_exists(r, (level1 & ADDRESS_64K) + devid % per_page * 8, 8);
}

static bool collection_has_entry(const struct its *its, uint32_t icid)
{
	return icid < num_entries(its, 1);
}

static uint32_t find_rdbase(const struct ref_lpis *r, uint64_t dw)
{
	const uint64_t rdbase = dw >> 16 & ((1ull << 35) - 1);

	for (uint32_t i = 0; i < r->num_vcpus; i++) {
		if (r->redists[i].id == rdbase)
			return i;
	}
	return NOWHERE;
}

static struct device *find_device(const struct its *its, uint32_t devid)
{
	for (uint32_t i = 0; i < its->max_devices; i++) {
		if (its->devices[i].mapped && its->devices[i].devid == devid)
			return &its->devices[i];
	}
	return NULL;
}

static struct event *find_event(const struct its *its, uint32_t devid, uint32_t eventid)
{
	for (uint32_t i = 0; i < its->max_events; i++) {
		struct event *event = &its->events[i];

		if (event->mapped && event->devid == devid && event->eventid == eventid)
			return event;
	}
	return NULL;
}

static void unmap_event(struct ref_lpis *r, struct event *event)
{
	event->mapped = false;
	lose_mapping(r, event->lpi);
}

static void unmap_device(struct ref_lpis *r, struct its *its, struct device *device)
{
	for (uint32_t i = 0; i < its->max_events; i++) {
		if (its->events[i].mapped && its->events[i].devid == device->devid)
			unmap_event(r, &its->events[i]);
	}
	device->mapped = false;
}

/* ---- Commands --------------------------------------------------------------------------------------- */

#define NO_ERROR (-1)

struct command {
	unsigned opcode;
	uint32_t devid, eventid, pintid, icid;
	unsigned size;
	uint64_t itt;
	bool valid;
	uint64_t dw[4];
};

static int run_mapd(struct ref_lpis *r, struct its *its, const struct command *c)
{
	struct device *device;

	if (!device_has_entry(r, its, c->devid))
		return VGIC_ITS_MAPD_DEVICE_OOR;
	if (c->valid && c->size + 1 > its->event_bits)
		return VGIC_ITS_MAPD_ITTSIZE_OOR;
	if (c->valid && !range_exists(r, c->itt, 8ull << (c->size + 1)))
		return VGIC_ITS_ITT_NOT_IN_MEMORY;
	device = find_device(its, c->devid);
	if (device)
		unmap_device(r, its, device);
	if (!c->valid)
		return NO_ERROR;
	for (uint32_t i = 0; i < its->max_devices; i++) {
		if (its->devices[i].mapped)
			continue;
		its->devices[i] = (struct device){ true, c->devid, 2ull << c->size };
		return NO_ERROR;
	}
	return VGIC_ITS_TOO_MANY_DEVICES;
}

static int run_mapc(struct ref_lpis *r, struct its *its, const struct command *c)
{
	const uint32_t target = c->valid ? find_rdbase(r, c->dw[2]) : NOWHERE;

	if (!collection_has_entry(its, c->icid))
		return VGIC_ITS_MAPC_COLLECTION_OOR;
	if (c->valid && target == NOWHERE)
		return VGIC_ITS_MAPC_PROCNUM_OOR;
	its->collections[c->icid] = target;
	for (uint32_t i = 0; i < its->max_events; i++) {
		if (its->events[i].mapped && its->events[i].icid == c->icid)
			find_lpi(r, its->events[i].lpi)->target = target;
	}
	return NO_ERROR;
}

/* MAPTI and MAPI have the same errors in the same order. */
static int map_error(bool mapi, enum vgic_its_error mapti_error)
{
	return (int)mapti_error + (mapi ? VGIC_ITS_MAPI_DEVICE_OOR - VGIC_ITS_MAPTI_DEVICE_OOR : 0);
}

static int check_mapping(const struct ref_lpis *r, const struct its *its, const struct command *c, uint32_t intid)
{
	const bool mapi = c->opcode == ITS_CMD_MAPI;
	const struct device *device = find_device(its, c->devid);

	if (c->devid >= its->num_device_ids)
		return map_error(mapi, VGIC_ITS_MAPTI_DEVICE_OOR);
	if (!device)
		return map_error(mapi, VGIC_ITS_MAPTI_UNMAPPED_DEVICE);
	if (c->eventid >= device->num_events)
		return map_error(mapi, VGIC_ITS_MAPTI_ID_OOR);
	if (!collection_has_entry(its, c->icid))
		return map_error(mapi, VGIC_ITS_MAPTI_COLLECTION_OOR);
	if (intid < GIC_FIRST_LPI || intid >= guest_end(r))
		return map_error(mapi, VGIC_ITS_MAPTI_PHYSICALID_OOR);
	return NO_ERROR;
}

static int run_mapti(struct ref_lpis *r, struct its *its, const struct command *c)
{
	const uint32_t intid = c->opcode == ITS_CMD_MAPI ? c->eventid : c->pintid;
	const int error = check_mapping(r, its, c, intid);
	struct event *event = find_event(its, c->devid, c->eventid);
	struct event old = { .mapped = false };

	if (error != NO_ERROR)
		return error;
	if (event)
		old = *event;
	for (uint32_t i = 0; !event && i < its->max_events; i++) {
		if (!its->events[i].mapped)
			event = &its->events[i];
	}
	if (!event)
		return VGIC_ITS_TOO_MANY_TRANSLATIONS;
	*event = (struct event){ true, c->devid, c->eventid, intid, c->icid };
	read_property(r, intid);
	find_lpi(r, intid)->target = its->collections[c->icid];
	if (old.mapped && old.lpi != intid)
		lose_mapping(r, old.lpi);
	if (count_mappings(r, intid) > 1)
		r->shared++;
	return NO_ERROR;
}

/* The four commands that name an event, and MOVI: which of their errors is it? */
static int check_event(const struct its *its, const struct command *c, enum vgic_its_error device_oor,
		       enum vgic_its_error unmapped_device, enum vgic_its_error id_oor,
		       enum vgic_its_error unmapped_interrupt)
{
	const struct device *device = find_device(its, c->devid);

	if (c->devid >= its->num_device_ids)
		return (int)device_oor;
	if (!device)
		return (int)unmapped_device;
	if (c->eventid >= device->num_events)
		return (int)id_oor;
	return find_event(its, c->devid, c->eventid) ? NO_ERROR : (int)unmapped_interrupt;
}

static int run_movi(struct ref_lpis *r, struct its *its, const struct command *c)
{
	const int error = check_event(its, c, VGIC_ITS_MOVI_DEVICE_OOR, VGIC_ITS_MOVI_UNMAPPED_DEVICE,
				      VGIC_ITS_MOVI_ID_OOR, VGIC_ITS_MOVI_UNMAPPED_INTERRUPT);
	struct event *event = find_event(its, c->devid, c->eventid);

	if (error != NO_ERROR)
		return error;
	if (!collection_has_entry(its, c->icid))
		return VGIC_ITS_MOVI_COLLECTION_OOR;
	if (its->collections[event->icid] == NOWHERE || its->collections[c->icid] == NOWHERE)
		return VGIC_ITS_MOVI_UNMAPPED_COLLECTION;
	event->icid = c->icid;
	find_lpi(r, event->lpi)->target = its->collections[c->icid];
	return NO_ERROR;
}

static int run_movall(struct ref_lpis *r, const struct command *c)
{
	const uint32_t from = find_rdbase(r, c->dw[2]), to = find_rdbase(r, c->dw[3]);

	if (from == NOWHERE || to == NOWHERE)
		return VGIC_ITS_MOVALL_PROCNUM_OOR;
	for (uint32_t intid = GIC_FIRST_LPI; intid < r->end; intid++) {
		if (find_lpi(r, intid)->target == from)
			find_lpi(r, intid)->target = to;
	}
	return NO_ERROR;
}

static int run_invall(struct ref_lpis *r, const struct its *its, const struct command *c)
{
	if (!collection_has_entry(its, c->icid))
		return VGIC_ITS_INVALL_COLLECTION_OOR;
	if (its->collections[c->icid] == NOWHERE)
		return VGIC_ITS_INVALL_UNMAPPED_COLLECTION;
	read_all_properties(r, its->collections[c->icid]);
	return NO_ERROR;
}

static int run_discard(struct ref_lpis *r, const struct its *its, const struct command *c)
{
	const int error = check_event(its, c, VGIC_ITS_DISCARD_DEVICE_OOR, VGIC_ITS_DISCARD_UNMAPPED_DEVICE,
				      VGIC_ITS_DISCARD_ID_OOR, VGIC_ITS_DISCARD_UNMAPPED_INTERRUPT);

	if (error == NO_ERROR)
		unmap_event(r, find_event(its, c->devid, c->eventid));
	return error;
}

static int run_int(struct ref_lpis *r, const struct its *its, const struct command *c)
{
	const int error = check_event(its, c, VGIC_ITS_INT_DEVICE_OOR, VGIC_ITS_INT_UNMAPPED_DEVICE,
				      VGIC_ITS_INT_ID_OOR, VGIC_ITS_INT_UNMAPPED_INTERRUPT);
	struct lpi *lpi;

	if (error != NO_ERROR)
		return error;
	lpi = find_lpi(r, find_event(its, c->devid, c->eventid)->lpi);
	if (lpi->target != NOWHERE && r->redists[lpi->target].enabled)
		make_pending(r, lpi);
	return NO_ERROR;
}

static int run_clear(struct ref_lpis *r, const struct its *its, const struct command *c)
{
	const int error = check_event(its, c, VGIC_ITS_CLEAR_DEVICE_OOR, VGIC_ITS_CLEAR_UNMAPPED_DEVICE,
				      VGIC_ITS_CLEAR_ID_OOR, VGIC_ITS_CLEAR_UNMAPPED_INTERRUPT);

	if (error == NO_ERROR)
		find_lpi(r, find_event(its, c->devid, c->eventid)->lpi)->irq.latch = false;
	return error;
}

static int run_inv(struct ref_lpis *r, const struct its *its, const struct command *c)
{
	const int error = check_event(its, c, VGIC_ITS_INV_DEVICE_OOR, VGIC_ITS_INV_UNMAPPED_DEVICE,
				      VGIC_ITS_INV_ID_OOR, VGIC_ITS_INV_UNMAPPED_INTERRUPT);

	if (error == NO_ERROR)
		read_property(r, find_event(its, c->devid, c->eventid)->lpi);
	return error;
}

static int run_command(struct ref_lpis *r, struct its *its, const struct command *c)
{
	switch (c->opcode) {
	case ITS_CMD_MAPD:
		return run_mapd(r, its, c);
	case ITS_CMD_MAPC:
		return run_mapc(r, its, c);
	case ITS_CMD_MAPTI:
	case ITS_CMD_MAPI:
		return run_mapti(r, its, c);
	case ITS_CMD_MOVI:
		return run_movi(r, its, c);
	case ITS_CMD_MOVALL:
		return run_movall(r, c);
	case ITS_CMD_DISCARD:
		return run_discard(r, its, c);
	case ITS_CMD_INT:
		return run_int(r, its, c);
	case ITS_CMD_CLEAR:
		return run_clear(r, its, c);
	case ITS_CMD_INV:
		return run_inv(r, its, c);
	case ITS_CMD_INVALL:
		return run_invall(r, its, c);
	case ITS_CMD_SYNC:
		return find_rdbase(r, c->dw[2]) == NOWHERE ? (int)VGIC_ITS_SYNC_PROCNUM_OOR : NO_ERROR;
	default:
		return c->opcode >> 4 == 2 ? VGIC_ITS_VIRTUAL_COMMAND : VGIC_ITS_UNKNOWN_COMMAND;
	}
}

static void count_error(struct ref_lpis *r, struct its *its, int error)
{
	its->stats.errors[error]++;
	r->guest_errors[VGIC_GUEST_ITS_COMMAND]++;
}

static bool read_command(struct ref_lpis *r, const struct its *its, struct command *c)
{
	for (unsigned i = 0; i < 4; i++) {
		if (!read_u64(r, (its->cbaser & ADDRESS_4K) + its->creadr + 8 * i, &c->dw[i]))
			return false;
	}
	c->opcode = c->dw[0] & 0xff;
	c->devid = (uint32_t)(c->dw[0] >> 32);
	c->eventid = (uint32_t)c->dw[1];
	c->pintid = (uint32_t)(c->dw[1] >> 32);
	c->size = c->dw[1] & 31;
	c->icid = c->dw[2] & 0xffff;
	c->itt = c->dw[2] & 0x000fffffffffff00ull;
	c->valid = c->dw[2] >> 63;
	return true;
}

static void run_queue(struct ref_lpis *r, struct its *its)
{
	while (its->enabled && its->creadr != its->cwriter) {
		struct command c;
		int error;

		if (!read_command(r, its, &c)) {
			count_error(r, its, VGIC_ITS_QUEUE_NOT_IN_MEMORY);
			its->creadr = its->cwriter;
			return;
		}
		error = run_command(r, its, &c);
		if (error != NO_ERROR)
			count_error(r, its, error);
		its->stats.commands++;
		its->creadr += ITS_CMD_SIZE;
		if (its->creadr >= queue_size(its))
			its->creadr = 0;
	}
}

/* ---- Registers of an ITS -------------------------------------------------------------------------------- */

static uint64_t fixed_baser(unsigned table)
{
	/* Type, entries of 8 bytes, pages of 64 KiB. */
	return (uint64_t)(table == 0 ? GITS_TYPE_DEVICES : GITS_TYPE_COLLECTIONS) << 56 | 7ull << 48 | 2ull << 8;
}

static uint64_t read_its_id(const struct ref_lpis *r, uint32_t offset)
{
	/* PIDR4 to PIDR7, PIDR0 to PIDR3, CIDR0 to CIDR3 */
	static const uint8_t ids[12] = { 0x44, 0, 0, 0, 0x92, 0xb4, 0x3b, 0, 0x0d, 0xf0, 0x05, 0xb1 };

	if (r->kvm && offset == GIC_ID_FIRST)
		return 0x40;
	return ids[(offset - GIC_ID_FIRST) / 4];
}

/* The whole register that begins at @offset. */
static uint64_t read_its_register(const struct ref_lpis *r, const struct its *its, uint32_t offset)
{
	if (offset >= GIC_ID_FIRST && offset < GITS_TRANSLATER)
		return read_its_id(r, offset);
	switch (offset) {
	case GITS_CTLR:
		return its->enabled ? GITS_CTLR_ENABLED : GITS_CTLR_QUIESCENT;
	case GITS_IIDR:
		return r->kvm ? 0x4b00043bu : 0x76001000u;
	case GITS_TYPER:
		return GITS_TYPER_PHYSICAL | 7u << 4 | (its->event_bits - 1) << 8 |
		       (uint64_t)(its->device_bits - 1) << 13;
	case GITS_CBASER:
		return its->cbaser;
	case GITS_CWRITER:
		return its->cwriter;
	case GITS_CREADR:
		return its->creadr;
	case GITS_BASER0:
		return its->baser[0] | fixed_baser(0);
	case GITS_BASER1:
		return its->baser[1] | fixed_baser(1);
	default:
		return 0;
	}
}

static void forget_collections(struct ref_lpis *r, struct its *its)
{
	for (uint32_t icid = 0; icid < MAX_COLLECTIONS; icid++)
		its->collections[icid] = NOWHERE;
	for (uint32_t i = 0; i < its->max_events; i++) {
		if (its->events[i].mapped)
			find_lpi(r, its->events[i].lpi)->target = NOWHERE;
	}
}

static void write_baser(struct ref_lpis *r, struct its *its, unsigned table, uint64_t value, uint64_t mask)
{
	if (its->enabled)
		return;
	its->baser[table] = merge(its->baser[table], value, mask) & BASER_WRITABLE;
	if (table == 0)
		its->baser[table] |= merge(its->baser[table], value, mask) & GITS_BASER_INDIRECT;
	its->baser[table] &= ~0x0300ull; /* the page size is fixed */
	its->baser[table] = accepted(r, its->baser[table], 59, 53);
	if (its->baser[table] & GITS_BASER_VALID)
		return;
	for (uint32_t i = 0; table == 0 && i < its->max_devices; i++) {
		if (its->devices[i].mapped)
			unmap_device(r, its, &its->devices[i]);
	}
	if (table == 1)
		forget_collections(r, its);
}

static void write_its_register(struct ref_lpis *r, struct its *its, uint32_t offset, uint64_t value, uint64_t mask)
{
	uint64_t offset_in_queue;

	switch (offset) {
	case GITS_CTLR:
		if (!(value & GITS_CTLR_ENABLED))
			its->enabled = false;
		else if (queue_size(its) && num_entries(its, 0) && num_entries(its, 1))
			its->enabled = true;
		break;
	case GITS_CBASER:
		if (its->enabled)
			break;
		its->cbaser = accepted(r, merge(its->cbaser, value, mask) & CBASER_WRITABLE, 59, 53);
		if (r->kvm)
			its->cbaser &= ~0xf000ull; /* a queue begins at a multiple of 64 KiB */
		its->cwriter = 0;
		its->creadr = 0;
		break;
	case GITS_CWRITER:
		offset_in_queue = merge(its->cwriter, value, mask) & CWRITER_OFFSET;
		if (offset_in_queue < queue_size(its))
			its->cwriter = offset_in_queue;
		break;
	case GITS_BASER0:
	case GITS_BASER1:
		write_baser(r, its, offset == GITS_BASER1, value, mask);
		break;
	default:
		break;
	}
	run_queue(r, its);
}

struct its_reg {
	uint32_t first, end;
	unsigned size, widths; /* in bytes; widths ORed */
	bool read_only;
};

static const struct its_reg its_regs[] = {
	{ GITS_CTLR, 0x4, 4, 4, false },
	{ GITS_IIDR, 0x8, 4, 4, true },
	{ GITS_TYPER, 0x10, 8, 4 | 8, true },
	{ GITS_CBASER, 0x88, 8, 4 | 8, false },
	{ GITS_CWRITER, 0x90, 8, 4 | 8, false },
	{ GITS_CREADR, 0x98, 8, 4 | 8, true },
	{ GITS_BASER0, 0x140, 8, 4 | 8, false },
	{ GIC_ID_FIRST, 0x10000, 4, 4, true },
	{ GITS_TRANSLATER, GITS_TRANSLATER + 4, 4, 4, false },
};

/* Find the register of an access; NULL, with the error counted, if it has none that answers. */
static const struct its_reg *decode(struct ref_lpis *r, uint32_t offset, unsigned width, bool is_write)
{
	for (size_t i = 0; i < sizeof(its_regs) / sizeof(its_regs[0]); i++) {
		const struct its_reg *reg = &its_regs[i];

		if (offset < reg->first || offset >= reg->end)
			continue;
		if (!(reg->widths & width) || offset % width != 0) {
			r->guest_errors[VGIC_GUEST_MMIO_WIDTH]++;
			return NULL;
		}
		if (is_write && reg->read_only) {
			r->guest_errors[VGIC_GUEST_MMIO_READ_ONLY]++;
			return NULL;
		}
		return reg;
	}
	r->guest_errors[VGIC_GUEST_MMIO_RESERVED]++;
	return NULL;
}

static int check_access(uint32_t offset, unsigned width)
{
	if (width != 1 && width != 2 && width != 4 && width != 8)
		return -EINVAL;
	return (uint64_t)offset + width > VGIC_ITS_FRAME_SIZE ? -ENXIO : 0;
}

static uint64_t low_bytes(unsigned width)
{
	return width == 8 ? ~0ull : (1ull << (8 * width)) - 1;
}

int ref_its_read(struct ref_lpis *r, uint32_t its, uint32_t offset, unsigned width, uint64_t *value)
{
	const int error = check_access(offset, width);
	const struct its_reg *reg;

	if (error)
		return error;
	*value = 0;
	reg = decode(r, offset, width, false);
	if (reg)
		*value = read_its_register(r, &r->itses[its], offset - offset % reg->size) >>
				 (8 * (offset % reg->size)) &
			 low_bytes(width);
	return 0;
}

int ref_its_write(struct ref_lpis *r, uint32_t its, uint32_t offset, unsigned width, uint64_t value)
{
	const int error = check_access(offset, width);
	const struct its_reg *reg;
	unsigned shift;

	if (error)
		return error;
	reg = decode(r, offset, width, true);
	if (!reg)
		return 0;
	shift = 8 * (offset % reg->size);
	write_its_register(r, &r->itses[its], offset - offset % reg->size, (value & low_bytes(width)) << shift,
			   low_bytes(width) << shift);
	return 0;
}

/* ---- Signals ------------------------------------------------------------------------------------------------ */

int ref_its_signal(struct ref_lpis *r, uint32_t number, uint32_t devid, uint32_t eventid)
{
	struct its *its = &r->itses[number];
	const struct event *event = find_event(its, devid, eventid);
	struct lpi *lpi;

	if (!its->enabled) {
		its->stats.dropped_its_off++;
		return -EBUSY;
	}
	if (!event) {
		its->stats.dropped_unmapped_event++;
		return 0;
	}
	lpi = find_lpi(r, event->lpi);
	if (lpi->target == NOWHERE) {
		its->stats.dropped_unmapped_collection++;
		return 0;
	}
	if (!r->redists[lpi->target].enabled) {
		its->stats.dropped_lpis_disabled++;
		return 0;
	}
	r->merged += lpi->irq.latch;
	make_pending(r, lpi);
	return 1;
}

struct vgic_its_stats ref_its_stats(const struct ref_lpis *r, uint32_t number)
{
	const struct its *its = &r->itses[number];
	struct vgic_its_stats stats = its->stats;

	stats.size = sizeof(stats);
	for (uint32_t i = 0; i < its->max_devices; i++)
		stats.num_devices += its->devices[i].mapped;
	for (uint32_t i = 0; i < its->max_events; i++)
		stats.num_translations += its->events[i].mapped;
	return stats;
}

bool ref_its_some_event(const struct ref_lpis *r, uint32_t number, uint32_t start, uint32_t *devid, uint32_t *eventid)
{
	const struct its *its = &r->itses[number];

	for (uint32_t i = 0; i < its->max_events; i++) {
		const struct event *event = &its->events[(start + i) % its->max_events];

		if (!event->mapped)
			continue;
		*devid = event->devid;
		*eventid = event->eventid;
		return true;
	}
	return false;
}

uint64_t ref_lpis_merged(const struct ref_lpis *r)
{
	return r->merged;
}

uint64_t ref_lpis_shared(const struct ref_lpis *r)
{
	return r->shared;
}

/* ---- Life cycle ------------------------------------------------------------------------------------------------ */

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);

	if (memory == NULL)
		abort();
	return memory;
}

static void reset_its(struct ref_lpis *r, struct its *its)
{
	its->enabled = false;
	its->cbaser = 0;
	its->cwriter = 0;
	its->creadr = 0;
	/* Inner shareable, inner cacheable. */
	its->baser[0] = its->baser[1] = 0x1800000000000400ull;
	for (uint32_t i = 0; i < its->max_devices; i++)
		its->devices[i].mapped = false;
	for (uint32_t i = 0; i < its->max_events; i++)
		its->events[i].mapped = false;
	forget_collections(r, its);
}

void ref_lpis_reset(struct ref_lpis *r)
{
	for (uint32_t i = 0; i < r->num_itses; i++)
		reset_its(r, &r->itses[i]);
	for (uint32_t intid = GIC_FIRST_LPI; intid < r->end; intid++)
		*find_lpi(r, intid) =
			(struct lpi){ .irq = { .exists = true, .edge = true, .group = 1 }, .target = NOWHERE };
	for (uint32_t i = 0; i < r->num_vcpus; i++)
		r->redists[i] = (struct redist){ .id = r->redists[i].id, .pendbaser = r->kvm ? 0x580 : 0 };
	r->propbaser = r->kvm ? 0x580 : 0;
}

static void create_its(struct its *its, const struct vgic_its_config *config)
{
	its->device_bits = config->device_id_bits ? config->device_id_bits : DEFAULT_ID_BITS;
	its->event_bits = config->event_id_bits ? config->event_id_bits : DEFAULT_ID_BITS;
	its->num_device_ids = 1ull << its->device_bits;
	its->max_devices = config->max_devices ? config->max_devices : DEFAULT_DEVICES;
	its->max_events = config->max_translations ? config->max_translations : DEFAULT_EVENTS;
	its->devices = allocate(its->max_devices, sizeof(its->devices[0]));
	its->events = allocate(its->max_events, sizeof(its->events[0]));
	its->collections = allocate(MAX_COLLECTIONS, sizeof(its->collections[0]));
}

struct ref_lpis *ref_lpis_create(const struct vgic_config *config, uint64_t *guest_errors)
{
	struct ref_lpis *r = allocate(1, sizeof(*r));

	r->ops = config->ops;
	r->opaque = config->opaque;
	r->guest_errors = guest_errors;
	r->kvm = config->profile == VGIC_PROFILE_KVM;
	r->end = 1u << config->lpi_id_bits;
	r->lpis = allocate(r->end - GIC_FIRST_LPI, sizeof(r->lpis[0]));
	r->num_vcpus = config->num_vcpus;
	r->redists = allocate(r->num_vcpus, sizeof(r->redists[0]));
	for (uint32_t i = 0; i < r->num_vcpus; i++)
		r->redists[i].id = config->vcpus[i].id;
	r->num_itses = config->num_itses;
	r->itses = allocate(r->num_itses, sizeof(r->itses[0]));
	for (uint32_t i = 0; i < r->num_itses; i++)
		create_its(&r->itses[i], &config->itses[i]);
	ref_lpis_reset(r);
	return r;
}

void ref_lpis_destroy(struct ref_lpis *r)
{
	if (r == NULL)
		return;
	for (uint32_t i = 0; i < r->num_itses; i++) {
		free(r->itses[i].devices);
		free(r->itses[i].events);
		free(r->itses[i].collections);
	}
	free(r->itses);
	free(r->redists);
	free(r->lpis);
	free(r);
}

void ref_lpis_use_memory(struct ref_lpis *r, void *opaque)
{
	r->opaque = opaque;
}
