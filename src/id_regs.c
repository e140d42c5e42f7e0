/* SPDX-License-Identifier: MIT */
/*
 * id_regs.c - who made this: IIDR and the CoreSight identification registers.
 */
#include "id_regs.h"

#include <errno.h>

#include "gic_regs.h"

uint64_t iidr_read(const struct frame_access *a)
{
	if (a->vgic->profile == VGIC_PROFILE_KVM)
		return IIDR_KVM | load_relaxed(&a->vgic->kvm_revision) << IIDR_REVISION_SHIFT;
	return IIDR_NATIVE;
}

/* Whoever writes back what was read gets that revision, whatever it is now. */
int iidr_user_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	const uint32_t revision = (uint32_t)(value & IIDR_REVISION) >> IIDR_REVISION_SHIFT;

	(void)mask;
	if ((value ^ iidr_read(a)) & ~(uint64_t)IIDR_REVISION)
		return -EINVAL;
	if (a->vgic->profile != VGIC_PROFILE_KVM)
		return value == IIDR_NATIVE ? 0 : -EINVAL;
	if (revision < KVM_REVISION_MIN || revision > KVM_REVISION_MAX)
		return -EINVAL;
	store_relaxed(&a->vgic->kvm_revision, revision);
	return 0;
}

/* GICR_IIDR and GITS_IIDR. KVM shows its revision in GICD_IIDR alone; that of GITS_IIDR is its tables' layout, 0. */
uint64_t iidr_read_of_part(const struct frame_access *a)
{
	return a->vgic->profile == VGIC_PROFILE_KVM ? IIDR_KVM : IIDR_NATIVE;
}

/* PIDR4-7, PIDR0-3, CIDR0-3. KVM's vGIC shows the one by which drivers find the architecture version. */
uint64_t id_register_read(const struct frame_access *a)
{
	static const uint8_t ids[12] = { 0x44, 0, 0, 0, 0x92, 0xb4, PIDR2_GICV3, 0, 0x0d, 0xf0, 0x05, 0xb1 };

	if (a->vgic->profile == VGIC_PROFILE_KVM && ids[a->index] != PIDR2_GICV3)
		return 0;
	return ids[a->index];
}

/* KVM's ITS shows all of them, unlike its distributor and redistributors, and another PIDR4. */
uint64_t its_id_register_read(const struct frame_access *a)
{
	static const uint8_t kvm_ids[12] = { 0x40, 0, 0, 0, 0x92, 0xb4, PIDR2_GICV3, 0, 0x0d, 0xf0, 0x05, 0xb1 };

	return a->vgic->profile == VGIC_PROFILE_KVM ? kvm_ids[a->index] : id_register_read(a);
}
