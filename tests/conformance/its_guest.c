/* SPDX-License-Identifier: MIT */
/*
 * The guest side of LPIs for the conformance tests: see its_guest.h.
 */
#include "its_guest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct ram ram;
struct vgic_its_config its_configs[4];

/* Where each ITS's next command goes. */
static uint64_t queue_at[4];

/* ---- Guest memory ------------------------------------------------------------------------- */

static void ram_start(void)
{
	uint8_t *bytes = ram.bytes;

	if (bytes)
		munmap(bytes, RAM_SIZE);
	bytes = mmap(NULL, RAM_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(bytes, MAP_FAILED);
	ram = (struct ram){ .bytes = bytes };
}

static bool ram_has(uint64_t address, size_t size)
{
	if (address < RAM_BASE || size > RAM_SIZE || address - RAM_BASE > RAM_SIZE - size)
		return false;
	return address + size <= ram.hole || address >= ram.hole_end;
}

static void check_page(uint64_t address, size_t size)
{
	if (size == 0 || address / 4096 != (address + size - 1) / 4096)
		ram.num_oversized++;
}

static int on_guest_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	(void)opaque;
	ram.num_reads++;
	check_page(address, size);
	if (ram.num_reads >= ram.fail_read && ram.num_reads <= ram.fail_reads_to)
		return -EFAULT;
	if (!ram_has(address, size))
		return -EFAULT;
	memcpy(buffer, ram.bytes + (address - RAM_BASE), size);
	return 0;
}

static int on_guest_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	(void)opaque;
	ram.num_writes++;
	check_page(address, size);
	if (ram.fail_writes || !ram_has(address, size))
		return -EFAULT;
	if (ram.num_kept < sizeof(ram.writes) / sizeof(ram.writes[0]))
		ram.writes[ram.num_kept++] = (struct ram_write){ address, size };
	memcpy(ram.bytes + (address - RAM_BASE), buffer, size);
	return 0;
}

uint8_t ram_byte(uint64_t address)
{
	return ram.bytes[address - RAM_BASE];
}

void ram_set_byte(uint64_t address, uint8_t value)
{
	ram.bytes[address - RAM_BASE] = value;
}

uint64_t ram_u64(uint64_t address)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < 8; i++)
		value |= (uint64_t)ram_byte(address + i) << (8 * i);
	return value;
}

void ram_set_u64(uint64_t address, uint64_t value)
{
	for (unsigned i = 0; i < 8; i++)
		ram_set_byte(address + i, (uint8_t)(value >> (8 * i)));
}

void ram_fill(uint64_t address, uint8_t value, size_t size)
{
	memset(ram.bytes + (address - RAM_BASE), value, size);
}

bool table_pending(uint32_t vcpu, uint32_t lpi)
{
	return ram_byte(PENDING_TABLE(vcpu) + lpi / 8) >> (lpi % 8) & 1;
}

void table_set_pending(uint32_t vcpu, uint32_t lpi)
{
	ram_set_byte(PENDING_TABLE(vcpu) + lpi / 8,
		     (uint8_t)(ram_byte(PENDING_TABLE(vcpu) + lpi / 8) | 1u << (lpi % 8)));
}

void set_property(uint32_t lpi, uint8_t property)
{
	ram_set_byte(PROPERTY_TABLE + lpi - GIC_FIRST_LPI, property);
}

/* ---- Machines ------------------------------------------------------------------------------- */

struct machine *its_describe(uint32_t num_vcpus, uint32_t num_itses)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, num_vcpus);

	ram_start();
	memset(its_configs, 0, sizeof(its_configs));
	for (uint32_t i = 0; i < num_itses; i++) {
		its_configs[i].has_base = true;
		its_configs[i].base = ITS_BASE(i);
		queue_at[i] = 0;
	}
	m->config.features |= VGIC_FEATURE_LPIS;
	m->config.num_itses = num_itses;
	m->config.itses = num_itses ? its_configs : NULL;
	m->config.ops.guest_read = on_guest_read;
	m->config.ops.guest_write = on_guest_write;
	return m;
}

void lpis_enable(struct machine *m, uint32_t vcpu)
{
	redist_write(m, vcpu, GICR_CTLR, GICR_CTLR_ENABLE_LPIS);
	finish_work(m);
}

/* The configuration table, PROPBASER and PENDBASER; LPIs stay disabled. */
static void lpi_tables_set_up(struct machine *m)
{
	ram_fill(PROPERTY_TABLE, 0xa0 | LPI_ENABLED, (1ull << m->config.lpi_id_bits) - GIC_FIRST_LPI);
	for (uint32_t v = 0; v < m->config.num_vcpus; v++) {
		redist_write_width(m, v, GICR_PROPBASER, 8, PROPERTY_TABLE | (m->config.lpi_id_bits - 1));
		redist_write_width(m, v, GICR_PENDBASER, 8, PENDING_TABLE(v) | GICR_PENDBASER_PTZ);
	}
}

