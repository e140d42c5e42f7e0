/* SPDX-License-Identifier: MIT */
/*
 * its.c - an Interrupt Translation Service: its frame, and the signals of devices.
 *
 * A signal takes no lock: it loads Enabled, looks the event up, and does one CAS on
 * the LPI's state word. Everything else is done under config_lock.
 *
 * GITS_CTLR.Quiescent is a promise: after Enabled=0 and Quiescent=1 nothing that
 * was on its way is delivered any more. Enabled is cleared, and then a walk gives
 * each LPI that is mapped a new generation, and its translation too: a signal that
 * has looked the event up before fails at its CAS, and looks again; Enabled is
 * looked at after each lookup, so that one that finds the new translation sees it. An
 * LPI to which several translations lead is passed over: they may be of different
 * ITSes, and a signal of one cannot be told from one of the other.
 */
#include "its.h"

#include <errno.h>
#include <string.h>

#include "baser.h"
#include "gic_regs.h"
#include "guestmem.h"
#include "id_regs.h"
#include "msi_signal.h"
#include "work.h"

/* A signal that finds a stale translation looks again; each time a command has been executed meanwhile. */
#define MAX_LOOKUPS 1000

/* ---- Signals -------------------------------------------------------------------------------- */

static int dropped(_Atomic uint64_t *reason)
{
	atomic_fetch_add_explicit(reason, 1, memory_order_relaxed);
	return 0;
}

static int its_is_off(struct vgic_its *its)
{
	dropped(&its->dropped_its_off);
	return -EBUSY;
}

static int drop_signal(struct vgic_its *its, enum lpi_result why)
{
	if (why == LPI_NOWHERE)
		return dropped(&its->dropped_unmapped_collection);
	if (why == LPI_HELD)
		return dropped(&its->dropped_lpis_disabled);
	return dropped(&its->dropped_unmapped_event);
}

/* Not there, or gone or moved under our hands: look again until it is one or the other. */
static __attribute__((noinline)) int signal_again(struct vgic_its *its, uint64_t key)
{
	uint64_t value;

	for (int lookups = 0; lookups < MAX_LOOKUPS; lookups++) {
		const uint32_t sequence = load_acquire(&its->vgic->pause_sequence);
		const bool found = its_map_find(&its->map, key, &value) != NULL;
		enum lpi_result result;

		if (!load_acquire(&its->enabled)) {
			if (sequence & 1)
				return -EAGAIN;
			if (load_acquire(&its->vgic->pause_sequence) != sequence)
				continue; /* a pause has begun or ended meanwhile: whose Enabled=0 it was, is not known */
			return its_is_off(its);
		}
		if (!found)
			break;
		result = lpi_signal(its->vgic, value);
		if (result == LPI_PENDING)
			return 1;
		if (result != LPI_STALE)
			return drop_signal(its, result);
	}
	return drop_signal(its, LPI_STALE);
}

int vgic_its_signal(struct vgic_its *its, uint32_t devid, uint32_t eventid)
{
	const uint64_t key = translation_key(devid, eventid);
	DELIVERS_WITHOUT_LOCKS;

	return its_signal_at_once(its, key) ? 1 : signal_again(its, key);
}

enum doorbell its_find_doorbell(struct vgic *vgic, uint64_t address, struct vgic_its **its)
{
	for (uint32_t i = 0; i < vgic->num_itses; i++) {
		*its = vgic->itses[i];
		if ((*its)->has_base && address == (*its)->base + VGIC_ITS_DOORBELL)
			return DOORBELL_ITS;
	}
	if (vgic_has(vgic, VGIC_FEATURE_MBIS) && vgic->has_dist_base && address == vgic->dist_base + GICD_SETSPI_NSR)
		return DOORBELL_SETSPI;
	return DOORBELL_NONE;
}

int vgic_signal_msi(struct vgic *vgic, uint64_t address, uint32_t data, uint32_t devid, uint32_t flags)
{
	struct vgic_its *its;

	if (flags & ~VGIC_MSI_VALID_DEVID)
		return -EINVAL;
	switch (its_find_doorbell(vgic, address, &its)) {
	case DOORBELL_ITS:
		return (flags & VGIC_MSI_VALID_DEVID) ? vgic_its_signal(its, devid, data) : -EINVAL;
	case DOORBELL_SETSPI:
		return spi_signal_message(vgic, data);
	case DOORBELL_NONE:
		break;
	}
	return -ENODEV;
}

