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

	if (image->num_devices && devid <= image->last_devid)
		return -EINVAL;
	if (devid >= UINT64_C(1) << its->device_id_bits || event_id_bits < 1 || event_id_bits > its->event_id_bits)
		return -EINVAL;
	if (image->num_devices >= its->map.max_devices)
		return -E2BIG;
	image->last_devid = devid;
	image->num_event_ids = UINT32_C(1) << event_id_bits;
	image->events_of_device = 0;
	if (image->is_checked_only) {
		image->num_devices++;
		return 0;
	}
	err = make_room(&devices, image->num_devices, &image->devices_room, sizeof(*image->devices));
	if (err)
		return err;
	image->devices = devices;
	image->devices[image->num_devices++] = (struct its_image_device){
		.devid = devid,
		.num_event_ids = image->num_event_ids,
		.itt = itt,
		.first = image->num_events,
	};
	return 0;
}

int its_image_add_event(struct its_image *image, const struct vgic_its *its, uint64_t eventid, uint64_t lpi,
			uint16_t icid)
{
	void *events = image->events;
	int err;

	if (image->events_of_device && eventid <= image->last_eventid)
		return -EINVAL;
	if (eventid >= image->num_event_ids || lpi >= its->vgic->num_lpis)
		return -EINVAL;
	if (image->num_events >= its->map.max_translations)
		return -E2BIG;
	image->last_eventid = (uint32_t)eventid;
	image->events_of_device++;
	if (image->is_checked_only) {
		image->num_events++;
		return 0;
	}
	err = make_room(&events, image->num_events, &image->events_room, sizeof(*image->events));
	if (err)
		return err;
	image->events = events;
	image->events[image->num_events++] = (struct its_image_event){
		.eventid = (uint32_t)eventid,
		.lpi = (uint32_t)lpi,
		.icid = icid,
	};
	image->devices[image->num_devices - 1].num_events++;
	return 0;
}

/* ---- Collecting ------------------------------------------------------------------------ */

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

static void sort_devices(struct its_order *o)
{
	struct its_map *map = &o->its->map;
	uint32_t n = 0;

	for (uint32_t i = 0; i < map->devices_end; i++) {
		const struct its_device *device = &map->devices[i];

		if (its_map_find_device(map, device->devid) == device)
			o->devices[n++] = (struct sorted_id){ .id = device->devid, .place = i };
	}
	sort_ids(o->devices, o->spare, n);
}

/* An array of @num elements, and one more: nothing is mapped, but there is memory. */
static void *alloc_array(uint32_t num, size_t size)
{
	return port_alloc_zeroed((num + 1) * size, CACHE_LINE);
}

/* The most events that a device has. */
static uint32_t largest_device(const struct its_map *map)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < map->devices_end; i++)
		most = map->devices[i].num_mapped > most ? map->devices[i].num_mapped : most;
	return most;
}

int its_order_begin(struct its_order *o, struct vgic_its *its)
{
	const uint32_t num_devices = its->map.num_devices, num_events = largest_device(&its->map);

	*o = (struct its_order){ .its = its, .num_devices = num_devices };
	o->devices = alloc_array(num_devices, sizeof(*o->devices));
	o->events = alloc_array(num_events, sizeof(*o->events));
	o->spare = alloc_array(num_devices > num_events ? num_devices : num_events, sizeof(*o->spare));
	if (!o->devices || !o->events || !o->spare)
		return -ENOMEM;
	sort_devices(o);
	return 0;
}

void its_order_end(struct its_order *o)
{
	port_free(o->devices);
	port_free(o->events);
	port_free(o->spare);
}

/* The list has the last one mapped first: it is copied from its end. */
const struct its_device *its_order_device(struct its_order *o, uint32_t n)
{
	const struct its_map *map = &o->its->map;
	const struct its_device *device = &map->devices[o->devices[n].place];
	uint32_t i = device->num_mapped;

	for (uint32_t node = device->first; node != NO_NODE; node = map->nodes[node].device_next)
		o->events[--i] =
			(struct sorted_id){ .id = (uint32_t)load_relaxed(&map->nodes[node].key), .place = node };
	sort_ids(o->events, o->spare, device->num_mapped);
	return device;
}

struct its_image_event its_order_event(const struct its_order *o, uint32_t n)
{
	const struct translation *node = &o->its->map.nodes[o->events[n].place];

	return (struct its_image_event){
		.eventid = o->events[n].id,
		.lpi = (uint32_t)(load_relaxed(&node->value) & TRANSLATION_LPI_MASK),
		.icid = (uint16_t)node->icid,
	};
}

static void collect_device(struct its_image *image, struct its_order *o, uint32_t n)
{
	const struct its_device *device = its_order_device(o, n);

	image->devices[image->num_devices++] = (struct its_image_device){
		.devid = device->devid,
		.num_event_ids = device->num_events,
		.itt = device->itt,
		.first = image->num_events,
		.num_events = device->num_mapped,
	};
	for (uint32_t i = 0; i < device->num_mapped; i++)
		image->events[image->num_events++] = its_order_event(o, i);
}

int its_image_collect(struct its_image *image, struct vgic_its *its)
{
	struct its_order o = { .num_devices = 0 };
	int err = its_image_init(image);

	if (err)
		return err;
	memcpy(image->collections, its->collections, ITS_MAX_COLLECTIONS * sizeof(*image->collections));
	image->devices = alloc_array(its->map.num_devices, sizeof(*image->devices));
	image->events = alloc_array(its->map.num_translations, sizeof(*image->events));
	err = image->devices && image->events ? its_order_begin(&o, its) : -ENOMEM;
	for (uint32_t i = 0; !err && i < o.num_devices; i++)
		collect_device(image, &o, i);
	its_order_end(&o);
	return err;
}

/* ---- Applying ----------------------------------------------------------------------------- */

struct its_device *its_image_map_device(struct vgic_its *its, uint32_t devid, uint32_t num_event_ids, uint64_t itt)
{
	struct its_device *device = its_map_add_device(&its->map, devid);

	device->num_events = num_event_ids;
	device->itt = itt;
	return device;
}

static void map_event(struct vgic_its *its, struct its_device *device, const struct its_image_event *e)
{
	const uint64_t value = lpi_map_restored(its->vgic, &its->vgic->lpis[e->lpi], its->collections[e->icid],
						e->property, e->pending);

	its_map_add(&its->map, device, e->eventid, value, e->icid);
}

void its_image_apply(const struct its_image *image, struct vgic_its *its)
{
	its_drop_all(its);
	memcpy(its->collections, image->collections, ITS_MAX_COLLECTIONS * sizeof(*image->collections));
	for (uint32_t i = 0; i < image->num_devices; i++) {
		const struct its_image_device *d = &image->devices[i];
		struct its_device *device = its_image_map_device(its, d->devid, d->num_event_ids, d->itt);

		for (uint32_t n = 0; n < d->num_events; n++)
			map_event(its, device, &image->events[d->first + n]);
	}
}
