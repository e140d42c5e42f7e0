/* SPDX-License-Identifier: MIT */
/*
 * libvgic - the message interrupts of a PCI device: MSI-X and MSI.
 *
 * A struct vgic_msix is what the guest's driver sees of them (the MSI-X table and
 * pending bits in a BAR, the Message Control register) joined to routes, and to
 * eventfds where the device is in another process. The VMM gives it a range of
 * GSIs, forwards the guest's accesses, and signals vectors:
 *
 *   device in the VMM      vgic_msix_signal(msix, vector), any thread
 *   device elsewhere       vgic_msix_bind(): an eventfd for each vector, once
 *
 * Both at once is possible. An event of a vector that is masked, by its own bit or
 * by the function's, is kept as its pending bit and delivered when it is unmasked; so
 * is one that comes in a pause (vgic_pause() of state.h), and delivered by
 * vgic_resume(). While MSI-X is disabled there are no events: they are dropped.
 *
 * To take a device along to another place, save its registers and its pending bits,
 * while the controller is paused and the device has stopped. Over there, when the
 * controller has been restored, enable it with the function masked, signal what was
 * pending, and write the registers as they were.
 *
 * A vector whose address is no doorbell is *unroutable*: its events are dropped
 * and counted (struct vgic_routes_stats.unrouted). What a guest writes never makes
 * a call fail.
 *
 * Threads.
 *
 *   call                                   thread           beside
 *   -------------------------------------  ---------------  ------------------------
 *   vgic_msix_config_init, _create         any              anything
 *   vgic_msix_destroy                      any              nothing of this msix
 *   vgic_msix_signal                       any              everything
 *   all others                             any              everything
 *
 * vgic_msix_signal() takes no lock. The others take one that is this device's own,
 * and none of them may be made from a callback. Unbinding waits for events that are
 * being injected, as vgic_irqfd_deassign() does.
 *
 * The device that a call is for has to exist: NULL is looked for only where it is
 * said. All other pointers may be NULL, which is -EINVAL.
 */
#ifndef VGIC_MSIX_H
#define VGIC_MSIX_H

#include <vgic/irqfd.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct vgic_msix; /* the message interrupts of a device */

#define VGIC_MAX_MSIX_VECTORS 2048u
#define VGIC_MAX_MSI_VECTORS  32u

#define VGIC_MSIX_ENTRY_SIZE 16u /* of the table, in bytes: address, upper address, data, vector control */

/* Bits of the Message Control register of MSI-X. */
#define VGIC_MSIX_CONTROL_SIZE          0x07ffu /* vectors - 1; read-only */
#define VGIC_MSIX_CONTROL_FUNCTION_MASK 0x4000u /* all vectors are masked */
#define VGIC_MSIX_CONTROL_ENABLE        0x8000u

/* Bit of an entry's Vector Control. */
#define VGIC_MSIX_VECTOR_MASKED 1u

enum vgic_msix_kind {
	VGIC_MSIX = 0, /* a table of entries; 1 to VGIC_MAX_MSIX_VECTORS vectors */
	VGIC_MSI,      /* one address for 1, 2, 4, 8, 16 or VGIC_MAX_MSI_VECTORS vectors */
};

struct vgic_msix_config {
	size_t size; /* sizeof(struct vgic_msix_config), set by vgic_msix_config_init() */

	enum vgic_msix_kind kind;
	uint32_t num_vectors;
	struct vgic_routes *routes;
	uint32_t first_gsi; /* vector n is GSI first_gsi + n: this device alone changes the routes of the range */
	uint32_t devid;     /* DeviceID: of PCI the requester id, through the bridge's msi-map */
	struct vgic_irqfds *irqfds; /* of the same table; NULL: no eventfds can be bound */
};

/*
 * vgic_msix_config_init() - every field gets its default: MSI-X with one vector; routes must be set. Nothing happens to
 * NULL.
 */
void vgic_msix_config_init(struct vgic_msix_config *config);

/**
 * vgic_msix_create() - make a device's message interrupts, in the state after its reset.
 * @config:  what they are; may be freed afterwards
 * @msix:    where they are stored; untouched on error
 *
 * Routes and irqfds must live longer. All memory is allocated here, 64 bytes for each vector. Until the destruction
 * vgic_route_set() and vgic_route_txn_set() of its GSIs are -EBUSY, so that what the guest writes always takes effect.
 *
 * Returns 0, or
 *   -EINVAL  a NULL pointer, a size that is no known one, an unknown kind, a number of vectors that it does not have,
 *            or GSIs past the end of the table
 *   -EBUSY   one of the GSIs leads somewhere already, is part of an open transaction, or another device's
 *   -ENOMEM  no memory
 */
int vgic_msix_create(const struct vgic_msix_config *config, struct vgic_msix **msix);

/* vgic_msix_destroy() - unbind the eventfds, take the routes away, and free. NULL is nothing. */
void vgic_msix_destroy(struct vgic_msix *msix);

/*
 * vgic_msix_reset() - the device was reset: disabled, all entries 0 and masked, nothing pending. Eventfds stay bound.
 */
void vgic_msix_reset(struct vgic_msix *msix);

/* ---- Events ------------------------------------------------------------------ */

/**
 * vgic_msix_signal() - the device has an event on a vector.
 * @msix:    the device's
 * @vector:  0 to num_vectors-1. With MSI those above the number that the guest has enabled are folded into it
 *           (modulo)
 *
 * Returns as vgic_signal_gsi(): 1, 0 (also if the event is kept, as the vector is masked or the controller is paused),
 * -EBUSY, -ENOENT (disabled or unroutable), or -EINVAL for a vector out of range.
 */
