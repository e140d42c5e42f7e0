/* SPDX-License-Identifier: MIT */
/*
 * A machine for the conformance tests: a controller, its vCPUs, and a record of
 * every callback. Its helpers assert that the call itself succeeds, so that a
 * test reads as what the guest does and sees.
 *
 * Before machine_start() a test may change machine.config and machine.vcpus.
 */
#ifndef TESTS_MACHINE_H
#define TESTS_MACHINE_H

/* cmocka wants these before its own header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <gic_arch.h>
#include <stdbool.h>
#include <vgic/vgic.h>

#define MACHINE_MAX_REGIONS 4u
#define MACHINE_DIST_BASE   0x08000000ull
#define NO_INTERRUPT        GIC_SPURIOUS

struct machine {
	struct vgic_config config;
	struct vgic_vcpu_config *vcpus;
	struct vgic_redist_region regions[MACHINE_MAX_REGIONS];
	struct vgic *vgic;

	/* What the callbacks have seen; arrays are by vCPU index. */
	unsigned *kicks;
	unsigned *line_changes;
	unsigned *reported_lines;
	unsigned num_kicks;
	unsigned num_deactivated;
	struct vgic_vcpu *deactivated_vcpu; /* of the last one */
	uint32_t deactivated_intid;
	/* Called for each deactivation, if it is set: the device's reaction. */
	void (*on_deactivated)(struct machine *m, uint32_t intid);
	unsigned num_error_reports;
	struct vgic_guest_error last_error;
};

/* A description: the profile's defaults, @num_vcpus with ids and Aff0 (16 a cluster) that count up, no addresses. */
struct machine *machine_describe(enum vgic_profile profile, uint32_t num_vcpus);
/* Create the controller. machine_try_start() hands back what vgic_create() returned. */
struct machine *machine_start(struct machine *m);
int machine_try_start(struct machine *m);
void machine_stop(struct machine *m);

/* Both in one, native profile. */
struct machine *machine_native(uint32_t num_vcpus);
/* The same, with every switch on: both groups, PMR fully open, all vCPUs awake. */
struct machine *machine_open(uint32_t num_vcpus);
/* Every switch on. In the native profile all interrupts are in Group 0 and disabled still. */
void machine_open_switches(struct machine *m);

/* Before the start: have line_changed() called. It is not by default, as it makes kicks for falling lines. */
void machine_mirror_lines(struct machine *m);
void machine_add_region(struct machine *m, uint64_t base, uint32_t num_frames);

struct vgic_vcpu *vcpu_of(struct machine *m, uint32_t index);

/* ---- Registers ---- */

uint32_t dist_read(struct machine *m, uint32_t offset);
void dist_write(struct machine *m, uint32_t offset, uint32_t value);
uint64_t dist_read_width(struct machine *m, uint32_t offset, unsigned width);
void dist_write_width(struct machine *m, uint32_t offset, unsigned width, uint64_t value);
uint32_t redist_read(struct machine *m, uint32_t vcpu, uint32_t offset);
void redist_write(struct machine *m, uint32_t vcpu, uint32_t offset, uint32_t value);
uint64_t redist_read_width(struct machine *m, uint32_t vcpu, uint32_t offset, unsigned width);
void redist_write_width(struct machine *m, uint32_t vcpu, uint32_t offset, unsigned width, uint64_t value);
uint64_t icc_read(struct machine *m, uint32_t vcpu, uint32_t reg);
void icc_write(struct machine *m, uint32_t vcpu, uint32_t reg, uint64_t value);

/*
 * The bit of @intid in a bank of one-bit registers, named by its GICD offset (GICD_ISENABLER and the like). For SGIs
 * and PPIs it is that of @vcpu, for SPIs @vcpu is not looked at.
 */
bool irq_read_bit(struct machine *m, uint32_t vcpu, uint32_t bank, uint32_t intid);
void irq_write_bit(struct machine *m, uint32_t vcpu, uint32_t bank, uint32_t intid);
/* IGROUPR is read, changed and written. */
void irq_set_group(struct machine *m, uint32_t vcpu, uint32_t intid, unsigned group);
void irq_set_priority(struct machine *m, uint32_t vcpu, uint32_t intid, uint8_t priority);
void irq_set_edge(struct machine *m, uint32_t vcpu, uint32_t intid, bool edge);
bool irq_is_pending(struct machine *m, uint32_t vcpu, uint32_t intid);
bool irq_is_active(struct machine *m, uint32_t vcpu, uint32_t intid);
/* Group, priority, enabled; an SPI also edge-triggered and routed to @vcpu. */
void irq_set_up(struct machine *m, uint32_t vcpu, uint32_t intid, unsigned group, uint8_t priority);
/* GICD_IROUTER of an SPI. */
void spi_route(struct machine *m, uint32_t intid, uint64_t route);

/* ---- CPU interface ---- */

unsigned lines_of(struct machine *m, uint32_t vcpu);
uint32_t ack0(struct machine *m, uint32_t vcpu);
uint32_t ack1(struct machine *m, uint32_t vcpu);
void eoi0(struct machine *m, uint32_t vcpu, uint32_t intid);
void eoi1(struct machine *m, uint32_t vcpu, uint32_t intid);

/* ---- Counters ---- */

uint64_t errors_of(struct machine *m, enum vgic_guest_error_kind kind);
uint64_t errors_of_all_kinds(struct machine *m);
struct vgic_stats stats_of(struct machine *m);

#endif /* TESTS_MACHINE_H */
