/* SPDX-License-Identifier: MIT */
/*
 * MSI-X of a PCI function: the capability, the table and the PBA in a BAR, and the
 * way of an event from the device to the interrupt controller.
 *
 * The guest writes the table in the thread that runs the vCPUs, devices raise
 * vectors in theirs. The lock of struct pci_msix is held over the sending of a
 * message too: when the guest has masked a vector and goes on, no message of it
 * comes any more.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gic.h"
#include "pci.h"
#include "pci_internal.h"

#define MSIX_CAPABILITY_SIZE 12u
#define MSIX_CONTROL         2u /* offsets in the capability */
#define MSIX_TABLE           4u
#define MSIX_PBA             8u

#define MSIX_CONTROL_ENABLE        0x8000u
#define MSIX_CONTROL_FUNCTION_MASK 0x4000u

#define ENTRY_SIZE       16u
#define BITS_PER_WORD    64u
#define MIN_BAR_SIZE     0x1000u
#define LOW_ADDRESS_MASK (~3u) /* the lowest two bits of a message's address are 0 */

static size_t pba_words(unsigned num_vectors)
{
	return (num_vectors + BITS_PER_WORD - 1) / BITS_PER_WORD;
}

/* ---- Sending. All of it with the lock held. ------------------------------------------- */

static bool is_masked(const struct pci_msix *msix, unsigned vector)
{
	return msix->function_masked || (msix->entries[vector].control & PCI_MSIX_ENTRY_MASKED);
}

static void send_message(const struct pci_function *function, unsigned vector)
{
	const struct pci_msix_entry *entry = &function->msix.entries[vector];
	const uint64_t address = (uint64_t)entry->address_high << 32 | entry->address_low;

	gic_send_message(function->machine, pci_devid(function), address, entry->data);
}

/* What was held back by a mask goes out when it is gone. */
static void send_if_pending(struct pci_function *function, unsigned vector)
{
	struct pci_msix *msix = &function->msix;
	uint64_t *word = &msix->pending[vector / BITS_PER_WORD];
	const uint64_t bit = UINT64_C(1) << vector % BITS_PER_WORD;

	if (!msix->enabled || is_masked(msix, vector) || !(*word & bit))
		return;
	*word &= ~bit;
	send_message(function, vector);
}

static void forget_pending(struct pci_msix *msix)
{
	memset(msix->pending, 0, pba_words(msix->num_vectors) * sizeof(*msix->pending));
}

void pci_msix_raise(struct pci_function *function, unsigned vector)
{
	struct pci_msix *msix = &function->msix;

	pthread_mutex_lock(&msix->lock);
	if (msix->enabled && vector < msix->num_vectors) {
		if (is_masked(msix, vector))
			msix->pending[vector / BITS_PER_WORD] |= UINT64_C(1) << vector % BITS_PER_WORD;
		else
			send_message(function, vector);
	}
	pthread_mutex_unlock(&msix->lock);
}

/* ---- The capability -------------------------------------------------------------------- */

static uint32_t control_bits(const struct pci_function *function)
{
	return pci_config_get(function, function->msix.capability + MSIX_CONTROL, 2);
}

bool pci_msix_is_enabled(const struct pci_function *function)
{
	return function->msix.num_vectors && (control_bits(function) & MSIX_CONTROL_ENABLE);
}

void pci_msix_config_changed(struct pci_function *function)
{
	struct pci_msix *msix = &function->msix;
	bool function_masked;
	bool enabled;

	if (!msix->num_vectors)
		return;
	/* A message is a write to memory: only a bus master makes one. */
	enabled = pci_msix_is_enabled(function) && pci_is_bus_master(function);
	function_masked = control_bits(function) & MSIX_CONTROL_FUNCTION_MASK;
	if (enabled == msix->enabled && function_masked == msix->function_masked)
		return; /* this thread is the only one that writes them */
	pthread_mutex_lock(&msix->lock);
	msix->enabled = enabled;
	msix->function_masked = function_masked;
	if (!pci_msix_is_enabled(function))
		forget_pending(msix);
	for (unsigned i = 0; i < msix->num_vectors; i++)
		send_if_pending(function, i);
	pthread_mutex_unlock(&msix->lock);
}

/* ---- Table and PBA ----------------------------------------------------------------------- */

static uint32_t read_entry(const struct pci_msix_entry *entry, uint32_t field)
{
	switch (field) {
	case 0:
		return entry->address_low;
	case 4:
		return entry->address_high;
	case 8:
		return entry->data;
	default:
		return entry->control;
	}
}

