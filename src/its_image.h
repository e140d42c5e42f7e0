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
	/* From the guest's tables; with ITS_IMAGE_SET_LPIS. */
	uint8_t property;
	bool pending;
};

struct its_image {
	struct its_image_device *devices; /* sorted by DeviceID when they were collected */
	uint32_t num_devices, devices_room;
	struct its_image_event *events; /* those of a device together, in order of EventID */
	uint32_t num_events, events_room;
	uint16_t *collections; /* by ICID: vCPU index, or IRQ_NO_TARGET */
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

/* What LPIs are when they are mapped. */
enum its_image_lpis {
	ITS_IMAGE_SET_LPIS,  /* configured and pending as the image says */
	ITS_IMAGE_KEEP_LPIS, /* the caller sets them afterwards */
};

/* Replace all that @its has mapped. */
void its_image_apply(const struct its_image *image, struct vgic_its *its, enum its_image_lpis lpis);

#endif /* VGIC_ITS_IMAGE_H */
