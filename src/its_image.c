/* SPDX-License-Identifier: MIT */
/*
 * its_image.c - what an ITS has mapped, as a list. See its_image.h.
 *
 * All under config_lock. Linear in what is mapped, except for sorting: events that
 * were mapped in order of their ids, as drivers do, need none.
 */
#include "its_image.h"

#include <errno.h>
#include <string.h>

#include "irq_change.h"

#define FIRST_ROOM 64u

int its_image_init(struct its_image *image)
{
	*image = (struct its_image){ .num_devices = 0 };
	image->collections = port_alloc_zeroed(ITS_MAX_COLLECTIONS * sizeof(*image->collections), CACHE_LINE);
	if (!image->collections)
		return -ENOMEM;
	for (uint32_t i = 0; i < ITS_MAX_COLLECTIONS; i++)
		image->collections[i] = IRQ_NO_TARGET;
	return 0;
}

void its_image_free(struct its_image *image)
{
	port_free(image->devices);
	port_free(image->events);
	port_free(image->collections);
}

/* Room for one more element of @size bytes in an array that has @num of *@room in use. */
static int make_room(void **array, uint32_t num, uint32_t *room, size_t size)
{
	uint32_t new_room;
	void *new_array;

	if (num < *room)
		return 0;
	new_room = *room ? 2 * *room : FIRST_ROOM;
	new_array = port_alloc_zeroed(new_room * size, CACHE_LINE);
	if (!new_array)
		return -ENOMEM;
	if (num)
		memcpy(new_array, *array, num * size);
	port_free(*array);
	*array = new_array;
	*room = new_room;
	return 0;
}

int its_image_add_device(struct its_image *image, const struct vgic_its *its, uint32_t devid, uint32_t event_id_bits,
			 uint64_t itt)
{
	void *devices = image->devices;
	int err;

	if (image->num_devices && devid <= image->devices[image->num_devices - 1].devid)
		return -EINVAL;
	if (devid >= UINT64_C(1) << its->device_id_bits || event_id_bits < 1 || event_id_bits > its->event_id_bits)
		return -EINVAL;
	if (image->num_devices >= its->map.max_devices)
		return -E2BIG;
	err = make_room(&devices, image->num_devices, &image->devices_room, sizeof(*image->devices));
	if (err)
		return err;
	image->devices = devices;
	image->devices[image->num_devices++] = (struct its_image_device){
		.devid = devid,
		.num_event_ids = UINT32_C(1) << event_id_bits,
		.itt = itt,
		.first = image->num_events,
	};
	return 0;
}

int its_image_add_event(struct its_image *image, const struct vgic_its *its, uint64_t eventid, uint64_t lpi,
			uint16_t icid)
{
	struct its_image_device *device = &image->devices[image->num_devices - 1];
	void *events = image->events;
	int err;

	if (device->num_events && eventid <= image->events[image->num_events - 1].eventid)
		return -EINVAL;
	if (eventid >= device->num_event_ids || lpi >= its->vgic->num_lpis)
		return -EINVAL;
	if (image->num_events >= its->map.max_translations)
		return -E2BIG;
	err = make_room(&events, image->num_events, &image->events_room, sizeof(*image->events));
	if (err)
		return err;
	image->events = events;
	image->events[image->num_events++] = (struct its_image_event){
		.eventid = (uint32_t)eventid,
		.lpi = (uint32_t)lpi,
		.icid = icid,
	};
	device->num_events++;
	return 0;
}

/* ---- Collecting ------------------------------------------------------------------------ */

/* A device or an event, and its place in its pool. */
struct sorted_id {
	uint32_t id;
	uint32_t place;
};

static bool is_sorted(const struct sorted_id *ids, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		if (ids[i - 1].id > ids[i].id)
			return false;
	}
	return true;
}

/* Merge two sorted runs, from @first to @middle and from there to @end. */
static void merge(const struct sorted_id *from, struct sorted_id *to, uint32_t first, uint32_t middle, uint32_t end)
{
	uint32_t a = first, b = middle;

	for (uint32_t i = first; i < end; i++)
		to[i] = a < middle && (b >= end || from[a].id <= from[b].id) ? from[a++] : from[b++];
}

/* A merge sort, with as much room again in @spare. */
static void sort_ids(struct sorted_id *ids, struct sorted_id *spare, uint32_t n)
{
	struct sorted_id *from = ids, *to = spare;

	if (is_sorted(ids, n))
		return;
	for (uint64_t run = 1; run < n; run *= 2) {
		struct sorted_id *swap = from;

		for (uint64_t first = 0; first < n; first += 2 * run) {
			const uint64_t middle = first + run < n ? first + run : n;
			const uint64_t end = first + 2 * run < n ? first + 2 * run : n;

			merge(from, to, (uint32_t)first, (uint32_t)middle, (uint32_t)end);
		}
		from = to;
		to = swap;
	}
	if (from != ids)
		memcpy(ids, from, n * sizeof(*ids));
}