void lpis_set_up(struct machine *m)
{
	machine_open_switches(m);
	lpi_tables_set_up(m);
	for (uint32_t v = 0; v < m->config.num_vcpus; v++)
		lpis_enable(m, v);
}

void its_tables_set_up(struct machine *m, uint32_t its)
{
	its_write(m, its, GITS_CBASER, 8, GITS_CBASER_VALID | QUEUE(its));
	its_write(m, its, GITS_BASER0, 8, GITS_BASER_VALID | DEVICE_TABLE(its));
	its_write(m, its, GITS_BASER1, 8, GITS_BASER_VALID | COLLECTION_TABLE(its));
	queue_at[its] = 0;
}

void its_set_up(struct machine *m)
{
	lpis_set_up(m);
	for (uint32_t i = 0; i < m->config.num_itses; i++) {
		its_tables_set_up(m, i);
		its_write(m, i, GITS_CTLR, 4, GITS_CTLR_ENABLED);
		assert_int_equal(its_read(m, i, GITS_CTLR, 4), GITS_CTLR_ENABLED);
	}
}

struct machine *its_boot(uint32_t num_vcpus, uint32_t num_itses)
{
	struct machine *m = machine_start(its_describe(num_vcpus, num_itses));

	its_set_up(m);
	return m;
}

struct vgic_its *its_of(struct machine *m, uint32_t its)
{
	struct vgic_its *found = vgic_its_by_index(m->vgic, its);

	assert_non_null(found);
	return found;
}

uint64_t its_read(struct machine *m, uint32_t its, uint32_t offset, unsigned width)
{
	uint64_t value = ~0ull;

	assert_int_equal(vgic_its_read(its_of(m, its), offset, width, &value), 0);
	return value;
}

void its_write(struct machine *m, uint32_t its, uint32_t offset, unsigned width, uint64_t value)
{
	assert_int_equal(vgic_its_write(its_of(m, its), offset, width, value), 0);
}

struct vgic_its_stats its_stats(struct machine *m, uint32_t its)
{
	struct vgic_its_stats stats = { .size = sizeof(stats) };

	assert_int_equal(vgic_its_get_stats(its_of(m, its), &stats), 0);
	return stats;
}

uint64_t its_errors(struct machine *m, uint32_t its, enum vgic_its_error error)
{
	return its_stats(m, its).errors[error];
}

uint64_t its_all_errors(struct machine *m, uint32_t its)
{
	const struct vgic_its_stats stats = its_stats(m, its);
	uint64_t sum = 0;

	for (unsigned i = 0; i < VGIC_NUM_ITS_ERRORS; i++)
		sum += stats.errors[i];
	return sum;
}

/* ---- Commands ---------------------------------------------------------------------------------- */

struct its_cmd cmd_mapd(uint32_t device, unsigned size, uint64_t itt, bool valid)
{
	return (struct its_cmd){ { ITS_CMD_MAPD | (uint64_t)device << 32, size, itt | (valid ? ITS_CMD_VALID : 0),
				   0 } };
}

struct its_cmd cmd_mapc(uint32_t icid, uint64_t rdbase, bool valid)
{
	return (struct its_cmd){ { ITS_CMD_MAPC, 0, icid | rdbase << 16 | (valid ? ITS_CMD_VALID : 0), 0 } };
}

struct its_cmd cmd_mapti(uint32_t device, uint32_t event, uint32_t lpi, uint32_t icid)
{
	return (struct its_cmd){ { ITS_CMD_MAPTI | (uint64_t)device << 32, event | (uint64_t)lpi << 32, icid, 0 } };
}

struct its_cmd cmd_mapi(uint32_t device, uint32_t event, uint32_t icid)
{
	return (struct its_cmd){ { ITS_CMD_MAPI | (uint64_t)device << 32, event, icid, 0 } };
}

struct its_cmd cmd_movi(uint32_t device, uint32_t event, uint32_t icid)
{
	return (struct its_cmd){ { ITS_CMD_MOVI | (uint64_t)device << 32, event, icid, 0 } };
}

struct its_cmd cmd_event(unsigned opcode, uint32_t device, uint32_t event)
{
	return (struct its_cmd){ { opcode | (uint64_t)device << 32, event, 0, 0 } };
}

struct its_cmd cmd_invall(uint32_t icid)
{
	return (struct its_cmd){ { ITS_CMD_INVALL, 0, icid, 0 } };
}

struct its_cmd cmd_movall(uint64_t from, uint64_t to)
{
	return (struct its_cmd){ { ITS_CMD_MOVALL, 0, from << 16, to << 16 } };
}

struct its_cmd cmd_sync(uint64_t rdbase)
{
	return (struct its_cmd){ { ITS_CMD_SYNC, 0, rdbase << 16, 0 } };
}

