/* SPDX-License-Identifier: MIT */
/*
 * scenarios_its.c - MSIs, and the commands and registers that change where they go. Each
 * names the ordering rules (docs/architecture.md) that it is about.
 */
#include <errno.h>

#include "rig.h"

#define LPI RIG_FIRST_LPI

/* ---- The device ---- */

static void signal_three_times(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 3; i++)
		rig_msi(rig, 0);
}

static void signal_in_lockstep(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 4; i++) {
		rig_msi(rig, 0);
		rig_await(rig, LPI);
	}
}

static void signal_another(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 3; i++)
		rig_msi(rig, 1);
}

static void check_exact(struct rig *rig)
{
	const struct account *a = account_of(rig, LPI);

	if (a->acknowledges != a->accepted)
		rig_fail(rig, "%u MSIs were accepted, %u acknowledged", a->accepted, a->acknowledges);
}

/* ---- Mapping anew: R11 ---- */

static void discard_and_map(void *context)
{
	struct rig *rig = context;
	struct account *a = account_of(rig, LPI);

	for (int i = 0; i < 2; i++) {
		rig_event(rig, RIG_DISCARD, 0);
		rig_sync(rig);
		a->epoch++;
		schedule_yield();
		a->epoch++;
		rig_mapti(rig, 0, LPI, 0);
		rig_sync(rig);
	}
}

static void set_up_discard(struct rig *rig)
{
	account_of(rig, LPI)->not_lasting = true;
}

/* The node of event 0 serves event 2 meanwhile, which leads to another LPI: no signal may arrive there. */
static void reuse_node(void *context)
{
	struct rig *rig = context;

	account_of(rig, LPI + 2)->epoch = 1;
	for (int i = 0; i < 2; i++) {
		rig_event(rig, RIG_DISCARD, 0);
		rig_mapti(rig, 2, LPI + 2, 0);
		rig_event(rig, RIG_DISCARD, 2);
		rig_mapti(rig, 0, LPI, 0);
		rig_sync(rig);
	}
}

static void set_up_reuse(struct rig *rig)
{
	account_of(rig, LPI)->not_lasting = true;
	rig_event(rig, RIG_DISCARD, 2);
	/* Event 3 leads to the same LPI, so that this never loses its last mapping, and with it its generation. */
	rig_mapti(rig, 3, LPI + 2, 0);
	rig_sync(rig);
}

/* The LPI serves event 2 meanwhile, which nobody signals. */
static void reuse_lpi(void *context)
{
	struct rig *rig = context;
	struct account *a = account_of(rig, LPI);

	for (int i = 0; i < 2; i++) {
		rig_event(rig, RIG_DISCARD, 0);
		rig_sync(rig);
		a->epoch++;
		rig_mapti(rig, 2, LPI, 0);
		rig_sync(rig);
		schedule_yield();
		rig_event(rig, RIG_DISCARD, 2);
		rig_sync(rig);
		a->epoch++;
		rig_mapti(rig, 0, LPI, 0);
		rig_sync(rig);
	}
}

static void set_up_reuse_lpi(struct rig *rig)
{
	account_of(rig, LPI)->not_lasting = true;
	rig_event(rig, RIG_DISCARD, 2);
	rig_sync(rig);
}

static void unmap_device(void *context)
{
	struct rig *rig = context;

	rig_mapd(rig, false);
	rig_sync(rig);
	account_of(rig, LPI)->epoch++;
	account_of(rig, LPI + 1)->epoch++;
}

/* ---- Moving ---- */

static void move_event(void *context)
{
	struct rig *rig = context;

	for (uint32_t i = 1; i <= 3; i++)
		rig_movi(rig, 0, i % 2);
	rig_sync(rig);
}

static void move_all(void *context)
{
	struct rig *rig = context;

	rig_mapc(rig, 0, 1);
	rig_movall(rig, 0, 1);
	rig_sync(rig);
	rig_mapc(rig, 0, 0);
	rig_movall(rig, 1, 0);
	rig_sync(rig);
}

/* ---- Configuration ---- */