/* The devices that are mapped, by DeviceID. */
static void sort_devices(struct vgic_its *its, struct sorted_id *ids, struct sorted_id *spare)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < its->map.max_devices && n < its->map.num_devices; i++) {
		const struct its_device *device = &its->map.devices[i];

		if (its_map_find_device(&its->map, device->devid) == device)
			ids[n++] = (struct sorted_id){ .id = device->devid, .place = i };
	}
	sort_ids(ids, spare, n);
}

/* The events of a device. The list has the last one mapped first: it is copied from its end. Returns how many. */
static uint32_t sort_events(struct vgic_its *its, const struct its_device *device, struct sorted_id *ids,
			    struct sorted_id *spare)
{
	uint32_t n = 0;

	for (uint32_t node = device->first; node != NO_NODE; node = its->map.nodes[node].device_next)
		spare[n++] =
			(struct sorted_id){ .id = (uint32_t)load_relaxed(&its->map.nodes[node].key), .place = node };
	for (uint32_t i = 0; i < n; i++)
		ids[i] = spare[n - 1 - i];
	sort_ids(ids, spare, n);
	return n;
}

static void collect_device(struct its_image *image, struct vgic_its *its, const struct its_device *device,
			   struct sorted_id *ids, struct sorted_id *spare)
{
	const uint32_t n = sort_events(its, device, ids, spare);

	image->devices[image->num_devices++] = (struct its_image_device){
		.devid = device->devid,
		.num_event_ids = device->num_events,
		.itt = device->itt,
		.first = image->num_events,
		.num_events = n,
	};
	for (uint32_t i = 0; i < n; i++) {
		const struct translation *node = &its->map.nodes[ids[i].place];

		image->events[image->num_events++] = (struct its_image_event){
			.eventid = ids[i].id,
			.lpi = (uint32_t)(load_relaxed(&node->value) & TRANSLATION_LPI_MASK),
			.icid = (uint16_t)node->icid,
		};
	}
}

/* An array of @num elements, and one more: nothing is mapped, but there is memory. */
static void *alloc_array(uint32_t num, size_t size)
{
	return port_alloc_zeroed((num + 1) * size, CACHE_LINE);
}

int its_image_collect(struct its_image *image, struct vgic_its *its)
{
	const uint32_t num_devices = its->map.num_devices, num_events = its->map.num_translations;
	const uint32_t num_ids = num_devices > num_events ? num_devices : num_events;
	struct sorted_id *devices, *events, *spare;
	int err = its_image_init(image);

	if (err)
		return err;
	memcpy(image->collections, its->collections, ITS_MAX_COLLECTIONS * sizeof(*image->collections));
	image->devices = alloc_array(num_devices, sizeof(*image->devices));
	image->events = alloc_array(num_events, sizeof(*image->events));
	devices = alloc_array(num_devices, sizeof(*devices));
	events = alloc_array(num_events, sizeof(*events));
	spare = alloc_array(num_ids, sizeof(*spare));
	if (image->devices && image->events && devices && events && spare) {
		sort_devices(its, devices, spare);
		for (uint32_t i = 0; i < num_devices; i++)
			collect_device(image, its, &its->map.devices[devices[i].place], events, spare);
	} else {
		err = -ENOMEM;
	}
	port_free(devices);
	port_free(events);
	port_free(spare);
	return err;
}

/* ---- Applying ----------------------------------------------------------------------------- */

static void set_lpi(struct vgic *vgic, struct irq *irq, const struct its_image_event *e)
{
	irq_change(vgic, irq, irq_lpi_configure, e->property);
	if (e->pending)
		irq_change(vgic, irq, irq_latch, 0);
	else
		irq_change(vgic, irq, irq_unlatch, 0);
}

static void apply_device(const struct its_image *image, struct vgic_its *its, const struct its_image_device *d,
			 enum its_image_lpis lpis)
{
	struct its_device *device = its_map_add_device(&its->map, d->devid);

	device->num_events = d->num_event_ids;
	device->itt = d->itt;
	for (uint32_t i = 0; i < d->num_events; i++) {
		const struct its_image_event *e = &image->events[d->first + i];
		struct irq *irq = &its->vgic->lpis[e->lpi];
		const uint64_t value = lpi_map_as_is(its->vgic, irq, image->collections[e->icid]);

		its_map_add(&its->map, device, e->eventid, value, e->icid);
		if (lpis == ITS_IMAGE_SET_LPIS)
			set_lpi(its->vgic, irq, e);
	}
}

void its_image_apply(const struct its_image *image, struct vgic_its *its, enum its_image_lpis lpis)
{
	its_drop_all(its);
	memcpy(its->collections, image->collections, ITS_MAX_COLLECTIONS * sizeof(*image->collections));
	for (uint32_t i = 0; i < image->num_devices; i++)
		apply_device(image, its, &image->devices[i], lpis);
}
