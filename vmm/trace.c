/* SPDX-License-Identifier: MIT */
/* The trace of the interrupt controller: names and format. */
#include "trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vgic/vgic.h>

#include "machine.h"
#include "util.h"

struct trace {
	FILE *file;
	bool close;
};

/* Registers at @offset, @count of @bytes each, called @name, with a number behind, from @first, if there are several. */
struct register_name {
	uint32_t offset;
	uint32_t count;
	uint32_t bytes;
	const char *name;
	uint32_t first;
};

static const struct register_name dist_names[] = {
	{ 0x0000, 1, 4, "GICD_CTLR", 0 },         { 0x0004, 1, 4, "GICD_TYPER", 0 },
	{ 0x0008, 1, 4, "GICD_IIDR", 0 },         { 0x000c, 1, 4, "GICD_TYPER2", 0 },
	{ 0x0010, 1, 4, "GICD_STATUSR", 0 },      { 0x0040, 1, 4, "GICD_SETSPI_NSR", 0 },
	{ 0x0048, 1, 4, "GICD_CLRSPI_NSR", 0 },   { 0x0050, 1, 4, "GICD_SETSPI_SR", 0 },
	{ 0x0058, 1, 4, "GICD_CLRSPI_SR", 0 },    { 0x0080, 32, 4, "GICD_IGROUPR", 0 },
	{ 0x0100, 32, 4, "GICD_ISENABLER", 0 },   { 0x0180, 32, 4, "GICD_ICENABLER", 0 },
	{ 0x0200, 32, 4, "GICD_ISPENDR", 0 },     { 0x0280, 32, 4, "GICD_ICPENDR", 0 },
	{ 0x0300, 32, 4, "GICD_ISACTIVER", 0 },   { 0x0380, 32, 4, "GICD_ICACTIVER", 0 },
	{ 0x0400, 255, 4, "GICD_IPRIORITYR", 0 }, { 0x0800, 255, 4, "GICD_ITARGETSR", 0 },
	{ 0x0c00, 64, 4, "GICD_ICFGR", 0 },       { 0x0d00, 32, 4, "GICD_IGRPMODR", 0 },
	{ 0x0e00, 64, 4, "GICD_NSACR", 0 },       { 0x0f00, 1, 4, "GICD_SGIR", 0 },
	{ 0x0f10, 4, 4, "GICD_CPENDSGIR", 0 },    { 0x0f20, 4, 4, "GICD_SPENDSGIR", 0 },
	{ 0x6000, 1020, 8, "GICD_IROUTER", 0 },   { 0xffd0, 4, 4, "GICD_PIDR", 4 },
	{ 0xffe0, 4, 4, "GICD_PIDR", 0 },         { 0xfff0, 4, 4, "GICD_CIDR", 0 },
};

static const struct register_name redist_names[] = {
	{ 0x00000, 1, 4, "GICR_CTLR", 0 },       { 0x00004, 1, 4, "GICR_IIDR", 0 },
	{ 0x00008, 1, 8, "GICR_TYPER", 0 },      { 0x00010, 1, 4, "GICR_STATUSR", 0 },
	{ 0x00014, 1, 4, "GICR_WAKER", 0 },      { 0x00040, 1, 8, "GICR_SETLPIR", 0 },
	{ 0x00048, 1, 8, "GICR_CLRLPIR", 0 },    { 0x00070, 1, 8, "GICR_PROPBASER", 0 },
	{ 0x00078, 1, 8, "GICR_PENDBASER", 0 },  { 0x000a0, 1, 8, "GICR_INVLPIR", 0 },
	{ 0x000b0, 1, 8, "GICR_INVALLR", 0 },    { 0x000c0, 1, 4, "GICR_SYNCR", 0 },
	{ 0x0ffd0, 4, 4, "GICR_PIDR", 4 },       { 0x0ffe0, 4, 4, "GICR_PIDR", 0 },
	{ 0x0fff0, 4, 4, "GICR_CIDR", 0 },       { 0x10080, 1, 4, "GICR_IGROUPR0", 0 },
	{ 0x10100, 1, 4, "GICR_ISENABLER0", 0 }, { 0x10180, 1, 4, "GICR_ICENABLER0", 0 },
	{ 0x10200, 1, 4, "GICR_ISPENDR0", 0 },   { 0x10280, 1, 4, "GICR_ICPENDR0", 0 },
	{ 0x10300, 1, 4, "GICR_ISACTIVER0", 0 }, { 0x10380, 1, 4, "GICR_ICACTIVER0", 0 },
	{ 0x10400, 8, 4, "GICR_IPRIORITYR", 0 }, { 0x10c00, 2, 4, "GICR_ICFGR", 0 },
	{ 0x10d00, 1, 4, "GICR_IGRPMODR0", 0 },  { 0x10e00, 1, 4, "GICR_NSACR", 0 },
};

