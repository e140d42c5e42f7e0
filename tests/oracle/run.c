/* SPDX-License-Identifier: MIT */
/*
 * run.c - executes scripts on a target: see run.h.
 *
 * An operation of a script is one or several of the target's; what is printed
 * depends on the answers alone, so that two targets that behave alike print the
 * same bytes.
 */
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "script.h"
#include "state.h"

/* What one acknowledge loop may take: more than are pending in any script. */
#define MAX_TAKEN     64
#define MAX_DUMPED    64
#define MAX_DEPTH     64
#define FIRST_SPECIAL 1020
#define LAST_SPECIAL  1023

struct runner {
	FILE *out;
	struct machine_description description;
	struct target *target; /* made at the first operation that needs it */
	bool failed;           /* in this script, by whatever is no result */
	bool any_failed;
	unsigned line;
	uint64_t acknowledged[MAX_VCPUS][MAX_DEPTH]; /* and not ended yet */
	unsigned depth[MAX_VCPUS];
};

static const struct machine_description default_machine = {
	.num_vcpus = 1,
	.num_spis = DEFAULT_SPIS,
	.revision = KVM_REVISION,
};

/* ---- Printing ------------------------------------------------------------------------------- */

static void print_errno(FILE *out, int err)
{
	const char *name = strerrorname_np(-err);

	if (name)
		fprintf(out, "-%s", name);
	else
		fprintf(out, "%d", err);
}

/* The answer to an access; @reads: it has a value. */
static void print_answer(FILE *out, const struct guest_answer *a, bool reads)
{
	switch (a->outcome) {
	case GUEST_OK:
		if (reads)
			fprintf(out, "0x%" PRIx64, a->value);
		else
			fputs("ok", out);
		break;
	case GUEST_UNDEFINED:
		fputs("undefined", out);
		break;
	case GUEST_NO_DEVICE:
		fputs("no device", out);
		break;
	case GUEST_FAULT:
		fprintf(out, "fault: %s", a->text);
		break;
	}
}

static void print_lines(FILE *out, const struct guest_answer *a)
{
	if (a->outcome != GUEST_OK)
		print_answer(out, a, false);
	else
		fprintf(out, "%s%s%s", a->value & LINES_IRQ ? "irq" : "", a->value & LINES_FIQ ? "fiq" : "",
			a->value ? "" : "none");
}

/* ---- Accesses by vCPUs ------------------------------------------------------------------------- */

static struct guest_answer guest_write(struct runner *r, unsigned width, uint64_t address, uint64_t value)
{
	const struct guest_request q = { .op = GUEST_WRITE, .width = width, .address = address, .value = value };

	return target_guest(r->target, 0, &q);
}

static struct guest_answer guest_read(struct runner *r, unsigned width, uint64_t address)
{
	const struct guest_request q = { .op = GUEST_READ, .width = width, .address = address };

	return target_guest(r->target, 0, &q);
}

static struct guest_answer guest_msr(struct runner *r, uint32_t vcpu, enum sysreg reg, uint64_t value)
{
	const struct guest_request q = { .op = GUEST_MSR, .address = reg, .value = value };

	return target_guest(r->target, vcpu, &q);
}

static bool is_special(uint64_t intid)
{
	return intid >= FIRST_SPECIAL && intid <= LAST_SPECIAL;
}

/* What `end` will end. Deeper than there are priorities nothing is acknowledged. */
static void push_acknowledged(struct runner *r, uint32_t vcpu, const struct guest_answer *a)
{
	if (a->outcome == GUEST_OK && !is_special(a->value) && r->depth[vcpu] < MAX_DEPTH)
		r->acknowledged[vcpu][r->depth[vcpu]++] = a->value;
}

static void run_end(struct runner *r, const struct op *op)
{
	uint64_t intid;

	if (r->depth[op->vcpu] == 0) {
		fputs("nothing", r->out);
		return;
	}
	intid = r->acknowledged[op->vcpu][--r->depth[op->vcpu]];
	guest_msr(r, op->vcpu, SYSREG_EOIR1, intid);
	fprintf(r->out, "%" PRIu64, intid);
}

/* Does the answer depend on the interrupts that this vCPU has? */
static bool asks_for_interrupts(const struct guest_request *q)
{
	if (q->op == GUEST_LINES)
		return true;
	return q->op == GUEST_MRS && (q->address == SYSREG_IAR0 || q->address == SYSREG_IAR1 ||
				      q->address == SYSREG_HPPIR0 || q->address == SYSREG_HPPIR1);
}

