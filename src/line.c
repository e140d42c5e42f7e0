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

int line_signal_message(struct vgic *vgic, uint32_t intid)
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

int vgic_set_ppi(struct vgic_vcpu *vcpu, uint32_t intid, unsigned source, bool level)
{
	if (intid < NUM_SGIS || intid >= NUM_PRIVATE)
		return -EINVAL;
	return set_line(vcpu->vgic, &vcpu->private_irqs[intid], source, level);
}

int vgic_pulse_spi(struct vgic *vgic, uint32_t intid)
{
	if (intid - FIRST_SPI >= vgic->num_spis)
		return -EINVAL;
	return (irq_change(vgic, &vgic->spis[intid - FIRST_SPI], irq_pulse, 0) & IRQ_EDGE) ? 1 : 0;
}
