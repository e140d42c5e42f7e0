/* SPDX-License-Identifier: MIT */
/*
 * its_model.c - the ITS of the baselines (its_model.h).
 *
 * Where KVM leaves to chance what the architecture promises, this follows the
 * architecture, so that all policies can be compared: unmapping an event takes its
 * pending state away, an event whose collection is mapped again is delivered, and
 * one that is moved is at its new vCPU at once.
 */
#define _GNU_SOURCE
#include "its_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NUM_COLLECTIONS 8192u
#define MAX_EVENT_BITS  16u
#define PRIORITY_MASK   0xf8u

struct base_collection {
	struct list node;
	uint32_t icid;
	struct base_vcpu *target; /* NULL: not mapped */
};

struct base_event {
	struct list node;
	uint32_t eventid;
	struct base_collection *collection;
	struct base_irq *irq; /* with a reference */
};

struct base_device {
	struct list node;
	uint32_t devid, num_events;
	struct list events;
};

/* ---- Life cycle ---- */

int base_its_init(struct base_its *its, const struct policy_ops *ops, const struct policy_config *config,
		  enum base_registry registry, const struct base_cache_ops *cache)
{
	pthread_mutexattr_t attributes;

	its->policy.ops = ops;
	its->doorbell = BASE_ITS_DOORBELL;
	its->cache = cache;
	its->enabled = true;
	list_init(&its->devices);
	list_init(&its->collections);
	/* As in the kernel: who finds it taken spins for a while before sleeping. */
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&its->its_lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	its->properties = malloc(POLICY_NUM_LPIS);
	if (!its->properties)
		return -ENOMEM;
	memset(its->properties, POLICY_DEFAULT_PROPERTY, POLICY_NUM_LPIS);
	return base_gic_init(&its->gic, config, registry, its);
}

static void free_device(struct base_its *its, struct base_device *device);

void base_its_destroy(struct base_its *its)
{
	while (!list_is_empty(&its->devices))
		free_device(its, LIST_ENTRY(its->devices.next, struct base_device, node));
	while (!list_is_empty(&its->collections)) {
		struct base_collection *collection = LIST_ENTRY(its->collections.next, struct base_collection, node);

		list_remove(&collection->node);
		free(collection);
	}
	base_gic_destroy(&its->gic);
	pthread_mutex_destroy(&its->its_lock);
	free(its->properties);
}

static void lock_its(struct base_its *its)
{
	if (pthread_mutex_trylock(&its->its_lock)) {
		pthread_mutex_lock(&its->its_lock);
		its->contended++;
	}
}

static void unlock_its(struct base_its *its)
{
	pthread_mutex_unlock(&its->its_lock);
}

/* ---- What is mapped ---- */

static struct base_device *find_device(const struct base_its *its, uint32_t devid)
{
	LIST_EACH(node, &its->devices)
	{
		struct base_device *device = LIST_ENTRY(node, struct base_device, node);

		if (device->devid == devid)
			return device;
	}
	return NULL;
}

static struct base_event *find_event(const struct base_its *its, uint32_t devid, uint32_t eventid)
{
	const struct base_device *device = find_device(its, devid);

	if (!device)
		return NULL;
	LIST_EACH(node, &device->events)
	{
		struct base_event *event = LIST_ENTRY(node, struct base_event, node);

		if (event->eventid == eventid)
			return event;
	}
	return NULL;
}

static struct base_collection *find_collection(const struct base_its *its, uint32_t icid)
{
	LIST_EACH(node, &its->collections)
	{
		struct base_collection *collection = LIST_ENTRY(node, struct base_collection, node);

		if (collection->icid == icid)
			return collection;
	}
	return NULL;
}

/* The same, but makes it if it is not there. */
static struct base_collection *get_collection(struct base_its *its, uint32_t icid)
{
	struct base_collection *collection = find_collection(its, icid);