static void run_guest(struct runner *r, const struct op *op)
{
	struct guest_answer a;

	if (asks_for_interrupts(&op->guest))
		target_settle(r->target);
	a = target_guest(r->target, op->vcpu, &op->guest);
	if (op->guest.op == GUEST_MRS && op->guest.address == SYSREG_IAR1)
		push_acknowledged(r, op->vcpu, &a);

	if (op->guest.op == GUEST_LINES)
		print_lines(r->out, &a);
	else
		print_answer(r->out, &a, op->guest.op == GUEST_READ || op->guest.op == GUEST_MRS);
}

/* All words that are not zero, with their offsets; equal ones in a row are counted. */
static void print_words(FILE *out, const uint32_t *words, uint32_t count)
{
	bool any = false;

	for (uint32_t i = 0; i < count;) {
		uint32_t n = 1;

		while (i + n < count && words[i + n] == words[i])
			n++;
		if (words[i]) {
			fprintf(out, "%s%x:%x", any ? " " : "", 4 * i, words[i]);
			if (n > 1)
				fprintf(out, "*%u", n);
			any = true;
		}
		i += n;
	}
	if (!any)
		fputs("zeros", out);
}

static void run_sweep(struct runner *r, const struct op *op)
{
	static uint32_t words[MAX_SWEEP];
	struct guest_request q = op->guest;
	struct guest_answer a;

	q.words = words;
	a = target_guest(r->target, op->vcpu, &q);
	if (a.outcome == GUEST_OK)
		print_words(r->out, words, q.count);
	else
		print_answer(r->out, &a, false);
}

struct taken {
	uint64_t intid;
	uint64_t priority;
};

/*
 * The architecture leaves the order of equal priorities open, and the two do differ: those in a row are sorted.
 */
static void print_taken(FILE *out, struct taken *taken, int count)
{
	for (int i = 1; i < count; i++) {
		for (int j = i;
		     j > 0 && taken[j - 1].priority == taken[j].priority && taken[j - 1].intid > taken[j].intid; j--) {
			const struct taken t = taken[j];

			taken[j] = taken[j - 1];
			taken[j - 1] = t;
		}
	}
	for (int i = 0; i < count; i++)
		fprintf(out, "%" PRIu64 " ", taken[i].intid);
}

/* Acknowledge and end, until there is nothing: the INTIDs in the order of their priorities. */
static void run_take(struct runner *r, const struct op *op)
{
	const struct guest_request acknowledge = { .op = GUEST_MRS, .address = SYSREG_IAR1 };
	const struct guest_request running = { .op = GUEST_MRS, .address = SYSREG_RPR };
	struct taken taken[MAX_TAKEN];
	struct guest_answer a = { .outcome = GUEST_OK };
	int count;

	target_settle(r->target);
	for (count = 0; count < MAX_TAKEN; count++) {
		a = target_guest(r->target, op->vcpu, &acknowledge);
		if (a.outcome != GUEST_OK || is_special(a.value))
			break;
		taken[count].intid = a.value;
		taken[count].priority = target_guest(r->target, op->vcpu, &running).value;
		guest_msr(r, op->vcpu, SYSREG_EOIR1, a.value);
	}
	print_taken(r->out, taken, count);
	if (count == MAX_TAKEN)
		fputs("and so on", r->out);
	else if (a.outcome != GUEST_OK)
		print_answer(r->out, &a, true);
	else
		fprintf(r->out, "%" PRIu64, a.value);
}

/* ---- Guest memory ------------------------------------------------------------------------------- */

static uint64_t ram_read(struct runner *r, uint64_t address, unsigned width)
{
	const uint8_t *bytes = target_ram(r->target) + (address - RAM_BASE);
	uint64_t value = 0;

	for (unsigned i = 0; i < width; i++)
		value |= (uint64_t)bytes[i] << (8 * i);
	return value;
}

