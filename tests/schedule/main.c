/* SPDX-License-Identifier: MIT */
/*
 * main.c - options, the loop over runs, and the report in TAP.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define DEFAULT_SEED 1u
#define DEFAULT_RUNS 400u
/* Failing runs of a scenario after which it is given up. */
#define MAX_FAILURES 3u

static const struct scenario *const lists[] = { scenarios_core, scenarios_its, scenarios_route };

#define NUM_LISTS (sizeof(lists) / sizeof(lists[0]))

struct wanted {
	const char *name; /* of the only scenario, or NULL */
	uint64_t seed;
	uint64_t runs;
	bool trace;
};

static void print_usage(FILE *to)
{
	fprintf(to,
		"Usage: vgic-schedule [OPTION]...\n"
		"\n"
		"Runs the library's own code as tasks that take turns before each atomic access, by\n"
		"the draw of a seed, and checks what must hold at rest. Each run has a seed of its\n"
		"own, counted up from --seed; the same seed gives the same run. Reports in TAP.\n"
		"\n"
		"  --scenario NAME    run this one only\n"
		"  --runs N           runs of each scenario (default %u)\n"
		"  --seed N           seed of the first run (default %u)\n"
		"  --trace            print every access, every turn: best with --runs 1\n"
		"  --list             list the scenarios\n"
		"  --help             print this\n",
		DEFAULT_RUNS, DEFAULT_SEED);
}

static void print_list(void)
{
	for (size_t l = 0; l < NUM_LISTS; l++) {
		for (const struct scenario *scenario = lists[l]; scenario->name; scenario++)
			printf("%-14s %s\n", scenario->name, scenario->what);
	}
}

static bool is_wanted(const struct wanted *wanted, const struct scenario *scenario)
{
	return !wanted->name || strcmp(wanted->name, scenario->name) == 0;
}

static unsigned count_wanted(const struct wanted *wanted)
{
	unsigned count = 0;

	for (size_t l = 0; l < NUM_LISTS; l++) {
		for (const struct scenario *scenario = lists[l]; scenario->name; scenario++)
			count += is_wanted(wanted, scenario);
	}
	return count;
}

static bool run_scenario(const struct wanted *wanted, const struct scenario *scenario, unsigned number)
{
	const uint64_t steps_before = rig_steps();
	unsigned failures = 0;
	uint64_t runs;

	for (runs = 0; runs < wanted->runs && failures < MAX_FAILURES; runs++)
		failures += !rig_run(scenario, wanted->seed + runs, wanted->trace);
	printf("# %s: %s; %" PRIu64 " runs from seed %" PRIu64 ", %" PRIu64 " accesses\n", scenario->name,
	       scenario->what, runs, wanted->seed, rig_steps() - steps_before);
	printf("%s %u - %s\n", failures ? "not ok" : "ok", number, scenario->name);
	fflush(stdout);
	return failures == 0;
}

static int run_all(const struct wanted *wanted)
{
	unsigned number = 0;
	bool passed = true;

	printf("1..%u\n", count_wanted(wanted));
	for (size_t l = 0; l < NUM_LISTS; l++) {
		for (const struct scenario *scenario = lists[l]; scenario->name; scenario++) {
			if (is_wanted(wanted, scenario))
				passed &= run_scenario(wanted, scenario, ++number);
		}
	}
	return passed ? 0 : 1;
}

static uint64_t parse_number(const char *option, const char *text)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 0);
	if (errno != 0 || end == text || *end != '\0' || text[0] == '-') {
		fprintf(stderr, "vgic-schedule: --%s wants a number, not '%s'\n", option, text);
		exit(2);
	}
	return number;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "scenario", required_argument, NULL, 's' },
		{ "runs", required_argument, NULL, 'n' },
		{ "seed", required_argument, NULL, 'r' },
		{ "trace", no_argument, NULL, 't' },
		{ "list", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct wanted wanted = { .seed = DEFAULT_SEED, .runs = DEFAULT_RUNS };
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 's':
			wanted.name = optarg;
			break;
		case 'n':
			wanted.runs = parse_number("runs", optarg);
			break;
		case 'r':
			wanted.seed = parse_number("seed", optarg);
			break;
		case 't':
			wanted.trace = true;
			break;
		case 'l':
			print_list();
			return 0;
		case 'h':
			print_usage(stdout);
			return 0;
		default:
			print_usage(stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "vgic-schedule: unexpected argument '%s'\n", argv[optind]);
		return 2;
	}
	if (count_wanted(&wanted) == 0) {
		fprintf(stderr, "vgic-schedule: there is no scenario '%s' (see --list)\n", wanted.name);
		return 2;
	}
	return run_all(&wanted);
}
