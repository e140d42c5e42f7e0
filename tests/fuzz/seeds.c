/* SPDX-License-Identifier: MIT */
/*
 * Makes a fuzz target's seed of what a test did: reads the record of a lockstep
 * test from standard input, and writes the same sequence as an input.
 *
 * Usage: fuzz-seeds mmio|its|its_hostile <RECORD >INPUT
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "its_format.h"
#include "mmio_format.h"
#include "pair.h"

#define MAX_RECORDS 4096u

struct record {
	char kind[32];
	uint32_t vcpu;
	uint64_t where;
	unsigned how;
	uint64_t value;
};

static struct record records[MAX_RECORDS];
static unsigned num_records;
static struct vgic_config config;
static uint32_t num_itses;
static struct vgic_vcpu_config vcpus[PAIR_MAX_VCPUS];

__attribute__((noreturn)) static void fail(const char *why)
{
	fprintf(stderr, "fuzz-seeds: %s\n", why);
	exit(1);
}

static void put_u8(unsigned byte)
{
	putchar((int)(byte & 0xff));
}

static void put_uint(uint64_t value, unsigned num_bytes)
{
	for (unsigned i = 0; i < num_bytes; i++)
		put_u8((unsigned)(value >> (8 * i)));
}

/* The shortest way to write it. */
static void put_number(uint64_t value)
{
	unsigned num_bytes = 1;

	if (value < NUMBER_BIT) {
		put_u8((unsigned)value);
		return;
	}
	if ((value & (value - 1)) == 0) {
		put_u8(NUMBER_BIT + (unsigned)__builtin_ctzll(value));
		return;
	}
	for (uint32_t i = 0; i < config.num_vcpus; i++) {
		if (value == vcpus[i].affinity) {
			put_u8(NUMBER_AFFINITY + i);
			return;
		}
	}
	if (value == UINT32_MAX || value == UINT64_MAX) {
		put_u8(value == UINT32_MAX ? NUMBER_ONES32 : NUMBER_ONES64);
		return;
	}
	while (num_bytes < 8 && value >> (8 * num_bytes) != 0)
		num_bytes++;
	put_u8(NUMBER_BYTES + num_bytes - 1);
	put_uint(value, num_bytes);
}

/* ---- mmio ---- */

static void put_width(unsigned width)
{
	for (unsigned i = 0; i < 4; i++) {
		if (width == 1u << i) {
			put_u8(i);
			return;
		}
	}
	put_u8(width + 10);
}

/* Is it the register of an interrupt? Then it is written as such, whatever the reader makes of it is the same. */
static bool put_bank(unsigned kind, const struct record *r)
{
	const bool dist = r->vcpu == PAIR_DIST;
	uint64_t offset = r->where;

	if (!dist && offset < GICR_SGI_BASE)
		return false;
	if (!dist)
		offset -= GICR_SGI_BASE;
	for (unsigned i = 0; i < MMIO_NUM_BANKS; i++) {
		const struct mmio_bank *bank = &mmio_banks[i];
		const uint64_t intid = (offset - bank->offset) * 8 / bank->bits;

		if (offset < bank->offset || bank->width != r->how || offset % r->how != 0)
			continue;
		if (intid >= (dist ? GIC_END_SPI : GIC_FIRST_SPI))
			continue;
		if (((bank->offset + intid * bank->bits / 8) & ~(bank->width - 1ull)) != offset)
			continue;
		put_u8(kind | (dist ? MMIO_DIST_FLAG : r->vcpu << 5));
		put_u8(i);
		put_number(intid);
		return true;
	}
	return false;
}

