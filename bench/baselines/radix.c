/* SPDX-License-Identifier: MIT */
/*
 * radix.c - the radix tree of radix.h.
 */
#include "radix.h"

#include <errno.h>
#include <stdlib.h>

#include "rcu.h"

/* So many are freed with one grace period. */
#define GRAVE_SIZE 4096u

void radix_grave_empty(struct radix_grave *grave)
{
	if (!grave->first)
		return;
	rcu_wait();
	while (grave->first) {
		struct radix_buried *buried = grave->first;

		grave->first = buried->next;
		free(buried);
	}
	grave->num = 0;
}

void radix_bury(struct radix_grave *grave, struct radix_buried *buried)
{
	buried->next = grave->first;
	grave->first = buried;
	if (++grave->num >= GRAVE_SIZE)
		radix_grave_empty(grave);
}

static void *load(_Atomic(void *) *slot)
{
	return atomic_load_explicit(slot, memory_order_acquire);
}

static void store(_Atomic(void *) *slot, void *entry)
{
	atomic_store_explicit(slot, entry, memory_order_release);
}

static unsigned slot_of(const struct radix_node *node, uint64_t index)
{
	return (unsigned)(index >> node->shift) & RADIX_MASK;
}

/* Is there a place for @index below this root? */
static bool fits(void *root, uint64_t index)
{
	if (!radix_is_node(root))
		return index == 0;
	return index >> radix_node(root)->shift <= RADIX_MASK;
}

/* Where a walk is: kept in memory, as a walk may go on from there. */
struct cursor {
	struct radix *tree;
	uint64_t index;
	struct radix_node *node; /* NULL: the root */
	unsigned slot;
};

static void *descend(struct cursor *cursor, struct radix_node *node)
{
	cursor->node = node;
	cursor->slot = slot_of(node, cursor->index);
	return load(&node->slots[cursor->slot]);
}

static void *walk(struct cursor *cursor)
{
	void *entry = load(&cursor->tree->root);

	cursor->node = NULL;
	if (!fits(entry, cursor->index))
		return NULL;
	while (radix_is_node(entry)) {
		struct radix_node *node = radix_node(entry);

		entry = descend(cursor, node);
		if (node->shift == 0)
			break;
	}
	return entry;
}

void *radix_load(struct radix *tree, uint64_t index)
{
	struct cursor cursor = { .tree = tree, .index = index };
	void *entry;

	rcu_read_begin();
	entry = walk(&cursor);
	rcu_read_end();
	return entry;
}

static struct radix_node *new_node(unsigned shift, struct radix_node *parent, unsigned parent_slot)
{
	struct radix_node *node = calloc(1, sizeof(*node));

	if (node) {
		node->shift = shift;
		node->parent = parent;
		node->parent_slot = parent_slot;
	}
	return node;
}

/* A root for @index: of the height that it needs if the tree is empty, otherwise one level above the old one. */
static int grow(struct radix *tree, uint64_t index)
{
	void *root = load(&tree->root);
	struct radix_node *node;
	unsigned shift = 0;

	if (radix_is_node(root))
		shift = radix_node(root)->shift + RADIX_BITS;
	while (!root && index >> shift > RADIX_MASK)
		shift += RADIX_BITS;
	node = new_node(shift, NULL, 0);
	if (!node)
		return -ENOMEM;
	if (root) {
		store(&node->slots[0], root);
		node->num_used = 1;
	}
	if (radix_is_node(root))
		radix_node(root)->parent = node;
	store(&tree->root, (char *)node + 1);
	return 0;
}

static int store_below(struct radix_node *node, uint64_t index, void *entry, void **old)
{
	for (;;) {
		const unsigned slot = slot_of(node, index);
		void *there = load(&node->slots[slot]);

		if (node->shift == 0) {
			node->num_used += !there;
			store(&node->slots[slot], entry);
			*old = there;
			return 0;
		}
		if (!there) {
			struct radix_node *child = new_node(node->shift - RADIX_BITS, node, slot);

			if (!child)
				return -ENOMEM;
			node->num_used++;
			store(&node->slots[slot], (char *)child + 1);
			node = child;
		} else {
			node = radix_node(there);
		}
	}
}

int radix_store(struct radix *tree, uint64_t index, void *entry, void **old)
{
	while (!fits(load(&tree->root), index)) {
		if (grow(tree, index))
			return -ENOMEM;
	}

	void *root = load(&tree->root);

	if (radix_is_node(root))
		return store_below(radix_node(root), index, entry, old);
	*old = root;
	store(&tree->root, entry);
	return 0;
}

/* Take out nodes that have become empty. */
static void prune(struct radix *tree, struct radix_node *node, struct radix_grave *grave)
{
	while (node && node->num_used == 0) {
		struct radix_node *parent = node->parent;

		if (parent) {
			store(&parent->slots[node->parent_slot], NULL);
			parent->num_used--;
		} else {
			store(&tree->root, NULL);
		}
		radix_bury(grave, &node->buried);
		node = parent;
	}
}

void *radix_erase(struct radix *tree, uint64_t index, struct radix_grave *grave)
{
	struct cursor cursor = { .tree = tree, .index = index };
	void *entry = walk(&cursor);

	if (!entry)
		return NULL;
	store(cursor.node ? &cursor.node->slots[cursor.slot] : &tree->root, NULL);
	if (cursor.node)
		cursor.node->num_used--;
	prune(tree, cursor.node, grave);
	return entry;
}

static void clear_entry(void *entry, struct radix_grave *grave, void (*drop)(void *context, void *entry), void *context)
{
	if (!radix_is_node(entry)) {
		drop(context, entry);
		return;
	}

	struct radix_node *node = radix_node(entry);

	for (unsigned i = 0; i <= RADIX_MASK && node->num_used; i++) {
		void *child = load(&node->slots[i]);

		if (child) {
			clear_entry(child, grave, drop, context);
			node->num_used--;
		}
	}
	radix_bury(grave, &node->buried);
}

void radix_clear(struct radix *tree, struct radix_grave *grave, void (*drop)(void *context, void *entry), void *context)
{
	void *root = load(&tree->root);

	store(&tree->root, NULL);
	if (root)
		clear_entry(root, grave, drop, context);
}
