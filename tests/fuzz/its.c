/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: what a guest does with ITSes and LPIs, its memory with the tables
 * and queues included, in lockstep with the reference, which has guest memory of
 * its own. After every operation what it returned, lines, counters and statistics
 * are compared, at the end registers and all of guest memory. Any difference ends
 * the program.
 *
 * its_format.h says what the bytes mean. The work of one input is bounded: so many
 * operations, fewer of the expensive ones. To create a machine takes longer than
 * most inputs: there is one of each configuration, which is reset, and guest memory
 * is kept, too, of which the pages that were written are cleared. An input that does
 * not find again what it has found is about a reset that forgets something.
 */
#include "its_format.h"

#include <errno.h>
#include <inttypes.h>
#include <ref_its.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define MAX_OPS       400u
#define MAX_EXPENSIVE 1u
#define NUM_PROBED    24u
#define RAM_PAGE      4096u
#define NUM_PAGES     (RAM_SIZE / RAM_PAGE)

static struct memory {
	uint8_t bytes[RAM_SIZE];
	bool is_dirty[NUM_PAGES];
} memories[2]; /* libvgic's and the reference's */

struct machine {
	struct pair pair;
	struct vgic_its_config its_configs[ITS_MAX_ITSES];
	uint32_t num_itses;
	struct vgic_its *its[ITS_MAX_ITSES];
	struct ref_lpis *ref;
};

static struct machine *machines[ITS_NUM_CONFIGS];

static struct run {
	struct input input;
	struct machine *m;
	struct pair *pair;
	uint64_t hole; /* the address of a page, or 0 */
	uint64_t queue_at[ITS_MAX_ITSES];
	unsigned num_expensive;
} run;

__attribute__((format(printf, 1, 2), noreturn)) static void differ(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("# ");
	vprintf(format, args);
	va_end(args);
	printf("\nBail out! libvgic and the reference differ\n");
	fflush(stdout);
	abort();
}

/* With VGIC_FUZZ_TRACE in the environment, what an input does is printed. */
__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	static int tracing = -1;
	va_list args;

	if (tracing < 0)
		tracing = getenv("VGIC_FUZZ_TRACE") != NULL;
	if (!tracing)
		return;
	va_start(args, format);
	printf("#   ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
}

/* ---- Guest memory ------------------------------------------------------------------------------------------ */

static bool ram_has(uint64_t address, size_t size)
{
	if (address < RAM_BASE || address - RAM_BASE > RAM_SIZE - size)
		return false;
	return run.hole == 0 || address + size <= run.hole || address >= run.hole + RAM_PAGE;
}

static struct memory *memory_of(const void *opaque)
{
	return opaque == &memories[1] ? &memories[1] : &memories[0];
}

static void memory_write(struct memory *memory, uint64_t address, const void *buffer, size_t size)
{
	const uint64_t offset = address - RAM_BASE;

	memcpy(memory->bytes + offset, buffer, size);
	memory->is_dirty[offset / RAM_PAGE] = true;
	memory->is_dirty[(offset + size - 1) / RAM_PAGE] = true;
}

static int on_guest_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	if (!ram_has(address, size))
		return -EFAULT;
	memcpy(buffer, memory_of(opaque)->bytes + (address - RAM_BASE), size);
	return 0;
}

static int on_guest_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	if (!ram_has(address, size))
		return -EFAULT;
	memory_write(memory_of(opaque), address, buffer, size);
	return 0;
}

