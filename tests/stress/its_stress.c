/* SPDX-License-Identifier: MIT */
/*
 * its_stress.c - threads against ITSes and LPIs, with exact accounting.
 *
 *   its-stress [--scenario NAME] [--iterations N] [--seed N]
 *
 * Devices signal while a guest moves, discards, maps, invalidates, and switches
 * ITSes and redistributors off and on. Two kinds of promise are checked: every
 * accepted signal is acknowledged, or in the pending table, or was discarded by a
 * command; and nothing takes a path that the guest has closed.
 */
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gic_regs.h"
#include "its_routes.h"
#include "its_world.h"

/* ---- What must hold at rest ----------------------------------------------------------------------------- */

/* Lockstep: as many acknowledges as accepted signals, LPI by LPI. */
static void check_exact(struct world *w)
{
	for (uint32_t i = 0; i < ITS_LPIS; i++) {
		const struct account *a = &w->accounts[i];
		const uint64_t accepted = load_acquire(&a->accepted), acknowledges = load_acquire(&a->acknowledges);

		if (accepted != acknowledges)
			run_fail(w->run, "LPI %u: %" PRIu64 " signals were accepted, %" PRIu64 " acknowledged",
				 FIRST_LPI + i, accepted, acknowledges);
	}
}

/* A storm merges: but behind the last accepted signal of each LPI there was an acknowledge. */
static void check_last_seen(struct world *w)
{
	for (uint32_t i = 0; i < ITS_LPIS; i++) {
		const struct account *a = &w->accounts[i];

		if (load_acquire(&a->seen) < load_acquire(&a->last_accepted))
			run_fail(w->run, "LPI %u: signal %" PRIu64 " was accepted, the last that was seen is %" PRIu64,
				 FIRST_LPI + i, load_acquire(&a->last_accepted), load_acquire(&a->seen));
		if (load_acquire(&a->acknowledges) > load_acquire(&a->accepted))
			run_fail(w->run, "LPI %u: more acknowledges than accepted signals", FIRST_LPI + i);
	}
}

static void check_at_rest(struct world *w)
{
	if (w->lockstep)
		check_exact(w);
	check_last_seen(w);
}

void its_stress_check(struct world *w)
{
	its_world_settle(w);
	check_at_rest(w);
	if (w->num_checked == 0)
		run_fail(w->run, "nothing was checked");
}

static void finish(struct world *w)
{
	its_stress_check(w);
	its_world_close(w);
}

/* ---- Moving ------------------------------------------------------------------------------------------------- */

/* Any event to any vCPU, one by one, all at once, or with its collection. */
static void move_something(struct world *w)
{
	const uint32_t device = rng_below(&w->rng, ITS_DEVICES), event = rng_below(&w->rng, ITS_EVENTS);
	const uint32_t vcpu = rng_below(&w->rng, ITS_VCPUS);

	switch (rng_below(&w->rng, 8)) {
	case 0:
		guest_movall(w, 0, vcpu, (vcpu + 1) % ITS_VCPUS);
		break;
	case 1:
		guest_mapc(w, 0, rng_below(&w->rng, ITS_VCPUS), vcpu);
		break;
	default:
		guest_movi(w, 0, device, event, vcpu);
		break;
	}
}

static void run_move(struct run *run, bool lockstep)
{
	struct world *w = its_world_open(run, lockstep);

	its_world_start_devices(w);
	for (uint64_t i = 0; i < run->iterations && !load_relaxed(&run->failures); i++) {
		move_something(w);
		world_pause(&w->rng, 3000);
		if (i % 8 == 0)
			sched_yield();
		w->num_checked++;
	}
	finish(w);
}

static void run_move_exact(struct run *run)
{
	run_move(run, true);
}

static void run_move_storm(struct run *run)
{
	run_move(run, false);
}

/* ---- Configuration --------------------------------------------------------------------------------------------- */

static void invalidate(struct world *w, uint32_t lpi)
{
	const uint32_t vcpu = rng_below(&w->rng, ITS_VCPUS);

	switch (rng_below(&w->rng, 4)) {
	case 0:
		guest_invall(w, 0, 0);
		guest_invall(w, 0, 1);
		/* MOVALL may have brought the LPI to where no collection is mapped: then INVALL is not for it. */
		guest_event(w, 0, GUEST_INV, lpi / ITS_EVENTS, lpi % ITS_EVENTS);
		break;
	case 1:
		guest_redist_write(w, vcpu, GICR_INVLPIR, 8, FIRST_LPI + lpi);
		break;
	case 2:
		for (uint32_t v = 0; v < ITS_VCPUS; v++)
			guest_redist_write(w, v, GICR_INVALLR, 8, 0);
		while (guest_redist_read(w, 0, GICR_SYNCR) || guest_redist_read(w, 1, GICR_SYNCR))
			sched_yield();
		break;
	default:
		guest_event(w, 0, GUEST_INV, lpi / ITS_EVENTS, lpi % ITS_EVENTS);
		break;
	}
	guest_sync(w, 0);
}

