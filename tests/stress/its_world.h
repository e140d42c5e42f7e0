/* SPDX-License-Identifier: MIT */
/*
 * its_world.h - a controller with ITSes for the stress tests, and the threads around
 * it: vCPUs that take LPIs and sleep, devices that signal, a guest that configures,
 * and a host thread that does what register writes have left.
 *
 * Every LPI has an account. Its one device raises the number of its signal before
 * it signals; an acknowledge notes the number that it finds. In lockstep a device
 * waits until its signal is acknowledged before it makes the next: then there are
 * exactly as many acknowledges as accepted signals, and what a device wrote before
 * the signal needs no other order than the controller's to be read behind the
 * acknowledge. ThreadSanitizer sees to that.
 */
#ifndef STRESS_ITS_WORLD_H
#define STRESS_ITS_WORLD_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <vgic/vgic.h>

#include "scenario.h"

#define ITS_VCPUS   2u
#define ITS_ITSES   2u
#define ITS_DEVICES 3u /* threads; each has its own DeviceID in each ITS */
#define ITS_EVENTS  8u /* of each device, each with an LPI of its own */
#define ITS_LPIS    (ITS_DEVICES * ITS_EVENTS)
#define FIRST_LPI   8192u

#define ITS_WORLD_BASE UINT64_C(0x08080000) /* of ITS 0 */

struct rng {
	uint64_t state;
};

uint64_t rng_next(struct rng *rng);
uint32_t rng_below(struct rng *rng, uint32_t limit);

/* The account of one LPI. */
struct account {
	_Alignas(64) uint64_t data; /* written by the device before a signal in lockstep, read behind the acknowledge */
	_Atomic uint64_t number;    /* of the last signal that was begun */
	_Atomic uint64_t accepted;  /* signals that returned 1 */
	_Atomic uint64_t last_accepted; /* number of the last one */
	_Atomic uint64_t acknowledges;
	_Atomic uint64_t seen; /* the largest number that an acknowledge found */
	/*
	 * Odd while the guest has closed the event's path for good: a signal that begins and ends in one such period must
	 * not be accepted, an acknowledge must not find it.
	 */
	_Atomic uint64_t epoch;
};

struct world;

struct consumer {
	struct world *world;
	uint32_t index;
	struct vgic_vcpu *vcpu;
	pthread_t thread;
	struct rng rng;
	sem_t wake;
	_Atomic uint32_t tokens; /* posts that have not been taken */
	_Atomic bool sleeping;
};

struct device {
	struct world *world;
	uint32_t number;
	pthread_t thread;
	struct rng rng;
	_Atomic bool parked;
	uint64_t signals, accepted, blocked, busy;
};

struct world {
	struct run *run;
	struct vgic *vgic;
	struct vgic_its *its[ITS_ITSES];
	_Atomic uint8_t *ram;
	uint32_t queue_at[ITS_ITSES];
	/* How devices signal, if not by vgic_its_signal(); returns as that. Set before they start. */
	int (*signal)(void *context, struct device *device, uint32_t event);
	void *signal_context;
	bool lockstep;
	_Atomic uint32_t delay; /* steps at most that a vCPU lets its interrupts wait, so that some are pending */
	struct rng rng;         /* the guest's */
	struct account accounts[ITS_LPIS];
	struct consumer consumers[ITS_VCPUS];
	struct device devices[ITS_DEVICES];
	pthread_t worker;
	sem_t work;
	_Atomic bool over;    /* devices end */
	bool joined;          /* they have */
	_Atomic bool gate;    /* closed: devices stay where they hold nothing back, vCPUs where they sleep */
	_Atomic bool stop;    /* vCPUs and worker end */
	uint64_t num_checked; /* what the scenario counts, so that it cannot have done nothing */
};

/* Everything mapped: device d, event e to LPI d * ITS_EVENTS + e, in collection d % ITS_VCPUS, by ITS 0. */
struct world *its_world_open(struct run *run, bool lockstep);
void its_world_start_devices(struct world *w);
/* Stop the devices: each ends what it has begun. */
void its_world_join_devices(struct world *w);
/* That, if it has not been done; wait until nothing moves any more, and check what must hold then. */
void its_world_settle(struct world *w);
void its_world_close(struct world *w);

/* Nobody is between a call of the controller and noting its result until the gate is opened. */
void its_world_close_gate(struct world *w);
void its_world_open_gate(struct world *w);
/* All vCPUs sleep, and none is about to be woken. */
bool its_world_sleeps(struct world *w);

/* ---- The guest ---- */

uint64_t guest_its_read(struct world *w, uint32_t its, uint32_t offset);
void guest_its_write(struct world *w, uint32_t its, uint32_t offset, uint64_t value);
uint64_t guest_redist_read(struct world *w, uint32_t vcpu, uint32_t offset);
void guest_redist_write(struct world *w, uint32_t vcpu, uint32_t offset, unsigned width, uint64_t value);
void guest_set_property(struct world *w, uint32_t lpi, uint8_t property);
bool guest_table_pending(struct world *w, uint32_t vcpu, uint32_t lpi);

/* Queue a command; guest_sync() waits until all are done. One thread for each ITS. */
void guest_command(struct world *w, uint32_t its, uint64_t dw0, uint64_t dw1, uint64_t dw2, uint64_t dw3);
void guest_sync(struct world *w, uint32_t its);
void guest_mapd(struct world *w, uint32_t its, uint32_t device, bool valid);
void guest_mapc(struct world *w, uint32_t its, uint32_t icid, uint32_t vcpu);
void guest_mapti(struct world *w, uint32_t its, uint32_t device, uint32_t event, uint32_t lpi, uint32_t icid);
void guest_movi(struct world *w, uint32_t its, uint32_t device, uint32_t event, uint32_t icid);
void guest_movall(struct world *w, uint32_t its, uint32_t from, uint32_t to);
void guest_event(struct world *w, uint32_t its, unsigned opcode, uint32_t device, uint32_t event);
void guest_invall(struct world *w, uint32_t its, uint32_t icid);
void guest_set_lpis_enabled(struct world *w, uint32_t vcpu, bool enabled);

#define GUEST_INT     0x03u
#define GUEST_CLEAR   0x04u
#define GUEST_INV     0x0cu
#define GUEST_DISCARD 0x0fu

uint64_t world_acknowledges(struct world *w);
/* How many LPIs are pending, and how many acknowledges there have been, at one moment. */
uint64_t its_world_count_pending(struct world *w, uint64_t *acknowledges);
void world_pause(struct rng *rng, uint32_t limit);

#endif /* STRESS_ITS_WORLD_H */
