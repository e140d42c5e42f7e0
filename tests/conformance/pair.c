/* SPDX-License-Identifier: MIT */
/*
 * libvgic and the reference side by side: see pair.h.
 *
 * Owns the log of the last operations. One pair at a time, one thread.
 */
#include "pair.h"

#include <errno.h>
#include <gic_arch.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vgic/state.h>

#define LOG_LENGTH 48u

enum op_kind {
	OP_READ,
	OP_WRITE,
	OP_READ_ADDRESS,
	OP_WRITE_ADDRESS,
	OP_ICC_READ,
	OP_ICC_WRITE,
	OP_SET_SPI,
	OP_SET_PPI,
	OP_PULSE_SPI,
	OP_SET_ONLINE,
	OP_VCPU_RESET,
	OP_RESET,
	OP_MOVE,
};

static const char *const op_words[] = {
	[OP_READ] = "read",
	[OP_WRITE] = "write",
	[OP_READ_ADDRESS] = "read-address",
	[OP_WRITE_ADDRESS] = "write-address",
	[OP_ICC_READ] = "icc-read",
	[OP_ICC_WRITE] = "icc-write",
	[OP_SET_SPI] = "spi",
	[OP_SET_PPI] = "ppi",
	[OP_PULSE_SPI] = "pulse",
	[OP_SET_ONLINE] = "online",
	[OP_VCPU_RESET] = "vcpu-reset",
	[OP_RESET] = "reset",
	[OP_MOVE] = "move",
};

struct op {
	enum op_kind kind;
	uint32_t vcpu;  /* or PAIR_DIST */
	uint64_t where; /* offset, address, ICC encoding or INTID */
	unsigned how;   /* width or source */
	uint64_t value; /* read or written */
};

static struct op op_log[LOG_LENGTH];

static void log_op(struct pair *pair, const struct op *op)
{
	op_log[pair->num_ops % LOG_LENGTH] = *op;
	pair->num_ops++;
	if (pair->record)
		fprintf(pair->record, "%s %" PRIu32 " %" PRIu64 " %u %" PRIu64 "\n", op_words[op->kind], op->vcpu,
			op->where, op->how, op->value);
}

static const char *icc_name(uint32_t reg)
{
	static const struct {
		uint32_t reg;
		const char *name;
	} names[] = {
		{ VGIC_ICC_PMR_EL1, "PMR" },         { VGIC_ICC_IAR0_EL1, "IAR0" },
		{ VGIC_ICC_EOIR0_EL1, "EOIR0" },     { VGIC_ICC_HPPIR0_EL1, "HPPIR0" },
		{ VGIC_ICC_BPR0_EL1, "BPR0" },       { VGIC_ICC_AP0R0_EL1, "AP0R0" },
		{ VGIC_ICC_AP1R0_EL1, "AP1R0" },     { VGIC_ICC_DIR_EL1, "DIR" },
		{ VGIC_ICC_RPR_EL1, "RPR" },         { VGIC_ICC_SGI1R_EL1, "SGI1R" },
		{ VGIC_ICC_ASGI1R_EL1, "ASGI1R" },   { VGIC_ICC_SGI0R_EL1, "SGI0R" },
		{ VGIC_ICC_IAR1_EL1, "IAR1" },       { VGIC_ICC_EOIR1_EL1, "EOIR1" },
		{ VGIC_ICC_HPPIR1_EL1, "HPPIR1" },   { VGIC_ICC_BPR1_EL1, "BPR1" },
		{ VGIC_ICC_CTLR_EL1, "CTLR" },       { VGIC_ICC_SRE_EL1, "SRE" },
		{ VGIC_ICC_IGRPEN0_EL1, "IGRPEN0" }, { VGIC_ICC_IGRPEN1_EL1, "IGRPEN1" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].reg == reg)
			return names[i].name;
	}
	return "?";
}

