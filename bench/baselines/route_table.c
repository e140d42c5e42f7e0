/* SPDX-License-Identifier: MIT */
/*
 * route_table.c - a table of routes that is replaced as a whole (route_table.h).
 *
 * Locks: none; one thread changes the table, another waits for grace periods while it
 * sleeps, and readers are in a section of RCU.
 * What an irqfd has copied is guarded by a sequence count.
 */
#define _GNU_SOURCE
#include "route_table.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../measure.h"
#include "rcu.h"

/* An entry as it is handed over: the size of KVM's. */
struct user_entry {
	uint32_t gsi, type, flags, padding;
	struct base_msi msi;
	uint32_t reserved[3];
};

_Static_assert(sizeof(struct user_entry) == 48, "an entry is as large as the original's");

/* An entry of a table that is in force, in the list of its GSI. */
struct table_entry {
	struct table_entry *next;
	uint32_t gsi, type;
	struct base_msi msi;
};

struct table {
	uint32_t num_gsis;
	struct table_entry *lists[]; /* by GSI */
};

#define MSI_WORDS 3

/* An irqfd and its copy of the entry. */
struct irqfd {
	_Alignas(BASE_LINE) _Atomic uint32_t sequence; /* odd while it is written */
	_Atomic bool bound;
	_Atomic uint64_t msi[MSI_WORDS];
};

/* The kernel's worker that waits for grace periods. */
struct grace_worker {
	pthread_t thread;
	sem_t wanted, over;
	_Atomic bool stop;
};

struct base_routes {
	uint32_t num_gsis, num_entries, room;
	struct user_entry *entries; /* the VMM's table */
	struct table *_Atomic table;
	struct irqfd *irqfds; /* by GSI */
	struct grace_worker worker;
};

/* ---- Grace periods ---- */

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore))
		; /* a signal came */
}

static void *run_worker(void *argument)
{
	struct grace_worker *worker = argument;

	for (;;) {
		wait_for(&worker->wanted);
		if (atomic_load(&worker->stop))
			return NULL;
		rcu_wait();
		sem_post(&worker->over);
	}
}

static int start_worker(struct grace_worker *worker)
{
	sem_init(&worker->wanted, 0, 0);
	sem_init(&worker->over, 0, 0);
	return -pthread_create(&worker->thread, NULL, run_worker, worker);
}

static void stop_worker(struct grace_worker *worker)
{
	atomic_store(&worker->stop, true);
	sem_post(&worker->wanted);
	pthread_join(worker->thread, NULL);
	sem_destroy(&worker->wanted);
	sem_destroy(&worker->over);
}

static void wait_for_readers(struct grace_worker *worker)
{
	sem_post(&worker->wanted);
	wait_for(&worker->over);
}

/* ---- Tables ---- */

static void free_table(struct table *table)
{
	for (uint32_t gsi = 0; table && gsi < table->num_gsis; gsi++) {
		for (struct table_entry *entry = table->lists[gsi], *next; entry; entry = next) {
			next = entry->next;
			free(entry);
		}
	}
	free(table);
}

static bool add_entry(struct table *table, const struct user_entry *from)
{
	struct table_entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return false;
	entry->gsi = from->gsi;
	entry->type = from->type;
	entry->msi = from->msi;
	entry->next = table->lists[from->gsi];
	table->lists[from->gsi] = entry;
	return true;
}

static struct table *build_table_of(const struct user_entry *entries, uint32_t num_entries)
{
	uint32_t num_gsis = 0;
	struct table *table;

	for (uint32_t i = 0; i < num_entries; i++)
		num_gsis = entries[i].gsi >= num_gsis ? entries[i].gsi + 1 : num_gsis;
	table = calloc(1, sizeof(*table) + num_gsis * sizeof(struct table_entry *));
	if (!table)
		return NULL;
	table->num_gsis = num_gsis;
	for (uint32_t i = 0; i < num_entries; i++) {
		if (!add_entry(table, &entries[i])) {
			free_table(table);
			return NULL;
		}
	}
	return table;
}

/* Of a copy of the VMM's table, which the system call makes first. */
static struct table *build_table(const struct base_routes *routes)
{
	const size_t size = routes->num_entries * sizeof(struct user_entry);
	struct user_entry *copy = malloc(size);
	struct table *table;

	if (!copy)
		return NULL;
	syscall(SYS_gettid);
	memcpy(copy, routes->entries, size);
	table = build_table_of(copy, routes->num_entries);
	free(copy);
	return table;
}

/* ---- irqfds ---- */

