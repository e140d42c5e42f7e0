/* SPDX-License-Identifier: MIT */
/* The command line: parsing, checks, and the help. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vgic/vgic.h>

#include "machine.h"
#include "util.h"
#include "virtio.h"

#define DEFAULT_MEMORY (512ull << 20)
#define MIN_MEMORY     (4ull << 20)
#define DEFAULT_APPEND "console=ttyAMA0"
#define GO_ON          (-1)

enum option_code {
	OPT_KERNEL = 'k',
	OPT_INITRD = 'i',
	OPT_CPUS = 'c',
	OPT_MEMORY = 'm',
	OPT_APPEND = 'a',
	OPT_HELP = 'h',
	OPT_VERSION = 'V',
	OPT_LOAD_ADDRESS = 256,
	OPT_VIRTUAL_TIME,
	OPT_REAL_TIME,
	OPT_INPUT,
	OPT_EXIT_ON,
	OPT_TIMEOUT,
	OPT_VCPU_IDS,
	OPT_TRACE_GIC,
	OPT_NO_REBOOT,
	OPT_DISK,
	OPT_VHOST_USER_BLK,
	OPT_LOAD,
	OPT_SAVE_TO,
	OPT_SAVE_AT,
	OPT_SAVE_AFTER,
	OPT_SAVE_GIC,
};

static const struct option long_options[] = {
	{ "kernel", required_argument, NULL, OPT_KERNEL },
	{ "initrd", required_argument, NULL, OPT_INITRD },
	{ "cpus", required_argument, NULL, OPT_CPUS },
	{ "memory", required_argument, NULL, OPT_MEMORY },
	{ "append", required_argument, NULL, OPT_APPEND },
	{ "load-address", required_argument, NULL, OPT_LOAD_ADDRESS },
	{ "virtual-time", no_argument, NULL, OPT_VIRTUAL_TIME },
	{ "real-time", no_argument, NULL, OPT_REAL_TIME },
	{ "input", required_argument, NULL, OPT_INPUT },
	{ "exit-on", required_argument, NULL, OPT_EXIT_ON },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "vcpu-ids", required_argument, NULL, OPT_VCPU_IDS },
	{ "trace-gic", required_argument, NULL, OPT_TRACE_GIC },
	{ "no-reboot", no_argument, NULL, OPT_NO_REBOOT },
	{ "disk", required_argument, NULL, OPT_DISK },
	{ "vhost-user-blk", required_argument, NULL, OPT_VHOST_USER_BLK },
	{ "load", required_argument, NULL, OPT_LOAD },
	{ "save-to", required_argument, NULL, OPT_SAVE_TO },
	{ "save-at", required_argument, NULL, OPT_SAVE_AT },
	{ "save-after", required_argument, NULL, OPT_SAVE_AFTER },
	{ "save-gic", required_argument, NULL, OPT_SAVE_GIC },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"Usage: vgic-vmm --kernel FILE [OPTION]...\n"
	"\n"
	"Run an arm64 guest whose interrupt controller is libvgic. The CPUs are emulated; the\n"
	"machine has the address map of QEMU's virt machine: GICv3 with ITS, PL011 UART, PSCI,\n"
	"generic timers, PCI Express with virtio disks.\n"
	"\n"
	"What to run\n"
	"  -k, --kernel FILE       a Linux Image, raw or gzip; with --load-address any flat binary\n"
	"  -i, --initrd FILE       the initial RAM disk\n"
	"  -a, --append TEXT       the kernel's command line (default: \"" DEFAULT_APPEND "\")\n"
	"      --load-address A    load the file at this address, and start at its first byte at\n"
	"                          EL1 with the MMU off and the device tree's address in x0\n"
	"\n"
	"The machine\n"
	"  -c, --cpus N            the number of vCPUs, 1 to 512 (default: 1)\n"
	"  -m, --memory M          memory in MiB, or with a suffix as in 2G (default: 512)\n"
	"      --vcpu-ids N,N,...  libvgic's id of each vCPU, which the guest sees as\n"
	"                          GICR_TYPER.Processor_Number (default: 0,1,2,...)\n"
	"      --disk FILE[,queues=N][,vectors=N][,readonly]\n"
	"                          a disk whose contents are a file or block device; the first is the\n"
	"                          guest's /dev/vda, and so on up to 16. N queues, 1 to 64, with an\n"
	"                          MSI-X vector each (default: one for each vCPU); with vectors=N,\n"
	"                          2 to 65, Linux lets them share one where these are too few\n"
	"      --vhost-user-blk SOCKET[,queues=N][,vectors=N]\n"
	"                          the next disk, served by the process that listens at SOCKET by the\n"
	"                          vhost-user protocol, such as qemu-storage-daemon. Needs real time,\n"
	"                          and makes it the default\n"
	"      --no-reboot         end when the guest resets the machine, instead of starting anew\n"
	"\n"
	"Time and input\n"
	"      --virtual-time      time advances with the guest's instructions, and jumps when all\n"
	"                          vCPUs wait: two runs print the same bytes. The default unless\n"
	"                          standard input and output are a terminal\n"
	"      --real-time         the guest's time is the host's\n"
	"      --input FILE        what is typed to the guest, \"-\" for standard input. Without it\n"
	"                          that is standard input in real time or if it is a terminal, and\n"
	"                          nothing otherwise\n"
	"\n"
	"The end\n"
	"      --exit-on TEXT      end with success as soon as the guest has printed TEXT\n"
	"      --timeout SECONDS   end with status 3 after so much of the host's time\n"
	"  Ctrl-A x                leave; Ctrl-A Ctrl-A types one Ctrl-A (on a terminal)\n"
	"\n"
	"Saving the machine\n"
	"      --save-to FILE      on SIGUSR1, or as the next two say, save the machine in FILE and end\n"
	"      --save-at TEXT      save it when the guest has printed TEXT\n"
	"      --save-after N      save it when the guest has executed N instructions\n"
	"      --save-gic FORM     the interrupt controller's state as libvgic's \"image\" (the default)\n"
	"                          or as KVM's \"attributes\", with its tables in guest memory\n"
	"      --load FILE         go on with a saved machine instead of booting; give the same\n"
	"                          options for the machine, and the same contents of its disks.\n"
	"                          --kernel and its relatives are for a guest that resets then\n"
	"\n"
	"Looking inside\n"
	"      --trace-gic FILE    write each access to the interrupt controller, each line driven\n"
	"                          and each interrupt acknowledged to FILE, \"-\" for standard error\n"
	"  -h, --help              print this\n"
	"  -V, --version           print the version\n"
	"\n"
	"Examples\n"
	"  Debian's kernel with two vCPUs, to a shell if the initial RAM disk has one:\n"
	"    vgic-vmm --kernel vmlinuz --initrd initrd.img --cpus 2\n"
	"  The same with a disk, whose interrupts come through the ITS:\n"
	"    vgic-vmm --kernel vmlinuz --initrd initrd.img --cpus 2 --disk disk.img\n"
	"  Save a machine while it runs, and go on with it in another process:\n"
	"    vgic-vmm --kernel vmlinuz --initrd initrd.img --save-to vm.state & kill -USR1 $!\n"
	"    vgic-vmm --load vm.state\n"
	"  Boot unattended, and succeed if it reaches user space within a minute:\n"
	"    vgic-vmm --kernel vmlinuz --initrd initrd.img --exit-on 'login:' --timeout 60\n"
	"  A bare-metal program, with a record of what it does with the interrupt controller:\n"
	"    vgic-vmm --kernel test.bin --load-address 0x40080000 --trace-gic gic.log\n"
	"\n"
	"Exit status\n"
	"  0  the guest powered off, --exit-on saw its text, the machine was saved, or the user left\n"
	"     with Ctrl-A x\n"
	"  1  the guest or the host cannot go on: one line on standard error says why\n"
	"  2  the command line is wrong\n"
	"  3  --timeout has run out\n"
	"  4  the guest reset the machine and --no-reboot was given\n";

/* ---- Values ------------------------------------------------------------------------- */

