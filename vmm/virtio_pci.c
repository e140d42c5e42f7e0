/* SPDX-License-Identifier: MIT */
/*
 * The PCI transport of a virtio device: see virtio_pci.h for the layout.
 *
 * The driver's side - registers, negotiation, the set-up of queues - belongs to the
 * thread that runs the vCPUs. What devices use from their own threads is atomic:
 * the status, the ISR, the vectors.
 *
 * Whatever the driver writes, in whatever order, is answered: a queue is checked
 * when it is enabled, and a device whose driver breaks the rules says
 * DEVICE_NEEDS_RESET and rests until it is reset.
 */
#include "virtio_pci.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fence.h"
#include "pci.h"
#include "snapshot_file.h"
#include "util.h"

/* ---- Layout ----------------------------------------------------------------------- */

#define VIRTIO_VENDOR      0x1af4u
#define VIRTIO_DEVICE_BASE 0x1040u /* + virtio's number of the kind of device */
#define VIRTIO_REVISION    1u      /* no legacy interface */
#define CLASS_STORAGE      0x018000u

#define REGISTERS_BAR 0u
#define MSIX_BAR      1u

#define PAGE_SIZE        0x1000u
#define COMMON_OFFSET    0x0000u
#define ISR_OFFSET       0x1000u
#define DEVICE_OFFSET    0x2000u
#define NOTIFY_OFFSET    0x3000u
#define REGISTERS_SIZE   0x4000u
#define NOTIFY_STRIDE    4u
#define COMMON_SIZE      56u
#define ISR_SIZE         1u
#define NO_VECTOR        0xffffu
#define MAX_FAILURE_TEXT 160u

/* Capability types, and the fields of struct virtio_pci_cap. */
enum {
	CAP_COMMON = 1,
	CAP_NOTIFY = 2,
	CAP_ISR = 3,
	CAP_DEVICE = 4,
	CAP_PCI_CFG = 5,
};

#define CAP_LENGTH_OF_SELF 2u
#define CAP_TYPE           3u
#define CAP_BAR            4u
#define CAP_OFFSET         8u
#define CAP_LENGTH         12u
#define CAP_SIZE           16u
#define CAP_EXTRA          16u /* of 4 bytes: the notify multiplier, or the data of PCI_CFG */

/* Device status. */
#define STATUS_FEATURES_OK 0x08u
#define STATUS_DRIVER_OK   0x04u
#define STATUS_NEEDS_RESET 0x40u
#define STATUS_DRIVERS_OWN 0x8fu /* what a driver may set */

#define ISR_QUEUE  1u
#define ISR_CONFIG 2u

/* Parts of a split queue. */
#define DESC_SIZE        16u
#define DESC_ALIGNMENT   16u
#define AVAIL_ALIGNMENT  2u
#define USED_ALIGNMENT   4u
#define AVAIL_ENTRY_SIZE 2u
#define USED_ENTRY_SIZE  8u
#define RING_EXTRA       6u

struct transport_queue {
	struct virtio_queue_setup setup;
	bool enabled;
	bool started;
	_Atomic uint16_t vector;
	int call_fd; /* -1: none. Bound while there is a vector */
};

struct virtio_pci {
	struct pci_function function;
	struct pci_host *host;
	struct virtio_device *device;
	unsigned pci_cfg; /* the capability's offset */

	uint32_t device_feature_select;
	uint32_t driver_feature_select;
	uint64_t driver_features;
	uint16_t queue_select;
	struct transport_queue queues[VIRTIO_MAX_QUEUES];

	_Atomic uint16_t config_vector;
	_Atomic uint8_t config_generation;
	_Atomic uint8_t status;
	_Atomic uint8_t isr;
	atomic_bool failed;
	atomic_bool reported; /* the user has been told of a failure */
};

/* ---- Interrupts and failure: any thread ---------------------------------------------- */

