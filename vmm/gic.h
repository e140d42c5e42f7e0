/* SPDX-License-Identifier: MIT */
/*
 * The machine's use of libvgic: all calls that reach the controller, except those
 * of the vCPUs' run loop (machine.c), go through here, so that --trace-gic sees
 * them.
 */
#ifndef VMM_GIC_H
#define VMM_GIC_H

#include <stdbool.h>
#include <stdint.h>

struct machine;
struct vgic_msix;
struct vcpu;

/* Make the controller for the machine's vCPUs and fill vcpu->gic. Returns 0, or prints a line, negative errno. */
int gic_create(struct machine *machine);

/* Put the frames into the address map of @vcpu. Returns 0 or negative errno. */
int gic_map(struct vcpu *vcpu);

/* The ICC registers, as struct cpu_ops has them. */
bool gic_has_register(uint32_t reg);
int gic_icc_read(struct vcpu *vcpu, uint32_t reg, uint64_t *value);
int gic_icc_write(struct vcpu *vcpu, uint32_t reg, uint64_t value);

/* Do a part of the work that register writes have left. Returns whether there was any: then ask again soon. */
bool gic_run_work(struct machine *machine);

/* Lines. An INTID that does not exist is ignored. */
void gic_set_spi(struct machine *machine, uint32_t intid, unsigned source, bool level);
void gic_pulse_spi(struct machine *machine, uint32_t intid);
void gic_set_ppi(struct vcpu *vcpu, uint32_t intid, unsigned source, bool level);

/* A device's MSI. What is mapped nowhere is dropped. */
void gic_signal_msi(struct machine *machine, uint32_t devid, uint32_t eventid);

/* An event of a PCI function's vector. Any thread. Returns what vgic_msix_signal() does. */
int gic_signal_msix(struct machine *machine, struct vgic_msix *msix, uint32_t devid, unsigned vector);

/*
 * Routes and irqfds for the functions on the PCI bus, in machine->routes and machine->irqfds. In virtual time there are no
 * irqfds: they would need a thread. Returns 0, or prints a line, negative errno.
 */
int gic_create_routes(struct machine *machine);
void gic_destroy_routes(struct machine *machine);

#endif /* VMM_GIC_H */