/* An unsigned number, decimal or 0x..., from @text up to *end. */
static bool parse_number(const char *text, uint64_t *value, const char **end)
{
	char *rest;

	if (*text < '0' || *text > '9') /* strtoull() would take signs and blanks */
		return false;
	errno = 0;
	*value = strtoull(text, &rest, 0);
	*end = rest;
	return errno == 0;
}

static bool parse_whole_number(const char *text, uint64_t *value)
{
	const char *end;

	return parse_number(text, value, &end) && *end == '\0';
}

static bool parse_memory(const char *text, uint64_t *bytes)
{
	const char *end;
	unsigned shift = 20;
	uint64_t value;

	if (!parse_number(text, &value, &end))
		return false;
	if (*end == 'G' || *end == 'g')
		shift = 30;
	if (*end == 'M' || *end == 'm' || shift == 30)
		end++;
	if (*end != '\0' || value > UINT64_MAX >> shift)
		return false;
	*bytes = value << shift;
	return true;
}

static bool parse_seconds(const char *text, uint64_t *ns)
{
	char *end;
	const double seconds = strtod(text, &end);

	if (end == text || *end != '\0' || !isfinite(seconds) || seconds <= 0 || seconds > 1e9)
		return false;
	*ns = (uint64_t)(seconds * 1e9);
	return true;
}

