/* SPDX-License-Identifier: MIT */
/*
 * irq_regs.h - the register banks that hold something for each INTID: one bit
 * (IGROUPR, ISENABLER, ...), two bits (ICFGR) or a byte (IPRIORITYR).
 *
 * The same functions serve the distributor, for SPIs, and the redistributors, for
 * SGIs and PPIs: what tells them apart is frame_access.vcpu. INTIDs that the frame
 * does not have are RAZ/WI.
 */
#ifndef VGIC_IRQ_REGS_H
#define VGIC_IRQ_REGS_H

#include "frame.h"

uint64_t igroupr_read(const struct frame_access *a);
void igroupr_write(const struct frame_access *a, uint64_t value, uint64_t mask);
uint64_t enabler_read(const struct frame_access *a);
void isenabler_write(const struct frame_access *a, uint64_t value, uint64_t mask);
void icenabler_write(const struct frame_access *a, uint64_t value, uint64_t mask);
uint64_t pendr_read(const struct frame_access *a);
void ispendr_write(const struct frame_access *a, uint64_t value, uint64_t mask);
void icpendr_write(const struct frame_access *a, uint64_t value, uint64_t mask);
uint64_t latch_user_read(const struct frame_access *a);
int latch_user_write(const struct frame_access *a, uint64_t value, uint64_t mask);
uint64_t activer_read(const struct frame_access *a);
void isactiver_write(const struct frame_access *a, uint64_t value, uint64_t mask);
void icactiver_write(const struct frame_access *a, uint64_t value, uint64_t mask);
int icactiver_user_write(const struct frame_access *a, uint64_t value, uint64_t mask);
uint64_t ipriorityr_read(const struct frame_access *a);
void ipriorityr_write(const struct frame_access *a, uint64_t value, uint64_t mask);
uint64_t icfgr_read(const struct frame_access *a);
void icfgr_write(const struct frame_access *a, uint64_t value, uint64_t mask);

#endif /* VGIC_IRQ_REGS_H */
