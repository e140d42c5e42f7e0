/* SPDX-License-Identifier: MIT */
/*
 * Split virtqueues: see virtqueue.h.
 *
 * Ordering. The guest's CPUs are emulated, and the emulator leaves out the guest's
 * memory barriers: what virtio's drivers rely on has to be made here, where vCPUs
 * and the serving thread are different threads.
 *
 * Driver to device: the driver fills a ring and then notifies. Its own thread reads
 * the ring's index at the notification (virtqueue_publish()), after a full fence of
 * the transport, and hands it over by a release store; the serving thread takes
 * nothing beyond it. The index in memory is not looked at by another thread, so it
 * does not matter in which order its CPU writes. Notifications are never switched
 * off (VIRTQ_USED_F_NO_NOTIFY stays 0), so every request is announced, and there is
 * nothing to look at again.
 *
 * Device to driver: the entry, then a release store of the ring's index, then a full
 * fence, then the look at the driver's VIRTQ_AVAIL_F_NO_INTERRUPT. A driver that
 * clears that flag looks at the index afterwards, but without a barrier its CPU may
 * read the index first. So a flag that says "no interrupt" is looked at again behind
 * membarrier(), which makes the barrier in the vCPUs' thread for it. That the driver
 * reads an entry after the index that announces it is left to the host's CPU: see
 * devices.c.
 *
 * VIRTIO_F_EVENT_IDX is not offered: it would need such a barrier on the driver's
 * side for every request and every notification.
 */
#include "virtqueue.h"

#include <endian.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fence.h"

#define DESC_SIZE       16u
#define DESC_F_NEXT     1u
#define DESC_F_WRITE    2u
#define DESC_F_INDIRECT 4u

#define AVAIL_F_NO_INTERRUPT 1u

/* Offsets in both rings. */
#define RING_FLAGS   0u
#define RING_INDEX   2u
#define RING_ENTRIES 4u

#define AVAIL_ENTRY_SIZE 2u
#define USED_ENTRY_SIZE  8u

struct descriptor {
	uint64_t address;
	uint32_t length;
	uint16_t flags;
	uint16_t next;
};

/* A table of descriptors: the queue's own, or an indirect one. */
struct table {
	const unsigned char *base;
	uint32_t size;
};

/* ---- Fields in guest memory ------------------------------------------------------ */

/* Each is read once, as a whole: the guest may change it meanwhile. The transport has checked the alignment. */
static uint16_t load_u16(const unsigned char *at)
{
	return le16toh(__atomic_load_n((const uint16_t *)(const void *)at, __ATOMIC_RELAXED));
}

static struct descriptor load_descriptor(const struct table *table, uint32_t index)
{
	unsigned char bytes[DESC_SIZE];
	struct descriptor d;

	/* An indirect table need not be aligned. */
	memcpy(bytes, table->base + (size_t)index * DESC_SIZE, sizeof(bytes));
	memcpy(&d.address, bytes, sizeof(d.address));
	memcpy(&d.length, bytes + 8, sizeof(d.length));
	memcpy(&d.flags, bytes + 12, sizeof(d.flags));
	memcpy(&d.next, bytes + 14, sizeof(d.next));
	d.address = le64toh(d.address);
	d.length = le32toh(d.length);
	d.flags = le16toh(d.flags);
	d.next = le16toh(d.next);
	return d;
}

/* ---- Taking -------------------------------------------------------------------------- */

/* What is gathered while a chain is walked. */
struct walk {
	const struct virtqueue *queue;
	struct virtqueue_chain *chain;
	uint64_t total; /* bytes */
	const char *why;
};

static bool refuse(struct walk *walk, const char *why)
{
	walk->why = why;
	return false;
}

static bool add_buffer(struct walk *walk, const struct descriptor *d)
{
	struct virtqueue_chain *chain = walk->chain;
	const unsigned count = chain->num_readable + chain->num_writable;
	const struct guest_ram *ram = walk->queue->ram;
	void *host;

	/* As many as there are descriptors in the queue; a loop comes here sooner or later. */
	if (count >= walk->queue->size)
		return refuse(walk, "a chain of descriptors is longer than the queue");
	if (d->length == 0)
		return refuse(walk, "a descriptor has no length");
	host = guest_ram_at(ram, d->address, d->length);
	if (!host)
		return refuse(walk, "a descriptor names what is not memory");
	walk->total += d->length;
	if (walk->total > ram->size)
		return refuse(walk, "a chain of descriptors has more bytes than there is memory");
	if (!(d->flags & DESC_F_WRITE) && chain->num_writable)
		return refuse(walk, "a buffer to be read comes after one to be written");
	chain->buffers[count] = (struct iovec){ .iov_base = host, .iov_len = d->length };
	if (d->flags & DESC_F_WRITE)
		chain->num_writable++;
	else
		chain->num_readable++;
	return true;
}

