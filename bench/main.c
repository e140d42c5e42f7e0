/* SPDX-License-Identifier: MIT */
/*
 * main.c - vgic-bench: the command line.
 *
 * What each subcommand measures is in cmd_*.c, how it is measured in measure.c.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "affinities.h"
#include "bench.h"

enum { EXIT_USAGE = 2 };

static const char help_text[] =
	"Usage: vgic-bench COMMAND [OPTION...]\n"
	"\n"
	"Measures what libvgic takes to deliver an interrupt, beside one uncontended atomic\n"
	"operation of the same machine in the same run: compare ratios, not nanoseconds.\n"
	"\n"
	"Commands:\n"
	"  hit      an MSI that is pending already, by the number of LPIs in use\n"
	"  deliver  an MSI with the guest's acknowledge and end of interrupt\n"
	"  scale    MSIs of several threads at once, each with a vCPU of its own, and all\n"
	"           with one vCPU; as `rmw`, what such threads gain with atomic operations\n"
	"  irqfd    from a NIC's signal to an interrupt that can be acknowledged: by a call\n"
	"           (door `signal`), an eventfd and a thread that sleeps (`service`) or looks\n"
	"           for a while before (`service-poll`); injected by that thread (path\n"
	"           `direct`) or by a worker (`deferred`)\n"
	"  routes   setting the routes of devices' vectors: the whole table for each vector,\n"
	"           as it once was done (`historic`), one entry for each vector (`entry`),\n"
	"           one transaction for each device (`batch`)\n"
	"  resume   resuming a guest's devices: the ITS's tables, the routes, the irqfds; the\n"
	"           whole table of routes for each vector (`historic`), or one transaction of\n"
	"           all routes (`transaction`)\n"
	"  sgi   a software-generated interrupt from the first vCPU to the last one,\n"
	"        beside two older ways to find the target: a walk over all vCPUs, and a\n"
	"        table indexed by the affinity bits that differ between vCPUs\n"
	"  spi   an edge-triggered interrupt of a device\n"
	"  state    saving a whole controller as one image, and restoring it: for each LPI\n"
	"           that is mapped, for each vCPU, and the rest\n"
	"\n"
	"The first three run libvgic (`direct`) beside older designs: `locked`, `lru`,\n"
	"`lru8`, `tree`. Every acknowledged INTID is checked.\n"
	"\n"
	"SGIs and SPIs are measured when it is pending already (what a busy device sees), and with\n"
	"the guest's acknowledge and end of interrupt. Every acknowledged INTID is checked.\n"
	"\n"
	"Options of hit:\n"
	"  --lpis LIST       numbers of LPIs, 1 to 57344 (default 1,16,256,4096,57344)\n"
	"\n"
	"Options of deliver:\n"
	"  --vcpus N         vCPUs, 1 to 512 (default 16)\n"
	"  --devices N       devices (default 16)\n"
	"  --events N        events of each device (default 16); all devices: up to 57344\n"
	"\n"
	"Options of scale:\n"
	"  --threads LIST    numbers of threads, 1 to 256 (default 1,2)\n"
	"  --events N        events of each thread's device, 1 to 128 (default 1)\n"
	"\n"
	"Options of irqfd:\n"
	"  --nics LIST       numbers of NICs, 1 to 64 (default 1,10)\n"
	"  --door LIST       signal,service,service-poll (default all)\n"
	"  --path LIST       direct,deferred (default all)\n"
	"  --counters        with --json: events and system calls instead of times\n"
	"\n"
	"Options of routes and resume:\n"
	"  --devices N       devices, 1 to 64 (default 8)\n"
	"  --vectors N       vectors of each device, 1 to 2048 (default 65); all devices: up\n"
	"                    to 4096 (of resume, each takes an eventfd)\n"
	"  --vcpus N         vCPUs, 1 to 512 (default 128)\n"
	"  --quiet           of resume: no device signals before all are resumed\n"
	"\n"
	"Options of hit, deliver, scale and irqfd:\n"
	"  --policy LIST     direct,locked,lru,lru8,tree (default all)\n"
	"\n"
	"Options of state:\n"
	"  --lpis LIST       numbers of LPIs, 1 to 57344 (default 1024,8192,57344)\n"
	"  --vcpus N         vCPUs, 1 to 512 (default 512)\n"
	"\n"
	"Options of sgi:\n"
	"  --vcpus LIST      numbers of vCPUs, 1 to 4096 (default 4,64,512)\n"
	"  --affinity LIST   linear (Aff0 0-15, then Aff1), hostile (each vCPU in a cluster\n"
	"                    of its own, bits scattered) (default linear,hostile)\n"
	"\n"
	"Options of all commands:\n"
	"  --json            print JSON: nanoseconds, medians\n"
	"  --batches N       batches of each path (default 301, scale 101, routes, resume\n"
	"                    and state 31, irqfd 5); the median counts\n"
	"  --iterations N    iterations of each batch (default: what takes 0.2 ms; irqfd:\n"
	"                    40 ms at 50,000 events/s of each NIC, 20 ms as fast as they\n"
	"                    go); not of routes, where a batch is one enabling of all\n"
	"                    devices, nor of resume, where it is one resuming\n"
	"  --cpu N           run on host CPU N only\n"
	"  --help            this text\n"
	"\n"
	"Examples:\n"
	"  vgic-bench spi\n"
	"  vgic-bench hit --lpis 1,256 --policy direct,tree\n"
	"  vgic-bench deliver --vcpus 1 --devices 1 --events 1 --json\n"
	"  vgic-bench sgi --vcpus 4,512 --affinity hostile --json\n"
	"\n"
	"Exit status: 0; 1 if something failed or a result was wrong; 2 for a wrong command line.\n";

/* ---- Values of options ---- */

