/* SPDX-License-Identifier: MIT */
/*
 * its.h - an Interrupt Translation Service, as the rest of the library uses it.
 *
 *   its.c       the frame, signals, reset      its_map.[ch]  translations
 *   its_cmd.c   the command queue              its_tables.c  bounds of the guest's tables
 */
#ifndef VGIC_ITS_H
#define VGIC_ITS_H

#include "frame.h"
#include "its_map.h"
#include "lpi.h"
#include "vgic_internal.h"

#define ITS_MAX_COLLECTIONS 65536u
#define ITS_ENTRY_SIZE      8u /* of the device, collection and interrupt translation tables */
#define ITS_COMMAND_SIZE    32u
#define ITS_ITT_ADDRESS     UINT64_C(0x000fffffffffff00) /* of a device */
#define ITS_TABLE_PAGE      UINT64_C(0x10000)            /* of the guest's tables */

/* GITS_BASER0 and 1; the others are not implemented. */
enum its_table {
	ITS_TABLE_DEVICES,
	ITS_TABLE_COLLECTIONS,
	ITS_NUM_TABLES,
};

/* A command, and how far it has got. */
struct its_command {
	bool active;
	bool begun; /* its handler has been called before */
	uint64_t dw[4];
	uint32_t at;          /* next node, of a command that goes through all translations */
	struct lpi_walk walk; /* of a command that goes through LPIs */
};

struct vgic_its {
	/* Read by signallers. */
	_Alignas(CACHE_LINE) struct vgic *vgic;
	_Atomic bool enabled; /* signals and commands are taken; written under config_lock */
	struct its_map map;

	/* Constant. */
	uint32_t index;
	bool has_base;
	uint64_t base;
	uint32_t device_id_bits;
	uint32_t event_id_bits;

	/* Under config_lock. */
	uint64_t cbaser, cwriter, creadr;
	uint64_t baser[ITS_NUM_TABLES];
	uint16_t *collections; /* vCPU index by ICID, or IRQ_NO_TARGET */
	struct its_command command;
	bool enable_wanted;    /* GITS_CTLR.Enabled: in force when devices of an earlier table are gone */
	bool quiescing;        /* Enabled was cleared: translations are renewed, from... */
	uint32_t quiesce_at;   /* ...this node on */
	bool dropping_devices; /* GITS_BASER0.Valid was cleared: devices go, from... */
	uint32_t drop_at;      /* ...this one on */
	bool displacing_lpis;  /* GITS_BASER1.Valid was cleared: translations lead nowhere, from... */
	uint32_t displace_at;  /* ...this node on */

	/* Statistics. */
	_Atomic uint64_t commands;
	_Atomic uint64_t errors[VGIC_NUM_ITS_ERRORS];
	_Atomic uint64_t dropped_its_off, dropped_unmapped_event, dropped_unmapped_collection, dropped_lpis_disabled;
};

extern const struct frame its_frame;

/* Make an ITS; returns NULL if there is no memory. */
struct vgic_its *its_new(struct vgic *vgic, uint32_t index, const struct vgic_its_config *config);
void its_free(struct vgic_its *its);
bool its_config_is_sane(const struct vgic_its_config *config);

/* What answers to a device's write at a guest-physical address. Any thread. */
enum doorbell {
	DOORBELL_NONE,
	DOORBELL_ITS,    /* GITS_TRANSLATER of *its */
	DOORBELL_SETSPI, /* GICD_SETSPI_NSR */
};

enum doorbell its_find_doorbell(struct vgic *vgic, uint64_t address, struct vgic_its **its);

/* Under config_lock. */
void its_reset(struct vgic_its *its);

/* The same where every LPI is reset afterwards, so that none has to be unmapped by itself. */
void its_reset_with_lpis(struct vgic_its *its);

/* Enabled comes into force if the guest has written it, nothing of an earlier table is left, and no save goes on. */
void its_update_enabled(struct vgic_its *its);

/* What registers have begun. Under config_lock; true if nothing is left. */
bool its_run_work(struct vgic_its *its, int *steps);

/* The bits of GITS_BASER<n> that can be written. */
uint64_t its_baser_writable(enum its_table table);

/* Remove every device and translation, at once. Under config_lock. */
void its_drop_all(struct vgic_its *its);

/* All of it at once, for the VMM; the queue goes on to the end of the command that is under way. Under config_lock. */
void its_settle(struct vgic_its *its);

/* ---- its_cmd.c, under config_lock ---- */

/* Execute the queue, up to *steps. Returns true if it is empty. */
bool its_run_queue(struct vgic_its *its, int *steps);

/* Finish the command that is under way, and begin no other. */
void its_finish_command(struct vgic_its *its);

/* Remove all translations of a device, then the device. True if it is gone. */
bool its_drop_device(struct vgic_its *its, struct its_device *device, int *steps);

/* ---- its_tables.c, under config_lock ---- */

uint64_t its_queue_size_of(uint64_t cbaser);         /* bytes; 0: there is none */
uint64_t its_queue_size(const struct vgic_its *its); /* the same of this ITS */
bool its_table_is_valid(const struct vgic_its *its, enum its_table table);

/* Where the guest's tables are, and how many entries they have; of an indirect table, level 1. */
uint64_t its_table_address(const struct vgic_its *its, enum its_table table);
uint64_t its_table_entries(const struct vgic_its *its, enum its_table table);

/* Where the entry of a DeviceID is. Returns 0, -ENOENT if there is none, or -EFAULT if level 1 cannot be read. */
int its_device_entry_address(struct vgic_its *its, uint32_t devid, uint64_t *address);

/* Does the guest's device table have an entry for a DeviceID? */
bool its_device_id_is_valid(struct vgic_its *its, uint32_t devid);

/* ICIDs below this one have an entry in the guest's collection table. */
uint32_t its_num_collections(const struct vgic_its *its);

#endif /* VGIC_ITS_H */