/* Returns the number of ids, or 0 for a mistake. */
static unsigned parse_ids(const char *text, uint32_t ids[MAX_CPUS])
{
	unsigned count = 0;

	for (;;) {
		uint64_t value;

		if (count == MAX_CPUS || !parse_number(text, &value, &text) || value > VGIC_MAX_VCPU_ID)
			return 0;
		for (unsigned i = 0; i < count; i++)
			if (ids[i] == value)
				return 0;
		ids[count++] = (uint32_t)value;
		if (*text == '\0')
			return count;
		if (*text++ != ',')
			return 0;
	}
}

/* "NAME=NUMBER". Returns false if @text has another name; *value is outside of all bounds if the number is none. */
static bool parse_named_number(const char *text, const char *name, uint64_t *value)
{
	const size_t length = strlen(name);

	if (strncmp(text, name, length) != 0 || text[length] != '=')
		return false;
	if (!parse_whole_number(text + length + 1, value))
		*value = UINT64_MAX;
	return true;
}

/* One part behind the file or socket. Returns NULL, or what is wrong with it. */
static const char *parse_disk_part(const char *part, struct disk_option *disk)
{
	uint64_t value;

	if (parse_named_number(part, "queues", &value)) {
		disk->queues = (unsigned)value;
		return value >= 1 && value <= VIRTIO_MAX_QUEUES ? NULL : "a disk has 1 to 64 queues";
	}
	if (parse_named_number(part, "vectors", &value)) {
		disk->vectors = (unsigned)value;
		return value >= 2 && value <= VIRTIO_MAX_QUEUES + 1 ? NULL : "a disk has 2 to 65 vectors";
	}
	if (disk->vhost_user)
		return "behind the socket --vhost-user-blk takes queues=N and vectors=N";
	disk->read_only = strcmp(part, "readonly") == 0;
	return disk->read_only ?
		       NULL :
		       "behind the file --disk takes queues=N, vectors=N and readonly (a name with a comma in it: "
		       "link to it)";
}

/* PATH and what follows it, which is cut into its parts. Returns NULL, or what is wrong with @suffix. */
static const char *parse_disk(char *text, struct disk_option *disk, const char **suffix)
{
	const char *wrong = NULL;
	char *part = text;

	*suffix = text;
	disk->path = strsep(&part, ",");
	if (*disk->path == '\0')
		return disk->vhost_user ? "--vhost-user-blk needs the name of a socket" :
					  "--disk needs the name of a file";
	while (part && !wrong) {
		*suffix = strsep(&part, ",");
		wrong = parse_disk_part(*suffix, disk);
	}
	return wrong;
}

/* ---- The whole ------------------------------------------------------------------------ */

/* What was given beside the values in struct options. */
struct given {
	bool cpus;
	bool time;
	unsigned num_ids;
};

static int complain(const char *what, const char *value)
{
	message("%s: \"%s\"; --help shows what there is", what, value);
	return EXIT_USAGE;
}

static int parse_disk_option(struct options *o, char *text, bool vhost_user)
{
	const char *suffix;
	const char *wrong;

	if (o->num_disks == MAX_DISKS)
		return complain("there can be 16 disks, this is one more", text);
	o->disks[o->num_disks].vhost_user = vhost_user;
	wrong = parse_disk(text, &o->disks[o->num_disks], &suffix);
	if (wrong)
		return complain(wrong, suffix);
	o->num_disks++;
	return GO_ON;
}

static int parse_machine_option(struct options *o, struct given *given, int code)
{
	uint64_t value;

	switch (code) {
	case OPT_CPUS:
		if (!parse_whole_number(optarg, &value) || value < 1 || value > MAX_CPUS)
			return complain("--cpus needs a number from 1 to 512", optarg);
		o->num_cpus = (unsigned)value;
		given->cpus = true;
		return GO_ON;
	case OPT_MEMORY:
		if (!parse_memory(optarg, &o->memory) || o->memory < MIN_MEMORY || o->memory > RAM_MAX_SIZE)
			return complain("--memory needs a size in MiB, from 4 to 261120, or with M or G behind it",
					optarg);
		return GO_ON;
	case OPT_LOAD_ADDRESS:
		if (!parse_whole_number(optarg, &o->load_address))
			return complain("--load-address needs an address", optarg);
		o->has_load_address = true;
		return GO_ON;
	case OPT_TIMEOUT:
		if (!parse_seconds(optarg, &o->timeout_ns))
			return complain("--timeout needs a number of seconds", optarg);
		return GO_ON;
	case OPT_DISK:
	case OPT_VHOST_USER_BLK:
		return parse_disk_option(o, optarg, code == OPT_VHOST_USER_BLK);
	default: /* OPT_VCPU_IDS */
		given->num_ids = parse_ids(optarg, o->vcpu_ids);
		if (!given->num_ids)
			return complain("--vcpu-ids needs different numbers from 0 to 65535, with commas between them",
					optarg);
		return GO_ON;
	}
}