	if (collection)
		return collection;
	collection = calloc(1, sizeof(*collection));
	if (collection) {
		collection->icid = icid;
		list_add_last(&its->collections, &collection->node);
	}
	return collection;
}

/* ---- Signals ---- */

/* What a device's signal leads to now; *error as base_its_inject() returns it. */
static struct base_irq *resolve(struct base_its *its, uint32_t devid, uint32_t eventid, int *error)
{
	const struct base_event *event;
	const struct base_vcpu *vcpu;

	if (!its->enabled) {
		*error = -EBUSY;
		return NULL;
	}
	*error = 0;
	event = find_event(its, devid, eventid);
	if (!event || !event->collection->target)
		return NULL;
	vcpu = base_find_vcpu(&its->gic, event->collection->target->index);
	if (!vcpu || !vcpu->lpis_enabled)
		return NULL;
	if (its->cache)
		its->cache->fill(its, devid, eventid, event->irq);
	return event->irq;
}

int base_its_inject(struct base_its *its, const struct base_msi *msi)
{
	struct base_its *addressed;
	struct base_irq *irq;
	int result = 1;

	if (!(msi->flags & BASE_MSI_HAS_DEVID))
		return -EINVAL;
	addressed = base_find_its(&its->gic, base_msi_address(msi));
	if (!addressed)
		return -ENODEV;
	lock_its(addressed);
	addressed->stats.misses++;
	irq = resolve(addressed, msi->devid, msi->data, &result);
	if (irq) {
		base_signal(&addressed->gic, irq);
		result = 1;
	}
	unlock_its(addressed);
	return result;
}

void base_its_each_event(struct base_its *its,
			 void (*each)(struct base_its *its, uint32_t devid, uint32_t eventid, struct base_irq *irq))
{
	lock_its(its);
	LIST_EACH(device_node, &its->devices)
	{
		const struct base_device *device = LIST_ENTRY(device_node, struct base_device, node);

		LIST_EACH(event_node, &device->events)
		{
			const struct base_event *event = LIST_ENTRY(event_node, struct base_event, node);

			each(its, device->devid, event->eventid, event->irq);
		}
	}
	unlock_its(its);
}

/* ---- Commands. Under its_lock. ---- */

static void invalidate_cache(struct base_its *its)
{
	if (its->cache)
		its->cache->invalidate(its);
}

static void read_property(struct base_its *its, struct base_irq *irq)
{
	const uint8_t property = its->properties[irq->intid - POLICY_FIRST_LPI];

	spin_lock(&irq->lock);
	irq->priority = property & PRIORITY_MASK;
	irq->enabled = property & 1;
	base_queue_and_unlock(&its->gic, irq);
}

static void clear_pending(struct base_irq *irq)
{
	spin_lock(&irq->lock);
	irq->pending_latch = false;
	spin_unlock(&irq->lock);
}

static void free_event(struct base_its *its, struct base_event *event)
{
	clear_pending(event->irq);
	list_remove(&event->node);
	base_irq_release(&its->gic, event->irq);
	free(event);
}

static void free_device(struct base_its *its, struct base_device *device)
{
	while (!list_is_empty(&device->events))
		free_event(its, LIST_ENTRY(device->events.next, struct base_event, node));
	list_remove(&device->node);
	free(device);
}

static int unmap_device(struct base_its *its, const struct policy_command *c)
{
	struct base_device *device = find_device(its, c->devid);

	if (device) {
		invalidate_cache(its);
		free_device(its, device);
	}
	return 0;
}

static int map_device(struct base_its *its, const struct policy_command *c)
{
	struct base_device *device;

	if (c->event_bits == 0 || c->event_bits > MAX_EVENT_BITS)
		return -EINVAL;
	unmap_device(its, c);
	device = calloc(1, sizeof(*device));
	if (!device)
		return -ENOMEM;
	device->devid = c->devid;
	device->num_events = UINT32_C(1) << c->event_bits;
	list_init(&device->events);
	list_add_last(&its->devices, &device->node);
	return 0;
}