static bool open_indirect(struct walk *walk, const struct descriptor *d, struct table *table)
{
	if (!walk->queue->indirect)
		return refuse(walk, "an indirect descriptor, which was not agreed on");
	if (d->flags & DESC_F_NEXT)
		return refuse(walk, "an indirect descriptor has a next one");
	if (d->length == 0 || d->length % DESC_SIZE || d->length / DESC_SIZE > walk->queue->size)
		return refuse(walk, "an indirect table has a wrong length");
	table->base = guest_ram_at(walk->queue->ram, d->address, d->length);
	table->size = d->length / DESC_SIZE;
	return table->base || refuse(walk, "an indirect table is not in memory");
}

static bool walk_chain(struct walk *walk, uint16_t head)
{
	struct table table = { .base = walk->queue->desc, .size = walk->queue->size };
	bool in_indirect = false;
	uint32_t index = head;

	for (;;) {
		struct descriptor d;

		if (index >= table.size)
			return refuse(walk, "a descriptor's number is too large");
		d = load_descriptor(&table, index);
		if (d.flags & DESC_F_INDIRECT) {
			if (in_indirect)
				return refuse(walk, "an indirect descriptor in an indirect table");
			if (!open_indirect(walk, &d, &table))
				return false;
			in_indirect = true;
			index = 0;
			continue;
		}
		if (!add_buffer(walk, &d))
			return false;
		if (!(d.flags & DESC_F_NEXT))
			return true;
		index = d.next;
	}
}

int virtqueue_pop(struct virtqueue *queue, struct virtqueue_chain *chain, const char **why)
{
	struct walk walk = { .queue = queue, .chain = chain };
	const uint16_t published = atomic_load_explicit(&queue->published, memory_order_acquire);
	const uint16_t waiting = (uint16_t)(published - queue->next_avail);

	if (waiting == 0)
		return 0;
	if (waiting > queue->size) {
		*why = "the driver's index is more than a queue ahead";
		return -EINVAL;
	}
	chain->head = load_u16(queue->avail + RING_ENTRIES + queue->next_avail % queue->size * AVAIL_ENTRY_SIZE);
	chain->num_readable = 0;
	chain->num_writable = 0;
	if (!walk_chain(&walk, chain->head)) {
		*why = walk.why;
		return -EINVAL;
	}
	queue->next_avail++;
	return 1;
}

/* ---- Giving back ------------------------------------------------------------------------ */

void virtqueue_push(struct virtqueue *queue, const struct virtqueue_chain *chain, uint32_t written)
{
	unsigned char *entry = queue->used + RING_ENTRIES + queue->next_used % queue->size * USED_ENTRY_SIZE;
	const uint32_t id = htole32(chain->head);
	const uint32_t length = htole32(written);

	memcpy(entry, &id, sizeof(id));
	memcpy(entry + sizeof(id), &length, sizeof(length));
	queue->next_used++;
	__atomic_store_n((uint16_t *)(void *)(queue->used + RING_INDEX), htole16(queue->next_used), __ATOMIC_RELEASE);
}

/* A full barrier in all threads of this process. Returns false if the kernel has none. */
static bool fence_all_threads(void)
{
	static atomic_int registered; /* 0: not yet, 1: yes, -1: it cannot be had */

	if (atomic_load(&registered) == 0)
		atomic_store(&registered,
			     syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) ? -1 : 1);
	return atomic_load(&registered) > 0 && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static bool interrupts_are_off(const struct virtqueue *queue)
{
	return load_u16(queue->avail + RING_FLAGS) & AVAIL_F_NO_INTERRUPT;
}

bool virtqueue_wants_interrupt(struct virtqueue *queue)
{
	full_fence();
	if (!interrupts_are_off(queue))
		return true;
	if (queue->same_thread)
		return false;
	/* The flag may have been cleared, and the index read before that. One interrupt too many is no harm. */
	return !fence_all_threads() || !interrupts_are_off(queue);
}

/* ---- Life ------------------------------------------------------------------------------- */

void virtqueue_start(struct virtqueue *queue, const struct guest_ram *ram, const struct virtio_queue_setup *setup,
		     bool indirect, bool same_thread)
{
	const uint64_t size = setup->size;

	memset(queue, 0, sizeof(*queue));
	queue->ram = ram;
	queue->size = setup->size;
	queue->indirect = indirect;
	queue->same_thread = same_thread;
	queue->desc = guest_ram_at(ram, setup->desc, size * DESC_SIZE);
	queue->avail = guest_ram_at(ram, setup->avail, RING_ENTRIES + size * AVAIL_ENTRY_SIZE);
	queue->used = guest_ram_at(ram, setup->used, RING_ENTRIES + size * USED_ENTRY_SIZE);
}

void virtqueue_get_position(const struct virtqueue *queue, struct virtio_queue_position *position)
{
	position->published = atomic_load(&queue->published);
	position->next_avail = queue->next_avail;
	position->next_used = queue->next_used;
}

void virtqueue_set_position(struct virtqueue *queue, const struct virtio_queue_position *position)
{
	atomic_store(&queue->published, position->published);
	queue->next_avail = position->next_avail;
	queue->next_used = position->next_used;
}

void virtqueue_publish(struct virtqueue *queue)
{
	atomic_store_explicit(&queue->published, load_u16(queue->avail + RING_INDEX), memory_order_release);
}