/* A decimal number from @min to @max. Returns whether @text is one. */
static bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && !*end && *value >= min && *value <= max;
}

/* Calls @parse for each part of a list with commas, which it takes apart. Returns whether all were right. */
static bool parse_list(char *list, bool (*parse)(struct bench_options *options, const char *word),
		       struct bench_options *options)
{
	for (char *word; (word = strsep(&list, ","));) {
		if (!parse(options, word))
			return false;
	}
	return true;
}

static bool add_vcpus(struct bench_options *options, const char *word)
{
	uint64_t value;

	if (options->num_vcpus == BENCH_MAX_VCPU_COUNTS || !parse_number(word, 1, AFFINITIES_MAX, &value))
		return false;
	options->vcpus[options->num_vcpus++] = (uint32_t)value;
	return true;
}

static bool add_affinity(struct bench_options *options, const char *word)
{
	for (enum bench_affinity i = 0; i < BENCH_NUM_AFFINITIES; i++) {
		if (strcmp(word, bench_affinity_name(i)) != 0)
			continue;
		if (options->num_affinities == BENCH_NUM_AFFINITIES)
			return false;
		options->affinities[options->num_affinities++] = i;
		return true;
	}
	return false;
}

static bool add_lpis(struct bench_options *options, const char *word)
{
	uint64_t value;

	if (options->num_lpis == BENCH_MAX_LIST || !parse_number(word, 1, POLICY_NUM_LPIS, &value))
		return false;
	options->lpis[options->num_lpis++] = (uint32_t)value;
	return true;
}

static bool add_threads(struct bench_options *options, const char *word)
{
	uint64_t value;

	if (options->num_threads == BENCH_MAX_LIST || !parse_number(word, 1, BENCH_MAX_THREADS, &value))
		return false;
	options->threads[options->num_threads++] = (uint32_t)value;
	return true;
}

static bool add_nics(struct bench_options *options, const char *word)
{
	uint64_t value;

	if (options->num_nics == BENCH_MAX_LIST || !parse_number(word, 1, IRQFD_LOAD_MAX_NICS, &value))
		return false;
	options->nics[options->num_nics++] = (uint32_t)value;
	return true;
}

/* Which of @names is @word? -1: none. */
static int index_of(const char *const *names, unsigned num, const char *word)
{
	for (unsigned i = 0; i < num; i++) {
		if (!strcmp(names[i], word))
			return (int)i;
	}
	return -1;
}

static bool add_door(struct bench_options *options, const char *word)
{
	const int door = index_of(bench_door_names, IRQFD_LOAD_NUM_DOORS, word);

	if (door < 0 || options->num_doors == IRQFD_LOAD_NUM_DOORS)
		return false;
	options->doors[options->num_doors++] = (enum irqfd_load_door)door;
	return true;
}

static bool add_path(struct bench_options *options, const char *word)
{
	const int path = index_of(bench_path_names, IRQFD_LOAD_NUM_PATHS, word);

	if (path < 0 || options->num_paths == IRQFD_LOAD_NUM_PATHS)
		return false;
	options->paths[options->num_paths++] = (enum vgic_irqfd_path)path;
	return true;
}

static bool add_policy(struct bench_options *options, const char *word)
{
	const struct policy_ops *ops = policy_by_name(word);

	if (!ops || options->num_policies == POLICY_COUNT)
		return false;
	options->policies[options->num_policies++] = ops;
	return true;
}

