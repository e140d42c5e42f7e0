/* SPDX-License-Identifier: MIT */
/*
 * id_regs.h - identification registers that the frames have in common.
 */
#ifndef VGIC_ID_REGS_H
#define VGIC_ID_REGS_H

#include "frame.h"

uint64_t iidr_read(const struct frame_access *a);
int iidr_user_write(const struct frame_access *a, uint64_t value,
		    uint64_t mask); /* of the distributor: selects KVM's revision */
uint64_t iidr_read_of_part(const struct frame_access *a);
uint64_t id_register_read(const struct frame_access *a);     /* 12 registers from offset 0xffd0 */
uint64_t its_id_register_read(const struct frame_access *a); /* the same of an ITS */

#endif /* VGIC_ID_REGS_H */