static void put_register(const struct record *r, bool write)
{
	const bool dist = r->vcpu == PAIR_DIST;

	if (write && !dist && r->where == GICR_WAKER && r->how == 4 && (r->value & ~UINT64_C(2)) == 0) {
		put_u8(MMIO_SLEEP | r->vcpu << 5 | (r->value ? MMIO_FLAG : 0));
		return;
	}
	if (!put_bank(write ? MMIO_WRITE_BANK : MMIO_READ_BANK, r)) {
		put_u8((write ? MMIO_WRITE : MMIO_READ) | (dist ? MMIO_DIST_FLAG : r->vcpu << 5));
		put_width(r->how);
		put_number(r->where);
	}
	if (write)
		put_number(r->value);
}

static void put_icc(const struct record *r, bool write)
{
	unsigned i = 0;

	put_u8((write ? MMIO_ICC_WRITE : MMIO_ICC_READ) | r->vcpu << 5);
	while (i < MMIO_NUM_ICC_REGS && mmio_icc_regs[i] != r->where)
		i++;
	put_u8(i);
	if (i == MMIO_NUM_ICC_REGS)
		put_uint(r->where, 2);
	if (write)
		put_number(r->value);
}

static void put_address(const struct record *r, bool write)
{
	const uint64_t bases[] = { config.dist_base, config.redist_regions[0].base, config.redist_regions[1].base, 0 };
	unsigned i = 0;

	while (r->where - bases[i] >= 0x200000 && i < 3)
		i++;
	put_u8(write ? MMIO_WRITE_AT : MMIO_READ_AT);
	put_width(r->how);
	put_number(r->where - bases[i]);
	put_u8(i);
	if (write)
		put_number(r->value);
}

static void put_line(unsigned kind, const struct record *r)
{
	put_u8(kind | (r->vcpu & 3) << 5 | (r->value ? MMIO_FLAG : 0));
	put_u8(r->how);
	put_number(r->where);
}

static bool is(const struct record *r, const char *kind)
{
	return strcmp(r->kind, kind) == 0;
}

static void put_mmio(const struct record *r)
{
	if (is(r, "read") || is(r, "write")) {
		put_register(r, r->kind[0] == 'w');
	} else if (is(r, "read-address") || is(r, "write-address")) {
		put_address(r, r->kind[0] == 'w');
	} else if (is(r, "icc-read") || is(r, "icc-write")) {
		put_icc(r, r->kind[4] == 'w');
	} else if (is(r, "spi")) {
		put_line(MMIO_SPI, r);
	} else if (is(r, "ppi")) {
		put_line(MMIO_PPI, r);
	} else if (is(r, "pulse")) {
		put_u8(MMIO_PULSE);
		put_number(r->where);
	} else if (is(r, "online")) {
		put_u8(MMIO_ONLINE | r->vcpu << 5 | (r->value ? MMIO_FLAG : 0));
	} else if (is(r, "vcpu-reset")) {
		put_u8(MMIO_VCPU_RESET | r->vcpu << 5);
	} else if (is(r, "reset")) {
		put_u8(MMIO_RESET);
	} else if (is(r, "move")) {
		put_u8(MMIO_MOVE);
	} else if (is(r, "compare")) {
		put_u8(MMIO_COMPARE);
	} else {
		fail("a record of a kind that the target does not know");
	}
}

/* The interrupt that a record is about; GIC_SPURIOUS if it is about none, or all. */
static uint64_t intid_of(const struct record *r)
{
	uint64_t offset = r->where;

	if (is(r, "spi") || is(r, "ppi") || is(r, "pulse"))
		return r->where;
	if (!is(r, "write"))
		return GIC_SPURIOUS;
	if (r->vcpu != PAIR_DIST)
		offset -= GICR_SGI_BASE;
	if (offset >= GICD_ISENABLER && offset < GICD_ICFGR && (r->value & (r->value - 1)) == 0 && r->how == 4)
		return (offset & 0x7f) * 8 + (r->value ? (unsigned)__builtin_ctzll(r->value) : 0);
	if (offset >= GICD_IPRIORITYR && offset < GICD_ITARGETSR && r->how == 1)
		return offset - GICD_IPRIORITYR;
	if (offset >= GICD_IROUTER && offset < GIC_ID_FIRST)
		return (offset - GICD_IROUTER) / 8;
	return GIC_SPURIOUS;
}