static uint64_t queue_size(struct machine *m, uint32_t its)
{
	return ((its_read(m, its, GITS_CBASER, 8) & 0xff) + 1) * GITS_QUEUE_PAGE;
}

void its_place(struct machine *m, uint32_t its, struct its_cmd cmd)
{
	for (unsigned i = 0; i < 4; i++)
		ram_set_u64(QUEUE(its) + queue_at[its] + 8 * i, cmd.dw[i]);
	queue_at[its] = (queue_at[its] + ITS_CMD_SIZE) % queue_size(m, its);
}

void its_submit(struct machine *m, uint32_t its)
{
	its_write(m, its, GITS_CWRITER, 8, queue_at[its]);
}

void its_run(struct machine *m, uint32_t its, struct its_cmd cmd)
{
	its_place(m, its, cmd);
	its_submit(m, its);
	for (int polls = 0; its_read(m, its, GITS_CREADR, 8) != queue_at[its]; polls++)
		assert_true(polls < 1000);
}

void its_run_wrong(struct machine *m, uint32_t its, struct its_cmd cmd, enum vgic_its_error error)
{
	const struct vgic_its_stats before = its_stats(m, its);
	const uint64_t reported = errors_of(m, VGIC_GUEST_ITS_COMMAND);
	struct vgic_its_stats after;

	its_run(m, its, cmd);
	after = its_stats(m, its);
	for (unsigned i = 0; i < VGIC_NUM_ITS_ERRORS; i++)
		assert_int_equal(after.errors[i], before.errors[i] + (i == (unsigned)error));
	assert_int_equal(after.commands, before.commands + 1);
	assert_int_equal(errors_of(m, VGIC_GUEST_ITS_COMMAND), reported + 1);
	assert_int_equal(after.num_devices, before.num_devices);
	assert_int_equal(after.num_translations, before.num_translations);
}

void finish_work(struct machine *m)
{
	for (int parts = 0; vgic_run_work(m->vgic) != 0; parts++)
		assert_true(parts < 10000);
}

static void run_right(struct machine *m, struct its_cmd cmd)
{
	const uint64_t errors = its_all_errors(m, 0);

	its_run(m, 0, cmd);
	assert_int_equal(its_all_errors(m, 0), errors);
}

void map_device(struct machine *m, uint32_t device, unsigned event_bits)
{
	run_right(m, cmd_mapd(device, event_bits - 1, ITT(device % 64), true));
}

void map_collection(struct machine *m, uint32_t icid, uint32_t vcpu_index)
{
	run_right(m, cmd_mapc(icid, vgic_vcpu_id(vcpu_of(m, vcpu_index)), true));
}

void map_event(struct machine *m, uint32_t device, uint32_t event, uint32_t lpi, uint32_t icid)
{
	run_right(m, cmd_mapti(device, event, lpi, icid));
}

struct machine *its_boot_device(void)
{
	struct machine *m = its_boot(2, 1);

	map_collection(m, 0, 0);
	map_collection(m, 1, 1);
	map_device(m, 1, 5);
	return m;
}

void its_use_two_levels(struct machine *m, uint32_t its, uint32_t pages)
{
	its_write(m, its, GITS_CTLR, 4, 0);
	finish_work(m);
	its_write(m, its, GITS_BASER0, 8, GITS_BASER_VALID | GITS_BASER_INDIRECT | DEVICE_TABLE(its) | (pages - 1));
	its_write(m, its, GITS_CTLR, 4, GITS_CTLR_ENABLED);
}

/* ---- Interrupts ---------------------------------------------------------------------------------- */

int msi(struct machine *m, uint32_t device, uint32_t event)
{
	return vgic_its_signal(its_of(m, 0), device, event);
}

uint32_t take(struct machine *m, uint32_t vcpu)
{
	const uint32_t intid = ack1(m, vcpu);

	if (intid != NO_INTERRUPT)
		eoi1(m, vcpu, intid);
	return intid;
}

void expect_nothing(struct machine *m)
{
	for (uint32_t v = 0; v < m->config.num_vcpus; v++) {
		assert_int_equal(lines_of(m, v), 0);
		assert_int_equal(ack1(m, v), NO_INTERRUPT);
	}
}

void expect_only(struct machine *m, uint32_t vcpu, uint32_t lpi)
{
	assert_int_equal(lines_of(m, vcpu), VGIC_LINE_IRQ);
	assert_int_equal(icc_read(m, vcpu, VGIC_ICC_HPPIR1_EL1), lpi);
	for (uint32_t v = 0; v < m->config.num_vcpus; v++) {
		if (v != vcpu)
			assert_int_equal(lines_of(m, v), 0);
	}
	assert_int_equal(take(m, vcpu), lpi);
	expect_nothing(m);
}
