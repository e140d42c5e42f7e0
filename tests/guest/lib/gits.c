/* SPDX-License-Identifier: MIT */
/*
 * The ITS driver. The tables are ordinary memory of the program, each as large and
 * as aligned as any implementation may ask for with the few DeviceIDs used here.
 */
#include "gits.h"

#include "gic.h"
#include "tap.h"

#define GITS_CTLR    0x0000u
#define GITS_TYPER   0x0008u
#define GITS_CBASER  0x0080u
#define GITS_CWRITER 0x0088u
#define GITS_CREADR  0x0090u
#define GITS_BASER   0x0100u

#define GITS_CTLR_ENABLED   (1u << 0)
#define GITS_CTLR_QUIESCENT (1u << 31)

#define GITS_TYPER_PTA              (1ull << 19)
#define GITS_TYPER_ITT_ENTRY(t)     (((unsigned)((t) >> 4) & 0xf) + 1)
#define GITS_BASER_TYPE(b)          ((unsigned)((b) >> 56) & 7)
#define GITS_BASER_PAGE_SIZE(b)     ((unsigned)((b) >> 8) & 3)
#define GITS_BASER_TYPE_DEVICES     1u
#define GITS_BASER_TYPE_COLLECTIONS 4u
#define GITS_VALID                  (1ull << 63)

#define CMD_MOVI    0x01u
#define CMD_INT     0x03u
#define CMD_CLEAR   0x04u
#define CMD_SYNC    0x05u
#define CMD_MAPD    0x08u
#define CMD_MAPC    0x09u
#define CMD_MAPTI   0x0au
#define CMD_MAPI    0x0bu
#define CMD_INV     0x0cu
#define CMD_INVALL  0x0du
#define CMD_MOVALL  0x0eu
#define CMD_DISCARD 0x0fu

#define LPI_ID_BITS   14u
#define TABLE_SIZE    0x10000u
#define ITT_ENTRY_MAX 16u
#define EVENT_BITS    14u /* MAPI's EventIDs are INTIDs */

static _Alignas(TABLE_SIZE) uint64_t pending_tables[MAX_CPUS][TABLE_SIZE / 8];
static _Alignas(TABLE_SIZE) uint64_t device_table[TABLE_SIZE / 8];
static _Alignas(TABLE_SIZE) uint64_t collection_table[TABLE_SIZE / 8];
static _Alignas(4096) uint64_t config_table[NUM_LPIS / 8];
static _Alignas(4096) uint64_t queue[ITS_QUEUE_SLOTS][4];
static _Alignas(256) uint64_t itts[ITS_MAX_DEVICES][(1u << EVENT_BITS) * ITT_ENTRY_MAX / 8];
static volatile unsigned next_slot; /* a handler may put commands into the queue while another is waited for */

static void fill(uint64_t *table, size_t bytes, uint64_t value)
{
	for (size_t i = 0; i < bytes / 8; i++)
		table[i] = value;
}

bool its_is_present(void)
{
	return machine.has_its && gicd_read(GICD_TYPER) & GICD_TYPER_LPIS;
}

static uintptr_t gits(uint32_t offset)
{
	return machine.its_base + offset;
}

void its_enable(bool enable)
{
	mmio_write32(gits(GITS_CTLR), enable ? GITS_CTLR_ENABLED : 0);
	dsb();
	if (!enable && !WAIT_FOR(mmio_read32(gits(GITS_CTLR)) & GITS_CTLR_QUIESCENT))
		tap_bail_out("GITS_CTLR.Quiescent stays clear");
}

/* ---- LPIs ------------------------------------------------------------------------ */

void lpi_configure(uint32_t lpi, unsigned priority, bool enable)
{
	((volatile uint8_t *)config_table)[lpi - LPI_FIRST] = (uint8_t)((priority & 0xfc) | 2u | enable);
	dsb();
}

uint8_t lpi_pending_byte(unsigned cpu, uint32_t lpi)
{
	dsb();
	return ((volatile uint8_t *)pending_tables[cpu])[lpi / 8];
}

void lpi_set_pending_in_table(unsigned cpu, uint32_t lpi)
{
	((volatile uint8_t *)pending_tables[cpu])[lpi / 8] |= (uint8_t)(1u << (lpi % 8));
	dsb();
}

void lpi_enable_at_cpu(unsigned cpu, bool enable)
{
	gicr_write(cpu, GICR_CTLR, enable ? GICR_CTLR_ENABLE_LPIS : 0);
}

static void set_up_lpis(void)
{
	fill(config_table, sizeof(config_table), (DEFAULT_PRIORITY | 2u) * 0x0101010101010101u);
	for (unsigned i = 0; i < num_cpus; i++) {
		lpi_enable_at_cpu(i, false);
		fill(pending_tables[i], NUM_LPIS * 2 / 8, 0);
		dsb();
		mmio_write64(cpus[i].redist + GICR_PROPBASER, (uintptr_t)config_table | (LPI_ID_BITS - 1));
		mmio_write64(cpus[i].redist + GICR_PENDBASER, (uintptr_t)pending_tables[i]);
		lpi_enable_at_cpu(i, true);
	}
}

/* ---- The queue -------------------------------------------------------------------- */

