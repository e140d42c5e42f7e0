/* SPDX-License-Identifier: MIT */
/*
 * main.c - the list of vgic-stress: scenarios with SGIs, PPIs, SPIs, routes and irqfds. And the pauses that they make.
 */
#include <sched.h>
#include <time.h>

#include "stress.h"

// clang-format off
static const struct scenario scenarios[] = {
	/* name                     what                                                             default    TSan  run */
	{ "edge_storm",             "edges x vCPUs x every kind of reconfiguration",                   80000,  10000, run_edge_storm },
	{ "edge_lockstep",          "the same one by one: as many acknowledges as edges",              14000,   5000, run_edge_lockstep },
	{ "edge_merge",             "edges on a pending interrupt carry their data",                   40000,  10000, run_edge_merge },
	{ "edge_handover",          "the state word alone orders device and acknowledge",               5000,   3000, run_edge_handover },
	{ "disable_spi",            "no acknowledge after ICENABLER and GICD_CTLR.RWP=0",                300,    200, run_disable_spi },
	{ "disable_private",        "no acknowledge after ICENABLER0 and GICR_CTLR.RWP=0",               300,    200, run_disable_private },
	{ "disable_group",          "no acknowledge after a group disable and RWP=0",                    300,    200, run_disable_group },
	{ "sgi_storm",              "SGIs to lists, to all others, by ISPENDR0; reconfigured",        100000,  15000, run_sgi_storm },
	{ "sgi_ring",               "tokens passed on by SGIs, exact",                                 80000,  15000, run_sgi_ring },
	{ "level_exact",            "level-sensitive SPIs and PPIs, one acknowledge for each rise",    14000,   5000, run_level_exact },
	{ "level_shared",           "lines shared by several sources",                                  6000,   1500, run_level_shared },
	{ "level_resample",         "lines raised anew by the deactivation callback",                  30000,   8000, run_level_resample },
	{ "one_of_n_exact",         "1-of-N while vCPUs sleep, go offline, decline: exactly once",     14000,   5000, run_one_of_n_exact },
	{ "one_of_n_spread",        "1-of-N gives to all that take part",                               4000,   1000, run_one_of_n_spread },
	{ "one_of_n_hand_over",     "1-of-N follows the vCPUs that take part",                          6000,   2500, run_one_of_n_hand_over },
	{ "block_and_wake",         "vCPUs that block after every interrupt are woken",                16000,  12000, run_block_and_wake },
	{ "hidden_comes_to_light",  "an interrupt hidden by another is signalled when that goes",       6000,   2500, run_hidden_comes_to_light },
	{ "life_cycle",             "look-ups, statistics, on and off, reset, destroy",                   60,     20, run_life_cycle },
	{ "register_storm",         "random writes to every frame while interrupts flow",             200000,  30000, run_register_storm },
	{ "route_exact",            "GSIs re-routed under fire: each event goes to one target",         6000,   1000, run_route_exact },
	{ "route_storm",            "the same while events merge: the last one is seen",              300000,  20000, run_route_storm },
	{ "route_lines",            "pins that change leave no level behind",                          60000,   2000, run_route_lines },
	{ "route_txn",              "a transaction is seen whole, and an abort never",                 60000,   6000, run_route_txn },
	{ "msix_mask_exact",        "an event that meets the end of its mask is delivered",           150000,   2500, run_msix_mask_exact },
	{ "msix_mask_storm",        "vectors masked and moved under fire: the last event is seen",     60000,  10000, run_msix_mask_storm },
#ifdef HAVE_IRQFD
	{ "irqfd_direct",           "eventfds whose routes change: no signal is lost",                  6000,   1500, run_irqfd_direct },
	{ "irqfd_deferred",         "the same by the worker",                                           2000,    800, run_irqfd_deferred },
	{ "irqfd_deassign",         "no event after deassign, by the service",                          1500,    400, run_irqfd_deassign },
	{ "irqfd_deassign_loop",    "the same by the VMM's loop, with late tokens",                     1200,    200, run_irqfd_deassign_loop },
	{ "irqfd_deassign_deferred", "the same by the worker",                                           600,    100, run_irqfd_deassign_deferred },
	{ "irqfd_resample",         "shared lines: one resample for each rise, no work forgotten",      3000,    800, run_irqfd_resample },
	{ "irqfd_resample_deferred", "the same by the worker",                                          1000,    400, run_irqfd_resample_deferred },
	{ "irqfd_destroy",          "irqfds destroyed while events fly",                                 100,     25, run_irqfd_destroy },
#endif
	{ "crowd",                  "512 vCPUs, 64 of them driven by a few threads",                  100000,  15000, run_crowd },
};
// clang-format on

void pause_randomly(struct rng *rng, uint32_t limit)
{
	for (uint32_t n = rng_below(rng, limit); n > 0; n--)
		pause_step();
}

void nap(void)
{
	const struct timespec t = { .tv_nsec = 1000 };

	nanosleep(&t, NULL);
}

void wait_step(unsigned n)
{
	if (n < 200)
		pause_step();
	else if (n < 250)
		sched_yield();
	else
		nap();
}

int main(int argc, char **argv)
{
	static const struct scenario_list list = {
		.program = "vgic-stress",
		.what = "Runs threads against libvgic and compares counts afterwards",
		.scenarios = scenarios,
		.num = sizeof(scenarios) / sizeof(scenarios[0]),
	};

	return scenario_main(&list, argc, argv);
}