static void print_op(const struct op *op)
{
	char frame[16] = "GICD";

	if (op->vcpu != PAIR_DIST)
		snprintf(frame, sizeof(frame), "GICR%" PRIu32, op->vcpu);

	switch (op->kind) {
	case OP_READ:
		printf("%s+0x%" PRIx64 " width %u reads 0x%" PRIx64, frame, op->where, op->how, op->value);
		break;
	case OP_WRITE:
		printf("%s+0x%" PRIx64 " width %u := 0x%" PRIx64, frame, op->where, op->how, op->value);
		break;
	case OP_READ_ADDRESS:
		printf("address 0x%" PRIx64 " width %u reads 0x%" PRIx64, op->where, op->how, op->value);
		break;
	case OP_WRITE_ADDRESS:
		printf("address 0x%" PRIx64 " width %u := 0x%" PRIx64, op->where, op->how, op->value);
		break;
	case OP_ICC_READ:
		printf("vCPU %" PRIu32 " ICC 0x%" PRIx64 " %s reads 0x%" PRIx64, op->vcpu, op->where,
		       icc_name((uint32_t)op->where), op->value);
		break;
	case OP_ICC_WRITE:
		printf("vCPU %" PRIu32 " ICC 0x%" PRIx64 " %s := 0x%" PRIx64, op->vcpu, op->where,
		       icc_name((uint32_t)op->where), op->value);
		break;
	case OP_SET_SPI:
		printf("SPI %" PRIu64 " source %u %s", op->where, op->how, op->value ? "high" : "low");
		break;
	case OP_SET_PPI:
		printf("vCPU %" PRIu32 " PPI %" PRIu64 " source %u %s", op->vcpu, op->where, op->how,
		       op->value ? "high" : "low");
		break;
	case OP_PULSE_SPI:
		printf("SPI %" PRIu64 " pulse", op->where);
		break;
	case OP_SET_ONLINE:
		printf("vCPU %" PRIu32 " %s", op->vcpu, op->value ? "online" : "offline");
		break;
	case OP_VCPU_RESET:
		printf("vCPU %" PRIu32 " reset", op->vcpu);
		break;
	case OP_RESET:
		printf("reset of all");
		break;
	case OP_MOVE:
		printf("saved and restored, %" PRIu64 " bytes", op->value);
		break;
	}
}

void pair_differ(const struct pair *pair, const char *format, ...)
{
	const uint64_t first = pair->num_ops > LOG_LENGTH ? pair->num_ops - LOG_LENGTH : 0;
	va_list args;

	printf("# %s: the last operations of %" PRIu64 ", seed %" PRIu64 "\n", pair->name, pair->num_ops, pair->seed);
	for (uint64_t i = first; i < pair->num_ops; i++) {
		printf("#   %" PRIu64 " ", i);
		print_op(&op_log[i % LOG_LENGTH]);
		printf("\n");
	}
	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\nBail out! libvgic and the reference differ (%s, --seed %" PRIu64 ")\n", pair->name, pair->seed);
	fflush(stdout);
	exit(1);
}

/* ---- Life cycle ---- */

static void count_deactivation(void *opaque, struct vgic_vcpu *vcpu, uint32_t intid)
{
	struct pair *pair = opaque;

	(void)vcpu;
	(void)intid;
	pair->num_deactivations++;
}