static void put(uint64_t dw0, uint64_t dw1, uint64_t dw2, uint64_t dw3)
{
	volatile uint64_t *slot = queue[next_slot];

	slot[0] = dw0;
	slot[1] = dw1;
	slot[2] = dw2;
	slot[3] = dw3;
	next_slot = (next_slot + 1) % ITS_QUEUE_SLOTS;
}

/* Give the ITS what was put into the queue. */
static void run_queue(void)
{
	dsb();
	mmio_write64(gits(GITS_CWRITER), next_slot * 32u);
	dsb();
	if (!WAIT_FOR(mmio_read64(gits(GITS_CREADR)) == next_slot * 32u))
		tap_bail_out("GITS_CREADR does not reach GITS_CWRITER");
}

static void run_command(uint64_t dw0, uint64_t dw1, uint64_t dw2, uint64_t dw3)
{
	put(dw0, dw1, dw2, dw3);
	run_queue();
}

static uint64_t device_command(unsigned command, uint32_t device)
{
	return command | (uint64_t)device << 32;
}

static uint64_t rdbase(unsigned cpu)
{
	if (mmio_read64(gits(GITS_TYPER)) & GITS_TYPER_PTA)
		return cpus[cpu].redist;
	return (uint64_t)GICR_TYPER_PROCESSOR(gicr_typer(cpu)) << 16;
}

/* A new ITT starts empty, as far as the tests use it. */
void its_mapd(uint32_t device, bool valid)
{
	if (valid)
		fill(itts[device], ITS_MAX_EVENTS * ITT_ENTRY_MAX, 0);
	run_command(device_command(CMD_MAPD, device), EVENT_BITS - 1,
		    (valid ? GITS_VALID : 0) | (uintptr_t)itts[device], 0);
}

void its_mapc(uint32_t collection, unsigned cpu, bool valid)
{
	run_command(CMD_MAPC, 0, (valid ? GITS_VALID : 0) | rdbase(cpu) | collection, 0);
}

void its_mapti(uint32_t device, uint32_t event, uint32_t lpi, uint32_t collection)
{
	run_command(device_command(CMD_MAPTI, device), event | (uint64_t)lpi << 32, collection, 0);
}

void its_mapi(uint32_t device, uint32_t lpi, uint32_t collection)
{
	run_command(device_command(CMD_MAPI, device), lpi, collection, 0);
}

void its_movi(uint32_t device, uint32_t event, uint32_t collection)
{
	run_command(device_command(CMD_MOVI, device), event, collection, 0);
}

void its_movall(unsigned from, unsigned to)
{
	run_command(CMD_MOVALL, 0, rdbase(from), rdbase(to));
}

void its_discard(uint32_t device, uint32_t event)
{
	run_command(device_command(CMD_DISCARD, device), event, 0, 0);
}

void its_int(uint32_t device, uint32_t event)
{
	run_command(device_command(CMD_INT, device), event, 0, 0);
}

void its_clear(uint32_t device, uint32_t event)
{
	run_command(device_command(CMD_CLEAR, device), event, 0, 0);
}

void its_inv(uint32_t device, uint32_t event)
{
	run_command(device_command(CMD_INV, device), event, 0, 0);
}

void its_invall(uint32_t collection)
{
	run_command(CMD_INVALL, 0, collection, 0);
}

void its_sync(unsigned cpu)
{
	run_command(CMD_SYNC, 0, rdbase(cpu), 0);
}

void its_int_batch(uint32_t device, uint32_t first_event, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		put(device_command(CMD_INT, device), first_event + i, 0, 0);
	run_queue();
}

/* ---- The whole ---------------------------------------------------------------------- */

/* The page size may be fixed: all the sizes divide the table. */
static void set_table(uintptr_t baser, uint64_t *table)
{
	static const unsigned pages[] = { 16, 4, 1, 1 };

	fill(table, TABLE_SIZE, 0);
	mmio_write64(baser, (uintptr_t)table);
	mmio_write64(baser, GITS_VALID | (uintptr_t)table | GITS_BASER_PAGE_SIZE(mmio_read64(baser)) << 8 |
				    (pages[GITS_BASER_PAGE_SIZE(mmio_read64(baser))] - 1));
}

void its_set_up(void)
{
	its_enable(false);
	if (GITS_TYPER_ITT_ENTRY(mmio_read64(gits(GITS_TYPER))) > ITT_ENTRY_MAX)
		tap_bail_out("entries of an ITT are larger than these tests have room for");
	set_up_lpis();
	for (uintptr_t baser = gits(GITS_BASER); baser < gits(GITS_BASER) + 8 * 8; baser += 8) {
		if (GITS_BASER_TYPE(mmio_read64(baser)) == GITS_BASER_TYPE_DEVICES)
			set_table(baser, device_table);
		if (GITS_BASER_TYPE(mmio_read64(baser)) == GITS_BASER_TYPE_COLLECTIONS)
			set_table(baser, collection_table);
	}
	mmio_write64(gits(GITS_CBASER), GITS_VALID | (uintptr_t)queue); /* clears GITS_CREADR */
	mmio_write64(gits(GITS_CWRITER), 0);
	next_slot = 0;
	dsb();
	its_enable(true);
	for (unsigned i = 0; i < num_cpus; i++)
		its_mapc(i, i, true);
}