static void ram_write(struct runner *r, uint64_t address, unsigned width, uint64_t value)
{
	uint8_t *bytes = target_ram(r->target) + (address - RAM_BASE);

	for (unsigned i = 0; i < width; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
}

/* What is not zero, 8 bytes at a time, with the offset. */
static void run_dump(struct runner *r, const struct op *op)
{
	unsigned dumped = 0;

	for (uint64_t at = 0; at < op->length; at += 8) {
		const uint64_t value = ram_read(r, op->address + at, 8);

		if (!value)
			continue;
		if (dumped++ < MAX_DUMPED)
			fprintf(r->out, "%s%" PRIx64 ":%" PRIx64, dumped == 1 ? "" : " ", at, value);
	}
	if (dumped == 0)
		fputs("zeros", r->out);
	else if (dumped > MAX_DUMPED)
		fprintf(r->out, " and %u more", dumped - MAX_DUMPED);
}

/* ---- ITS ------------------------------------------------------------------------------------------- */

/*
 * Put the command where GITS_CWRITER is, move that on, and tell where GITS_CREADR got to. The queue is found as the guest
 * has programmed it; if it is not in memory, only the registers move.
 */
static void run_command(struct runner *r, const struct op *op)
{
	const uint64_t frame = GITS_BASE(op->its);
	const uint64_t cbaser = guest_read(r, 8, frame + 0x80).value;
	const uint64_t cwriter = guest_read(r, 8, frame + 0x88).value & 0xfffe0;
	const uint64_t size = ((cbaser & 0xff) + 1) * 4096;
	const uint64_t address = (cbaser & UINT64_C(0x000ffffffffff000)) + cwriter;
	struct guest_answer a;

	if (address >= RAM_SCRIPTS && address < RAM_BASE + RAM_SIZE) {
		for (unsigned i = 0; i < 4; i++)
			ram_write(r, address + 8 * i, 8, op->command[i]);
	}
	guest_write(r, 8, frame + 0x88, (cwriter + ITS_COMMAND_SIZE) % size);
	a = guest_read(r, 8, frame + 0x90);
	fputs("creadr ", r->out);
	print_answer(r->out, &a, true);
}

/* ---- As a kernel leaves it --------------------------------------------------------------------------- */

static void boot_lpis(struct runner *r)
{
	for (uint64_t lpi = 8192; lpi < 65536; lpi++)
		ram_write(r, PROP_TABLE + lpi - 8192, 1, 0xa1);
	for (uint32_t i = 0; i < r->description.num_vcpus; i++) {
		const uint64_t frame = GICR_BASE + GICR_SIZE * i;

		guest_write(r, 8, frame + 0x70, PROP_TABLE | 15);
		guest_write(r, 8, frame + 0x78, PEND_TABLE(i));
		guest_write(r, 4, frame, 1);
	}
}

static void boot_its(struct runner *r, uint32_t i)
{
	const uint64_t valid = UINT64_C(1) << 63;

	guest_write(r, 8, GITS_BASE(i) + 0x80, valid | QUEUE(i));
	guest_write(r, 8, GITS_BASE(i) + 0x100, valid | DEVICE_TABLE(i) | 0x200);
	guest_write(r, 8, GITS_BASE(i) + 0x108, valid | COLLECTIONS(i) | 0x200);
	guest_write(r, 4, GITS_BASE(i), 1);
}

static void run_boot(struct runner *r, const struct op *op)
{
	guest_write(r, 4, GICD_BASE, 0x12);
	for (uint32_t i = 0; i < r->description.num_vcpus; i++) {
		guest_write(r, 4, GICR_BASE + GICR_SIZE * i + 0x14, 0);
		guest_msr(r, i, SYSREG_PMR, 0xf8);
		guest_msr(r, i, SYSREG_IGRPEN1, 1);
	}
	if (op->boot >= BOOT_LPIS && r->description.num_itses > 0)
		boot_lpis(r);
	for (uint32_t i = 0; op->boot == BOOT_ALL && i < r->description.num_itses; i++)
		boot_its(r, i);
	fputs("ok", r->out);
}

/* ---- Attributes ---------------------------------------------------------------------------------------- */

static void run_attr(struct runner *r, const struct op *op)
{
	struct attr_request request = op->attr;
	const int err = target_attr(r->target, &request);

	if (err < 0)
		print_errno(r->out, err);
	else if (request.set)
		fputs("ok", r->out);
	else
		fprintf(r->out, "0x%" PRIx64, request.value);
}

/* ---- Migration ------------------------------------------------------------------------------------------ */

static int save_tables(struct runner *r)
{
	struct attr_request save = { .device = ATTR_ITS, .group = ATTR_CTRL, .attr = CTRL_SAVE_TABLES, .set = true };
	int err = 0;

	for (save.its = 0; err == 0 && save.its < r->description.num_itses; save.its++)
		err = target_attr(r->target, &save);
	if (err != 0 || r->description.num_itses == 0)
		return err;
	save = (struct attr_request){ .device = ATTR_VGIC, .group = ATTR_CTRL, .attr = CTRL_SAVE_PENDING, .set = true };
	return target_attr(r->target, &save);
}

static void run_migrate(struct runner *r)
{
	int err;

	target_settle(r->target);
	err = save_tables(r);
	if (err == 0)
		err = state_print(r->out, r->line, r->target, &r->description);
	for (uint32_t v = 0, number = 0; v < r->description.num_vcpus; v++) {
		for (unsigned i = 0; i < r->depth[v]; i++)
			fprintf(r->out, "%u.9%u acknowledged v%u %" PRIu64 "\n", r->line, number++, v,
				r->acknowledged[v][i]);
	}
	fprintf(r->out, "%u ", r->line);
	if (err < 0)
		print_errno(r->out, err);
	else
		fputs("saved", r->out);
}

/* ---- Operations ---------------------------------------------------------------------------------------- */

static void print_result(struct runner *r, int result)
{
	if (result < 0)
		print_errno(r->out, result);
	else
		fprintf(r->out, "%d", result);
}

static void run_op(struct runner *r, const struct op *op)
{
	switch (op->kind) {
	case OP_NONE:
	case OP_MACHINE:
		break;
	case OP_GUEST:
		run_guest(r, op);
		break;
	case OP_SWEEP:
		run_sweep(r, op);
		break;
	case OP_END:
		run_end(r, op);
		break;
	case OP_RUN:
		print_result(r, target_run(r->target, op->vcpu));
		break;
	case OP_STOP:
		print_result(r, target_stop(r->target, op->vcpu));
		break;
	case OP_TAKE:
		run_take(r, op);
		break;
	case OP_ATTR:
		run_attr(r, op);
		break;
	case OP_COMMAND:
		run_command(r, op);
		break;
	case OP_MSI:
		print_result(r, target_signal_msi(r->target, op->address, op->data, op->devid, op->flags));
		break;
	case OP_SPI:
		print_result(r, target_set_spi(r->target, op->intid, op->level));
		break;
	case OP_PPI:
		print_result(r, target_set_ppi(r->target, op->vcpu, op->intid, op->level));
		break;
	case OP_RAM_READ:
		fprintf(r->out, "0x%" PRIx64, ram_read(r, op->address, op->width));
		break;
	case OP_RAM_WRITE:
		ram_write(r, op->address, op->width, op->value);
		fputs("ok", r->out);
		break;
	case OP_RAM_XOR:
		ram_write(r, op->address, op->width, ram_read(r, op->address, op->width) ^ op->value);
		fputs("ok", r->out);
		break;
	case OP_FILL:
		memset(target_ram(r->target) + (op->address - RAM_BASE), (int)(op->value & 0xff), op->length);
		fputs("ok", r->out);
		break;
	case OP_DUMP:
		run_dump(r, op);
		break;
	case OP_BOOT:
		run_boot(r, op);
		break;
	case OP_MIGRATE:
		run_migrate(r);
		break;
	case OP_WORDS:
		for (uint64_t at = 0; at < op->length; at += 8)
			ram_write(r, op->address + at, 8, op->value);
		fputs("ok", r->out);
		break;
	case OP_ACKNOWLEDGED:
		push_acknowledged(r, op->vcpu, &(struct guest_answer){ .outcome = GUEST_OK, .value = op->value });
		fputs("ok", r->out);
		break;
	}
}

/* ---- Scripts ---------------------------------------------------------------------------------------------- */

static void end_script(struct runner *r)
{
	if (r->target)
		target_free(r->target);
	r->target = NULL;
	r->any_failed |= r->failed;
	fflush(r->out);
}

static void begin_script(struct runner *r, const char *line)
{
	end_script(r);
	r->description = default_machine;
	r->failed = false;
	r->line = 0;
	memset(r->depth, 0, sizeof(r->depth));
	fputs(line, r->out);
}

static void give_up(struct runner *r, const char *what, const char *why)
{
	fprintf(r->out, "%u error: %s: %s\n", r->line, what, why);
	r->failed = true;
}

static void run_line(struct runner *r, char *line)
{
	char why[RESULT_TEXT] = "";
	struct op op;

	r->line++;
	if (r->failed)
		return;
	if (!script_parse(line, &r->description, &op, why)) {
		give_up(r, "this line is wrong", why);
		return;
	}
	if (op.kind == OP_NONE)
		return;
	if (op.kind == OP_MACHINE) {
		if (r->target)
			give_up(r, "this line is wrong", "machine comes before all operations");
		r->description = op.machine;
		return;
	}
	if (!r->target)
		r->target = target_new(&r->description, why);
	if (!r->target) {
		give_up(r, "no machine", why);
		return;
	}
	/* The state's lines come before the result. */
	if (op.kind != OP_MIGRATE)
		fprintf(r->out, "%u ", r->line);
	run_op(r, &op);
	fputc('\n', r->out);
}

int run_scripts(FILE *in, FILE *out)
{
	struct runner r = { .out = out, .description = default_machine };
	char line[LINE_SIZE];

	while (fgets(line, sizeof(line), in)) {
		if (strncmp(line, "=== ", 4) == 0)
			begin_script(&r, line);
		else
			run_line(&r, line);
	}
	end_script(&r);
	fputs("=== end\n", out);
	fflush(out);
	return r.any_failed || ferror(in) || ferror(out) ? -1 : 0;
}