/* Off and on again, at another priority, while it is signalled and moved: nothing is lost. */
static void run_configure(struct run *run)
{
	struct world *w = its_world_open(run, true);

	its_world_start_devices(w);
	for (uint64_t i = 0; i < run->iterations && !load_relaxed(&run->failures); i++) {
		const uint32_t lpi = rng_below(&w->rng, ITS_LPIS);

		guest_set_property(w, lpi, (uint8_t)(rng_below(&w->rng, 30) << 3));
		invalidate(w, lpi);
		if (i % 3 == 0)
			move_something(w);
		world_pause(&w->rng, 1000);
		guest_set_property(w, lpi, (uint8_t)(rng_below(&w->rng, 30) << 3 | 1));
		invalidate(w, lpi);
		w->num_checked++;
	}
	finish(w);
}

/* ---- Closed paths ----------------------------------------------------------------------------------------------------- */

static void set_epochs(struct world *w, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		atomic_fetch_add_explicit(&w->accounts[first + i].epoch, 1, memory_order_acq_rel);
}

/*
 * DISCARD and MAPD V=0: once they are done, no signal is accepted and no acknowledge
 * finds the LPI, until it is mapped again. What was accepted before may be gone.
 */
static void run_discard(struct run *run)
{
	struct world *w = its_world_open(run, false);

	its_world_start_devices(w);
	for (uint64_t i = 0; i < run->iterations && !load_relaxed(&run->failures); i++) {
		const uint32_t device = rng_below(&w->rng, ITS_DEVICES), event = rng_below(&w->rng, ITS_EVENTS);
		const uint32_t lpi = device * ITS_EVENTS + event;
		const bool whole = rng_below(&w->rng, 4) == 0;
		const uint32_t first = whole ? device * ITS_EVENTS : lpi, count = whole ? ITS_EVENTS : 1;

		if (whole)
			guest_mapd(w, 0, device, rng_below(&w->rng, 2));
		else
			guest_event(w, 0, GUEST_DISCARD, device, event);
		guest_sync(w, 0);
		set_epochs(w, first, count);
		w->num_checked++;
		world_pause(&w->rng, 2000);
		if (i % 4 == 0)
			sched_yield();
		set_epochs(w, first, count);
		if (whole)
			guest_mapd(w, 0, device, true);
		for (uint32_t e = 0; e < count; e++)
			guest_mapti(w, 0, device, (first + e) % ITS_EVENTS, first + e, rng_below(&w->rng, ITS_VCPUS));
		guest_sync(w, 0);
		world_pause(&w->rng, 2000);
	}
	its_world_settle(w);
	/* What was discarded is not to be seen any more; what was accepted since the last mapping has been. */
	for (uint32_t lpi = 0; lpi < ITS_LPIS; lpi++) {
		if (load_acquire(&w->accounts[lpi].acknowledges) > load_acquire(&w->accounts[lpi].accepted))
			run_fail(run, "LPI %u: more acknowledges than accepted signals", FIRST_LPI + lpi);
	}
	if (w->num_checked == 0)
		run_fail(run, "nothing was checked");
	its_world_close(w);
}

/* ---- The ITS off and on ---------------------------------------------------------------------------------------------------- */

/* The vCPUs have taken what was pending, and sleep. Returns how many acknowledges there have been. */
static uint64_t await_sleep(struct world *w)
{
	while (!its_world_sleeps(w))
		sched_yield();
	return world_acknowledges(w);
}

/*
 * After Quiescent=1 no signal of before makes anything pending. What was pending at
 * that moment is delivered, exactly, and nothing else.
 */
static void run_its_off(struct run *run)
{
	struct world *w = its_world_open(run, true);

	its_world_start_devices(w);
	for (uint64_t i = 0; i < run->iterations && !load_relaxed(&run->failures); i++) {
		uint64_t acknowledges, pending, after;

		if (i % 3 == 0)
			move_something(w);
		guest_its_write(w, 0, GITS_CTLR, 0);
		while (!(guest_its_read(w, 0, GITS_CTLR) & GITS_CTLR_QUIESCENT))
			sched_yield();
		pending = its_world_count_pending(w, &acknowledges);
		/* Every signal that had begun returns, and every vCPU takes what there is. */
		its_world_close_gate(w);
		its_world_open_gate(w);
		after = await_sleep(w);
		if (after != acknowledges + pending)
			run_fail(run,
				 "period %" PRIu64 ": %" PRIu64 " LPIs were pending at Quiescent=1, then %" PRIu64
				 " were taken",
				 i, pending, after - acknowledges);
		w->num_checked++;
		guest_its_write(w, 0, GITS_CTLR, GITS_CTLR_ENABLED);
		world_pause(&w->rng, 3000);
		if (i % 4 == 1)
			sched_yield();
	}
	finish(w);
}

