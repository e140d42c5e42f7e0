/* SPDX-License-Identifier: MIT */
/*
 * policy.h - ways to turn a device's MSI into an interrupt that a vCPU takes.
 *
 * `direct` is libvgic, through its public API and a guest's registers, tables and
 * commands. The others are the designs that hypervisors had before (baselines/).
 * All of them answer the same commands in the same way, so that the benchmarks run
 * beside each other and a test can compare them.
 *
 * Threads: commands, one at a time; inject(), any thread; acknowledge() to
 * finish_wait(), one thread at a time for each vCPU. vCPUs are named by their
 * index here.
 */
#ifndef BENCH_POLICY_H
#define BENCH_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include <vgic/vgic.h>

#define POLICY_SPURIOUS  1023u
#define POLICY_FIRST_LPI 8192u
#define POLICY_NUM_LPIS  (65536u - POLICY_FIRST_LPI)
#define POLICY_MAX_VCPUS 512u

/* What an LPI has in the configuration table: priority 0xa0, enabled. */
#define POLICY_DEFAULT_PROPERTY 0xa1u

struct policy;

struct policy_config {
	uint32_t num_vcpus;
	uint32_t cache_entries; /* of each translation cache, where there is one; 0: four for each vCPU */
	void (*kick)(void *opaque, uint32_t vcpu); /* wake the vCPU that prepared to wait; any thread; may be NULL */
	void *opaque;
};

/* The commands of an ITS. */
enum policy_opcode {
	POLICY_MAPD,   /* devid, event_bits; a device that is mapped loses its events */
	POLICY_UNMAPD, /* devid */
	POLICY_MAPC,   /* icid, vcpu */
	POLICY_UNMAPC, /* icid */
	POLICY_MAPTI,  /* devid, eventid, intid, icid */
	POLICY_DISCARD,
	POLICY_MOVI,   /* devid, eventid, icid */
	POLICY_MOVALL, /* vcpu, to_vcpu */
	POLICY_INT,
	POLICY_CLEAR,
	POLICY_INV,
	POLICY_INVALL,    /* icid */
	POLICY_CONFIGURE, /* intid, property: write the configuration table; in force after INV or INVALL */
	POLICY_ENABLE,    /* GITS_CTLR.Enabled=1, as it is after create() */
	POLICY_DISABLE,
	POLICY_NUM_OPCODES,
};

struct policy_command {
	enum policy_opcode opcode;
	uint32_t devid, eventid; /* below 2^16 */
	uint32_t intid, icid;
	uint32_t vcpu, to_vcpu;
	uint32_t event_bits; /* 1 to 16 */
	uint8_t property;
};

/*
 * Misses: injections that took the ITS's mutex; all others are hits. Invalidations:
 * cache entries that a command threw away. Contended: locks that were found taken.
 */
struct policy_stats {
	uint64_t misses, evictions, invalidations, contended;
};

struct policy_ops {
	const char *name;
	const char *what;

	struct policy *(*create)(const struct policy_config *config); /* NULL: no memory, or a number out of range */
	void (*destroy)(struct policy *policy);

	/* Returns 0, -EINVAL where the guest gave a wrong command, which then did nothing, or -ENOMEM. */
	int (*command)(struct policy *policy, const struct policy_command *command);

	/* Leaves every mapped event in the caches, as if each had been signalled once. NULL: there are none. */
	void (*warm)(struct policy *policy);

	/* A device's MSI. Returns 1, 0 if the guest does not get it, -EBUSY if the ITS is off. */
	int (*inject)(struct policy *policy, uint32_t devid, uint32_t eventid);

	/* The same where nobody may sleep: -EWOULDBLOCK, and nothing done, if it takes the ITS's mutex. */
	int (*try_inject)(struct policy *policy, uint32_t devid, uint32_t eventid);

	/* ICC_IAR1_EL1 and ICC_EOIR1_EL1. */
	uint32_t (*acknowledge)(struct policy *policy, uint32_t vcpu);
	void (*end)(struct policy *policy, uint32_t vcpu, uint32_t intid);

	/* Is the vCPU's line up? */
	bool (*is_up)(struct policy *policy, uint32_t vcpu);

	/* The same, and if it is not, a kick() comes when it goes up. finish_wait() afterwards in any case. */
	bool (*prepare_wait)(struct policy *policy, uint32_t vcpu);
	void (*finish_wait)(struct policy *policy, uint32_t vcpu);

	void (*get_stats)(struct policy *policy, struct policy_stats *stats);
};

/* The first member of each policy's own structure. */
struct policy {
	const struct policy_ops *ops;
};

extern const struct policy_ops policy_direct, policy_locked, policy_lru, policy_lru8, policy_tree;

#define POLICY_COUNT 5u

/* Of `direct`: the controller, the guest's driver of its ITS, and the ITS's doorbell, for vgic_signal_msi() and routes. */
struct vgic *policy_direct_vgic(struct policy *policy);
struct guest_its *policy_direct_guest_its(struct policy *policy);
#define POLICY_DIRECT_DOORBELL (UINT64_C(0x08080000) + VGIC_ITS_DOORBELL)

/* All of them, `direct` first. */
extern const struct policy_ops *const policy_list[POLICY_COUNT];

/* NULL if there is none of that name. */
const struct policy_ops *policy_by_name(const char *name);

/*
 * What the benchmarks have: devices 0 to @num_devices-1 with @num_events events each,
 * collection n on vCPU n, LPIs in order from POLICY_FIRST_LPI, event by event on the next vCPU.
 * @num_lpis bounds their number, so that the last device may have fewer. Returns 0 or a negative errno.
 */
int policy_map_devices(struct policy *policy, uint32_t num_vcpus, uint32_t num_devices, uint32_t num_events,
		       uint32_t num_lpis);

#endif /* BENCH_POLICY_H */