void pair_configure(struct pair *pair, enum vgic_profile profile, uint32_t num_vcpus)
{
	/* Ids out of order and with gaps, one affinity in each of three clusters, Aff0 beyond 15. */
	static const struct vgic_vcpu_config vcpus[PAIR_MAX_VCPUS] = {
		{ .id = 5, .affinity = 0x0 },       { .id = 0, .affinity = 0x1 }, { .id = 9, .affinity = 0x100 },
		{ .id = 700, .affinity = 0x10000 }, { .id = 1, .affinity = 0xf }, { .id = 65535, .affinity = 0x102 },
		{ .id = 2, .affinity = 0x10100 },   { .id = 3, .affinity = 0x3 },
	};

	memset(pair, 0, sizeof(*pair));
	vgic_config_init(&pair->config, profile);
	memcpy(pair->vcpu_configs, vcpus, sizeof(vcpus));
	pair->config.num_vcpus = num_vcpus;
	pair->config.vcpus = pair->vcpu_configs;
	pair->config.num_spis = 64;
	pair->config.has_dist_base = true;
	pair->config.dist_base = 0x8000000;
	pair->regions[0] = (struct vgic_redist_region){ .base = 0x80a0000, .num_frames = 2 };
	pair->regions[1] = (struct vgic_redist_region){ .base = 0x4000000000, .num_frames = PAIR_MAX_VCPUS };
	pair->config.num_redist_regions = 2;
	pair->config.redist_regions = pair->regions;
	pair->config.ops.deactivated = count_deactivation;
	pair->config.opaque = pair;
}

void pair_record(struct pair *pair, const char *path)
{
	pair->record = fopen(path, "w");
	if (pair->record == NULL) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(2);
	}
	fprintf(pair->record, "config %d %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 "\n",
		(int)pair->config.profile, pair->config.num_vcpus, pair->config.num_spis, pair->config.features,
		pair->config.kvm_revision, pair->config.num_itses);
}

void pair_create(struct pair *pair)
{
	const int error = vgic_create(&pair->config, &pair->vgic);

	if (error)
		pair_differ(pair, "vgic_create returned %d", error);
	pair->num_vcpus = pair->config.num_vcpus;
	pair->num_spis = pair->config.num_spis;
	for (uint32_t i = 0; i < pair->num_vcpus; i++)
		pair->vcpus[i] = vgic_vcpu_by_index(pair->vgic, i);
	pair->ref = ref_create(&pair->config);
}

void pair_destroy(struct pair *pair)
{
	vgic_destroy(pair->vgic);
	ref_destroy(pair->ref);
	pair->vgic = NULL;
	pair->ref = NULL;
	if (pair->record)
		fclose(pair->record);
	pair->record = NULL;
}

/* ---- Operations ---- */

static void compare_result(const struct pair *pair, int error, int ref_error, uint64_t value, uint64_t ref_value)
{
	if (error != ref_error)
		pair_differ(pair, "returned %d, the reference %d", error, ref_error);
	if (value != ref_value)
		pair_differ(pair, "value 0x%" PRIx64 ", the reference 0x%" PRIx64, value, ref_value);
}

uint64_t pair_read(struct pair *pair, uint32_t vcpu, uint32_t offset, unsigned width)
{
	uint64_t value = 0;
	uint64_t ref_value = 0;
	int error;
	int ref_error;

	if (vcpu == PAIR_DIST) {
		error = vgic_dist_read(pair->vgic, offset, width, &value);
		ref_error = ref_dist_read(pair->ref, offset, width, &ref_value);
	} else {
		error = vgic_redist_read(pair->vcpus[vcpu], offset, width, &value);
		ref_error = ref_redist_read(pair->ref, vcpu, offset, width, &ref_value);
	}
	log_op(pair, &(struct op){ OP_READ, vcpu, offset, width, value });
	compare_result(pair, error, ref_error, value, ref_value);
	return value;
}

void pair_write(struct pair *pair, uint32_t vcpu, uint32_t offset, unsigned width, uint64_t value)
{
	int error;
	int ref_error;

	log_op(pair, &(struct op){ OP_WRITE, vcpu, offset, width, value });
	if (vcpu == PAIR_DIST) {
		error = vgic_dist_write(pair->vgic, offset, width, value);
		ref_error = ref_dist_write(pair->ref, offset, width, value);
	} else {
		error = vgic_redist_write(pair->vcpus[vcpu], offset, width, value);
		ref_error = ref_redist_write(pair->ref, vcpu, offset, width, value);
	}
	compare_result(pair, error, ref_error, 0, 0);
}

