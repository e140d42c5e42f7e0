/* SPDX-License-Identifier: MIT */
/*
 * state.h - moves a machine's state from one target to another.
 *
 * The state is read by device attributes and from guest memory, as a VMM reads it
 * to migrate a guest, and printed as the operations that give it to a machine that
 * was just made.
 */
#ifndef ORACLE_STATE_H
#define ORACLE_STATE_H

#include <stdio.h>

#include "target.h"

/*
 * Print the operations that restore the state, each behind "LINE.NUMBER ", in an order in which they may be executed.
 * Tables in guest memory have been saved before. Returns 0 or the error of an attribute.
 */
int state_print(FILE *out, unsigned line, struct target *t, const struct machine_description *description);

#endif /* ORACLE_STATE_H */
