/* SPDX-License-Identifier: MIT */
/*
 * lpi_stress.c - vgic-lpi-stress: the command line and what it prints.
 *
 * The threads are in stress.c.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stress.h"

enum { EXIT_USAGE = 2 };

static const char help_text[] = "Usage: vgic-lpi-stress [OPTION...]\n"
				"\n"
				"Device threads signal MSIs through an ITS as fast as they can; vCPU threads\n"
				"acknowledge and end them. Every signal is accounted for: acknowledged, or merged\n"
				"with one that was pending still. A lost one ends the program with status 1.\n"
				"\n"
				"  -v N              vCPUs, 1 to 512 (default 1)\n"
				"  -d N              devices, 1 to 1024, a thread each (default 1)\n"
				"  -e N              events of each device (default 16); all devices: up to 57344\n"
				"  -i N              iterations: each device signals all its events so often\n"
				"                    (default 1000)\n"
				"  -c N              threads that are vCPUs (default: one for each CPU, but no more\n"
				"                    than vCPUs)\n"
				"  -p POLICY         direct, libvgic (default), or an older design:\n"
				"                    locked  a mutex and walks over lists\n"
				"                    lru     one cache, a list in order of use under a spin lock\n"
				"                    lru8    eight such caches, chosen by the injecting CPU\n"
				"                    tree    a radix tree read under RCU\n"
				"  --cache-entries N entries of each cache of lru and lru8, for each vCPU (default 4)\n"
				"  --lockstep        a device waits for each acknowledge: nothing merges\n"
				"  --pin             one CPU for each thread, in turn\n"
				"  --table           five configurations with all policies (-i: in all of them)\n"
				"  --json            print JSON\n"
				"  -h, --help        this text\n"
				"\n"
				"Exit status: 0; 1 if an interrupt was lost or something else failed; 2 for a wrong\n"
				"command line.\n";

struct arguments {
	struct stress_options stress;
	uint32_t cache_entries; /* for each vCPU */
	bool has_iterations, json, table;
};

/* A decimal number from 1 to @max. Returns whether @text is one. */
static bool parse_number(const char *text, uint64_t max, uint64_t *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && !*end && *value >= 1 && *value <= max;
}

static bool parse_count(const char *text, uint64_t max, uint32_t *count)
{
	uint64_t value = 0;

	if (!parse_number(text, max, &value))
		return false;
	*count = (uint32_t)value;
	return true;
}

/* ---- One run ---- */

static int run(const struct arguments *arguments, const struct stress_options *options, struct stress_result *result)
{
	struct stress_options o = *options;
	int error;

	o.cache_entries = arguments->cache_entries * o.num_vcpus;
	error = stress_run(&o, result);
	if (error)
		fprintf(stderr, "vgic-lpi-stress: %s: %s\n", o.ops->name, strerror(-error));
	return error;
}

/* Says on standard error what went wrong. */
static bool judge(const struct stress_options *options, const struct stress_result *r)
{
	if (stress_is_right(r))
		return true;
	fprintf(stderr,
		"vgic-lpi-stress: %s: %llu lost, %llu refused, %llu unexpected, %llu vCPUs not kicked; injected %llu, "
		"acknowledged %llu + merged %llu\n",
		options->ops->name, (unsigned long long)r->lost, (unsigned long long)r->refused,
		(unsigned long long)r->unexpected, (unsigned long long)r->unkicked, (unsigned long long)r->injected,
		(unsigned long long)r->acknowledged, (unsigned long long)r->merged);
	return false;
}

static void print_json(const struct stress_options *options, const struct stress_result *r, const char *more)
{
	printf("{%s\"policy\":\"%s\",\"rate\":%.2f,\"injected\":%llu,\"acknowledged\":%llu,\"acknowledged_rate\":%.2f,"
	       "\"merged\":%llu,\"lost\":%llu,\"hits\":%llu,\"misses\":%llu,\"evictions\":%llu,\"invalidations\":%llu}",
	       more, options->ops->name, r->rate, (unsigned long long)r->injected, (unsigned long long)r->acknowledged,
	       r->acknowledged_rate, (unsigned long long)r->merged, (unsigned long long)r->lost,
	       (unsigned long long)(r->injected - r->stats.misses), (unsigned long long)r->stats.misses,
	       (unsigned long long)r->stats.evictions, (unsigned long long)r->stats.invalidations);
}

