/* SPDX-License-Identifier: MIT */
/*
 * libvgic - irqfds: interrupts that arrive through eventfds. Linux only.
 *
 * A device in another thread or another process (vhost-user, VFIO) signals an
 * eventfd; that is an event on the GSI which the eventfd was assigned to, and
 * goes where the route of that GSI leads (route.h).
 *
 * Three doors lead in:
 *
 *   the service    threads of the library's that sleep on all eventfds
 *   the VMM's loop the VMM watches each eventfd itself, with a token, and calls
 *                  vgic_irqfd_ready() when it was signalled
 *   no eventfd     vgic_irqfds_signal(), by a device in the VMM
 *
 * The eventfds' counters are never read on these ways: each signal of an eventfd
 * wakes an edge-triggered epoll, whatever its count.
 *
 * Two paths lead on. The *direct* one injects in the thread that sees the event.
 * Everything of libvgic's own can go that way, lines with resampling included. The
 * *deferred* one hands the GSI to a worker thread, as the first irqfds did. It is
 * there as the baseline of measurements, and for an injection function of the
 * VMM's own that may have to wait (vgic_irqfd_ops.inject).
 *
 * Level-triggered interrupts. With a resamplefd, an event raises the source of the
 * SPI that the GSI's route names. The deactivation (EOI) of that interrupt lowers
 * it, in the same step, and signals the resamplefd once; a device that still needs
 * service signals its eventfd again. The library sees to that by itself: the VMM
 * has nothing to forward. The SPI must be configured level-sensitive by the guest.
 * Devices that share an SPI have a GSI each, with a source each.
 *
 * Masks and pauses (vgic_pause() of state.h). An MSI that meets one is kept by the
 * route of its GSI (route.h), and delivered from there. A signal that the service has
 * not seen yet is in its eventfd still, and known to nobody: so before a machine is
 * saved to go on elsewhere, stop who signals (vhost-user: GET_VRING_BASE), save
 * vgic_gsi_is_pending() of each GSI, and over there signal each GSI that has an eventfd
 * once. Drivers bear an interrupt too many, not one too few.
 *
 * Threads.
 *
 *   call                                   thread           beside
 *   -------------------------------------  ---------------  ------------------------
 *   vgic_irqfds_config_init, _create       any              anything
 *   vgic_irqfds_destroy                    any; not from    everything but calls of
 *                                          a callback       these irqfds
 *   vgic_irqfd_assign, vgic_irqfd_deassign any; not from    everything
 *                                          a callback
 *   vgic_irqfd_ready, vgic_irqfds_signal,  any              everything
 *   vgic_irqfds_get_stats
 *
 * Callbacks of the controller (kick) are made by the thread that injects: one of
 * the service's, the worker, or the caller of vgic_irqfd_ready() or
 * vgic_irqfds_signal().
 *
 * With the service the library holds a duplicate of each eventfd: a descriptor more for
 * each irqfd, and another for each resamplefd.
 *
 * Deassign and destroy wait until events that are being injected have been, kick()
 * and ops.inject() included: so these must not wait for a thread that is in such a
 * call, nor for a lock that the thread holds.
 *
 * Errors: 0 or a negative errno, as in vgic.h: a call that returns an error has
 * changed nothing. The irqfds that a call is for have to exist: NULL is looked for only
 * where it is said. All other pointers may be NULL, which is -EINVAL.
 */
#ifndef VGIC_IRQFD_H
#define VGIC_IRQFD_H

#include <vgic/route.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct vgic_irqfds; /* the irqfds of a route table */

#define VGIC_MAX_IRQFDS        65536u
#define VGIC_MAX_IRQFD_THREADS 64u
#define VGIC_MAX_IRQFD_SPIN_NS 1000000u
#define VGIC_NO_FD             (-1)

/* Who waits for the eventfds. */
enum vgic_irqfd_door {
	VGIC_IRQFD_SERVICE = 0, /* threads of the library's */
	VGIC_IRQFD_LOOP,        /* the VMM: ops.watch() and vgic_irqfd_ready() */
};

/* Which way events take. */
enum vgic_irqfd_path {
	VGIC_IRQFD_DIRECT = 0, /* the thread that sees an event injects it; the worker, if that would have to wait */
	VGIC_IRQFD_DEFERRED,   /* always the worker: a baseline */
};