/* A number that fits into 32 bits. */
static bool parse_count(const char *text, uint64_t max, uint32_t *count)
{
	uint64_t value = 0;

	if (!parse_number(text, 1, max, &value))
		return false;
	*count = (uint32_t)value;
	return true;
}

/* ---- The command line ---- */

enum {
	OPT_VCPUS = 256,
	OPT_AFFINITY,
	OPT_LPIS,
	OPT_DEVICES,
	OPT_EVENTS,
	OPT_VECTORS,
	OPT_NICS,
	OPT_DOOR,
	OPT_PATH,
	OPT_COUNTERS,
	OPT_QUIET,
	OPT_THREADS,
	OPT_POLICY,
	OPT_JSON,
	OPT_BATCHES,
	OPT_ITERATIONS,
	OPT_CPU,
	OPT_HELP,
};

#define COMMON_OPTIONS_BUT_ITERATIONS                                                                                  \
	{ "json", no_argument, NULL, OPT_JSON }, { "batches", required_argument, NULL, OPT_BATCHES },                  \
		{ "cpu", required_argument, NULL, OPT_CPU }, { "help", no_argument, NULL, OPT_HELP },                  \
	{                                                                                                              \
		0                                                                                                      \
	}

#define COMMON_OPTIONS { "iterations", required_argument, NULL, OPT_ITERATIONS }, COMMON_OPTIONS_BUT_ITERATIONS

static const struct option spi_options[] = { COMMON_OPTIONS };

static const struct option sgi_options[] = {
	{ "vcpus", required_argument, NULL, OPT_VCPUS },
	{ "affinity", required_argument, NULL, OPT_AFFINITY },
	COMMON_OPTIONS,
};

static const struct option hit_options[] = {
	{ "lpis", required_argument, NULL, OPT_LPIS },
	{ "policy", required_argument, NULL, OPT_POLICY },
	COMMON_OPTIONS,
};

static const struct option deliver_options[] = {
	{ "vcpus", required_argument, NULL, OPT_VCPUS },
	{ "devices", required_argument, NULL, OPT_DEVICES },
	{ "events", required_argument, NULL, OPT_EVENTS },
	{ "policy", required_argument, NULL, OPT_POLICY },
	COMMON_OPTIONS,
};

static const struct option scale_options[] = {
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "events", required_argument, NULL, OPT_EVENTS },
	{ "policy", required_argument, NULL, OPT_POLICY },
	COMMON_OPTIONS,
};

static const struct option irqfd_options[] = {
	{ "nics", required_argument, NULL, OPT_NICS },     { "door", required_argument, NULL, OPT_DOOR },
	{ "path", required_argument, NULL, OPT_PATH },     { "counters", no_argument, NULL, OPT_COUNTERS },
	{ "policy", required_argument, NULL, OPT_POLICY }, COMMON_OPTIONS,
};

static const struct option routes_options[] = {
	{ "devices", required_argument, NULL, OPT_DEVICES },
	{ "vectors", required_argument, NULL, OPT_VECTORS },
	{ "vcpus", required_argument, NULL, OPT_VCPUS },
	COMMON_OPTIONS_BUT_ITERATIONS,
};

static const struct option resume_options[] = {
	{ "devices", required_argument, NULL, OPT_DEVICES },
	{ "vectors", required_argument, NULL, OPT_VECTORS },
	{ "vcpus", required_argument, NULL, OPT_VCPUS },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	COMMON_OPTIONS_BUT_ITERATIONS,
};

static const struct option state_options[] = {
	{ "lpis", required_argument, NULL, OPT_LPIS },
	{ "vcpus", required_argument, NULL, OPT_VCPUS },
	COMMON_OPTIONS,
};

/* The defaults, of those options that a command has. */
static const struct bench_options default_options = {
	.measure = { .batches = MEASURE_DEFAULT_BATCHES, .cpu = -1 },
	.vcpus = { 4, 64, 512 },
	.num_vcpus = 3,
	.affinities = { BENCH_LINEAR, BENCH_HOSTILE },
	.num_affinities = BENCH_NUM_AFFINITIES,
	.policies = { &policy_direct, &policy_locked, &policy_lru, &policy_lru8, &policy_tree },
	.num_policies = POLICY_COUNT,
	.lpis = { 1, 16, 256, 4096, POLICY_NUM_LPIS },
	.num_lpis = 5,
	.num_devices = 16,
	.num_events = 16,
	.threads = { 1, 2 },
	.num_threads = 2,
	.nics = { 1, 10 },
	.num_nics = 2,
	.doors = { IRQFD_LOAD_SIGNAL, IRQFD_LOAD_SERVICE, IRQFD_LOAD_SERVICE_POLL },
	.num_doors = IRQFD_LOAD_NUM_DOORS,
	.paths = { VGIC_IRQFD_DIRECT, VGIC_IRQFD_DEFERRED },
	.num_paths = IRQFD_LOAD_NUM_PATHS,
};