static void raise_vector(struct virtio_pci *t, uint16_t vector)
{
	if (vector != NO_VECTOR)
		pci_msix_raise(&t->function, vector);
}

static void interrupt_queue(void *owner, unsigned index)
{
	struct virtio_pci *t = owner;

	atomic_fetch_or(&t->isr, ISR_QUEUE);
	raise_vector(t, atomic_load(&t->queues[index].vector));
}

static void interrupt_config(void *owner)
{
	struct virtio_pci *t = owner;

	atomic_fetch_add(&t->config_generation, 1);
	atomic_fetch_or(&t->isr, ISR_CONFIG);
	raise_vector(t, atomic_load(&t->config_vector));
}

/* A guest could fail its device as often as it likes: the user hears of it once. */
static void fail(void *owner, const char *why)
{
	struct virtio_pci *t = owner;

	if (atomic_exchange(&t->failed, true))
		return;
	if (!atomic_exchange(&t->reported, true))
		message("%s: %s: the device has stopped until its driver resets it", t->device->name, why);
	/* Before DRIVER_OK the driver looks at the status by itself. */
	if (atomic_fetch_or(&t->status, STATUS_NEEDS_RESET) & STATUS_DRIVER_OK)
		interrupt_config(t);
}

/* ---- Call eventfds: the thread that runs the vCPUs -------------------------------------- */

/* The driver may change the vector while events fly: each goes to the old or to the new one, or stays in the eventfd. */
static int set_vector_and_call(struct virtio_pci *t, struct transport_queue *queue, uint16_t vector, int call_fd)
{
	const uint16_t old = atomic_load(&queue->vector);
	int ret = 0;

	if (queue->call_fd >= 0 && old != NO_VECTOR)
		pci_msix_unbind(&t->function, old, queue->call_fd);
	atomic_store(&queue->vector, vector);
	queue->call_fd = call_fd;
	if (call_fd >= 0 && vector != NO_VECTOR)
		ret = pci_msix_bind(&t->function, vector, call_fd);
	if (ret)
		queue->call_fd = -1;
	return ret;
}

static int bind_call_fd(void *owner, unsigned index, int eventfd)
{
	struct virtio_pci *t = owner;
	struct transport_queue *queue = &t->queues[index];

	return set_vector_and_call(t, queue, atomic_load(&queue->vector), eventfd);
}

static void set_vector(struct virtio_pci *t, struct transport_queue *queue, uint16_t vector)
{
	if (set_vector_and_call(t, queue, vector, queue->call_fd))
		fail(t, "the eventfd of a queue cannot be bound to its vector");
}

static const struct virtio_transport_ops transport_ops = {
	.interrupt_queue = interrupt_queue,
	.interrupt_config = interrupt_config,
	.report_failure = fail,
	.bind_call_fd = bind_call_fd,
};

/* ---- Queues ---------------------------------------------------------------------------- */

static struct transport_queue *selected_queue(struct virtio_pci *t)
{
	return t->queue_select < t->device->num_queues ? &t->queues[t->queue_select] : NULL;
}

/* Returns NULL if the queue can be served, or what is wrong. */
static const char *check_setup(const struct virtio_device *device, const struct virtio_queue_setup *setup)
{
	const uint64_t size = setup->size;

	if (size == 0 || (size & (size - 1)) || size > device->max_queue_size)
		return "the size of a queue is no power of two, or too large";
	if (setup->desc % DESC_ALIGNMENT || setup->avail % AVAIL_ALIGNMENT || setup->used % USED_ALIGNMENT)
		return "a part of a queue is not aligned";
	if (!guest_ram_contains(device->ram, setup->desc, size * DESC_SIZE) ||
	    !guest_ram_contains(device->ram, setup->avail, RING_EXTRA + size * AVAIL_ENTRY_SIZE) ||
	    !guest_ram_contains(device->ram, setup->used, RING_EXTRA + size * USED_ENTRY_SIZE))
		return "a part of a queue is not in memory";
	return NULL;
}

