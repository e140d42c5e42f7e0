/* SPDX-License-Identifier: MIT */
/*
 * line.c - SPI and PPI lines, as devices drive them. No lock: a line is the OR of
 * its sources, and both are in the state word.
 */
#include <errno.h>

#include "irq_change.h"
#include "vgic_internal.h"

_Static_assert(VGIC_NUM_LINE_SOURCES <= IRQ_SOURCE_MESSAGE && IRQ_SOURCE_MESSAGE < IRQ_NUM_SOURCES,
	       "the VMM's sources, and after them the library's own, fit into the state word");

static int set_line(struct vgic *vgic, struct irq *irq, unsigned source, bool level)
{
	DELIVERS_WITHOUT_LOCKS;

	if (source >= VGIC_NUM_LINE_SOURCES)
		return -EINVAL;
	if (level)
		irq_change(vgic, irq, irq_raise, source);
	else
		irq_change(vgic, irq, irq_lower, source);
	return 0;
}

int vgic_set_spi(struct vgic *vgic, uint32_t intid, unsigned source, bool level)
{
	if (intid - FIRST_SPI >= vgic->num_spis)
		return -EINVAL;
	return set_line(vgic, &vgic->spis[intid - FIRST_SPI], source, level);
}

int vgic_set_ppi(struct vgic_vcpu *vcpu, uint32_t intid, unsigned source, bool level)
{
	if (intid < NUM_SGIS || intid >= NUM_PRIVATE)
		return -EINVAL;
	return set_line(vcpu->vgic, &vcpu->private_irqs[intid], source, level);
}

int vgic_pulse_spi(struct vgic *vgic, uint32_t intid)
{
	DELIVERS_WITHOUT_LOCKS;

	if (intid - FIRST_SPI >= vgic->num_spis)
		return -EINVAL;
	return (irq_change(vgic, &vgic->spis[intid - FIRST_SPI], irq_pulse, 0) & IRQ_EDGE) ? 1 : 0;
}
