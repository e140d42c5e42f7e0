/* SPDX-License-Identifier: MIT */
/* virtqueue.c - the device's end of a split virtqueue, with drivers that do right and drivers that do wrong. */
#include "virtqueue.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "rig.h"

#define SIZE   8u
#define BUFFER (RIG_RAM_BASE + 0x8000)
#define TABLE  (RIG_RAM_BASE + 0xc000)

struct fixture {
	struct rig rig;
	struct ring ring;
	struct virtqueue queue;
	struct virtqueue_chain chain;
	const char *why;
};

static void start_at(struct fixture *f, uint64_t base, bool indirect)
{
	struct virtio_queue_setup setup;

	memset(f, 0, sizeof(*f));
	rig_start(&f->rig);
	ring_init(&f->ring, &f->rig.ram, base, SIZE);
	setup = ring_setup(&f->ring);
	virtqueue_start(&f->queue, &f->rig.ram, &setup, indirect, true);
}

static void start(struct fixture *f)
{
	start_at(f, RIG_RAM_BASE, true);
}

static void stop(struct fixture *f)
{
	rig_stop(&f->rig);
}

static void put(struct fixture *f, unsigned index, uint64_t address, uint32_t length, uint16_t flags, uint16_t next)
{
	ring_put(&f->rig.ram, f->ring.desc, index, address, length, flags, next);
}

static void put_indirect(struct fixture *f, unsigned index, uint64_t address, uint32_t length, uint16_t flags,
			 uint16_t next)
{
	ring_put(&f->rig.ram, TABLE, index, address, length, flags, next);
}

static int pop(struct fixture *f)
{
	virtqueue_publish(&f->queue);
	return virtqueue_pop(&f->queue, &f->chain, &f->why);
}

/* Offer the chain at 0: it must be refused for that reason, and leave the queue where it was. */
static void refused(struct fixture *f, const char *why)
{
	ring_offer(&f->ring, 0);
	assert_int_equal(pop(f), -EINVAL);
	assert_string_equal(f->why, why);
	assert_int_equal(f->queue.next_avail, 0);
	stop(f);
}

/* ---- Right --------------------------------------------------------------------------- */

static void a_chain_is_taken_and_given_back(void **state)
{
	struct fixture f;
	uint32_t id;
	uint32_t length;

	(void)state;
	start(&f);
	put(&f, 5, BUFFER, 16, DESC_NEXT, 2);
	put(&f, 2, BUFFER + 0x100, 512, DESC_NEXT | DESC_WRITE, 7);
	put(&f, 7, RIG_RAM_END - 1, 1, DESC_WRITE, 0xffff);
	ring_offer(&f.ring, 5);
	assert_int_equal(pop(&f), 1);
	assert_int_equal(f.chain.head, 5);
	assert_int_equal(f.chain.num_readable, 1);
	assert_int_equal(f.chain.num_writable, 2);
	assert_ptr_equal(f.chain.buffers[0].iov_base, rig_at(&f.rig.ram, BUFFER));
	assert_int_equal(f.chain.buffers[0].iov_len, 16);
	assert_int_equal(f.chain.buffers[1].iov_len, 512);
	assert_ptr_equal(f.chain.buffers[2].iov_base, rig_at(&f.rig.ram, RIG_RAM_END - 1));
	assert_int_equal(pop(&f), 0);
	assert_false(ring_take(&f.ring, &id, &length));
	virtqueue_push(&f.queue, &f.chain, 513);
	assert_true(ring_take(&f.ring, &id, &length));
	assert_int_equal(id, 5);
	assert_int_equal(length, 513);
	assert_false(ring_take(&f.ring, &id, &length));
	stop(&f);
}

static void only_what_was_announced_is_taken(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	put(&f, 0, BUFFER, 16, 0, 0);
	put(&f, 1, BUFFER, 32, 0, 0);
	ring_offer(&f.ring, 0);
	assert_int_equal(virtqueue_pop(&f.queue, &f.chain, &f.why), 0);
	virtqueue_publish(&f.queue);
	ring_offer(&f.ring, 1);
	assert_int_equal(virtqueue_pop(&f.queue, &f.chain, &f.why), 1);
	assert_int_equal(f.chain.buffers[0].iov_len, 16);
	assert_int_equal(virtqueue_pop(&f.queue, &f.chain, &f.why), 0);
	stop(&f);
}