static void configure(void *context)
{
	struct rig *rig = context;
	struct account *a = account_of(rig, LPI);

	for (int i = 0; i < 2; i++) {
		rig_set_property(rig, LPI, 0xa0);
		rig_event(rig, RIG_INV, 0);
		rig_sync(rig);
		a->epoch++;
		schedule_yield();
		a->epoch++;
		rig_set_property(rig, LPI, i ? 0xa1 : 0x41);
		rig_event(rig, RIG_INV, 0);
		rig_sync(rig);
	}
}

/* CLEAR takes away what is pending, and nothing that comes later. */
static void clear(void *context)
{
	struct rig *rig = context;

	rig_event(rig, RIG_CLEAR, 0);
	rig_sync(rig);
	rig_event(rig, RIG_INT, 1);
	rig_sync(rig);
}

static void signal_after_clear(void *context)
{
	struct rig *rig = context;

	clear(rig);
	rig_msi(rig, 0);
	rig_await(rig, LPI);
}

static void set_up_clear(struct rig *rig)
{
	account_of(rig, LPI + 1)->number = 1; /* INT */
}

/* ---- The ITS off and on: R12 ---- */

static void its_off_and_on(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 2; i++) {
		bool was_pending;

		rig_its_enable(rig, false);
		was_pending = rig_lpi_pending(rig, LPI);
		rig->phase++;
		schedule_yield();
		schedule_yield();
		if (!was_pending && rig_lpi_pending(rig, LPI))
			rig_fail(rig, "an MSI arrived after Quiescent");
		rig->phase++;
		rig_its_enable(rig, true);
	}
}

/* A signal that begins and ends while the ITS is off must be refused. */
static void signal_and_look(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 4; i++) {
		const unsigned before = rig->phase;
		const int result = rig_msi(rig, 0);

		if (before % 2 && rig->phase == before && result == 1)
			rig_fail(rig, "an MSI was accepted by an ITS that is quiescent");
	}
}

/* ---- EnableLPIs: R13 ---- */

/* Off: no acknowledge any more, and what is pending is in the table. On: it comes from there. */
static void lpis_off_and_on(void *context)
{
	struct rig *rig = context;
	struct account *a = account_of(rig, LPI);

	rig_redist_write(rig, 0, GICR_CTLR, 0);
	rig_await_redist(rig, 0);
	a->epoch++;
	schedule_yield();
	if (a->last_accepted > a->seen && a->number == a->last_accepted && !rig_table_pending(0, LPI))
		rig_fail(rig, "signal %u is neither acknowledged nor in the pending table", a->last_accepted);
	a->epoch++;
	rig_redist_write(rig, 0, GICR_CTLR, GICR_CTLR_ENABLE_LPIS);
}

static void set_up_lpis_off(struct rig *rig)
{
	account_of(rig, LPI)->has_rwp = true;
}

/*
 * EnableLPIs is set and cleared at once: an MSI meets the LPI while the walk of neither has reached it. What was accepted
 * has been acknowledged or is in the table when RWP is 0.
 */
static void lpis_on_and_off(void *context)
{
	struct rig *rig = context;
	struct account *a = account_of(rig, LPI);

	rig_redist_write(rig, 0, GICR_CTLR, 0);
	rig_await_redist(rig, 0);
	for (int i = 0; i < 2; i++) {
		rig->phase++;
		rig_redist_write(rig, 0, GICR_CTLR, GICR_CTLR_ENABLE_LPIS);
		schedule_yield();
		rig_redist_write(rig, 0, GICR_CTLR, 0);
		rig_await_redist(rig, 0);
		if (rig_lpi_pending(rig, LPI))
			rig_fail(rig, "the LPI is pending in the controller, not in the table");
		schedule_yield();
		if (rig_lpi_pending(rig, LPI))
			rig_fail(rig, "the LPI became pending after RWP=0");
	}
	if (a->last_accepted > a->seen && !rig_table_pending(0, LPI))
		rig_fail(rig, "signal %u is neither acknowledged nor in the pending table", a->last_accepted);
}

static void signal_in_each_phase(void *context)
{
	struct rig *rig = context;

	for (unsigned i = 1; i <= 2; i++) {
		while (rig->phase < i)
			schedule_yield();
		rig_msi(rig, 0);
	}
}

static void set_up_lpis_early(struct rig *rig)
{
	account_of(rig, LPI)->not_lasting = true;
}

