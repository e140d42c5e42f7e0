/* SPDX-License-Identifier: MIT */
/*
 * The port layer on libc and pthreads, with libc wrapped where it must fail.
 */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include "port.h"

/* ---- libc, wrapped ---- */

static bool no_memory, no_mutex;
static unsigned num_allocations;
static int num_live;
/* How many bytes getrandom() delivers; -1: an error. */
static ssize_t random_bytes = 8;

int __real_posix_memalign(void **memory, size_t align, size_t size);
int __wrap_posix_memalign(void **memory, size_t align, size_t size);
void __real_free(void *memory);
void __wrap_free(void *memory);
int __real_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
ssize_t __real_getrandom(void *buffer, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags);

int __wrap_posix_memalign(void **memory, size_t align, size_t size)
{
	int err;

	num_allocations++;
	if (no_memory)
		return ENOMEM;
	err = __real_posix_memalign(memory, align, size);
	/* Memory is never zero by chance. */
	if (err == 0)
		memset(*memory, 0xa5, size);
	num_live += err == 0;
	return err;
}

void __wrap_free(void *memory)
{
	num_live -= memory != NULL;
	__real_free(memory);
}

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
	return no_mutex ? EAGAIN : __real_pthread_mutex_init(mutex, attributes);
}

ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags)
{
	if (random_bytes < 0)
		return -1;
	memset(buffer, 0x5a, size);
	if (random_bytes < (ssize_t)size)
		return random_bytes;
	return __real_getrandom(buffer, size, flags);
}

/* ---- Memory ---- */

static void memory_is_aligned_and_zero(void **state)
{
	static const size_t sizes[] = { 1, 7, 8, 63, 64, 65, 1000, 4096, 100000 };

	(void)state;
	for (size_t align = 1; align <= 4096; align *= 2) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			unsigned char *memory = port_alloc_zeroed(sizes[i], align);

			assert_non_null(memory);
			assert_int_equal((uintptr_t)memory % align, 0);
			for (size_t byte = 0; byte < sizes[i]; byte++)
				assert_int_equal(memory[byte], 0);
			/* All of it is there: AddressSanitizer watches. */
			memset(memory, 0xff, sizes[i]);
			port_free(memory);
		}
	}
	port_free(NULL);
	assert_int_equal(num_live, 0);
}

/* Sizes that would wrap once the alignment is added never get to the allocator. */
static void sizes_that_overflow_are_refused(void **state)
{
	(void)state;
	num_allocations = 0;
	assert_null(port_alloc_zeroed(SIZE_MAX, 64));
	assert_null(port_alloc_zeroed(SIZE_MAX - 1, 8));
	assert_null(port_alloc_zeroed(SIZE_MAX - 63, 64));
	assert_null(port_alloc_zeroed(SIZE_MAX, 1));
	assert_int_equal(num_allocations, 0);
}

static void no_memory_is_null(void **state)
{
	(void)state;
	no_memory = true;
	assert_null(port_alloc_zeroed(64, 64));
	assert_null(port_lock_new(LOCK_CONFIG));
	no_memory = false;
	assert_int_equal(num_live, 0);
}

/* ---- Locks ---- */

#define NUM_THREADS 4
#define NUM_ROUNDS  50000

struct shared {
	struct port_lock *lock;
	unsigned long counter; /* guarded by lock */
};

static void *count_up(void *arg)
{
	struct shared *s = arg;

	for (int i = 0; i < NUM_ROUNDS; i++) {
		port_lock_acquire(s->lock);
		const unsigned long seen = s->counter;

		/* Time for another thread to come between, if it could. */
		if (i % 64 == 0)
			sched_yield();
		s->counter = seen + 1;
		port_lock_release(s->lock);
	}
	return NULL;
}

static void lock_excludes(void **state)
{
	struct shared s = { .lock = port_lock_new(LOCK_CONFIG) };
	pthread_t threads[NUM_THREADS];

	(void)state;
	assert_non_null(s.lock);
	for (int i = 0; i < NUM_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_up, &s), 0);
	for (int i = 0; i < NUM_THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(s.counter, (unsigned long)NUM_THREADS * NUM_ROUNDS);
	port_lock_free(s.lock);
}

static void lock_without_a_mutex_is_null(void **state)
{
	const int before = num_live;

	(void)state;
	no_mutex = true;
	assert_null(port_lock_new(LOCK_CONFIG));
	no_mutex = false;
	assert_int_equal(num_live, before);
	port_lock_free(NULL);
	struct port_lock *lock = port_lock_new(LOCK_CONFIG);

	assert_non_null(lock);
	assert_int_equal(num_live, before + 1);
	port_lock_free(lock);
	assert_int_equal(num_live, before);
}

/* ---- Clock and randomness ---- */

static uint64_t monotonic_ns(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void clock_is_monotonic_nanoseconds(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		const uint64_t before = monotonic_ns(), now = port_now_ns(), after = monotonic_ns();

		assert_true(before <= now && now <= after);
	}
}

static void random_numbers_differ(void **state)
{
	uint64_t numbers[64], ones = 0, zeros = 0;

	(void)state;
	for (int i = 0; i < 64; i++) {
		numbers[i] = port_random();
		ones |= numbers[i];
		zeros |= ~numbers[i];
		for (int k = 0; k < i; k++)
			assert_int_not_equal(numbers[i], numbers[k]);
	}
	/* Every bit of 64 numbers is 0 once and 1 once, or the probability of this is below 2^-56. */
	assert_int_equal(ones, ~UINT64_C(0));
	assert_int_equal(zeros, ~UINT64_C(0));
}

/* Without randomness the clock serves, spread over all bits by an odd factor. */
static void random_number_falls_back_on_the_clock(void **state)
{
	const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t inverse = factor;

	(void)state;
	/* Newton's method: each step doubles the bits that are right. */
	for (int i = 0; i < 6; i++)
		inverse *= 2 - factor * inverse;
	assert_int_equal(factor * inverse, 1);
	for (random_bytes = -1; random_bytes < 8; random_bytes++) {
		const uint64_t before = monotonic_ns(), number = port_random(), after = monotonic_ns();

		assert_true(before <= number * inverse && number * inverse <= after);
	}
	random_bytes = 8;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_aligned_and_zero),
		cmocka_unit_test(sizes_that_overflow_are_refused),
		cmocka_unit_test(no_memory_is_null),
		cmocka_unit_test(lock_excludes),
		cmocka_unit_test(lock_without_a_mutex_is_null),
		cmocka_unit_test(clock_is_monotonic_nanoseconds),
		cmocka_unit_test(random_numbers_differ),
		cmocka_unit_test(random_number_falls_back_on_the_clock),
	};

	return RUN_TESTS("port", tests);
}
