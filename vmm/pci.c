/* SPDX-License-Identifier: MIT */
/*
 * The PCI host and what all functions share: configuration space, capabilities
 * and BARs. MSI-X is in pci_msix.c.
 *
 * A function's configuration space is two arrays of bytes: what the guest reads,
 * and which bits of it the guest may write. So every width and alignment works,
 * and no write changes what it should not. All of it belongs to the thread that
 * runs the vCPUs: there are no locks.
 */
#include "pci.h"

#include <errno.h>
#include <string.h>

#include "pci_internal.h"
#include "snapshot_file.h"

#define ECAM_FUNCTION_SHIFT 12 /* function number, then slot: 3 and 5 bits */
#define ECAM_SLOT_SHIFT     15

#define BAR_ADDRESS_MASK 0xfffffff0u /* the other bits say: memory, 32 bits, not prefetchable */
#define BAR_MIN_SIZE     16u
#define BAR_WIDTH        4u

/* ---- Fields of configuration space ------------------------------------------------- */

static uint32_t get_bytes(const uint8_t *bytes, unsigned width)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < width; i++)
		value |= (uint32_t)bytes[i] << (8 * i);
	return value;
}

static void set_bytes(uint8_t *bytes, unsigned width, uint32_t value)
{
	for (unsigned i = 0; i < width; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
}

uint32_t pci_config_get(const struct pci_function *function, unsigned offset, unsigned width)
{
	return get_bytes(function->config + offset, width);
}

void pci_config_set(struct pci_function *function, unsigned offset, unsigned width, uint32_t value)
{
	set_bytes(function->config + offset, width, value);
}

void pci_config_allow(struct pci_function *function, unsigned offset, unsigned width, uint32_t mask)
{
	set_bytes(function->writable + offset, width, mask);
}

/* ---- Making a function --------------------------------------------------------------- */

void pci_function_init(struct pci_function *function, const struct pci_identity *identity,
		       const struct pci_function_ops *ops, void *owner)
{
	memset(function, 0, sizeof(*function));
	function->ops = ops;
	function->owner = owner;
	function->capabilities_end = PCI_HEADER_END;
	pci_config_set(function, PCI_VENDOR_ID, 2, identity->vendor);
	pci_config_set(function, PCI_DEVICE_ID, 2, identity->device);
	pci_config_set(function, PCI_REVISION_ID, 1, identity->revision);
	pci_config_set(function, PCI_CLASS_CODE, 3, identity->class_code);
	pci_config_set(function, PCI_SUBSYSTEM_VENDOR_ID, 2, identity->subsystem_vendor);
	pci_config_set(function, PCI_SUBSYSTEM_ID, 2, identity->subsystem);
	pci_config_allow(function, PCI_COMMAND, 2, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_INTX_OFF);
	pci_config_allow(function, PCI_CACHE_LINE_SIZE, 1, 0xff);
	pci_config_allow(function, PCI_INTERRUPT_LINE, 1, 0xff);
}

void pci_function_destroy(struct pci_function *function)
{
	pci_msix_destroy(function);
}

void pci_function_reset(struct pci_function *function)
{
	for (unsigned i = 0; i < PCI_CONFIG_SIZE; i++)
		function->config[i] &= (uint8_t)~function->writable[i];
	pci_msix_reset(function);
}

int pci_add_capability(struct pci_function *function, uint8_t id, unsigned size)
{
	const unsigned offset = function->capabilities_end;
	const unsigned link = function->last_capability ? function->last_capability + 1 : PCI_CAPABILITIES;

	if (size > PCI_LEGACY_END - offset)
		return -ENOSPC;
	pci_config_set(function, offset, 1, id);
	pci_config_set(function, link, 1, offset);
	pci_config_set(function, PCI_STATUS, 2, pci_config_get(function, PCI_STATUS, 2) | PCI_STATUS_CAP_LIST);
	function->last_capability = offset;
	function->capabilities_end = (offset + size + 3) & ~3u;
	return (int)offset;
}

/* The guest learns the size from the bits that it cannot set. */
void pci_add_bar(struct pci_function *function, unsigned index, uint32_t size, const struct pci_bar_ops *ops,
		 void *owner)
{
	struct pci_bar *bar = &function->bars[index];

	bar->ops = ops;
	bar->owner = owner;
	bar->size = size < BAR_MIN_SIZE ? BAR_MIN_SIZE : size;
	pci_config_allow(function, PCI_BAR0 + BAR_WIDTH * index, BAR_WIDTH, ~(bar->size - 1) & BAR_ADDRESS_MASK);
}

uint32_t pci_devid(const struct pci_function *function)
{
	return function->slot << 3;
}

bool pci_is_bus_master(const struct pci_function *function)
{
	return pci_config_get(function, PCI_COMMAND, 2) & PCI_COMMAND_MASTER;
}

/* ---- Access to one function ------------------------------------------------------------ */

/* @offset + @width is within the space. */
static uint32_t read_config(struct pci_function *function, unsigned offset, unsigned width)
{
	if (function->ops && function->ops->before_config_read)
		function->ops->before_config_read(function->owner, offset, width);
	return pci_config_get(function, offset, width);
}

static void write_config(struct pci_function *function, unsigned offset, unsigned width, uint32_t value)
{
	uint8_t bytes[4];

	set_bytes(bytes, width, value);
	for (unsigned i = 0; i < width; i++) {
		const uint8_t mask = function->writable[offset + i];
		uint8_t *byte = &function->config[offset + i];

		*byte = (uint8_t)((*byte & ~mask) | (bytes[i] & mask));
	}
	/* The command register's Bus Master Enable is a part of what MSI-X asks, wherever the write was. */
	pci_msix_config_changed(function);
	if (function->ops && function->ops->after_config_write)
		function->ops->after_config_write(function->owner, offset, width);
}

static const struct pci_bar *find_registers(const struct pci_function *function, unsigned index, uint32_t offset,
					    unsigned width)
{
	const struct pci_bar *bar;

	if (index >= PCI_NUM_BARS)
		return NULL;
	bar = &function->bars[index];
	return bar->ops && offset < bar->size && width <= bar->size - offset ? bar : NULL;
}

bool pci_bar_read(struct pci_function *function, unsigned index, uint32_t offset, unsigned width, uint32_t *value)
{
	const struct pci_bar *bar = find_registers(function, index, offset, width);

	if (bar)
		*value = bar->ops->read(bar->owner, offset, width);
	return bar;
}

bool pci_bar_write(struct pci_function *function, unsigned index, uint32_t offset, unsigned width, uint32_t value)
{
	const struct pci_bar *bar = find_registers(function, index, offset, width);

	if (bar)
		bar->ops->write(bar->owner, offset, width, value);
	return bar;
}

/* ---- Saving and loading ------------------------------------------------------------------ */

void pci_function_save(const struct pci_function *function, struct snapshot_out *out)
{
	put_data(out, function->config, PCI_CONFIG_SIZE);
	pci_msix_save(function, out);
}

/* What the guest cannot write says what kind of function this is. */
void pci_function_load(struct pci_function *function, struct snapshot_in *in)
{
	uint8_t config[PCI_CONFIG_SIZE];

	get_data(in, config, sizeof(config));
	for (unsigned i = 0; i < PCI_CONFIG_SIZE; i++) {
		if ((config[i] ^ function->config[i]) & ~function->writable[i]) {
			snapshot_in_wrong(in, "it is another kind of device, or has other queues or vectors");
			return;
		}
	}
	memcpy(function->config, config, sizeof(config));
	pci_msix_load(function, in);
}

/* ---- The host ------------------------------------------------------------------------------ */

void pci_host_init(struct pci_host *host, struct machine *machine, struct vgic_routes *routes,
		   struct vgic_irqfds *irqfds)
{
	memset(host, 0, sizeof(*host));
	host->machine = machine;
	host->routes = routes;
	host->irqfds = irqfds;
}

int pci_add_function(struct pci_host *host, struct pci_function *function)
{
	for (unsigned slot = 1; slot < PCI_NUM_SLOTS; slot++) {
		if (host->slots[slot])
			continue;
		host->slots[slot] = function;
		function->slot = slot;
		function->host = host;
		return 0;
	}
	return -ENOSPC;
}

void pci_remove_function(struct pci_host *host, struct pci_function *function)
{
	if (host->slots[function->slot] == function)
		host->slots[function->slot] = NULL;
}

static uint64_t all_ones(unsigned width)
{
	return UINT64_MAX >> (64 - 8 * width);
}

/* The function that an ECAM offset names, or NULL. An access may not go past its end into the next one. */
static struct pci_function *find_by_ecam(const struct pci_host *host, uint64_t offset, unsigned width)
{
	const unsigned number = (offset >> ECAM_FUNCTION_SHIFT) & 7;
	const uint64_t slot = offset >> ECAM_SLOT_SHIFT;

	if (slot >= PCI_NUM_SLOTS || number != 0 || offset % PCI_CONFIG_SIZE + width > PCI_CONFIG_SIZE)
		return NULL;
	return host->slots[slot];
}

uint64_t pci_ecam_read(void *owner, uint64_t offset, unsigned width)
{
	struct pci_function *function = find_by_ecam(owner, offset, width);

	return function ? read_config(function, offset % PCI_CONFIG_SIZE, width) : all_ones(width);
}

void pci_ecam_write(void *owner, uint64_t offset, unsigned width, uint64_t value)
{
	struct pci_function *function = find_by_ecam(owner, offset, width);

	if (function)
		write_config(function, offset % PCI_CONFIG_SIZE, width, (uint32_t)value);
}

/*
 * The function and BAR behind an address in the window. The guest may lay BARs over each other, or half out of the
 * window: the first one that has the address answers.
 */
static struct pci_function *find_by_address(const struct pci_host *host, uint64_t address, unsigned *index,
					    uint32_t *offset)
{
	for (unsigned slot = 0; slot < PCI_NUM_SLOTS; slot++) {
		struct pci_function *function = host->slots[slot];

		if (!function || !(pci_config_get(function, PCI_COMMAND, 2) & PCI_COMMAND_MEMORY))
			continue;
		for (unsigned i = 0; i < PCI_NUM_BARS; i++) {
			const uint64_t base = pci_config_get(function, PCI_BAR0 + BAR_WIDTH * i, BAR_WIDTH) &
					      BAR_ADDRESS_MASK;

			if (!function->bars[i].ops || address < base || address - base >= function->bars[i].size)
				continue;
			*index = i;
			*offset = (uint32_t)(address - base);
			return function;
		}
	}
	return NULL;
}

uint64_t pci_window_read(void *owner, uint64_t window_offset, unsigned width)
{
	struct pci_function *function;
	uint32_t value = (uint32_t)all_ones(width);
	uint32_t offset = 0;
	unsigned index = 0;

	function = find_by_address(owner, PCI_WINDOW_BASE + window_offset, &index, &offset);
	if (function)
		pci_bar_read(function, index, offset, width, &value);
	return value;
}

void pci_window_write(void *owner, uint64_t window_offset, unsigned width, uint64_t value)
{
	struct pci_function *function;
	uint32_t offset = 0;
	unsigned index = 0;

	function = find_by_address(owner, PCI_WINDOW_BASE + window_offset, &index, &offset);
	if (function)
		pci_bar_write(function, index, offset, width, (uint32_t)value);
}