static void write_entry(struct pci_msix_entry *entry, uint32_t field, uint32_t value)
{
	switch (field) {
	case 0:
		entry->address_low = value & LOW_ADDRESS_MASK;
		break;
	case 4:
		entry->address_high = value;
		break;
	case 8:
		entry->data = value;
		break;
	default:
		entry->control = value & PCI_MSIX_ENTRY_MASKED;
		break;
	}
}

/* The word of table or PBA at an aligned @offset; reserved ones are 0. */
static uint32_t read_word(const struct pci_msix *msix, uint32_t offset)
{
	uint32_t within;

	if (offset < msix->num_vectors * ENTRY_SIZE)
		return read_entry(&msix->entries[offset / ENTRY_SIZE], offset % ENTRY_SIZE);
	if (offset < msix->pba_offset)
		return 0;
	within = offset - msix->pba_offset;
	if (within / 8 >= pba_words(msix->num_vectors))
		return 0;
	return (uint32_t)(msix->pending[within / 8] >> (8 * (within % 8)));
}

static uint32_t read_registers(void *owner, uint32_t offset, unsigned width)
{
	struct pci_function *function = owner;
	struct pci_msix *msix = &function->msix;
	uint32_t word;

	/* Only words and double words are defined. */
	if (width != 4 || offset % 4)
		return 0;
	pthread_mutex_lock(&msix->lock);
	word = read_word(msix, offset);
	pthread_mutex_unlock(&msix->lock);
	return word;
}

/* The PBA is read-only. */
static void write_registers(void *owner, uint32_t offset, unsigned width, uint32_t value)
{
	struct pci_function *function = owner;
	struct pci_msix *msix = &function->msix;

	if (width != 4 || offset % 4 || offset >= msix->num_vectors * ENTRY_SIZE)
		return;
	pthread_mutex_lock(&msix->lock);
	write_entry(&msix->entries[offset / ENTRY_SIZE], offset % ENTRY_SIZE, value);
	send_if_pending(function, offset / ENTRY_SIZE);
	pthread_mutex_unlock(&msix->lock);
}

static const struct pci_bar_ops registers = {
	.read = read_registers,
	.write = write_registers,
};

/* ---- Life -------------------------------------------------------------------------------- */

void pci_msix_init(struct pci_function *function)
{
	pthread_mutex_init(&function->msix.lock, NULL);
}

void pci_msix_destroy(struct pci_function *function)
{
	pthread_mutex_destroy(&function->msix.lock);
	free(function->msix.entries);
	free(function->msix.pending);
}

void pci_msix_reset(struct pci_function *function)
{
	struct pci_msix *msix = &function->msix;

	if (!msix->num_vectors)
		return;
	pthread_mutex_lock(&msix->lock);
	msix->enabled = false;
	msix->function_masked = false;
	forget_pending(msix);
	for (unsigned i = 0; i < msix->num_vectors; i++)
		msix->entries[i] = (struct pci_msix_entry){ .control = PCI_MSIX_ENTRY_MASKED };
	pthread_mutex_unlock(&msix->lock);
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
	struct pci_msix *msix = &function->msix;
	int capability;

	msix->entries = calloc(num_vectors, sizeof(*msix->entries));
	msix->pending = calloc(pba_words(num_vectors), sizeof(*msix->pending));
	if (!msix->entries || !msix->pending)
		return -ENOMEM; /* pci_msix_destroy() frees what there is */
	capability = pci_add_capability(function, PCI_CAP_ID_MSIX, MSIX_CAPABILITY_SIZE);
	if (capability < 0)
		return capability;
	msix->capability = (unsigned)capability;
	msix->num_vectors = num_vectors;
	/* The PBA gets the upper half, so that table and PBA are in different pages if the BAR has several. */
	msix->pba_offset = bar_size(2 * num_vectors * ENTRY_SIZE) / 2;
	pci_add_bar(function, index, 2 * msix->pba_offset, &registers, function);
	pci_config_set(function, msix->capability + MSIX_CONTROL, 2, num_vectors - 1);
	pci_config_allow(function, msix->capability + MSIX_CONTROL, 2,
			 MSIX_CONTROL_ENABLE | MSIX_CONTROL_FUNCTION_MASK);
	pci_config_set(function, msix->capability + MSIX_TABLE, 4, index);
	pci_config_set(function, msix->capability + MSIX_PBA, 4, msix->pba_offset | index);
	pci_msix_reset(function);
	return 0;
}
