/* SPDX-License-Identifier: MIT */
/*
 * vgic-qtest.c - libvgic behind the text protocol of QEMU's qtest, on the standard input and output.
 *
 * The machine is what QEMU's `virt` has: the same addresses, four vCPUs, 256 SPIs, one ITS, guest memory. Every request
 * is one line, and so is every answer; the requests are those of QEMU, and `reset`. It has one thread. What an access
 * leaves to be done is done before its answer, because QEMU does it within the access.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vgic/vgic.h>

#define GICD_BASE UINT64_C(0x08000000)
#define GITS_BASE UINT64_C(0x08080000)
#define GICR_BASE UINT64_C(0x080a0000)
#define RAM_BASE  UINT64_C(0x40000000)
#define RAM_SIZE  UINT64_C(0x00400000)
#define NUM_VCPUS 4u
#define NUM_SPIS  256u
#define FIRST_SPI 32u
#define FIRST_PPI 16u
#define DOORBELL  (GITS_BASE + VGIC_ITS_DOORBELL)

/* A qtest access is made by no device: QEMU takes the DeviceID of one for 0. */
#define DEVICE_ID 0u

struct machine {
	struct vgic *vgic;
	struct vgic_its *its;
	uint8_t *ram;
};

/* ---- Guest memory -------------------------------------------------------------------------- */

static uint8_t *ram_at(struct machine *m, uint64_t address, uint64_t size)
{
	if (size > RAM_SIZE || address - RAM_BASE > RAM_SIZE - size)
		return NULL;
	return m->ram + (address - RAM_BASE);
}

static int on_guest_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	const uint8_t *bytes = ram_at(opaque, address, size);

	if (!bytes)
		return -EFAULT;
	memcpy(buffer, bytes, size);
	return 0;
}

static int on_guest_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	uint8_t *bytes = ram_at(opaque, address, size);

	if (!bytes)
		return -EFAULT;
	memcpy(bytes, buffer, size);
	return 0;
}

/* ---- The machine ------------------------------------------------------------------------------ */

static int create(struct machine *m)
{
	struct vgic_vcpu_config vcpus[NUM_VCPUS] = { 0 };
	const struct vgic_its_config its = { .has_base = true, .base = GITS_BASE };
	const struct vgic_redist_region region = { .base = GICR_BASE, .num_frames = NUM_VCPUS };
	struct vgic_config config;

	m->ram = calloc(1, RAM_SIZE);
	if (!m->ram)
		return -ENOMEM;
	vgic_config_init(&config, VGIC_PROFILE_NATIVE);
	for (uint32_t i = 0; i < NUM_VCPUS; i++)
		vcpus[i] = (struct vgic_vcpu_config){ .id = i, .affinity = i };
	/* What QEMU's has of the optional features. */
	config.features = VGIC_FEATURE_A3V | VGIC_FEATURE_LPIS | VGIC_FEATURE_WAKER;
	config.num_spis = NUM_SPIS;
	config.lpi_id_bits = 16;
	config.num_vcpus = NUM_VCPUS;
	config.vcpus = vcpus;
	config.has_dist_base = true;
	config.dist_base = GICD_BASE;
	config.num_redist_regions = 1;
	config.redist_regions = &region;
	config.num_itses = 1;
	config.itses = &its;
	config.ops.guest_read = on_guest_read;
	config.ops.guest_write = on_guest_write;
	config.opaque = m;
	return vgic_create(&config, &m->vgic);
}

static void finish_work(struct machine *m)
{
	while (vgic_run_work(m->vgic) > 0)
		;
}

/* ---- Accesses: 0, or -ENXIO where nothing is ---------------------------------------------------- */

static int access_read(struct machine *m, uint64_t address, unsigned width, uint64_t *value)
{
	const uint8_t *bytes = ram_at(m, address, width);
	int err;

	*value = 0;
	if (bytes) {
		memcpy(value, bytes, width);
		return 0;
	}
	err = vgic_mmio_read(m->vgic, address, width, value);
	finish_work(m);
	return err;
}