int vgic_msix_signal(struct vgic_msix *msix, uint32_t vector);

/**
 * vgic_msix_bind() - an eventfd for each vector.
 * @msix:      the device's; made with irqfds
 * @eventfds:  @num of them, for vectors 0 to @num-1; VGIC_NO_FD: none for that vector
 * @num:       1 to num_vectors
 * @failed:    on error the vector whose eventfd could not be bound; may be NULL
 *
 * All or nothing: on error those that were bound already have been unbound. They stay bound while the guest masks,
 * disables, enables and moves vectors.
 *
 * Returns 0; -EINVAL for @num out of range or without irqfds, and -EBUSY if eventfds are bound (*failed is then
 * num_vectors); or what vgic_irqfd_assign() returned.
 */
int vgic_msix_bind(struct vgic_msix *msix, const int *eventfds, uint32_t num, uint32_t *failed);

/* vgic_msix_unbind() - undo it: as vgic_irqfd_deassign() for each. Nothing happens if none is bound. */
void vgic_msix_unbind(struct vgic_msix *msix);

/* ---- MSI-X: the guest's accesses ------------------------------------------------ */

/*
 * The table and the pending bits by offset from their beginning in the BAR. Widths
 * are 1, 2, 4 or 8 bytes, values little-endian. Accesses of 4 and 8 bytes that are
 * aligned are what the specification defines; others read as zero and are ignored.
 * The pending bits are read-only: there is no write.
 *
 *   -EINVAL  a width that is not 1, 2, 4 or 8, a device with MSI, or nowhere to put what is read
 *   -ENXIO   past the end: num_vectors * VGIC_MSIX_ENTRY_SIZE bytes of table, a multiple of 8 bytes of pending bits
 */
int vgic_msix_table_read(struct vgic_msix *msix, uint32_t offset, unsigned width, uint64_t *value);
int vgic_msix_table_write(struct vgic_msix *msix, uint32_t offset, unsigned width, uint64_t value);
int vgic_msix_pba_read(struct vgic_msix *msix, uint32_t offset, unsigned width, uint64_t *value);

/*
 * The Message Control register. A write changes VGIC_MSIX_CONTROL_ENABLE and FUNCTION_MASK, of all vectors at once.
 * With MSI the read is 0, and the write is ignored.
 */
uint16_t vgic_msix_read_control(struct vgic_msix *msix);
void vgic_msix_write_control(struct vgic_msix *msix, uint16_t control);

/* ---- MSI: the capability as the guest has written it ------------------------------ */

/* What the registers of the capability say. */
struct vgic_msi_state {
	uint64_t address;
	uint16_t data;
	uint16_t num_enabled; /* vectors, from Multiple Message Enable: 1 to num_vectors; 0: MSI is disabled */
	uint32_t masked;      /* Mask Bits: one bit for each vector; 0 without per-vector masking */
};

/*
 * vgic_msi_configure() - a register of the capability was written. Returns 0, or -EINVAL for num_enabled, or with
 * MSI-X.
 */
int vgic_msi_configure(struct vgic_msix *msix, const struct vgic_msi_state *state);

/* vgic_msi_pending() - the Pending Bits register; 0 with MSI-X. */
uint32_t vgic_msi_pending(struct vgic_msix *msix);

/* ---- All in one ------------------------------------------------------------------- */

/* One vector, as of a table that is kept elsewhere (VFIO, a restored device). */
struct vgic_msix_vector {
	uint64_t address;
	uint32_t data;
	uint32_t control;  /* VGIC_MSIX_VECTOR_MASKED or 0 */
	int32_t eventfd;   /* VGIC_NO_FD: none */
	uint32_t reserved; /* 0 */
};

/**
 * vgic_msix_enable() - enable a device with all its vectors: entries, routes, eventfds.
 * @msix:     the device's; MSI-X, disabled, no eventfds bound
 * @vectors:  @num of them; those above are as after a reset
 * @num:      1 to num_vectors
 * @failed:   on error the vector that could not be bound; may be NULL
 *
 * One transaction for all routes; the eventfds are bound after its commit. All or nothing: on error everything is as
 * before, and nothing stays bound.
 *
 * Returns 0; -EINVAL for MSI, @num out of range, an unknown bit of control, or eventfds without irqfds; -EBUSY if it
 * is enabled or bound (*failed is then num_vectors); or what vgic_irqfd_assign() returned.
 */
int vgic_msix_enable(struct vgic_msix *msix, const struct vgic_msix_vector *vectors, uint32_t num, uint32_t *failed);

/* vgic_msix_disable() - unbind the eventfds, then disable. Entries and masks stay as they are. */
void vgic_msix_disable(struct vgic_msix *msix);

/*
 * vgic_msix_mask(), vgic_msix_unmask() - the mask bit of one vector, as if the guest had written it. Returns 0 or
 * -EINVAL for a vector out of range.
 */
int vgic_msix_mask(struct vgic_msix *msix, uint32_t vector);
int vgic_msix_unmask(struct vgic_msix *msix, uint32_t vector);

/*
 * One vector as the guest has programmed it, with the eventfd bound. Returns 0, -EINVAL for a vector out of range.
 */
int vgic_msix_get_vector(struct vgic_msix *msix, uint32_t vector, struct vgic_msix_vector *state);

/* Vectors that are enabled and unmasked, but whose address is no doorbell. */
uint32_t vgic_msix_num_unroutable(struct vgic_msix *msix);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* VGIC_MSIX_H */
