/* SPDX-License-Identifier: MIT */
/*
 * guest_its.h - a guest's driver for LPIs and an ITS, for benchmarks and tests.
 *
 * It does what an operating system's driver does at boot: it reads the ID
 * registers, allocates tables and a command queue in the guest's memory, writes
 * their addresses into registers, and sends commands. It reaches the controller
 * only through vgic_dist_*, vgic_redist_*, vgic_its_* and vgic_icc_*.
 *
 * The guest's memory is an array of bytes. One thread at a time drives one ITS.
 * Functions return 0 or a negative errno.
 */
#ifndef GUEST_ITS_H
#define GUEST_ITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vgic/vgic.h>

/* ---- The guest's memory ---- */

struct guest_ram {
	uint8_t *bytes;
	uint64_t base, size; /* guest-physical */
	uint64_t used;       /* of size, by guest_ram_alloc() */
};

/* Zeroed memory at @base. Returns 0 or -ENOMEM. */
int guest_ram_init(struct guest_ram *ram, uint64_t base, uint64_t size);
void guest_ram_free(struct guest_ram *ram);

/* The guest-physical address of a new piece of memory that is a multiple of @align, a power of two; 0 if there is none. */
uint64_t guest_ram_alloc(struct guest_ram *ram, uint64_t size, uint64_t align);

/* The host's address of guest memory, or NULL if it is not all there. */
void *guest_ram_at(const struct guest_ram *ram, uint64_t address, uint64_t size);

/* For the callbacks of struct vgic_ops. Return 0 or -EFAULT. An aligned access of 8 bytes is one access. */
int guest_ram_read(const struct guest_ram *ram, uint64_t address, void *buffer, size_t size);
int guest_ram_write(struct guest_ram *ram, uint64_t address, const void *buffer, size_t size);

/* ---- Distributor, redistributors, CPU interfaces ---- */

struct guest_gic {
	struct vgic *vgic;
	struct guest_ram *ram;
	unsigned id_bits;         /* of an INTID: GICD_TYPER.IDbits */
	uint64_t config_table;    /* one byte for each LPI: priority and enable */
	uint64_t *pending_tables; /* one for each vCPU */
};

/*
 * Boot: Group 1 enabled at the distributor, every vCPU awake with all priorities let through, LPIs enabled with the
 * tables that they need, all of which have @property.
 */
int guest_gic_boot(struct guest_gic *gic, struct vgic *vgic, struct guest_ram *ram, uint8_t property);
void guest_gic_free(struct guest_gic *gic);

/* Write an LPI's byte in the configuration table. In force after INV or INVALL. */
int guest_gic_configure_lpi(struct guest_gic *gic, uint32_t intid, uint8_t property);

/* GICR_TYPER.Processor_Number: what MAPC and MOVALL name a redistributor by. */
uint32_t guest_gic_processor_number(struct vgic_vcpu *vcpu);

/* ---- An ITS ---- */

struct guest_its {
	struct vgic_its *its;
	struct guest_ram *ram;
	uint64_t queue, queue_size; /* guest-physical address, bytes */
	uint64_t write_offset;      /* GITS_CWRITER */
	unsigned itt_entry_size;    /* bytes */
};

/* Boot: command queue, device and collection tables, Enabled=1. @device_id_bits of the device table (flat). */
int guest_its_boot(struct guest_its *g, struct vgic_its *its, struct guest_ram *ram, unsigned device_id_bits);

/* GITS_CTLR.Enabled; switching off waits for Quiescent. */
int guest_its_enable(struct guest_its *g, bool enable);

/* Put a command into the queue, wait until it is done. -EIO: the queue does not move. */
int guest_its_send(struct guest_its *g, const uint64_t command[4]);

int guest_its_mapd(struct guest_its *g, uint32_t devid, unsigned event_bits, uint64_t itt);
int guest_its_unmapd(struct guest_its *g, uint32_t devid);
int guest_its_mapc(struct guest_its *g, uint32_t icid, uint32_t rdbase);
int guest_its_unmapc(struct guest_its *g, uint32_t icid);
int guest_its_mapti(struct guest_its *g, uint32_t devid, uint32_t eventid, uint32_t intid, uint32_t icid);
int guest_its_mapi(struct guest_its *g, uint32_t devid, uint32_t eventid, uint32_t icid);
int guest_its_movi(struct guest_its *g, uint32_t devid, uint32_t eventid, uint32_t icid);
int guest_its_discard(struct guest_its *g, uint32_t devid, uint32_t eventid);
int guest_its_int(struct guest_its *g, uint32_t devid, uint32_t eventid);
int guest_its_clear(struct guest_its *g, uint32_t devid, uint32_t eventid);
int guest_its_inv(struct guest_its *g, uint32_t devid, uint32_t eventid);
int guest_its_invall(struct guest_its *g, uint32_t icid);
int guest_its_movall(struct guest_its *g, uint32_t from_rdbase, uint32_t to_rdbase);
int guest_its_sync(struct guest_its *g, uint32_t rdbase);

/* Memory for an ITT, as MAPD takes it; 0 if there is none left. */
uint64_t guest_its_alloc_itt(struct guest_its *g, unsigned event_bits);

#endif /* GUEST_ITS_H */