static void indices_wrap(void **state)
{
	struct fixture f;
	uint32_t id;
	uint32_t length;

	(void)state;
	start(&f);
	for (unsigned i = 0; i < SIZE; i++)
		put(&f, i, BUFFER, 64 + i, DESC_WRITE, 0);
	for (unsigned i = 0; i < 3 * 65536 / 2; i++) {
		ring_offer(&f.ring, (uint16_t)(i * 3 % SIZE));
		assert_int_equal(pop(&f), 1);
		assert_int_equal(f.chain.head, i * 3 % SIZE);
		assert_int_equal(f.chain.buffers[0].iov_len, 64 + i * 3 % SIZE);
		virtqueue_push(&f.queue, &f.chain, i);
		assert_true(ring_take(&f.ring, &id, &length));
		assert_int_equal(id, i * 3 % SIZE);
		assert_int_equal(length, i);
	}
	assert_int_equal(pop(&f), 0);
	stop(&f);
}

static void a_full_ring_is_taken_in_order(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	for (unsigned i = 0; i < SIZE; i++) {
		put(&f, i, BUFFER, 1 + i, 0, 0);
		ring_offer(&f.ring, (uint16_t)(SIZE - 1 - i));
	}
	for (unsigned i = 0; i < SIZE; i++) {
		assert_int_equal(pop(&f), 1);
		assert_int_equal(f.chain.head, SIZE - 1 - i);
	}
	assert_int_equal(pop(&f), 0);
	stop(&f);
}

static void a_chain_may_be_as_long_as_the_queue(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	for (unsigned i = 0; i < SIZE; i++)
		put(&f, i, BUFFER, 4, i < SIZE - 1 ? DESC_NEXT : 0, (uint16_t)(i + 1));
	ring_offer(&f.ring, 0);
	assert_int_equal(pop(&f), 1);
	assert_int_equal(f.chain.num_readable, SIZE);
	stop(&f);
}

/* Direct descriptors may lead to an indirect one, whose own WRITE flag means nothing, and which need not be aligned. */
static void an_indirect_table_is_followed(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	put(&f, 0, BUFFER, 16, DESC_NEXT, 3);
	put(&f, 3, TABLE + 1, 32, DESC_INDIRECT | DESC_WRITE, 0);
	ring_put(&f.rig.ram, TABLE + 1, 0, BUFFER + 16, 8, DESC_NEXT, 1);
	ring_put(&f.rig.ram, TABLE + 1, 1, BUFFER + 32, 9, DESC_WRITE, 0);
	ring_offer(&f.ring, 0);
	assert_int_equal(pop(&f), 1);
	assert_int_equal(f.chain.num_readable, 2);
	assert_int_equal(f.chain.num_writable, 1);
	assert_int_equal(f.chain.buffers[1].iov_len, 8);
	assert_int_equal(f.chain.buffers[2].iov_len, 9);
	stop(&f);
}

static void the_driver_may_want_no_interrupt(void **state)
{
	struct fixture f;

	(void)state;
	for (unsigned same_thread = 0; same_thread < 2; same_thread++) {
		start(&f);
		f.queue.same_thread = same_thread;
		assert_true(virtqueue_wants_interrupt(&f.queue));
		ring_set_flags(&f.ring, 1);
		assert_false(virtqueue_wants_interrupt(&f.queue));
		ring_set_flags(&f.ring, 2); /* not that flag */
		assert_true(virtqueue_wants_interrupt(&f.queue));
		stop(&f);
	}
}

/*
 * What membarrier() brings out of the store buffer of the driver's CPU: the linker leads the system call here.
 */
static struct ring *ring_to_clear;
static long membarrier_result;
static unsigned num_membarriers;

long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
	assert_int_equal(number, SYS_membarrier);
	num_membarriers++;
	if (ring_to_clear)
		ring_set_flags(ring_to_clear, 0);
	return membarrier_result;
}

static void a_flag_that_is_on_its_way_is_waited_for(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	f.queue.same_thread = false;
	/* The driver has cleared it, but this CPU did not see that yet. */
	ring_set_flags(&f.ring, 1);
	ring_to_clear = &f.ring;
	num_membarriers = 0;
	assert_true(virtqueue_wants_interrupt(&f.queue));
	assert_true(num_membarriers > 0);
	/* It has not. */
	ring_to_clear = NULL;
	ring_set_flags(&f.ring, 1);
	assert_false(virtqueue_wants_interrupt(&f.queue));
	/* Nothing is asked where nothing can be on its way, or where the answer is known. */
	num_membarriers = 0;
	f.queue.same_thread = true;
	assert_false(virtqueue_wants_interrupt(&f.queue));
	f.queue.same_thread = false;
	ring_set_flags(&f.ring, 0);
	assert_true(virtqueue_wants_interrupt(&f.queue));
	assert_int_equal(num_membarriers, 0);
	/* A kernel without it: one interrupt too many, rather than one too few. */
	membarrier_result = -1;
	ring_set_flags(&f.ring, 1);
	assert_true(virtqueue_wants_interrupt(&f.queue));
	membarrier_result = 0;
	stop(&f);
}