static void update_irqfd(struct irqfd *irqfd, const struct table *table, uint32_t gsi)
{
	const struct table_entry *entry = gsi < table->num_gsis ? table->lists[gsi] : NULL;
	uint64_t words[MSI_WORDS] = { 0 };

	if (entry)
		memcpy(words, &entry->msi, sizeof(entry->msi));
	atomic_fetch_add_explicit(&irqfd->sequence, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release); /* who sees a word of the new entry sees that it is written */
	for (unsigned i = 0; i < MSI_WORDS; i++)
		atomic_store_explicit(&irqfd->msi[i], words[i], memory_order_relaxed);
	atomic_fetch_add_explicit(&irqfd->sequence, 1, memory_order_release);
}

_Static_assert(sizeof(struct base_msi) <= MSI_WORDS * sizeof(uint64_t), "a message fits into an irqfd");

bool base_routes_find(struct base_routes *routes, uint32_t gsi, struct base_msi *msi)
{
	struct irqfd *irqfd = &routes->irqfds[gsi];
	uint64_t words[MSI_WORDS];
	uint32_t sequence;

	rcu_read_begin();
	if (!atomic_load_explicit(&irqfd->bound, memory_order_acquire))
		return false;
	do {
		sequence = atomic_load_explicit(&irqfd->sequence, memory_order_acquire);
		for (unsigned i = 0; i < MSI_WORDS; i++)
			words[i] = atomic_load_explicit(&irqfd->msi[i], memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire); /* the words before the second look */
	} while (sequence % 2 || atomic_load_explicit(&irqfd->sequence, memory_order_relaxed) != sequence);
	memcpy(msi, words, sizeof(*msi));
	return true;
}

void base_routes_end_find(void)
{
	rcu_read_end();
}

void base_routes_register_reader(void)
{
	rcu_read_begin();
	rcu_read_end();
}

/* ---- Changes ---- */

/* The VMM's own table, which grows as it needs to. */
static bool append(struct base_routes *routes, uint32_t gsi, const struct base_msi *msi)
{
	if (routes->num_entries == routes->room) {
		const uint32_t room = routes->room ? 2 * routes->room : 64;
		struct user_entry *entries = realloc(routes->entries, room * sizeof(*entries));

		if (!entries)
			return false;
		routes->entries = entries;
		routes->room = room;
	}
	routes->entries[routes->num_entries++] = (struct user_entry){ .gsi = gsi, .type = 1, .msi = *msi };
	return true;
}

int base_routes_add(struct base_routes *routes, uint32_t gsi, const struct base_msi *msi,
		    struct base_routes_times *times)
{
	struct table *old = atomic_load_explicit(&routes->table, memory_order_relaxed), *table;
	const uint64_t start = measure_now_ns();
	uint64_t copied, published, waited;

	if (gsi >= routes->num_gsis || !append(routes, gsi, msi))
		return -ENOMEM;
	table = build_table(routes);
	if (!table) {
		routes->num_entries--;
		return -ENOMEM;
	}
	copied = measure_now_ns();
	atomic_store_explicit(&routes->table, table, memory_order_release);
	for (uint32_t i = 0; i + 1 < routes->num_entries; i++)
		update_irqfd(&routes->irqfds[routes->entries[i].gsi], table, routes->entries[i].gsi);
	published = measure_now_ns();
	wait_for_readers(&routes->worker);
	waited = measure_now_ns();
	free_table(old);
	times->copy += copied - start + measure_now_ns() - waited;
	times->publish += published - copied;
	times->wait += waited - published;

	update_irqfd(&routes->irqfds[gsi], table, gsi);
	atomic_store_explicit(&routes->irqfds[gsi].bound, true, memory_order_release);
	return 0;
}

struct base_routes *base_routes_create(uint32_t num_gsis)
{
	struct base_routes *routes = calloc(1, sizeof(*routes));

	if (!routes)
		return NULL;
	routes->num_gsis = num_gsis;
	routes->irqfds = aligned_alloc(BASE_LINE, num_gsis * sizeof(struct irqfd));
	if (!routes->irqfds || start_worker(&routes->worker)) {
		free(routes->irqfds);
		free(routes);
		return NULL;
	}
	memset(routes->irqfds, 0, num_gsis * sizeof(struct irqfd));
	return routes;
}

void base_routes_destroy(struct base_routes *routes)
{
	stop_worker(&routes->worker);
	free_table(atomic_load(&routes->table));
	free(routes->irqfds);
	free(routes->entries);
	free(routes);
}
