/* SPDX-License-Identifier: MIT */
/*
 * scenario.c - what the programs of scenarios have in common: options, the
 * list, failures, and the report in TAP. See scenario.h. Owns nothing; run_fail() is
 * for any thread.
 */
#include "scenario.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#define MAX_PRINTED_FAILURES 12u
#define DEFAULT_SEED         1u

void run_fail(struct run *run, const char *format, ...)
{
	const bool is_printed = atomic_fetch_add_explicit(&run->failures, 1, memory_order_relaxed) <
				MAX_PRINTED_FAILURES;
	va_list args;

	va_start(args, format);
	if (is_printed) {
		flockfile(stdout);
		printf("# %s: ", run->name);
		vprintf(format, args);
		putchar('\n');
		fflush(stdout);
		funlockfile(stdout);
	}
	va_end(args);
}

/* Linux rounds the sleeps of a thread by its timer slack, 50 us by default; new threads inherit it. */
static void sleep_precisely(void)
{
#ifdef __linux__
	prctl(PR_SET_TIMERSLACK, 1);
#endif
}

static void print_usage(FILE *to, const struct scenario_list *list)
{
	fprintf(to,
		"Usage: %s [OPTION]...\n"
		"\n"
		"%s. Reports in TAP.\n"
		"\n"
		"  --scenario NAME    run this one only; may be given several times\n"
		"  --iterations N     amount of work, instead of each scenario's default\n"
		"  --seed N           seed of the random numbers (default %u)\n"
		"%s"
		"  --list             list the scenarios\n"
		"  --help             print this\n",
		list->program, list->what, DEFAULT_SEED,
		list->trace ? "  --trace            print every step: best with --iterations 1\n" : "");
}

static void print_list(const struct scenario_list *list)
{
	for (size_t i = 0; i < list->num; i++)
		printf("%-22s %s\n", list->scenarios[i].name, list->scenarios[i].what);
}

static bool parse_number(const char *text, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 0);
	return errno == 0 && end != text && *end == '\0' && text[0] != '-';
}

static bool select_scenario(const struct scenario_list *list, bool *selected, const char *name)
{
	for (size_t i = 0; i < list->num; i++) {
		if (strcmp(list->scenarios[i].name, name) == 0) {
			selected[i] = true;
			return true;
		}
	}
	return false;
}

static bool run_scenario(const struct scenario *s, uint64_t iterations, uint64_t seed, unsigned number)
{
	struct run run = { .name = s->name, .iterations = iterations, .seed = seed };

	if (!run.iterations)
		run.iterations = STRESS_TSAN ? s->tsan_iterations : s->iterations;
	printf("# %s: %s; --seed %" PRIu64 " --iterations %" PRIu64 "\n", s->name, s->what, run.seed, run.iterations);
	fflush(stdout);
	s->run(&run);
	if (run_has_failed(&run))
		printf("# %s: %u failures\n", s->name, load_relaxed(&run.failures));
	printf("%s %u - %s\n", run_has_failed(&run) ? "not ok" : "ok", number, s->name);
	fflush(stdout);
	return !run_has_failed(&run);
}

/* What the command line asks for. */
struct choice {
	bool *selected; /* by scenario */
	bool all;
	uint64_t iterations; /* 0: each scenario's own */
	uint64_t seed;
};

#define GO_ON (-1)

static int complain(const struct scenario_list *list, const char *what, const char *text)
{
	fprintf(stderr, "%s: %s '%s'; --help and --list show what there is\n", list->program, what, text);
	return 2;
}

/* Returns GO_ON, or the exit status. */
static int take_option(const struct scenario_list *list, int option, struct choice *choice)
{
	switch (option) {
	case 's':
		if (!select_scenario(list, choice->selected, optarg))
			return complain(list, "there is no scenario", optarg);
		choice->all = false;
		return GO_ON;
	case 'i':
		if (!parse_number(optarg, &choice->iterations) || choice->iterations == 0)
			return complain(list, "--iterations wants a number above 0, not", optarg);
		return GO_ON;
	case 'r':
		if (!parse_number(optarg, &choice->seed))
			return complain(list, "--seed wants a number, not", optarg);
		return GO_ON;
	case 't':
		if (list->trace)
			*list->trace = true;
		return GO_ON;
	case 'l':
		print_list(list);
		return 0;
	case 'h':
		print_usage(stdout, list);
		return 0;
	default:
		print_usage(stderr, list);
		return 2;
	}
}

static int parse(const struct scenario_list *list, int argc, char **argv, struct choice *choice)
{
	/* The last one is only for those that can. */
	const struct option options[] = {
		{ "scenario", required_argument, NULL, 's' },
		{ "iterations", required_argument, NULL, 'i' },
		{ "seed", required_argument, NULL, 'r' },
		{ "list", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ list->trace ? "trace" : NULL, no_argument, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};
	int status = GO_ON;
	int option;

	while (status == GO_ON && (option = getopt_long(argc, argv, "", options, NULL)) != -1)
		status = take_option(list, option, choice);
	if (status == GO_ON && optind < argc)
		status = complain(list, "unexpected argument", argv[optind]);
	return status;
}

static bool run_chosen(const struct scenario_list *list, const struct choice *choice)
{
	unsigned wanted = 0, number = 0;
	bool passed = true;

	for (size_t i = 0; i < list->num; i++)
		wanted += choice->all || choice->selected[i];
	printf("1..%u\n", wanted);
	for (size_t i = 0; i < list->num; i++) {
		if (choice->all || choice->selected[i])
			passed &= run_scenario(&list->scenarios[i], choice->iterations, choice->seed, ++number);
	}
	return passed;
}

int scenario_main(const struct scenario_list *list, int argc, char **argv)
{
	struct choice choice = { .all = true, .seed = DEFAULT_SEED };
	int status;

	choice.selected = calloc(list->num, sizeof(choice.selected[0]));
	if (!choice.selected)
		abort();
	status = parse(list, argc, argv, &choice);
	if (status == GO_ON) {
		sleep_precisely();
		status = run_chosen(list, &choice) ? 0 : 1;
	}
	free(choice.selected);
	return status;
}
