/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: an ITS whose guest is hostile. Guest memory holds what the input
 * says, raw bytes included, has holes, and changes between two reads of one and the
 * same command or table. What comes of that is the guest's affair and not compared
 * with anything. What must hold whatever the guest does is checked:
 *   - no access of guest memory crosses a page, and one call makes a bounded number;
 *   - work comes to an end, and then CREADR is at CWRITER, or the ITS is off;
 *   - no more devices and events are mapped than the VMM allows;
 *   - what a vCPU acknowledges exists, and when it ends all of it, nothing is left;
 *   - a controller that was saved can be restored.
 *
 * its_format.h says where things are. A machine is kept and reset as in its.c.
 */
#include "its_format.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vgic/state.h>

#define MAX_OPS       300u
#define MAX_EXPENSIVE 1u
#define MAX_CHANGES   8u
#define MAX_DEVICES   4u
#define MAX_EVENTS    24u
#define RAM_PAGE      4096u
#define NUM_PAGES     (RAM_SIZE / RAM_PAGE)

/* A call does WORK_STEPS (4096) of the guest's work, none of which makes more than four accesses, and a little more. */
#define MAX_ACCESSES (5u * 4096u)
/* Two queues of 256 pages, each with 128 commands, each of which looks at every LPI in as many steps as there are words. */
#define MAX_PARTS    100000u

struct change {
	uint32_t after; /* accesses */
	bool fail;
	uint64_t value;
};

struct machine {
	struct vgic_config config;
	struct vgic_vcpu_config vcpus[ITS_MAX_VCPUS];
	struct vgic_its_config its_configs[ITS_MAX_ITSES];
	struct vgic *vgic;
	struct vgic_vcpu *vcpu[ITS_MAX_VCPUS];
	struct vgic_its *its[ITS_MAX_ITSES];
};

static struct machine *machines[ITS_NUM_CONFIGS];

static struct memory {
	uint8_t bytes[RAM_SIZE];
	bool is_dirty[NUM_PAGES];
} memory;

static struct run {
	struct input input;
	struct machine *m;
	struct vgic *vgic;
	uint64_t hole;
	struct change changes[MAX_CHANGES];
	unsigned next_change, num_changes;
	uint64_t num_accesses; /* since the call began */
	bool is_vmm_call;      /* that reads tables: it takes as long as there are tables */
	unsigned num_expensive;
} run;

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("# ");
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	abort();
}

/* ---- Guest memory ------------------------------------------------------------------------------------------ */

static void memory_write(uint64_t address, const void *buffer, size_t size)
{
	const uint64_t offset = address - RAM_BASE;

	if (size == 0)
		return;
	memcpy(memory.bytes + offset, buffer, size);
	for (uint64_t page = offset / RAM_PAGE; page <= (offset + size - 1) / RAM_PAGE; page++)
		memory.is_dirty[page] = true;
}

static void memory_write_u64(uint64_t address, uint64_t value)
{
	uint8_t bytes[8];

	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	memory_write(address, bytes, sizeof(bytes));
}

/* The guest's own writes go somewhere, whatever the address. */
static uint64_t own_address(uint64_t address, size_t size)
{
	if (address < RAM_BASE || address - RAM_BASE > RAM_SIZE - size)
		return RAM_BASE + address % (RAM_SIZE - size);
	return address;
}

static bool ram_has(uint64_t address, size_t size)
{
	if (address < RAM_BASE || address - RAM_BASE > RAM_SIZE - size)
		return false;
	return run.hole == 0 || address + size <= run.hole || address >= run.hole + RAM_PAGE;
}

