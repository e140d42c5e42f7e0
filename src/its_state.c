/* SPDX-License-Identifier: MIT */
/*
 * its_state.c - what an ITS has mapped, in the guest's tables: KVM's layout of
 * revision 0.
 *
 * All under config_lock, with the vCPUs stopped. Entries have 8 bytes, little-endian:
 *
 *   device table, by DeviceID     63 V, 62:49 next, 48:5 ITT address 51:8, 4:0 EventID bits - 1
 *   ITT, by EventID               63:48 next, 47:16 INTID (0: not valid), 15:0 ICID
 *   collection table, packed      63 V, 51:16 Processor_Number (2^32-1: not mapped), 15:0 ICID
 *
 * `next` is the distance to the next valid entry, or the largest that fits; 0 in the
 * last. A reader goes from entry 0 on, one by one until it has found a valid one, and
 * then by `next`. So what earlier saves and guests have left matters where a reader
 * goes one by one; a save clears it there. A second-level page is read from its
 * beginning.
 *
 * A restore reads everything into a struct its_image, which checks it, and then
 * applies that. Entries go forward only, there are no loops to fear; the work of one
 * call is bounded by the number of entries that it looks at.
 */
#include <errno.h>
#include <string.h>

#include "bytes.h"
#include "gic_regs.h"
#include "guestmem.h"
#include "its_image.h"
#include "state.h"

/* Entries that one save or restore looks at: 512 MiB of tables. */
#define MAX_ENTRIES (INT64_C(1) << 26)

#define ENTRIES_OF_PAGE (ITS_TABLE_PAGE / ITS_ENTRY_SIZE)
#define ENTRIES_OF_READ (4096 / ITS_ENTRY_SIZE)

#define DTE_VALID       (UINT64_C(1) << 63)
#define DTE_NEXT_SHIFT  49
#define DTE_NEXT_MAX    0x3fffu
#define DTE_ITT_SHIFT   5
#define DTE_ITT_MASK    ((UINT64_C(1) << 44) - 1)
#define DTE_SIZE        UINT64_C(0x1f)
#define ITT_ALIGN_SHIFT 8

#define ITE_NEXT_SHIFT  48
#define ITE_NEXT_MAX    0xffffu
#define ITE_INTID_SHIFT 16
#define ITE_ICID        UINT64_C(0xffff)

#define CTE_VALID          (UINT64_C(1) << 63)
#define CTE_RDBASE_SHIFT   16
#define CTE_RDBASE_MASK    ((UINT64_C(1) << 36) - 1)
#define CTE_RDBASE_NOWHERE UINT64_C(0xffffffff)
#define CTE_ICID           UINT64_C(0xffff)

/* One page of a table, as it was read last. */
struct window {
	uint64_t address; /* of the first entry */
	uint32_t num;     /* entries; 0: nothing was read */
	uint8_t bytes[ENTRIES_OF_READ * ITS_ENTRY_SIZE];
};

struct tables {
	struct vgic_its *its;
	struct its_image image;
	int64_t entries_left;
	uint8_t icids[ITS_MAX_COLLECTIONS / 8]; /* saving: those that events name; restoring: those in the table */
	struct window devices, events;          /* one for each level of nesting */
};