/* The callbacks of irqfds; all may be NULL, except that VGIC_IRQFD_LOOP needs watch and unwatch. */
struct vgic_irqfd_ops {
	/*
	 * Begin to watch @fd for input, edge-triggered (EPOLLIN | EPOLLET), and call vgic_irqfd_ready() with @token
	 * each time it is signalled; if it has been signalled before, once for that. Without edge-triggering read the
	 * counter first. Made by vgic_irqfd_assign(), by its thread, with no lock held. Return 0 or a negative errno,
	 * which that returns.
	 */
	int (*watch)(void *opaque, int fd, uint64_t token);

	/* Stop it. Made by vgic_irqfd_deassign() and vgic_irqfds_destroy(). A token that comes later does no harm. */
	void (*unwatch)(void *opaque, int fd, uint64_t token);

	/*
	 * Inject an event of @gsi in place of vgic_signal_gsi(); not used for events that raise a line (irqfds with a
	 * resamplefd). @path says who calls: VGIC_IRQFD_DIRECT is the thread that saw the event, and -EWOULDBLOCK
	 * sends the event to the worker, which calls again with VGIC_IRQFD_DEFERRED. Returns as vgic_signal_gsi()
	 * otherwise, and what it does not deliver it keeps by itself: a -EAGAIN of vgic_signal_msi(), which is the same
	 * number, must not get out of it. vgic_signal_gsi() sees to masks and pauses.
	 */
	int (*inject)(void *opaque, uint32_t gsi, enum vgic_irqfd_path path);
};

struct vgic_irqfds_config {
	size_t size; /* sizeof(struct vgic_irqfds_config), set by vgic_irqfds_config_init() */

	enum vgic_irqfd_door door; /* default: VGIC_IRQFD_SERVICE */
	enum vgic_irqfd_path path; /* default: VGIC_IRQFD_DIRECT */
	uint32_t max_irqfds;       /* assigned at one time, 1 to VGIC_MAX_IRQFDS; default 4096 */
	uint32_t num_threads;      /* of the service, 1 to VGIC_MAX_IRQFD_THREADS; default 1; an irqfd stays with one */

	/*
	 * How long a thread of the service goes on looking before it sleeps, in nanoseconds, up to
	 * VGIC_MAX_IRQFD_SPIN_NS; 0, the default: not at all. It adapts: who looks in vain looks for half as long the
	 * next time, down to nothing, and events that come soon after each other bring it back. Costs system calls
	 * and processor time.
	 */
	uint32_t spin_ns;

	struct vgic_irqfd_ops ops;
	void *opaque; /* handed to every callback of ops */
};

/* vgic_irqfds_config_init() - fill a configuration with the defaults; every field is written. NULL is nothing. */
void vgic_irqfds_config_init(struct vgic_irqfds_config *config);

/**
 * vgic_irqfds_create() - make the irqfds of a route table, and start their threads.
 * @routes:  the table; must live longer
 * @config:  how; may be freed afterwards
 * @irqfds:  where they are stored; untouched on error
 *
 * A controller has at most one struct vgic_irqfds at a time. The threads have all signals blocked. There is a worker
 * only with VGIC_IRQFD_DEFERRED or ops.inject.
 *
 * Returns 0, or
 *   -EINVAL  a NULL pointer, a size that is no known one, an unknown value or one out of range; VGIC_IRQFD_LOOP
 *            without watch and unwatch
 *   -EBUSY   the controller has irqfds already
 *   -ENOMEM  no memory
 *   -ENOSYS  the library was built without irqfds
 *   -EAGAIN, -EMFILE, -ENFILE and others: what creating a thread, an eventfd or an epoll instance returned
 */
int vgic_irqfds_create(struct vgic_routes *routes, const struct vgic_irqfds_config *config,
		       struct vgic_irqfds **irqfds);

/**
 * vgic_irqfds_destroy() - deassign everything, stop the threads, and free.
 * @irqfds:  the irqfds, or NULL
 *
 * Events may be flying: eventfds being signalled, vCPUs ending interrupts. No call of these irqfds may be running or
 * come later; the VMM's own loop has stopped.
 */
void vgic_irqfds_destroy(struct vgic_irqfds *irqfds);