static const struct register_name its_names[] = {
	{ 0x00000, 1, 4, "GITS_CTLR", 0 },       { 0x00004, 1, 4, "GITS_IIDR", 0 },
	{ 0x00008, 1, 8, "GITS_TYPER", 0 },      { 0x00080, 1, 8, "GITS_CBASER", 0 },
	{ 0x00088, 1, 8, "GITS_CWRITER", 0 },    { 0x00090, 1, 8, "GITS_CREADR", 0 },
	{ 0x00100, 8, 8, "GITS_BASER", 0 },      { 0x0ffd0, 4, 4, "GITS_PIDR", 4 },
	{ 0x0ffe0, 4, 4, "GITS_PIDR", 0 },       { 0x0fff0, 4, 4, "GITS_CIDR", 0 },
	{ 0x10040, 1, 4, "GITS_TRANSLATER", 0 },
};

static const struct {
	uint32_t reg;
	const char *name;
} icc_names[] = {
	{ VGIC_ICC_PMR_EL1, "ICC_PMR_EL1" },         { VGIC_ICC_IAR0_EL1, "ICC_IAR0_EL1" },
	{ VGIC_ICC_EOIR0_EL1, "ICC_EOIR0_EL1" },     { VGIC_ICC_HPPIR0_EL1, "ICC_HPPIR0_EL1" },
	{ VGIC_ICC_BPR0_EL1, "ICC_BPR0_EL1" },       { VGIC_ICC_AP0R0_EL1, "ICC_AP0R0_EL1" },
	{ VGIC_ICC_AP1R0_EL1, "ICC_AP1R0_EL1" },     { VGIC_ICC_DIR_EL1, "ICC_DIR_EL1" },
	{ VGIC_ICC_RPR_EL1, "ICC_RPR_EL1" },         { VGIC_ICC_SGI1R_EL1, "ICC_SGI1R_EL1" },
	{ VGIC_ICC_ASGI1R_EL1, "ICC_ASGI1R_EL1" },   { VGIC_ICC_SGI0R_EL1, "ICC_SGI0R_EL1" },
	{ VGIC_ICC_IAR1_EL1, "ICC_IAR1_EL1" },       { VGIC_ICC_EOIR1_EL1, "ICC_EOIR1_EL1" },
	{ VGIC_ICC_HPPIR1_EL1, "ICC_HPPIR1_EL1" },   { VGIC_ICC_BPR1_EL1, "ICC_BPR1_EL1" },
	{ VGIC_ICC_CTLR_EL1, "ICC_CTLR_EL1" },       { VGIC_ICC_SRE_EL1, "ICC_SRE_EL1" },
	{ VGIC_ICC_IGRPEN0_EL1, "ICC_IGRPEN0_EL1" }, { VGIC_ICC_IGRPEN1_EL1, "ICC_IGRPEN1_EL1" },
};

#define NAME_SIZE 40

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static void find_name(const struct register_name *names, size_t num_names, uint32_t offset, char *name)
{
	for (size_t i = 0; i < num_names; i++) {
		const struct register_name *n = &names[i];
		const uint32_t end = n->offset + n->count * n->bytes;
		uint32_t within;
		int used;

		if (offset < n->offset || offset >= end)
			continue;
		used = n->count > 1 ? snprintf(name, NAME_SIZE, "%s%" PRIu32, n->name,
					       n->first + (offset - n->offset) / n->bytes) :
				      snprintf(name, NAME_SIZE, "%s", n->name);
		within = (offset - n->offset) % n->bytes;
		if (within && used > 0 && used < NAME_SIZE)
			snprintf(name + used, NAME_SIZE - (size_t)used, "+%" PRIu32, within);
		return;
	}
	snprintf(name, NAME_SIZE, "reserved");
}

static const char *icc_name(uint32_t reg, char *buffer)
{
	for (size_t i = 0; i < ARRAY_SIZE(icc_names); i++)
		if (icc_names[i].reg == reg)
			return icc_names[i].name;
	snprintf(buffer, NAME_SIZE, "S%u_%u_C%u_C%u_%u", (reg >> 14) & 3, (reg >> 11) & 7, (reg >> 7) & 15,
		 (reg >> 3) & 15, reg & 7);
	return buffer;
}

