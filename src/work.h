/* SPDX-License-Identifier: MIT */
/*
 * work.h - work that a register write may leave: done in parts of bounded length.
 *
 * A guest can ask for much with one write: a queue of 32,767 commands, each of
 * which may touch every LPI. One access does WORK_STEPS of it. What is left is
 * announced to the VMM, which calls vgic_run_work(); a read of a register that
 * shows progress does a part as well, so that a guest that polls gets on even if
 * the VMM does nothing.
 */
#ifndef VGIC_WORK_H
#define VGIC_WORK_H

#include "vgic_internal.h"

/* About 100 microseconds. */
#define WORK_STEPS 4096

/*
 * The end of a register write that may have made work. Takes over config_lock from
 * the caller, does a part, releases the lock, and announces what is left.
 */
void work_finish_write(struct vgic *vgic);

/* Do a part: a read of a register that shows progress, before it takes the lock. Returns true if nothing is left. */
bool work_do_some(struct vgic *vgic);

#endif /* VGIC_WORK_H */