/* Every LPI of a collection goes where the collection goes; what a MOVALL has moved away comes back. */
static int map_collection(struct base_its *its, uint32_t icid, struct base_vcpu *target)
{
	struct base_collection *collection;

	if (icid >= NUM_COLLECTIONS)
		return -EINVAL;
	collection = get_collection(its, icid);
	if (!collection)
		return -ENOMEM;
	invalidate_cache(its);
	collection->target = target;
	LIST_EACH(device_node, &its->devices)
	{
		const struct base_device *device = LIST_ENTRY(device_node, struct base_device, node);

		LIST_EACH(event_node, &device->events)
		{
			const struct base_event *event = LIST_ENTRY(event_node, struct base_event, node);

			if (event->collection == collection)
				base_retarget(&its->gic, event->irq, target);
		}
	}
	return 0;
}

/* Takes over the caller's reference. */
static int add_event(struct base_its *its, struct base_device *device, uint32_t eventid, struct base_irq *irq,
		     struct base_collection *collection)
{
	struct base_event *event = calloc(1, sizeof(*event));

	if (!event) {
		base_irq_release(&its->gic, irq);
		return -ENOMEM;
	}
	*event = (struct base_event){ .eventid = eventid, .collection = collection, .irq = irq };
	list_add_last(&device->events, &event->node);
	return 0;
}

/* An event that is mapped is replaced; the same LPI again keeps its pending state. */
static int map_event(struct base_its *its, const struct policy_command *c)
{
	struct base_device *device = find_device(its, c->devid);
	struct base_event *event = find_event(its, c->devid, c->eventid);
	struct base_collection *collection;
	struct base_irq *irq;
	int error = 0;

	if (!device || c->eventid >= device->num_events || c->icid >= NUM_COLLECTIONS || c->intid < POLICY_FIRST_LPI ||
	    c->intid >= POLICY_FIRST_LPI + POLICY_NUM_LPIS)
		return -EINVAL;
	collection = get_collection(its, c->icid);
	irq = collection ? base_lpi_add(&its->gic, c->intid) : NULL;
	if (!irq)
		return -ENOMEM;
	if (event)
		invalidate_cache(its);
	if (event && event->irq == irq) {
		event->collection = collection;
		base_irq_release(&its->gic, irq); /* the event has one already */
	} else {
		if (event)
			free_event(its, event);
		error = add_event(its, device, c->eventid, irq, collection);
	}
	if (error)
		return error;
	base_retarget(&its->gic, irq, collection->target);
	read_property(its, irq);
	return 0;
}

/* The commands that name an event and do one thing to it. */
static int change_event(struct base_its *its, const struct policy_command *c)
{
	struct base_event *event = find_event(its, c->devid, c->eventid);
	struct base_collection *collection;
	int unused;

	if (!event)
		return -EINVAL;
	switch (c->opcode) {
	case POLICY_DISCARD:
		invalidate_cache(its);
		free_event(its, event);
		return 0;
	case POLICY_MOVI:
		collection = find_collection(its, c->icid);
		if (!collection || !collection->target || !event->collection->target)
			return -EINVAL;
		/* The target is not in the cache, but it may have LPIs disabled, which a hit would not notice. */
		invalidate_cache(its);
		event->collection = collection;
		base_retarget(&its->gic, event->irq, collection->target);
		return 0;
	case POLICY_INT:
		if (resolve(its, c->devid, c->eventid, &unused))
			base_signal(&its->gic, event->irq);
		return 0;
	case POLICY_CLEAR:
		clear_pending(event->irq);
		return 0;
	default: /* POLICY_INV */
		read_property(its, event->irq);
		return 0;
	}
}

/* ---- Commands that go through all LPIs ---- */

struct lpi_walk {
	struct base_its *its;
	struct base_vcpu *from, *to; /* to: NULL to read the properties again */
};

