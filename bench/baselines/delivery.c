/* SPDX-License-Identifier: MIT */
/*
 * delivery.c - from a translated signal to the vCPU's acknowledge (delivery.h).
 */
#include "delivery.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rcu.h"

#define REQUEST_IRQ (UINT64_C(1) << 1)

enum vcpu_mode { OUTSIDE_GUEST, IN_GUEST, EXITING_GUEST };

/* ---- Life cycle ---- */

#define DIST_BASE   UINT64_C(0x08000000)
#define DIST_SIZE   UINT64_C(0x10000)
#define REDIST_BASE UINT64_C(0x080a0000)
#define REDIST_SIZE UINT64_C(0x20000)

static int init_frames(struct base_gic *gic, void *its)
{
	struct base_frame *frame;

	gic->num_frames = gic->num_vcpus + 2;
	gic->frames = calloc(gic->num_frames, sizeof(*gic->frames));
	if (!gic->frames)
		return -ENOMEM;
	frame = gic->frames;
	*frame++ = (struct base_frame){ DIST_BASE, DIST_SIZE, FRAME_DIST, NULL };
	*frame++ = (struct base_frame){ BASE_ITS_BASE, BASE_ITS_SIZE, FRAME_ITS, its };
	for (uint32_t i = 0; i < gic->num_vcpus; i++)
		*frame++ = (struct base_frame){ REDIST_BASE + i * REDIST_SIZE, REDIST_SIZE, FRAME_REDIST, NULL };
	return 0;
}

static struct base_vcpu *new_vcpu(struct base_gic *gic, uint32_t index)
{
	struct base_vcpu *vcpu = aligned_alloc(BASE_LINE, sizeof(*vcpu));

	if (!vcpu)
		return NULL;
	*vcpu = (struct base_vcpu){ .index = index, .gic = gic, .lpis_enabled = true };
	list_init(&vcpu->queue);
	return vcpu;
}

int base_gic_init(struct base_gic *gic, const struct policy_config *config, enum base_registry registry, void *its)
{
	gic->enabled = true;
	gic->num_vcpus = config->num_vcpus;
	gic->registry = registry;
	gic->kick = config->kick;
	gic->opaque = config->opaque;
	list_init(&gic->lpi_list);
	gic->vcpus = calloc(gic->num_vcpus, sizeof(struct base_vcpu *));
	gic->lpis = calloc(POLICY_NUM_LPIS, sizeof(struct base_irq *));
	if (!gic->vcpus || !gic->lpis)
		return -ENOMEM;
	for (uint32_t i = 0; i < gic->num_vcpus; i++) {
		void *old;

		gic->vcpus[i] = new_vcpu(gic, i);
		if (!gic->vcpus[i] || radix_store(&gic->vcpu_tree, i, gic->vcpus[i], &old))
			return -ENOMEM;
	}
	return init_frames(gic, its);
}

/* Whatever references it has. */
static void free_entry(void *unused, void *entry)
{
	(void)unused;
	free(entry);
}

static void keep_entry(void *unused, void *entry)
{
	(void)unused;
	(void)entry;
}

void base_gic_destroy(struct base_gic *gic)
{
	while (!list_is_empty(&gic->lpi_list)) {
		struct base_irq *irq = LIST_ENTRY(gic->lpi_list.next, struct base_irq, registry_node);

		list_remove(&irq->registry_node);
		free(irq);
	}
	radix_clear(&gic->lpi_tree, &gic->grave, free_entry, NULL);
	radix_clear(&gic->vcpu_tree, &gic->grave, keep_entry, NULL);
	radix_grave_empty(&gic->grave);
	for (uint32_t i = 0; gic->vcpus && i < gic->num_vcpus; i++)
		free(gic->vcpus[i]);
	free(gic->vcpus);
	free(gic->lpis);
	free(gic->frames);
}

static int compare_frames(const void *a, const void *b)
{
	const struct base_frame *key = a, *frame = b;

	if (key->base < frame->base)
		return -1;
	return key->base + key->size > frame->base + frame->size;
}

/* A binary search of the general kind, as a library has it: the comparison is a call. */
static __attribute__((noinline)) const void *search_sorted(const void *key, const void *items, size_t num, size_t size,
							   int (*compare)(const void *a, const void *b))
{
	const char *base = items;

	while (num > 0) {
		const char *middle = base + num / 2 * size;
		const int result = compare(key, middle);

		if (result == 0)
			return middle;
		if (result > 0) {
			base = middle + size;
			num--;
		}
		num /= 2;
	}
	return NULL;
}

