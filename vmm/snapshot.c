/* SPDX-License-Identifier: MIT */
/*
 * The whole machine in a file: who saves what, in which order.
 *
 * Saving: MSIs are paused first, then the devices stop. An event that comes in between
 * is pending at its vector, and saved as that in the device's section. Then everything
 * is written, memory last, because saving the controller may write to it.
 *
 * Loading: memory, vCPUs, lines, controller, then devices. Interrupts that are pending
 * there are delivered, and devices may signal, when all was found right: those are the
 * last steps.
 */
#define _GNU_SOURCE /* SEEK_DATA, SEEK_HOLE */

#include "snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vgic/state.h>

#include "cpu.h"
#include "devices.h"
#include "machine.h"
#include "snapshot_file.h"
#include "snapshot_gic.h"
#include "util.h"

#define PAGE_SIZE 4096u
#define MAX_RUN   (1u << 20) /* bytes of memory in one section */

/* ---- Memory ------------------------------------------------------------------------- */

static bool is_zero(const unsigned char *page)
{
	return page[0] == 0 && memcmp(page, page + 1, PAGE_SIZE - 1) == 0;
}

static void save_run(const struct machine *machine, struct snapshot_out *out, uint64_t offset, uint64_t size,
		     uint32_t *number)
{
	snapshot_out_begin(out, "ram", (*number)++);
	put_u64(out, offset);
	put_data(out, machine->ram + offset, size);
	snapshot_out_end(out);
}

/* The pages of [@offset, @end) that are not all zeros. */
static void save_pages(const struct machine *machine, struct snapshot_out *out, uint64_t offset, uint64_t end,
		       uint32_t *number)
{
	uint64_t start = offset;

	for (; offset < end; offset += PAGE_SIZE) {
		const bool zero = is_zero(machine->ram + offset);

		if (offset > start && (zero || offset - start >= MAX_RUN)) {
			save_run(machine, out, start, offset - start, number);
			start = offset;
		}
		if (zero)
			start = offset + PAGE_SIZE;
	}
	if (offset > start)
		save_run(machine, out, start, offset - start, number);
}