/* ---- Work ------------------------------------------------------------------------------------- */

/* After Enabled=0: turn away what is on its way. */
static bool run_quiesce(struct vgic_its *its, int *steps)
{
	for (; its->quiesce_at < its->map.nodes_end; its->quiesce_at++, --*steps) {
		struct translation *node = &its->map.nodes[its->quiesce_at];
		struct irq *irq;

		if (*steps <= 0)
			return false;
		if (load_relaxed(&node->key) == TRANSLATION_FREE)
			continue;
		irq = &its->vgic->lpis[load_relaxed(&node->value) & TRANSLATION_LPI_MASK];
		if (irq->mappings != 1)
			continue;
		irq_change(its->vgic, irq, irq_lpi_renew, 0);
		its_map_set_value(node,
				  (load_relaxed(&irq->word) & IRQ_GENERATION_MASK) | (uint64_t)(irq - its->vgic->lpis));
	}
	its->quiescing = false;
	return true;
}

/* After GITS_BASER0.Valid=0: the devices are gone with their table. */
static bool run_drop_devices(struct vgic_its *its, int *steps)
{
	for (; its->drop_at < its->map.max_devices && its->map.num_devices; its->drop_at++, --*steps) {
		struct its_device *device = &its->map.devices[its->drop_at];

		if (*steps <= 0)
			return false;
		if (its_map_find_device(&its->map, device->devid) == device && !its_drop_device(its, device, steps))
			return false;
	}
	its->dropping_devices = false;
	its->drop_at = 0;
	return true;
}

/* After GITS_BASER1.Valid=0: no collection is mapped, so that the LPIs of all of them are nowhere. */
static bool run_displace_lpis(struct vgic_its *its, int *steps)
{
	for (; its->displace_at < its->map.nodes_end; its->displace_at++, --*steps) {
		const struct translation *node = &its->map.nodes[its->displace_at];

		if (*steps <= 0)
			return false;
		if (load_relaxed(&node->key) != TRANSLATION_FREE)
			lpi_set_target(its->vgic, &its->vgic->lpis[load_relaxed(&node->value) & TRANSLATION_LPI_MASK],
				       IRQ_NO_TARGET);
	}
	its->displacing_lpis = false;
	return true;
}

/* Is something of an earlier table left? */
static bool is_cleaning_up(const struct vgic_its *its)
{
	return its->dropping_devices || its->displacing_lpis;
}

void its_update_enabled(struct vgic_its *its)
{
	if (its->enable_wanted && !is_cleaning_up(its) && !its->vgic->pauses)
		store_release(&its->enabled, true);
}

bool its_run_work(struct vgic_its *its, int *steps)
{
	if (its->dropping_devices && !run_drop_devices(its, steps))
		return false;
	if (its->displacing_lpis && !run_displace_lpis(its, steps))
		return false;
	its_update_enabled(its);
	if (!its_run_queue(its, steps))
		return false;
	return !its->quiescing || run_quiesce(its, steps);
}

void its_settle(struct vgic_its *its)
{
	int steps;

	its_finish_command(its);
	do {
		steps = WORK_STEPS;
	} while ((its->dropping_devices && !run_drop_devices(its, &steps)) ||
		 (its->displacing_lpis && !run_displace_lpis(its, &steps)) ||
		 (its->quiescing && !run_quiesce(its, &steps)));
	its_update_enabled(its);
}

/* May queue and tables be changed? Not while the ITS is on, nor while a command is under way. */
static bool is_off(const struct vgic_its *its)
{
	return !its->enable_wanted && !its->command.active;
}

/* ---- Registers ----------------------------------------------------------------------------------- */

/* The VMM's reads do nothing else: what it has read before must stay true. */
static uint64_t ctlr_user_read(const struct frame_access *a)
{
	const struct vgic_its *its = a->its;
	uint64_t value;

	config_lock(a->vgic);
	value = its->enable_wanted ? GITS_CTLR_ENABLED : 0;
	if (is_off(its) && !its->quiescing && !is_cleaning_up(its))
		value |= GITS_CTLR_QUIESCENT;
	config_unlock(a->vgic);
	return value;
}