/* ---- EnableLPIs off and on --------------------------------------------------------------------------------------------------- */

static bool lpis_are_going(struct world *w)
{
	bool rwp = false;

	for (uint32_t v = 0; v < ITS_VCPUS; v++)
		rwp |= (guest_redist_read(w, v, GICR_CTLR) & GICR_CTLR_RWP) != 0;
	return rwp;
}

/*
 * Everybody stands still: in lockstep an LPI has its bit in one of the tables exactly
 * if its last signal was accepted and not acknowledged; otherwise if it was accepted
 * and not seen, at least.
 */
static void check_tables(struct world *w)
{
	for (uint32_t i = 0; i < ITS_LPIS; i++) {
		const struct account *a = &w->accounts[i];
		const unsigned bits = guest_table_pending(w, 0, i) + guest_table_pending(w, 1, i);
		const bool owed = w->lockstep ? load_acquire(&a->acknowledges) < load_acquire(&a->accepted) :
						load_acquire(&a->seen) < load_acquire(&a->last_accepted);

		if (bits > 1)
			run_fail(w->run, "LPI %u is pending in both tables", FIRST_LPI + i);
		if (owed && !bits)
			run_fail(w->run, "LPI %u was accepted, not acknowledged, and is not in a pending table",
				 FIRST_LPI + i);
		if (w->lockstep && bits && !owed)
			run_fail(w->run, "LPI %u is in a pending table, and nobody has signalled it", FIRST_LPI + i);
		w->num_checked += bits || !w->lockstep;
	}
}

/*
 * From RWP=0 on no acknowledge returns an LPI, not even one that had begun before.
 * What was pending is in the pending tables, and comes back with EnableLPIs=1.
 */
static void run_lpis_off(struct run *run, bool lockstep)
{
	struct world *w = its_world_open(run, lockstep);

	store_relaxed(&w->delay, 20000);
	its_world_start_devices(w);
	for (uint64_t i = 0; i < run->iterations && !load_relaxed(&run->failures); i++) {
		uint64_t before, after;

		if (i % 3 == 0)
			move_something(w);
		guest_sync(w, 0);
		for (uint32_t v = 0; v < ITS_VCPUS; v++)
			guest_set_lpis_enabled(w, v, false);
		while (lpis_are_going(w))
			sched_yield();
		before = world_acknowledges(w);
		world_pause(&w->rng, 1000);
		if (i % 4 == 0)
			sched_yield();
		after = world_acknowledges(w);
		if (before != after)
			run_fail(run, "period %" PRIu64 ": RWP had read 0, then %" PRIu64 " acknowledges returned", i,
				 after - before);
		its_world_close_gate(w);
		check_tables(w);
		/* Often the guest changes its mind before the enable is through. */
		for (uint32_t n = rng_below(&w->rng, 3); n > 0; n--) {
			for (uint32_t v = 0; v < ITS_VCPUS; v++) {
				guest_set_lpis_enabled(w, v, true);
				guest_set_lpis_enabled(w, v, false);
			}
			while (lpis_are_going(w))
				sched_yield();
			check_tables(w);
		}
		its_world_open_gate(w);
		for (uint32_t v = 0; v < ITS_VCPUS; v++)
			guest_set_lpis_enabled(w, v, true);
		world_pause(&w->rng, 3000);
		sched_yield();
	}
	store_relaxed(&w->delay, 0);
	finish(w);
}

static void run_lpis_off_exact(struct run *run)
{
	run_lpis_off(run, true);
}

static void run_lpis_off_storm(struct run *run)
{
	run_lpis_off(run, false);
}

/* One redistributor is toggled without waiting for anything, while LPIs move to it and away. */
static void run_lpis_toggle(struct run *run)
{
	struct world *w = its_world_open(run, true);

	its_world_start_devices(w);
	for (uint64_t i = 0; i < run->iterations && !load_relaxed(&run->failures); i++) {
		guest_set_lpis_enabled(w, 1, i % 2);
		world_pause(&w->rng, 2000);
		if (i % 16 == 0) {
			while (guest_redist_read(w, 1, GICR_CTLR) & GICR_CTLR_RWP)
				sched_yield();
			guest_set_lpis_enabled(w, 1, true);
			sched_yield();
		}
		w->num_checked++;
	}
	while (guest_redist_read(w, 1, GICR_CTLR) & GICR_CTLR_RWP)
		sched_yield();
	guest_set_lpis_enabled(w, 1, true);
	finish(w);
}

/* ---- Two ITSes --------------------------------------------------------------------------------------------------------------- */