static void print_result(const struct stress_options *options, const struct stress_result *r)
{
	printf("Rate: %.2f LPIs/sec\n", r->rate);
	printf("%s: %u vCPUs, %u devices with %u events, %llu iterations%s\n", options->ops->name, options->num_vcpus,
	       options->num_devices, options->num_events, (unsigned long long)options->iterations,
	       options->lockstep ? ", lockstep" : "");
	printf("injected %llu = acknowledged %llu + merged %llu; lost %llu\n", (unsigned long long)r->injected,
	       (unsigned long long)r->acknowledged, (unsigned long long)r->merged, (unsigned long long)r->lost);
	printf("acknowledged %.2f/sec, %llu kicks\n", r->acknowledged_rate, (unsigned long long)r->kicks);
	printf("hits %llu, misses %llu, evictions %llu, invalidations %llu, locks found taken %llu\n",
	       (unsigned long long)(r->injected - r->stats.misses), (unsigned long long)r->stats.misses,
	       (unsigned long long)r->stats.evictions, (unsigned long long)r->stats.invalidations,
	       (unsigned long long)r->stats.contended);
}

static int run_one(const struct arguments *arguments)
{
	const struct stress_options *options = &arguments->stress;
	struct stress_result result;

	if (run(arguments, options, &result))
		return 1;
	if (arguments->json) {
		print_json(options, &result, "");
		printf("\n");
	} else {
		print_result(options, &result);
	}
	return judge(options, &result) ? 0 : 1;
}

/* ---- The table ---- */

struct configuration {
	uint32_t num_vcpus, num_devices, num_events;
	uint64_t iterations;
};

/* Those with which KVM's change from the list to the tree was measured. */
static const struct configuration configurations[] = {
	{ 1, 1, 1, 1000000 }, { 16, 16, 16, 10000 }, { 16, 16, 17, 10000 }, { 32, 32, 1, 100000 }, { 1, 1, 17, 1000 },
};

#define TABLE_TURNS        3u
#define NUM_CONFIGURATIONS (sizeof(configurations) / sizeof(configurations[0]))

static void print_cell(const struct arguments *arguments, const struct stress_options *options,
		       const struct stress_result *result, bool first)
{
	char more[128];

	if (!arguments->json) {
		printf(" %12.0f", result->rate);
		fflush(stdout);
		return;
	}
	snprintf(more, sizeof(more), "\"vcpus\":%u,\"devices\":%u,\"events\":%u,\"iterations\":%llu,",
		 options->num_vcpus, options->num_devices, options->num_events,
		 (unsigned long long)options->iterations);
	printf("%s\n", first ? "" : ",");
	print_json(options, result, more);
}

static int compare_rates(const void *a, const void *b)
{
	const double x = ((const struct stress_result *)a)->rate, y = ((const struct stress_result *)b)->rate;

	return (x > y) - (x < y);
}

/* All policies in turn, and again: a busy moment of the machine hits them alike. The run with the median rate counts. */
static bool run_row(const struct arguments *arguments, const struct configuration *c)
{
	struct stress_result results[POLICY_COUNT][TABLE_TURNS];
	struct stress_options options[POLICY_COUNT];

	for (unsigned turn = 0; turn < TABLE_TURNS; turn++) {
		for (unsigned i = 0; i < POLICY_COUNT; i++) {
			options[i] = arguments->stress;
			options[i].ops = policy_list[i];
			options[i].num_vcpus = c->num_vcpus;
			options[i].num_devices = c->num_devices;
			options[i].num_events = c->num_events;
			if (!arguments->has_iterations)
				options[i].iterations = c->iterations;
			if (run(arguments, &options[i], &results[i][turn]) || !judge(&options[i], &results[i][turn]))
				return false;
		}
	}
	for (unsigned i = 0; i < POLICY_COUNT; i++) {
		qsort(results[i], TABLE_TURNS, sizeof(results[i][0]), compare_rates);
		print_cell(arguments, &options[i], &results[i][TABLE_TURNS / 2], i == 0 && c == configurations);
	}
	return true;
}