static uint64_t ctlr_read(const struct frame_access *a)
{
	work_do_some(a->vgic);
	return ctlr_user_read(a);
}

/*
 * Enabling takes effect only with a queue and both tables (KVM's rule). Who enables
 * without having seen Quiescent=1 does not want to know what was on its way.
 */
static void enable(struct vgic_its *its)
{
	if (!its_queue_size(its) || !its_table_is_valid(its, ITS_TABLE_DEVICES) ||
	    !its_table_is_valid(its, ITS_TABLE_COLLECTIONS))
		return;
	its->quiescing = false;
	its->enable_wanted = true;
	its_update_enabled(its);
}

static void disable(struct vgic_its *its)
{
	its->enable_wanted = false;
	store_release(&its->enabled, false);
	its->quiescing = true;
	its->quiesce_at = 0;
}

static void ctlr_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	const bool wanted = value & GITS_CTLR_ENABLED;

	(void)mask;
	config_lock(a->vgic);
	if (wanted && !a->its->enable_wanted)
		enable(a->its);
	else if (!wanted && a->its->enable_wanted)
		disable(a->its);
	work_finish_write(a->vgic);
}

/* The revision says how the tables are laid out in guest memory: there is one. */
static int its_iidr_user_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	(void)mask;
	return ((value ^ iidr_read_of_part(a)) & IIDR_REVISION) ? -EINVAL : 0;
}

static uint64_t typer_read(const struct frame_access *a)
{
	return GITS_TYPER_PHYSICAL | (ITS_ENTRY_SIZE - 1) << GITS_TYPER_ITT_ENTRY_SIZE_SHIFT |
	       (uint64_t)(a->its->event_id_bits - 1) << GITS_TYPER_ID_BITS_SHIFT |
	       (uint64_t)(a->its->device_id_bits - 1) << GITS_TYPER_DEVBITS_SHIFT;
}

static uint64_t read_locked(const struct frame_access *a, const uint64_t *field)
{
	uint64_t value;

	config_lock(a->vgic);
	value = *field;
	config_unlock(a->vgic);
	return value;
}

static uint64_t cbaser_read(const struct frame_access *a)
{
	return read_locked(a, &a->its->cbaser);
}

/*
 * A new queue begins at its first command. One that does not begin at a multiple of 64 KiB is UNPREDICTABLE: KVM takes it
 * for one that does.
 */
static void cbaser_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	const uint64_t ignored = a->vgic->profile == VGIC_PROFILE_KVM ? GITS_CBASER_PART_OF_64K : 0;
	struct vgic_its *its = a->its;

	config_lock(a->vgic);
	if (is_off(its)) {
		value = frame_merge(its->cbaser, value, mask) & GITS_CBASER_WRITABLE & ~ignored;
		its->cbaser = baser_accept(a->vgic, BASER_LAYOUT_GITS, value);
		its->creadr = 0;
		its->cwriter = 0;
	}
	config_unlock(a->vgic);
}

static uint64_t cwriter_read(const struct frame_access *a)
{
	return read_locked(a, &a->its->cwriter);
}

/* An offset past the end of the queue is ignored. */
static void cwriter_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	struct vgic_its *its = a->its;
	uint64_t offset;

	config_lock(a->vgic);
	offset = frame_merge(its->cwriter, value, mask) & GITS_CWRITER_OFFSET;
	if (offset < its_queue_size(its))
		its->cwriter = offset;
	work_finish_write(a->vgic);
}

static uint64_t creadr_user_read(const struct frame_access *a)
{
	return read_locked(a, &a->its->creadr);
}

static uint64_t creadr_read(const struct frame_access *a)
{
	work_do_some(a->vgic);
	return creadr_user_read(a);
}

