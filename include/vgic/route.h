/* SPDX-License-Identifier: MIT */
/*
 * libvgic - routes: from a GSI, a number that the VMM gives to a source of
 * interrupts, to an interrupt of the controller.
 *
 * A device, or the eventfd that it signals (irqfd.h), knows its GSI only. Where
 * that leads is an entry of a table, which the VMM changes as the guest programs
 * its devices: an SPI pin, an MSI, or nothing.
 *
 * Who signals never waits and never sees half a change: an entry is published by
 * one store, and a transaction publishes any number of them by one store too. An
 * event that meets a change goes to the old target or to the new one.
 *
 * Threads.
 *
 *   call                                   thread           beside
 *   -------------------------------------  ---------------  -----------------------
 *   vgic_routes_create                     any              anything
 *   vgic_routes_destroy                    any              nothing of this table
 *   vgic_signal_gsi, vgic_set_gsi,         any              everything
 *   vgic_gsi_is_pending
 *   vgic_route_set, vgic_route_get,        any              everything
 *   vgic_routes_get_stats
 *   vgic_route_txn_*                       any, one call    everything
 *                                          at a time for
 *                                          each transaction
 *
 * No lock is held from one call to the next. vgic_signal_gsi() and vgic_set_gsi()
 * take none at all, allocate nothing and make no system call; what they call back
 * is kick(), as vgic_set_spi() does. vgic_route_set() and vgic_route_txn_commit()
 * may call kick() too: they lower lines and deliver what was kept. None of these
 * calls may be made from a callback of the controller, except vgic_signal_gsi()
 * and vgic_set_gsi() from deactivated().
 *
 * Masks and pauses. An event whose entry is masked, or leads to an MSI while the
 * controller is paused (vgic_pause() of state.h), is *kept*: one for each GSI, as the
 * pending bit of an MSI-X vector. It is delivered, once, when nothing holds it up any
 * more: by vgic_route_set() or vgic_route_txn_commit() when the mask goes, by
 * vgic_resume() when the pause ends, in both cases to where the entry leads then. An
 * entry that is set to VGIC_ROUTE_NONE, or destroyed, drops what it has kept. What is
 * kept is not in the image of vgic_save(): vgic_gsi_is_pending() says what the VMM has
 * to take along.
 *
 * A change of a line's route waits until those who are driving that line at the
 * moment have done so, kick() included: so kick() must not wait for a thread that is
 * in such a call, nor for a lock that the thread holds.
 *
 * Errors: 0 or a negative errno, as in vgic.h: a call that returns an error has
 * changed nothing. The table that a call is for has to exist: NULL is looked for only
 * where it is said. All other pointers may be NULL, which is -EINVAL.
 */
#ifndef VGIC_ROUTE_H
#define VGIC_ROUTE_H

#include <vgic/vgic.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct vgic_routes; /* the route table of a controller */

#define VGIC_MAX_GSIS 65536u

/* ---- Entries -------------------------------------------------------------- */

enum vgic_route_type {
	VGIC_ROUTE_NONE = 0, /* leads nowhere: events are dropped and counted */
	VGIC_ROUTE_SPI,      /* a source of an SPI's line */
	VGIC_ROUTE_MSI,      /* a write to a doorbell */
};

/*
 * Flags of an entry, not of an SPI. While an entry is masked, an event is kept. That is the mask bit of an MSI-X
 * vector, and what is kept is its pending bit: vgic_gsi_is_pending().
 */
#define VGIC_ROUTE_MASKED (1u << 0)

struct vgic_route_spi {
	uint32_t intid;  /* 32 to 31 + num_spis */
	uint32_t source; /* 0 to VGIC_NUM_LINE_SOURCES-1; with the INTID it belongs to one GSI of the table */
};

struct vgic_route_msi {
	uint64_t address;   /* as of vgic_signal_msi(): a doorbell */
	uint32_t data;      /* EventID, or INTID of a message-based SPI */
	uint32_t devid;     /* DeviceID, if... */
	uint32_t msi_flags; /* ...VGIC_MSI_VALID_DEVID is set here; an ITS needs it */
	uint32_t reserved;  /* 0 */
};

