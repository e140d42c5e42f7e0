/* SPDX-License-Identifier: MIT */
/*
 * main.c - the list of scenarios. Each iteration is a run with a seed of its own, counted
 * up from --seed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rig.h"
#include "scenario.h"

#define DEFAULT_RUNS  400u
/* Failing runs of a scenario after which it is given up. */
#define MAX_FAILURES  3u
#define MAX_SCENARIOS 64u

static const struct rig_scenario *const lists[] = { scenarios_core, scenarios_its, scenarios_route };

static const struct rig_scenario *all[MAX_SCENARIOS];
static struct scenario scenarios[MAX_SCENARIOS];
static bool trace;

static const struct rig_scenario *find(const char *name)
{
	const struct rig_scenario **scenario = all;

	while (strcmp((*scenario)->name, name) != 0)
		scenario++;
	return *scenario;
}

static void run_with_seeds(struct run *run)
{
	const struct rig_scenario *scenario = find(run->name);
	const uint64_t steps_before = rig_steps();
	unsigned failures = 0;
	uint64_t runs;

	for (runs = 0; runs < run->iterations && failures < MAX_FAILURES; runs++)
		failures += !rig_run(scenario, run->seed + runs, trace);
	if (failures)
		run_fail(run, "%u of %" PRIu64 " runs failed", failures, runs);
	printf("# %s: %" PRIu64 " accesses\n", run->name, rig_steps() - steps_before);
}

int main(int argc, char **argv)
{
	struct scenario_list list = {
		.program = "vgic-schedule",
		.what = "Runs the library's own code as tasks that take turns before each atomic access, by the\n"
			"draw of a seed, and checks what must hold at rest. An iteration is a run with a seed of\n"
			"its own, counted up from --seed; the same seed gives the same run",
		.scenarios = scenarios,
		.trace = &trace,
	};

	for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); l++) {
		for (const struct rig_scenario *s = lists[l]; s->name; s++) {
			all[list.num] = s;
			scenarios[list.num++] =
				(struct scenario){ s->name, s->what, DEFAULT_RUNS, DEFAULT_RUNS, run_with_seeds };
		}
	}
	return scenario_main(&list, argc, argv);
}