/* Commands that were executed before a save are not to be executed again. */
static int creadr_user_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	struct vgic_its *its = a->its;
	uint64_t offset;
	int err = 0;

	config_lock(a->vgic);
	offset = frame_merge(its->creadr, value, mask) & GITS_CWRITER_OFFSET;
	if (!is_off(its))
		err = -EBUSY;
	else if (offset != 0 && offset >= its_queue_size(its))
		err = -EINVAL; /* without a queue there is 0, which was saved */
	else
		its->creadr = offset;
	config_unlock(a->vgic);
	return err;
}

static uint64_t baser_constant(uint32_t table)
{
	const uint64_t type = table == ITS_TABLE_DEVICES ? GITS_BASER_TYPE_DEVICES : GITS_BASER_TYPE_COLLECTIONS;

	return type << GITS_BASER_TYPE_SHIFT | (uint64_t)(ITS_ENTRY_SIZE - 1) << GITS_BASER_ENTRY_SIZE_SHIFT |
	       GITS_BASER_PAGES_OF_64K;
}

static uint64_t baser_read(const struct frame_access *a)
{
	if (a->index >= ITS_NUM_TABLES)
		return 0;
	return read_locked(a, &a->its->baser[a->index]) | baser_constant(a->index);
}

static void forget_collections(struct vgic_its *its)
{
	_Static_assert(IRQ_NO_TARGET == 0xffff, "every byte of it is the same");
	memset(its->collections, 0xff, ITS_MAX_COLLECTIONS * sizeof(its->collections[0]));
}

/* A table that is taken away takes along what was in it. */
static void forget_table(struct vgic_its *its, enum its_table table)
{
	if (table == ITS_TABLE_DEVICES) {
		its->dropping_devices = true;
		return;
	}
	forget_collections(its);
	its->displacing_lpis = true;
	its->displace_at = 0;
}

uint64_t its_baser_writable(enum its_table table)
{
	return GITS_BASER_VALID | GITS_BASER_ATTRIBUTES | GITS_BASER_ADDRESS_47_16 | GITS_BASER_ADDRESS_51_48 |
	       GITS_BASER_SIZE | (table == ITS_TABLE_DEVICES ? GITS_BASER_INDIRECT : 0);
}

static void baser_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	struct vgic_its *its = a->its;

	if (a->index >= ITS_NUM_TABLES)
		return;
	config_lock(a->vgic);
	if (is_off(its)) {
		value = frame_merge(its->baser[a->index], value, mask) & its_baser_writable(a->index);
		its->baser[a->index] = baser_accept(a->vgic, BASER_LAYOUT_GITS, value);
		if (!its_table_is_valid(its, a->index))
			forget_table(its, a->index);
	}
	work_finish_write(a->vgic);
}

// clang-format off
static const struct frame_register its_registers[] = {
	/*  offset             count  widths     name               read              write */
	REG_USER(GITS_CTLR,        1, W32,       "GITS_CTLR",       ctlr_read,        ctlr_write,
		 ctlr_user_read, NULL),
	REG_USER(GITS_IIDR,        1, W32,       "GITS_IIDR",       iidr_read_of_part, NULL,
		 NULL, its_iidr_user_write),
	REG(GITS_TYPER,            1, W32 | W64, "GITS_TYPER",      typer_read,       NULL),
	REG(GITS_CBASER,           1, W32 | W64, "GITS_CBASER",     cbaser_read,      cbaser_write),
	REG(GITS_CWRITER,          1, W32 | W64, "GITS_CWRITER",    cwriter_read,     cwriter_write),
	REG_USER(GITS_CREADR,      1, W32 | W64, "GITS_CREADR",     creadr_read,      NULL,
		 creadr_user_read, creadr_user_write),
	REG(GITS_BASER,            8, W32 | W64, "GITS_BASER",      baser_read,       baser_write),
	REG(GITS_ID_REGISTERS,    12, W32,       "GITS_PIDR/CIDR",  its_id_register_read, NULL),
	/* A CPU has no DeviceID: only devices reach the doorbell, through vgic_its_signal(). */
	REG(GITS_TRANSLATER,       1, W32,       "GITS_TRANSLATER", frame_read_zero,  frame_write_ignored),
};
// clang-format on

const struct frame its_frame = {
	.name = "ITS",
	.size = VGIC_ITS_FRAME_SIZE,
	.registers = its_registers,
	.num_registers = sizeof(its_registers) / sizeof(its_registers[0]),
};