static bool deliver_check(struct bench_options *options)
{
	return options->num_vcpus == 1 && options->vcpus[0] <= POLICY_MAX_VCPUS &&
	       (uint64_t)options->num_devices * options->num_events <= POLICY_NUM_LPIS;
}

static void deliver_defaults(struct bench_options *options)
{
	options->vcpus[0] = 16;
	options->num_vcpus = 1;
}

#define SCALE_MAX_EVENTS      128u /* with BENCH_MAX_THREADS devices there are LPIs for all */
#define SCALE_DEFAULT_BATCHES 101u

static bool scale_check(struct bench_options *options)
{
	return options->num_events <= SCALE_MAX_EVENTS;
}

static void scale_defaults(struct bench_options *options)
{
	options->measure.batches = SCALE_DEFAULT_BATCHES;
	options->num_events = 1;
}

#define IRQFD_DEFAULT_BATCHES 5u

static void irqfd_defaults(struct bench_options *options)
{
	options->measure.batches = IRQFD_DEFAULT_BATCHES;
}

#define ROUTES_MAX_DEVICES     64u
#define ROUTES_MAX_VECTORS     2048u
#define ROUTES_MAX_GSIS        4096u
#define ROUTES_DEFAULT_BATCHES 31u

static bool routes_check(struct bench_options *options)
{
	return options->num_vcpus == 1 && options->vcpus[0] <= POLICY_MAX_VCPUS &&
	       options->num_devices <= ROUTES_MAX_DEVICES && options->num_events <= ROUTES_MAX_VECTORS &&
	       options->num_devices * options->num_events <= ROUTES_MAX_GSIS;
}

static void routes_defaults(struct bench_options *options)
{
	options->measure.batches = ROUTES_DEFAULT_BATCHES;
	options->num_devices = 8;
	options->num_events = 65;
	options->vcpus[0] = 128;
	options->num_vcpus = 1;
}

#define STATE_DEFAULT_BATCHES 31u

static bool state_check(struct bench_options *options)
{
	return options->num_vcpus == 1 && options->vcpus[0] <= POLICY_MAX_VCPUS;
}

static void state_defaults(struct bench_options *options)
{
	options->measure.batches = STATE_DEFAULT_BATCHES;
	options->measure.own_time = true;
	options->lpis[0] = 1024;
	options->lpis[1] = 8192;
	options->lpis[2] = POLICY_NUM_LPIS;
	options->num_lpis = 3;
	options->vcpus[0] = POLICY_MAX_VCPUS;
	options->num_vcpus = 1;
}

struct command {
	const char *name;
	int (*run)(const struct bench_options *options);
	const struct option *options;
	void (*set_defaults)(struct bench_options *options); /* where they differ from default_options; or NULL */
	bool (*check)(struct bench_options *options);        /* values that do not fit together: false; or NULL */
};

static const struct command commands[] = {
	{ "hit", bench_hit, hit_options, NULL, NULL },
	{ "deliver", bench_deliver, deliver_options, deliver_defaults, deliver_check },
	{ "scale", bench_scale, scale_options, scale_defaults, scale_check },
	{ "irqfd", bench_irqfd, irqfd_options, irqfd_defaults, NULL },
	{ "routes", bench_routes, routes_options, routes_defaults, routes_check },
	{ "resume", bench_resume, resume_options, routes_defaults, routes_check },
	{ "sgi", bench_sgi, sgi_options, NULL, NULL },
	{ "spi", bench_spi, spi_options, NULL, NULL },
	{ "state", bench_state, state_options, state_defaults, state_check },
};