void pair_read_address(struct pair *pair, uint64_t address, unsigned width)
{
	uint64_t value = 0x5a5a;
	uint64_t ref_value = 0x5a5a;
	const int error = vgic_mmio_read(pair->vgic, address, width, &value);
	const int ref_error = ref_mmio_read(pair->ref, address, width, &ref_value);

	log_op(pair, &(struct op){ OP_READ_ADDRESS, PAIR_DIST, address, width, value });
	compare_result(pair, error, ref_error, value, ref_value);
}

void pair_write_address(struct pair *pair, uint64_t address, unsigned width, uint64_t value)
{
	int error;

	log_op(pair, &(struct op){ OP_WRITE_ADDRESS, PAIR_DIST, address, width, value });
	error = vgic_mmio_write(pair->vgic, address, width, value);
	compare_result(pair, error, ref_mmio_write(pair->ref, address, width, value), 0, 0);
}

uint64_t pair_icc_read(struct pair *pair, uint32_t vcpu, uint32_t reg)
{
	uint64_t value = 0;
	uint64_t ref_value = 0;
	const int error = vgic_icc_read(pair->vcpus[vcpu], reg, &value);
	const int ref_error = ref_icc_read(pair->ref, vcpu, reg, value, &ref_value);

	log_op(pair, &(struct op){ OP_ICC_READ, vcpu, reg, 8, value });
	compare_result(pair, error, ref_error, value, ref_value);
	return value;
}

void pair_icc_write(struct pair *pair, uint32_t vcpu, uint32_t reg, uint64_t value)
{
	int error;

	log_op(pair, &(struct op){ OP_ICC_WRITE, vcpu, reg, 8, value });
	error = vgic_icc_write(pair->vcpus[vcpu], reg, value);
	compare_result(pair, error, ref_icc_write(pair->ref, vcpu, reg, value), 0, 0);
}

void pair_set_spi(struct pair *pair, uint32_t intid, unsigned source, bool level)
{
	int error;

	log_op(pair, &(struct op){ OP_SET_SPI, PAIR_DIST, intid, source, level });
	error = vgic_set_spi(pair->vgic, intid, source, level);
	compare_result(pair, error, ref_set_spi(pair->ref, intid, source, level), 0, 0);
}

void pair_set_ppi(struct pair *pair, uint32_t vcpu, uint32_t intid, unsigned source, bool level)
{
	int error;

	log_op(pair, &(struct op){ OP_SET_PPI, vcpu, intid, source, level });
	error = vgic_set_ppi(pair->vcpus[vcpu], intid, source, level);
	compare_result(pair, error, ref_set_ppi(pair->ref, vcpu, intid, source, level), 0, 0);
}

void pair_pulse_spi(struct pair *pair, uint32_t intid)
{
	int error;

	log_op(pair, &(struct op){ OP_PULSE_SPI, PAIR_DIST, intid, 0, 0 });
	error = vgic_pulse_spi(pair->vgic, intid);
	compare_result(pair, error, ref_pulse_spi(pair->ref, intid), 0, 0);
}

void pair_set_online(struct pair *pair, uint32_t vcpu, bool online)
{
	log_op(pair, &(struct op){ OP_SET_ONLINE, vcpu, 0, 0, online });
	vgic_vcpu_set_online(pair->vcpus[vcpu], online);
	ref_set_online(pair->ref, vcpu, online);
	pair->offline[vcpu] = !online;
}

void pair_vcpu_reset(struct pair *pair, uint32_t vcpu)
{
	log_op(pair, &(struct op){ OP_VCPU_RESET, vcpu, 0, 0, 0 });
	vgic_vcpu_reset(pair->vcpus[vcpu]);
	ref_vcpu_reset(pair->ref, vcpu);
}