static int run_table(const struct arguments *arguments)
{
	bool well = true;

	if (arguments->json) {
		printf("{\"rows\":[");
	} else {
		printf("%-30s", "LPIs/sec");
		for (unsigned i = 0; i < POLICY_COUNT; i++)
			printf(" %12s", policy_list[i]->name);
		printf("\n");
	}
	for (unsigned i = 0; i < NUM_CONFIGURATIONS && well; i++) {
		const struct configuration *c = &configurations[i];

		if (!arguments->json)
			printf("-v %-3u -d %-3u -e %-3u -i %-8llu", c->num_vcpus, c->num_devices, c->num_events,
			       (unsigned long long)(arguments->has_iterations ? arguments->stress.iterations :
										c->iterations));
		well = run_row(arguments, c);
		if (!arguments->json)
			printf("\n");
	}
	if (arguments->json)
		printf("]}\n");
	return well ? 0 : 1;
}

/* ---- The command line ---- */

enum { OPT_LOCKSTEP = 256, OPT_PIN, OPT_TABLE, OPT_JSON, OPT_CACHE_ENTRIES };

static const struct option long_options[] = {
	{ "lockstep", no_argument, NULL, OPT_LOCKSTEP },
	{ "pin", no_argument, NULL, OPT_PIN },
	{ "table", no_argument, NULL, OPT_TABLE },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "cache-entries", required_argument, NULL, OPT_CACHE_ENTRIES },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

/* Takes one option. Returns whether its value is right. */
static bool take_option(struct arguments *arguments, int option, const char *value)
{
	struct stress_options *stress = &arguments->stress;

	switch (option) {
	case 'v':
		return parse_count(value, POLICY_MAX_VCPUS, &stress->num_vcpus);
	case 'd':
		return parse_count(value, STRESS_MAX_DEVICES, &stress->num_devices);
	case 'e':
		return parse_count(value, POLICY_NUM_LPIS, &stress->num_events);
	case 'i':
		arguments->has_iterations = true;
		return parse_number(value, STRESS_MAX_ITERATIONS, &stress->iterations);
	case 'c':
		return parse_count(value, POLICY_MAX_VCPUS, &stress->num_consumers);
	case 'p':
		stress->ops = policy_by_name(value);
		return stress->ops;
	case OPT_CACHE_ENTRIES:
		return parse_count(value, POLICY_NUM_LPIS, &arguments->cache_entries);
	case OPT_LOCKSTEP:
		return stress->lockstep = true;
	case OPT_PIN:
		return stress->pin = true;
	case OPT_TABLE:
		return arguments->table = true;
	case OPT_JSON:
		return arguments->json = true;
	}
	return false;
}

static bool parse_arguments(struct arguments *arguments, int argc, char **argv)
{
	for (int option; (option = getopt_long(argc, argv, "v:d:e:i:c:p:h", long_options, NULL)) != -1;) {
		if (option == 'h') {
			fputs(help_text, stdout);
			exit(0);
		}
		if (option == '?')
			return false;
		if (!take_option(arguments, option, optarg)) {
			fprintf(stderr, "vgic-lpi-stress: wrong value '%s' (see -h)\n", optarg);
			return false;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "vgic-lpi-stress: unexpected argument '%s' (see -h)\n", argv[optind]);
		return false;
	}
	if ((uint64_t)arguments->stress.num_devices * arguments->stress.num_events > POLICY_NUM_LPIS) {
		fprintf(stderr, "vgic-lpi-stress: there are only %u LPIs for all devices\n", POLICY_NUM_LPIS);
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct arguments arguments = {
		.stress = { .ops = &policy_direct,
			    .num_vcpus = 1,
			    .num_devices = 1,
			    .num_events = 16,
			    .iterations = 1000,
			    .progress = true },
		.cache_entries = 4,
	};
	int status;

	if (!parse_arguments(&arguments, argc, argv))
		return EXIT_USAGE;
	status = arguments.table ? run_table(&arguments) : run_one(&arguments);
	/* A full disk or a closed pipe must not look like a result. */
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "vgic-lpi-stress: cannot write: %s\n", strerror(errno));
		return 1;
	}
	return status;
}