static void visit_lpi(void *context, struct base_irq *irq)
{
	const struct lpi_walk *walk = context;

	if (irq->target != walk->from)
		return;
	if (walk->to)
		base_retarget(&walk->its->gic, irq, walk->to);
	else
		read_property(walk->its, irq);
}

static int move_all(struct base_its *its, const struct policy_command *c)
{
	struct lpi_walk walk = { its, its->gic.vcpus[c->vcpu], its->gic.vcpus[c->to_vcpu] };

	if (walk.from == walk.to)
		return 0;
	invalidate_cache(its);
	return base_lpi_each(&its->gic, visit_lpi, &walk);
}

static int invalidate_all(struct base_its *its, const struct policy_command *c)
{
	const struct base_collection *collection = find_collection(its, c->icid);
	struct lpi_walk walk = { .its = its };

	if (!collection || !collection->target)
		return -EINVAL;
	walk.from = collection->target;
	return base_lpi_each(&its->gic, visit_lpi, &walk);
}

/* ---- All commands ---- */

static int configure_lpi(struct base_its *its, const struct policy_command *c)
{
	if (c->intid < POLICY_FIRST_LPI || c->intid >= POLICY_FIRST_LPI + POLICY_NUM_LPIS)
		return -EINVAL;
	its->properties[c->intid - POLICY_FIRST_LPI] = c->property;
	return 0;
}

static int run_command(struct base_its *its, const struct policy_command *c)
{
	switch (c->opcode) {
	case POLICY_MAPD:
		return map_device(its, c);
	case POLICY_UNMAPD:
		return unmap_device(its, c);
	case POLICY_MAPC:
		return map_collection(its, c->icid, its->gic.vcpus[c->vcpu]);
	case POLICY_UNMAPC:
		return map_collection(its, c->icid, NULL);
	case POLICY_MAPTI:
		return map_event(its, c);
	case POLICY_DISCARD:
	case POLICY_MOVI:
	case POLICY_INT:
	case POLICY_CLEAR:
	case POLICY_INV:
		return change_event(its, c);
	case POLICY_MOVALL:
		return move_all(its, c);
	case POLICY_INVALL:
		return invalidate_all(its, c);
	case POLICY_CONFIGURE:
		return configure_lpi(its, c);
	case POLICY_ENABLE:
	case POLICY_DISABLE:
		its->enabled = c->opcode == POLICY_ENABLE;
		invalidate_cache(its);
		return 0;
	case POLICY_NUM_OPCODES:
		break;
	}
	return -EINVAL;
}

int base_command(struct policy *policy, const struct policy_command *command)
{
	struct base_its *its = (struct base_its *)policy;
	int result;

	lock_its(its);
	result = run_command(its, command);
	unlock_its(its);
	return result;
}

/* ---- The rest of a policy ---- */

static struct base_vcpu *vcpu_of(struct policy *policy, uint32_t vcpu)
{
	return ((struct base_its *)policy)->gic.vcpus[vcpu];
}

uint32_t base_policy_acknowledge(struct policy *policy, uint32_t vcpu)
{
	return base_acknowledge(vcpu_of(policy, vcpu));
}

void base_policy_end(struct policy *policy, uint32_t vcpu, uint32_t intid)
{
	(void)intid;
	base_end(vcpu_of(policy, vcpu));
}

bool base_policy_is_up(struct policy *policy, uint32_t vcpu)
{
	return base_is_up(vcpu_of(policy, vcpu));
}

bool base_policy_prepare_wait(struct policy *policy, uint32_t vcpu)
{
	return base_prepare_wait(vcpu_of(policy, vcpu));
}

void base_policy_finish_wait(struct policy *policy, uint32_t vcpu)
{
	base_finish_wait(vcpu_of(policy, vcpu));
}

void base_policy_get_stats(struct policy *policy, struct policy_stats *stats)
{
	struct base_its *its = (struct base_its *)policy;

	lock_its(its);
	*stats = its->stats;
	stats->contended = its->contended + base_contended(&its->gic);
	unlock_its(its);
}
