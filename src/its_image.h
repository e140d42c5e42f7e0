/* SPDX-License-Identifier: MIT */
/*
 * its_image.h - what an ITS has mapped, as a list: between the translations of a
 * running ITS and the two forms in which they are saved, tables in guest memory
 * (its_state.c) and the image of a controller (state.c).
 *
 * A restore fills an image first, checks all of it on the way, and applies it then:
 * that cannot fail, so that nothing is ever restored by half.
 */
#ifndef VGIC_ITS_IMAGE_H
#define VGIC_ITS_IMAGE_H

#include "its.h"

struct its_image_device {
	uint32_t devid;
	uint32_t num_event_ids; /* as the MAPD said: a power of two */
	uint64_t itt;
	uint32_t first, num_events; /* in its_image.events */
};

struct its_image_event {
	uint32_t eventid;
	uint32_t lpi; /* INTID - 8192 */
	uint16_t icid;
	/* From the guest's tables. */
	uint8_t property;
	bool pending;
};

struct its_image {
	struct its_image_device *devices; /* sorted by DeviceID when they were collected */
	uint32_t num_devices, devices_room;
	struct its_image_event *events; /* those of a device together, in order of EventID */
	uint32_t num_events, events_room;
	uint16_t *collections; /* by ICID: vCPU index, or IRQ_NO_TARGET */

	/* What is appended is checked and counted, and not kept: it will be read again. */
	bool is_checked_only;
	uint32_t last_devid, num_event_ids, last_eventid, events_of_device;
};

/* An empty image: no collection is mapped. -ENOMEM; its_image_free() is to be called in any case. */
int its_image_init(struct its_image *image);
void its_image_free(struct its_image *image);

/* What is mapped now. Returns 0 or -ENOMEM. */
int its_image_collect(struct its_image *image, struct vgic_its *its);

/*
 * Append a device, and then its events, if @its can hold them; both in order of their ids. 0, -ENOMEM, -E2BIG for more
 * than it was created for, or -EINVAL for an id that is out of range or not above the one before, or for an LPI out of
 * range. Any ICID will do: a collection that is not mapped drops what comes.
 */
int its_image_add_device(struct its_image *image, const struct vgic_its *its, uint32_t devid, uint32_t event_id_bits,
			 uint64_t itt);
int its_image_add_event(struct its_image *image, const struct vgic_its *its, uint64_t eventid, uint64_t lpi,
			uint16_t icid);

/* Replace all that @its has mapped. LPIs are configured and pending as the image says. */
void its_image_apply(const struct its_image *image, struct vgic_its *its);

/* A device of what was checked to fit, in an ITS that has nothing mapped. */
struct its_device *its_image_map_device(struct vgic_its *its, uint32_t devid, uint32_t num_event_ids, uint64_t itt);

/* ---- What is mapped, in order of the ids ---- */

/* A device or an event, and its place in its pool. */
struct sorted_id {
	uint32_t id, place;
};

struct its_order {
	struct vgic_its *its;
	uint32_t num_devices;
	struct sorted_id *devices, *events, *spare;
};

/* Returns 0 or -ENOMEM; its_order_end() is to be called in any case. */
int its_order_begin(struct its_order *o, struct vgic_its *its);
void its_order_end(struct its_order *o);

/* The @n-th device; its events, num_mapped of them, are those of its_order_event() until the next one. */
const struct its_device *its_order_device(struct its_order *o, uint32_t n);
struct its_image_event its_order_event(const struct its_order *o, uint32_t n);

#endif /* VGIC_ITS_IMAGE_H */
