/* SPDX-License-Identifier: MIT */
/*
 * MSI-X of a PCI function: the capability, and the BAR with table and PBA. What is
 * in them, masks and pending bits included, is the library's (vgic/msix.h), and so
 * is the way of an event: pci_msix_raise() takes no lock.
 */
#include <errno.h>
#include <vgic/msix.h>

#include "gic.h"
#include "pci.h"
#include "pci_internal.h"
#include "snapshot_file.h"

#define MSIX_CAPABILITY_SIZE 12u
#define MSIX_CONTROL         2u /* offsets in the capability */
#define MSIX_TABLE           4u
#define MSIX_PBA             8u

#define MIN_BAR_SIZE 0x1000u

/* ---- Events -------------------------------------------------------------------------- */

void pci_msix_raise(struct pci_function *function, unsigned vector)
{
	struct pci_msix *msix = &function->msix;

	if (!msix->msix)
		return;
	gic_signal_msix(function->host->machine, msix->msix, pci_devid(function), vector);
}

int pci_msix_bind(struct pci_function *function, unsigned vector, int eventfd)
{
	struct vgic_irqfds *irqfds = function->host->irqfds;

	if (vector >= function->msix.num_vectors)
		return -EINVAL;
	return irqfds ? vgic_irqfd_assign(irqfds, function->msix.first_gsi + vector, eventfd, VGIC_NO_FD) : -ENOTSUP;
}

void pci_msix_unbind(struct pci_function *function, unsigned vector, int eventfd)
{
	vgic_irqfd_deassign(function->host->irqfds, function->msix.first_gsi + vector, eventfd);
}

/* ---- The guest's side ------------------------------------------------------------------ */

void pci_msix_config_changed(struct pci_function *function)
{
	const struct pci_msix *msix = &function->msix;
	uint32_t control;

	if (!msix->msix)
		return;
	control = pci_config_get(function, msix->capability + MSIX_CONTROL, 2);
	/* A message is a write to memory: only a bus master makes one. */
	if (!pci_is_bus_master(function))
		control &= ~VGIC_MSIX_CONTROL_ENABLE;
	if (control != vgic_msix_read_control(msix->msix))
		vgic_msix_write_control(msix->msix, (uint16_t)control);
}

static uint32_t read_registers(void *owner, uint32_t offset, unsigned width)
{
	const struct pci_function *function = owner;
	const struct pci_msix *msix = &function->msix;
	uint64_t value = 0;

	/* What is behind the end of table or PBA reads as 0. */
	if (offset < msix->pba_offset)
		vgic_msix_table_read(msix->msix, offset, width, &value);
	else
		vgic_msix_pba_read(msix->msix, offset - msix->pba_offset, width, &value);
	return (uint32_t)value;
}

/* The PBA is read-only. */
static void write_registers(void *owner, uint32_t offset, unsigned width, uint32_t value)
{
	const struct pci_function *function = owner;

	vgic_msix_table_write(function->msix.msix, offset, width, value);
}

static const struct pci_bar_ops registers = {
	.read = read_registers,
	.write = write_registers,
};

/* ---- Saving and loading -------------------------------------------------------------------- */

static uint32_t pba_word(const struct pci_msix *msix, unsigned word)
{
	uint64_t value = 0;

	vgic_msix_pba_read(msix->msix, 4 * word, 4, &value);
	return (uint32_t)value;
}

void pci_msix_save(const struct pci_function *function, struct snapshot_out *out)
{
	const struct pci_msix *msix = &function->msix;

	put_u32(out, msix->num_vectors);
	for (uint32_t offset = 0; offset < msix->num_vectors * VGIC_MSIX_ENTRY_SIZE; offset += 4) {
		uint64_t value = 0;

		vgic_msix_table_read(msix->msix, offset, 4, &value);
		put_u32(out, (uint32_t)value);
	}
	for (unsigned word = 0; word < (msix->num_vectors + 31) / 32; word++)
		put_u32(out, pba_word(msix, word));
}

/* The PBA cannot be written: an event while the function is masked sets its bit. */
void pci_msix_load(struct pci_function *function, struct snapshot_in *in)
{
	struct pci_msix *msix = &function->msix;

	expect_u32(in, msix->num_vectors, "it has another number of vectors");
	if (in->wrong)
		return;
	for (uint32_t offset = 0; offset < msix->num_vectors * VGIC_MSIX_ENTRY_SIZE; offset += 4)
		vgic_msix_table_write(msix->msix, offset, 4, get_u32(in));
	vgic_msix_write_control(msix->msix, VGIC_MSIX_CONTROL_ENABLE | VGIC_MSIX_CONTROL_FUNCTION_MASK);
	for (unsigned word = 0; word < (msix->num_vectors + 31) / 32; word++) {
		const uint32_t pending = get_u32(in);

		for (unsigned bit = 0; bit < 32 && 32 * word + bit < msix->num_vectors; bit++)
			if (pending >> bit & 1)
				vgic_msix_signal(msix->msix, 32 * word + bit);
	}
	pci_msix_config_changed(function);
}

/* ---- Life -------------------------------------------------------------------------------- */

void pci_msix_destroy(struct pci_function *function)
{
	vgic_msix_destroy(function->msix.msix);
	function->msix.msix = NULL;
}

void pci_msix_reset(struct pci_function *function)
{
	if (function->msix.msix)
		vgic_msix_reset(function->msix.msix);
}

static uint32_t bar_size(uint32_t needed)
{
	uint32_t size = MIN_BAR_SIZE;

	while (size < needed)
		size *= 2;
	return size;
}

int pci_add_msix(struct pci_function *function, unsigned index, unsigned num_vectors)
{
	struct pci_host *host = function->host;
	struct pci_msix *msix = &function->msix;
	struct vgic_msix_config config;
	int capability;
	int ret;

	capability = pci_add_capability(function, PCI_CAP_ID_MSIX, MSIX_CAPABILITY_SIZE);
	if (capability < 0 || num_vectors > vgic_routes_num_gsis(host->routes) - host->next_gsi)
		return -ENOSPC;
	vgic_msix_config_init(&config);
	config.num_vectors = num_vectors;
	config.routes = host->routes;
	config.irqfds = host->irqfds;
	config.first_gsi = host->next_gsi;
	config.devid = pci_devid(function);
	ret = vgic_msix_create(&config, &msix->msix);
	if (ret)
		return ret;
	host->next_gsi += num_vectors;
	msix->first_gsi = config.first_gsi;
	msix->num_vectors = num_vectors;
	msix->capability = (unsigned)capability;
	/* The PBA gets the upper half, so that table and PBA are in different pages if the BAR has several. */
	msix->pba_offset = bar_size(2 * num_vectors * VGIC_MSIX_ENTRY_SIZE) / 2;
	pci_add_bar(function, index, 2 * msix->pba_offset, &registers, function);
	pci_config_set(function, msix->capability + MSIX_CONTROL, 2, num_vectors - 1);
	pci_config_allow(function, msix->capability + MSIX_CONTROL, 2,
			 VGIC_MSIX_CONTROL_ENABLE | VGIC_MSIX_CONTROL_FUNCTION_MASK);
	pci_config_set(function, msix->capability + MSIX_TABLE, 4, index);
	pci_config_set(function, msix->capability + MSIX_PBA, 4, msix->pba_offset | index);
	return 0;
}