/*
 * The bus is exchanged as a whole when a device comes, and read in a section of SRCU, which may sleep: the reader counts
 * itself in and out, with a full fence each, on its CPU's (here: its thread's) counters.
 */
static _Thread_local struct {
	_Atomic uint64_t in, out;
} bus_readers;

static void bus_read_begin(void)
{
	atomic_store_explicit(&bus_readers.in, atomic_load_explicit(&bus_readers.in, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

static void bus_read_end(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	atomic_store_explicit(&bus_readers.out, atomic_load_explicit(&bus_readers.out, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static __attribute__((noinline)) const struct base_frame *find_frame(const struct base_gic *gic, uint64_t address)
{
	const struct base_frame key = { .base = address, .size = 1 }, *found;

	bus_read_begin();
	found = search_sorted(&key, gic->frames, gic->num_frames, sizeof(key), compare_frames);
	/* Of several at one address the first one counts. */
	while (found && found > gic->frames && compare_frames(&key, found - 1) == 0)
		found--;
	bus_read_end();
	return found;
}

struct base_vcpu *base_find_vcpu(struct base_gic *gic, uint32_t index)
{
	return index < gic->num_vcpus ? radix_load(&gic->vcpu_tree, index) : NULL;
}

void *base_find_its(const struct base_gic *gic, uint64_t doorbell)
{
	const struct base_frame *frame = find_frame(gic, doorbell);

	return frame && frame->kind == FRAME_ITS ? frame->owner : NULL;
}

/* ---- The registry of LPIs ---- */

/* Under lpi_lock. */
static struct base_irq *find_in_list(struct base_gic *gic, uint32_t intid)
{
	LIST_EACH(node, &gic->lpi_list)
	{
		struct base_irq *irq = LIST_ENTRY(node, struct base_irq, registry_node);

		if (irq->intid == intid)
			return irq;
	}
	return NULL;
}

struct base_irq *base_lpi_get(struct base_gic *gic, uint32_t intid)
{
	struct base_irq *irq;

	if (gic->registry == REGISTRY_LIST) {
		spin_lock(&gic->lpi_lock);
		irq = find_in_list(gic, intid);
		if (irq)
			base_irq_hold(irq);
		spin_unlock(&gic->lpi_lock);
		return irq;
	}
	rcu_read_begin();
	irq = radix_load(&gic->lpi_tree, intid);
	if (irq && !base_irq_try_hold(irq))
		irq = NULL;
	rcu_read_end();
	return irq;
}

static int enter_lpi(struct base_gic *gic, struct base_irq *irq)
{
	void *old;

	if (gic->registry == REGISTRY_TREE)
		return radix_store(&gic->lpi_tree, irq->intid, irq, &old);
	list_add_last(&gic->lpi_list, &irq->registry_node);
	return 0;
}

/* Only commands add LPIs, one at a time: nobody else can have added it since it was looked for. */
struct base_irq *base_lpi_add(struct base_gic *gic, uint32_t intid)
{
	struct base_irq **place = &gic->lpis[intid - POLICY_FIRST_LPI], *irq;
	int error;

	spin_lock(&gic->lpi_lock);
	irq = *place && base_irq_try_hold(*place) ? *place : NULL;
	spin_unlock(&gic->lpi_lock);
	if (irq)
		return irq;
	irq = calloc(1, sizeof(*irq));
	if (!irq)
		return NULL;
	irq->intid = intid;
	irq->edge = true;
	irq->group1 = true;
	atomic_store(&irq->references, 1);
	spin_lock(&gic->lpi_lock);
	error = enter_lpi(gic, irq);
	if (!error)
		*place = irq;
	spin_unlock(&gic->lpi_lock);
	if (!error)
		return irq;
	free(irq);
	return NULL;
}

/* The last reference is gone. In the tree a new LPI of that number may have taken its place. */
static void forget_lpi(struct base_gic *gic, struct base_irq *irq)
{
	gic->contended_of_freed += irq->lock.contended;
	if (gic->lpis[irq->intid - POLICY_FIRST_LPI] == irq)
		gic->lpis[irq->intid - POLICY_FIRST_LPI] = NULL;
	if (gic->registry == REGISTRY_TREE) {
		if (radix_load(&gic->lpi_tree, irq->intid) == irq)
			radix_erase(&gic->lpi_tree, irq->intid, &gic->grave);
		radix_bury(&gic->grave, &irq->buried);
	} else {
		list_remove(&irq->registry_node);
		/* A hit in a cache takes no reference: it may be about to signal this one. */
		irq->buried.next = gic->grave.first;
		gic->grave.first = &irq->buried;
	}
}

/* Was it the last one? */
static bool drop_reference(struct base_irq *irq)
{
	const uint32_t old = atomic_fetch_sub_explicit(&irq->references, 1, memory_order_release);

	if (old == 1) {
		atomic_thread_fence(memory_order_acquire);
		return true;
	}
	if (__builtin_expect((int32_t)old <= 0, 0))
		atomic_store_explicit(&irq->references, REFERENCES_SATURATED, memory_order_relaxed);
	return false;
}

void base_irq_release_locked(struct base_gic *gic, struct base_irq *irq)
{
	if (drop_reference(irq))
		forget_lpi(gic, irq);
}

void base_irq_release(struct base_gic *gic, struct base_irq *irq)
{
	if (gic->registry == REGISTRY_LIST) {
		/* The list finds what is in it: the count may fall to 0 only under its lock. */
		spin_lock(&gic->lpi_lock);
		base_irq_release_locked(gic, irq);
		spin_unlock(&gic->lpi_lock);
		return;
	}
	if (!drop_reference(irq))
		return;
	spin_lock(&gic->lpi_lock);
	forget_lpi(gic, irq);
	spin_unlock(&gic->lpi_lock);
}

/* ---- All LPIs ---- */

/* The LPIs, each with a reference. A callback takes an interrupt's lock, which comes before this one. */
static struct base_irq **copy_lpis(struct base_gic *gic, uint32_t *num)
{
	struct base_irq **irqs = calloc(POLICY_NUM_LPIS, sizeof(struct base_irq *));

	*num = 0;
	if (!irqs)
		return NULL;
	spin_lock(&gic->lpi_lock);
	for (uint32_t i = 0; i < POLICY_NUM_LPIS; i++) {
		if (gic->lpis[i] && base_irq_try_hold(gic->lpis[i]))
			irqs[(*num)++] = gic->lpis[i];
	}
	spin_unlock(&gic->lpi_lock);
	return irqs;
}

int base_lpi_each(struct base_gic *gic, void (*each)(void *context, struct base_irq *irq), void *context)
{
	uint32_t num;
	struct base_irq **irqs = copy_lpis(gic, &num);

	if (!irqs)
		return -ENOMEM;
	for (uint32_t i = 0; i < num; i++) {
		each(context, irqs[i]);
		base_irq_release(gic, irqs[i]);
	}
	free(irqs);
	return 0;
}

/* ---- Signalling ---- */

static bool is_pending(const struct base_irq *irq)
{
	return irq->edge ? irq->pending_latch : irq->pending_latch || irq->line_level;
}

/* Make the vCPU look: a request, a wake-up if it sleeps, and an exit if it runs guest code. */
static __attribute__((noinline)) void kick_vcpu(struct base_vcpu *vcpu)
{
	int running = IN_GUEST;

	atomic_fetch_or_explicit(&vcpu->requests, REQUEST_IRQ, memory_order_release);
	/* The request before the sleeper, as the sleeper does it the other way around. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&vcpu->waiting, memory_order_relaxed)) {
		vcpu->gic->kick(vcpu->gic->opaque, vcpu->index);
		return;
	}
	if (atomic_compare_exchange_strong(&vcpu->mode, &running, EXITING_GUEST))
		abort(); /* nobody runs guest code in these programs */
}

/* Which vCPU has to see the interrupt now, if any. Under its lock. */
static struct base_vcpu *choose_vcpu(const struct base_irq *irq)
{
	if (irq->active)
		return irq->queued_at ? irq->queued_at : irq->target;
	if (!irq->enabled || !is_pending(irq))
		return NULL;
	if (irq->target && !irq->target->gic->enabled)
		return NULL;
	return irq->target;
}

void base_queue_and_unlock(struct base_gic *gic, struct base_irq *irq)
{
	struct base_vcpu *vcpu = choose_vcpu(irq);

	(void)gic;
	while (vcpu && !irq->queued_at) {
		/* The list's lock comes first: let go, take both, and see whether it is still so. */
		spin_unlock(&irq->lock);
		spin_lock(&vcpu->list_lock);
		spin_lock(&irq->lock);
		if (!irq->queued_at && vcpu == choose_vcpu(irq)) {
			base_irq_hold(irq);
			list_add_last(&vcpu->queue, &irq->queue_node);
			irq->queued_at = vcpu;
			spin_unlock(&irq->lock);
			spin_unlock(&vcpu->list_lock);
			kick_vcpu(vcpu);
			return;
		}
		spin_unlock(&irq->lock);
		spin_unlock(&vcpu->list_lock);
		spin_lock(&irq->lock);
		vcpu = choose_vcpu(irq);
	}
	spin_unlock(&irq->lock);
	/* Queued already: it may have been consumed meanwhile, so the vCPU has to look again. */
	if (vcpu)
		kick_vcpu(vcpu);
}

void base_signal(struct base_gic *gic, struct base_irq *irq)
{
	spin_lock(&irq->lock);
	irq->pending_latch = true;
	base_queue_and_unlock(gic, irq);
}

/* ---- List registers ---- */

#define LR_PENDING        (UINT64_C(1) << 62)
#define LR_ACTIVE         (UINT64_C(1) << 63)
#define LR_HARDWARE       (UINT64_C(1) << 61)
#define LR_GROUP1         (UINT64_C(1) << 60)
#define LR_PRIORITY_SHIFT 48
#define LR_INTID          UINT64_C(0xffffffff)

static uint8_t lr_priority(base_lr lr)
{
	return (uint8_t)(lr >> LR_PRIORITY_SHIFT);
}

/* Under the interrupt's lock. An edge is in the register from now on, and not in the interrupt. */
static base_lr make_lr(struct base_irq *irq)
{
	base_lr lr = irq->intid | (uint64_t)irq->priority << LR_PRIORITY_SHIFT;

	if (irq->active)
		lr |= LR_ACTIVE;
	if (is_pending(irq)) {
		lr |= LR_PENDING;
		if (irq->edge)
			irq->pending_latch = false;
	}
	if (irq->hardware && !irq->active)
		lr |= LR_HARDWARE;
	if (irq->group1)
		lr |= LR_GROUP1;
	return lr;
}

/* ---- Leaving the guest: list registers to interrupts ---- */

/* What the guest has not taken is pending again. */
static void read_back_lrs(struct base_vcpu *vcpu)
{
	for (unsigned i = 0; i < vcpu->num_lrs; i++) {
		const base_lr lr = vcpu->lrs[i];
		struct base_irq *irq = base_lpi_get(vcpu->gic, lr & LR_INTID);

		if (!irq)
			continue;
		spin_lock(&irq->lock);
		irq->active = lr & LR_ACTIVE;
		if (irq->edge && (lr & LR_PENDING))
			irq->pending_latch = true;
		/* A level that the guest has taken is sampled anew. */
		if (!irq->edge && !(lr & (LR_PENDING | LR_ACTIVE)))
			irq->pending_latch = false;
		spin_unlock(&irq->lock);
		base_irq_release(vcpu->gic, irq);
	}
	vcpu->num_lrs = 0;
}

static void lock_two_lists(struct base_vcpu *a, struct base_vcpu *b)
{
	spin_lock(a < b ? &a->list_lock : &b->list_lock);
	spin_lock(a < b ? &b->list_lock : &a->list_lock);
}

/* The interrupt was moved while it was queued. Called without locks. */
static void migrate(struct base_vcpu *from, struct base_vcpu *to, struct base_irq *irq)
{
	bool moved = false;

	lock_two_lists(from, to);
	spin_lock(&irq->lock);
	if (irq->queued_at == from && choose_vcpu(irq) == to) {
		list_remove(&irq->queue_node);
		list_add_last(&to->queue, &irq->queue_node);
		irq->queued_at = to;
		moved = true;
	}
	spin_unlock(&irq->lock);
	spin_unlock(&from->list_lock);
	spin_unlock(&to->list_lock);
	if (moved)
		kick_vcpu(to);
}

/* Returns whether the interrupt was queued there and need not be. */
static bool leave_queue(struct base_vcpu *vcpu, struct base_irq *irq)
{
	bool left;

	spin_lock(&vcpu->list_lock);
	spin_lock(&irq->lock);
	left = irq->queued_at == vcpu && choose_vcpu(irq) != vcpu;
	if (left) {
		list_remove(&irq->queue_node);
		irq->queued_at = NULL;
	}
	spin_unlock(&irq->lock);
	spin_unlock(&vcpu->list_lock);
	return left;
}

/* KVM leaves it in the old list until that vCPU runs; the guest may expect it at the new one at once. */
void base_retarget(struct base_gic *gic, struct base_irq *irq, struct base_vcpu *target)
{
	struct base_vcpu *from;

	spin_lock(&irq->lock);
	irq->target = target;
	from = irq->queued_at;
	base_queue_and_unlock(gic, irq);
	if (!from || !leave_queue(from, irq))
		return;
	spin_lock(&irq->lock);
	base_queue_and_unlock(gic, irq);
	base_irq_release(gic, irq); /* the old queue's reference */
}

/* Unqueue what need not be there. Returns an interrupt that belongs elsewhere, with where, or NULL at the end. */
static struct base_irq *prune_some(struct base_vcpu *vcpu, struct base_vcpu **elsewhere)
{
	struct list *next;

	for (struct list *node = vcpu->queue.next; node != &vcpu->queue; node = next) {
		struct base_irq *irq = LIST_ENTRY(node, struct base_irq, queue_node);
		struct base_vcpu *wanted_at;

		next = node->next;
		spin_lock(&irq->lock);
		wanted_at = choose_vcpu(irq);
		if (!wanted_at) {
			list_remove(&irq->queue_node);
			irq->queued_at = NULL;
			spin_unlock(&irq->lock);
			base_irq_release(vcpu->gic, irq);
			continue;
		}
		spin_unlock(&irq->lock);
		if (wanted_at != vcpu) {
			*elsewhere = wanted_at;
			return irq;
		}
	}
	return NULL;
}

static void prune_queue(struct base_vcpu *vcpu)
{
	struct base_vcpu *elsewhere = NULL;
	struct base_irq *irq;

	do {
		spin_lock(&vcpu->list_lock);
		irq = prune_some(vcpu, &elsewhere);
		spin_unlock(&vcpu->list_lock);
		if (irq)
			migrate(vcpu, elsewhere, irq);
	} while (irq);
}

/* ---- Entering the guest: interrupts to list registers ---- */

/* Does @a go before @b, or beside it? */
static bool goes_first(struct base_irq *a, struct base_irq *b)
{
	bool first;

	spin_lock(&a->lock);
	spin_lock(&b->lock);
	if (a->active || b->active)
		first = a->active;
	else if ((a->enabled && is_pending(a)) != (b->enabled && is_pending(b)))
		first = a->enabled && is_pending(a);
	else
		first = a->priority <= b->priority;
	spin_unlock(&b->lock);
	spin_unlock(&a->lock);
	return first;
}

/* Merge two lists linked by next, NULL at their ends. */
static struct list *merge(struct list *a, struct list *b)
{
	struct list *first = NULL, **end = &first;

	while (a && b) {
		struct list **taken = goes_first(LIST_ENTRY(a, struct base_irq, queue_node),
						 LIST_ENTRY(b, struct base_irq, queue_node)) ?
					      &a :
					      &b;

		*end = *taken;
		end = &(*taken)->next;
		*taken = *end;
	}
	*end = a ? a : b;
	return first;
}

/* A merge sort from the bottom up: parts[n] is sorted and has 2^n nodes. */
static void sort_queue(struct base_vcpu *vcpu)
{
	struct list *parts[32] = { NULL }, *rest = vcpu->queue.next, *sorted = NULL;

	vcpu->queue.previous->next = NULL;
	while (rest) {
		struct list *carry = rest;
		unsigned n = 0;

		rest = rest->next;
		carry->next = NULL;
		for (; parts[n]; n++) {
			carry = merge(parts[n], carry);
			parts[n] = NULL;
		}
		parts[n] = carry;
	}
	for (unsigned n = 0; n < 32; n++)
		sorted = parts[n] ? merge(parts[n], sorted) : sorted;
	list_init(&vcpu->queue);
	while (sorted) {
		struct list *node = sorted;

		sorted = node->next;
		list_add_last(&vcpu->queue, node);
	}
}

/* How many interrupts are queued; each is looked at, as one may need more than one list register. */
static unsigned queue_depth(struct base_vcpu *vcpu)
{
	unsigned depth = 0;

	LIST_EACH(node, &vcpu->queue)
	{
		struct base_irq *irq = LIST_ENTRY(node, struct base_irq, queue_node);

		spin_lock(&irq->lock);
		depth++;
		spin_unlock(&irq->lock);
	}
	return depth;
}

static void fill_lrs(struct base_vcpu *vcpu)
{
	if (list_is_empty(&vcpu->queue))
		return; /* a look without the lock is enough: what comes now comes with a kick */
	spin_lock(&vcpu->list_lock);
	if (queue_depth(vcpu) > BASE_NUM_LRS)
		sort_queue(vcpu);
	LIST_EACH(node, &vcpu->queue)
	{
		struct base_irq *irq = LIST_ENTRY(node, struct base_irq, queue_node);

		spin_lock(&irq->lock);
		if (choose_vcpu(irq) == vcpu)
			vcpu->lrs[vcpu->num_lrs++] = make_lr(irq);
		spin_unlock(&irq->lock);
		if (vcpu->num_lrs == BASE_NUM_LRS)
			break;
	}
	spin_unlock(&vcpu->list_lock);
	for (unsigned i = vcpu->num_lrs; i < BASE_NUM_LRS; i++)
		vcpu->lrs[i] = 0;
}

/* ---- The guest's side ---- */

/* What the hardware would give out next, or NULL. */
static base_lr *best_lr(struct base_vcpu *vcpu)
{
	base_lr *best = NULL;

	for (unsigned i = 0; i < vcpu->num_lrs; i++) {
		base_lr *lr = &vcpu->lrs[i];

		if ((*lr & LR_PENDING) && (!best || lr_priority(*lr) < lr_priority(*best)))
			best = lr;
	}
	return best;
}

static uint32_t priority_bit(uint8_t priority)
{
	return UINT32_C(1) << (priority >> 3);
}

/* Leave the guest and enter it again. */
static void sync_and_flush(struct base_vcpu *vcpu)
{
	atomic_store_explicit(&vcpu->requests, 0, memory_order_seq_cst);
	if (!list_is_empty(&vcpu->queue)) {
		read_back_lrs(vcpu);
		prune_queue(vcpu);
	}
	fill_lrs(vcpu);
}

uint32_t base_acknowledge(struct base_vcpu *vcpu)
{
	base_lr *lr = best_lr(vcpu);
	uint32_t bit;

	if (!lr) {
		sync_and_flush(vcpu);
		lr = best_lr(vcpu);
		if (!lr)
			return POLICY_SPURIOUS;
	}
	/* Is something at least as urgent active? */
	bit = priority_bit(lr_priority(*lr));
	if (vcpu->active_priorities & (bit | (bit - 1)))
		return POLICY_SPURIOUS;
	vcpu->active_priorities |= bit;
	*lr &= ~LR_PENDING; /* an LPI does not become active */
	return *lr & LR_INTID;
}

void base_end(struct base_vcpu *vcpu)
{
	vcpu->active_priorities &= vcpu->active_priorities - 1;
}

bool base_is_up(struct base_vcpu *vcpu)
{
	bool up = false;

	if (best_lr(vcpu))
		return true;
	if (list_is_empty(&vcpu->queue))
		return false;
	spin_lock(&vcpu->list_lock);
	LIST_EACH(node, &vcpu->queue)
	{
		struct base_irq *irq = LIST_ENTRY(node, struct base_irq, queue_node);

		spin_lock(&irq->lock);
		up = is_pending(irq) && irq->enabled && !irq->active;
		spin_unlock(&irq->lock);
		if (up)
			break;
	}
	spin_unlock(&vcpu->list_lock);
	return up;
}

bool base_prepare_wait(struct base_vcpu *vcpu)
{
	atomic_store(&vcpu->waiting, true);
	atomic_thread_fence(memory_order_seq_cst);
	return base_is_up(vcpu);
}

void base_finish_wait(struct base_vcpu *vcpu)
{
	atomic_store_explicit(&vcpu->waiting, false, memory_order_relaxed);
}

/* ---- Statistics ---- */

static void add_contended(void *total, struct base_irq *irq)
{
	*(uint64_t *)total += irq->lock.contended;
}

uint64_t base_contended(struct base_gic *gic)
{
	uint64_t total = gic->lpi_lock.contended + gic->contended_of_freed;

	for (uint32_t i = 0; i < gic->num_vcpus; i++)
		total += gic->vcpus[i]->list_lock.contended;
	base_lpi_each(gic, add_contended, &total);
	return total;
}