/* An access is about to be made: does it fail, and has another vCPU just written there? */
static bool access_fails(uint64_t address, size_t size)
{
	struct change *change = &run.changes[run.next_change];

	if (size == 0 || address / RAM_PAGE != (address + size - 1) / RAM_PAGE)
		fail("an access of %zu bytes at 0x%llx crosses a page", size, (unsigned long long)address);
	if (++run.num_accesses > MAX_ACCESSES && !run.is_vmm_call)
		fail("more than %u accesses in one call", MAX_ACCESSES);
	if (run.next_change == run.num_changes || change->after-- != 0)
		return !ram_has(address, size);
	run.next_change++;
	if (change->fail)
		return true;
	memory_write_u64(own_address(address & ~7ull, 8), change->value);
	return !ram_has(address, size);
}

static int on_guest_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	(void)opaque;
	if (access_fails(address, size))
		return -EFAULT;
	memcpy(buffer, memory.bytes + (address - RAM_BASE), size);
	return 0;
}

static int on_guest_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	(void)opaque;
	if (access_fails(address, size))
		return -EFAULT;
	memory_write(address, buffer, size);
	return 0;
}

static void clear_memory(void)
{
	for (uint32_t page = 0; page < NUM_PAGES; page++) {
		if (memory.is_dirty[page])
			memset(memory.bytes + page * RAM_PAGE, 0, RAM_PAGE);
		memory.is_dirty[page] = false;
	}
}

/* ---- Calls, and what must hold after them ---------------------------------------------------------------------- */

static bool do_part(void)
{
	run.num_accesses = 0;
	return vgic_run_work(run.vgic) != 0;
}

static uint64_t its_read(struct vgic_its *its, uint32_t offset, unsigned width)
{
	uint64_t value = 0;

	run.num_accesses = 0;
	vgic_its_read(its, offset, width, &value);
	return value;
}

static void its_write(struct vgic_its *its, uint32_t offset, unsigned width, uint64_t value)
{
	run.num_accesses = 0;
	vgic_its_write(its, offset, width, value);
}

static void redist_write(struct vgic_vcpu *vcpu, uint32_t offset, unsigned width, uint64_t value)
{
	run.num_accesses = 0;
	vgic_redist_write(vcpu, offset, width, value);
}

static void check_its(struct vgic_its *its)
{
	struct vgic_its_stats stats = { .size = sizeof(stats) };

	if (vgic_its_get_stats(its, &stats))
		fail("no statistics");
	if (stats.num_devices > MAX_DEVICES || stats.num_translations > MAX_EVENTS)
		fail("%u devices and %u events are mapped", stats.num_devices, stats.num_translations);
}

static void finish_work(void)
{
	for (unsigned parts = 0; do_part(); parts++) {
		if (parts > MAX_PARTS)
			fail("work without end");
	}
	for (uint32_t i = 0; i < run.m->config.num_itses; i++) {
		struct vgic_its *its = run.m->its[i];

		check_its(its);
		if ((its_read(its, GITS_CTLR, 4) & GITS_CTLR_ENABLED) &&
		    its_read(its, GITS_CREADR, 8) != its_read(its, GITS_CWRITER, 8))
			fail("there is no work left, and commands");
		if (!(its_read(its, GITS_CTLR, 4) & (GITS_CTLR_ENABLED | GITS_CTLR_QUIESCENT)))
			fail("an ITS is off, and not quiescent with all work done");
	}
}

/* Everything that is signalled is acknowledged and ended: no more than there can be. */
static void take(struct vgic_vcpu *vcpu)
{
	const uint32_t end = 1u << ITS_LPI_ID_BITS;
	uint64_t intid = 0;

	vgic_enter_guest(vcpu);
	vgic_exit_guest(vcpu);
	for (unsigned i = 0; i < end; i++) {
		vgic_icc_read(vcpu, VGIC_ICC_IAR1_EL1, &intid);
		if (intid == GIC_SPURIOUS)
			return;
		if (intid >= GIC_FIRST_SPI + ITS_NUM_SPIS && (intid < GIC_FIRST_LPI || intid >= end))
			fail("acknowledged INTID %llu, which does not exist", (unsigned long long)intid);
		vgic_icc_write(vcpu, VGIC_ICC_EOIR1_EL1, intid);
	}
	fail("there is always another interrupt");
}

