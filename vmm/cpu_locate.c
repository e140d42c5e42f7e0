/* SPDX-License-Identifier: MIT */
/*
 * Finds the instruction that made a device access, for messages.
 *
 * Unicorn keeps no exact PC inside a block, but the general registers are exact
 * in a device's callback. So each load and store of the block is decoded, its
 * address computed from the registers, and compared with the access.
 */
#include <errno.h>

#include "arm64.h"
#include "cpu.h"
#include "cpu_internal.h"

/* One load or store, decoded. */
struct transfer {
	bool loads;
	bool stores;
	unsigned bytes; /* in all */
	uint64_t address;
};

static int64_t sign_extend(uint32_t value, unsigned bits)
{
	return (int64_t)((uint64_t)value << (64 - bits)) >> (64 - bits);
}

static uint64_t base_register(struct cpu *cpu, uint32_t insn)
{
	const unsigned rn = (insn >> 5) & 31;

	return rn == 31 ? cpu_sp(cpu) : cpu_x(cpu, rn);
}

/* The offset of a register-offset form: Rm, extended as option says, shifted by the size or not. */
static uint64_t register_offset(struct cpu *cpu, uint32_t insn, unsigned log2_bytes)
{
	const unsigned option = (insn >> 13) & 7;
	const unsigned shift = insn & (1u << 12) ? log2_bytes : 0;
	uint64_t offset = cpu_x(cpu, (insn >> 16) & 31);

	if (option == 2)
		offset = (uint32_t)offset;
	else if (option == 6)
		offset = (uint64_t)(int64_t)(int32_t)(uint32_t)offset;
	return offset << shift;
}

/* Loads and stores of one register. */
static void decode_single(struct cpu *cpu, uint32_t insn, struct transfer *t)
{
	const bool vector = insn & (1u << 26);
	const unsigned opc = (insn >> 22) & 3;
	unsigned log2_bytes = insn >> 30;

	if (vector && (opc & 2))
		log2_bytes = 4;
	t->bytes = 1u << log2_bytes;
	t->stores = vector ? !(opc & 1) : opc == 0;
	t->loads = !t->stores;
	t->address = base_register(cpu, insn);
	if (insn & (1u << 24))
		t->address += (uint64_t)((insn >> 10) & 0xfff) << log2_bytes;
	else if (insn & (1u << 21))
		t->address += (insn & 0xc00) == 0x800 ? register_offset(cpu, insn, log2_bytes) : 0;
	else if ((insn & 0xc00) != 0x400) /* post-indexed uses the base as it is */
		t->address += (uint64_t)sign_extend((insn >> 12) & 0x1ff, 9);
	if ((insn & (1u << 21)) && !(insn & (1u << 24)) && !(insn & 0xc00))
		t->loads = t->stores = true; /* an atomic operation */
}

static void decode_pair(struct cpu *cpu, uint32_t insn, struct transfer *t)
{
	const bool vector = insn & (1u << 26);
	const unsigned opc = insn >> 30;
	const unsigned log2_bytes = vector ? 2 + opc : opc & 2 ? 3 : 2;

	t->bytes = 2u << log2_bytes;
	t->loads = insn & (1u << 22);
	t->stores = !t->loads;
	t->address = base_register(cpu, insn);
	if (((insn >> 23) & 3) != 1) /* post-indexed uses the base as it is */
		t->address += (uint64_t)sign_extend((insn >> 15) & 0x7f, 7) << log2_bytes;
}

/* Returns false for what is no load or store. */
static bool decode_transfer(struct cpu *cpu, uint64_t pc, uint32_t insn, struct transfer *t)
{
	if ((insn & 0x0a000000) != 0x08000000)
		return false;
	switch ((insn >> 28) & 3) {
	case 0: /* exclusive and ordered, or vector structures: up to 64 bytes from the base */
		t->bytes = insn & (1u << 26) ? 64 : 2u << (insn >> 30);
		t->loads = insn & (1u << 22);
		t->stores = !t->loads;
		t->address = base_register(cpu, insn);
		return true;
	case 1: /* literal */
		t->bytes = 16;
		t->loads = true;
		t->stores = false;
		t->address = pc + (uint64_t)sign_extend((insn >> 5) & 0x7ffff, 19) * 4;
		return true;
	case 2:
		decode_pair(cpu, insn, t);
		return true;
	default:
		decode_single(cpu, insn, t);
		return true;
	}
}

/* Only the offset in the page is the same before and after address translation. */
static bool touches(const struct transfer *t, uint64_t pa, unsigned width)
{
	return ((pa - t->address) & 0xfff) + width <= t->bytes;
}

/* An access that is not aligned is made of aligned ones around it. */
static bool touches_unaligned(const struct transfer *t, uint64_t pa, unsigned width)
{
	const struct transfer aligned = { .bytes = t->bytes + 8, .address = t->address & ~7ull };

	return touches(&aligned, pa, width);
}

static bool find_access(struct cpu *cpu, const struct cpu_block *block, uint64_t pa, unsigned width, bool is_write,
			bool (*matches)(const struct transfer *t, uint64_t pa, unsigned width), uint64_t *found)
{
	for (uint64_t pc = block->pc; pc < block->pc + block->size; pc += 4) {
		struct transfer t;
		uint32_t insn;

		if (cpu_read_instruction(cpu, pc, &insn) || !decode_transfer(cpu, pc, insn, &t))
			continue;
		if (!(is_write ? t.stores : t.loads) || !matches(&t, pa, width))
			continue;
		*found = pc;
		return true;
	}
	return false;
}

int cpu_locate_access(struct cpu *cpu, const struct cpu_block *block, uint64_t pa, unsigned width, bool is_write,
		      uint64_t *pc)
{
	if (find_access(cpu, block, pa, width, is_write, touches, pc) ||
	    find_access(cpu, block, pa, width, is_write, touches_unaligned, pc))
		return 0;
	return -ENOENT;
}
