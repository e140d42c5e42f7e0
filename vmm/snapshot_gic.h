/* SPDX-License-Identifier: MIT */
/* The interrupt controller in the file of a saved machine, in either of libvgic's two ways. */
#ifndef VMM_SNAPSHOT_GIC_H
#define VMM_SNAPSHOT_GIC_H

#include <stdbool.h>

struct machine;
struct snapshot_file;
struct snapshot_out;

/*
 * Save it. @attributes: register by register, as a VMM on KVM does; what is in the ITS and which LPIs are pending is
 * written to guest memory, which has to be saved after this. Otherwise as one image. MSIs are paused. Returns 0, or prints
 * a line, negative errno.
 */
int snapshot_gic_save(struct machine *machine, struct snapshot_out *out, bool attributes);

/*
 * Load it, in the way that it was saved in. Guest memory has been loaded, the timers and the UART know what their lines
 * are, the vCPUs which of them are on. Returns 0, or prints a line, negative errno.
 */
int snapshot_gic_load(struct machine *machine, const struct snapshot_file *file);

#endif /* VMM_SNAPSHOT_GIC_H */