/* What the guest has never touched is a hole in the file behind its memory: it is not even looked at. */
static void save_ram(const struct machine *machine, struct snapshot_out *out)
{
	const uint64_t size = machine->ram_size & ~(uint64_t)(PAGE_SIZE - 1);
	uint32_t number = 0;
	uint64_t at = 0;

	while (at < size) {
		const off_t data = lseek(machine->ram_fd, (off_t)at, SEEK_DATA);
		off_t hole;

		if (data < 0) {
			if (errno != ENXIO) /* holes cannot be found here: look at everything */
				save_pages(machine, out, at, size, &number);
			return;
		}
		hole = lseek(machine->ram_fd, data, SEEK_HOLE);
		at = hole < 0 || (uint64_t)hole > size ? size : (uint64_t)hole;
		at = (at + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
		save_pages(machine, out, (uint64_t)data & ~(uint64_t)(PAGE_SIZE - 1), at, &number);
	}
}

static int load_ram(struct machine *machine, const struct snapshot_file *file)
{
	struct snapshot_in in;
	size_t position = 0;
	int ret = 0;

	while (!ret && snapshot_in_next(&in, file, "ram", &position)) {
		const uint64_t offset = get_u64(&in);
		const uint64_t size = in.left;

		if (offset > machine->ram_size || size > machine->ram_size - offset)
			snapshot_in_wrong(&in, "it is outside of the machine's memory");
		else
			get_data(&in, machine->ram + offset, size);
		ret = snapshot_in_end(&in);
	}
	return ret;
}

/* ---- What the machine is, and its time ------------------------------------------------ */

static void save_machine(const struct machine *machine, struct snapshot_out *out)
{
	snapshot_out_begin(out, "machine", 0);
	put_u32(out, machine->num_vcpus);
	put_u64(out, machine->ram_size);
	put_u32(out, machine->num_devices);
	for (unsigned i = 0; i < machine->num_vcpus; i++)
		put_u32(out, machine->options->vcpu_ids[i]);
	put_u64(out, machine_time_ps(machine));
	snapshot_out_end(out);
}

static int load_machine(struct machine *machine, const struct snapshot_file *file)
{
	struct snapshot_in in;
	uint32_t num_vcpus;
	uint64_t ram_size;
	uint32_t num_devices;

	if (snapshot_in_begin(&in, file, "machine", 0))
		return -EBADMSG;
	num_vcpus = get_u32(&in);
	ram_size = get_u64(&in);
	num_devices = get_u32(&in);
	if (in.wrong)
		return snapshot_in_end(&in);
	if (num_vcpus != machine->num_vcpus)
		return snapshot_file_refuse(file, "it has %u vCPUs, this machine has %u: give --cpus %u", num_vcpus,
					    machine->num_vcpus, num_vcpus);
	if (ram_size != machine->ram_size)
		return snapshot_file_refuse(file, "it has %llu KiB of memory, this machine has %llu: see --memory",
					    (unsigned long long)ram_size >> 10,
					    (unsigned long long)machine->ram_size >> 10);
	if (num_devices != machine->num_devices)
		return snapshot_file_refuse(file, "it has %u disks, this machine has %u: give the same --disk options",
					    num_devices, machine->num_devices);
	for (unsigned i = 0; i < num_vcpus; i++)
		expect_u32(&in, machine->options->vcpu_ids[i], "the vCPUs have other ids: see --vcpu-ids");
	machine_set_time_ps(machine, get_u64(&in));
	return snapshot_in_end(&in);
}

/* ---- The vCPUs ---------------------------------------------------------------------------- */

static void save_vcpu(const struct vcpu *vcpu, struct snapshot_out *out)
{
	snapshot_out_begin(out, "vcpu", vcpu->index);
	put_u8(out, (uint8_t)vcpu->power);
	timer_save(vcpu, out);
	cpu_save(vcpu->cpu, out);
	snapshot_out_end(out);
}

static int load_vcpu(struct vcpu *vcpu, const struct snapshot_file *file)
{
	struct snapshot_in in;
	uint8_t power;

	if (snapshot_in_begin(&in, file, "vcpu", vcpu->index))
		return -EBADMSG;
	power = get_u8(&in);
	if (power > VCPU_WAITING)
		snapshot_in_wrong(&in, "the vCPU is neither on, nor off, nor waiting");
	timer_load(vcpu, &in);
	if (!in.wrong)
		cpu_load(vcpu->cpu, &in);
	vcpu->power = power;
	return snapshot_in_end(&in);
}

/* ---- The whole -------------------------------------------------------------------------- */

static int write_file(struct machine *machine, struct snapshot_out *out)
{
	int ret;

	save_machine(machine, out);
	for (unsigned i = 0; i < machine->num_vcpus; i++)
		save_vcpu(&machine->vcpus[i], out);
	snapshot_out_begin(out, "uart", 0);
	pl011_save(&machine->uart, out);
	snapshot_out_end(out);
	/* Only if there is something: programs that know nothing of it load the others. */
	if (console_has_typed(machine->console)) {
		snapshot_out_begin(out, "console", 0);
		console_save(machine->console, out);
		snapshot_out_end(out);
	}
	snapshot_out_begin(out, "testdev", 0);
	testdev_save(&machine->testdev, machine->num_vcpus, out);
	snapshot_out_end(out);
	ret = snapshot_gic_save(machine, out, machine->options->save_attributes);
	if (ret)
		return ret;
	devices_save(machine, out);
	save_ram(machine, out);
	return out->err;
}

int snapshot_save(struct machine *machine)
{
	struct snapshot_out out;
	int ret;
	int written;

	ret = devices_can_be_saved(machine);
	if (ret)
		return ret;
	vgic_pause(machine->vgic);
	devices_pause(machine);
	snapshot_out_open(&out, machine->options->save_to);
	ret = write_file(machine, &out);
	written = snapshot_out_close(&out, ret == 0);
	if (!ret && !written)
		return 0;
	vgic_resume(machine->vgic);
	devices_resume(machine);
	return ret ? ret : written;
}

/* Files without it are of older programs, or nothing was typed. */
static int load_console(struct console *console, const struct snapshot_file *file)
{
	struct snapshot_in in;

	if (!snapshot_in_try(&in, file, "console", 0))
		return 0;
	console_load(console, &in);
	return snapshot_in_end(&in);
}

static int load_all(struct machine *machine, const struct snapshot_file *file)
{
	const struct snapshot_section *unused;
	struct snapshot_in in;
	int ret = load_machine(machine, file);

	for (unsigned i = 0; i < machine->num_vcpus && !ret; i++)
		ret = load_vcpu(&machine->vcpus[i], file);
	if (!ret)
		ret = load_ram(machine, file);
	if (!ret)
		ret = snapshot_in_begin(&in, file, "uart", 0);
	if (!ret) {
		pl011_load(&machine->uart, &in);
		ret = snapshot_in_end(&in);
	}
	if (!ret)
		ret = load_console(machine->console, file);
	if (!ret)
		ret = snapshot_in_begin(&in, file, "testdev", 0);
	if (!ret) {
		testdev_load(&machine->testdev, machine->num_vcpus, &in);
		ret = snapshot_in_end(&in);
	}
	if (!ret)
		ret = snapshot_gic_load(machine, file);
	if (!ret)
		ret = devices_load(machine, file);
	if (ret)
		return ret;
	unused = snapshot_file_unused(file);
	if (unused)
		return snapshot_file_refuse(file, "it has a section \"%s\" %u, which nothing in this machine is for",
					    unused->tag, unused->number);
	return 0;
}

int snapshot_load(struct machine *machine)
{
	struct snapshot_file file;
	int ret = snapshot_file_open(&file, machine->options->load);

	if (ret)
		return ret;
	vgic_pause(machine->vgic);
	ret = load_all(machine, &file);
	snapshot_file_close(&file);
	if (ret)
		return ret;
	vgic_resume(machine->vgic);
	/* What register writes have left, here or there, is done in the course of the run. */
	machine->gic_has_work = true;
	devices_resume(machine);
	return 0;
}
