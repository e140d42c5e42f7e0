/* SPDX-License-Identifier: MIT */
/*
 * The physical address map of one CPU: memory, devices, and the holes between
 * them, where an access ends the run.
 */
#include <errno.h>
#include <stdlib.h>

#include "arm64.h"
#include "cpu_internal.h"

static uint64_t on_mmio_read(uc_engine *uc, uint64_t offset, unsigned size, void *user)
{
	const struct region *region = user;

	(void)uc;
	return region->read(region->owner, offset, size);
}

static void on_mmio_write(uc_engine *uc, uint64_t offset, unsigned size, uint64_t value, void *user)
{
	const struct region *region = user;

	(void)uc;
	region->write(region->owner, offset, size, value);
}

static void report_data_fault(struct cpu *cpu, uint64_t pc, uint64_t pa, unsigned size, const uint64_t *written)
{
	if (written)
		cpu_raise_fault(
			cpu,
			"vCPU %u: write of 0x%llx, %u byte(s), to physical address 0x%llx, where nothing is, PC 0x%016llx",
			cpu->index, (unsigned long long)*written, size, (unsigned long long)pa, (unsigned long long)pc);
	else
		cpu_raise_fault(
			cpu, "vCPU %u: read of %u byte(s) at physical address 0x%llx, where nothing is, PC 0x%016llx",
			cpu->index, size, (unsigned long long)pa, (unsigned long long)pc);
}

/* The translator has read an instruction. Most often that is a vector, because a guest has no handlers yet. */
static void report_fetch_fault(struct cpu *cpu, uint64_t pc)
{
	const uint64_t vbar = cpu_sysreg(cpu, SYS_VBAR_EL1);

	if (pc - vbar < VECTORS_SIZE && pc % VECTOR_IRQ == 0)
		cpu_raise_fault(
			cpu,
			"vCPU %u: exception with no memory at its vector, PC 0x%016llx, ELR_EL1 0x%016llx, ESR_EL1 0x%llx",
			cpu->index, (unsigned long long)pc, (unsigned long long)cpu_sysreg(cpu, SYS_ELR_EL1),
			(unsigned long long)cpu_sysreg(cpu, SYS_ESR_EL1));
	else
		cpu_raise_fault(cpu, "vCPU %u: branch to where no memory is, PC 0x%016llx, from the block at 0x%016llx",
				cpu->index, (unsigned long long)pc, (unsigned long long)cpu->block.pc);
}

static uint64_t on_hole_read(uc_engine *uc, uint64_t offset, unsigned size, void *user)
{
	const struct region *hole = user;
	struct cpu *cpu = hole->cpu;
	const uint64_t pa = hole->base + offset;
	const uint64_t next_pc = cpu_pc(cpu);
	uint64_t pc = cpu->block.pc;

	(void)uc;
	if (cpu_locate_access(cpu, &cpu->block, pa, size, false, &pc) && size == 4 && ((pa ^ next_pc) & 0xfff) == 0)
		report_fetch_fault(cpu, next_pc);
	else
		report_data_fault(cpu, pc, pa, size, NULL);
	return 0;
}

static void on_hole_write(uc_engine *uc, uint64_t offset, unsigned size, uint64_t value, void *user)
{
	const struct region *hole = user;
	struct cpu *cpu = hole->cpu;
	const uint64_t pa = hole->base + offset;
	uint64_t pc = cpu->block.pc;

	(void)uc;
	cpu_locate_access(cpu, &cpu->block, pa, size, true, &pc);
	report_data_fault(cpu, pc, pa, size, &value);
}

static int add_region(struct cpu *cpu, const struct region *template)
{
	struct region *region;
	unsigned at = cpu->num_regions;

	if (at == MAX_REGIONS)
		return -ENOMEM;
	region = malloc(sizeof(*region));
	if (!region)
		return -ENOMEM;
	*region = *template;
	/* Sorted by address, so that the holes are what lies between neighbours. */
	for (; at > 0 && cpu->regions[at - 1]->base > region->base; at--)
		cpu->regions[at] = cpu->regions[at - 1];
	cpu->regions[at] = region;
	cpu->num_regions++;
	if (!region->is_ram &&
	    uc_mmio_map(cpu->uc, region->base, region->size, on_mmio_read, region, on_mmio_write, region))
		return -ENOMEM;
	return 0;
}

int cpu_map_ram(struct cpu *cpu, uint64_t base, uint64_t size, void *ram)
{
	const struct region region = { .cpu = cpu, .base = base, .size = size, .is_ram = true };

	if (uc_mem_map_ptr(cpu->uc, base, size, UC_PROT_ALL, ram))
		return -ENOMEM;
	return add_region(cpu, &region);
}

int cpu_map_mmio(struct cpu *cpu, uint64_t base, uint64_t size, cpu_mmio_read read, cpu_mmio_write write, void *owner)
{
	const struct region region = {
		.cpu = cpu,
		.base = base,
		.size = size,
		.read = read,
		.write = write,
		.owner = owner,
	};

	return add_region(cpu, &region);
}

static int map_hole(struct cpu *cpu, struct region *hole, uint64_t base, uint64_t end)
{
	*hole = (struct region){ .cpu = cpu, .base = base, .size = end - base };
	return uc_mmio_map(cpu->uc, base, end - base, on_hole_read, hole, on_hole_write, hole) ? -ENOMEM : 0;
}

int cpu_map_done(struct cpu *cpu)
{
	/* Unicorn takes no region that is larger than half the space, and none that contains the last page. */
	const uint64_t half = 1ull << 63;
	struct region *hole = cpu->holes;
	uint64_t at = 0;
	int ret;

	for (unsigned i = 0; i <= cpu->num_regions; i++) {
		const uint64_t end = i < cpu->num_regions ? cpu->regions[i]->base : half;

		if (end > at) {
			ret = map_hole(cpu, hole++, at, end);
			if (ret)
				return ret;
		}
		if (i < cpu->num_regions)
			at = cpu->regions[i]->base + cpu->regions[i]->size;
	}
	return map_hole(cpu, hole, half, UINT64_MAX - 0xfff);
}

int cpu_read_instruction(struct cpu *cpu, uint64_t va, uint32_t *insn)
{
	uint64_t pa;

	if (cpu_translate(cpu, va, &pa))
		return -EFAULT;
	for (unsigned i = 0; i < cpu->num_regions; i++) {
		const struct region *region = cpu->regions[i];

		/* Only memory: reading a device would have an effect. */
		if (region->is_ram && pa >= region->base && pa - region->base <= region->size - sizeof(*insn))
			return uc_mem_read(cpu->uc, pa, insn, sizeof(*insn)) ? -EFAULT : 0;
	}
	return -EFAULT;
}

/*
 * The rest of rule 1: code whose virtual address falls into a hole is refused, because a hole is not executable. Allow it:
 * a fetch whose *physical* address is in a hole reads there, and is found out.
 */
bool cpu_on_fetch_refused(uc_engine *uc, uc_mem_type type, uint64_t address, int size, int64_t value, void *user)
{
	(void)uc;
	(void)type;
	(void)address;
	(void)size;
	(void)value;
	(void)user;
	return true;
}
