/* SPDX-License-Identifier: MIT */
/*
 * its_cmd.c - the command queue of an ITS.
 *
 * Each command is parsed, checked completely, and then applied. A wrong one is
 * counted, reported and skipped; the queue goes on. (The architecture allows to
 * stall instead: then GITS_CREADR.Stalled would be set. KVM skips as well.) Only a
 * command that cannot be read ends the queue, as if it were empty.
 *
 * Commands that touch many translations or LPIs keep their place in struct
 * its_command and are continued; GITS_CREADR moves when they are done.
 */
#include "gic_regs.h"
#include "guestmem.h"
#include "irq_change.h"
#include "its.h"
#include "lpi_signal.h"
#include "work.h"

/* What a handler says. Errors are enum vgic_its_error. */
#define DONE     (-1)
#define CONTINUE (-2) /* out of steps: call again */

enum its_opcode {
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
	CMD_FIRST_VIRTUAL = 0x20,
};

/* ---- Fields ------------------------------------------------------------------------------ */

static unsigned cmd_opcode(const struct its_command *c)
{
	return c->dw[0] & 0xff;
}

static uint32_t cmd_devid(const struct its_command *c)
{
	return (uint32_t)(c->dw[0] >> 32);
}

static uint32_t cmd_eventid(const struct its_command *c)
{
	return (uint32_t)c->dw[1];
}

static uint32_t cmd_pintid(const struct its_command *c)
{
	return (uint32_t)(c->dw[1] >> 32);
}

static unsigned cmd_size(const struct its_command *c)
{
	return c->dw[1] & 0x1f;
}

static uint32_t cmd_icid(const struct its_command *c)
{
	return c->dw[2] & 0xffff;
}

static bool cmd_valid(const struct its_command *c)
{
	return c->dw[2] >> 63;
}

static uint64_t cmd_itt(const struct its_command *c)
{
	return c->dw[2] & UINT64_C(0x000fffffffffff00);
}

/* GITS_TYPER.PTA=0: RDbase is a GICR_TYPER.Processor_Number, that is a vCPU id. NULL if there is none. */
static struct vgic_vcpu *cmd_rdbase(const struct vgic_its *its, const struct its_command *c, unsigned dw)
{
	const uint64_t rdbase = c->dw[dw] >> 16 & ((UINT64_C(1) << 35) - 1);

	return rdbase <= VGIC_MAX_VCPU_ID ? vgic_vcpu_by_id(its->vgic, (uint32_t)rdbase) : NULL;
}

/* ---- What commands name ---------------------------------------------------------------------- */

/* What a command about an event is about; looked up before its handler is called. */
struct event {
	struct its_device *device;
	struct translation *node; /* NULL if it is not mapped, which only MAPTI and MAPI allow */
};

/* What a command about an event requires, and the errors if it is not so. */
struct event_rules {
	bool must_be_mapped;
	enum vgic_its_error device_oor, unmapped_device, id_oor, unmapped_interrupt;
};

/* The event that a command names. Returns DONE or an error. */
static int find_event(struct vgic_its *its, const struct its_command *c, const struct event_rules *rules,
		      struct event *event)
{
	uint64_t value;

	if (cmd_devid(c) >= UINT64_C(1) << its->device_id_bits)
		return (int)rules->device_oor;
	event->device = its_map_find_device(&its->map, cmd_devid(c));
	if (!event->device)
		return (int)rules->unmapped_device;
	if (cmd_eventid(c) >= event->device->num_events)
		return (int)rules->id_oor;
	event->node =
		(struct translation *)its_map_find(&its->map, translation_key(cmd_devid(c), cmd_eventid(c)), &value);
	return event->node || !rules->must_be_mapped ? DONE : (int)rules->unmapped_interrupt;
}

static struct irq *node_irq(struct vgic_its *its, const struct translation *node)
{
	return &its->vgic->lpis[load_relaxed(&node->value) & TRANSLATION_LPI_MASK];
}

/* ---- Devices ------------------------------------------------------------------------------------- */

static void unmap_event(struct vgic_its *its, struct translation *node)
{
	struct irq *irq = node_irq(its, node);

	its_map_remove(&its->map, node);
	lpi_unmap(its->vgic, irq);
}

bool its_drop_device(struct vgic_its *its, struct its_device *device, int *steps)
{
	for (; device->first != NO_NODE; --*steps) {
		if (*steps <= 0)
			return false;
		unmap_event(its, &its->map.nodes[device->first]);
	}
	its_map_remove_device(&its->map, device);
	return true;
}