/**
 * vgic_irqfd_assign() - from now on a signal of an eventfd is an event on a GSI.
 * @irqfds:      the irqfds
 * @gsi:         the GSI; its route may be set before or after. Any number of eventfds may be assigned to it
 * @eventfd:     the eventfd; should stay open until it is deassigned, by this number. If it has been signalled already,
 *               that is an event. Closed too early, its number stays taken, and with VGIC_IRQFD_SERVICE signals of
 *               who has a duplicate are events until then
 * @resamplefd:  VGIC_NO_FD, or an eventfd made with EFD_NONBLOCK: then events raise the line, and its deactivation
 *               signals this one. The library keeps a duplicate of it
 *
 * Returns 0, or
 *   -EINVAL  an unknown GSI; @resamplefd is no eventfd, or not O_NONBLOCK: an EOI must not wait for who reads it
 *   -EBADF   @eventfd or @resamplefd is not open
 *   -EPERM   VGIC_IRQFD_SERVICE: @eventfd is a file that cannot be waited for
 *   -EBUSY   @eventfd is assigned already, to whichever GSI; or the GSI has an irqfd with a resamplefd, and this one
 *            has one too
 *   -ENOSPC  max_irqfds are assigned, or the limit on epoll watches is reached
 *   -EMFILE, -ENOMEM and others: what duplicating @resamplefd or @eventfd, or watching that, returned
 */
int vgic_irqfd_assign(struct vgic_irqfds *irqfds, uint32_t gsi, int eventfd, int resamplefd);

/**
 * vgic_irqfd_deassign() - undo it.
 * @irqfds:   the irqfds
 * @gsi:      the GSI that it was assigned to
 * @eventfd:  the eventfd, by its number
 *
 * When this returns, no event of that eventfd is injected any more, nor its resamplefd signalled: an injection that
 * is under way is waited for. With a resamplefd the line is lowered. One that a mask or a pause keeps is the GSI's by
 * then, and stays: see route.h.
 *
 * Returns 0, -EINVAL for an unknown GSI, or -ENOENT if @eventfd is not assigned to @gsi.
 */
int vgic_irqfd_deassign(struct vgic_irqfds *irqfds, uint32_t gsi, int eventfd);

/**
 * vgic_irqfd_ready() - VGIC_IRQFD_LOOP: an eventfd was signalled.
 * @irqfds:  the irqfds
 * @token:   what watch() was given
 *
 * Takes no lock and allocates nothing. Returns
 *   1        delivered, or handed to the worker
 *   0        the guest does not get it, or it is kept by a mask or by a pause
 *   -ENOENT  a token of an irqfd that has been deassigned, or of none: nothing was done
 *   or another error of vgic_signal_gsi()
 */
int vgic_irqfd_ready(struct vgic_irqfds *irqfds, uint64_t token);

/**
 * vgic_irqfds_signal() - an event of a GSI, without an eventfd, by the path of these irqfds.
 * @irqfds:  the irqfds
 * @gsi:     the GSI
 *
 * vgic_signal_gsi() with the counters, ops.inject and the worker of these irqfds. Returns as that; 1 also for an
 * event that was handed to the worker.
 */
int vgic_irqfds_signal(struct vgic_irqfds *irqfds, uint32_t gsi);

/*
 * Counters since creation, and each is exact once the calls and threads that count it have come to rest. Every event
 * that was seen is one of: direct, deferred, coalesced, dropped. A signal of an eventfd that comes before the one
 * before it was seen is merged by the kernel, and is not seen.
 */
struct vgic_irqfds_stats {
	size_t size;           /* sizeof(struct vgic_irqfds_stats), set by the caller */
	uint64_t direct;       /* injected by the thread that saw it */
	uint64_t deferred;     /* injected by the worker */
	uint64_t coalesced;    /* merged with one that the worker had not done yet, or that holds the line high still */
	uint64_t dropped;      /* the guest did not get it (no route, no mapping, ITS off), or its route has kept it */
	uint64_t stale;        /* seen after its irqfd was deassigned; not an event */
	uint64_t resamples;    /* signals of resamplefds */
	uint64_t waits;        /* system calls of the service's threads that waited for events, or looked for them */
	uint64_t empty_waits;  /* those of them that found nothing: looks of a thread before it sleeps */
	uint32_t num_assigned; /* irqfds now */
};

/* vgic_irqfds_get_stats() - Returns 0, or -EINVAL for a size that is no known one. */
int vgic_irqfds_get_stats(struct vgic_irqfds *irqfds, struct vgic_irqfds_stats *stats);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* VGIC_IRQFD_H */