/*
 * The test's guest sets up all interrupts, and needs few of them: what is set up before the last write that belongs to
 * that, GICD_CTLR's, and not used after it, is left out, so that an input is short.
 */
static void put_all_mmio(void)
{
	bool is_used[GIC_SPURIOUS + 1] = { [GIC_SPURIOUS] = true };
	unsigned end = 0;

	while (end < num_records &&
	       !(is(&records[end], "write") && records[end].vcpu == PAIR_DIST && records[end].where == GICD_CTLR))
		end++;
	for (unsigned i = end; i < num_records; i++)
		is_used[intid_of(&records[i]) < GIC_SPURIOUS ? intid_of(&records[i]) : GIC_SPURIOUS] = true;
	/* SGIs are asked for by bits that intid_of() does not look at. */
	is_used[0] = is_used[1] = is_used[7] = true;
	for (unsigned i = 0; i < num_records; i++) {
		const uint64_t intid = intid_of(&records[i]);

		if (i >= end || intid > GIC_SPURIOUS || is_used[intid])
			put_mmio(&records[i]);
	}
}

static void put_mmio_config(int profile, uint32_t num_spis, uint32_t features, uint32_t revision)
{
	uint32_t spis = 0;

	if (config.num_vcpus > MMIO_MAX_VCPUS)
		fail("more vCPUs than the target has");
	while (spis < 3 && mmio_num_spis[spis] != num_spis)
		spis++;
	put_u8(mmio_config_byte(profile == VGIC_PROFILE_KVM, config.num_vcpus, spis, revision));
	/* By chance, half of them. */
	put_uint(features | (num_records % 2 ? MMIO_MIRROR : 0), 2);
	vcpus[config.num_vcpus - 1].affinity |= 0x30;
	if (features & VGIC_FEATURE_A3V)
		vcpus[config.num_vcpus - 1].affinity |= 0x200000000;
}

/* ---- its ---- */

static void put_plain(uint64_t value)
{
	unsigned num_bytes = 1;

	for (unsigned i = 0; i < sizeof(its_edges) / sizeof(its_edges[0]); i++) {
		/* The first tag of the edges that is read as this one. */
		for (unsigned tag = ITS_NUMBER_EDGES; value == its_edges[i] && tag < ITS_NUMBER_PLACES; tag++) {
			if (tag % (sizeof(its_edges) / sizeof(its_edges[0])) == i) {
				put_u8(tag);
				return;
			}
		}
	}
	if (value < ITS_NUMBER_LPI) {
		put_u8((unsigned)value);
	} else if (value >= GIC_FIRST_LPI && value < GIC_FIRST_LPI + 32) {
		put_u8(ITS_NUMBER_LPI + (unsigned)(value - GIC_FIRST_LPI));
	} else if ((value & (value - 1)) == 0 && value < 1ull << 32) {
		put_u8(ITS_NUMBER_BIT + (unsigned)__builtin_ctzll(value));
	} else {
		while (num_bytes < 8 && value >> (8 * num_bytes) != 0)
			num_bytes++;
		put_u8(ITS_NUMBER_BYTES + num_bytes - 1);
		put_uint(value, num_bytes);
	}
}

/* An address as a place and an offset, the highest place that is below. */
static void put_place(uint64_t value)
{
	unsigned best = 0;

	if (value < PROPERTY_TABLE || value >= RAM_BASE + RAM_SIZE) {
		put_plain(value);
		return;
	}
	for (unsigned i = 0; i < sizeof(its_places) / sizeof(its_places[0]); i++) {
		if (its_places[i] <= value && its_places[i] >= its_places[best])
			best = i;
	}
	put_u8(ITS_NUMBER_PLACES + best);
	put_plain(value - its_places[best]);
}