/* MAPD: an ITT for a device. A device that is mapped loses its events first, whether V is 1 or 0. */
static int cmd_mapd(struct vgic_its *its, struct its_command *c, int *steps)
{
	struct its_device *device;
	uint32_t num_events;

	if (!its_device_id_is_valid(its, cmd_devid(c)))
		return VGIC_ITS_MAPD_DEVICE_OOR;
	if (cmd_valid(c) && cmd_size(c) >= its->event_id_bits)
		return VGIC_ITS_MAPD_ITTSIZE_OOR;
	num_events = UINT32_C(2) << cmd_size(c);
	if (cmd_valid(c) && !guest_range_exists(its->vgic, cmd_itt(c), (uint64_t)num_events * ITS_ENTRY_SIZE))
		return VGIC_ITS_ITT_NOT_IN_MEMORY;
	device = its_map_find_device(&its->map, cmd_devid(c));
	if (device && !its_drop_device(its, device, steps))
		return CONTINUE;
	if (!cmd_valid(c))
		return DONE;
	device = its_map_add_device(&its->map, cmd_devid(c));
	if (!device)
		return VGIC_ITS_TOO_MANY_DEVICES;
	device->num_events = num_events;
	device->itt = cmd_itt(c);
	return DONE;
}

/* ---- Collections ------------------------------------------------------------------------------------ */

/*
 * MAPC: collection ICID -> the redistributor whose Processor_Number is RDbase. The
 * LPIs of the collection come along from wherever they are, MOVALL may have moved
 * them (as in KVM); those of one that is unmapped are nowhere, and what comes for
 * them is dropped.
 */
static int cmd_mapc(struct vgic_its *its, struct its_command *c, int *steps)
{
	const uint32_t icid = cmd_icid(c);
	uint32_t target = IRQ_NO_TARGET;

	if (icid >= its_num_collections(its))
		return VGIC_ITS_MAPC_COLLECTION_OOR;
	if (cmd_valid(c)) {
		const struct vgic_vcpu *vcpu = cmd_rdbase(its, c, 2);

		if (!vcpu)
			return VGIC_ITS_MAPC_PROCNUM_OOR;
		target = vcpu->index;
	}
	its->collections[icid] = (uint16_t)target;
	for (; c->at < its->map.nodes_end; c->at++, --*steps) {
		struct translation *node = &its->map.nodes[c->at];

		if (*steps <= 0)
			return CONTINUE;
		if (load_relaxed(&node->key) != TRANSLATION_FREE && node->icid == icid)
			lpi_set_target(its->vgic, node_irq(its, node), target);
	}
	return DONE;
}

/* MOVALL: every LPI of one redistributor to another. Collections stay as they are mapped (as in KVM). */
static int cmd_movall(struct vgic_its *its, struct its_command *c, int *steps)
{
	const struct vgic_vcpu *from = cmd_rdbase(its, c, 2), *to = cmd_rdbase(its, c, 3);

	if (!from || !to)
		return VGIC_ITS_MOVALL_PROCNUM_OOR;
	if (from == to)
		return DONE;
	if (!c->begun)
		lpi_walk_begin(&c->walk, LPI_WALK_MOVE, from->index, to->index);
	return lpi_walk(its->vgic, &c->walk, steps) ? DONE : CONTINUE;
}

static int cmd_invall(struct vgic_its *its, struct its_command *c, int *steps)
{
	const uint32_t icid = cmd_icid(c);

	if (icid >= its_num_collections(its))
		return VGIC_ITS_INVALL_COLLECTION_OOR;
	if (its->collections[icid] == IRQ_NO_TARGET)
		return VGIC_ITS_INVALL_UNMAPPED_COLLECTION;
	if (!c->begun)
		lpi_walk_begin(&c->walk, LPI_WALK_INVALIDATE, its->collections[icid], 0);
	return lpi_walk(its->vgic, &c->walk, steps) ? DONE : CONTINUE;
}

/* SYNC: what is done here is done. The redistributor must exist. */
static int cmd_sync(struct vgic_its *its, struct its_command *c, int *steps)
{
	(void)steps;
	return cmd_rdbase(its, c, 2) ? DONE : VGIC_ITS_SYNC_PROCNUM_OOR;
}

/* ---- Events --------------------------------------------------------------------------------------------- */

