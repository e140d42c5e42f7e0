/* SPDX-License-Identifier: MIT */
/*
 * route_model.h - what has to come of calls to routes, irqfds and MSI-X, for the fuzz
 * target of them: naive, and written from the headers of the library. Each function is
 * named after a call, and returns what that call has to return.
 *
 * The controller: one vCPU; SPIs of which the first half is edge-triggered and the
 * second level-sensitive, all of one priority; an ITS where event e of device d is the
 * LPI 8192 + d * MODEL_EVENTS + e.
 */
#ifndef TESTS_FUZZ_ROUTE_MODEL_H
#define TESTS_FUZZ_ROUTE_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <vgic/msix.h>

#define MODEL_DIST_BASE 0x08000000ull
#define MODEL_ITS_BASE  0x08080000ull

#define MODEL_SPIS         32u
#define MODEL_FIRST_LEVEL  16u /* of the SPIs */
#define MODEL_DEVICES      4u
#define MODEL_EVENTS       8u
#define MODEL_LPIS         (MODEL_DEVICES * MODEL_EVENTS)
#define MODEL_GSIS         16u
#define MODEL_FIRST_VECTOR 8u /* GSIs from here on are the vectors' */
#define MODEL_VECTORS      8u
#define MODEL_FDS          6u
#define MODEL_MAX_IRQFDS   5u
#define MODEL_MAX_TXNS     3u

#define MODEL_MESSAGE (1u << 24) /* the source of a line that a message holds */
#define MODEL_NOBODY  UINT32_MAX

struct model_gsi {
	struct vgic_route route;
	struct vgic_route staged;
	unsigned txn; /* number + 1 of the transaction that it is in, or 0 */
	bool kept;
	bool is_claimed;    /* by MSI-X */
	uint32_t resampler; /* number + 1 of the eventfd that resamples it, or 0 */
};

struct model_fd {
	bool is_signalled; /* at some time */
	bool is_assigned;
	uint32_t gsi;
	bool resamples;
	uint64_t num_resamples; /* not seen yet */
};

struct model_vector {
	uint64_t address;
	uint32_t data, control;
	unsigned fd; /* number + 1, or 0 */
};

struct model {
	/* The controller. */
	bool spi_latch[MODEL_SPIS], spi_active[MODEL_SPIS];
	uint32_t spi_sources[MODEL_SPIS];
	bool lpis[MODEL_LPIS];
	uint32_t running; /* what the vCPU is handling, or 0 */
	bool its_is_off;
	bool at_rest; /* there was nothing to take the last time */
	unsigned pauses;

	struct model_gsi gsis[MODEL_GSIS];
	bool txns[MODEL_MAX_TXNS]; /* open */
	struct model_fd fds[MODEL_FDS];
	bool watch_fails;
	struct {
		bool exists, enabled, function_masked;
		uint32_t num_bound; /* vectors that may have one */
		uint32_t num_unroutable;
		struct model_vector vectors[MODEL_VECTORS];
	} msix;

	uint64_t num_unrouted, num_kept, num_direct, num_coalesced, num_dropped;
};

/* ---- The guest ---- */

uint32_t model_pending_spis(const struct model *m);
/* It has acknowledged @intid: may that be? */
bool model_take(struct model *m, uint32_t intid);
void model_end(struct model *m);
void model_clear_message(struct model *m, uint32_t intid);
void model_resume(struct model *m);

/* ---- Events ---- */

int model_deliver(struct model *m, const struct vgic_route *route); /* vgic_signal_msi() */
int model_signal(struct model *m, uint32_t gsi);                    /* vgic_signal_gsi() */
int model_edge(struct model *m, uint32_t gsi);                      /* vgic_irqfds_signal() */
int model_drive(struct model *m, uint32_t gsi, bool level);         /* vgic_set_gsi() */
int model_event(struct model *m, unsigned fd);                      /* vgic_irqfd_ready() */

/* ---- Routes and irqfds ---- */

int model_set(struct model *m, uint32_t gsi, const struct vgic_route *route);
int model_stage(struct model *m, unsigned txn, uint32_t gsi, const struct vgic_route *route);
void model_commit(struct model *m, unsigned txn);
void model_abort(struct model *m, unsigned txn);
int model_assign(struct model *m, unsigned fd, uint32_t gsi, bool resamples);
int model_deassign(struct model *m, unsigned fd, uint32_t gsi);
unsigned model_num_assigned(const struct model *m);
void model_drop_irqfds(struct model *m);
void model_drop_routes(struct model *m);
void model_new_tables(struct model *m);

/* ---- MSI-X: @fds are numbers of eventfds, MODEL_FDS and above for none ---- */

int model_msix_create(struct model *m);
void model_msix_destroy(struct model *m);
void model_msix_reset(struct model *m);
void model_msix_control(struct model *m, bool enabled, bool function_masked);
uint16_t model_control(const struct model *m);
int model_table_write(struct model *m, uint32_t offset, unsigned width, uint64_t value);
uint64_t model_table_read(const struct model *m, uint32_t offset);
int model_msix_bind(struct model *m, const unsigned *fds, uint32_t num, uint32_t *failed);
void model_msix_unbind(struct model *m);
int model_msix_enable(struct model *m, const struct vgic_msix_vector *vectors, const unsigned *fds, uint32_t num,
		      uint32_t *failed);

#endif /* TESTS_FUZZ_ROUTE_MODEL_H */
