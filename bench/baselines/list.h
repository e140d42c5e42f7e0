/* SPDX-License-Identifier: MIT */
/*
 * list.h - doubly linked lists whose nodes are members of what is listed. A head
 * is a node that is listed nowhere.
 */
#ifndef BENCH_BASELINES_LIST_H
#define BENCH_BASELINES_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *previous;
};

#define LIST_ENTRY(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a name that is declared takes no parentheses */
#define LIST_EACH(node, head) for (struct list *node = (head)->next; node != (head); node = node->next)

static inline void list_init(struct list *head)
{
	__atomic_store_n(&head->next, head, __ATOMIC_RELAXED);
	head->previous = head;
}

/* May be asked without the lock: then it was so at some moment. */
static inline bool list_is_empty(const struct list *head)
{
	return __atomic_load_n(&head->next, __ATOMIC_RELAXED) == head;
}

static inline void list_insert(struct list *node, struct list *previous, struct list *next)
{
	node->previous = previous;
	node->next = next;
	next->previous = node;
	__atomic_store_n(&previous->next, node, __ATOMIC_RELAXED);
}

static inline void list_add_first(struct list *head, struct list *node)
{
	list_insert(node, head, head->next);
}

static inline void list_add_last(struct list *head, struct list *node)
{
	list_insert(node, head->previous, head);
}

static inline void list_remove(struct list *node)
{
	node->next->previous = node->previous;
	__atomic_store_n(&node->previous->next, node->next, __ATOMIC_RELAXED);
}

#endif /* BENCH_BASELINES_LIST_H */