/* Takes one option into @options. Returns whether its value is right. */
static bool take_option(struct bench_options *options, int option, char *argument)
{
	uint64_t value = 0;

	switch (option) {
	case OPT_VCPUS:
		options->num_vcpus = 0;
		return parse_list(argument, add_vcpus, options);
	case OPT_AFFINITY:
		options->num_affinities = 0;
		return parse_list(argument, add_affinity, options);
	case OPT_LPIS:
		options->num_lpis = 0;
		return parse_list(argument, add_lpis, options);
	case OPT_THREADS:
		options->num_threads = 0;
		return parse_list(argument, add_threads, options);
	case OPT_POLICY:
		options->num_policies = 0;
		return parse_list(argument, add_policy, options);
	case OPT_NICS:
		options->num_nics = 0;
		return parse_list(argument, add_nics, options);
	case OPT_DOOR:
		options->num_doors = 0;
		return parse_list(argument, add_door, options);
	case OPT_PATH:
		options->num_paths = 0;
		return parse_list(argument, add_path, options);
	case OPT_COUNTERS:
		options->counters = true;
		return true;
	case OPT_QUIET:
		options->quiet = true;
		return true;
	case OPT_DEVICES:
		return parse_count(argument, POLICY_NUM_LPIS, &options->num_devices);
	case OPT_EVENTS:
	case OPT_VECTORS:
		return parse_count(argument, POLICY_NUM_LPIS, &options->num_events);
	case OPT_JSON:
		options->measure.json = true;
		return true;
	case OPT_BATCHES:
		if (!parse_number(argument, 1, MEASURE_MAX_BATCHES, &value))
			return false;
		options->measure.batches = (unsigned)value;
		return true;
	case OPT_ITERATIONS:
		return parse_number(argument, 1, MEASURE_MAX_ITERATIONS, &options->measure.iterations);
	case OPT_CPU:
		if (!parse_number(argument, 0, INT32_MAX, &value))
			return false;
		options->measure.cpu = (int)value;
		return true;
	}
	return false;
}

static int run_command(const struct command *command, int argc, char **argv)
{
	struct bench_options options = default_options;

	if (command->set_defaults)
		command->set_defaults(&options);
	for (int option, index = 0; (option = getopt_long(argc, argv, "", command->options, &index)) != -1;) {
		if (option == OPT_HELP) {
			fputs(help_text, stdout);
			return 0;
		}
		if (option == '?')
			return EXIT_USAGE;

		char *argument = strdup(optarg ? optarg : "");
		const bool right = argument && take_option(&options, option, argument);

		free(argument);
		if (!right) {
			fprintf(stderr, "vgic-bench: wrong value for --%s: '%s' (see --help)\n",
				command->options[index].name, optarg ? optarg : "");
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "vgic-bench: unexpected argument '%s' (see --help)\n", argv[optind]);
		return EXIT_USAGE;
	}
	if (command->check && !command->check(&options)) {
		fprintf(stderr, "vgic-bench: these numbers do not go together (see --help)\n");
		return EXIT_USAGE;
	}
	if (options.measure.cpu >= 0) {
		const int error = measure_pin(options.measure.cpu);

		if (error) {
			fprintf(stderr, "vgic-bench: cannot run on CPU %d: %s\n", options.measure.cpu,
				strerror(-error));
			return 1;
		}
	}
	return command->run(&options);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fputs(help_text, stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
		fputs(help_text, stdout);
		return 0;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!strcmp(argv[1], commands[i].name)) {
			const int status = run_command(&commands[i], argc - 1, argv + 1);

			/* A full disk or a closed pipe must not look like a result. */
			if (fflush(stdout) || ferror(stdout)) {
				fprintf(stderr, "vgic-bench: cannot write: %s\n", strerror(errno));
				return 1;
			}
			return status;
		}
	}
	fprintf(stderr, "vgic-bench: there is no command '%s' (see --help)\n", argv[1]);
	return EXIT_USAGE;
}

/* ---- What the commands share ---- */

bool bench_measure(struct series *const *turns, unsigned num_turns, const struct bench_options *options)
{
	const struct series *failed = NULL;
	const int error = measure_run(turns, num_turns, &options->measure, &failed);

	if (error == -EIO)
		fprintf(stderr, "vgic-bench: %s: a result was wrong\n", failed->name);
	else if (error)
		fprintf(stderr, "vgic-bench: %s: %s\n", failed->name, strerror(-error));
	return error == 0;
}

void bench_print_header(const char *what)
{
	printf("%-36s %10s %10s %10s %8s\n", what, "ns, median", "fastest", "90th pct.", "x atomic");
}

void bench_print_path(const char *what, struct summary summary, double rmw_ns)
{
	printf("  %-34s %10.1f %10.1f %10.1f %8.2f\n", what, summary.median, summary.min, summary.p90,
	       summary.median / rmw_ns);
}

void bench_progress(unsigned done, unsigned total)
{
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\rmeasuring: %3u %%", done * 100 / total);
	fflush(stderr);
}

void bench_progress_end(void)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r                \r");
}
