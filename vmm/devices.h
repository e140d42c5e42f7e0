/* SPDX-License-Identifier: MIT */
/* The devices on the PCI bus: made as the options say, in that order. */
#ifndef VMM_DEVICES_H
#define VMM_DEVICES_H

struct machine;
struct snapshot_file;
struct snapshot_out;

/* Returns 0, or prints a line, negative errno. */
int devices_create(struct machine *machine);

/* As after power-on. When it returns, no device touches memory or raises an interrupt. */
void devices_reset(struct machine *machine);

/* Returns 0, or prints which device cannot be saved, -ENOTSUP. */
int devices_can_be_saved(const struct machine *machine);

/* Nothing touches memory, disks or interrupts between these two. */
void devices_pause(struct machine *machine);
void devices_resume(struct machine *machine);

/* To and from a saved machine. They are paused; loading leaves them so. Returns 0, or prints a line, negative errno. */
void devices_save(const struct machine *machine, struct snapshot_out *out);
int devices_load(struct machine *machine, const struct snapshot_file *file);

void devices_destroy(struct machine *machine);

#endif /* VMM_DEVICES_H */