void pair_reset(struct pair *pair)
{
	log_op(pair, &(struct op){ OP_RESET, PAIR_DIST, 0, 0, 0 });
	compare_result(pair, vgic_reset(pair->vgic), 0, 0, 0);
	ref_reset(pair->ref);
}

void pair_log_move(struct pair *pair, uint64_t size)
{
	log_op(pair, &(struct op){ OP_MOVE, PAIR_DIST, 0, 0, size });
}

/* The reference does nothing: a guest finds no difference. */
void pair_move(struct pair *pair)
{
	size_t size = 0;
	void *image;

	compare_result(pair, vgic_save_size(pair->vgic, &size), 0, 0, 0);
	pair_log_move(pair, size);
	image = malloc(size);
	if (image == NULL)
		abort();
	compare_result(pair, vgic_save(pair->vgic, image, size, &size), 0, 0, 0);
	compare_result(pair, vgic_restore(pair->vgic, image, size, NULL), 0, 0, 0);
	free(image);
}

/* ---- Comparison ---- */

/* libvgic's highest-priority pending interrupt, of whichever group; reading it changes nothing. */
static uint32_t find_hppi(const struct pair *pair, uint32_t vcpu)
{
	uint64_t hppi = 0;

	if (vgic_icc_read(pair->vcpus[vcpu], VGIC_ICC_HPPIR0_EL1, &hppi))
		pair_differ(pair, "HPPIR0 cannot be read");
	if (hppi == GIC_SPURIOUS && vgic_icc_read(pair->vcpus[vcpu], VGIC_ICC_HPPIR1_EL1, &hppi))
		pair_differ(pair, "HPPIR1 cannot be read");
	return (uint32_t)hppi;
}

static bool intid_exists(const struct pair *pair, uint32_t intid)
{
	return intid < GIC_FIRST_SPI + pair->num_spis;
}

/*
 * Find out where libvgic has a 1-of-N interrupt and let the reference follow. It is where it is the highest-priority
 * pending interrupt, or else it must be possible that it waits behind one that ranks as high.
 */
static void follow_one_of_n(struct pair *pair, uint32_t intid, const uint32_t *hppi)
{
	const uint32_t before = ref_choice(pair->ref, intid);
	uint32_t seen_at = REF_NO_VCPU;
	uint32_t hidden_at = REF_NO_VCPU;

	if (before == REF_NO_VCPU) {
		for (uint32_t v = 0; v < pair->num_vcpus; v++) {
			if (hppi[v] == intid)
				pair_differ(pair,
					    "1-of-N SPI %" PRIu32 " is at vCPU %" PRIu32 ", but none participates",
					    intid, v);
		}
		return;
	}
	for (uint32_t v = 0; v < pair->num_vcpus; v++) {
		if (hppi[v] == intid && seen_at != REF_NO_VCPU)
			pair_differ(pair, "1-of-N SPI %" PRIu32 " is at vCPU %" PRIu32 " and %" PRIu32, intid, seen_at,
				    v);
		if (hppi[v] == intid)
			seen_at = v;
		else if (ref_participates(pair->ref, v, intid) && intid_exists(pair, hppi[v]) &&
			 ref_ranks_at_least(pair->ref, v, hppi[v], intid) && (hidden_at == REF_NO_VCPU || v == before))
			hidden_at = v;
	}
	if (seen_at != REF_NO_VCPU) {
		if (!ref_adopt_choice(pair->ref, intid, seen_at))
			pair_differ(pair, "1-of-N SPI %" PRIu32 " is at vCPU %" PRIu32 ", which does not participate",
				    intid, seen_at);
		pair->num_one_of_n++;
		if (seen_at != before)
			pair->num_reselected++;
	} else if (hidden_at == REF_NO_VCPU || !ref_adopt_choice(pair->ref, intid, hidden_at)) {
		pair_differ(pair, "1-of-N SPI %" PRIu32 " is at no vCPU, but vCPU %" PRIu32 " participates", intid,
			    before);
	}
}

