/* SPDX-License-Identifier: MIT */
/*
 * What fails in the failure tests, and what is compared: a machine with something of
 * everything, and a picture of all of its state. One at a time.
 */
#ifndef TESTS_FAILURE_WORLD_H
#define TESTS_FAILURE_WORLD_H

#include <vgic/msix.h>
#include <vgic/state.h>

#include "inject.h"
#include "its_guest.h"

#define WORLD_GSIS     16u
#define WORLD_DOORBELL (ITS_BASE(0) + VGIC_ITS_DOORBELL)

struct world {
	struct machine *m;
	struct vgic_routes *routes;
	struct vgic_irqfds *irqfds;
	struct vgic_msix *msix;
	int eventfds[8];
	int resamplefd;
};

extern struct world world;

/* A description: @num_itses small ITSes, 8192 LPIs, guest memory that can fail. */
struct machine *world_describe(uint32_t num_vcpus, uint32_t num_itses);
/* One that was started, set up by its guest, and has interrupts in all states. */
void world_boot(void);
/* Nothing is left of it: memory and descriptors are checked. */
void world_end(void);

/* All of the state: the image, routes, irqfds, MSI-X; with @tables the guest's tables as well. */
struct picture {
	uint8_t *bytes;
	size_t size, room;
};
struct picture world_picture(bool tables);
bool pictures_are_equal(const struct picture *a, const struct picture *b);

/* A call of the VMM, and what it may return. */
struct scenario {
	const char *name;
	void (*set_up)(void);
	int (*call)(void); /* 0 or a negative errno */
	int errnos[8];     /* that it may return, ended by 0 */
};

/*
 * Run it with each of its calls failing in turn, alone and with all that come after
 * it. A call that returns an error must have changed nothing; the same call must
 * succeed afterwards, and the state be as if nothing had ever failed.
 */
void fail_each_call(const struct scenario *s);

/* The same of @num scenarios. */
void fail_all(const struct scenario *s, size_t num);

/* ---- The groups of tests ---- */

extern const struct CMUnitTest life_tests[], state_tests[], guest_tests[];
extern const size_t num_life_tests, num_state_tests, num_guest_tests;

#endif /* TESTS_FAILURE_WORLD_H */