/* ---- Operations ---------------------------------------------------------------------------------------------- */

static void set_up_vcpu(uint32_t vcpu)
{
	struct vgic_vcpu *v = run.m->vcpu[vcpu];

	vgic_icc_write(v, VGIC_ICC_PMR_EL1, 0xf8);
	vgic_icc_write(v, VGIC_ICC_IGRPEN1_EL1, 1);
	redist_write(v, GICR_PROPBASER, 8, PROPERTY_TABLE | (ITS_LPI_ID_BITS - 1));
	redist_write(v, GICR_PENDBASER, 8, PENDING_TABLE(vcpu));
	redist_write(v, GICR_CTLR, 4, GICR_CTLR_ENABLE_LPIS);
}

static void set_up(void)
{
	vgic_dist_write(run.vgic, GICD_CTLR, 4, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
	for (uint32_t i = 0; i < 64; i += 8)
		memory_write_u64(PROPERTY_TABLE + i, 0xa1a1f1a1a151a1a1ull);
	for (uint32_t v = 0; v < run.m->config.num_vcpus; v++)
		set_up_vcpu(v);
	for (uint32_t i = 0; i < run.m->config.num_itses; i++) {
		its_write(run.m->its[i], GITS_CBASER, 8, GITS_CBASER_VALID | QUEUE(i));
		its_write(run.m->its[i], GITS_BASER0, 8, GITS_BASER_VALID | DEVICE_TABLE(i));
		its_write(run.m->its[i], GITS_BASER1, 8, GITS_BASER_VALID | COLLECTION_TABLE(i));
		its_write(run.m->its[i], GITS_CTLR, 4, GITS_CTLR_ENABLED);
	}
}

/* Write to where the guest's queue really is, and behind what is in it. */
static void submit(struct vgic_its *its, const uint8_t *bytes, size_t size)
{
	const uint64_t cbaser = its_read(its, GITS_CBASER, 8);
	const uint64_t end = ((cbaser & 0xff) + 1) * GITS_QUEUE_PAGE;
	uint64_t at = its_read(its, GITS_CWRITER, 8);

	for (size_t i = 0; i + ITS_CMD_SIZE <= size; i += ITS_CMD_SIZE) {
		const uint64_t address = own_address((cbaser & 0x000ffffffffff000ull) + at, ITS_CMD_SIZE);

		memory_write(address, bytes + i, ITS_CMD_SIZE);
		at = (at + ITS_CMD_SIZE) % end;
	}
	its_write(its, GITS_CWRITER, 8, at);
}

static void run_commands(struct vgic_its *its)
{
	uint8_t bytes[16 * ITS_CMD_SIZE];
	const unsigned num = input_u8(&run.input) % 16 + 1;
	uint64_t dw[4];

	for (unsigned i = 0; i < num * 4; i++) {
		if (i % 4 == 0)
			its_read_command(&run.input, dw);
		for (unsigned b = 0; b < 8; b++)
			bytes[8 * i + b] = (uint8_t)(dw[i % 4] >> (8 * b));
	}
	submit(its, bytes, num * ITS_CMD_SIZE);
}

static void fill(void)
{
	const uint64_t address = its_read_number(&run.input);
	const uint8_t *bytes;
	const size_t size = input_bytes(&run.input, input_u8(&run.input), &bytes);

	memory_write(own_address(address, size), bytes, size);
}

static void save_and_restore(void)
{
	size_t size = 0, used = 0;
	void *image;

	finish_work();
	if (vgic_save_size(run.vgic, &size))
		fail("the size of an image is not known");
	image = malloc(size);
	if (!image)
		abort();
	if (vgic_save(run.vgic, image, size, &used) || vgic_restore(run.vgic, image, used, NULL))
		fail("what was saved cannot be restored");
	free(image);
}

static void run_expensive(unsigned kind, struct vgic_its *its, bool flag)
{
	if (run.num_expensive++ >= MAX_EXPENSIVE)
		return;
	/* Tables are the guest's: what reads them may well fail. */
	run.is_vmm_call = true;
	if (kind == HOSTILE_TABLES && its)
		vgic_its_attr_set(its, VGIC_GRP_CTRL, flag ? VGIC_CTRL_ITS_RESTORE_TABLES : VGIC_CTRL_ITS_SAVE_TABLES,
				  0);
	else if (kind == HOSTILE_PENDING)
		vgic_attr_set(run.vgic, VGIC_GRP_CTRL, VGIC_CTRL_SAVE_PENDING_TABLES, 0);
	else if (kind == HOSTILE_RESET && flag && its)
		vgic_its_attr_set(its, VGIC_GRP_CTRL, VGIC_CTRL_ITS_RESET, 0);
	else if (kind == HOSTILE_RESET)
		vgic_reset(run.vgic);
	else if (kind == HOSTILE_MOVE)
		save_and_restore();
	run.is_vmm_call = false;
}

static void add_change(bool fails)
{
	struct change *change = &run.changes[run.num_changes];

	if (run.num_changes == MAX_CHANGES)
		return;
	change->after = input_u8(&run.input);
	change->fail = fails;
	change->value = fails ? 0 : its_read_number(&run.input);
	run.num_changes++;
}

static void run_memory_op(unsigned kind, bool flag)
{
	uint64_t address;

	switch (kind) {
	case HOSTILE_FILL:
		fill();
		break;
	case HOSTILE_CHANGE:
		add_change(flag);
		break;
	case HOSTILE_HOLE:
		address = its_read_number(&run.input);
		run.hole = flag ? 0 : address & ~(RAM_PAGE - 1ull);
		break;
	default:
		address = own_address(its_read_number(&run.input), 8);
		memory_write_u64(address, its_read_number(&run.input));
		break;
	}
}

static void run_its_op(unsigned kind, uint32_t index, bool flag)
{
	struct vgic_its *its = run.m->its[index];
	const uint8_t *bytes;
	unsigned width;
	uint32_t a, b;
	size_t size;

	switch (kind) {
	case HOSTILE_COMMANDS:
		run_commands(its);
		break;
	case HOSTILE_RAW_QUEUE:
		size = input_bytes(&run.input, input_u8(&run.input), &bytes);
		submit(its, bytes, size);
		break;
	case HOSTILE_ITS_WRITE:
	case HOSTILE_ITS_READ:
		width = its_read_width(&run.input);
		a = (uint32_t)its_read_plain(&run.input);
		if (kind == HOSTILE_ITS_READ)
			its_read(its, a, width);
		else
			its_write(its, a, width, its_read_number(&run.input));
		if (flag)
			finish_work();
		break;
	default:
		a = (uint32_t)its_read_plain(&run.input);
		b = (uint32_t)its_read_plain(&run.input);
		if (kind == HOSTILE_SIGNAL)
			vgic_its_signal(its, a, b);
		else
			vgic_signal_msi(run.vgic, 0x09000000ull + 0x20000ull * index + VGIC_ITS_DOORBELL, b, a, 0);
		break;
	}
}

static void run_op(void)
{
	const uint8_t op = input_u8(&run.input);
	const unsigned kind = ITS_KIND(op) % HOSTILE_NUM_KINDS;
	const bool flag = op & ITS_FLAG;
	const uint32_t num_itses = run.m->config.num_itses;
	const uint32_t its = num_itses ? ITS_WHICH(op) % num_itses : 0;
	struct vgic_vcpu *vcpu = run.m->vcpu[ITS_WHICH(op) % run.m->config.num_vcpus];
	uint32_t offset;
	unsigned width;

	switch (kind) {
	case HOSTILE_FILL:
	case HOSTILE_POKE64:
	case HOSTILE_CHANGE:
	case HOSTILE_HOLE:
		run_memory_op(kind, flag);
		break;
	case HOSTILE_REDIST:
		width = its_read_width(&run.input);
		offset = (uint32_t)its_read_plain(&run.input);
		redist_write(vcpu, offset, width, its_read_number(&run.input));
		break;
	case HOSTILE_TAKE:
		take(vcpu);
		break;
	case HOSTILE_WORK:
		if (flag)
			finish_work();
		else
			do_part();
		break;
	case HOSTILE_SET_UP:
		set_up();
		break;
	case HOSTILE_TABLES:
	case HOSTILE_MOVE:
	case HOSTILE_PENDING:
	case HOSTILE_RESET:
		run_expensive(kind, num_itses ? run.m->its[its] : NULL, flag);
		break;
	default:
		if (num_itses)
			run_its_op(kind, its, flag);
		break;
	}
}

/* ---- The machine ---------------------------------------------------------------------------------------------- */

static struct machine *create_machine(uint8_t how)
{
	static const uint32_t ids[ITS_MAX_VCPUS] = { 5, 0, 9 }; /* as in the lockstep tests */
	struct machine *m = calloc(1, sizeof(*m));
	const unsigned itses = (how & ITS_CONFIG_ITSES) >> 3;

	if (m == NULL)
		abort();
	vgic_config_init(&m->config, how & ITS_CONFIG_KVM ? VGIC_PROFILE_KVM : VGIC_PROFILE_NATIVE);
	m->config.features |= VGIC_FEATURE_LPIS;
	m->config.num_vcpus = ((how & ITS_CONFIG_VCPUS) >> 1) % ITS_MAX_VCPUS + 1;
	m->config.vcpus = m->vcpus;
	for (uint32_t i = 0; i < m->config.num_vcpus; i++)
		m->vcpus[i] = (struct vgic_vcpu_config){ .id = ids[i], .affinity = i };
	m->config.num_spis = ITS_NUM_SPIS;
	m->config.lpi_id_bits = ITS_LPI_ID_BITS;
	m->config.num_itses = itses < 3 ? itses : 2;
	m->config.itses = m->its_configs;
	for (uint32_t i = 0; i < m->config.num_itses; i++)
		m->its_configs[i] = (struct vgic_its_config){ .has_base = true,
							      .base = 0x09000000ull + 0x20000ull * i,
							      .device_id_bits = itses == 3 ? 3 : 0,
							      .event_id_bits = itses == 3 ? 4 : 0,
							      .max_devices = MAX_DEVICES,
							      .max_translations = MAX_EVENTS };
	m->config.ops.guest_read = on_guest_read;
	m->config.ops.guest_write = on_guest_write;
	if (vgic_create(&m->config, &m->vgic))
		fail("the machine cannot be created");
	for (uint32_t i = 0; i < m->config.num_vcpus; i++)
		m->vcpu[i] = vgic_vcpu_by_index(m->vgic, i);
	for (uint32_t i = 0; i < m->config.num_itses; i++)
		m->its[i] = vgic_its_by_index(m->vgic, i);
	return m;
}

static void start_machine(uint8_t how)
{
	struct machine **m = &machines[how % ITS_NUM_CONFIGS];

	if (*m == NULL)
		*m = create_machine(how);
	run.m = *m;
	run.vgic = run.m->vgic;
	if (vgic_reset(run.vgic))
		fail("cannot be reset");
	if (!(how & ITS_CONFIG_BARE))
		set_up();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	memset(&run, 0, sizeof(run));
	run.input = (struct input){ data, size };
	start_machine(input_u8(&run.input));
	for (unsigned i = 0; i < MAX_OPS && !input_is_empty(&run.input); i++)
		run_op();
	finish_work();
	for (uint32_t v = 0; v < run.m->config.num_vcpus; v++)
		take(run.m->vcpu[v]);
	clear_memory();
	return 0;
}
