/* SPDX-License-Identifier: MIT */
/*
 * world.h - a controller with everything around it: host threads that run vCPUs,
 * threads that signal and configure, and the proof that all of it is at rest.
 *
 *   cpu      a vCPU that is driven: takes interrupts, nests, ends them
 *   runner   a host thread that drives one or several cpus, and blocks
 *   worker   a device or a configuring thread; does a counted amount of work
 *
 * The world is at rest if every runner sleeps, no kick is on its way to one, and
 * no worker has anything more to do by itself. This is judged under all locks at
 * once, not by waiting for a time. What has not been delivered then never will be.
 */
#ifndef STRESS_WORLD_H
#define STRESS_WORLD_H

#include <pthread.h>

#include <vgic/vgic.h>

#include "gic_regs.h"
#include "stall.h"
#include "stress.h"

#define WORLD_MAX_CPUS    64
#define WORLD_MAX_RUNNERS 8
#define WORLD_MAX_WORKERS 16
#define CPU_MAX_ACTIVE    40 /* 32 priorities, and some */

/* Where the frames are. */
#define WORLD_DIST_BASE   UINT64_C(0x08000000)
#define WORLD_REDIST_BASE UINT64_C(0x080a0000)

#define STRESS_FIRST_SPI     32u
#define STRESS_FIRST_SPECIAL 1020u

struct world;
struct cpu;
struct worker;

/* What a scenario adds to the vCPUs. Called by the thread that drives the vCPU. Any may be NULL. */
struct world_hooks {
	/* @intid was acknowledged. */
	void (*acknowledged)(struct cpu *cpu, uint32_t intid);
	/* @intid is about to be deactivated: the last moment in which no one else can have acknowledged it. */
	void (*ending)(struct cpu *cpu, uint32_t intid);
	/* @intid was ended. With EOImode=1 another vCPU may have to deactivate it yet. */
	void (*ended)(struct cpu *cpu, uint32_t intid);
	/* There is no line. Returns true if the vCPU must not block. */
	bool (*idle)(struct cpu *cpu);
	/* The callback of the controller, from any thread. @cpu is NULL for an SPI. */
	void (*deactivated)(struct world *world, struct cpu *cpu, uint32_t intid);
};

struct world_config {
	struct run *run;
	const struct world_hooks *hooks;
	void *context;
	uint32_t num_vcpus;   /* of the controller */
	uint32_t num_cpus;    /* of them driven, spread evenly; 0: all */
	uint32_t num_runners; /* 0: one for each cpu */
	uint32_t num_spis;    /* 0: the default */
	uint32_t features;    /* added to the default ones */
	uint32_t nest_one_in; /* a cpu takes another interrupt before it ends one, once in so many times; 0: never */
	uint32_t spin;        /* steps at most that a runner spins for a kick before it sleeps */
	bool mixed_eoimode;   /* every other cpu has EOImode=1; they deactivate for each other */
	bool no_shaker;
	bool any_guest_error; /* EOIs may be refused: the scenario writes registers at random */
};

struct active_irq {
	uint32_t intid;
	unsigned group;
};

struct cpu {
	struct world *world;
	struct runner *runner;
	struct vgic_vcpu *vcpu;
	uint32_t number; /* among the driven ones */
	uint32_t index;  /* of the vCPU */
	struct rng rng;
	bool split; /* EOImode=1 */
	unsigned depth;
	struct active_irq active[CPU_MAX_ACTIVE];
	uint64_t acknowledges;
	uint64_t spurious;
};

/* A host thread's sleep, and the kick that ends it. */
struct wake {
	_Atomic uint32_t token;
	_Atomic uint32_t sleeping;
	pthread_mutex_t lock;
	pthread_cond_t cond;
};

struct runner {
	struct world *world;
	unsigned number;
	pthread_t thread;
	struct wake wake;
	_Atomic uint32_t nudged;
	struct rng rng;
	struct cpu *cpus[WORLD_MAX_CPUS];
	unsigned num_cpus;
	uint64_t sleeps;
};

