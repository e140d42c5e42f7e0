/* SPDX-License-Identifier: MIT */
/*
 * work.c - bounded work: every ITS and redistributor in turn.
 */
#include "work.h"

#include "its.h"
#include "lpi.h"

/* Under config_lock. Returns true if nothing is left. */
static bool do_part(struct vgic *vgic)
{
	int steps = WORK_STEPS;
	bool done = true;

	if (!vgic->work_left)
		return true;
	/* Redistributors first: a queue that goes on for ever must not keep an EnableLPIs waiting. */
	for (uint32_t i = 0; i < vgic->num_vcpus && vgic->num_lpis; i++)
		done &= redist_run_work(vgic->vcpus[i], &steps);
	/* The ITSes take turns in being first, for the same reason. */
	for (uint32_t i = 0; i < vgic->num_itses; i++)
		done &= its_run_work(vgic->itses[(vgic->work_turn + i) % vgic->num_itses], &steps);
	vgic->work_turn++;
	vgic->work_left = !done;
	return done;
}

void work_finish_write(struct vgic *vgic)
{
	bool announce;

	vgic->work_left = true;
	announce = !do_part(vgic);
	config_unlock(vgic);
	if (announce && vgic->ops.work_pending)
		vgic->ops.work_pending(vgic->opaque);
}

bool work_do_some(struct vgic *vgic)
{
	bool done;

	config_lock(vgic);
	done = do_part(vgic);
	config_unlock(vgic);
	return done;
}

int vgic_run_work(struct vgic *vgic)
{
	return work_do_some(vgic) ? 0 : 1;
}
