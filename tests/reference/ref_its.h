/* SPDX-License-Identifier: MIT */
/*
 * LPIs and ITSes of the reference GIC, as naive as the rest of it: arrays, and
 * linear searches through all of them. Whatever a register write asks for is done
 * when the write returns; what is bounded and continued in the library must come
 * to the same.
 *
 * Choices that the architecture leaves to the implementation are as the library
 * documents them: a wrong command is skipped; MOVALL and MAPC take every LPI along;
 * MAPTI over a live event replaces it; of two events on one LPI the last mapping
 * decides the target; an LPI that loses its last mapping loses its pending state.
 */
#ifndef TESTS_REF_ITS_H
#define TESTS_REF_ITS_H

#include <stdbool.h>
#include <stdint.h>

#include <vgic/vgic.h>

#include "ref_irq.h"

struct ref_lpis;

/* ---- For the reference GIC ---- */

/* @guest_errors are the counters of the GIC that these LPIs belong to. */
struct ref_lpis *ref_lpis_create(const struct vgic_config *config, uint64_t *guest_errors);
void ref_lpis_destroy(struct ref_lpis *lpis);
void ref_lpis_reset(struct ref_lpis *lpis);

/* The first pending LPI from @intid on; 0 if there is none. */
uint32_t ref_lpis_next_pending(const struct ref_lpis *lpis, uint32_t intid);
struct irq *ref_lpi(struct ref_lpis *lpis, uint32_t intid); /* NULL if there is none */
/* Can it be delivered at this vCPU, by its target and EnableLPIs? */
bool ref_lpi_is_at(const struct ref_lpis *lpis, uint32_t intid, uint32_t vcpu);

/* Have redistributors SETLPIR and CLRLPIR? Those of KVM have not. */
bool ref_lpis_are_direct(const struct ref_lpis *lpis);
bool ref_lpis_enabled(const struct ref_lpis *lpis, uint32_t vcpu);
void ref_lpis_enable(struct ref_lpis *lpis, uint32_t vcpu, bool enable);
/* The redistributor's 64-bit LPI registers, by their offset; @mask has the bits that are written. */
uint64_t ref_lpis_read(const struct ref_lpis *lpis, uint32_t vcpu, uint32_t offset);
void ref_lpis_write(struct ref_lpis *lpis, uint32_t vcpu, uint32_t offset, uint64_t value, uint64_t mask);

/* ---- For tests ---- */

/* Hand this to the guest memory callbacks from now on, in place of the configuration's opaque. */
void ref_lpis_use_memory(struct ref_lpis *lpis, void *opaque);

int ref_its_read(struct ref_lpis *lpis, uint32_t its, uint32_t offset, unsigned width, uint64_t *value);
int ref_its_write(struct ref_lpis *lpis, uint32_t its, uint32_t offset, unsigned width, uint64_t value);
int ref_its_signal(struct ref_lpis *lpis, uint32_t its, uint32_t devid, uint32_t eventid);
struct vgic_its_stats ref_its_stats(const struct ref_lpis *lpis, uint32_t its);
/* Some event that is mapped, found from place @start on; false if none is. */
bool ref_its_some_event(const struct ref_lpis *lpis, uint32_t its, uint32_t start, uint32_t *devid, uint32_t *eventid);
/*
 * What an ITS and a redistributor need not remember, and tables in guest memory do not hold: where an LPI was that is neither
 * mapped nor pending, configuration that has changed since it was read, GICR_PENDBASER.PTZ.
 */
void ref_lpis_forget(struct ref_lpis *lpis);
/* How often a signal met a pending LPI, and an LPI was mapped by two events at once. */
uint64_t ref_lpis_merged(const struct ref_lpis *lpis);
uint64_t ref_lpis_shared(const struct ref_lpis *lpis);

#endif /* TESTS_REF_ITS_H */
