/* SPDX-License-Identifier: MIT */
/*
 * check.c - the invariant at rest, for tests: whatever is deliverable can be
 * reached by its hint at the vCPU that its word names.
 */
#include "pending.h"
#include "vgic_internal.h"

struct check {
	struct vgic *vgic;
	unsigned broken;
	uint32_t first;
};

static void check_irq(struct check *c, const struct irq *irq)
{
	const irq_word w = load_seq_cst(&irq->word);
	bool fine = true;

	if (irq_is_deliverable(w) && irq_target(w) != IRQ_NO_TARGET)
		fine = pending_is_hinted(&c->vgic->vcpus[irq_target(w)]->pending, irq->number, irq_level(w));
	/* The line is the OR of its sources: both are in the word and must agree. */
	if (!(w & IRQ_LPI) && ((w & IRQ_LINE) != 0) != ((w & IRQ_SOURCES_MASK) != 0))
		fine = false;
	if (!fine && c->broken++ == 0)
		c->first = irq->intid;
}

unsigned vgic_check_at_rest(struct vgic *vgic, uint32_t *intid)
{
	struct check c = { .vgic = vgic };

	for (uint32_t v = 0; v < vgic->num_vcpus; v++) {
		for (uint32_t i = 0; i < NUM_PRIVATE; i++)
			check_irq(&c, &vgic->vcpus[v]->private_irqs[i]);
	}
	for (uint32_t i = 0; i < vgic->num_spis; i++)
		check_irq(&c, &vgic->spis[i]);
	for (uint32_t i = 0; i < vgic->num_lpis; i++)
		check_irq(&c, &vgic->lpis[i]);
	if (intid)
		*intid = c.first;
	return c.broken;
}