int vgic_its_read(struct vgic_its *its, uint32_t offset, unsigned width, uint64_t *value)
{
	return frame_read(&its_frame, &(struct frame_access){ .vgic = its->vgic, .its = its }, offset, width, value);
}

int vgic_its_write(struct vgic_its *its, uint32_t offset, unsigned width, uint64_t value)
{
	return frame_write(&its_frame, &(struct frame_access){ .vgic = its->vgic, .its = its }, offset, width, value);
}

/* ---- Life -------------------------------------------------------------------------------------------- */

#define DEFAULT_ID_BITS      16u
#define DEFAULT_DEVICES      1024u
#define DEFAULT_TRANSLATIONS 65536u
#define MAX_DEVICES          (UINT32_C(1) << 20)
#define MAX_TRANSLATIONS     (UINT32_C(1) << 22)

static uint32_t or_default(uint32_t value, uint32_t default_value)
{
	return value ? value : default_value;
}

bool its_config_is_sane(const struct vgic_its_config *c)
{
	return c->device_id_bits <= 32 && c->event_id_bits <= 16 && c->max_devices <= MAX_DEVICES &&
	       c->max_translations <= MAX_TRANSLATIONS;
}

struct vgic_its *its_new(struct vgic *vgic, uint32_t index, const struct vgic_its_config *config)
{
	struct vgic_its *its = port_alloc_zeroed(sizeof(*its), CACHE_LINE);

	if (!its)
		return NULL;
	its->vgic = vgic;
	its->index = index;
	its->has_base = config->has_base;
	its->base = config->base;
	its->device_id_bits = or_default(config->device_id_bits, DEFAULT_ID_BITS);
	its->event_id_bits = or_default(config->event_id_bits, DEFAULT_ID_BITS);
	its->collections = port_alloc_zeroed(ITS_MAX_COLLECTIONS * sizeof(*its->collections), CACHE_LINE);
	if (!its->collections || its_map_init(&its->map, or_default(config->max_devices, DEFAULT_DEVICES),
					      or_default(config->max_translations, DEFAULT_TRANSLATIONS)) < 0) {
		its_free(its);
		return NULL;
	}
	return its;
}

void its_free(struct vgic_its *its)
{
	if (!its)
		return;
	its_map_free(&its->map);
	port_free(its->collections);
	port_free(its);
}

void its_drop_all(struct vgic_its *its)
{
	int steps;

	its->drop_at = 0;
	do {
		steps = WORK_STEPS;
	} while (!run_drop_devices(its, &steps));
}

static void switch_off(struct vgic_its *its)
{
	store_release(&its->enabled, false);
	its->enable_wanted = false;
	its->command = (struct its_command){ .active = false };
}

static void reset_its_registers(struct vgic_its *its)
{
	its->dropping_devices = false;
	its->drop_at = 0;
	its->displacing_lpis = false;
	its->quiescing = false;
	forget_collections(its);
	its->cbaser = 0;
	its->cwriter = 0;
	its->creadr = 0;
	for (unsigned i = 0; i < ITS_NUM_TABLES; i++)
		its->baser[i] = GITS_BASER_ATTRIBUTES_RESET;
}

void its_reset(struct vgic_its *its)
{
	switch_off(its);
	its_drop_all(its);
	reset_its_registers(its);
}

void its_reset_with_lpis(struct vgic_its *its)
{
	switch_off(its);
	if (its->map.num_devices)
		its_map_clear(&its->map);
	reset_its_registers(its);
}

struct vgic_its *vgic_its_by_index(struct vgic *vgic, uint32_t index)
{
	return index < vgic->num_itses ? vgic->itses[index] : NULL;
}

