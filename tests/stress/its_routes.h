/* SPDX-License-Identifier: MIT */
/* its_routes.h - scenarios of its-stress with routes: its_routes.c; and what its_stress.c has for them. */
#ifndef STRESS_ITS_ROUTES_H
#define STRESS_ITS_ROUTES_H

struct run;
struct world;

void run_its_pause_exact(struct run *run);
void run_its_pause_duel(struct run *run);

/* Settle the world, and check all accounts. */
void its_stress_check(struct world *w);

#endif /* STRESS_ITS_ROUTES_H */