/* The second ITS maps and discards the first one's LPIs, and moves all of them about. */
static void *second_guest(void *arg)
{
	struct world *w = arg;
	struct rng rng = { .state = w->run->seed * 77 + 1 };

	guest_mapd(w, 1, 0, true);
	while (!load_acquire(&w->over)) {
		const uint32_t event = rng_below(&rng, ITS_EVENTS);

		/* Device 0's LPIs are shared; the others' are only moved. */
		guest_mapti(w, 1, 0, event, event, rng_below(&rng, ITS_VCPUS));
		vgic_its_signal(w->its[1], 0, event);
		if (rng_below(&rng, 2))
			guest_movall(w, 1, event % 2, (event + 1) % 2);
		guest_event(w, 1, GUEST_DISCARD, 0, event);
		if (rng_below(&rng, 8) == 0) {
			guest_its_write(w, 1, GITS_CTLR, 0);
			guest_its_write(w, 1, GITS_CTLR, GITS_CTLR_ENABLED);
		}
		sched_yield();
	}
	guest_sync(w, 1);
	return NULL;
}

static void run_two_itses(struct run *run)
{
	struct world *w = its_world_open(run, false);
	pthread_t second;

	its_world_start_devices(w);
	if (pthread_create(&second, NULL, second_guest, w) != 0)
		abort();
	for (uint64_t i = 0; i < run->iterations && !load_relaxed(&run->failures); i++) {
		move_something(w);
		if (i % 5 == 0) {
			const uint32_t event = rng_below(&w->rng, ITS_EVENTS);

			guest_event(w, 0, GUEST_DISCARD, 0, event);
			guest_mapti(w, 0, 0, event, event, rng_below(&w->rng, ITS_VCPUS));
		}
		world_pause(&w->rng, 2000);
		if (i % 4 == 0)
			sched_yield();
		w->num_checked++;
	}
	guest_sync(w, 0);
	store_release(&w->over, true);
	pthread_join(second, NULL);
	its_world_settle(w);
	/* Of the LPIs that only moved nothing may be missing. */
	for (uint32_t lpi = ITS_EVENTS; lpi < ITS_LPIS; lpi++) {
		const struct account *a = &w->accounts[lpi];

		if (load_acquire(&a->seen) < load_acquire(&a->last_accepted))
			run_fail(run, "LPI %u: its last accepted signal was not seen", FIRST_LPI + lpi);
	}
	/* The shared ones still work. */
	for (uint32_t event = 0; event < ITS_EVENTS; event++) {
		const uint64_t before = load_acquire(&w->accounts[event].acknowledges);

		if (vgic_its_signal(w->its[0], 0, event) != 1)
			run_fail(run, "event %u cannot be signalled any more", event);
		await_sleep(w);
		if (load_acquire(&w->accounts[event].acknowledges) != before + 1)
			run_fail(run, "LPI %u is not delivered any more", FIRST_LPI + event);
	}
	its_world_close(w);
}

/* ---- The program -------------------------------------------------------------------------------------------------------------- */

// clang-format off
static const struct scenario scenarios[] = {
	{ "its_move_exact",     "MOVI, MOVALL and MAPC: as many acknowledges as signals",       12000, 2000, run_move_exact },
	{ "its_move_storm",     "the same while signals merge",                                 12000, 2000, run_move_storm },
	{ "its_configure",      "INV, INVALL, INVLPIR, INVALLR with changing configuration",     5000, 833, run_configure },
	{ "its_discard",        "nothing passes after DISCARD and MAPD, until MAPTI",            4000, 666, run_discard },
	{ "its_off",            "nothing of before is delivered after Quiescent=1",              2000, 333, run_its_off },
	{ "its_lpis_off_exact", "nothing is delivered after RWP=0, the tables hold the rest",     800, 133, run_lpis_off_exact },
	{ "its_lpis_off_storm", "the same while signals merge",                                   800, 133, run_lpis_off_storm },
	{ "its_lpis_toggle",    "EnableLPIs off and on without waiting",                         6000, 1000, run_lpis_toggle },
	{ "its_two_itses",      "two ITSes that share LPIs",                                     8000, 1333, run_two_itses },
	{ "its_pause_exact",    "routes, masks, pauses: as many acknowledges as events",        20000, 3333, run_its_pause_exact },
	{ "its_pause_duel",     "one event, one end of a mask, one of a pause, round by round", 20000, 3333, run_its_pause_duel },
};
// clang-format on

int main(int argc, char **argv)
{
	static const struct scenario_list list = {
		.program = "its-stress",
		.what = "Runs threads against ITSes and LPIs and compares counts afterwards",
		.scenarios = scenarios,
		.num = sizeof(scenarios) / sizeof(scenarios[0]),
	};

	return scenario_main(&list, argc, argv);
}