static void start_queue(struct virtio_pci *t, unsigned index)
{
	struct transport_queue *queue = &t->queues[index];

	if (queue->started || atomic_load(&t->failed))
		return;
	if (t->device->ops->start_queue(t->device, index, &queue->setup))
		fail(t, "a queue cannot be started");
	else
		queue->started = true;
}

/* A queue can be enabled once, until the device is reset: what is enabled does not change. */
static void enable_queue(struct virtio_pci *t, uint32_t value)
{
	struct transport_queue *queue = selected_queue(t);
	const char *wrong;

	if (!queue || queue->enabled || value != 1)
		return;
	wrong = check_setup(t->device, &queue->setup);
	if (wrong) {
		fail(t, wrong);
		return;
	}
	queue->enabled = true;
	if (atomic_load(&t->status) & STATUS_DRIVER_OK)
		start_queue(t, t->queue_select);
}

static void start_enabled_queues(struct virtio_pci *t)
{
	for (unsigned i = 0; i < t->device->num_queues; i++)
		if (t->queues[i].enabled)
			start_queue(t, i);
}

/*
 * The emulated CPU drops the guest's memory barriers, and the host's CPU may still hold what it wrote in its store
 * buffer. The driver has filled the ring before it notified: behind this fence every thread sees that.
 */
static void notify_queue(struct virtio_pci *t, unsigned index)
{
	if (index >= t->device->num_queues || !t->queues[index].started || atomic_load(&t->failed) ||
	    !pci_is_bus_master(&t->function))
		return;
	full_fence();
	t->device->ops->notify_queue(t->device, index);
}

/* ---- Status ------------------------------------------------------------------------------ */

static void reset_device(struct virtio_pci *t)
{
	t->device->ops->reset(t->device);
	t->device_feature_select = 0;
	t->driver_feature_select = 0;
	t->driver_features = 0;
	t->queue_select = 0;
	for (unsigned i = 0; i < VIRTIO_MAX_QUEUES; i++) {
		struct transport_queue *queue = &t->queues[i];

		queue->setup = (struct virtio_queue_setup){ .size = t->device->max_queue_size };
		queue->enabled = false;
		queue->started = false;
		set_vector_and_call(t, queue, NO_VECTOR, -1);
	}
	atomic_store(&t->config_vector, NO_VECTOR);
	atomic_store(&t->isr, 0);
	atomic_store(&t->failed, false);
	atomic_store(&t->status, 0);
}

static uint64_t offered_features(const struct virtio_pci *t)
{
	return t->device->features | VIRTIO_F_VERSION_1;
}

static bool accept_features(struct virtio_pci *t)
{
	const uint64_t features = t->driver_features;

	return !(features & ~offered_features(t)) && (features & VIRTIO_F_VERSION_1) &&
	       t->device->ops->set_features(t->device, features) == 0;
}

/* A driver adds bits one after another; it takes them back only all at once, by writing 0. */
static void write_status(struct virtio_pci *t, uint32_t value)
{
	const uint8_t old = atomic_load(&t->status);
	uint32_t added = value & STATUS_DRIVERS_OWN & ~(uint32_t)old;

	if (value == 0) {
		reset_device(t);
		return;
	}
	if ((added & STATUS_FEATURES_OK) && !accept_features(t))
		added &= ~STATUS_FEATURES_OK;
	if ((added & STATUS_DRIVER_OK) && !((old | added) & STATUS_FEATURES_OK)) {
		fail(t, "the driver has started it without agreeing on features");
		added &= ~STATUS_DRIVER_OK;
	}
	atomic_fetch_or(&t->status, (uint8_t)added);
	if (added & STATUS_DRIVER_OK)
		start_enabled_queues(t);
}

/* ---- The common configuration -------------------------------------------------------------- */

static uint32_t half_of(uint64_t value, uint32_t select)
{
	return select > 1 ? 0 : (uint32_t)(value >> (32 * select));
}