static void follow_choices(struct pair *pair)
{
	uint32_t hppi[PAIR_MAX_VCPUS];
	bool have_hppi = false;

	for (uint32_t intid = GIC_FIRST_SPI; intid < GIC_FIRST_SPI + pair->num_spis; intid++) {
		if (!ref_is_one_of_n(pair->ref, intid))
			continue;
		for (uint32_t v = 0; !have_hppi && v < pair->num_vcpus; v++)
			hppi[v] = find_hppi(pair, v);
		have_hppi = true;
		follow_one_of_n(pair, intid, hppi);
	}
}

/* All the calls that return lines must agree; which one is asked changes from time to time. */
static unsigned ask_lines(struct pair *pair, uint32_t vcpu)
{
	struct vgic_vcpu *v = pair->vcpus[vcpu];
	unsigned lines;

	switch (pair->how_lines++ % 3) {
	case 0:
		lines = vgic_enter_guest(v);
		vgic_exit_guest(v);
		return lines;
	case 1:
		lines = vgic_prepare_wait(v);
		vgic_finish_wait(v);
		return lines;
	default:
		return vgic_poll_lines(v);
	}
}

unsigned pair_lines(const struct pair *pair, uint32_t vcpu)
{
	return ref_lines(pair->ref, vcpu);
}

static void add_counters(struct vgic_stats *to, const struct vgic_stats *more)
{
	for (int kind = 0; kind < VGIC_NUM_GUEST_ERRORS; kind++)
		to->guest_errors[kind] += more->guest_errors[kind];
	to->acknowledges += more->acknowledges;
	to->spurious += more->spurious;
}

void pair_compare_counters(struct pair *pair)
{
	const struct ref_stats *expected = ref_get_stats(pair->ref);
	struct vgic_stats stats = { .size = sizeof(stats) };

	if (vgic_get_stats(pair->vgic, &stats))
		pair_differ(pair, "vgic_get_stats failed");
	add_counters(&stats, &pair->before);
	for (int kind = 0; kind < VGIC_NUM_GUEST_ERRORS; kind++) {
		if (stats.guest_errors[kind] != expected->guest_errors[kind])
			pair_differ(pair, "guest errors \"%s\" %" PRIu64 ", the reference %" PRIu64,
				    vgic_guest_error_name(kind), stats.guest_errors[kind],
				    expected->guest_errors[kind]);
	}
	if (stats.acknowledges != expected->acknowledges || stats.spurious != expected->spurious)
		pair_differ(pair,
			    "%" PRIu64 " acknowledges, %" PRIu64 " spurious; the reference %" PRIu64 " and %" PRIu64,
			    stats.acknowledges, stats.spurious, expected->acknowledges, expected->spurious);
	if (pair->num_deactivations != expected->deactivations)
		pair_differ(pair, "%" PRIu64 " calls of deactivated(), the reference %" PRIu64, pair->num_deactivations,
			    expected->deactivations);
}

void pair_compare(struct pair *pair)
{
	follow_choices(pair);
	for (uint32_t v = 0; v < pair->num_vcpus; v++) {
		const unsigned lines = ask_lines(pair, v);
		const unsigned expected = ref_lines(pair->ref, v);

		if (expected == 0 && ref_is_blocked(pair->ref, v))
			pair->num_blocked++;
		if (lines != expected)
			pair_differ(pair, "vCPU %" PRIu32 " has the lines %u, the reference %u (1: IRQ, 2: FIQ)", v,
				    lines, expected);
	}
	pair_compare_counters(pair);
}

static void compare_frame(struct pair *pair, uint32_t vcpu, uint32_t first, uint32_t end, unsigned width)
{
	for (uint32_t offset = first; offset < end; offset += width)
		pair_read(pair, vcpu, offset, width);
}