/* The event leads to another LPI from now on. The same LPI again keeps its pending state. */
static void remap_event(struct vgic_its *its, struct translation *node, struct irq *irq, uint32_t icid)
{
	struct irq *old = node_irq(its, node);

	node->icid = icid;
	if (irq == old) {
		lpi_read_config(its->vgic, irq);
		lpi_set_target(its->vgic, irq, its->collections[icid]);
		return;
	}
	its_map_set_value(node, lpi_map(its->vgic, irq, its->collections[icid]));
	lpi_unmap(its->vgic, old);
}

/*
 * MAPTI and MAPI. The collection need not be mapped: then the event is dropped
 * until it is. An event that is mapped is replaced. Of two events on one LPI the
 * last mapping decides its target.
 */
static int map_event(struct vgic_its *its, const struct event *event, uint32_t eventid, uint32_t intid, uint32_t icid)
{
	struct irq *irq = &its->vgic->lpis[intid - FIRST_LPI];

	if (event->node) {
		remap_event(its, event->node, irq, icid);
		return DONE;
	}
	if (its->map.num_translations >= its->map.max_translations)
		return VGIC_ITS_TOO_MANY_TRANSLATIONS;
	its_map_add(&its->map, event->device, eventid, lpi_map(its->vgic, irq, its->collections[icid]), icid);
	return DONE;
}

static bool is_lpi(const struct vgic_its *its, uint32_t intid)
{
	return intid >= FIRST_LPI && intid < lpi_intid_end(its->vgic);
}

static int cmd_mapti(struct vgic_its *its, const struct its_command *c, const struct event *event)
{
	if (cmd_icid(c) >= its_num_collections(its))
		return VGIC_ITS_MAPTI_COLLECTION_OOR;
	if (!is_lpi(its, cmd_pintid(c)))
		return VGIC_ITS_MAPTI_PHYSICALID_OOR;
	return map_event(its, event, cmd_eventid(c), cmd_pintid(c), cmd_icid(c));
}

/* MAPI: the EventID is the INTID. */
static int cmd_mapi(struct vgic_its *its, const struct its_command *c, const struct event *event)
{
	if (cmd_icid(c) >= its_num_collections(its))
		return VGIC_ITS_MAPI_COLLECTION_OOR;
	if (!is_lpi(its, cmd_eventid(c)))
		return VGIC_ITS_MAPI_PHYSICALID_OOR;
	return map_event(its, event, cmd_eventid(c), cmd_eventid(c), cmd_icid(c));
}

/* From a redistributor to another: both collections have to be mapped (as in KVM). */
static int cmd_movi(struct vgic_its *its, const struct its_command *c, const struct event *event)
{
	const uint32_t icid = cmd_icid(c);

	if (icid >= its_num_collections(its))
		return VGIC_ITS_MOVI_COLLECTION_OOR;
	if (its->collections[event->node->icid] == IRQ_NO_TARGET || its->collections[icid] == IRQ_NO_TARGET)
		return VGIC_ITS_MOVI_UNMAPPED_COLLECTION;
	event->node->icid = icid;
	lpi_set_target(its->vgic, node_irq(its, event->node), its->collections[icid]);
	return DONE;
}

static int cmd_discard(struct vgic_its *its, const struct its_command *c, const struct event *event)
{
	(void)c;
	unmap_event(its, event->node);
	return DONE;
}

static int cmd_int(struct vgic_its *its, const struct its_command *c, const struct event *event)
{
	(void)c;
	lpi_signal(its->vgic, load_relaxed(&event->node->value));
	return DONE;
}

static int cmd_clear(struct vgic_its *its, const struct its_command *c, const struct event *event)
{
	(void)c;
	lpi_clear_pending(its->vgic, node_irq(its, event->node));
	return DONE;
}

static int cmd_inv(struct vgic_its *its, const struct its_command *c, const struct event *event)
{
	(void)c;
	lpi_read_config(its->vgic, node_irq(its, event->node));
	return DONE;
}

/* ---- The queue ---------------------------------------------------------------------------------------------- */

/* Each command has one of the two handlers. Only run() may be long, and return CONTINUE. */
struct command_type {
	int (*run)(struct vgic_its *its, struct its_command *c, int *steps);
	int (*run_on_event)(struct vgic_its *its, const struct its_command *c, const struct event *event);
	struct event_rules rules;
};

#define EVENT_ERRORS(cmd)                                                                                              \
	.device_oor = VGIC_ITS_##cmd##_DEVICE_OOR, .unmapped_device = VGIC_ITS_##cmd##_UNMAPPED_DEVICE,                \
	.id_oor = VGIC_ITS_##cmd##_ID_OOR

#define ON_ANY_EVENT(cmd, handler) [CMD_##cmd] = { .run_on_event = (handler), .rules = { EVENT_ERRORS(cmd) } }

