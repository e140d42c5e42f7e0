/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: the VMM's virtio block device as its driver sees it. The driver writes
 * configuration space, BARs, descriptors and rings, sensible or not; and the device is
 * saved and loaded, also from what was changed in between.
 *
 * Beside it goes a model of the device's end of the queues (struct model below), naive
 * and written from the virtio specification. After each step memory is what the model
 * says, to the byte: so nothing is written elsewhere. At the end so is the disk.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../vmm/rig.h"
#include "check.h"
#include "fuzz.h"
#include "snapshot_file.h"
#include "virtio_blk.h"
#include "virtio_pci.h"

#define MAX_STEPS   64u
#define RAM_SIZE    0x8000u
#define SECTOR      512u
#define NUM_SECTORS 8u
#define DISK_SIZE   (NUM_SECTORS * SECTOR)
#define MAX_QUEUES  3u
#define MAX_SIZE    256u
#define SLOT        1u

#define REGISTERS 0u /* BARs */
#define TABLE     1u
#define NOTIFY    0x3000u
#define ISR       0x1000u

/* The common configuration. */
#define DRIVER_FEATURE_SELECT 8u
#define DRIVER_FEATURE        12u
#define STATUS                20u
#define QUEUE_SELECT          22u
#define QUEUE_SIZE            24u
#define QUEUE_VECTOR          26u
#define QUEUE_ENABLE          28u
#define QUEUE_DESC            32u
#define QUEUE_DRIVER          40u
#define QUEUE_DEVICE          48u

#define DRIVER_OK   4u
#define FEATURES_OK 8u
#define NEEDS_RESET 0x40u

#define DESC_F_NEXT     1u
#define DESC_F_WRITE    2u
#define DESC_F_INDIRECT 4u

/* Behind the fields of a saved device there are those of its queues. */
#define SAVED_QUEUE 37u
#define SAVED_TAIL  3u /* status, ISR, failed */

static struct rig rig;
static int disk_fd;
static char disk_path[32];

/* ---- The model ------------------------------------------------------------------------ */

struct model {
	uint8_t ram[RAM_SIZE], disk[DISK_SIZE];
	unsigned num_queues;
	bool read_only;
	bool indirect;
	bool stopped; /* nothing more is taken */
	uint16_t next_avail[MAX_QUEUES], next_used[MAX_QUEUES];
	uint8_t isr;
};

struct setup {
	uint16_t size;
	uint64_t desc, avail, used; /* offsets in memory */
};

/* A request, byte by byte where it lies in memory. */
struct request {
	uint32_t readable[RAM_SIZE], writable[RAM_SIZE];
	uint32_t num_readable, num_writable;
};

static uint64_t get(const uint8_t *at, unsigned n)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < n; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

