/* SPDX-License-Identifier: MIT */
/*
 * radix.h - a radix tree of pointers, read inside an RCU section.
 *
 * 64 slots a node, as many levels as the largest index needs; an entry at index 0
 * of an otherwise empty tree has no node at all. Writers hold a lock of their own.
 * What a writer takes out is freed when no reader can have it any more.
 */
#ifndef BENCH_BASELINES_RADIX_H
#define BENCH_BASELINES_RADIX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RADIX_BITS 6u
#define RADIX_MASK ((1u << RADIX_BITS) - 1)

/* Nodes and objects wait here until a grace period has passed. Guarded by the writers' lock. */
struct radix_grave {
	struct radix_buried {
		struct radix_buried *next;
	} * first;
	unsigned num;
};

struct radix_node {
	struct radix_buried buried;
	unsigned shift;
	unsigned num_used;
	struct radix_node *parent;
	unsigned parent_slot;
	_Atomic(void *) slots[1u << RADIX_BITS];
};

struct radix {
	_Atomic(void *) root;
};

/* Pointers to nodes are marked by a bit that no entry has. */
static inline bool radix_is_node(const void *entry)
{
	return (uintptr_t)entry & 1;
}

static inline struct radix_node *radix_node(void *entry)
{
	return (struct radix_node *)((char *)entry - 1);
}

/* The entry at @index, or NULL. In an RCU section, or under the writers' lock. */
void *radix_load(struct radix *tree, uint64_t index);

/* Returns the entry that was there, or NULL. -ENOMEM leaves the tree as it was. */
int radix_store(struct radix *tree, uint64_t index, void *entry, void **old);
void *radix_erase(struct radix *tree, uint64_t index, struct radix_grave *grave);

/* Take everything out; calls @drop for each entry. */
void radix_clear(struct radix *tree, struct radix_grave *grave, void (*drop)(void *context, void *entry),
		 void *context);

/* Put something malloc()ed there. Now and then waits for a grace period and frees what is there. */
void radix_bury(struct radix_grave *grave, struct radix_buried *buried);
void radix_grave_empty(struct radix_grave *grave);

#endif /* BENCH_BASELINES_RADIX_H */