static void compare_icc(struct pair *pair, uint32_t vcpu)
{
	static const uint32_t icc_regs[] = {
		VGIC_ICC_PMR_EL1,   VGIC_ICC_HPPIR0_EL1, VGIC_ICC_BPR0_EL1,    VGIC_ICC_AP0R0_EL1,
		VGIC_ICC_AP1R0_EL1, VGIC_ICC_RPR_EL1,    VGIC_ICC_HPPIR1_EL1,  VGIC_ICC_BPR1_EL1,
		VGIC_ICC_CTLR_EL1,  VGIC_ICC_SRE_EL1,    VGIC_ICC_IGRPEN0_EL1, VGIC_ICC_IGRPEN1_EL1,
	};

	for (size_t i = 0; i < sizeof(icc_regs) / sizeof(icc_regs[0]); i++)
		pair_icc_read(pair, vcpu, icc_regs[i]);
}

/* The reads are none of the sequence that was recorded. */
static FILE *suspend_record(struct pair *pair)
{
	FILE *record = pair->record;

	if (record)
		fprintf(record, "compare 0 0 0 0\n");
	pair->record = NULL;
	return record;
}

void pair_compare_interrupts(struct pair *pair)
{
	static const uint32_t banks[] = { GICD_IGROUPR, GICD_ISENABLER, GICD_ISPENDR, GICD_ISACTIVER };
	const uint32_t end = GIC_FIRST_SPI + pair->num_spis;
	FILE *record = suspend_record(pair);

	compare_frame(pair, PAIR_DIST, GICD_CTLR, GICD_STATUSR + 4, 4);
	for (size_t i = 0; i < sizeof(banks) / sizeof(banks[0]); i++)
		compare_frame(pair, PAIR_DIST, banks[i] + 4, banks[i] + end / 8, 4);
	compare_frame(pair, PAIR_DIST, GICD_IPRIORITYR + GIC_FIRST_SPI, GICD_IPRIORITYR + end, 4);
	compare_frame(pair, PAIR_DIST, GICD_ICFGR + GIC_FIRST_SPI / 4, GICD_ICFGR + end / 4, 4);
	compare_frame(pair, PAIR_DIST, GICD_IROUTER + 8 * GIC_FIRST_SPI, GICD_IROUTER + 8 * end, 8);
	for (uint32_t v = 0; v < pair->num_vcpus; v++) {
		compare_frame(pair, v, GICR_CTLR, GICR_WAKER + 4, 4);
		compare_frame(pair, v, GICR_PROPBASER, GICR_PENDBASER + 8, 8);
		for (size_t i = 0; i < sizeof(banks) / sizeof(banks[0]); i++)
			pair_read(pair, v, GICR_SGI_BASE + banks[i], 4);
		compare_frame(pair, v, GICR_IPRIORITYR, GICR_IPRIORITYR + GIC_NUM_PRIVATE, 4);
		compare_frame(pair, v, GICR_ICFGR0, GICR_ICFGR1 + 4, 4);
		compare_icc(pair, v);
	}
	pair_compare(pair);
	pair->record = record;
}

void pair_compare_all(struct pair *pair)
{
	FILE *record = suspend_record(pair);

	compare_frame(pair, PAIR_DIST, 0, 0x1000, 4);
	compare_frame(pair, PAIR_DIST, GICD_IROUTER, GICD_IROUTER + 8 * 1024, 8);
	compare_frame(pair, PAIR_DIST, GIC_ID_FIRST, VGIC_DIST_FRAME_SIZE, 4);
	for (uint32_t v = 0; v < pair->num_vcpus; v++) {
		compare_frame(pair, v, 0, 0x100, 4);
		compare_frame(pair, v, GIC_ID_FIRST, GICR_SGI_BASE + 0x1000, 4);
		compare_icc(pair, v);
	}
	pair_compare(pair);
	pair->record = record;
}
