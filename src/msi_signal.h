/* SPDX-License-Identifier: MIT */
/*
 * msi_signal.h - the two ways of an MSI, for those who signal them (its.c, route.c): to
 * an ITS, if everything is as it mostly is, and to GICD_SETSPI_NSR.
 *
 * Any thread, no lock.
 */
#ifndef VGIC_MSI_SIGNAL_H
#define VGIC_MSI_SIGNAL_H

#include <errno.h>

#include "its.h"
#include "lpi_signal.h"

/* False if nothing was done: ask vgic_its_signal() why. */
static inline bool its_signal_at_once(struct vgic_its *its, uint64_t key)
{
	uint64_t value;

	/* In this order: a translation that was renewed behind Enabled=0 must not be taken for one of before. */
	return its_map_find_first(&its->map, key, &value) && load_acquire(&its->enabled) &&
	       lpi_signal_at_once(its->vgic, value);
}

/* A write of an INTID to GICD_SETSPI_NSR by a device. Returns 1, 0 if it is no SPI, or -EAGAIN during a pause. */
static inline __attribute__((always_inline)) int spi_signal_message(struct vgic *vgic, uint32_t intid)
{
	if (intid - FIRST_SPI >= vgic->num_spis)
		return 0;
	irq_change(vgic, &vgic->spis[intid - FIRST_SPI], irq_message_set, 0);
	/*
	 * Behind the CAS: a save either sees that, or is seen here. Store buffering through a read-modify-write of another
	 * word, as in group_was_disabled() (cpuif.c). Both may be the case: then the message comes twice.
	 */
	return (load_seq_cst(&vgic->pause_sequence) & 1) ? -EAGAIN : 1;
}

#endif /* VGIC_MSI_SIGNAL_H */