/* ---- Statistics ------------------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	uint32_t code;
} its_errors[VGIC_NUM_ITS_ERRORS] = {
#define E(name, code) [VGIC_ITS_##name] = { #name, code }
	E(MOVI_DEVICE_OOR, 0x010101),
	E(MOVI_COLLECTION_OOR, 0x010103),
	E(MOVI_UNMAPPED_DEVICE, 0x010104),
	E(MOVI_ID_OOR, 0x010105),
	E(MOVI_UNMAPPED_INTERRUPT, 0x010107),
	E(MOVI_UNMAPPED_COLLECTION, 0x010109),
	E(INT_DEVICE_OOR, 0x010301),
	E(INT_UNMAPPED_DEVICE, 0x010304),
	E(INT_ID_OOR, 0x010305),
	E(INT_UNMAPPED_INTERRUPT, 0x010307),
	E(CLEAR_DEVICE_OOR, 0x010501),
	E(CLEAR_UNMAPPED_DEVICE, 0x010504),
	E(CLEAR_ID_OOR, 0x010505),
	E(CLEAR_UNMAPPED_INTERRUPT, 0x010507),
	E(SYNC_PROCNUM_OOR, 0),
	E(MAPD_DEVICE_OOR, 0x010801),
	E(MAPD_ITTSIZE_OOR, 0x010802),
	E(MAPC_PROCNUM_OOR, 0x010902),
	E(MAPC_COLLECTION_OOR, 0x010903),
	E(MAPTI_DEVICE_OOR, 0x010a01),
	E(MAPTI_COLLECTION_OOR, 0x010a03),
	E(MAPTI_UNMAPPED_DEVICE, 0x010a04),
	E(MAPTI_ID_OOR, 0x010a05),
	E(MAPTI_PHYSICALID_OOR, 0x010a06),
	E(MAPI_DEVICE_OOR, 0x010b01),
	E(MAPI_COLLECTION_OOR, 0x010b03),
	E(MAPI_UNMAPPED_DEVICE, 0x010b04),
	E(MAPI_ID_OOR, 0x010b05),
	E(MAPI_PHYSICALID_OOR, 0x010b06),
	E(INV_DEVICE_OOR, 0x010c01),
	E(INV_UNMAPPED_DEVICE, 0x010c04),
	E(INV_ID_OOR, 0x010c05),
	E(INV_UNMAPPED_INTERRUPT, 0x010c07),
	E(INVALL_COLLECTION_OOR, 0x010d03),
	E(INVALL_UNMAPPED_COLLECTION, 0x010d09),
	E(MOVALL_PROCNUM_OOR, 0x010e01),
	E(DISCARD_DEVICE_OOR, 0x010f01),
	E(DISCARD_UNMAPPED_DEVICE, 0x010f04),
	E(DISCARD_ID_OOR, 0x010f05),
	E(DISCARD_UNMAPPED_INTERRUPT, 0x010f07),
	E(UNKNOWN_COMMAND, 0),
	E(VIRTUAL_COMMAND, 0),
	E(TOO_MANY_DEVICES, 0),
	E(TOO_MANY_TRANSLATIONS, 0),
	E(ITT_NOT_IN_MEMORY, 0),
	E(QUEUE_NOT_IN_MEMORY, 0),
#undef E
};

const char *vgic_its_error_name(enum vgic_its_error error)
{
	return (unsigned)error < VGIC_NUM_ITS_ERRORS ? its_errors[error].name : "unknown ITS error";
}

uint32_t vgic_its_error_code(enum vgic_its_error error)
{
	return (unsigned)error < VGIC_NUM_ITS_ERRORS ? its_errors[error].code : 0;
}

int vgic_its_get_stats(struct vgic_its *its, struct vgic_its_stats *stats)
{
	if (!stats || stats->size != sizeof(*stats))
		return -EINVAL;
	*stats = (struct vgic_its_stats){
		.size = sizeof(*stats),
		.commands = load_relaxed(&its->commands),
		.dropped_its_off = load_relaxed(&its->dropped_its_off),
		.dropped_unmapped_event = load_relaxed(&its->dropped_unmapped_event),
		.dropped_unmapped_collection = load_relaxed(&its->dropped_unmapped_collection),
		.dropped_lpis_disabled = load_relaxed(&its->dropped_lpis_disabled),
	};
	for (unsigned i = 0; i < VGIC_NUM_ITS_ERRORS; i++)
		stats->errors[i] = load_relaxed(&its->errors[i]);
	config_lock(its->vgic);
	stats->num_devices = its->map.num_devices;
	stats->num_translations = its->map.num_translations;
	config_unlock(its->vgic);
	return 0;
}
