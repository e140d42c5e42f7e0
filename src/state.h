/* SPDX-License-Identifier: MIT */
/*
 * state.h - what the files that save and restore share.
 *
 *   state_attr.c   KVM's device attributes    its_state.c      ITS tables in guest memory
 *   lpi_state.c    pending tables             its_image.[ch]   what an ITS has mapped
 *   state_save.c   the image of a controller  state_restore.c  a controller from an image
 *   pause.c        no more MSIs               state_stream.h   the bytes of an image
 */
#ifndef VGIC_STATE_INTERNAL_H
#define VGIC_STATE_INTERNAL_H

#include <vgic/state.h>

#include "vgic_internal.h"

/* 0, or -EBUSY if a vCPU is between vgic_enter_guest() and vgic_exit_guest(). */
int state_check_stopped(struct vgic *vgic);

/* ---- pause.c, under config_lock ---- */

void state_pause(struct vgic *vgic);
void state_resume(struct vgic *vgic);

/*
 * A pause whose caller gives every LPI a new generation, by a reset: what is under way is turned away then. Returns
 * whether it was the first.
 */
bool state_pause_for_reset(struct vgic *vgic);

/* ---- lpi_state.c, under config_lock ---- */

/* VGIC_CTRL_SAVE_PENDING_TABLES. Returns 0, -ENOMEM or -EFAULT. */
int lpi_save_pending_tables(struct vgic *vgic);

/* ---- its_state.c, under config_lock ---- */

/* VGIC_CTRL_ITS_SAVE_TABLES and _RESTORE_TABLES, with the errors of vgic_its_attr_set(). */
int its_save_tables(struct vgic_its *its);
int its_restore_tables(struct vgic_its *its);

#endif /* VGIC_STATE_INTERNAL_H */