/* The guest writes, little-endian: both see it. There is memory everywhere for the guest itself. */
static void poke(uint64_t address, uint64_t value, unsigned size)
{
	uint8_t bytes[8];

	if (address < RAM_BASE || address - RAM_BASE > RAM_SIZE - size)
		address = RAM_BASE + address % (RAM_SIZE - 8);
	for (unsigned i = 0; i < size; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	memory_write(&memories[0], address, bytes, size);
	memory_write(&memories[1], address, bytes, size);
	note("memory 0x%" PRIx64 " := 0x%" PRIx64, address, value);
}

static void compare_memory(void)
{
	for (uint32_t page = 0; page < NUM_PAGES; page++) {
		const uint8_t *a = memories[0].bytes + page * RAM_PAGE, *b = memories[1].bytes + page * RAM_PAGE;

		if (!memories[0].is_dirty[page] && !memories[1].is_dirty[page])
			continue;
		for (uint32_t i = 0; memcmp(a, b, RAM_PAGE) != 0 && i < RAM_PAGE; i++) {
			if (a[i] != b[i])
				differ("guest memory 0x%" PRIx64 " has 0x%02x, the reference 0x%02x",
				       RAM_BASE + page * RAM_PAGE + i, a[i], b[i]);
		}
	}
}

static void clear_memory(struct memory *memory)
{
	for (uint32_t page = 0; page < NUM_PAGES; page++) {
		if (memory->is_dirty[page])
			memset(memory->bytes + page * RAM_PAGE, 0, RAM_PAGE);
		memory->is_dirty[page] = false;
	}
}

/* ---- Both ITSes ------------------------------------------------------------------------------------------------ */

static void finish_work(void)
{
	for (int parts = 0; vgic_run_work(run.pair->vgic); parts++) {
		if (parts > 100000)
			differ("work without end");
	}
}

static uint64_t its_read(uint32_t its, uint32_t offset, unsigned width)
{
	uint64_t value = 0, ref_value = 0;
	const int error = vgic_its_read(run.m->its[its], offset, width, &value);

	note("GITS%" PRIu32 "+0x%" PRIx32 " width %u reads 0x%" PRIx64, its, offset, width, value);
	if (error != ref_its_read(run.m->ref, its, offset, width, &ref_value))
		differ("GITS%" PRIu32 "+0x%" PRIx32 " width %u: the read returned %d", its, offset, width, error);
	if (value != ref_value)
		differ("GITS%" PRIu32 "+0x%" PRIx32 " width %u reads 0x%" PRIx64 ", the reference 0x%" PRIx64, its,
		       offset, width, value, ref_value);
	return value;
}

static void its_write(uint32_t its, uint32_t offset, unsigned width, uint64_t value)
{
	int error;

	note("GITS%" PRIu32 "+0x%" PRIx32 " width %u := 0x%" PRIx64, its, offset, width, value);
	error = vgic_its_write(run.m->its[its], offset, width, value);
	finish_work();
	if (error != ref_its_write(run.m->ref, its, offset, width, value))
		differ("GITS%" PRIu32 "+0x%" PRIx32 " width %u: the write returned %d", its, offset, width, error);
	run.queue_at[its] = its_read(its, GITS_CWRITER, 8);
}

static void compare_stats(uint32_t its)
{
	const struct vgic_its_stats expected = ref_its_stats(run.m->ref, its);
	struct vgic_its_stats stats = { .size = sizeof(stats) };

	if (vgic_its_get_stats(run.m->its[its], &stats))
		differ("no statistics");
	for (int i = 0; i < VGIC_NUM_ITS_ERRORS; i++) {
		if (stats.errors[i] != expected.errors[i])
			differ("ITS %" PRIu32 ": %" PRIu64 " errors %s, the reference %" PRIu64, its, stats.errors[i],
			       vgic_its_error_name((enum vgic_its_error)i), expected.errors[i]);
	}
	if (stats.commands != expected.commands || stats.num_devices != expected.num_devices ||
	    stats.num_translations != expected.num_translations)
		differ("ITS %" PRIu32 ": %" PRIu64 " commands, %u devices, %u events; the reference %" PRIu64
		       ", %u, %u",
		       its, stats.commands, stats.num_devices, stats.num_translations, expected.commands,
		       expected.num_devices, expected.num_translations);
	if (stats.dropped_its_off != expected.dropped_its_off ||
	    stats.dropped_unmapped_event != expected.dropped_unmapped_event ||
	    stats.dropped_unmapped_collection != expected.dropped_unmapped_collection ||
	    stats.dropped_lpis_disabled != expected.dropped_lpis_disabled)
		differ("ITS %" PRIu32 ": signals were dropped for other reasons", its);
}

static void compare(void)
{
	pair_compare(run.pair);
	for (uint32_t i = 0; i < run.m->num_itses; i++)
		compare_stats(i);
}

static void compare_all(void)
{
	for (uint32_t i = 0; i < run.m->num_itses; i++) {
		for (uint32_t offset = 0; offset < GITS_BASER0 + 8 * GITS_NUM_BASERS; offset += 4)
			its_read(i, offset, 4);
	}
	compare_memory();
	pair_compare_interrupts(run.pair);
	compare();
}

/* ---- What a kernel does before it can have interrupts ---------------------------------------------------------- */

static void redist_write(uint32_t vcpu, uint32_t offset, unsigned width, uint64_t value)
{
	note("GICR%" PRIu32 "+0x%" PRIx32 " width %u := 0x%" PRIx64, vcpu, offset, width, value);
	pair_write(run.pair, vcpu, offset, width, value);
	finish_work();
}

static void set_up_vcpu(uint32_t vcpu, bool table_is_zero)
{
	struct pair *pair = run.pair;

	pair_icc_write(pair, vcpu, VGIC_ICC_PMR_EL1, 0xf8);
	pair_icc_write(pair, vcpu, VGIC_ICC_IGRPEN1_EL1, 1);
	pair_icc_write(pair, vcpu, VGIC_ICC_AP1R0_EL1, 0);
	redist_write(vcpu, GICR_PROPBASER, 8, PROPERTY_TABLE | (ITS_LPI_ID_BITS - 1));
	redist_write(vcpu, GICR_PENDBASER, 8, PENDING_TABLE(vcpu) | (table_is_zero ? GICR_PENDBASER_PTZ : 0));
	redist_write(vcpu, GICR_CTLR, 4, GICR_CTLR_ENABLE_LPIS);
}

static void set_up_its(uint32_t its, bool two_levels)
{
	its_write(its, GITS_CBASER, 8, GITS_CBASER_VALID | QUEUE(its));
	its_write(its, GITS_BASER0, 8, GITS_BASER_VALID | (two_levels ? GITS_BASER_INDIRECT : 0) | DEVICE_TABLE(its));
	its_write(its, GITS_BASER1, 8, GITS_BASER_VALID | COLLECTION_TABLE(its));
	if (two_levels)
		poke(DEVICE_TABLE(its), GITS_LEVEL1_VALID | LEVEL2_TABLE(its), 8);
	its_write(its, GITS_CTLR, 4, GITS_CTLR_ENABLED);
}

static void set_up_all(void)
{
	pair_write(run.pair, PAIR_DIST, GICD_CTLR, 4, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
	for (uint32_t i = 0; i < 64; i += 8)
		poke(PROPERTY_TABLE + i, 0xa1a1f1a1a151a1a1ull, 8);
	for (uint32_t v = 0; v < run.pair->num_vcpus; v++)
		set_up_vcpu(v, false);
	for (uint32_t i = 0; i < run.m->num_itses; i++)
		set_up_its(i, false);
}

/* ---- Operations ---------------------------------------------------------------------------------------------- */

static void place_command(uint32_t its, const uint64_t *dw, bool submit)
{
	const uint64_t size = ((its_read(its, GITS_CBASER, 8) & 0xff) + 1) * GITS_QUEUE_PAGE;
	const uint64_t address = QUEUE(its) + run.queue_at[its] % 0x10000;

	note("ITS %" PRIu32 " command %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64, its, dw[0], dw[1], dw[2], dw[3]);
	for (unsigned i = 0; i < 4; i++)
		poke(address + 8 * i, dw[i], 8);
	run.queue_at[its] = (run.queue_at[its] + ITS_CMD_SIZE) % size;
	if (submit)
		its_write(its, GITS_CWRITER, 8, run.queue_at[its]);
}

static void run_command(uint32_t its, bool raw, bool submit)
{
	uint64_t dw[4];

	if (raw) {
		for (unsigned i = 0; i < 4; i++)
			dw[i] = input_u64(&run.input);
	} else {
		its_read_command(&run.input, dw);
	}
	place_command(its, dw, submit);
}

static void signal_both(uint32_t its, uint32_t device, uint32_t event)
{
	int result;

	note("signal of ITS %" PRIu32 " device %" PRIu32 " event %" PRIu32, its, device, event);
	result = vgic_its_signal(run.m->its[its], device, event);
	if (result != ref_its_signal(run.m->ref, its, device, event))
		differ("the signal returned %d", result);
}

static void take(uint32_t vcpu, bool and_end)
{
	const uint64_t intid = pair_icc_read(run.pair, vcpu, VGIC_ICC_IAR1_EL1);

	note("vCPU %" PRIu32 " acknowledges %" PRIu64, vcpu, intid);
	if (intid == GIC_SPURIOUS || !and_end)
		return;
	pair_compare(run.pair);
	pair_icc_write(run.pair, vcpu, VGIC_ICC_EOIR1_EL1, intid);
}

static void access_redist(uint32_t vcpu, bool write)
{
	const unsigned width = its_read_width(&run.input);
	const uint32_t offset = (uint32_t)its_read_plain(&run.input);

	if (write)
		redist_write(vcpu, offset, width, its_read_number(&run.input));
	else
		pair_read(run.pair, vcpu, offset, width);
}

static void access_its(uint32_t its, bool write)
{
	const unsigned width = its_read_width(&run.input);
	const uint32_t offset = (uint32_t)its_read_plain(&run.input);

	if (write)
		its_write(its, offset, width, its_read_number(&run.input));
	else
		its_read(its, offset, width);
}

static void run_expensive(unsigned kind)
{
	if (run.num_expensive++ >= MAX_EXPENSIVE)
		return;
	note(kind == ITS_RESET ? "reset" : kind == ITS_MOVE ? "saved and restored" : "comparison of all");
	if (kind == ITS_RESET)
		pair_reset(run.pair);
	else if (kind == ITS_MOVE)
		pair_move(run.pair);
	for (uint32_t i = 0; i < run.m->num_itses; i++)
		run.queue_at[i] = its_read(i, GITS_CWRITER, 8);
	compare_all();
}

/* What names an ITS; nothing without one. */
static void run_its_op(unsigned kind, uint32_t its, bool flag)
{
	uint32_t device, event;

	if (run.m->num_itses == 0)
		return;
	switch (kind) {
	case ITS_COMMAND:
	case ITS_RAW_COMMAND:
		run_command(its, kind == ITS_RAW_COMMAND, flag);
		break;
	case ITS_SIGNAL:
		device = (uint32_t)its_read_plain(&run.input);
		event = (uint32_t)its_read_plain(&run.input);
		signal_both(its, device, event);
		break;
	case ITS_MAPPED:
		if (ref_its_some_event(run.m->ref, its, input_u8(&run.input), &device, &event))
			signal_both(its, device, event);
		break;
	case ITS_SET_UP:
		set_up_its(its, flag);
		break;
	default:
		access_its(its, kind == ITS_WRITE);
		break;
	}
}

static void run_vcpu_op(unsigned kind, uint32_t vcpu, bool flag)
{
	struct pair *pair = run.pair;
	uint32_t reg;

	switch (kind) {
	case ITS_TAKE:
		take(vcpu, !flag);
		break;
	case ITS_REDIST_WRITE:
	case ITS_REDIST_READ:
		access_redist(vcpu, kind == ITS_REDIST_WRITE);
		break;
	case ITS_ICC_WRITE:
		reg = input_u16(&run.input);
		pair_icc_write(pair, vcpu, reg, its_read_number(&run.input));
		break;
	case ITS_ICC_READ:
		pair_icc_read(pair, vcpu, input_u16(&run.input));
		break;
	case ITS_SET_UP_VCPU:
		set_up_vcpu(vcpu, flag);
		break;
	case ITS_ONLINE:
		pair_set_online(pair, vcpu, flag);
		break;
	default:
		pair_write(pair, PAIR_DIST, GICD_CTLR, 4, input_u8(&run.input));
		break;
	}
}

static void run_memory_op(unsigned kind, bool flag)
{
	const uint64_t address = its_read_number(&run.input);

	if (kind == ITS_HOLE) {
		run.hole = flag ? 0 : address & ~(RAM_PAGE - 1ull);
		note("no memory at 0x%" PRIx64, run.hole);
	} else if (kind == ITS_POKE) {
		poke(address, input_u8(&run.input), 1);
	} else {
		poke(address, its_read_number(&run.input), 8);
	}
}

static void run_op(void)
{
	const uint8_t op = input_u8(&run.input);
	const unsigned kind = ITS_KIND(op) % ITS_NUM_KINDS;
	const bool flag = op & ITS_FLAG;

	switch (kind) {
	case ITS_COMMAND:
	case ITS_RAW_COMMAND:
	case ITS_SIGNAL:
	case ITS_MAPPED:
	case ITS_SET_UP:
	case ITS_WRITE:
	case ITS_READ:
		run_its_op(kind, run.m->num_itses ? ITS_WHICH(op) % run.m->num_itses : 0, flag);
		break;
	case ITS_POKE:
	case ITS_POKE64:
	case ITS_HOLE:
		run_memory_op(kind, flag);
		break;
	case ITS_MOVE:
	case ITS_RESET:
	case ITS_COMPARE:
		run_expensive(kind);
		break;
	default:
		run_vcpu_op(kind, ITS_WHICH(op) % run.pair->num_vcpus, flag);
		break;
	}
	compare();
}

/* ---- The machine ---------------------------------------------------------------------------------------------- */

static void configure(struct machine *m, uint8_t how)
{
	static const struct vgic_its_config large = { .max_devices = 3, .max_translations = 20 };
	static const struct vgic_its_config small = {
		.device_id_bits = 3, .event_id_bits = 4, .max_devices = 8, .max_translations = 32
	};
	const unsigned itses = (how & ITS_CONFIG_ITSES) >> 3;
	struct pair *pair = &m->pair;

	pair_configure(pair, how & ITS_CONFIG_KVM ? VGIC_PROFILE_KVM : VGIC_PROFILE_NATIVE,
		       ((how & ITS_CONFIG_VCPUS) >> 1) % ITS_MAX_VCPUS + 1);
	pair->name = "its";
	m->num_itses = itses < 3 ? itses : 2;
	for (uint32_t i = 0; i < m->num_itses; i++)
		m->its_configs[i] = itses == 3 || i == 1 ? small : large;
	pair->config.num_redist_regions = 0;
	pair->config.features |= VGIC_FEATURE_LPIS;
	pair->config.num_spis = ITS_NUM_SPIS;
	pair->config.lpi_id_bits = ITS_LPI_ID_BITS;
	pair->config.num_itses = m->num_itses;
	pair->config.itses = m->its_configs;
	pair->config.ops.guest_read = on_guest_read;
	pair->config.ops.guest_write = on_guest_write;
}

static struct machine *create_machine(uint8_t how)
{
	struct machine *m = calloc(1, sizeof(*m));

	if (m == NULL)
		abort();
	configure(m, how);
	pair_create(&m->pair);
	m->ref = ref_lpis(m->pair.ref);
	ref_lpis_use_memory(m->ref, &memories[1]);
	for (uint32_t i = 0; i < m->num_itses; i++)
		m->its[i] = vgic_its_by_index(m->pair.vgic, i);
	return m;
}

static void start_machine(uint8_t how)
{
	struct machine **m = &machines[how % ITS_NUM_CONFIGS];
	const bool is_new = *m == NULL;

	if (is_new)
		*m = create_machine(how);
	run.m = *m;
	run.pair = &run.m->pair;
	run.pair->num_ops = 0;
	run.pair->how_lines = 0;
	if (!is_new)
		pair_reset(run.pair);
	for (uint32_t v = 0; v < run.pair->num_vcpus; v++)
		pair_set_online(run.pair, v, true);
	if (!(how & ITS_CONFIG_BARE))
		set_up_all();
}

/*
 * What the input has left behind, made visible: the signals of all events, and what each vCPU then takes and in which
 * order. It is there that an INV that did nothing shows.
 */
static void probe(void)
{
	uint32_t device, event;

	for (uint32_t i = 0; i < run.m->num_itses; i++) {
		for (uint32_t n = 0; n < NUM_PROBED && ref_its_some_event(run.m->ref, i, n, &device, &event); n++)
			signal_both(i, device, event);
	}
	pair_write(run.pair, PAIR_DIST, GICD_CTLR, 4, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
	for (uint32_t v = 0; v < run.pair->num_vcpus; v++) {
		pair_icc_write(run.pair, v, VGIC_ICC_PMR_EL1, 0xff);
		pair_icc_write(run.pair, v, VGIC_ICC_IGRPEN1_EL1, 1);
		pair_icc_write(run.pair, v, VGIC_ICC_AP0R0_EL1, 0);
		pair_icc_write(run.pair, v, VGIC_ICC_AP1R0_EL1, 0);
		compare();
		for (uint32_t n = 0; n < NUM_PROBED && pair_lines(run.pair, v) != 0; n++)
			take(v, true);
	}
	compare();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	memset(&run, 0, sizeof(run));
	run.input = (struct input){ data, size };
	start_machine(input_u8(&run.input));
	for (unsigned i = 0; i < MAX_OPS && !input_is_empty(&run.input); i++)
		run_op();
	probe();
	compare_all();
	clear_memory(&memories[0]);
	clear_memory(&memories[1]);
	return 0;
}
