/* SPDX-License-Identifier: MIT */
/* The devices on the PCI bus: made as the options say, in that order. */
#ifndef VMM_DEVICES_H
#define VMM_DEVICES_H

struct machine;

/* Returns 0, or prints a line, negative errno. */
int devices_create(struct machine *machine);

/* As after power-on. When it returns, no device touches memory or raises an interrupt. */
void devices_reset(struct machine *machine);

void devices_destroy(struct machine *machine);

#endif /* VMM_DEVICES_H */