struct worker {
	struct world *world;
	void (*main)(struct worker *worker);
	unsigned number; /* the caller's */
	struct rng rng;
	pthread_t thread;
};

struct world {
	struct run *run;
	const struct world_hooks *hooks;
	void *context;
	struct world_config config;
	struct vgic *vgic;
	struct cpu cpus[WORLD_MAX_CPUS];
	uint32_t num_cpus;
	struct runner runners[WORLD_MAX_RUNNERS];
	unsigned num_runners;
	struct worker workers[WORLD_MAX_WORKERS];
	unsigned num_workers;
	uint64_t num_spawned;
	struct shaker shaker;
	_Atomic bool stop;
	_Atomic uint32_t busy;    /* workers that may still do something by themselves */
	_Atomic uint64_t kicks;   /* kick() callbacks */
	_Atomic uint32_t mailbox; /* an SPI that some cpu with EOImode=1 has to deactivate */
};

/* Create a controller, open its switches and start its runners. */
struct world *world_open(const struct world_config *config);

/* Settle, stop the runners, and destroy. */
void world_close(struct world *w);

/* Stop the runners at rest, and start them again. */
void world_stop_runners(struct world *w);
void world_start_runners(struct world *w);

/* Enable groups and CPU interfaces of all cpus: at first, and after a reset. Runners must not be running. */
void world_open_switches(struct world *w);

/* Start a worker; wait for all of them. */
void world_spawn(struct world *w, void (*main)(struct worker *worker), unsigned number);
void world_join(struct world *w);

/*
 * Wait until @counter has reached @value. Returns false if it never will: the
 * world is at rest. For workers.
 */
bool world_await(struct world *w, const _Atomic uint64_t *counter, uint64_t value);

/*
 * Wait until the world is at rest, and check what holds then: no vCPU that sleeps
 * has a line, every deliverable interrupt can be reached, counters agree. By the
 * main thread, without workers.
 */
void world_settle(struct world *w);

/* For hooks: take one interrupt if the lines say so, and end it. Returns whether there was one. */
bool cpu_take_one(struct cpu *cpu, unsigned lines);

/* For hooks: block in a handler, like WFI. Returns the lines, which are 0 if the world is closed or by a nudge. */
unsigned cpu_wait(struct cpu *cpu);

/* Make a runner look, without the controller's knowing. */
void world_nudge(struct world *w);

struct vgic_stats world_stats(struct world *w);

/* ---- Registers and lines ---- */

uint64_t dist_read(struct world *w, uint32_t offset);
void dist_write(struct world *w, uint32_t offset, uint32_t value);
uint64_t redist_read(struct cpu *cpu, uint32_t offset);
void redist_write(struct cpu *cpu, uint32_t offset, uint32_t value);
uint64_t icc_read(struct cpu *cpu, uint32_t reg);
void icc_write(struct cpu *cpu, uint32_t reg, uint64_t value);

/* Write the bit of an SPI in a bank of one bit for each INTID. */
void spi_write_bit(struct world *w, uint32_t bank, uint32_t intid);
bool spi_read_bit(struct world *w, uint32_t bank, uint32_t intid);
void spi_set_priority(struct world *w, uint32_t intid, unsigned priority);
void spi_set_group(struct world *w, uint32_t intid, unsigned group);
void spi_route(struct world *w, uint32_t intid, const struct cpu *cpu);
void spi_route_to_any(struct world *w, uint32_t intid);
void spi_route_nowhere(struct world *w, uint32_t intid);
void spi_set_line(struct world *w, uint32_t intid, unsigned source, bool level);
void spi_pulse(struct world *w, uint32_t intid);
void ppi_set_line(struct cpu *cpu, uint32_t intid, unsigned source, bool level);

/* Trigger, group, priority, route, enable. By one thread at a time. */
void spi_set_up(struct world *w, uint32_t intid, bool edge, unsigned group, unsigned priority, const struct cpu *cpu);
void private_set_up(struct cpu *cpu, uint32_t intid, bool edge, unsigned group, unsigned priority);

#endif /* STRESS_WORLD_H */