/* ---- Pauses ---- */

/* What is accepted is in the state that a save sees; the rest is told to come again. */
static void pause_and_resume(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 2; i++) {
		vgic_pause(rig->vgic);
		rig->phase++;
		schedule_yield();
		schedule_yield();
		rig->phase++;
		vgic_resume(rig->vgic);
	}
}

static void signal_again(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 3; i++) {
		int result;

		do {
			const unsigned before = rig->phase;

			result = rig_msi(rig, 0);
			if (before % 2 && rig->phase == before && result != -EAGAIN)
				rig_fail(rig, "an MSI during a pause returned %d", result);
			if (result != 1 && result != -EAGAIN)
				rig_fail(rig, "an MSI that met a pause returned %d", result);
			if (result != 1)
				schedule_yield();
		} while (result != 1);
		rig_await(rig, LPI);
	}
}

const struct rig_scenario scenarios_its[] = {
	{ .name = "discard",
	  .what = "DISCARD and MAPTI of the event; R11",
	  .config = { .its = true },
	  .set_up = set_up_discard,
	  .tasks = { { "device0", signal_three_times }, { "device1", signal_another }, { "guest", discard_and_map } } },
	{ .name = "reuse",
	  .what = "its node serves another event meanwhile; R11",
	  .config = { .its = true },
	  .set_up = set_up_reuse,
	  .tasks = { { "device0", signal_three_times }, { "guest", reuse_node } } },
	{ .name = "reuse_lpi",
	  .what = "its LPI serves another event meanwhile; R11",
	  .config = { .its = true },
	  .set_up = set_up_reuse_lpi,
	  .tasks = { { "device0", signal_three_times }, { "guest", reuse_lpi } } },
	{ .name = "unmap",
	  .what = "MAPD V=0; R11, R14",
	  .config = { .its = true },
	  .tasks = { { "device0", signal_three_times }, { "device1", signal_another }, { "guest", unmap_device } } },
	{ .name = "movi",
	  .what = "MOVI between two vCPUs; R3, R4",
	  .config = { .num_vcpus = 2, .its = true },
	  .tasks = { { "device0", signal_in_lockstep }, { "guest", move_event } },
	  .check = check_exact },
	{ .name = "movall",
	  .what = "MAPC and MOVALL",
	  .config = { .num_vcpus = 2, .its = true },
	  .tasks = { { "device0", signal_in_lockstep }, { "guest", move_all } },
	  .check = check_exact },
	{ .name = "configure",
	  .what = "INV behind a change of the configuration; R3",
	  .config = { .its = true },
	  .tasks = { { "device0", signal_three_times }, { "guest", configure } } },
	{ .name = "clear",
	  .what = "CLEAR and INT between signals",
	  .config = { .its = true },
	  .set_up = set_up_clear,
	  .tasks = { { "device0", signal_after_clear } } },
	{ .name = "its_off",
	  .what = "GITS_CTLR.Enabled and Quiescent; R12",
	  .config = { .its = true },
	  .tasks = { { "device0", signal_and_look }, { "device1", signal_and_look }, { "guest", its_off_and_on } } },
	{ .name = "lpis_off",
	  .what = "EnableLPIs off and on; R13",
	  .config = { .its = true },
	  .set_up = set_up_lpis_off,
	  .tasks = { { "device0", signal_three_times }, { "guest", lpis_off_and_on } } },
	{ .name = "lpis_exact",
	  .what = "the same with a device that waits; R13",
	  .config = { .its = true },
	  .tasks = { { "device0", signal_in_lockstep }, { "guest", lpis_off_and_on } },
	  .check = check_exact },
	{ .name = "lpis_early",
	  .what = "EnableLPIs on and off at once; R13",
	  .config = { .its = true },
	  .set_up = set_up_lpis_early,
	  .tasks = { { "device0", signal_in_each_phase }, { "guest", lpis_on_and_off } } },
	{ .name = "pause",
	  .what = "vgic_pause() and a device that comes again; R12",
	  .config = { .its = true },
	  .tasks = { { "device0", signal_again }, { "host", pause_and_resume } },
	  .check = check_exact },
	{ 0 },
};