/* The four records of a command. */
static void put_command(const struct record *r, bool hostile)
{
	const uint64_t dw[4] = { r[0].value, r[1].value, r[2].value, r[3].value };
	const uint64_t dw2 = dw[2] & ~ITS_CMD_VALID;
	const unsigned opcode = dw[0] & 0xff;

	if (opcode >= ITS_COMMAND_VALID || (dw[0] & 0xffffff00) || (dw[3] && opcode != ITS_CMD_MOVALL)) {
		put_u8((hostile ? HOSTILE_RAW_QUEUE : ITS_RAW_COMMAND) | r->vcpu << 5);
		if (hostile)
			put_u8(ITS_CMD_SIZE);
		for (unsigned i = 0; i < 4; i++)
			put_uint(dw[i], 8);
		return;
	}
	put_u8((hostile ? HOSTILE_COMMANDS : ITS_COMMAND) | r->vcpu << 5);
	if (hostile)
		put_u8(0);
	put_u8(opcode | (dw[2] & ITS_CMD_VALID ? ITS_COMMAND_VALID : 0));
	put_plain(dw[0] >> 32);
	put_plain(dw[1] & UINT32_MAX);
	put_plain(dw[1] >> 32);
	switch (opcode) {
	case ITS_CMD_MAPD:
		put_place(dw2);
		break;
	case ITS_CMD_MAPC:
		put_plain(dw2 & 0xffff);
		put_plain(dw2 >> 16);
		break;
	case ITS_CMD_SYNC:
		put_plain(dw2 >> 16);
		break;
	case ITS_CMD_MOVALL:
		put_plain(dw2 >> 16);
		put_plain(dw[3] >> 16);
		break;
	default:
		put_plain(dw2);
		break;
	}
}

static void put_its_access(unsigned kind, const struct record *r, bool write)
{
	put_u8(kind | r->vcpu << 5);
	put_width(r->how);
	put_plain(r->where);
	if (write)
		put_place(r->value);
}

static void put_its(const struct record *r)
{
	if (is(r, "command")) {
		if (r->where == 0)
			put_command(r, false);
	} else if (is(r, "its-write")) {
		put_its_access(ITS_WRITE, r, true);
	} else if ((is(r, "write") || is(r, "read")) && r->vcpu != PAIR_DIST) {
		put_its_access(is(r, "write") ? ITS_REDIST_WRITE : ITS_REDIST_READ, r, is(r, "write"));
	} else if (is(r, "write") && r->where == GICD_CTLR) {
		put_u8(ITS_DIST_CTLR);
		put_u8((unsigned)r->value);
	} else if (is(r, "signal")) {
		put_u8(ITS_SIGNAL | r->vcpu << 5);
		put_plain(r->where);
		put_plain(r->value);
	} else if (is(r, "icc-write") || is(r, "icc-read")) {
		put_u8((r->kind[4] == 'w' ? ITS_ICC_WRITE : ITS_ICC_READ) | r->vcpu << 5);
		put_uint(r->where, 2);
		if (r->kind[4] == 'w')
			put_place(r->value);
	} else if (is(r, "poke")) {
		put_u8(r->how == 1 ? ITS_POKE : ITS_POKE64);
		put_place(r->where);
		if (r->how == 1)
			put_u8((unsigned)r->value);
		else
			put_place(r->value);
	} else if (is(r, "hole")) {
		put_u8(ITS_HOLE | (r->where == 0 ? ITS_FLAG : 0));
		put_place(r->where);
	} else if (is(r, "move") || is(r, "reset")) {
		put_u8(is(r, "move") ? ITS_MOVE : ITS_RESET);
	} else if (!is(r, "compare")) {
		fail("a record of a kind that the target does not know");
	}
}