struct vgic_route {
	enum vgic_route_type type;
	uint32_t flags; /* VGIC_ROUTE_* */
	union {
		struct vgic_route_spi spi; /* VGIC_ROUTE_SPI */
		struct vgic_route_msi msi; /* VGIC_ROUTE_MSI */
	} to;
};

/* ---- The table -------------------------------------------------------------- */

/**
 * vgic_routes_create() - make a route table in which every GSI leads nowhere.
 * @vgic:      the controller that it leads to; must live longer than the table
 * @num_gsis:  GSIs 0 to @num_gsis-1; 1 to VGIC_MAX_GSIS
 * @routes:    where the new table is stored; untouched on error
 *
 * All memory is allocated here: 120 bytes for each GSI, and 192 for each SPI. A controller may have several tables; a
 * source of a line must then be used by one of them. What any of them keeps in a pause is delivered by vgic_resume(),
 * from its creation, which may be in a pause, to its destruction.
 *
 * Returns 0, or
 *   -EINVAL  a NULL pointer, or @num_gsis out of range
 *   -ENOMEM  no memory
 */
int vgic_routes_create(struct vgic *vgic, uint32_t num_gsis, struct vgic_routes **routes);

/**
 * vgic_routes_destroy() - free a table.
 * @routes:  the table, or NULL
 *
 * No other call of this table may be running or come later, and no struct vgic_irqfds or struct vgic_msix of it may be
 * left; a vgic_resume() may run, and is waited for. The lines that its entries hold high are lowered, and what they
 * have kept is dropped.
 */
void vgic_routes_destroy(struct vgic_routes *routes);

uint32_t vgic_routes_num_gsis(const struct vgic_routes *routes);

/**
 * vgic_route_set() - change one entry.
 * @routes:  the table
 * @gsi:     the entry
 * @route:   where it leads from now on
 *
 * In constant time; events that are signalled after the return go there, and so does one that was kept, unless it has
 * to wait still. The doorbell of an MSI is looked up now. If
 * the entry led to another source of an SPI, that source is lowered: a level does not move along with its route. Who
 * holds it high sets it again; an irqfd with a resamplefd is told so by a signal of that.
 *
 * A guest decides what the address of an MSI-X vector is, and may give one where no doorbell is. That must not stop
 * the VMM: it sets VGIC_ROUTE_NONE then, so that the events are dropped and counted. struct vgic_msix (msix.h) does
 * so.
 *
 * Returns 0, or
 *   -EINVAL  an unknown GSI, type or flag; an SPI that is masked, or whose INTID or source is out of range; for an
 *            ITS no DeviceID
 *   -ENODEV  VGIC_ROUTE_MSI: no doorbell at that address
 *   -EBUSY   the entry is part of a transaction that is open, or is that of a vector of a struct vgic_msix, which alone
 *            changes it; or the SPI's source belongs to another GSI
 */
int vgic_route_set(struct vgic_routes *routes, uint32_t gsi, const struct vgic_route *route);

/*
 * vgic_route_get() - what the entry was set to last; not what an open transaction will make of it. Returns 0 or
 * -EINVAL.
 */
int vgic_route_get(struct vgic_routes *routes, uint32_t gsi, struct vgic_route *route);

/* ---- Transactions ------------------------------------------------------------ */

/*
 * Many entries at once. The structure is the caller's; any number of transactions may be open, as long as no two of
 * them have an entry, or a source of an SPI, in common. Opened by vgic_route_txn_begin(), closed by commit or abort.
 */
struct vgic_route_txn {
	struct vgic_routes *routes; /* NULL: closed */
	uint64_t id;                /* this and the others are the library's */
	uint32_t first;
	uint32_t num; /* entries in it */
};

