/* SPDX-License-Identifier: MIT */
/*
 * Finds out where Unicorn's saved context keeps the few values that its interface
 * does not give access to: the translator's cached mode ("hflags"), and syndrome
 * and fault address of the last exception; and PC, which must be changed without
 * the side effects of writing it.
 *
 * By experiment: registers are loaded with values that occur nowhere else, two
 * exceptions with known syndrome and address are provoked, and the context is
 * searched for them. A layout that was not found in exactly one place is refused.
 */
#include <errno.h>
#include <string.h>
#include <unicorn/unicorn.h>

#include "arm64.h"
#include "cpu_internal.h"
#include "util.h"

#define CODE_BASE   0x40000000ull
#define MARK        0x1111deadbeef0000ull /* x0 holds MARK, x1 MARK + 1, ... */
#define MISALIGNED  0x40001235ull
#define SVC_NUMBER  0x1234u
#define SVC_ESR     ((ESR_EC_SVC64 << ESR_EC_SHIFT) | ESR_IL | SVC_NUMBER)
#define NUM_X_SLOTS 32u /* x0 to x31 are an array in the context, PC follows it */

struct cpu_context_layout cpu_layout;

static const uint32_t code[] = {
	0xd4024681, /* svc  #0x1234 */
	0xc85f7c22, /* ldxr x2, [x1] */
};

struct experiment {
	uc_context *context;
	bool (*search)(const unsigned char *bytes, size_t size, uint64_t pc);
	bool found;
};

static uint64_t u64_at(const unsigned char *bytes, size_t offset)
{
	uint64_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

static uint32_t u32_at(const unsigned char *bytes, size_t offset)
{
	uint32_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

static bool is_x_array(const unsigned char *bytes, size_t offset)
{
	for (unsigned i = 0; i <= 30; i++)
		if (u64_at(bytes, offset + 8ul * i) != MARK + i)
			return false;
	return true;
}

/* After the x registers come PC, PSTATE (32 bits), a 32-bit flag for AArch64, and the hflags. */
static bool search_registers(const unsigned char *bytes, size_t size, uint64_t pc)
{
	unsigned found_x = 0;
	unsigned found_syndrome = 0;

	for (size_t i = 0; i + 8 * (NUM_X_SLOTS + 3) <= size; i += 8) {
		if (!is_x_array(bytes, i) || u64_at(bytes, i + 8 * NUM_X_SLOTS) != pc ||
		    u32_at(bytes, i + 8 * NUM_X_SLOTS + 12) != 1)
			continue;
		cpu_layout.pc = i + 8ul * NUM_X_SLOTS;
		cpu_layout.hflags = cpu_layout.pc + 16;
		found_x++;
	}
	for (size_t i = 0; i + 4 <= size; i += 4) {
		if (u32_at(bytes, i) != SVC_ESR)
			continue;
		cpu_layout.syndrome = i;
		found_syndrome++;
	}
	return found_x == 1 && found_syndrome == 1;
}

/* The fault address stands beside the syndrome. */
static bool search_fault_address(const unsigned char *bytes, size_t size, uint64_t pc)
{
	(void)pc;
	for (size_t i = cpu_layout.syndrome + 4; i <= cpu_layout.syndrome + 16 && i + 8 <= size; i += 4) {
		if (u64_at(bytes, i) != MISALIGNED)
			continue;
		cpu_layout.far = i;
		return true;
	}
	return false;
}

static void on_exception(uc_engine *uc, uint32_t number, void *user)
{
	struct experiment *experiment = user;
	uint64_t pc;

	(void)number;
	uc_context_save(uc, experiment->context);
	uc_reg_read(uc, UC_ARM64_REG_PC, &pc);
	experiment->found = experiment->search((const unsigned char *)experiment->context, uc_context_size(uc), pc);
	uc_emu_stop(uc);
}

static uc_err mark_registers(uc_engine *uc)
{
	uc_err err = UC_ERR_OK;

	for (unsigned i = 0; i <= 30 && !err; i++) {
		const uint64_t value = MARK + i;
		const int reg = i == 30 ? UC_ARM64_REG_X30 : i == 29 ? UC_ARM64_REG_X29 : UC_ARM64_REG_X0 + (int)i;

		err = uc_reg_write(uc, reg, &value);
	}
	return err;
}

static uc_err run_experiments(uc_engine *uc, struct experiment *experiment, const char **missing)
{
	const uint64_t misaligned = MISALIGNED;
	uc_hook hook;
	uc_err err;

	err = uc_mem_map(uc, CODE_BASE, 0x10000, UC_PROT_ALL);
	err = err ? err : uc_mem_write(uc, CODE_BASE, code, sizeof(code));
	err = err ? err : uc_context_alloc(uc, &experiment->context);
	err = err ? err : uc_hook_add(uc, &hook, UC_HOOK_INTR, (void *)on_exception, experiment, 1, 0);
	err = err ? err : mark_registers(uc);
	if (err)
		return err;

	experiment->search = search_registers;
	err = uc_emu_start(uc, CODE_BASE, CODE_BASE + 4, 0, 0);
	if (err || !experiment->found) {
		*missing = "registers and syndrome in the saved context";
		return err;
	}
	experiment->search = search_fault_address;
	experiment->found = false;
	err = uc_reg_write(uc, UC_ARM64_REG_X1, &misaligned);
	err = err ? err : uc_emu_start(uc, CODE_BASE + 4, CODE_BASE + 8, 0, 1);
	if (err || !experiment->found)
		*missing = "the fault address in the saved context";
	return err;
}

int cpu_find_layout(void)
{
	struct experiment experiment = { 0 };
	const char *missing = NULL;
	uc_engine *uc = NULL;
	uc_err err;

	err = uc_open(UC_ARCH_ARM64, UC_MODE_ARM, &uc);
	err = err ? err : run_experiments(uc, &experiment, &missing);
	if (experiment.context)
		uc_context_free(experiment.context);
	if (uc)
		uc_close(uc);
	if (!err && !missing)
		return 0;
	message("this Unicorn is not the one that the CPU layer is made for: %s%s%s", missing ? missing : "it fails",
		err ? ": " : " not found", err ? uc_strerror(err) : "");
	return -ENOTSUP;
}