static int parse_snapshot_option(struct options *o, int code)
{
	switch (code) {
	case OPT_LOAD:
		o->load = optarg;
		return GO_ON;
	case OPT_SAVE_TO:
		o->save_to = optarg;
		return GO_ON;
	case OPT_SAVE_AT:
		if (*optarg == '\0')
			return complain("--save-at needs a text", optarg);
		o->save_at = optarg;
		return GO_ON;
	case OPT_SAVE_AFTER:
		if (!parse_whole_number(optarg, &o->save_after) || o->save_after == 0)
			return complain("--save-after needs a number of instructions", optarg);
		return GO_ON;
	default: /* OPT_SAVE_GIC */
		o->save_attributes = strcmp(optarg, "attributes") == 0;
		if (!o->save_attributes && strcmp(optarg, "image") != 0)
			return complain("--save-gic needs \"image\" or \"attributes\"", optarg);
		return GO_ON;
	}
}

static int parse_option(struct options *o, struct given *given, int code)
{
	switch (code) {
	case OPT_KERNEL:
		o->kernel = optarg;
		return GO_ON;
	case OPT_INITRD:
		o->initrd = optarg;
		return GO_ON;
	case OPT_APPEND:
		o->append = optarg;
		return GO_ON;
	case OPT_VIRTUAL_TIME:
	case OPT_REAL_TIME:
		o->virtual_time = code == OPT_VIRTUAL_TIME;
		given->time = true;
		return GO_ON;
	case OPT_INPUT:
		o->input = optarg;
		return GO_ON;
	case OPT_EXIT_ON:
		if (*optarg == '\0')
			return complain("--exit-on needs a text", optarg);
		o->exit_on = optarg;
		return GO_ON;
	case OPT_TRACE_GIC:
		o->trace_gic = optarg;
		return GO_ON;
	case OPT_NO_REBOOT:
		o->no_reboot = true;
		return GO_ON;
	case OPT_HELP:
		fputs(help, stdout);
		return EXIT_DONE;
	case OPT_VERSION:
		printf("vgic-vmm %d.%d\n", VGIC_VERSION_MAJOR, VGIC_VERSION_MINOR);
		return EXIT_DONE;
	case OPT_LOAD:
	case OPT_SAVE_TO:
	case OPT_SAVE_AT:
	case OPT_SAVE_AFTER:
	case OPT_SAVE_GIC:
		return parse_snapshot_option(o, code);
	case '?': /* getopt has printed what is wrong */
		return EXIT_USAGE;
	default:
		return parse_machine_option(o, given, code);
	}
}

static bool has_vhost_user(const struct options *o)
{
	for (unsigned i = 0; i < o->num_disks; i++)
		if (o->disks[i].vhost_user)
			return true;
	return false;
}

static int check_whole(struct options *o, const struct given *given)
{
	if ((o->save_at || o->save_after) && !o->save_to) {
		message("--save-at and --save-after need --save-to: in which file?");
		return EXIT_USAGE;
	}
	if (o->load && o->initrd && !o->kernel) {
		message("--initrd beside --load is for a guest that resets: which --kernel shall it begin anew with?");
		return EXIT_USAGE;
	}
	if (!o->kernel && !o->load) {
		message("--kernel is missing: what shall be run? --help shows examples");
		return EXIT_USAGE;
	}
	if (given->num_ids && given->cpus && given->num_ids != o->num_cpus) {
		message("--vcpu-ids has %u numbers for %u vCPUs", given->num_ids, o->num_cpus);
		return EXIT_USAGE;
	}
	if (given->num_ids)
		o->num_cpus = given->num_ids;
	else
		for (unsigned i = 0; i < o->num_cpus; i++)
			o->vcpu_ids[i] = i;
	if (has_vhost_user(o) && given->time && o->virtual_time) {
		message("--vhost-user-blk cannot go with --virtual-time: another process takes the time that it takes");
		return EXIT_USAGE;
	}
	if (!given->time)
		o->virtual_time = !has_vhost_user(o) && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO));
	return GO_ON;
}

int options_parse(struct options *o, int argc, char **argv)
{
	struct given given = { 0 };
	int code;

	memset(o, 0, sizeof(*o));
	o->append = DEFAULT_APPEND;
	o->num_cpus = 1;
	o->memory = DEFAULT_MEMORY;
	while ((code = getopt_long(argc, argv, "k:i:c:m:a:hV", long_options, NULL)) != -1) {
		const int ret = parse_option(o, &given, code);

		if (ret != GO_ON)
			return ret;
	}
	if (optind < argc)
		return complain("this is no option", argv[optind]);
	return check_whole(o, &given);
}
