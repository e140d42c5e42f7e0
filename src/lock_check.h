/* SPDX-License-Identifier: MIT */
/*
 * lock_check.h - the order of locks and R7, checked while the program runs: in builds
 * with -Dchecks=true, which the sanitizers' builds are. Elsewhere all of it is nothing.
 *
 * A thread that takes a lock while it holds one that does not allow it, or takes one
 * while it delivers an interrupt, or allocates there, is stopped with a message on
 * standard error and abort(): whether or not it would have met another thread.
 */
#ifndef VGIC_LOCK_CHECK_H
#define VGIC_LOCK_CHECK_H

/* What a lock guards. docs/architecture.md has the order; lock_check.c says it in a table. */
enum lock_class {
	LOCK_CONFIG,     /* config_lock of struct vgic */
	LOCK_ROUTES,     /* of a route table */
	LOCK_ROUTE_LIST, /* routes_lock of struct vgic */
	LOCK_IRQFDS,
	LOCK_MSIX, /* of an MSI-X device */
	NUM_LOCK_CLASSES,
};

/* What a thread holds and does. */
struct lock_check_thread {
	unsigned held; /* classes of locks, as bits */
	unsigned deliveries;
};

#ifdef VGIC_CHECKS

/* About to be taken by this thread; has just been released by it. */
void lock_check_acquire(enum lock_class class);
void lock_check_release(enum lock_class class);
/* Memory is about to be allocated or freed. */
void lock_check_allocation(void);

/* R7. This thread delivers, until the function that says so returns. They nest. */
int lock_check_begin_delivery(void);
void lock_check_end_delivery(const int *unused);

/* For tests that stop a thread half-way and play another meanwhile: put aside what this one holds and does; put it back. */
struct lock_check_thread lock_check_leave(void);
void lock_check_return(struct lock_check_thread left);

/* First in a function that delivers: it takes no lock and allocates nothing, nor does anything that it calls. */
#define DELIVERS_WITHOUT_LOCKS                                                                                         \
	__attribute__((cleanup(lock_check_end_delivery), unused)) const int delivering = lock_check_begin_delivery()

#else

static inline void lock_check_acquire(enum lock_class class)
{
	(void)class;
}

static inline void lock_check_release(enum lock_class class)
{
	(void)class;
}

static inline void lock_check_allocation(void)
{
}

static inline struct lock_check_thread lock_check_leave(void)
{
	return (struct lock_check_thread){ 0 };
}

static inline void lock_check_return(struct lock_check_thread left)
{
	(void)left;
}

#define DELIVERS_WITHOUT_LOCKS                                                                                         \
	do {                                                                                                           \
	} while (0)

#endif

#endif /* VGIC_LOCK_CHECK_H */
