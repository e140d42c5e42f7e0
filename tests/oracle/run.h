/* SPDX-License-Identifier: MIT */
/*
 * run.h - executes scripts on a target and prints a line for each operation.
 */
#ifndef ORACLE_RUN_H
#define ORACLE_RUN_H

#include <stdio.h>

/*
 * Scripts one after the other; a line "=== NAME" begins each. The answer has the same line, then "LINE RESULT" for each
 * operation, and "=== end" behind the last one. Returns 0, or -1 if a machine could not be made or a line is wrong.
 */
int run_scripts(FILE *in, FILE *out);

#endif /* ORACLE_RUN_H */
