/* SPDX-License-Identifier: MIT */
/*
 * rig.h - a controller whose vCPUs and devices are tasks of the scheduler.
 *
 * Every interrupt has an account. Its devices raise the number of its signal before
 * they signal; an acknowledge notes the number that it finds. What must hold when all
 * is at rest: no path that is open has something pending, the last signal that was
 * accepted has been seen, and there were no more acknowledges than signals. A device
 * in lockstep waits for its acknowledge before it signals again: then there are as many.
 */
#ifndef SCHEDULE_RIG_H
#define SCHEDULE_RIG_H

#include <vgic/route.h>
#include <vgic/state.h>
#include <vgic/vgic.h>

#include "gic_regs.h"
#include "schedule.h"

#define RIG_MAX_VCPUS  3u
#define RIG_NUM_EVENTS 4u /* of device 1, to LPIs 8192 and up */
#define RIG_FIRST_LPI  8192u
#define RIG_FIRST_SPI  40u /* edge-triggered, at vCPU 0, priority 0xa0 */
#define RIG_NUM_SPIS   4u
#define RIG_SGI        3u
#define RIG_PPI        20u
#define RIG_DEVICE     1u
#define RIG_ITS_BASE   UINT64_C(0x08080000)

struct rig;

struct account {
	uint32_t intid;
	bool used;
	bool has_rwp;      /* it is closed by RWP=0: then every acknowledge that found it has returned */
	bool not_lasting;  /* what is pending may be taken away: by an unmapping, a table that is written anew */
	unsigned number;   /* of the last signal that was begun */
	unsigned accepted; /* signals that were accepted, or may have been */
	unsigned last_accepted;
	unsigned acknowledges;
	unsigned seen;  /* the largest number that an acknowledge found */
	unsigned epoch; /* odd while its path is closed for good: no acknowledge may begin and find it */
};

struct rig_vcpu {
	struct rig *rig;
	uint32_t index;
	struct vgic_vcpu *vcpu;
	struct gate wake;
};

struct rig_config {
	uint32_t num_vcpus; /* 0: 1 */
	uint32_t features;  /* beside the default ones */
	bool its;
	bool routes;
};

struct rig_task {
	const char *name;
	void (*main)(void *rig);
};

#define RIG_MAX_TASKS 3u

struct rig_scenario {
	const char *name;
	const char *what;
	struct rig_config config;
	/* Beside what the configuration says. May be NULL. */
	void (*set_up)(struct rig *rig);
	struct rig_task tasks[RIG_MAX_TASKS]; /* beside the vCPUs; those without a name are none */
	/* What else must hold at rest. May be NULL. */
	void (*check)(struct rig *rig);
	/* A vCPU has acknowledged an interrupt and not ended it. May be NULL. */
	void (*taken)(struct rig_vcpu *v, uint32_t intid);
};

struct rig {
	const struct rig_scenario *scenario;
	uint64_t seed;
	bool failed;
	struct vgic *vgic;
	struct vgic_its *its;
	struct vgic_routes *routes;
	struct rig_vcpu vcpus[RIG_MAX_VCPUS];
	uint32_t num_vcpus;
	struct account accounts[16];
	struct gate work;
	uint32_t queue_at;
	unsigned phase;  /* odd while the scenario's door is closed */
	unsigned served; /* number of the signal whose device has been served */
	unsigned events; /* that the scenario has made without an account */
	unsigned extra;  /* acknowledges that there may be beside those of the signals of an account */
};

/* Make the controller, run the scenario, check, destroy. False if something was wrong; it has been printed then. */
bool rig_run(const struct rig_scenario *scenario, uint64_t seed, bool trace);
/* Accesses that runs have made. */
uint64_t rig_steps(void);
void rig_fail(struct rig *rig, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct account *account_of(struct rig *rig, uint32_t intid);
/* A device is about to signal: the signal's number. It has, and that was accepted or not. */
unsigned account_begin(struct account *a);
void account_end(struct account *a, unsigned number, bool accepted);

/* ---- Signals, with their account ---- */

void rig_pulse(struct rig *rig, uint32_t intid);
/* 1, 0 or -EBUSY, -EAGAIN */
int rig_msi(struct rig *rig, uint32_t event);
void rig_sgi(struct rig_vcpu *from, uint32_t target_list);
/* Wait for the acknowledge of what was accepted. */
void rig_await(struct rig *rig, uint32_t intid);

/* ---- The guest ---- */

uint32_t rig_dist_read(struct rig *rig, uint32_t offset);
void rig_dist_write(struct rig *rig, uint32_t offset, uint32_t value);
uint32_t rig_redist_read(struct rig *rig, uint32_t vcpu, uint32_t offset);
void rig_redist_write(struct rig *rig, uint32_t vcpu, uint32_t offset, uint32_t value);
void rig_spi_bit(struct rig *rig, uint32_t bank, uint32_t intid);
void rig_spi_route(struct rig *rig, uint32_t intid, uint64_t irouter);
void rig_spi_priority(struct rig *rig, uint32_t intid, uint8_t priority);
void rig_spi_level(struct rig *rig, uint32_t intid);
/* Wait for RWP of the distributor, of a redistributor. */
void rig_await_dist(struct rig *rig);
void rig_await_redist(struct rig *rig, uint32_t vcpu);
uint64_t rig_icc_read(struct rig_vcpu *v, uint32_t reg);
void rig_icc_write(struct rig_vcpu *v, uint32_t reg, uint64_t value);

/* ITS commands; rig_sync() waits until they are done. */
void rig_mapd(struct rig *rig, bool valid);
void rig_mapc(struct rig *rig, uint32_t icid, uint32_t vcpu);
void rig_mapti(struct rig *rig, uint32_t event, uint32_t lpi, uint32_t icid);
void rig_movi(struct rig *rig, uint32_t event, uint32_t icid);
void rig_movall(struct rig *rig, uint32_t from, uint32_t to);
void rig_event(struct rig *rig, unsigned opcode, uint32_t event);
void rig_sync(struct rig *rig);
void rig_set_property(struct rig *rig, uint32_t lpi, uint8_t property);
/* Is it pending in the controller? In the table? */
bool rig_lpi_pending(struct rig *rig, uint32_t lpi);
bool rig_table_pending(uint32_t vcpu, uint32_t lpi);
void rig_its_enable(struct rig *rig, bool enabled);

#define RIG_INT     0x03u
#define RIG_CLEAR   0x04u
#define RIG_INV     0x0cu
#define RIG_DISCARD 0x0fu

/* ---- Lists of scenarios, each ends with a NULL name ---- */

extern const struct rig_scenario scenarios_core[], scenarios_its[], scenarios_route[];

#endif /* SCHEDULE_RIG_H */