static void set_half(uint64_t *value, unsigned half, uint32_t bits)
{
	*value = half ? (*value & UINT32_MAX) | (uint64_t)bits << 32 : (*value & ~(uint64_t)UINT32_MAX) | bits;
}

/* Fields with their offsets and widths; the queues' addresses are pairs of 32 bits, low half first. */
enum common_field {
	DEVICE_FEATURE_SELECT = 0,
	DEVICE_FEATURE = 4,
	DRIVER_FEATURE_SELECT = 8,
	DRIVER_FEATURE = 12,
	CONFIG_MSIX_VECTOR = 16,
	NUM_QUEUES = 18,
	DEVICE_STATUS = 20,
	CONFIG_GENERATION = 21,
	QUEUE_SELECT = 22,
	QUEUE_SIZE = 24,
	QUEUE_MSIX_VECTOR = 26,
	QUEUE_ENABLE = 28,
	QUEUE_NOTIFY_OFF = 30,
	QUEUE_DESC = 32,
	QUEUE_DESC_HIGH = 36,
	QUEUE_DRIVER = 40,
	QUEUE_DRIVER_HIGH = 44,
	QUEUE_DEVICE = 48,
	QUEUE_DEVICE_HIGH = 52,
};

/* Drivers must use the width of the field. Another one is no field. */
static bool is_field(uint32_t offset, unsigned width)
{
	if (offset >= CONFIG_MSIX_VECTOR && offset < QUEUE_DESC)
		return offset == DEVICE_STATUS || offset == CONFIG_GENERATION ? width == 1 :
										width == 2 && offset % 2 == 0;
	return offset < COMMON_SIZE && width == 4 && offset % 4 == 0;
}

static uint32_t read_queue_field(struct virtio_pci *t, uint32_t offset)
{
	const struct transport_queue *queue = selected_queue(t);

	if (!queue)
		return 0; /* a size of 0: there is no such queue */
	switch (offset) {
	case QUEUE_SIZE:
		return queue->setup.size;
	case QUEUE_MSIX_VECTOR:
		return atomic_load(&queue->vector);
	case QUEUE_ENABLE:
		return queue->enabled;
	case QUEUE_NOTIFY_OFF:
		return t->queue_select;
	case QUEUE_DESC:
	case QUEUE_DESC_HIGH:
		return half_of(queue->setup.desc, offset == QUEUE_DESC_HIGH);
	case QUEUE_DRIVER:
	case QUEUE_DRIVER_HIGH:
		return half_of(queue->setup.avail, offset == QUEUE_DRIVER_HIGH);
	case QUEUE_DEVICE:
	case QUEUE_DEVICE_HIGH:
		return half_of(queue->setup.used, offset == QUEUE_DEVICE_HIGH);
	default:
		return 0;
	}
}

static uint32_t read_common(struct virtio_pci *t, uint32_t offset)
{
	switch (offset) {
	case DEVICE_FEATURE_SELECT:
		return t->device_feature_select;
	case DEVICE_FEATURE:
		return half_of(offered_features(t), t->device_feature_select);
	case DRIVER_FEATURE_SELECT:
		return t->driver_feature_select;
	case DRIVER_FEATURE:
		return half_of(t->driver_features, t->driver_feature_select);
	case CONFIG_MSIX_VECTOR:
		return atomic_load(&t->config_vector);
	case NUM_QUEUES:
		return t->device->num_queues;
	case DEVICE_STATUS:
		return atomic_load(&t->status);
	case CONFIG_GENERATION:
		return atomic_load(&t->config_generation);
	case QUEUE_SELECT:
		return t->queue_select;
	default:
		return read_queue_field(t, offset);
	}
}

/* A vector that does not exist cannot be mapped: the driver sees that when it reads back. */
static uint16_t existing_vector(const struct virtio_pci *t, uint32_t value)
{
	return value < t->function.msix.num_vectors ? (uint16_t)value : NO_VECTOR;
}

