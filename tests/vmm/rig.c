/* SPDX-License-Identifier: MIT */
/* rig.c - a PCI host without a machine, and a driver's end of a virtqueue. */
#include "rig.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vgic/irqfd.h>
#include <vgic/msix.h>
#include <vgic/vgic.h>

#include "gic.h"
#include "util.h"

#define FILL 0x5a

/* ---- What the devices reach for --------------------------------------------------- */

/* In place of the machine's, which writes its trace too. */
int gic_signal_msix(struct machine *machine, struct vgic_msix *msix, uint32_t devid, unsigned vector)
{
	(void)machine;
	(void)devid;
	return vgic_msix_signal(msix, vector);
}

static char last_report[256];
static atomic_uint num_reports;

/* In place of the program's. One thread at a time has something to say. */
void message(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(last_report, sizeof(last_report), format, args);
	va_end(args);
	atomic_fetch_add(&num_reports, 1);
}

const char *rig_last_report(void)
{
	return last_report;
}

unsigned rig_num_reports(void)
{
	return atomic_load(&num_reports);
}

/* ---- The controller -------------------------------------------------------------------- */

#define GICD_ISPENDR1 0x204u
#define GICD_ICPENDR1 0x284u
#define GICD_ICFGR2   0xc08u
#define FIRST_INTID   32u

static void create_controller(struct rig *rig)
{
	const struct vgic_vcpu_config vcpu = { .id = 0 };
	struct vgic_irqfds_config irqfds;
	struct vgic_config config;

	vgic_config_init(&config, VGIC_PROFILE_NATIVE);
	config.features |= VGIC_FEATURE_MBIS;
	config.num_vcpus = 1;
	config.vcpus = &vcpu;
	config.has_dist_base = true;
	config.dist_base = RIG_DOORBELL & ~0xffffull;
	assert_int_equal(vgic_create(&config, &rig->vgic), 0);
	/* Edge-triggered: a message stays pending until it is taken. */
	vgic_dist_write(rig->vgic, GICD_ICFGR2, 4, 0xaaaaaaaa);
	vgic_dist_write(rig->vgic, GICD_ICFGR2 + 4, 4, 0xaaaaaaaa);
	assert_int_equal(vgic_routes_create(rig->vgic, RIG_GSIS, &rig->routes), 0);
	vgic_irqfds_config_init(&irqfds);
	assert_int_equal(vgic_irqfds_create(rig->routes, &irqfds, &rig->irqfds), 0);
}

uint32_t rig_messages(struct rig *rig)
{
	uint64_t pending = 0;

	vgic_dist_read(rig->vgic, GICD_ISPENDR1, 4, &pending);
	return (uint32_t)pending;
}

bool rig_took(struct rig *rig, unsigned number)
{
	const uint32_t bit = 1u << number;

	if (!(rig_messages(rig) & bit))
		return false;
	vgic_dist_write(rig->vgic, GICD_ICPENDR1, 4, bit);
	return true;
}

/* ---- The bus -------------------------------------------------------------------------- */

void rig_start(struct rig *rig)
{
	rig->ram.host = malloc(RIG_RAM_SIZE);
	assert_non_null(rig->ram.host);
	memset(rig->ram.host, FILL, RIG_RAM_SIZE);
	rig->ram.base = RIG_RAM_BASE;
	rig->ram.size = RIG_RAM_SIZE;
	create_controller(rig);
	pci_host_init(&rig->host, NULL, rig->routes, rig->irqfds);
	atomic_store(&num_reports, 0);
	last_report[0] = '\0';
}

void rig_stop(struct rig *rig)
{
	vgic_irqfds_destroy(rig->irqfds);
	vgic_routes_destroy(rig->routes);
	vgic_destroy(rig->vgic);
	free(rig->ram.host);
}

uint32_t rig_config_read(struct rig *rig, unsigned slot, unsigned offset, unsigned width)
{
	return (uint32_t)pci_ecam_read(&rig->host, ((uint64_t)slot << 15) + offset, width);
}

void rig_config_write(struct rig *rig, unsigned slot, unsigned offset, unsigned width, uint32_t value)
{
	pci_ecam_write(&rig->host, ((uint64_t)slot << 15) + offset, width, value);
}

