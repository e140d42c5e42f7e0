/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <vgic/vgic.h>

static void kick(void *opaque, struct vgic_vcpu *vcpu) /* make its thread leave the guest, or wake it */
{
	printf("%s: kick vCPU %u\n", (const char *)opaque, vgic_vcpu_id(vcpu));
}

int main(void)
{
	const struct vgic_vcpu_config vcpus[] = { { .id = 0, .affinity = 0 }, { .id = 1, .affinity = 1 } };
	struct vgic_config config;
	struct vgic *vgic;
	uint64_t intid = 1023;

	vgic_config_init(&config, VGIC_PROFILE_NATIVE);
	config.num_vcpus = 2;
	config.vcpus = vcpus;
	config.ops.kick = kick;
	config.opaque = "example";
	if (vgic_create(&config, &vgic))
		return 1;

	/* The guest's driver sets SPI 42 up: your MMIO and system register traps call these. */
	struct vgic_vcpu *vcpu = vgic_vcpu_by_id(vgic, 1);
	vgic_dist_write(vgic, 0x0000, 4, 1 << 4 | 1 << 1); /* GICD_CTLR: affinity routing, Group 1 */
	vgic_dist_write(vgic, 0x0084, 4, 1 << (42 - 32));  /* GICD_IGROUPR1: 42 is in Group 1 */
	vgic_dist_write(vgic, 0x0104, 4, 1 << (42 - 32));  /* GICD_ISENABLER1: enable it */
	vgic_dist_write(vgic, 0x6000 + 8 * 42, 8, 1);      /* GICD_IROUTER42: to affinity 0.0.0.1 */
	vgic_icc_write(vcpu, VGIC_ICC_PMR_EL1, 0xf8);
	vgic_icc_write(vcpu, VGIC_ICC_IGRPEN1_EL1, 1);

	vgic_set_spi(vgic, 42, 0, true);            /* the device, in any thread: kicks vCPU 1 */
	if (vgic_enter_guest(vcpu) & VGIC_LINE_IRQ) /* vCPU 1's thread: its IRQ line is high */
		vgic_icc_read(vcpu, VGIC_ICC_IAR1_EL1, &intid);
	vgic_set_spi(vgic, 42, 0, false); /* the driver has served the device */
	vgic_icc_write(vcpu, VGIC_ICC_EOIR1_EL1, intid);
	printf("vCPU 1 took interrupt %u\n", (unsigned)intid); /* 42 */
	vgic_exit_guest(vcpu);
	vgic_destroy(vgic);
	return intid == 42 ? 0 : 1;
}