static void write_queue_field(struct virtio_pci *t, uint32_t offset, uint32_t value)
{
	struct transport_queue *queue = selected_queue(t);

	if (!queue)
		return;
	if (offset == QUEUE_MSIX_VECTOR)
		set_vector(t, queue, existing_vector(t, value));
	else if (offset == QUEUE_ENABLE)
		enable_queue(t, value);
	if (queue->enabled)
		return;
	switch (offset) {
	case QUEUE_SIZE:
		queue->setup.size = (uint16_t)value;
		break;
	case QUEUE_DESC:
	case QUEUE_DESC_HIGH:
		set_half(&queue->setup.desc, offset == QUEUE_DESC_HIGH, value);
		break;
	case QUEUE_DRIVER:
	case QUEUE_DRIVER_HIGH:
		set_half(&queue->setup.avail, offset == QUEUE_DRIVER_HIGH, value);
		break;
	case QUEUE_DEVICE:
	case QUEUE_DEVICE_HIGH:
		set_half(&queue->setup.used, offset == QUEUE_DEVICE_HIGH, value);
		break;
	default:
		break;
	}
}

static void write_common(struct virtio_pci *t, uint32_t offset, uint32_t value)
{
	switch (offset) {
	case DEVICE_FEATURE_SELECT:
		t->device_feature_select = value;
		break;
	case DRIVER_FEATURE_SELECT:
		t->driver_feature_select = value;
		break;
	case DRIVER_FEATURE:
		/* Once they are agreed on they stay. */
		if (t->driver_feature_select <= 1 && !(atomic_load(&t->status) & STATUS_FEATURES_OK))
			set_half(&t->driver_features, t->driver_feature_select, value);
		break;
	case CONFIG_MSIX_VECTOR:
		atomic_store(&t->config_vector, existing_vector(t, value));
		break;
	case DEVICE_STATUS:
		write_status(t, value);
		break;
	case QUEUE_SELECT:
		t->queue_select = (uint16_t)value;
		break;
	default:
		write_queue_field(t, offset, value);
		break;
	}
}

/* ---- The registers' BAR ----------------------------------------------------------------------- */

static bool is_device_config(const struct virtio_pci *t, uint32_t offset, unsigned width)
{
	return offset < t->device->config_size && width <= t->device->config_size - offset;
}

static uint32_t read_device_config(struct virtio_pci *t, uint32_t offset, unsigned width)
{
	uint8_t bytes[4] = { 0 };
	uint32_t value = 0;

	if (!is_device_config(t, offset, width))
		return 0;
	t->device->ops->config_read(t->device, offset, bytes, width);
	for (unsigned i = 0; i < width; i++)
		value |= (uint32_t)bytes[i] << (8 * i);
	return value;
}