/*
 * vgic_route_txn_begin() - open a transaction. Nothing is allocated or locked. Returns 0, or -EINVAL for a NULL
 * pointer.
 */
int vgic_route_txn_begin(struct vgic_routes *routes, struct vgic_route_txn *txn);

/**
 * vgic_route_txn_set() - say what an entry will be after the commit.
 * @txn:    an open transaction
 * @gsi:    the entry; may be set several times
 * @route:  where it will lead
 *
 * Nobody sees anything of it before the commit. In constant time.
 *
 * Returns 0; -EINVAL, also for a closed transaction, -ENODEV or -EBUSY as vgic_route_set(). The transaction stays
 * open after an error, as it was before the call. Sources of SPIs are looked at in the transaction's order: to
 * exchange those of two GSIs, set one of these to VGIC_ROUTE_NONE first.
 */
int vgic_route_txn_set(struct vgic_route_txn *txn, uint32_t gsi, const struct vgic_route *route);

/**
 * vgic_route_txn_commit() - publish all of it at once, and close it.
 * @txn:  an open transaction; of a closed one nothing happens
 *
 * Cannot fail; its time is that of the entries changed, whatever the table's size. For a thread that has seen one of
 * the new entries, all of them are new.
 */
void vgic_route_txn_commit(struct vgic_route_txn *txn);

/* vgic_route_txn_abort() - forget all of it, and close it. Nothing happens to a closed one. */
void vgic_route_txn_abort(struct vgic_route_txn *txn);

/* ---- Signals -------------------------------------------------------------------- */

/**
 * vgic_signal_gsi() - an event: an MSI, or an edge of a line.
 * @routes:  the table
 * @gsi:     the source
 *
 * To an MSI as vgic_signal_msi(), to an SPI as vgic_pulse_spi(). What the caller wrote to memory before is visible to
 * the guest after the acknowledge.
 *
 * Returns
 *   1        the interrupt was made pending or was pending already
 *   0        the guest blocks it, as those functions say; or the event is kept, by a mask or by a pause
 *   -EBUSY   the ITS is off
 *   -ENOENT  the GSI has no route: counted
 *   -EINVAL  an unknown GSI
 */
int vgic_signal_gsi(struct vgic_routes *routes, uint32_t gsi);

/**
 * vgic_set_gsi() - drive the line that a GSI stands for.
 * @routes:  the table
 * @gsi:     the source
 * @level:   true: high
 *
 * To an SPI as vgic_set_spi() with the entry's source. For an MSI, true is vgic_signal_gsi() and false does nothing.
 *
 * Returns
 *   1        the source was at the other level before, or the MSI was made pending
 *   0        it was at that level already, or as vgic_signal_gsi()
 *   -EBUSY, -ENOENT, -EINVAL as vgic_signal_gsi()
 */
int vgic_set_gsi(struct vgic_routes *routes, uint32_t gsi, bool level);

/* vgic_gsi_is_pending() - is an event of a GSI kept, by a mask or by a pause? Returns 1, 0 or -EINVAL. */
int vgic_gsi_is_pending(struct vgic_routes *routes, uint32_t gsi);

/* ---- Statistics ------------------------------------------------------------------- */

struct vgic_routes_stats {
	size_t size;          /* sizeof(struct vgic_routes_stats), set by the caller */
	uint64_t changes;     /* entries published, by vgic_route_set() and by commits */
	uint64_t commits;     /* transactions committed that had entries */
	uint64_t aborts;      /* transactions aborted that had entries */
	uint64_t unrouted;    /* events dropped because the GSI has no route */
	uint64_t kept;        /* events that met a mask or a pause, those merged with one kept already included */
	uint32_t num_routed;  /* entries that lead somewhere now */
	uint32_t num_changes; /* entries in open transactions now */
};

/* Counters since creation. Returns 0, or -EINVAL for a size that is no known one. */
int vgic_routes_get_stats(struct vgic_routes *routes, struct vgic_routes_stats *stats);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* VGIC_ROUTE_H */
