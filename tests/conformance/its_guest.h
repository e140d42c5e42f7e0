/* SPDX-License-Identifier: MIT */
/*
 * The guest side of LPIs for the conformance tests: guest memory with tables and
 * command queues in it, and a machine whose redistributors and ITSes a kernel
 * would call set up.
 *
 * Guest memory is one piece, shared by all of a program's machines, one at a time.
 * It counts accesses, can fail each of them, and remembers what was written.
 */
#ifndef TESTS_ITS_GUEST_H
#define TESTS_ITS_GUEST_H

#include "machine.h"

#include <its_arch.h>

#define RAM_BASE 0x40000000ull
#define RAM_SIZE 0x4000000ull

/* Where things are. Each ITS has its own queue and tables, each vCPU (up to 16) its own pending table. */
#define PROPERTY_TABLE      (RAM_BASE + 0x100000)
#define PENDING_TABLE(v)    (RAM_BASE + 0x200000 + 0x20000ull * (v))
#define QUEUE(i)            (RAM_BASE + 0x800000 + 0x100000ull * (i))
#define DEVICE_TABLE(i)     (RAM_BASE + 0xc00000 + 0x100000ull * (i))
#define LEVEL2_TABLE(n)     (RAM_BASE + 0x1000000 + GITS_TABLE_PAGE * (n))
#define COLLECTION_TABLE(i) (RAM_BASE + 0x1400000 + 0x100000ull * (i))
#define ITT(n)              (RAM_BASE + 0x2000000 + 0x80000ull * (n))

#define ITS_BASE(i) (0x09000000ull + 0x20000ull * (i))

/* ---- Guest memory ---- */

struct ram_write {
	uint64_t address;
	size_t size;
};

struct ram {
	uint8_t *bytes;
	uint64_t num_reads;
	uint64_t num_writes;
	uint64_t num_oversized; /* accesses that cross a 4 KiB page: there may be none */
	uint64_t fail_read;     /* the read of this number (from 1) fails, and... */
	uint64_t fail_reads_to; /* ...all up to this one; 0: none */
	bool fail_writes;
	uint64_t hole, hole_end; /* there is no memory in between */
	struct ram_write writes[64];
	unsigned num_kept; /* of the writes */
};

extern struct ram ram;

uint8_t ram_byte(uint64_t address);
void ram_set_byte(uint64_t address, uint8_t value);
uint64_t ram_u64(uint64_t address);
void ram_set_u64(uint64_t address, uint64_t value);
void ram_fill(uint64_t address, uint8_t value, size_t size);

/* The bit of an LPI in a vCPU's pending table. */
bool table_pending(uint32_t vcpu, uint32_t lpi);
void table_set_pending(uint32_t vcpu, uint32_t lpi);
/* The byte of an LPI in the configuration table. */
void set_property(uint32_t lpi, uint8_t property);

/* ---- Machines ---- */

/* A description with LPIs and guest memory that is all zeros. The ITSes may be changed before the start. */
struct machine *its_describe(uint32_t num_vcpus, uint32_t num_itses);
extern struct vgic_its_config its_configs[4];

/*
 * As a kernel leaves it: groups and CPU interfaces open, all LPIs enabled with priority 0xa0, EnableLPIs set, each ITS
 * with a queue of one page, flat tables of one 64K page, and enabled. Nothing is mapped.
 */
struct machine *its_boot(uint32_t num_vcpus, uint32_t num_itses);
/* Two vCPUs with one ITS; collections 0 and 1 at them; device 1 with 32 events, none of them mapped. */
struct machine *its_boot_device(void);
void its_set_up(struct machine *m);
void lpis_set_up(struct machine *m);
void lpis_enable(struct machine *m, uint32_t vcpu);
void its_tables_set_up(struct machine *m, uint32_t its);
/* The ITS goes off, gets a device table of two levels with @pages pages of level 1, and goes on again. */
void its_use_two_levels(struct machine *m, uint32_t its, uint32_t pages);

struct vgic_its *its_of(struct machine *m, uint32_t its);
uint64_t its_read(struct machine *m, uint32_t its, uint32_t offset, unsigned width);
void its_write(struct machine *m, uint32_t its, uint32_t offset, unsigned width, uint64_t value);
struct vgic_its_stats its_stats(struct machine *m, uint32_t its);
uint64_t its_errors(struct machine *m, uint32_t its, enum vgic_its_error error);
uint64_t its_all_errors(struct machine *m, uint32_t its);

/* ---- Commands: place one, run it to its end, or only queue it ---- */

struct its_cmd {
	uint64_t dw[4];
};

struct its_cmd cmd_mapd(uint32_t device, unsigned size, uint64_t itt, bool valid);
struct its_cmd cmd_mapc(uint32_t icid, uint64_t rdbase, bool valid);
struct its_cmd cmd_mapti(uint32_t device, uint32_t event, uint32_t lpi, uint32_t icid);
struct its_cmd cmd_mapi(uint32_t device, uint32_t event, uint32_t icid);
struct its_cmd cmd_movi(uint32_t device, uint32_t event, uint32_t icid);
struct its_cmd cmd_event(unsigned opcode, uint32_t device, uint32_t event); /* INT, CLEAR, INV, DISCARD */
struct its_cmd cmd_invall(uint32_t icid);
struct its_cmd cmd_movall(uint64_t from, uint64_t to);
struct its_cmd cmd_sync(uint64_t rdbase);

/* Write a command into the queue without moving CWRITER. */
void its_place(struct machine *m, uint32_t its, struct its_cmd cmd);
/* Move CWRITER to behind what was placed. */
void its_submit(struct machine *m, uint32_t its);
/* Both, then wait for CREADR. */
void its_run(struct machine *m, uint32_t its, struct its_cmd cmd);
/* The same, and exactly this one error is counted. */
void its_run_wrong(struct machine *m, uint32_t its, struct its_cmd cmd, enum vgic_its_error error);
/* Let the host do all the work that is left. */
void finish_work(struct machine *m);

/* The usual ones, each run to its end without an error. ITS 0. */
void map_device(struct machine *m, uint32_t device, unsigned event_bits);
void map_collection(struct machine *m, uint32_t icid, uint32_t vcpu_index);
void map_event(struct machine *m, uint32_t device, uint32_t event, uint32_t lpi, uint32_t icid);

/* ---- Interrupts ---- */

/* The device's signal, by ITS 0. */
int msi(struct machine *m, uint32_t device, uint32_t event);
/* Acknowledge and end one LPI: NO_INTERRUPT if there is none. */
uint32_t take(struct machine *m, uint32_t vcpu);
/* Exactly this LPI is signalled at this vCPU, and nothing after it, nor at any other vCPU. */
void expect_only(struct machine *m, uint32_t vcpu, uint32_t lpi);
/* Nothing is signalled anywhere. */
void expect_nothing(struct machine *m);

#endif /* TESTS_ITS_GUEST_H */