static int access_write(struct machine *m, uint64_t address, unsigned width, uint64_t value)
{
	uint8_t *bytes = ram_at(m, address, width);
	int err = 0;

	if (bytes) {
		memcpy(bytes, &value, width);
		return 0;
	}
	if (address == DOORBELL && width == 4)
		vgic_its_signal(m->its, DEVICE_ID, (uint32_t)value);
	else
		err = vgic_mmio_write(m->vgic, address, width, value);
	finish_work(m);
	return err;
}

/* An input of the GIC: the SPIs, then for each vCPU 32 of which those of SGIs are never driven. */
static bool drive_line(struct machine *m, uint32_t input, bool level)
{
	const uint32_t private = input - NUM_SPIS;

	if (input < NUM_SPIS)
		return vgic_set_spi(m->vgic, FIRST_SPI + input, 0, level) == 0;
	if (private / 32 >= NUM_VCPUS || private % 32 < FIRST_PPI)
		return false;
	return vgic_set_ppi(vgic_vcpu_by_index(m->vgic, private / 32), private % 32, 0, level) == 0;
}

/* ---- The protocol ----------------------------------------------------------------------------------- */

#define MAX_WORDS  6
#define INPUT_SIZE 0x40000

static unsigned width_of(char letter)
{
	switch (letter) {
	case 'b':
		return 1;
	case 'w':
		return 2;
	case 'l':
		return 4;
	case 'q':
		return 8;
	default:
		return 0;
	}
}

/* read ADDRESS SIZE */
static bool answer_bytes(struct machine *m, uint64_t address, uint64_t size)
{
	const uint8_t *bytes = ram_at(m, address, size);

	if (!bytes)
		return false;
	fputs("OK 0x", stdout);
	for (uint64_t i = 0; i < size; i++)
		printf("%02x", bytes[i]);
	putchar('\n');
	return true;
}

/* write ADDRESS SIZE 0xHEX */
static bool take_bytes(struct machine *m, uint64_t address, uint64_t size, const char *hex)
{
	uint8_t *bytes = ram_at(m, address, size);

	if (!bytes || strncmp(hex, "0x", 2) != 0 || strlen(hex) != 2 + 2 * size)
		return false;
	for (uint64_t i = 0; i < size; i++) {
		const char digits[3] = { hex[2 + 2 * i], hex[3 + 2 * i] };
		char *end;
		const unsigned long byte = strtoul(digits, &end, 16);

		if (end != digits + 2)
			return false;
		bytes[i] = (uint8_t)byte;
	}
	return true;
}

static bool fill(struct machine *m, uint64_t address, uint64_t size, uint64_t byte)
{
	uint8_t *bytes = ram_at(m, address, size);

	if (bytes)
		memset(bytes, (int)byte, size);
	return bytes != NULL;
}

static void reset(struct machine *m)
{
	for (uint32_t input = 0; input < NUM_SPIS + 32 * NUM_VCPUS; input++)
		drive_line(m, input, false);
	vgic_reset(m->vgic);
}

/* What a request is asked to do: its words, and the numbers that they are. */
struct request {
	char *words[MAX_WORDS];
	uint64_t numbers[MAX_WORDS];
	unsigned num_words;
};

static bool request_is(const struct request *q, const char *name, unsigned num_words)
{
	return q->num_words == num_words && strcmp(q->words[0], name) == 0;
}

/* readb, writel, ...: @name and the letter of a width, which is returned; 0 if it is another request. */
static unsigned request_width(const struct request *q, const char *name, unsigned num_words)
{
	const size_t length = strlen(name);

	if (q->num_words != num_words || strncmp(q->words[0], name, length) != 0 || strlen(q->words[0]) != length + 1)
		return 0;
	return width_of(q->words[0][length]);
}

/* Returns true if it was done, with the answer in *@value if it @has_value. */
static bool execute_register(struct machine *m, const struct request *q, bool *has_value, uint64_t *value)
{
	unsigned width = request_width(q, "read", 2);

	*has_value = width != 0;
	if (width)
		return access_read(m, q->numbers[1], width, value) == 0;
	width = request_width(q, "write", 3);
	return width && access_write(m, q->numbers[1], width, q->numbers[2]) == 0;
}