#define ON_MAPPED_EVENT(cmd, handler)                                                                                  \
	[CMD_##cmd] = { .run_on_event = (handler),                                                                     \
			.rules = { EVENT_ERRORS(cmd), .must_be_mapped = true,                                          \
				   .unmapped_interrupt = VGIC_ITS_##cmd##_UNMAPPED_INTERRUPT } }

// clang-format off
static const struct command_type command_types[] = {
	[CMD_MAPD]   = { .run = cmd_mapd },
	[CMD_MAPC]   = { .run = cmd_mapc },
	[CMD_MOVALL] = { .run = cmd_movall },
	[CMD_INVALL] = { .run = cmd_invall },
	[CMD_SYNC]   = { .run = cmd_sync },
	ON_ANY_EVENT(MAPTI, cmd_mapti),
	ON_ANY_EVENT(MAPI, cmd_mapi),
	ON_MAPPED_EVENT(MOVI, cmd_movi),
	ON_MAPPED_EVENT(DISCARD, cmd_discard),
	ON_MAPPED_EVENT(INT, cmd_int),
	ON_MAPPED_EVENT(CLEAR, cmd_clear),
	ON_MAPPED_EVENT(INV, cmd_inv),
};
// clang-format on

static const struct command_type *find_command_type(unsigned opcode)
{
	static const struct command_type unknown;

	return opcode < sizeof(command_types) / sizeof(command_types[0]) ? &command_types[opcode] : &unknown;
}

static int run_command(struct vgic_its *its, struct its_command *c, int *steps)
{
	const unsigned opcode = cmd_opcode(c);
	const struct command_type *type = find_command_type(opcode);
	struct event event;
	int r;

	if (type->run)
		return type->run(its, c, steps);
	if (type->run_on_event) {
		r = find_event(its, c, &type->rules, &event);
		return r == DONE ? type->run_on_event(its, c, &event) : r;
	}
	return opcode >= CMD_FIRST_VIRTUAL && opcode < 0x30 ? VGIC_ITS_VIRTUAL_COMMAND : VGIC_ITS_UNKNOWN_COMMAND;
}

static void count_error(struct vgic_its *its, enum vgic_its_error error, uint64_t dw0)
{
	atomic_fetch_add_explicit(&its->errors[error], 1, memory_order_relaxed);
	guest_error(its->vgic, VGIC_GUEST_ITS_COMMAND, vgic_its_error_name(error), vgic_its_error_code(error), dw0);
}

/* Read the next command. An unread command is never executed. */
static bool fetch_command(struct vgic_its *its)
{
	const uint64_t address = (its->cbaser & GITS_CBASER_ADDRESS) + its->creadr;

	its->command = (struct its_command){ .active = true };
	for (unsigned i = 0; i < 4; i++) {
		if (!guest_read_u64(its->vgic, address + 8 * i, &its->command.dw[i])) {
			its->command.active = false;
			return false;
		}
	}
	return true;
}

/* Out of memory: the rest of the queue is given up, or the guest would make us read it again for ever. */
static void abandon_queue(struct vgic_its *its)
{
	count_error(its, VGIC_ITS_QUEUE_NOT_IN_MEMORY, 0);
	its->creadr = its->cwriter;
}

/* Go on with the command that is under way. Returns true when it is done. */
static bool continue_command(struct vgic_its *its, int *steps)
{
	const int r = run_command(its, &its->command, steps);

	its->command.begun = true;
	if (r == CONTINUE)
		return false;
	if (r != DONE)
		count_error(its, (enum vgic_its_error)r, its->command.dw[0]);
	its->command.active = false;
	atomic_fetch_add_explicit(&its->commands, 1, memory_order_relaxed);
	its->creadr = (its->creadr + ITS_COMMAND_SIZE) % its_queue_size(its);
	return true;
}

bool its_run_queue(struct vgic_its *its, int *steps)
{
	/* A command that has begun is finished even if the ITS was switched off meanwhile: Quiescent waits for it. */
	while (its->command.active || (load_relaxed(&its->enabled) && its->creadr != its->cwriter)) {
		if (*steps <= 0)
			return false;
		if (!its->command.active && !fetch_command(its)) {
			abandon_queue(its);
			return true;
		}
		--*steps;
		if (!continue_command(its, steps))
			return false;
	}
	return true;
}

void its_finish_command(struct vgic_its *its)
{
	int steps;

	while (its->command.active) {
		steps = WORK_STEPS;
		continue_command(its, &steps);
	}
}
