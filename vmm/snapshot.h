/* SPDX-License-Identifier: MIT */
/*
 * Saving and loading the whole machine: memory, vCPUs, devices, time and the
 * interrupt controller. Called by the thread that runs the vCPUs, between two runs.
 */
#ifndef VMM_SNAPSHOT_H
#define VMM_SNAPSHOT_H

struct machine;

/*
 * Save the machine as the options say. Returns 0: it stands still, and must not go on here. Or prints a line, negative
 * errno: it goes on as if nothing had been asked.
 */
int snapshot_save(struct machine *machine);

/*
 * Fill a machine that has been reset from the file of --load. Nothing runs before all has been read and found right; then
 * devices go on. Returns 0, or prints a line, negative errno: the machine is of no use.
 */
int snapshot_load(struct machine *machine);

#endif /* VMM_SNAPSHOT_H */