/* Notifications are what orders the ring: the device never switches them off. */
static void notifications_stay_on(void **state)
{
	struct fixture f;
	uint16_t flags;

	(void)state;
	start(&f);
	put(&f, 0, BUFFER, 4, 0, 0);
	for (unsigned i = 0; i < 3; i++) {
		ring_offer(&f.ring, 0);
		assert_int_equal(pop(&f), 1);
		virtqueue_push(&f.queue, &f.chain, 0);
		memcpy(&flags, rig_at(&f.rig.ram, f.ring.used), 2);
		assert_int_equal(flags, 0);
	}
	stop(&f);
}

static void rings_may_end_where_memory_ends(void **state)
{
	const uint64_t length = 16 * SIZE + 6 + 2 * SIZE + 2 + 6 + 8 * SIZE;
	struct fixture f;

	(void)state;
	start_at(&f, (RIG_RAM_END - length) & ~15ull, true);
	put(&f, SIZE - 1, BUFFER, 4, 0, 0);
	for (unsigned i = 0; i < 2 * SIZE; i++) {
		ring_offer(&f.ring, SIZE - 1);
		assert_int_equal(pop(&f), 1);
		virtqueue_push(&f.queue, &f.chain, 0);
	}
	stop(&f);
}

/* ---- Wrong ---------------------------------------------------------------------------- */

static void an_index_too_far_ahead_is_refused(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	put(&f, 0, BUFFER, 4, 0, 0);
	ring_set_index(&f.ring, SIZE + 1);
	assert_int_equal(pop(&f), -EINVAL);
	assert_string_equal(f.why, "the driver's index is more than a queue ahead");
	/* Backwards is far ahead, too. */
	ring_set_index(&f.ring, 0xffff);
	assert_int_equal(pop(&f), -EINVAL);
	ring_set_index(&f.ring, SIZE);
	assert_int_equal(pop(&f), 1);
	stop(&f);
}

static void a_head_past_the_table_is_refused(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	ring_offer(&f.ring, SIZE);
	assert_int_equal(pop(&f), -EINVAL);
	assert_string_equal(f.why, "a descriptor's number is too large");
	stop(&f);
	start(&f);
	ring_offer(&f.ring, 0xffff);
	assert_int_equal(pop(&f), -EINVAL);
	stop(&f);
}

static void a_next_past_the_table_is_refused(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	put(&f, 0, BUFFER, 4, DESC_NEXT, SIZE);
	refused(&f, "a descriptor's number is too large");
}

static void a_loop_is_refused(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	put(&f, 0, BUFFER, 4, DESC_NEXT, 0);
	refused(&f, "a chain of descriptors is longer than the queue");
	start(&f);
	put(&f, 0, BUFFER, 4, DESC_NEXT, 1);
	put(&f, 1, BUFFER, 4, DESC_NEXT, 2);
	put(&f, 2, BUFFER, 4, DESC_NEXT, 1);
	refused(&f, "a chain of descriptors is longer than the queue");
}

/* No loop, and no descriptor out of place: a direct one, then an indirect table as long as the queue. */
static void a_chain_one_longer_than_the_queue_is_refused(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	put(&f, 0, BUFFER, 4, DESC_NEXT, 1);
	put(&f, 1, TABLE, 16 * SIZE, DESC_INDIRECT, 0);
	for (unsigned i = 0; i < SIZE; i++)
		put_indirect(&f, i, BUFFER, 4, i < SIZE - 1 ? DESC_NEXT : 0, (uint16_t)(i + 1));
	refused(&f, "a chain of descriptors is longer than the queue");
	start(&f);
	put(&f, 0, BUFFER, 4, DESC_NEXT, 1);
	put(&f, 1, TABLE, 16 * SIZE, DESC_INDIRECT, 0);
	for (unsigned i = 0; i < SIZE - 1; i++)
		put_indirect(&f, i, BUFFER, 4, i < SIZE - 2 ? DESC_NEXT : 0, (uint16_t)(i + 1));
	ring_offer(&f.ring, 0);
	assert_int_equal(pop(&f), 1);
	assert_int_equal(f.chain.num_readable, SIZE);
	stop(&f);
}