/* Every line begins with the time in seconds and the vCPU. Devices' threads write lines too: each stays in one piece. */
static void begin_line(struct trace *trace, const struct machine *machine, const struct vcpu *vcpu)
{
	const uint64_t now = machine_now(machine);

	flockfile(trace->file);
	fprintf(trace->file, "%" PRIu64 ".%09" PRIu64 " ", now / 1000000000u, now % 1000000000u);
	if (vcpu)
		fprintf(trace->file, "vcpu%u ", vcpu->index);
	else
		fputs("- ", trace->file);
}

static void end_line(struct trace *trace)
{
	fputc('\n', trace->file);
	funlockfile(trace->file);
}

static const char *direction(bool is_write)
{
	return is_write ? "write" : "read";
}

/* A frame of which there is one. */
static void trace_frame(struct trace *trace, const struct vcpu *vcpu, const struct register_name *names,
			size_t num_names, bool is_write, uint32_t offset, unsigned width, uint64_t value)
{
	char name[NAME_SIZE];

	if (!trace)
		return;
	find_name(names, num_names, offset, name);
	begin_line(trace, vcpu->machine, vcpu);
	fprintf(trace->file, "%s %s offset 0x%04" PRIx32 " width %u value 0x%" PRIx64, direction(is_write), name,
		offset, width, value);
	end_line(trace);
}

void trace_dist(struct trace *trace, const struct vcpu *vcpu, bool is_write, uint32_t offset, unsigned width,
		uint64_t value)
{
	trace_frame(trace, vcpu, dist_names, ARRAY_SIZE(dist_names), is_write, offset, width, value);
}

void trace_its(struct trace *trace, const struct vcpu *vcpu, bool is_write, uint32_t offset, unsigned width,
	       uint64_t value)
{
	trace_frame(trace, vcpu, its_names, ARRAY_SIZE(its_names), is_write, offset, width, value);
}

void trace_redist(struct trace *trace, const struct vcpu *vcpu, unsigned frame, bool is_write, uint32_t offset,
		  unsigned width, uint64_t value)
{
	char name[NAME_SIZE];

	if (!trace)
		return;
	find_name(redist_names, ARRAY_SIZE(redist_names), offset, name);
	begin_line(trace, vcpu->machine, vcpu);
	fprintf(trace->file, "%s %s of vcpu%u offset 0x%05" PRIx32 " width %u value 0x%" PRIx64, direction(is_write),
		name, frame, offset, width, value);
	end_line(trace);
}

void trace_icc(struct trace *trace, const struct vcpu *vcpu, bool is_write, uint32_t reg, uint64_t value, int result)
{
	char buffer[NAME_SIZE];

	if (!trace)
		return;
	begin_line(trace, vcpu->machine, vcpu);
	fprintf(trace->file, "%s %s", direction(is_write), icc_name(reg, buffer));
	if (result)
		fputs(" undefined", trace->file);
	else if (!is_write && (reg == VGIC_ICC_IAR0_EL1 || reg == VGIC_ICC_IAR1_EL1))
		fprintf(trace->file, " acknowledged %" PRIu64, value);
	else
		fprintf(trace->file, " value 0x%" PRIx64, value);
	end_line(trace);
}

void trace_lines(struct trace *trace, struct vcpu *vcpu, unsigned lines)
{
	if (!trace || lines == vcpu->traced_lines)
		return;
	vcpu->traced_lines = lines;
	begin_line(trace, vcpu->machine, vcpu);
	fprintf(trace->file, "lines %s", lines & VGIC_LINE_FIQ ? "FIQ" : lines & VGIC_LINE_IRQ ? "IRQ" : "none");
	end_line(trace);
}

void trace_event(struct trace *trace, const struct machine *machine, const struct vcpu *vcpu, const char *format, ...)
{
	va_list args;

	if (!trace)
		return;
	begin_line(trace, machine, vcpu);
	va_start(args, format);
	vfprintf(trace->file, format, args);
	va_end(args);
	end_line(trace);
}

int trace_open(const char *path, struct trace **result)
{
	struct trace *trace = calloc(1, sizeof(*trace));
	int err = ENOMEM;

	if (trace) {
		trace->close = strcmp(path, "-") != 0;
		trace->file = trace->close ? fopen(path, "we") : stderr;
		err = errno;
	}
	if (!trace || !trace->file) {
		message("cannot write the trace to %s: %s", path, strerror(err));
		free(trace);
		return -err;
	}
	*result = trace;
	return 0;
}

void trace_close(struct trace *trace)
{
	bool failed;

	if (!trace)
		return;
	failed = fflush(trace->file) != 0;
	if (trace->close && fclose(trace->file))
		failed = true;
	if (failed)
		message("the trace is incomplete: %s", strerror(errno));
	free(trace);
}
