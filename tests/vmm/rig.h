/* SPDX-License-Identifier: MIT */
/*
 * rig.h - what the tests of the VMM's devices share: a PCI host and an interrupt
 * controller without a machine around them, guest memory that AddressSanitizer
 * watches from both ends, and the driver's end of a virtqueue. Everything goes in as
 * a guest would write it.
 *
 * Messages go to the doorbell for message-based SPIs: rig_took() tells which came.
 */
#ifndef TESTS_VMM_RIG_H
#define TESTS_VMM_RIG_H

/* cmocka wants these before its own header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>

#include "guest_ram.h"
#include "pci.h"
#include "virtio.h"

struct vgic;
struct vgic_routes;
struct vgic_irqfds;

#define RIG_RAM_BASE 0x40000000ull
#define RIG_RAM_SIZE 0x100000ull
#define RIG_GSIS     4096u
#define RIG_RAM_END  (RIG_RAM_BASE + RIG_RAM_SIZE)

#ifdef __SANITIZE_THREAD__
#define RIG_TSAN true
#else
#define RIG_TSAN false
#endif

struct rig {
	struct guest_ram ram;
	struct vgic *vgic;
	struct vgic_routes *routes;
	struct vgic_irqfds *irqfds;
	struct pci_host host;
};

/* Memory is not 0 at first: what a device reads without need would be noticed. */
void rig_start(struct rig *rig);
void rig_stop(struct rig *rig);

/* Configuration space of function 0 in @slot. */
uint32_t rig_config_read(struct rig *rig, unsigned slot, unsigned offset, unsigned width);
void rig_config_write(struct rig *rig, unsigned slot, unsigned offset, unsigned width, uint32_t value);

/* The offset of the @nth capability (0: the first) with that id, or 0. */
unsigned rig_find_capability(struct rig *rig, unsigned slot, uint8_t id, unsigned nth);

/* Place BAR @index at @address of the window, and back. */
void rig_place_bar(struct rig *rig, unsigned slot, unsigned index, uint32_t address);
uint32_t rig_read(struct rig *rig, uint64_t address, unsigned width);
void rig_write(struct rig *rig, uint64_t address, unsigned width, uint32_t value);

/* Put message @number (0 to 31) into entry @vector of the table at @table, unmasked. */
#define RIG_DOORBELL 0x08000040ull
void rig_set_vector(struct rig *rig, uint64_t table, unsigned vector, unsigned number);

/* Has message @number come since the last call? And which have, as bits, without taking them. */
bool rig_took(struct rig *rig, unsigned number);
uint32_t rig_messages(struct rig *rig);

/* What the user was told last, without a newline, and how often. */
const char *rig_last_report(void);
unsigned rig_num_reports(void);

/* ---- The driver's end of a virtqueue ---------------------------------------------- */

#define DESC_NEXT     1u
#define DESC_WRITE    2u
#define DESC_INDIRECT 4u

struct ring {
	const struct guest_ram *ram;
	uint16_t size;
	uint64_t desc;
	uint64_t avail;
	uint64_t used;
	uint16_t offered;
	uint16_t taken;
};

/* A ring of @size at @base, which is aligned to 16 bytes; all zeros. Returns the address behind it. */
uint64_t ring_init(struct ring *ring, const struct guest_ram *ram, uint64_t base, uint16_t size);
struct virtio_queue_setup ring_setup(const struct ring *ring);

/* Descriptor @index of a table at @table: the ring's own, or an indirect one. */
void ring_put(const struct guest_ram *ram, uint64_t table, unsigned index, uint64_t address, uint32_t length,
	      uint16_t flags, uint16_t next);

/* Put a chain into the driver's ring, as a driver does. */
void ring_offer(struct ring *ring, uint16_t head);
void ring_set_index(struct ring *ring, uint16_t index);
void ring_set_flags(struct ring *ring, uint16_t flags);

/* Has the device given back more than was taken? If so, what. */
bool ring_take(struct ring *ring, uint32_t *id, uint32_t *length);

/* Only whether: a plain load, with no barrier before it. */
bool ring_has_more(const struct ring *ring);

void *rig_at(const struct guest_ram *ram, uint64_t address);

/* splitmix64. */
uint64_t rig_random(uint64_t *state);

#define RUN_TESTS(name, tests)                                                                                         \
	(cmocka_set_message_output(CM_OUTPUT_TAP), cmocka_run_group_tests_name((name), (tests), NULL, NULL))

#endif /* TESTS_VMM_RIG_H */