static void an_empty_buffer_is_refused(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	put(&f, 0, BUFFER, 0, 0, 0);
	refused(&f, "a descriptor has no length");
}

static void an_address_that_is_no_memory_is_refused(void **state)
{
	static const struct {
		uint64_t address;
		uint32_t length;
	} wild[] = {
		{ 0, 4 },
		{ RIG_RAM_BASE - 1, 1 },
		{ RIG_RAM_BASE - 1, 2 },
		{ RIG_RAM_END, 1 },
		{ RIG_RAM_END - 1, 2 },
		{ RIG_RAM_BASE, RIG_RAM_SIZE + 1 },
		{ RIG_RAM_BASE, UINT32_MAX },
		{ RIG_RAM_END - 1, UINT32_MAX },
		{ UINT64_MAX, 1 },
		{ UINT64_MAX - 3, UINT32_MAX },
		{ RIG_RAM_BASE + (1ull << 32), 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		struct fixture f;

		start(&f);
		put(&f, 0, wild[i].address, wild[i].length, DESC_WRITE, 0);
		refused(&f, "a descriptor names what is not memory");
	}
}

static void more_bytes_than_memory_are_refused(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	put(&f, 0, RIG_RAM_BASE, RIG_RAM_SIZE, DESC_NEXT, 1);
	put(&f, 1, BUFFER, 1, DESC_WRITE, 0);
	refused(&f, "a chain of descriptors has more bytes than there is memory");
}

static void a_readable_buffer_after_a_writable_one_is_refused(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	put(&f, 0, BUFFER, 4, DESC_WRITE | DESC_NEXT, 1);
	put(&f, 1, BUFFER, 4, 0, 0);
	refused(&f, "a buffer to be read comes after one to be written");
}

static void an_indirect_table_must_have_been_agreed_on(void **state)
{
	struct fixture f;

	(void)state;
	start_at(&f, RIG_RAM_BASE, false);
	put(&f, 0, TABLE, 16, DESC_INDIRECT, 0);
	put_indirect(&f, 0, BUFFER, 4, 0, 0);
	refused(&f, "an indirect descriptor, which was not agreed on");
}

static void an_indirect_table_in_another_is_refused(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	put(&f, 0, TABLE, 16, DESC_INDIRECT, 0);
	put_indirect(&f, 0, TABLE, 16, DESC_INDIRECT, 0);
	refused(&f, "an indirect descriptor in an indirect table");
}

static void an_indirect_descriptor_has_no_next(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	put(&f, 0, TABLE, 16, DESC_INDIRECT | DESC_NEXT, 1);
	refused(&f, "an indirect descriptor has a next one");
}

static void an_indirect_table_of_a_wrong_length_is_refused(void **state)
{
	static const uint32_t lengths[] = { 0, 1, 15, 17, 16 * SIZE + 16, 0xfffffff0, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct fixture f;

		start(&f);
		put(&f, 0, TABLE, lengths[i], DESC_INDIRECT, 0);
		refused(&f, "an indirect table has a wrong length");
	}
}

static void an_indirect_table_outside_of_memory_is_refused(void **state)
{
	static const uint64_t addresses[] = { 0, RIG_RAM_END - 16, RIG_RAM_END, UINT64_MAX - 15, UINT64_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct fixture f;

		start(&f);
		put(&f, 0, addresses[i], 32, DESC_INDIRECT, 0);
		refused(&f, "an indirect table is not in memory");
	}
}

static void an_indirect_next_past_its_table_is_refused(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	put(&f, 0, TABLE, 32, DESC_INDIRECT, 0);
	put_indirect(&f, 0, BUFFER, 4, DESC_NEXT, 2); /* there is a third in memory, but not in the table */
	put_indirect(&f, 2, BUFFER, 4, 0, 0);
	refused(&f, "a descriptor's number is too large");
}

static void a_loop_in_an_indirect_table_is_refused(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	put(&f, 0, TABLE, 32, DESC_INDIRECT, 0);
	put_indirect(&f, 0, BUFFER, 4, DESC_NEXT, 1);
	put_indirect(&f, 1, BUFFER, 4, DESC_NEXT, 0);
	refused(&f, "a chain of descriptors is longer than the queue");
}

static void make_random_ring(struct fixture *f, uint64_t *seed)
{
	static const uint64_t addresses[] = { BUFFER, TABLE, RIG_RAM_BASE, RIG_RAM_END - 16, 0, UINT64_MAX };
	struct virtio_queue_setup setup;

	ring_init(&f->ring, &f->rig.ram, RIG_RAM_BASE, SIZE);
	setup = ring_setup(&f->ring);
	virtqueue_start(&f->queue, &f->rig.ram, &setup, rig_random(seed) % 4, true);
	for (unsigned i = 0; i < 2 * SIZE; i++) {
		const uint64_t r = rig_random(seed);
		const uint32_t length = r & 1 ? (uint32_t)(r >> 32) : (uint32_t)(r >> 32) % 8 * 16;

		ring_put(&f->rig.ram, i < SIZE ? f->ring.desc : TABLE, i % SIZE, addresses[(r >> 1) % 6], length,
			 (r >> 4) % 8, (uint16_t)((r >> 8) % (SIZE + 1)));
	}
	ring_offer(&f->ring, (uint16_t)(rig_random(seed) % (SIZE + 1)));
}

static void check_buffers(const struct fixture *f)
{
	for (unsigned i = 0; i < f->chain.num_readable + f->chain.num_writable; i++) {
		const unsigned char *host = f->chain.buffers[i].iov_base;

		assert_true(host >= f->rig.ram.host);
		assert_true(f->chain.buffers[i].iov_len <= RIG_RAM_SIZE - (size_t)(host - f->rig.ram.host));
	}
}

/* Any bytes at all in the rings and tables, with what is nearly right among them: every answer is one of three. */
static void random_rings_are_answered(void **state)
{
	unsigned answers[3] = { 0 };
	uint64_t seed = 1;
	struct fixture f;

	(void)state;
	start(&f);
	for (unsigned round = 0; round < 20000; round++) {
		make_random_ring(&f, &seed);
		switch (pop(&f)) {
		case 1:
			answers[1]++;
			check_buffers(&f);
			break;
		case 0:
			answers[0]++;
			break;
		default:
			answers[2]++;
			assert_non_null(f.why);
			break;
		}
	}
	stop(&f);
	assert_int_equal(answers[0], 0);
	assert_true(answers[1] > 1000); /* or the test would say nothing of either */
	assert_true(answers[2] > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chain_is_taken_and_given_back),
		cmocka_unit_test(only_what_was_announced_is_taken),
		cmocka_unit_test(indices_wrap),
		cmocka_unit_test(a_full_ring_is_taken_in_order),
		cmocka_unit_test(a_chain_may_be_as_long_as_the_queue),
		cmocka_unit_test(an_indirect_table_is_followed),
		cmocka_unit_test(the_driver_may_want_no_interrupt),
		cmocka_unit_test(a_flag_that_is_on_its_way_is_waited_for),
		cmocka_unit_test(notifications_stay_on),
		cmocka_unit_test(rings_may_end_where_memory_ends),
		cmocka_unit_test(an_index_too_far_ahead_is_refused),
		cmocka_unit_test(a_head_past_the_table_is_refused),
		cmocka_unit_test(a_next_past_the_table_is_refused),
		cmocka_unit_test(a_loop_is_refused),
		cmocka_unit_test(a_chain_one_longer_than_the_queue_is_refused),
		cmocka_unit_test(an_empty_buffer_is_refused),
		cmocka_unit_test(an_address_that_is_no_memory_is_refused),
		cmocka_unit_test(more_bytes_than_memory_are_refused),
		cmocka_unit_test(a_readable_buffer_after_a_writable_one_is_refused),
		cmocka_unit_test(an_indirect_table_must_have_been_agreed_on),
		cmocka_unit_test(an_indirect_table_in_another_is_refused),
		cmocka_unit_test(an_indirect_descriptor_has_no_next),
		cmocka_unit_test(an_indirect_table_of_a_wrong_length_is_refused),
		cmocka_unit_test(an_indirect_table_outside_of_memory_is_refused),
		cmocka_unit_test(an_indirect_next_past_its_table_is_refused),
		cmocka_unit_test(a_loop_in_an_indirect_table_is_refused),
		cmocka_unit_test(random_rings_are_answered),
	};

	return RUN_TESTS("virtqueue", tests);
}
