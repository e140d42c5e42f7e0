/* SPDX-License-Identifier: MIT */
/* The device tree, written with libfdt. Bindings: those of the Devicetree specification and of Linux. */
#include "device_tree.h"

#include <errno.h>
#include <libfdt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <vgic/vgic.h>

#include "machine.h"
#include "testdev.h"
#include "util.h"

#define PHANDLE_GIC   1u
#define PHANDLE_CLOCK 2u
#define PHANDLE_ITS   3u

/* Interrupt specifiers: type, number within the type, trigger. */
#define INTERRUPT_SPI  0u
#define INTERRUPT_PPI  1u
#define TRIGGER_LEVEL  4u
#define FIRST_SPI      32u
#define FIRST_PPI      16u
#define CLOCK_HZ       24000000u
#define MAX_CELLS      16u
#define BASE_SPACE     4096u
#define SPACE_PER_VCPU 160u

/* A device tree being written. The first error stays; calls after it do nothing. */
struct writer {
	void *fdt;
	int err;
};

static void begin_node(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void begin_node(struct writer *w, const char *format, ...)
{
	char name[64];
	va_list args;

	va_start(args, format);
	vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	if (!w->err)
		w->err = fdt_begin_node(w->fdt, name);
}

static void end_node(struct writer *w)
{
	if (!w->err)
		w->err = fdt_end_node(w->fdt);
}

static void put_bytes(struct writer *w, const char *name, const void *bytes, size_t size)
{
	if (!w->err)
		w->err = fdt_property(w->fdt, name, bytes, (int)size);
}

static void put_string(struct writer *w, const char *name, const char *string)
{
	put_bytes(w, name, string, strlen(string) + 1);
}

static void put_empty(struct writer *w, const char *name)
{
	put_bytes(w, name, "", 0);
}

static void put_cells(struct writer *w, const char *name, const uint32_t *cells, size_t count)
{
	fdt32_t big_endian[MAX_CELLS];

	for (size_t i = 0; i < count; i++)
		big_endian[i] = cpu_to_fdt32(cells[i]);
	put_bytes(w, name, big_endian, count * sizeof(big_endian[0]));
}

static void put_cell(struct writer *w, const char *name, uint32_t cell)
{
	put_cells(w, name, &cell, 1);
}

static void put_u64(struct writer *w, const char *name, uint64_t value)
{
	put_cells(w, name, (const uint32_t[]){ (uint32_t)(value >> 32), (uint32_t)value }, 2);
}

/* Address and size, two cells each. */
static void put_reg(struct writer *w, uint64_t base, uint64_t size)
{
	const uint32_t cells[] = { (uint32_t)(base >> 32), (uint32_t)base, (uint32_t)(size >> 32), (uint32_t)size };

	put_cells(w, "reg", cells, 4);
}

static void put_chosen(struct writer *w, const struct machine *machine, uint64_t initrd_start, uint64_t initrd_end)
{
	begin_node(w, "chosen");
	put_string(w, "bootargs", machine->options->append);
	put_string(w, "stdout-path", "/pl011@9000000");
	if (initrd_end) {
		put_u64(w, "linux,initrd-start", initrd_start);
		put_u64(w, "linux,initrd-end", initrd_end);
	}
	end_node(w);
}

static void put_memory(struct writer *w, const struct machine *machine)
{
	begin_node(w, "memory@%llx", RAM_BASE);
	put_string(w, "device_type", "memory");
	put_reg(w, RAM_BASE, machine->ram_size);
	end_node(w);
}

static void put_cpus(struct writer *w, const struct machine *machine)
{
	begin_node(w, "cpus");
	put_cell(w, "#address-cells", 1);
	put_cell(w, "#size-cells", 0);
	for (unsigned i = 0; i < machine->num_vcpus; i++) {
		/* Aff3 is 0 for as many vCPUs as there can be: one cell is enough. */
		const uint32_t affinity = (uint32_t)machine->vcpus[i].affinity;

		begin_node(w, "cpu@%x", affinity);
		put_string(w, "device_type", "cpu");
		put_string(w, "compatible", "arm,cortex-a72");
		put_cell(w, "reg", affinity);
		put_string(w, "enable-method", "psci");
		end_node(w);
	}
	end_node(w);
}

static void put_psci(struct writer *w)
{
	static const char compatible[] = "arm,psci-1.0\0arm,psci-0.2";

	begin_node(w, "psci");
	put_bytes(w, "compatible", compatible, sizeof(compatible));
	put_string(w, "method", "hvc");
	end_node(w);
}

/* In the binding's order: secure physical, physical, virtual, hypervisor. The first and last are never raised. */
static void put_timer(struct writer *w)
{
	static const uint32_t intids[] = { 29, TIMER_PPI_PHYSICAL, TIMER_PPI_VIRTUAL, 26 };
	uint32_t cells[12];

	for (unsigned i = 0; i < 4; i++) {
		cells[3 * i] = INTERRUPT_PPI;
		cells[3 * i + 1] = intids[i] - FIRST_PPI;
		cells[3 * i + 2] = TRIGGER_LEVEL;
	}
	begin_node(w, "timer");
	put_string(w, "compatible", "arm,armv8-timer");
	put_cells(w, "interrupts", cells, 12);
	put_empty(w, "always-on");
	end_node(w);
}

static void put_its(struct writer *w)
{
	begin_node(w, "its@%llx", ITS_BASE);
	put_string(w, "compatible", "arm,gic-v3-its");
	put_empty(w, "msi-controller");
	put_cell(w, "#msi-cells", 1);
	put_reg(w, ITS_BASE, VGIC_ITS_FRAME_SIZE);
	put_cell(w, "phandle", PHANDLE_ITS);
	end_node(w);
}

static void put_gic(struct writer *w, const struct machine *machine)
{
	const unsigned num = machine->num_vcpus;
	const unsigned low = num < GICR_MAX_FRAMES ? num : GICR_MAX_FRAMES;
	const uint64_t high_size = (uint64_t)(num - low) * VGIC_REDIST_FRAME_SIZE;
	// clang-format off
	const uint32_t reg[] = {
		0, (uint32_t)GICD_BASE, 0, VGIC_DIST_FRAME_SIZE,
		0, (uint32_t)GICR_BASE, 0, low * VGIC_REDIST_FRAME_SIZE,
		(uint32_t)(GICR_HIGH_BASE >> 32), (uint32_t)GICR_HIGH_BASE, 0, (uint32_t)high_size,
	};
	// clang-format on

	begin_node(w, "intc@%llx", GICD_BASE);
	put_string(w, "compatible", "arm,gic-v3");
	put_cell(w, "#interrupt-cells", 3);
	put_cell(w, "#address-cells", 2);
	put_cell(w, "#size-cells", 2);
	put_empty(w, "interrupt-controller");
	put_empty(w, "ranges");
	put_cell(w, "#redistributor-regions", num > low ? 2 : 1);
	put_cells(w, "reg", reg, num > low ? 12 : 8);
	put_cell(w, "phandle", PHANDLE_GIC);
	put_its(w);
	end_node(w);
}

static void put_uart(struct writer *w)
{
	static const char compatible[] = "arm,pl011\0arm,primecell";
	static const char clock_names[] = "uartclk\0apb_pclk";

	begin_node(w, "apb-pclk");
	put_string(w, "compatible", "fixed-clock");
	put_cell(w, "#clock-cells", 0);
	put_cell(w, "clock-frequency", CLOCK_HZ);
	put_string(w, "clock-output-names", "clk24mhz");
	put_cell(w, "phandle", PHANDLE_CLOCK);
	end_node(w);

	begin_node(w, "pl011@%llx", UART_BASE);
	put_bytes(w, "compatible", compatible, sizeof(compatible));
	put_reg(w, UART_BASE, UART_SIZE);
	put_cells(w, "interrupts", (const uint32_t[]){ INTERRUPT_SPI, UART_INTID - FIRST_SPI, TRIGGER_LEVEL }, 3);
	put_cells(w, "clocks", (const uint32_t[]){ PHANDLE_CLOCK, PHANDLE_CLOCK }, 2);
	put_bytes(w, "clock-names", clock_names, sizeof(clock_names));
	end_node(w);
}

static void put_testdev(struct writer *w)
{
	begin_node(w, "testdev@%llx", TESTDEV_BASE);
	put_string(w, "compatible", "vgic,testdev");
	put_reg(w, TESTDEV_BASE, TESTDEV_SIZE);
	end_node(w);
}

/* The ITS takes a function's requester id as its DeviceID: the map is one to one, for the one bus. */
static void put_pci(struct writer *w)
{
	// clang-format off
	static const uint32_t ranges[] = {
		0x02000000, 0, (uint32_t)PCI_WINDOW_BASE, /* 32-bit memory, at the same address on the bus */
		0, (uint32_t)PCI_WINDOW_BASE, 0, (uint32_t)PCI_WINDOW_SIZE,
	};
	// clang-format on

	begin_node(w, "pcie@%llx", PCI_ECAM_BASE);
	put_string(w, "compatible", "pci-host-ecam-generic");
	put_string(w, "device_type", "pci");
	put_cell(w, "#address-cells", 3);
	put_cell(w, "#size-cells", 2);
	put_reg(w, PCI_ECAM_BASE, PCI_ECAM_SIZE);
	put_cells(w, "bus-range", (const uint32_t[]){ 0, 0 }, 2);
	put_cells(w, "ranges", ranges, 7);
	put_cells(w, "msi-map", (const uint32_t[]){ 0, PHANDLE_ITS, 0, PCI_NUM_SLOTS << 3 }, 4);
	put_empty(w, "dma-coherent");
	end_node(w);
}

static void put_root(struct writer *w, const struct machine *machine, uint64_t initrd_start, uint64_t initrd_end)
{
	begin_node(w, "%s", "");
	put_string(w, "compatible", "linux,dummy-virt");
	put_string(w, "model", "vgic-vmm");
	put_cell(w, "#address-cells", 2);
	put_cell(w, "#size-cells", 2);
	put_cell(w, "interrupt-parent", PHANDLE_GIC);
	put_chosen(w, machine, initrd_start, initrd_end);
	put_memory(w, machine);
	put_cpus(w, machine);
	put_psci(w);
	put_timer(w);
	put_gic(w, machine);
	put_uart(w);
	put_testdev(w);
	put_pci(w);
	end_node(w);
}

size_t device_tree_space(const struct machine *machine)
{
	return BASE_SPACE + strlen(machine->options->append) + SPACE_PER_VCPU * (size_t)machine->num_vcpus;
}

int device_tree_build(const struct machine *machine, void *fdt, size_t space, uint64_t initrd_start,
		      uint64_t initrd_end)
{
	struct writer w = { .fdt = fdt };

	w.err = fdt_create(fdt, (int)space);
	if (!w.err)
		w.err = fdt_finish_reservemap(fdt);
	put_root(&w, machine, initrd_start, initrd_end);
	if (!w.err)
		w.err = fdt_finish(fdt);
	if (!w.err)
		return 0;
	message("cannot write the device tree: %s", fdt_strerror(w.err));
	return -ENOSPC;
}