/* How many entries from @address on are in one page, @num at most. */
static uint32_t entries_in_page(uint64_t address, uint64_t num)
{
	const uint64_t rest = ENTRIES_OF_READ - address % 4096 / ITS_ENTRY_SIZE;

	return (uint32_t)(num < rest ? num : rest);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* DeviceIDs that the device table has entries for: those below this one. */
static uint64_t num_device_entries(const struct vgic_its *its)
{
	uint64_t num = its_table_entries(its, ITS_TABLE_DEVICES);

	if (its->baser[ITS_TABLE_DEVICES] & GITS_BASER_INDIRECT)
		num *= ENTRIES_OF_PAGE;
	return min_u64(num, UINT64_C(1) << its->device_id_bits);
}

static bool table_is_indirect(const struct vgic_its *its)
{
	return its->baser[ITS_TABLE_DEVICES] & GITS_BASER_INDIRECT;
}

/*
 * The page of an indirect table that has DeviceIDs from @number * ENTRIES_OF_PAGE on.
 * Returns 1 if there is one, 0 if not, or an error.
 */
static int read_level1(struct tables *t, uint64_t number, uint64_t *page)
{
	const uint64_t address = its_table_address(t->its, ITS_TABLE_DEVICES) + number * ITS_ENTRY_SIZE;
	uint64_t entry;

	if (--t->entries_left < 0)
		return -E2BIG;
	if (!guest_read_u64(t->its->vgic, address, &entry))
		return -EFAULT;
	*page = entry & GITS_LEVEL1_ADDRESS;
	return (entry & GITS_LEVEL1_VALID) ? 1 : 0;
}

static bool test_icid(const struct tables *t, uint64_t icid)
{
	return t->icids[icid / 8] >> (icid % 8) & 1;
}

static void set_icid(struct tables *t, uint64_t icid)
{
	t->icids[icid / 8] |= (uint8_t)(1u << (icid % 8));
}

/* ---- Writing --------------------------------------------------------------------------------- */

static int write_entry(struct tables *t, uint64_t address, uint64_t value)
{
	uint8_t bytes[ITS_ENTRY_SIZE];

	bytes_put_u64(bytes, value);
	return guest_write(t->its->vgic, address, bytes, sizeof(bytes)) ? 0 : -EFAULT;
}

/* Clear what is left of earlier times in @num entries, and write only what was not clear. */
static int clear_entries(struct tables *t, uint64_t address, uint64_t num)
{
	static const uint8_t zeros[ENTRIES_OF_READ * ITS_ENTRY_SIZE];
	uint8_t *const bytes = t->events.bytes;

	t->entries_left -= (int64_t)num;
	if (t->entries_left < 0)
		return -E2BIG;
	while (num) {
		const uint32_t n = entries_in_page(address, num);
		uint32_t from = 0, end = n;

		if (!guest_read(t->its->vgic, address, bytes, n * ITS_ENTRY_SIZE))
			return -EFAULT;
		while (from < end && !bytes_get_u64(bytes + ITS_ENTRY_SIZE * from))
			from++;
		while (end > from && !bytes_get_u64(bytes + ITS_ENTRY_SIZE * (end - 1)))
			end--;
		if (from < end &&
		    !guest_write(t->its->vgic, address + ITS_ENTRY_SIZE * from, zeros, (end - from) * ITS_ENTRY_SIZE))
			return -EFAULT;
		address += ITS_ENTRY_SIZE * n;
		num -= n;
	}
	return 0;
}

static uint64_t make_ite(const struct its_image_event *e, uint64_t next)
{
	return next << ITE_NEXT_SHIFT | (uint64_t)(FIRST_LPI + e->lpi) << ITE_INTID_SHIFT | e->icid;
}

/* Write the events of a device, neighbours in one access. */
static int write_events(struct tables *t, const struct its_image_device *d)
{
	const struct its_image_event *events = &t->image.events[d->first];
	uint8_t *const bytes = t->events.bytes;

	for (uint32_t i = 0, n; i < d->num_events; i += n) {
		const uint64_t address = d->itt + (uint64_t)events[i].eventid * ITS_ENTRY_SIZE;
		const uint32_t room = entries_in_page(address, d->num_events - i);

		for (n = 0; n < room && events[i + n].eventid == events[i].eventid + n; n++) {
			const uint32_t next =
				i + n + 1 < d->num_events ? events[i + n + 1].eventid - events[i + n].eventid : 0;

			bytes_put_u64(bytes + ITS_ENTRY_SIZE * n,
				      make_ite(&events[i + n], next < ITE_NEXT_MAX ? next : ITE_NEXT_MAX));
		}
		if (!guest_write(t->its->vgic, address, bytes, n * ITS_ENTRY_SIZE))
			return -EFAULT;
	}
	return 0;
}

static int save_itt(struct tables *t, const struct its_image_device *d)
{
	const uint32_t first = d->num_events ? t->image.events[d->first].eventid : d->num_event_ids;
	const int err = clear_entries(t, d->itt, first);

	return err ? err : write_events(t, d);
}

static uint64_t make_dte(const struct its_image_device *d, uint64_t next)
{
	const uint64_t bits = (uint64_t)__builtin_ctz(d->num_event_ids);

	return DTE_VALID | next << DTE_NEXT_SHIFT | (d->itt >> ITT_ALIGN_SHIFT & DTE_ITT_MASK) << DTE_ITT_SHIFT |
	       (bits - 1);
}

static int save_device(struct tables *t, uint32_t i)
{
	const struct its_image_device *d = &t->image.devices[i];
	const uint32_t next = i + 1 < t->image.num_devices ? d[1].devid - d->devid : 0;
	uint64_t address;
	int err = d->devid < num_device_entries(t->its) ? its_device_entry_address(t->its, d->devid, &address) :
							  -ENOENT;

	if (err)
		return err == -ENOENT ? -EINVAL : err;
	err = save_itt(t, d);
	return err ? err : write_entry(t, address, make_dte(d, next < DTE_NEXT_MAX ? next : DTE_NEXT_MAX));
}

/*
 * Entries @from to @end-1 of a piece of the device table hold no device, and begin
 * where a reader goes one by one. The piece begins with the entry of @first_id.
 */
static int clear_device_entries(struct tables *t, uint64_t address, uint64_t first_id, uint64_t from, uint64_t end)
{
	return from < end ? clear_entries(t, address + (from - first_id) * ITS_ENTRY_SIZE, end - from) : 0;
}

/* The last device ends a reader's way; without any it goes through all of the table. */
static bool reading_goes_on(const struct tables *t, uint32_t device)
{
	return device < t->image.num_devices || t->image.num_devices == 0;
}

/*
 * A piece of the device table, a flat one or a page of level 2, with the entries of
 * DeviceIDs @first_id to @end-1. *device is the first one whose id is not below
 * @first_id; it becomes that of the next piece.
 */
static int clear_piece(struct tables *t, uint64_t address, uint64_t first_id, uint64_t end, uint32_t *device)
{
	uint64_t from = first_id;
	int err = 0;

	for (; !err && *device < t->image.num_devices && t->image.devices[*device].devid < end; ++*device) {
		const uint64_t devid = t->image.devices[*device].devid;

		err = clear_device_entries(t, address, first_id, from, devid);
		from = devid + DTE_NEXT_MAX; /* a reader goes there at once, at most */
	}
	return !err && reading_goes_on(t, *device) ? clear_device_entries(t, address, first_id, from, end) : err;
}

static int clear_level2(struct tables *t)
{
	const uint64_t num_entries = num_device_entries(t->its);
	uint32_t device = 0;

	for (uint64_t first = 0; first < num_entries && reading_goes_on(t, device); first += ENTRIES_OF_PAGE) {
		uint64_t page;
		int r = read_level1(t, first / ENTRIES_OF_PAGE, &page);

		if (r > 0)
			r = clear_piece(t, page, first, min_u64(first + ENTRIES_OF_PAGE, num_entries), &device);
		if (r < 0)
			return r;
	}
	return 0;
}

static int save_devices(struct tables *t)
{
	uint32_t first = 0;
	int err;

	if (!its_table_is_valid(t->its, ITS_TABLE_DEVICES))
		return 0;
	err = table_is_indirect(t->its) ? clear_level2(t) :
					  clear_piece(t, its_table_address(t->its, ITS_TABLE_DEVICES), 0,
						      num_device_entries(t->its), &first);
	for (uint32_t i = 0; !err && i < t->image.num_devices; i++)
		err = save_device(t, i);
	return err;
}

/*
 * Note the collections that events name: KVM finds every event's collection in the
 * table, mapped or not. -EINVAL for one that the table has become too small for.
 */
static int note_icids(struct tables *t)
{
	for (uint32_t i = 0; i < t->image.num_events; i++) {
		if (t->image.events[i].icid >= its_num_collections(t->its))
			return -EINVAL;
		set_icid(t, t->image.events[i].icid);
	}
	return 0;
}

static uint64_t make_cte(const struct tables *t, uint64_t icid)
{
	const uint16_t target = t->image.collections[icid];
	const uint64_t rdbase = target == IRQ_NO_TARGET ? CTE_RDBASE_NOWHERE : t->its->vgic->vcpus[target]->id;

	return CTE_VALID | rdbase << CTE_RDBASE_SHIFT | icid;
}

static int save_collections(struct tables *t)
{
	const uint64_t num_entries = its_table_entries(t->its, ITS_TABLE_COLLECTIONS);
	uint64_t address = its_table_address(t->its, ITS_TABLE_COLLECTIONS), used = 0;
	int err;

	if (!its_table_is_valid(t->its, ITS_TABLE_COLLECTIONS))
		return 0;
	err = note_icids(t);
	for (uint64_t icid = 0; !err && icid < its_num_collections(t->its); icid++) {
		if (t->image.collections[icid] == IRQ_NO_TARGET && !test_icid(t, icid))
			continue;
		err = write_entry(t, address, make_cte(t, icid));
		address += ITS_ENTRY_SIZE;
		used++;
	}
	return !err && used < num_entries ? write_entry(t, address, 0) : err;
}

/* ---- Reading ------------------------------------------------------------------------------------ */

/* The entry at @address, of a table with @num more entries from there on. */
static int read_entry(struct tables *t, struct window *w, uint64_t address, uint64_t num, uint64_t *entry)
{
	const uint64_t place = (address - w->address) / ITS_ENTRY_SIZE;

	if (--t->entries_left < 0)
		return -E2BIG;
	if (address < w->address || place >= w->num) {
		w->num = 0;
		if (!guest_read(t->its->vgic, address, w->bytes, entries_in_page(address, num) * ITS_ENTRY_SIZE))
			return -EFAULT;
		w->address = address;
		w->num = entries_in_page(address, num);
		*entry = bytes_get_u64(w->bytes);
		return 0;
	}
	*entry = bytes_get_u64(w->bytes + ITS_ENTRY_SIZE * place);
	return 0;
}

static int restore_collection(struct tables *t, uint64_t entry)
{
	const uint64_t rdbase = entry >> CTE_RDBASE_SHIFT & CTE_RDBASE_MASK;
	const uint32_t icid = entry & CTE_ICID;
	const struct vgic_vcpu *vcpu;

	if (icid >= its_num_collections(t->its) || test_icid(t, icid))
		return -EINVAL;
	set_icid(t, icid);
	if (rdbase == CTE_RDBASE_NOWHERE)
		return 0;
	vcpu = rdbase <= VGIC_MAX_VCPU_ID ? vgic_vcpu_by_id(t->its->vgic, (uint32_t)rdbase) : NULL;
	if (!vcpu)
		return -EINVAL;
	t->image.collections[icid] = (uint16_t)vcpu->index;
	return 0;
}

static int restore_collections(struct tables *t)
{
	const uint64_t address = its_table_address(t->its, ITS_TABLE_COLLECTIONS);
	const uint64_t num = its_table_entries(t->its, ITS_TABLE_COLLECTIONS);
	int err = 0;

	if (!its_table_is_valid(t->its, ITS_TABLE_COLLECTIONS))
		return 0;
	for (uint64_t i = 0; !err && i < num; i++) {
		uint64_t entry;

		err = read_entry(t, &t->devices, address + i * ITS_ENTRY_SIZE, num - i, &entry);
		if (!err && !(entry & CTE_VALID))
			break;
		if (!err)
			err = restore_collection(t, entry);
	}
	return err;
}

/* An event may name a collection that is not in the table: that one is not mapped. But it has to be one of the table's ids. */
static int restore_event(struct tables *t, uint64_t event, uint64_t entry)
{
	const uint64_t intid = entry >> ITE_INTID_SHIFT & UINT32_MAX;
	const uint16_t icid = entry & ITE_ICID;

	if (its_table_is_valid(t->its, ITS_TABLE_COLLECTIONS) && icid >= its_num_collections(t->its))
		return -EINVAL;
	/* An INTID below the LPIs wraps, and is out of range. */
	return its_image_add_event(&t->image, t->its, event, intid - FIRST_LPI, icid);
}

static int restore_itt(struct tables *t, uint64_t itt, uint64_t num)
{
	t->events.num = 0;
	for (uint64_t event = 0, next; event < num; event += next) {
		uint64_t entry;
		int err = read_entry(t, &t->events, itt + event * ITS_ENTRY_SIZE, num - event, &entry);

		if (err)
			return err;
		next = 1;
		if (!(entry >> ITE_INTID_SHIFT & UINT32_MAX))
			continue;
		err = restore_event(t, event, entry);
		if (err)
			return err;
		next = entry >> ITE_NEXT_SHIFT;
		if (!next)
			break;
		if (event + next >= num)
			return -EINVAL;
	}
	return 0;
}

static int restore_device(struct tables *t, uint32_t devid, uint64_t entry)
{
	const uint64_t itt = (entry >> DTE_ITT_SHIFT & DTE_ITT_MASK) << ITT_ALIGN_SHIFT;
	const uint32_t bits = (uint32_t)(entry & DTE_SIZE) + 1;
	const int err = its_image_add_device(&t->image, t->its, devid, bits, itt);

	return err ? err : restore_itt(t, itt, UINT64_C(1) << bits);
}

/*
 * A piece of the device table as in clear_piece(). Returns 1 if its entries ended
 * the table, 0 if the next piece has to be read, or an error.
 */
static int restore_piece(struct tables *t, uint64_t address, uint64_t first_id, uint64_t end)
{
	t->devices.num = 0;
	for (uint64_t id = first_id, next; id < end; id += next) {
		uint64_t entry;
		int err = read_entry(t, &t->devices, address + (id - first_id) * ITS_ENTRY_SIZE, end - id, &entry);

		if (err)
			return err;
		next = 1;
		if (!(entry & DTE_VALID))
			continue;
		err = restore_device(t, (uint32_t)id, entry);
		if (err)
			return err;
		next = entry >> DTE_NEXT_SHIFT & DTE_NEXT_MAX;
		if (!next)
			return 1;
		if (id + next >= num_device_entries(t->its))
			return -EINVAL;
	}
	return 0;
}

static int restore_level2(struct tables *t)
{
	const uint64_t num_entries = num_device_entries(t->its);
	int r = 0;

	for (uint64_t first = 0; r == 0 && first < num_entries; first += ENTRIES_OF_PAGE) {
		uint64_t page;

		r = read_level1(t, first / ENTRIES_OF_PAGE, &page);
		if (r > 0)
			r = restore_piece(t, page, first, min_u64(first + ENTRIES_OF_PAGE, num_entries));
	}
	return r;
}

static int restore_devices(struct tables *t)
{
	int r;

	if (!its_table_is_valid(t->its, ITS_TABLE_DEVICES))
		return 0;
	r = table_is_indirect(t->its) ?
		    restore_level2(t) :
		    restore_piece(t, its_table_address(t->its, ITS_TABLE_DEVICES), 0, num_device_entries(t->its));
	return r < 0 ? r : 0;
}

/* ---- What the guest's other tables say of the LPIs ------------------------------------------------------- */

/* The entries of 64 LPIs that are neighbours, as they were read last. */
struct lpi_group {
	bool has_properties, has_pending;
	uint32_t number, vcpu;
	uint8_t properties[64];
	uint64_t pending;
};

static int read_property(struct vgic *vgic, struct lpi_group *g, struct its_image_event *e)
{
	if (FIRST_LPI + e->lpi >= lpi_intid_end(vgic))
		return 0;
	if (!g->has_properties) {
		if (!guest_read(vgic, lpi_property_address(vgic, e->lpi - e->lpi % 64), g->properties, 64))
			return -EFAULT;
		g->has_properties = true;
	}
	e->property = g->properties[e->lpi % 64];
	return 0;
}

/*
 * Pending if the table of its redistributor says so, and only then (as in KVM). With
 * EnableLPIs=0 that is left to the set that comes.
 */
static int read_pending(struct vgic *vgic, struct lpi_group *g, struct its_image_event *e, uint32_t target)
{
	const struct vgic_vcpu *vcpu = target == IRQ_NO_TARGET ? NULL : vgic->vcpus[target];

	if (!vcpu || !load_relaxed(&vcpu->lpis_enabled) || FIRST_LPI + e->lpi >= lpi_intid_end(vgic))
		return 0;
	if (!g->has_pending || g->vcpu != target) {
		if (!guest_read_u64(vgic, lpi_pending_address(vcpu, e->lpi - e->lpi % 64), &g->pending))
			return -EFAULT;
		g->has_pending = true;
		g->vcpu = target;
	}
	e->pending = g->pending >> (e->lpi % 64) & 1;
	return 0;
}

static int restore_lpis(struct tables *t)
{
	struct vgic *vgic = t->its->vgic;
	struct lpi_group group = { .number = UINT32_MAX };
	int err = 0;

	for (uint32_t i = 0; !err && i < t->image.num_events; i++) {
		struct its_image_event *e = &t->image.events[i];

		if (e->lpi / 64 != group.number)
			group = (struct lpi_group){ .number = e->lpi / 64 };
		err = read_property(vgic, &group, e);
		if (!err)
			err = read_pending(vgic, &group, e, t->image.collections[e->icid]);
	}
	return err;
}

/* ---- Both -------------------------------------------------------------------------------------------- */

int its_save_tables(struct vgic_its *its)
{
	struct tables *t = port_alloc_zeroed(sizeof(*t), CACHE_LINE);
	int err;

	if (!t)
		return -ENOMEM;
	its_settle(its);
	t->its = its;
	t->entries_left = MAX_ENTRIES;
	err = its_image_collect(&t->image, its);
	err = err ? err : save_devices(t);
	err = err ? err : save_collections(t);
	its_image_free(&t->image);
	port_free(t);
	return err;
}

int its_restore_tables(struct vgic_its *its)
{
	struct tables *t;
	int err;

	if (its->enable_wanted)
		return -EBUSY;
	t = port_alloc_zeroed(sizeof(*t), CACHE_LINE);
	if (!t)
		return -ENOMEM;
	for (uint32_t v = 0; v < its->vgic->num_vcpus; v++)
		redist_finish_work(its->vgic->vcpus[v]);
	its_settle(its);
	t->its = its;
	t->entries_left = MAX_ENTRIES;
	err = its_image_init(&t->image);
	err = err ? err : restore_collections(t);
	err = err ? err : restore_devices(t);
	err = err ? err : restore_lpis(t);
	if (!err)
		its_image_apply(&t->image, its);
	its_image_free(&t->image);
	port_free(t);
	return err;
}
