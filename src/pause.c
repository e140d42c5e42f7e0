/* SPDX-License-Identifier: MIT */
/*
 * pause.c - accept no more MSIs, for a save.
 *
 * A signal is one CAS and knows nothing of a save. So a pause uses what turns signals
 * away already: Enabled, which each signal looks at after its lookup, is cleared in
 * every ITS, though the guest goes on reading 1; then every mapped LPI gets a new
 * generation, and every translation with it. A signal that had looked its event up
 * before fails at its CAS and looks again; one that finds the new value finds
 * Enabled=0. Either way it is told to come again. Unlike GITS_CTLR.Enabled=0 this
 * includes LPIs with several translations: all ITSes are paused at once.
 *
 * Was it the guest that cleared Enabled, or a pause? `pause_sequence` is odd from
 * before a pause clears it until after the end of the pause has set it. Who reads the
 * same even number before and behind Enabled=0 has met the guest's.
 *
 * A message to GICD_SETSPI_NSR has no generation. Its signaller looks at the sequence
 * after its CAS: either the save sees the CAS, or the signaller sees the pause.
 *
 * A signal by way of a route is kept there (route.c, R20), and the end of the pause
 * delivers it.
 *
 * Owns `pauses` and `pause_sequence`, under config_lock.
 */
#include <errno.h>

#include "irq_change.h"
#include "its.h"
#include "route.h"
#include "state.h"
#include "work.h"

static void renew_lpis(struct vgic *vgic)
{
	for (uint32_t i = 0; i < vgic->num_lpis; i++) {
		if (load_relaxed(&vgic->lpis[i].word) & IRQ_MAPPED)
			irq_change(vgic, &vgic->lpis[i], irq_lpi_renew, 0);
	}
}

static void renew_translations(struct vgic_its *its)
{
	for (uint32_t i = 0; i < its->map.nodes_end; i++) {
		struct translation *node = &its->map.nodes[i];
		uint64_t lpi;

		if (load_relaxed(&node->key) == TRANSLATION_FREE)
			continue;
		lpi = load_relaxed(&node->value) & TRANSLATION_LPI_MASK;
		its_map_set_value(node, lpi_value(its->vgic, &its->vgic->lpis[lpi]));
	}
}

bool state_pause_for_reset(struct vgic *vgic)
{
	if (vgic->pauses++ > 0)
		return false;
	store_seq_cst(&vgic->pause_sequence, load_relaxed(&vgic->pause_sequence) + 1);
	for (uint32_t i = 0; i < vgic->num_itses; i++)
		store_release(&vgic->itses[i]->enabled, false);
	full_fence();
	return true;
}

void state_pause(struct vgic *vgic)
{
	if (!state_pause_for_reset(vgic))
		return;
	renew_lpis(vgic);
	for (uint32_t i = 0; i < vgic->num_itses; i++)
		renew_translations(vgic->itses[i]);
}

void state_resume(struct vgic *vgic)
{
	if (--vgic->pauses > 0)
		return;
	for (uint32_t i = 0; i < vgic->num_itses; i++)
		its_update_enabled(vgic->itses[i]);
	/* R20: seq_cst, and route_resume() looks for what was kept behind it. */
	store_seq_cst(&vgic->pause_sequence, load_relaxed(&vgic->pause_sequence) + 1);
}

int vgic_pause(struct vgic *vgic)
{
	if (!vgic)
		return -EINVAL;
	config_lock(vgic);
	state_pause(vgic);
	config_unlock(vgic);
	return 0;
}

int vgic_resume(struct vgic *vgic)
{
	if (!vgic)
		return -EINVAL;
	config_lock(vgic);
	if (!vgic->pauses) {
		config_unlock(vgic);
		return -EINVAL;
	}
	state_resume(vgic);
	/* Commands may have been waiting, and events. */
	work_finish_write(vgic);
	route_resume(vgic);
	return 0;
}