static void put(uint8_t *at, uint64_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static bool is_memory(uint64_t address, uint64_t size)
{
	return address >= RIG_RAM_BASE && address - RIG_RAM_BASE <= RAM_SIZE &&
	       size <= RAM_SIZE - (address - RIG_RAM_BASE);
}

static bool add_bytes(struct request *r, uint64_t address, uint64_t length, bool writable)
{
	if (length == 0 || !is_memory(address, length) || (!writable && r->num_writable) ||
	    r->num_readable + r->num_writable + length > RAM_SIZE)
		return false;
	for (uint64_t i = 0; i < length; i++) {
		const uint32_t at = (uint32_t)(address - RIG_RAM_BASE + i);

		if (writable)
			r->writable[r->num_writable++] = at;
		else
			r->readable[r->num_readable++] = at;
	}
	return true;
}

/* Returns whether the chain follows the rules. */
static bool gather(const struct model *m, const struct setup *q, uint64_t index, struct request *r)
{
	uint64_t table = q->desc, size = q->size;
	bool in_indirect = false;
	unsigned num_buffers = 0;

	r->num_readable = 0;
	r->num_writable = 0;
	for (;;) {
		uint64_t address, length, flags;

		if (index >= size)
			return false;
		address = get(m->ram + table + 16 * index, 8);
		length = get(m->ram + table + 16 * index + 8, 4);
		flags = get(m->ram + table + 16 * index + 12, 2);
		if (flags & DESC_F_INDIRECT) {
			if (in_indirect || !m->indirect || (flags & DESC_F_NEXT) || length == 0 || length % 16 ||
			    length / 16 > q->size || !is_memory(address, length))
				return false;
			in_indirect = true;
			table = address - RIG_RAM_BASE;
			size = length / 16;
			index = 0;
			continue;
		}
		if (num_buffers++ >= q->size || !add_bytes(r, address, length, flags & DESC_F_WRITE))
			return false;
		if (!(flags & DESC_F_NEXT))
			return true;
		index = get(m->ram + table + 16 * index + 14, 2);
	}
}

static bool is_on_disk(uint64_t sector, uint64_t length)
{
	return length % SECTOR == 0 && sector <= NUM_SECTORS && length / SECTOR <= NUM_SECTORS - sector;
}

/* Returns the bytes written, or 0 if it is no request. */
static uint32_t execute(struct model *m, struct request *r)
{
	uint8_t header[16], status = 0;
	uint32_t length, written = 0;
	uint64_t type, sector;

	if (r->num_writable < 1 || r->num_readable < sizeof(header))
		return 0;
	for (unsigned i = 0; i < sizeof(header); i++)
		header[i] = m->ram[r->readable[i]];
	type = get(header, 4);
	sector = get(header + 8, 8);
	if (type == 0) {
		length = r->num_writable - 1;
		if (!is_on_disk(sector, length))
			status = 1;
		for (uint32_t i = 0; i < length && !status; i++)
			m->ram[r->writable[i]] = m->disk[sector * SECTOR + i];
		written = status ? 0 : length;
	} else if (type == 1) {
		length = r->num_readable - (uint32_t)sizeof(header);
		if (m->read_only || !is_on_disk(sector, length))
			status = 1;
		for (uint32_t i = 0; i < length && !status; i++)
			m->disk[sector * SECTOR + i] = m->ram[r->readable[sizeof(header) + i]];
	} else if (type == 8) {
		status = r->num_writable - 1 < 20;
		for (uint32_t i = 0; i < 20 && !status; i++)
			m->ram[r->writable[i]] = i < strlen(disk_path) ? (uint8_t)disk_path[i] : 0;
		written = status ? 0 : 20;
	} else if (type != 4) {
		status = 2;
	}
	m->ram[r->writable[r->num_writable - 1]] = status;
	return written + 1;
}

static void model_serve(struct model *m, unsigned index, const struct setup *q, uint16_t published)
{
	static struct request request;

	while (!m->stopped && published != m->next_avail[index]) {
		const uint64_t entry = q->avail + 4 + 2 * (m->next_avail[index] % q->size);
		uint64_t used, head;
		uint32_t written;

		m->stopped = (uint16_t)(published - m->next_avail[index]) > q->size;
		if (m->stopped)
			return;
		head = get(m->ram + entry, 2);
		m->stopped = !gather(m, q, head, &request);
		if (m->stopped)
			return;
		m->next_avail[index]++;
		written = execute(m, &request);
		m->stopped = written == 0;
		if (m->stopped)
			return;
		used = q->used + 4 + 8 * (m->next_used[index] % q->size);
		put(m->ram + used, head, 4);
		put(m->ram + used + 4, written, 4);
		put(m->ram + q->used + 2, ++m->next_used[index], 2);
		if (!(get(m->ram + q->avail, 2) & 1))
			m->isr |= 1;
	}
}

static void model_reset(struct model *m)
{
	memset(m->next_avail, 0, sizeof(m->next_avail));
	memset(m->next_used, 0, sizeof(m->next_used));
	m->isr = 0;
	m->stopped = false;
}

/* ---- The device, and what the driver does to it --------------------------------------------- */

struct machine_under_test {
	struct guest_ram ram;
	struct virtio_pci *pci;
	struct pci_function *function;
	struct model model;
	uint32_t status; /* before the step, or as it was loaded */
};

static uint32_t bar_read(struct machine_under_test *t, unsigned bar, uint32_t offset, unsigned width)
{
	uint32_t value = 0;

	pci_bar_read(t->function, bar, offset, width, &value);
	return value;
}

static uint32_t common(struct machine_under_test *t, uint32_t offset, unsigned width)
{
	return bar_read(t, REGISTERS, offset, width);
}

static void set_common(struct machine_under_test *t, uint32_t offset, unsigned width, uint64_t value)
{
	pci_bar_write(t->function, REGISTERS, offset, width, (uint32_t)value);
}

static void set_address(struct machine_under_test *t, uint32_t offset, uint64_t address)
{
	set_common(t, offset, 4, address);
	set_common(t, offset + 4, 4, address >> 32);
}

static uint64_t get_address(struct machine_under_test *t, uint32_t offset)
{
	return common(t, offset, 4) | (uint64_t)common(t, offset + 4, 4) << 32;
}

/* A queue as the registers show it. Returns whether it is enabled. */
static bool get_setup(struct machine_under_test *t, unsigned index, struct setup *q)
{
	const uint32_t selected = common(t, QUEUE_SELECT, 2);
	bool enabled;

	set_common(t, QUEUE_SELECT, 2, index);
	q->size = (uint16_t)common(t, QUEUE_SIZE, 2);
	q->desc = get_address(t, QUEUE_DESC) - RIG_RAM_BASE;
	q->avail = get_address(t, QUEUE_DRIVER) - RIG_RAM_BASE;
	q->used = get_address(t, QUEUE_DEVICE) - RIG_RAM_BASE;
	enabled = common(t, QUEUE_ENABLE, 2);
	set_common(t, QUEUE_SELECT, 2, selected);
	return enabled;
}

static bool features_have_indirect(struct machine_under_test *t)
{
	const uint32_t selected = common(t, DRIVER_FEATURE_SELECT, 4);
	uint32_t features;

	set_common(t, DRIVER_FEATURE_SELECT, 4, 0);
	features = common(t, DRIVER_FEATURE, 4);
	set_common(t, DRIVER_FEATURE_SELECT, 4, selected);
	return features & VIRTIO_F_INDIRECT_DESC;
}

/* The model does what the device will do at a notification. */
static void model_notify(struct machine_under_test *t, unsigned index)
{
	const uint32_t status = common(t, STATUS, 1);
	struct model *m = &t->model;
	struct setup q;

	if (index >= m->num_queues || !(status & DRIVER_OK) || (status & NEEDS_RESET) ||
	    !(pci_config_get(t->function, PCI_COMMAND, 2) & PCI_COMMAND_MASTER) || !get_setup(t, index, &q))
		return;
	m->indirect = features_have_indirect(t);
	model_serve(m, index, &q, (uint16_t)get(m->ram + q.avail + 2, 2));
}

static void registers_write(struct machine_under_test *t, uint32_t offset, unsigned width, uint32_t value)
{
	if (offset >= NOTIFY && offset % 4 == 0)
		model_notify(t, (offset - NOTIFY) / 4);
	pci_bar_write(t->function, REGISTERS, offset, width, value);
}

/* The driver's writes to memory go to both. */
static void ram_write(struct machine_under_test *t, uint32_t where, uint64_t value, unsigned n)
{
	if (where > RAM_SIZE - n)
		return;
	put(t->ram.host + where, value, n);
	put(t->model.ram + where, value, n);
}

/* ---- Where a sensible driver has its queues ------------------------------------------------------ */

#define QUEUE_SPACE 0x1c00u /* descriptors, available ring, used ring */
#define DESC_AT(q)  (QUEUE_SPACE * (q))
#define AVAIL_AT(q) (DESC_AT(q) + 16 * MAX_SIZE)
#define USED_AT(q)  (AVAIL_AT(q) + 0x400)
#define BUFFERS     (QUEUE_SPACE * MAX_QUEUES)

static void set_up_device(struct machine_under_test *t, struct input *input)
{
	const uint8_t how = input_u8(input);

	pci_config_set(t->function, PCI_COMMAND, 2, PCI_COMMAND_MASTER | PCI_COMMAND_MEMORY);
	set_common(t, STATUS, 1, 3);
	set_common(t, DRIVER_FEATURE_SELECT, 4, 0);
	set_common(t, DRIVER_FEATURE, 4, (how & 1 ? VIRTIO_F_INDIRECT_DESC : 0) | (how & 2 ? 1u << 9 : 0));
	set_common(t, DRIVER_FEATURE_SELECT, 4, 1);
	set_common(t, DRIVER_FEATURE, 4, 1);
	set_common(t, STATUS, 1, 3 | FEATURES_OK);
	for (unsigned i = 0; i < t->model.num_queues; i++) {
		set_common(t, QUEUE_SELECT, 2, i);
		set_common(t, QUEUE_SIZE, 2, 1u << (how >> 4) % 9);
		set_common(t, QUEUE_VECTOR, 2, i);
		set_address(t, QUEUE_DESC, RIG_RAM_BASE + DESC_AT(i));
		set_address(t, QUEUE_DRIVER, RIG_RAM_BASE + AVAIL_AT(i));
		set_address(t, QUEUE_DEVICE, RIG_RAM_BASE + USED_AT(i));
		set_common(t, QUEUE_ENABLE, 2, 1);
	}
	set_common(t, STATUS, 1, 3 | FEATURES_OK | DRIVER_OK);
}

static void write_descriptor(struct machine_under_test *t, uint32_t at, uint64_t address, uint64_t length,
			     uint64_t flags, uint64_t next)
{
	ram_write(t, at, address, 8);
	ram_write(t, at + 8, length, 4);
	ram_write(t, at + 12, flags, 2);
	ram_write(t, at + 14, next, 2);
}

static void read_descriptor(struct machine_under_test *t, struct input *input)
{
	const uint8_t how = input_u8(input), index = input_u8(input);
	const uint32_t table = how & 0x10 ? BUFFERS : DESC_AT((how >> 5) % MAX_QUEUES);
	const uint64_t address = how & 8 ? input_u64(input) : RIG_RAM_BASE + input_u16(input);
	const uint32_t length = how & 8 ? input_u32(input) : input_u16(input);

	write_descriptor(t, table + 16u * index, address, length, how & 7, input_u8(input));
}

static void offer(struct machine_under_test *t, unsigned q, unsigned head)
{
	const uint64_t index = get(t->model.ram + AVAIL_AT(q) + 2, 2);
	struct setup setup;

	get_setup(t, q, &setup);
	ram_write(t, AVAIL_AT(q) + 4 + 2 * (uint32_t)(setup.size ? index % setup.size : 0), head, 2);
	ram_write(t, AVAIL_AT(q) + 2, index + 1, 2);
}

/* A request as drivers make them: header, data, status. */
static void make_request(struct machine_under_test *t, struct input *input)
{
	const uint8_t how = input_u8(input), type = input_u8(input), sector = input_u8(input);
	const uint32_t length = input_u16(input), q = (how >> 6) % MAX_QUEUES, desc = DESC_AT(q);
	const uint32_t to_device = type & 1 ? 0 : DESC_F_WRITE;

	put(t->ram.host + BUFFERS, type, 4);
	put(t->model.ram + BUFFERS, type, 4);
	ram_write(t, BUFFERS + 8, sector, 8);
	write_descriptor(t, desc, RIG_RAM_BASE + BUFFERS, 16, DESC_F_NEXT, 1);
	write_descriptor(t, desc + 16, RIG_RAM_BASE + BUFFERS + 0x400 + (how & 31), length, DESC_F_NEXT | to_device, 2);
	write_descriptor(t, desc + 32, RIG_RAM_BASE + BUFFERS + 32, 1, DESC_F_WRITE, 0);
	offer(t, q, how & 32 ? 1 : 0);
	registers_write(t, NOTIFY + 4 * q, 2, 0);
}

/* ---- Saving and loading ------------------------------------------------------------------------------- */

/* What the model needs to know of an image: it is taken by the device, or the device is reset. */
static void model_load(struct machine_under_test *t, const uint8_t *data, size_t size)
{
	struct model *m = &t->model;
	const uint8_t *queues = data + size - m->num_queues * SAVED_QUEUE, *tail = queues - SAVED_TAIL;
	bool stopped = tail[2];

	m->isr = tail[1];
	for (unsigned i = 0; i < m->num_queues; i++) {
		const uint8_t *queue = queues + i * SAVED_QUEUE;

		m->next_avail[i] = (uint16_t)get(queue + 32, 2);
		m->next_used[i] = (uint16_t)get(queue + 34, 2);
		stopped = stopped || (queue[29] && queue[36]);
	}
	m->stopped = stopped;
	m->indirect = features_have_indirect(t);
	for (unsigned i = 0; i < m->num_queues; i++) {
		const uint8_t *queue = queues + i * SAVED_QUEUE;
		struct setup q;

		get_setup(t, i, &q);
		if (queue[29])
			model_serve(m, i, &q, (uint16_t)get(queue + 30, 2));
	}
}

/*
 * Is it a state that the device can come into? Another image may be taken, and does no harm; but the model cannot tell
 * what such a device does.
 */
static bool is_consistent(const struct machine_under_test *t, const uint8_t *data, size_t size)
{
	const uint8_t *queues = data + size - t->model.num_queues * SAVED_QUEUE, *tail = queues - SAVED_TAIL;
	const bool failed = tail[2];

	for (unsigned i = 0; i < t->model.num_queues; i++) {
		const uint8_t *queue = queues + i * SAVED_QUEUE;
		const bool waits = get(queue + 30, 2) != get(queue + 32, 2);

		if (failed ? queue[29] && !queue[36] && waits : queue[36])
			return false;
	}
	return !(tail[0] & NEEDS_RESET) == !failed && (tail[0] || !tail[1]);
}

/* Loaded as it was, it is the same again. */
static void check_saved_again(struct machine_under_test *t, const struct snapshot_out *before)
{
	struct snapshot_out out = { 0 };

	virtio_pci_save(t->pci, &out);
	check(out.err == 0 && out.size == before->size && memcmp(out.data, before->data, out.size) == 0);
	free(out.data);
}

static void reset_all(struct machine_under_test *t)
{
	virtio_pci_reset(t->pci);
	model_reset(&t->model);
}

static void save_and_load(struct machine_under_test *t, struct input *input)
{
	const unsigned num_changes = input_u8(input) % 4;
	const struct snapshot_file file = { .path = "fuzz" };
	const struct snapshot_section section = { .tag = "PCI" };
	struct snapshot_in in = { .file = &file, .section = &section };
	struct snapshot_out out = { 0 };

	virtio_pci_pause(t->pci);
	virtio_pci_save(t->pci, &out);
	check(out.err == 0);
	for (unsigned i = 0; i < num_changes; i++) {
		const size_t where = input_u16(input);

		/* Nearly all of it is configuration space: most of the changes go behind that. */
		out.data[where < 0x8000 ? out.size - 1 - where % 256 : where % out.size] = input_u8(input);
	}
	in.at = out.data;
	in.left = out.size;
	virtio_pci_reset(t->pci);
	virtio_pci_load(t->pci, &in);
	if (snapshot_in_end(&in)) {
		reset_all(t);
	} else if (!is_consistent(t, out.data, out.size)) {
		virtio_pci_resume(t->pci);
		memcpy(t->model.ram, t->ram.host, RAM_SIZE);
		check(pread(disk_fd, t->model.disk, DISK_SIZE, 0) == DISK_SIZE);
		reset_all(t);
		reset_all(t);
	} else {
		if (!num_changes)
			check_saved_again(t, &out);
		t->status = common(t, STATUS, 1);
		model_load(t, out.data, out.size);
		virtio_pci_resume(t->pci);
	}
	free(out.data);
}

/* ---- Steps ------------------------------------------------------------------------------------------------ */

/* Where the window is in configuration space, and whether a write to it would notify. */
static bool is_notify_by_window(struct machine_under_test *t, unsigned offset, unsigned width, unsigned *queue)
{
	unsigned at = pci_config_get(t->function, PCI_CAPABILITIES, 1), bar, length;
	uint32_t where;

	while (at && !(pci_config_get(t->function, at, 1) == 9 && pci_config_get(t->function, at + 3, 1) == 5))
		at = pci_config_get(t->function, at + 1, 1);
	if (!at || offset >= at + 20 || offset + width <= at + 16)
		return false;
	bar = pci_config_get(t->function, at + 4, 1);
	where = pci_config_get(t->function, at + 8, 4);
	length = pci_config_get(t->function, at + 12, 4);
	*queue = (where - NOTIFY) / 4;
	return bar == REGISTERS && where >= NOTIFY && where < 0x4000 && where % 4 == 0 &&
	       (length == 1 || length == 2 || length == 4);
}

static void config_write(struct machine_under_test *t, unsigned offset, unsigned width, uint32_t value)
{
	unsigned queue;

	if (is_notify_by_window(t, offset, width, &queue))
		model_notify(t, queue);
	rig_config_write(&rig, SLOT, offset, width, value);
}

static bool bar_has(struct machine_under_test *t, uint64_t address)
{
	const uint32_t base = pci_config_get(t->function, PCI_BAR0, 4) & ~0xfu;

	return address - base < 0x4000 || address + 8 - base < 0x4000;
}

/* An access by address; one that might notify is left to registers_write(). */
static void window_access(struct machine_under_test *t, struct input *input)
{
	const uint8_t how = input_u8(input);
	const uint64_t address = PCI_WINDOW_BASE + (how & 0x80 ? input_u32(input) : input_u16(input));
	const unsigned width = 1u << (how & 3);

	if (address >= PCI_WINDOW_BASE + PCI_WINDOW_SIZE - 8 || bar_has(t, address))
		return;
	if (how & 4)
		pci_window_write(&rig.host, address - PCI_WINDOW_BASE, width, input_u64(input));
	else
		pci_window_read(&rig.host, address - PCI_WINDOW_BASE, width);
}

static void read_isr(struct machine_under_test *t)
{
	check(bar_read(t, REGISTERS, ISR, 1) == t->model.isr);
	t->model.isr = 0;
}

static void make_step(struct machine_under_test *t, struct input *input)
{
	static const uint8_t fields[] = { 0, 8, 12, 16, 20, 22, 24, 26, 28, 32, 36, 40, 44, 48, 52 };
	static const uint8_t widths[] = { 4, 4, 4, 2, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4 };
	const uint8_t step = input_u8(input);
	const unsigned width = 1u << (step >> 6) % 3;
	uint32_t where;

	switch (step % 16) {
	case 0:
		registers_write(t, NOTIFY + 4 * (step >> 4) % 4, width, 0);
		break;
	case 1:
		where = input_u16(input);
		ram_write(t, where % RAM_SIZE, input_u32(input), width);
		break;
	case 2:
		read_descriptor(t, input);
		break;
	case 3:
		offer(t, (step >> 4) % MAX_QUEUES, input_u8(input));
		break;
	case 4:
		where = input_u8(input) % (unsigned)sizeof(fields);
		set_common(t, fields[where], widths[where], input_u32(input));
		break;
	case 5:
		where = input_u16(input) % 0x4000;
		registers_write(t, where, width, input_u32(input));
		break;
	case 6:
		where = input_u16(input) % 0x4000;
		if (where != ISR)
			bar_read(t, REGISTERS, where, width);
		break;
	case 7:
		where = input_u16(input) % 4096;
		config_write(t, where, width, input_u32(input));
		break;
	case 8:
		/* Reading through the window could read the ISR. */
		where = input_u8(input) % 0x40;
		rig_config_read(&rig, SLOT, where, width);
		break;
	case 9:
		where = input_u16(input) % 0x1000;
		if (step & 0x10)
			pci_bar_write(t->function, TABLE, where & ~3u, 4, input_u32(input));
		else
			bar_read(t, TABLE, where, width);
		break;
	case 10:
		window_access(t, input);
		break;
	case 11:
		set_up_device(t, input);
		break;
	case 12:
		if (step & 0x10)
			reset_all(t);
		else
			set_common(t, STATUS, 1, 0);
		break;
	case 13:
		save_and_load(t, input);
		break;
	case 14:
		make_request(t, input);
		break;
	default:
		read_isr(t);
		break;
	}
}

/* What the step has done to the status is seen there; the model follows. */
static void step_and_check(struct machine_under_test *t, struct input *input)
{
	uint32_t after;

	t->status = common(t, STATUS, 1);
	make_step(t, input);
	after = common(t, STATUS, 1);
	if (after == 0)
		model_reset(&t->model);
	if (after & ~t->status & NEEDS_RESET) {
		t->model.stopped = true;
		/* Before DRIVER_OK the driver looks at the status by itself. */
		if (t->status & DRIVER_OK)
			t->model.isr |= 2;
	}
	check(!t->model.stopped || (after & NEEDS_RESET));
	check(memcmp(t->ram.host, t->model.ram, RAM_SIZE) == 0);
}

/* ---- The beginning and the end ------------------------------------------------------------------------------- */

static void start_rig(void)
{
	rig_start(&rig);
	disk_fd = memfd_create("disk", 0);
	check(disk_fd >= 0);
	snprintf(disk_path, sizeof(disk_path), "/proc/self/fd/%d", disk_fd);
}

static void check_disk(const struct model *m)
{
	static uint8_t disk[DISK_SIZE];

	check(pread(disk_fd, disk, DISK_SIZE, 0) == DISK_SIZE);
	check(memcmp(disk, m->disk, DISK_SIZE) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct machine_under_test t;
	struct virtio_blk_config config = { 0 };
	struct virtio_device *device;
	struct input input = { data, size };
	const uint8_t how = input_u8(&input);

	if (!rig.vgic)
		start_rig();
	pci_host_init(&rig.host, NULL, rig.routes, rig.irqfds);
	memset(&t.model, 0, sizeof(t.model));
	for (unsigned i = 0; i < DISK_SIZE; i++)
		t.model.disk[i] = (uint8_t)(i / SECTOR * 16 + i % 7);
	check(pwrite(disk_fd, t.model.disk, DISK_SIZE, 0) == DISK_SIZE);
	t.ram = (struct guest_ram){ .host = calloc(1, RAM_SIZE), .base = RIG_RAM_BASE, .size = RAM_SIZE };
	t.model.num_queues = 1 + how % MAX_QUEUES;
	t.model.read_only = how & 0x80;
	config.path = disk_path;
	config.queues = t.model.num_queues;
	config.read_only = t.model.read_only;
	check(virtio_blk_create(&config, &t.ram, &device) == 0);
	check(virtio_pci_create(&rig.host, device, &t.pci) == 0);
	t.function = rig.host.slots[SLOT];
	for (unsigned i = 0; i < MAX_STEPS && !input_is_empty(&input); i++)
		step_and_check(&t, &input);
	check_disk(&t.model);
	virtio_pci_destroy(t.pci);
	free(t.ram.host);
	return 0;
}