/* Of the others, all but `read` are answered by OK alone. */
static bool execute_other(struct machine *m, const struct request *q)
{
	const uint64_t *n = q->numbers;

	if (request_is(q, "write", 4))
		return take_bytes(m, n[1], n[2], q->words[3]);
	if (request_is(q, "memset", 4))
		return fill(m, n[1], n[2], n[3]);
	if (request_is(q, "set_irq_in", 5))
		return drive_line(m, (uint32_t)n[3], n[4] != 0);
	if (request_is(q, "reset", 1)) {
		reset(m);
		return true;
	}
	return false;
}

static void execute(struct machine *m, const struct request *q)
{
	bool has_value;
	uint64_t value;

	if (request_is(q, "read", 3) && answer_bytes(m, q->numbers[1], q->numbers[2]))
		return;
	if (execute_register(m, q, &has_value, &value)) {
		if (has_value)
			printf("OK 0x%016" PRIx64 "\n", value);
		else
			puts("OK");
		return;
	}
	puts(execute_other(m, q) ? "OK" : "FAIL this cannot be done: see --help");
}

/* Words that are no numbers are 0, as a path is. */
static void split(char *line, struct request *q)
{
	*q = (struct request){ .num_words = 0 };
	for (char *word = strtok(line, " \t\r\n"); word && q->num_words < MAX_WORDS; word = strtok(NULL, " \t\r\n")) {
		q->words[q->num_words] = word;
		q->numbers[q->num_words++] = strtoull(word, NULL, 0);
	}
}

/* A line that has come completely. */
static void answer(struct machine *m, char *line)
{
	struct request q;

	split(line, &q);
	if (q.num_words)
		execute(m, &q);
}

/* Who sends many requests at once gets their answers at once: they are flushed when there is no request left. */
static int serve(struct machine *m)
{
	static char input[INPUT_SIZE];
	size_t length = 0;
	ssize_t n;

	while ((n = read(STDIN_FILENO, input + length, sizeof(input) - 1 - length)) > 0) {
		char *line = input, *end;

		length += (size_t)n;
		input[length] = '\0';
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			answer(m, line);
		}
		fflush(stdout);
		length -= (size_t)(line - input);
		memmove(input, line, length);
		if (length == sizeof(input) - 1) {
			fprintf(stderr, "vgic-qtest: a line is longer than %zu bytes\n", length);
			return 1;
		}
	}
	return n < 0 ? 1 : 0;
}

static const char help[] =
	"Usage: vgic-qtest\n\n"
	"Serves libvgic's GICv3 and ITS on the standard input and output, by the requests of QEMU's qtest protocol:\n"
	"  readb|readw|readl|readq ADDRESS\n"
	"  writeb|writew|writel|writeq ADDRESS VALUE\n"
	"  read ADDRESS SIZE | write ADDRESS SIZE 0xHEX | memset ADDRESS SIZE BYTE   guest memory\n"
	"  set_irq_in PATH NAME INPUT LEVEL   lines: SPI 32 is input 0, PPI p of vCPU v is 256 + 32 v + p; PATH and NAME\n"
	"                                     are ignored\n"
	"  reset                              QEMU has no such request: there it is QMP's system_reset\n"
	"Registers are where QEMU's machine `virt` has them: GICD 0x08000000, GITS 0x08080000, GICR 0x080a0000 (4 vCPUs);\n"
	"memory is 4 MiB from 0x40000000. Try:\n"
	"  echo 'readl 0x08000004' | vgic-qtest\n";

int main(int argc, char **argv)
{
	struct machine m = { 0 };
	int err;

	if (argc > 1) {
		fputs(help, strcmp(argv[1], "--help") == 0 ? stdout : stderr);
		return strcmp(argv[1], "--help") == 0 ? 0 : 2;
	}
	err = create(&m);
	if (err < 0) {
		fprintf(stderr, "vgic-qtest: no controller: %s\n", strerror(-err));
		return 1;
	}
	m.its = vgic_its_by_index(m.vgic, 0);
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	err = serve(&m);
	vgic_destroy(m.vgic);
	free(m.ram);
	return err;
}