/* The same sequence as the target without the reference has it: each command is submitted by itself. */
static void put_hostile(const struct record *r)
{
	if (is(r, "command")) {
		if (r->where == 0)
			put_command(r, true);
	} else if (is(r, "its-write")) {
		if (r->where != GITS_CWRITER)
			put_its_access(HOSTILE_ITS_WRITE | ITS_FLAG, r, true);
	} else if (is(r, "write") && r->vcpu != PAIR_DIST) {
		put_its_access(HOSTILE_REDIST, r, true);
	} else if (is(r, "signal")) {
		put_u8(HOSTILE_SIGNAL | r->vcpu << 5);
		put_plain(r->where);
		put_plain(r->value);
	} else if (is(r, "icc-read") && r->where == VGIC_ICC_IAR1_EL1) {
		put_u8(HOSTILE_TAKE | r->vcpu << 5);
	} else if (is(r, "poke") && r->how == 8) {
		put_u8(HOSTILE_POKE64);
		put_place(r->where);
		put_place(r->value);
	} else if (is(r, "poke")) {
		put_u8(HOSTILE_FILL);
		put_place(r->where);
		put_u8(1);
		put_u8((unsigned)r->value);
	} else if (is(r, "hole")) {
		put_u8(HOSTILE_HOLE | (r->where == 0 ? ITS_FLAG : 0));
		put_place(r->where);
	} else if (is(r, "move") || is(r, "reset")) {
		put_u8(is(r, "move") ? HOSTILE_MOVE : HOSTILE_RESET);
	}
}

/* Eight bytes that are written one by one, as a table is filled, become one operation. */
static void join_pokes(void)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < num_records; kept++) {
		unsigned n = 0;

		records[kept] = records[i];
		while (n < 8 && i + n < num_records && is(&records[i + n], "poke") && records[i + n].how == 1 &&
		       records[i + n].where == records[i].where + n)
			n++;
		if (n < 8) {
			i++;
			continue;
		}
		records[kept].how = 8;
		for (unsigned b = 1; b < 8; b++)
			records[kept].value |= records[i + b].value << (8 * b);
		i += 8;
	}
	num_records = kept;
}

/* ---- All ---- */

static void read_records(void)
{
	struct record *r = records;

	while (num_records < MAX_RECORDS && scanf("%31s %" SCNu32 " %" SCNu64 " %u %" SCNu64, r->kind, &r->vcpu,
						  &r->where, &r->how, &r->value) == 5) {
		num_records++;
		r++;
	}
}

int main(int argc, char **argv)
{
	static struct pair pair;
	const char *target = argc == 2 ? argv[1] : "";
	const bool mmio = strcmp(target, "mmio") == 0, hostile = strcmp(target, "its_hostile") == 0;
	uint32_t num_vcpus, num_spis, features, revision;
	int profile;

	if (!mmio && !hostile && strcmp(target, "its") != 0) {
		fprintf(stderr, "Usage: fuzz-seeds mmio|its|its_hostile <RECORD >INPUT\n\n"
				"Makes an input of the fuzz target of a lockstep test's record (its --record FILE).\n");
		return 2;
	}
	if (scanf("config %d %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32, &profile, &num_vcpus, &num_spis,
		  &features, &revision, &num_itses) != 6 ||
	    num_vcpus > PAIR_MAX_VCPUS)
		fail("a record starts with its configuration");
	pair_configure(&pair, (enum vgic_profile)profile, num_vcpus);
	config = pair.config;
	memcpy(vcpus, pair.vcpu_configs, sizeof(vcpus));
	read_records();
	if (mmio) {
		put_mmio_config(profile, num_spis, features, revision);
		put_all_mmio();
	} else {
		if (num_vcpus > ITS_MAX_VCPUS)
			fail("more vCPUs than the target has");
		join_pokes();
		/* The lockstep tests set everything up by themselves. */
		put_u8((profile == VGIC_PROFILE_KVM ? ITS_CONFIG_KVM : 0) | (num_vcpus - 1) << 1 | num_itses << 3 |
		       ITS_CONFIG_BARE);
		for (unsigned i = 0; i < num_records; i++)
			hostile ? put_hostile(&records[i]) : put_its(&records[i]);
	}
	return fflush(stdout) == 0 ? 0 : 1;
}