unsigned rig_find_capability(struct rig *rig, unsigned slot, uint8_t id, unsigned nth)
{
	unsigned at = rig_config_read(rig, slot, PCI_CAPABILITIES, 1);

	for (unsigned steps = 0; at && steps < 48; steps++) {
		if (rig_config_read(rig, slot, at, 1) == id && nth-- == 0)
			return at;
		at = rig_config_read(rig, slot, at + 1, 1);
	}
	return 0;
}

void rig_place_bar(struct rig *rig, unsigned slot, unsigned index, uint32_t address)
{
	rig_config_write(rig, slot, PCI_BAR0 + 4 * index, 4, address);
}

uint32_t rig_read(struct rig *rig, uint64_t address, unsigned width)
{
	return (uint32_t)pci_window_read(&rig->host, address - PCI_WINDOW_BASE, width);
}

void rig_write(struct rig *rig, uint64_t address, unsigned width, uint32_t value)
{
	pci_window_write(&rig->host, address - PCI_WINDOW_BASE, width, value);
}

void rig_set_vector(struct rig *rig, uint64_t table, unsigned vector, unsigned number)
{
	const uint64_t entry = table + 16ull * vector;

	rig_write(rig, entry, 4, (uint32_t)RIG_DOORBELL);
	rig_write(rig, entry + 4, 4, 0);
	rig_write(rig, entry + 8, 4, FIRST_INTID + number);
	rig_write(rig, entry + 12, 4, 0);
}

/* ---- Rings ------------------------------------------------------------------------------ */

void *rig_at(const struct guest_ram *ram, uint64_t address)
{
	return ram->host + (address - ram->base);
}

static uint64_t align_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

uint64_t ring_init(struct ring *ring, const struct guest_ram *ram, uint64_t base, uint16_t size)
{
	uint64_t end;

	memset(ring, 0, sizeof(*ring));
	ring->ram = ram;
	ring->size = size;
	ring->desc = base;
	ring->avail = base + 16ull * size;
	ring->used = align_up(ring->avail + 6 + 2ull * size, 4);
	end = align_up(ring->used + 6 + 8ull * size, 16);
	memset(rig_at(ram, base), 0, end - base);
	return end;
}

struct virtio_queue_setup ring_setup(const struct ring *ring)
{
	return (struct virtio_queue_setup){
		.size = ring->size,
		.desc = ring->desc,
		.avail = ring->avail,
		.used = ring->used,
	};
}

/* All hosts that the tests run on are little-endian, as the rings are. */
void ring_put(const struct guest_ram *ram, uint64_t table, unsigned index, uint64_t address, uint32_t length,
	      uint16_t flags, uint16_t next)
{
	unsigned char *at = rig_at(ram, table + 16ull * index);

	memcpy(at, &address, 8);
	memcpy(at + 8, &length, 4);
	memcpy(at + 12, &flags, 2);
	memcpy(at + 14, &next, 2);
}

static uint16_t *avail_field(const struct ring *ring, unsigned offset)
{
	return rig_at(ring->ram, ring->avail + offset);
}

void ring_set_index(struct ring *ring, uint16_t index)
{
	ring->offered = index;
	__atomic_store_n(avail_field(ring, 2), index, __ATOMIC_RELEASE);
}

void ring_set_flags(struct ring *ring, uint16_t flags)
{
	__atomic_store_n(avail_field(ring, 0), flags, __ATOMIC_SEQ_CST);
}

void ring_offer(struct ring *ring, uint16_t head)
{
	*avail_field(ring, 4 + 2u * (ring->offered % ring->size)) = head;
	ring_set_index(ring, (uint16_t)(ring->offered + 1));
}

bool ring_has_more(const struct ring *ring)
{
	const uint16_t *index = rig_at(ring->ram, ring->used + 2);

	return __atomic_load_n(index, __ATOMIC_ACQUIRE) != ring->taken;
}

bool ring_take(struct ring *ring, uint32_t *id, uint32_t *length)
{
	const unsigned char *used = rig_at(ring->ram, ring->used);
	const uint16_t *index = (const void *)(used + 2);
	const unsigned char *entry = used + 4 + 8u * (ring->taken % ring->size);

	if (__atomic_load_n(index, __ATOMIC_ACQUIRE) == ring->taken)
		return false;
	memcpy(id, entry, 4);
	memcpy(length, entry + 4, 4);
	ring->taken++;
	return true;
}

uint64_t rig_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}