static void write_device_config(struct virtio_pci *t, uint32_t offset, unsigned width, uint32_t value)
{
	uint8_t bytes[4];

	if (!is_device_config(t, offset, width) || !t->device->ops->config_write)
		return;
	for (unsigned i = 0; i < width; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	t->device->ops->config_write(t->device, offset, bytes, width);
}

static uint32_t read_registers(void *owner, uint32_t offset, unsigned width)
{
	struct virtio_pci *t = owner;
	const uint32_t within = offset % PAGE_SIZE;

	switch (offset - within) {
	case COMMON_OFFSET:
		return is_field(within, width) ? read_common(t, within) : 0;
	case ISR_OFFSET:
		/* Reading it takes it. */
		return within == 0 && width == 1 ? atomic_exchange(&t->isr, 0) : 0;
	case DEVICE_OFFSET:
		return read_device_config(t, within, width);
	default: /* notifications are written only */
		return 0;
	}
}

static void write_registers(void *owner, uint32_t offset, unsigned width, uint32_t value)
{
	struct virtio_pci *t = owner;
	const uint32_t within = offset % PAGE_SIZE;

	switch (offset - within) {
	case COMMON_OFFSET:
		if (is_field(within, width))
			write_common(t, within, value);
		break;
	case DEVICE_OFFSET:
		write_device_config(t, within, width, value);
		break;
	case NOTIFY_OFFSET:
		if (within % NOTIFY_STRIDE == 0)
			notify_queue(t, within / NOTIFY_STRIDE);
		break;
	default:
		break;
	}
}

static const struct pci_bar_ops registers = {
	.read = read_registers,
	.write = write_registers,
};

/* ---- The window in configuration space ------------------------------------------------------ */

/*
 * VIRTIO_PCI_CAP_PCI_CFG: the driver names a place in a BAR, and reads or writes it through the capability's data. For
 * firmware that cannot map BARs.
 */
struct config_window {
	unsigned bar;
	uint32_t offset;
	unsigned width;
};

static bool find_window(const struct virtio_pci *t, unsigned offset, unsigned width, struct config_window *window)
{
	const unsigned data = t->pci_cfg + CAP_EXTRA;

	if (offset >= data + 4 || offset + width <= data)
		return false;
	window->bar = pci_config_get(&t->function, t->pci_cfg + CAP_BAR, 1);
	window->offset = pci_config_get(&t->function, t->pci_cfg + CAP_OFFSET, 4);
	window->width = pci_config_get(&t->function, t->pci_cfg + CAP_LENGTH, 4);
	return window->width == 1 || window->width == 2 || window->width == 4;
}

static void before_config_read(void *owner, unsigned offset, unsigned width)
{
	struct virtio_pci *t = owner;
	struct config_window window;
	uint32_t value;

	if (find_window(t, offset, width, &window) &&
	    pci_bar_read(&t->function, window.bar, window.offset, window.width, &value))
		pci_config_set(&t->function, t->pci_cfg + CAP_EXTRA, window.width, value);
}

static void after_config_write(void *owner, unsigned offset, unsigned width)
{
	struct virtio_pci *t = owner;
	struct config_window window;

	if (find_window(t, offset, width, &window))
		pci_bar_write(&t->function, window.bar, window.offset, window.width,
			      pci_config_get(&t->function, t->pci_cfg + CAP_EXTRA, window.width));
}

static const struct pci_function_ops function_ops = {
	.before_config_read = before_config_read,
	.after_config_write = after_config_write,
};

/* ---- Life --------------------------------------------------------------------------------------- */

/* Returns the capability's offset or -ENOSPC. */
static int add_capability(struct virtio_pci *t, unsigned type, uint32_t offset, uint32_t length, unsigned extra)
{
	struct pci_function *function = &t->function;
	const int at = pci_add_capability(function, PCI_CAP_ID_VENDOR, CAP_SIZE + extra);

	if (at < 0)
		return at;
	pci_config_set(function, (unsigned)at + CAP_LENGTH_OF_SELF, 1, CAP_SIZE + extra);
	pci_config_set(function, (unsigned)at + CAP_TYPE, 1, type);
	pci_config_set(function, (unsigned)at + CAP_BAR, 1, REGISTERS_BAR);
	pci_config_set(function, (unsigned)at + CAP_OFFSET, 4, offset);
	pci_config_set(function, (unsigned)at + CAP_LENGTH, 4, length);
	return at;
}

static int add_capabilities(struct virtio_pci *t)
{
	struct pci_function *function = &t->function;
	int at;

	if (add_capability(t, CAP_COMMON, COMMON_OFFSET, COMMON_SIZE, 0) < 0 ||
	    add_capability(t, CAP_ISR, ISR_OFFSET, ISR_SIZE, 0) < 0 ||
	    add_capability(t, CAP_DEVICE, DEVICE_OFFSET, t->device->config_size, 0) < 0)
		return -ENOSPC;
	at = add_capability(t, CAP_NOTIFY, NOTIFY_OFFSET, t->device->num_queues * NOTIFY_STRIDE, 4);
	if (at < 0)
		return at;
	pci_config_set(function, (unsigned)at + CAP_EXTRA, 4, NOTIFY_STRIDE);
	at = add_capability(t, CAP_PCI_CFG, 0, 0, 4);
	if (at < 0)
		return at;
	t->pci_cfg = (unsigned)at;
	pci_config_allow(function, t->pci_cfg + CAP_BAR, 1, 0xff);
	pci_config_allow(function, t->pci_cfg + CAP_OFFSET, 4, UINT32_MAX);
	pci_config_allow(function, t->pci_cfg + CAP_LENGTH, 4, UINT32_MAX);
	pci_config_allow(function, t->pci_cfg + CAP_EXTRA, 4, UINT32_MAX);
	return 0;
}

static int build(struct virtio_pci *t, struct pci_host *host)
{
	int ret;

	ret = add_capabilities(t);
	if (ret)
		return ret;
	pci_add_bar(&t->function, REGISTERS_BAR, REGISTERS_SIZE, &registers, t);
	ret = pci_add_function(host, &t->function);
	if (ret)
		return ret;
	ret = pci_add_msix(&t->function, MSIX_BAR,
			   t->device->num_vectors ? t->device->num_vectors : t->device->num_queues + 1u);
	if (ret)
		pci_remove_function(host, &t->function);
	return ret;
}

int virtio_pci_create(struct pci_host *host, struct virtio_device *device, struct virtio_pci **result)
{
	const struct pci_identity identity = {
		.vendor = VIRTIO_VENDOR,
		.device = (uint16_t)(VIRTIO_DEVICE_BASE + device->id),
		.subsystem_vendor = VIRTIO_VENDOR,
		.subsystem = (uint16_t)(VIRTIO_DEVICE_BASE + device->id),
		.class_code = CLASS_STORAGE,
		.revision = VIRTIO_REVISION,
	};
	struct virtio_pci *t = calloc(1, sizeof(*t));
	int ret;

	if (!t)
		return -ENOMEM;
	t->host = host;
	t->device = device;
	pci_function_init(&t->function, &identity, &function_ops, t);
	ret = build(t, host);
	if (ret) {
		pci_function_destroy(&t->function);
		free(t);
		return ret;
	}
	device->transport_ops = &transport_ops;
	device->transport = t;
	for (unsigned i = 0; i < VIRTIO_MAX_QUEUES; i++) {
		t->queues[i].call_fd = -1;
		atomic_store(&t->queues[i].vector, NO_VECTOR);
	}
	reset_device(t);
	*result = t;
	return 0;
}

void virtio_pci_reset(struct virtio_pci *t)
{
	reset_device(t);
	pci_function_reset(&t->function);
}

void virtio_pci_destroy(struct virtio_pci *t)
{
	if (!t)
		return;
	reset_device(t);
	pci_remove_function(t->host, &t->function);
	t->device->ops->destroy(t->device);
	pci_function_destroy(&t->function);
	free(t);
}

/* ---- Saving and loading --------------------------------------------------------------------------- */

bool virtio_pci_can_be_saved(const struct virtio_pci *t)
{
	return t->device->ops->pause;
}

void virtio_pci_pause(struct virtio_pci *t)
{
	t->device->ops->pause(t->device);
}

void virtio_pci_resume(struct virtio_pci *t)
{
	t->device->ops->resume(t->device);
}

static void save_queue(const struct virtio_pci *t, unsigned index, struct snapshot_out *out)
{
	const struct transport_queue *queue = &t->queues[index];
	struct virtio_queue_position position = { 0 };

	put_u16(out, queue->setup.size);
	put_u64(out, queue->setup.desc);
	put_u64(out, queue->setup.avail);
	put_u64(out, queue->setup.used);
	put_u16(out, atomic_load(&queue->vector));
	put_u8(out, queue->enabled);
	put_u8(out, queue->started);
	if (queue->started)
		t->device->ops->save_queue(t->device, index, &position);
	put_u16(out, position.published);
	put_u16(out, position.next_avail);
	put_u16(out, position.next_used);
	put_u8(out, position.failed);
}

void virtio_pci_save(const struct virtio_pci *t, struct snapshot_out *out)
{
	pci_function_save(&t->function, out);
	put_u64(out, offered_features(t));
	put_u32(out, t->device->num_queues);
	put_u32(out, t->device_feature_select);
	put_u32(out, t->driver_feature_select);
	put_u64(out, t->driver_features);
	put_u16(out, t->queue_select);
	put_u16(out, atomic_load(&t->config_vector));
	put_u8(out, atomic_load(&t->config_generation));
	put_u8(out, atomic_load(&t->status));
	put_u8(out, atomic_load(&t->isr));
	put_u8(out, atomic_load(&t->failed));
	for (unsigned i = 0; i < t->device->num_queues; i++)
		save_queue(t, i, out);
}

/* Each value is one that the driver could have brought about: what it cannot is refused. */
static void load_queue(struct virtio_pci *t, unsigned index, struct snapshot_in *in)
{
	struct transport_queue *queue = &t->queues[index];
	struct virtio_queue_position position;
	uint16_t vector;

	queue->setup.size = get_u16(in);
	queue->setup.desc = get_u64(in);
	queue->setup.avail = get_u64(in);
	queue->setup.used = get_u64(in);
	vector = get_u16(in);
	queue->enabled = get_bool(in);
	queue->started = get_bool(in);
	position.published = get_u16(in);
	position.next_avail = get_u16(in);
	position.next_used = get_u16(in);
	position.failed = get_bool(in);
	if (vector != existing_vector(t, vector))
		snapshot_in_wrong(in, "a queue has a vector that does not exist");
	if (queue->enabled && check_setup(t->device, &queue->setup))
		snapshot_in_wrong(in, check_setup(t->device, &queue->setup));
	if (queue->started && (!queue->enabled || !(atomic_load(&t->status) & STATUS_DRIVER_OK)))
		snapshot_in_wrong(in, "a queue has been started that was not set up");
	if (!queue->started && queue->enabled && (atomic_load(&t->status) & STATUS_DRIVER_OK) &&
	    !atomic_load(&t->failed))
		snapshot_in_wrong(in, "a queue was set up and has not been started");
	if (in->wrong) {
		queue->started = false;
		return;
	}
	atomic_store(&queue->vector, vector);
	if (queue->started)
		t->device->ops->load_queue(t->device, index, &queue->setup, &position);
}

void virtio_pci_load(struct virtio_pci *t, struct snapshot_in *in)
{
	if (!virtio_pci_can_be_saved(t)) {
		snapshot_in_wrong(in, "the disk is served by another process here");
		return;
	}
	pci_function_load(&t->function, in);
	expect_u64(in, offered_features(t), "the device offers other features");
	expect_u32(in, t->device->num_queues, "the device has another number of queues");
	t->device_feature_select = get_u32(in);
	t->driver_feature_select = get_u32(in);
	t->driver_features = get_u64(in);
	t->queue_select = get_u16(in);
	atomic_store(&t->config_vector, existing_vector(t, get_u16(in)));
	atomic_store(&t->config_generation, get_u8(in));
	atomic_store(&t->status, get_u8(in) & (STATUS_DRIVERS_OWN | STATUS_NEEDS_RESET));
	atomic_store(&t->isr, get_u8(in));
	atomic_store(&t->failed, get_bool(in));
	if ((atomic_load(&t->status) & STATUS_FEATURES_OK) && !in->wrong && !accept_features(t))
		snapshot_in_wrong(in, "the driver has agreed on features that were not offered");
	for (unsigned i = 0; i < t->device->num_queues && !in->wrong; i++)
		load_queue(t, i, in);
}
