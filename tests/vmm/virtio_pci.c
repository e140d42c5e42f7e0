/* SPDX-License-Identifier: MIT */
/* virtio_pci.c - the transport's registers, driven by right and wrong drivers, with a device that notes what reaches it. */
#include "virtio_pci.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rig.h"

#define SLOT    1u
#define QUEUES  3u
#define SIZE    8u /* of the rings */
#define MAXIMUM 256u

#define REGISTERS 0x10000000u
#define COMMON    REGISTERS
#define ISR       (REGISTERS + 0x1000)
#define DEVICE    (REGISTERS + 0x2000)
#define NOTIFY    (REGISTERS + 0x3000)
#define TABLE     0x10010000u

/* Offsets in the common configuration. */
#define DEVICE_FEATURE_SELECT 0u
#define DEVICE_FEATURE        4u
#define DRIVER_FEATURE_SELECT 8u
#define DRIVER_FEATURE        12u
#define CONFIG_VECTOR         16u
#define NUM_QUEUES            18u
#define STATUS                20u
#define GENERATION            21u
#define QUEUE_SELECT          22u
#define QUEUE_SIZE            24u
#define QUEUE_VECTOR          26u
#define QUEUE_ENABLE          28u
#define QUEUE_NOTIFY_OFF      30u
#define QUEUE_DESC            32u
#define QUEUE_DRIVER          40u
#define QUEUE_DEVICE          48u

#define ACKNOWLEDGE 1u
#define DRIVER      2u
#define DRIVER_OK   4u
#define FEATURES_OK 8u
#define NEEDS_RESET 0x40u
#define FAILED      0x80u

#define FEATURE_A   (1ull << 3)
#define FEATURE_B   (1ull << 40) /* the device wants it, or refuses */
#define NOT_THERE   (1ull << 7)
#define VERSION_1   VIRTIO_F_VERSION_1
#define CONFIG_MSIX 0x8000u

struct fake {
	struct virtio_device device;
	uint64_t features; /* as set; 0 before */
	unsigned num_set_features;
	struct virtio_queue_setup setups[QUEUES];
	unsigned starts[QUEUES];
	unsigned notifications[QUEUES];
	unsigned resets;
	unsigned destroyed;
	int start_result;
	uint8_t config[6];
};

struct fixture {
	struct rig rig;
	struct fake fake;
	struct virtio_pci *transport;
	struct ring rings[QUEUES];
};

static struct fake *to_fake(struct virtio_device *device)
{
	return (struct fake *)(void *)device;
}

static int set_features(struct virtio_device *device, uint64_t features)
{
	to_fake(device)->num_set_features++;
	to_fake(device)->features = features;
	return features & FEATURE_B ? 0 : -EINVAL;
}

static void config_read(struct virtio_device *device, uint32_t offset, void *data, size_t size)
{
	memcpy(data, to_fake(device)->config + offset, size);
}

static void config_write(struct virtio_device *device, uint32_t offset, const void *data, size_t size)
{
	memcpy(to_fake(device)->config + offset, data, size);
}

static int start_queue(struct virtio_device *device, unsigned index, const struct virtio_queue_setup *setup)
{
	struct fake *fake = to_fake(device);

	fake->starts[index]++;
	fake->setups[index] = *setup;
	return fake->start_result;
}

static void notify_queue(struct virtio_device *device, unsigned index)
{
	to_fake(device)->notifications[index]++;
}

static void reset(struct virtio_device *device)
{
	to_fake(device)->resets++;
}

static void destroy(struct virtio_device *device)
{
	to_fake(device)->destroyed++;
}

static const struct virtio_device_ops fake_ops = {
	.set_features = set_features,
	.config_read = config_read,
	.config_write = config_write,
	.start_queue = start_queue,
	.notify_queue = notify_queue,
	.reset = reset,
	.destroy = destroy,
};

/* ---- A driver --------------------------------------------------------------------------- */

static uint32_t get(struct fixture *f, uint32_t offset, unsigned width)
{
	return rig_read(&f->rig, COMMON + offset, width);
}

static void set(struct fixture *f, uint32_t offset, unsigned width, uint32_t value)
{
	rig_write(&f->rig, COMMON + offset, width, value);
}

static void set_64(struct fixture *f, uint32_t offset, uint64_t value)
{
	set(f, offset, 4, (uint32_t)value);
	set(f, offset + 4, 4, (uint32_t)(value >> 32));
}

static uint32_t status(struct fixture *f)
{
	return get(f, STATUS, 1);
}

static void add_status(struct fixture *f, uint32_t bits)
{
	set(f, STATUS, 1, status(f) | bits);
}

static void select_features(struct fixture *f, uint64_t features)
{
	set(f, DRIVER_FEATURE_SELECT, 4, 0);
	set(f, DRIVER_FEATURE, 4, (uint32_t)features);
	set(f, DRIVER_FEATURE_SELECT, 4, 1);
	set(f, DRIVER_FEATURE, 4, (uint32_t)(features >> 32));
}

static void start(struct fixture *f)
{
	uint64_t at = RIG_RAM_BASE;

	memset(f, 0, sizeof(*f));
	rig_start(&f->rig);
	f->fake.device = (struct virtio_device){
		.ops = &fake_ops,
		.name = "a disk for tests",
		.ram = &f->rig.ram,
		.id = VIRTIO_ID_BLOCK,
		.num_queues = QUEUES,
		.max_queue_size = MAXIMUM,
		.config_size = sizeof(f->fake.config),
		.features = FEATURE_A | FEATURE_B,
	};
	assert_int_equal(virtio_pci_create(&f->rig.host, &f->fake.device, &f->transport), 0);
	f->fake.resets = 0;
	for (unsigned i = 0; i < QUEUES; i++)
		at = ring_init(&f->rings[i], &f->rig.ram, at, SIZE);
	rig_place_bar(&f->rig, SLOT, 0, REGISTERS);
	rig_place_bar(&f->rig, SLOT, 1, TABLE);
	rig_config_write(&f->rig, SLOT, PCI_COMMAND, 2, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	rig_config_write(&f->rig, SLOT, rig_find_capability(&f->rig, SLOT, PCI_CAP_ID_MSIX, 0) + 2, 2, CONFIG_MSIX);
	for (unsigned i = 0; i <= QUEUES; i++)
		rig_set_vector(&f->rig, TABLE, i, i);
}

static void stop(struct fixture *f)
{
	virtio_pci_destroy(f->transport);
	assert_int_equal(f->fake.destroyed, 1);
	rig_stop(&f->rig);
}

static void agree(struct fixture *f)
{
	add_status(f, ACKNOWLEDGE);
	add_status(f, DRIVER);
	select_features(f, VERSION_1 | FEATURE_B);
	add_status(f, FEATURES_OK);
	assert_int_equal(status(f), ACKNOWLEDGE | DRIVER | FEATURES_OK);
}

/* Up to, but without, the enabling. */
static void set_up(struct fixture *f, unsigned index)
{
	const struct ring *ring = &f->rings[index];

	set(f, QUEUE_SELECT, 2, index);
	set(f, QUEUE_SIZE, 2, ring->size);
	set_64(f, QUEUE_DESC, ring->desc);
	set_64(f, QUEUE_DRIVER, ring->avail);
	set_64(f, QUEUE_DEVICE, ring->used);
}

static void enable(struct fixture *f, unsigned index)
{
	set_up(f, index);
	set(f, QUEUE_ENABLE, 2, 1);
}

static void run(struct fixture *f)
{
	agree(f);
	set(f, CONFIG_VECTOR, 2, 0);
	for (unsigned i = 0; i < QUEUES; i++) {
		enable(f, i);
		set(f, QUEUE_VECTOR, 2, i + 1);
	}
	add_status(f, DRIVER_OK);
	assert_int_equal(status(f), ACKNOWLEDGE | DRIVER | FEATURES_OK | DRIVER_OK);
}

static void notify(struct fixture *f, unsigned index)
{
	rig_write(&f->rig, NOTIFY + 4 * index, 2, index);
}

/* ---- Right ------------------------------------------------------------------------------- */

static void the_function_says_what_it_is_and_where(void **state)
{
	static const struct {
		uint8_t type;
		uint32_t offset;
		uint32_t length;
	} capabilities[] = {
		{ 1, 0x0000, 56 }, { 3, 0x1000, 1 }, { 4, 0x2000, 6 }, { 2, 0x3000, 4 * QUEUES }, { 5, 0, 0 },
	};
	struct fixture f;

	(void)state;
	start(&f);
	assert_int_equal(rig_config_read(&f.rig, SLOT, 0, 4), 0x10421af4);
	assert_int_equal(rig_config_read(&f.rig, SLOT, PCI_REVISION_ID, 1), 1);
	assert_true(rig_config_read(&f.rig, SLOT, PCI_SUBSYSTEM_ID, 2) >= 0x40);
	for (unsigned i = 0; i < 5; i++) {
		const unsigned at = rig_find_capability(&f.rig, SLOT, PCI_CAP_ID_VENDOR, i);
		const bool longer = capabilities[i].type == 2 || capabilities[i].type == 5;

		assert_int_not_equal(at, 0);
		assert_int_equal(rig_config_read(&f.rig, SLOT, at + 2, 1), longer ? 20 : 16);
		assert_int_equal(rig_config_read(&f.rig, SLOT, at + 3, 1), capabilities[i].type);
		assert_int_equal(rig_config_read(&f.rig, SLOT, at + 4, 1), 0);
		assert_int_equal(rig_config_read(&f.rig, SLOT, at + 8, 4), capabilities[i].offset);
		assert_int_equal(rig_config_read(&f.rig, SLOT, at + 12, 4), capabilities[i].length);
		if (capabilities[i].type == 2)
			assert_int_equal(rig_config_read(&f.rig, SLOT, at + 16, 4), 4);
	}
	assert_int_equal(rig_find_capability(&f.rig, SLOT, PCI_CAP_ID_VENDOR, 5), 0);
	assert_int_equal(get(&f, NUM_QUEUES, 2), QUEUES);
	stop(&f);
}

static void the_device_is_started_in_order(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	agree(&f);
	assert_true(f.fake.features == (VERSION_1 | FEATURE_B));
	for (unsigned i = 0; i < QUEUES - 1; i++) {
		set(&f, QUEUE_SELECT, 2, i);
		assert_int_equal(get(&f, QUEUE_SIZE, 2), MAXIMUM);
		assert_int_equal(get(&f, QUEUE_NOTIFY_OFF, 2), i);
		assert_int_equal(get(&f, QUEUE_ENABLE, 2), 0);
		enable(&f, i);
		assert_int_equal(get(&f, QUEUE_ENABLE, 2), 1);
		notify(&f, i);
		assert_int_equal(f.fake.starts[i] + f.fake.notifications[i], 0); /* not before DRIVER_OK */
	}
	add_status(&f, DRIVER_OK);
	for (unsigned i = 0; i < QUEUES - 1; i++) {
		assert_int_equal(f.fake.starts[i], 1);
		assert_int_equal(f.fake.setups[i].size, SIZE);
		assert_true(f.fake.setups[i].desc == f.rings[i].desc);
		assert_true(f.fake.setups[i].avail == f.rings[i].avail);
		assert_true(f.fake.setups[i].used == f.rings[i].used);
		notify(&f, i);
		rig_write(&f.rig, NOTIFY + 4 * i, 4, 0);
		assert_int_equal(f.fake.notifications[i], 2);
	}
	/* One that comes later is started at once; none twice. */
	assert_int_equal(f.fake.starts[QUEUES - 1], 0);
	notify(&f, QUEUES - 1);
	enable(&f, QUEUES - 1);
	assert_int_equal(f.fake.starts[QUEUES - 1], 1);
	enable(&f, QUEUES - 1);
	add_status(&f, DRIVER_OK);
	assert_int_equal(f.fake.starts[QUEUES - 1], 1);
	assert_int_equal(f.fake.notifications[QUEUES - 1], 0);
	stop(&f);
}

static void interrupts_come_by_the_vectors(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	run(&f);
	for (unsigned i = 0; i < QUEUES; i++) {
		virtio_interrupt_queue(&f.fake.device, i);
		for (unsigned j = 0; j <= QUEUES; j++)
			assert_int_equal(rig_took(&f.rig, j), j == i + 1);
	}
	assert_int_equal(rig_read(&f.rig, ISR, 1), 1);
	assert_int_equal(rig_read(&f.rig, ISR, 1), 0);
	virtio_interrupt_config(&f.fake.device);
	assert_true(rig_took(&f.rig, 0));
	assert_int_equal(get(&f, GENERATION, 1), 1);
	assert_int_equal(rig_read(&f.rig, ISR, 1), 2);
	/* Two queues may share a vector, and one may have none. */
	set(&f, QUEUE_SELECT, 2, 1);
	set(&f, QUEUE_VECTOR, 2, 1);
	set(&f, QUEUE_SELECT, 2, 2);
	set(&f, QUEUE_VECTOR, 2, 0xffff);
	virtio_interrupt_queue(&f.fake.device, 1);
	assert_true(rig_took(&f.rig, 1));
	virtio_interrupt_queue(&f.fake.device, 2);
	assert_int_equal(rig_messages(&f.rig), 0);
	stop(&f);
}

static void wait_for(struct fixture *f, unsigned number)
{
	while (!rig_took(&f->rig, number))
		sched_yield();
}

/* An eventfd of another process's is the queue's interrupt, wherever the driver puts that. */
static void a_call_eventfd_follows_the_vector(void **state)
{
	const int fds[] = { eventfd(0, 0), eventfd(0, 0) };
	struct fixture f;

	(void)state;
	start(&f);
	run(&f);
	assert_int_equal(virtio_bind_call_fd(&f.fake.device, 0, fds[0]), 0);
	assert_int_equal(virtio_bind_call_fd(&f.fake.device, 1, fds[1]), 0);
	eventfd_write(fds[0], 1);
	wait_for(&f, 1);
	eventfd_write(fds[1], 1);
	wait_for(&f, 2);
	set(&f, QUEUE_SELECT, 2, 0);
	set(&f, QUEUE_VECTOR, 2, 3);
	wait_for(&f, 3); /* one that was signalled before may be an event once more */
	eventfd_write(fds[0], 1);
	wait_for(&f, 3);
	/* No vector: no interrupt, but the events of the other queue. */
	set(&f, QUEUE_VECTOR, 2, 0xffff);
	eventfd_write(fds[0], 1);
	eventfd_write(fds[1], 1);
	wait_for(&f, 2);
	assert_int_equal(rig_messages(&f.rig), 0);
	set(&f, QUEUE_VECTOR, 2, 2); /* the same one for both */
	eventfd_write(fds[0], 1);
	wait_for(&f, 2);
	/* A reset unbinds. */
	set(&f, STATUS, 1, 0);
	eventfd_write(fds[0], 1);
	run(&f);
	assert_int_equal(virtio_bind_call_fd(&f.fake.device, 1, fds[1]), 0);
	eventfd_write(fds[1], 1);
	wait_for(&f, 2);
	assert_int_equal(virtio_bind_call_fd(&f.fake.device, 1, -1), 0);
	rig_took(&f.rig, 2); /* binding and signal may have been two events */
	assert_int_equal(rig_messages(&f.rig), 0);
	assert_int_not_equal(virtio_bind_call_fd(&f.fake.device, 1, 1 << 20), 0); /* not open */
	stop(&f);
	close(fds[0]);
	close(fds[1]);
}

static void a_vector_that_does_not_exist_is_not_mapped(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	for (uint32_t value = 0; value < 0x10000; value += value < 2 * QUEUES ? 1 : 0x1ffe) {
		set(&f, CONFIG_VECTOR, 2, value);
		assert_int_equal(get(&f, CONFIG_VECTOR, 2), value <= QUEUES ? value : 0xffff);
		set(&f, QUEUE_VECTOR, 2, value);
		assert_int_equal(get(&f, QUEUE_VECTOR, 2), value <= QUEUES ? value : 0xffff);
	}
	stop(&f);
}

static void a_reset_forgets_everything(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	run(&f);
	virtio_interrupt_config(&f.fake.device);
	set(&f, STATUS, 1, 0);
	assert_int_equal(f.fake.resets, 1);
	assert_int_equal(status(&f), 0);
	assert_int_equal(rig_read(&f.rig, ISR, 1), 0);
	assert_int_equal(get(&f, CONFIG_VECTOR, 2), 0xffff);
	set(&f, DRIVER_FEATURE_SELECT, 4, 1);
	assert_int_equal(get(&f, DRIVER_FEATURE, 4), 0);
	for (unsigned i = 0; i < QUEUES; i++) {
		set(&f, QUEUE_SELECT, 2, i);
		assert_int_equal(get(&f, QUEUE_ENABLE, 2), 0);
		assert_int_equal(get(&f, QUEUE_SIZE, 2), MAXIMUM);
		assert_int_equal(get(&f, QUEUE_VECTOR, 2), 0xffff);
		assert_int_equal(get(&f, QUEUE_DESC, 4), 0);
		notify(&f, i);
		assert_int_equal(f.fake.notifications[i], 0);
	}
	run(&f);
	notify(&f, 0);
	assert_int_equal(f.fake.notifications[0], 1);
	assert_int_equal(f.fake.starts[0], 2);
	stop(&f);
}

static void the_configuration_of_the_device_is_bounded(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	memcpy(f.fake.config, "abcdef", 6);
	assert_int_equal(rig_read(&f.rig, DEVICE, 4), 0x64636261);
	assert_int_equal(rig_read(&f.rig, DEVICE + 4, 2), 0x6665);
	assert_int_equal(rig_read(&f.rig, DEVICE + 5, 1), 0x66);
	assert_int_equal(rig_read(&f.rig, DEVICE + 5, 2), 0);
	assert_int_equal(rig_read(&f.rig, DEVICE + 4, 4), 0);
	assert_int_equal(rig_read(&f.rig, DEVICE + 0xfff, 1), 0);
	rig_write(&f.rig, DEVICE + 4, 4, 0);
	rig_write(&f.rig, DEVICE + 1, 2, 0x5958);
	assert_memory_equal(f.fake.config, "aXYdef", 6);
	stop(&f);
}

static void registers_take_their_own_width_only(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	agree(&f);
	assert_int_equal(get(&f, STATUS, 4), 0);
	assert_int_equal(get(&f, STATUS, 2), 0);
	assert_int_equal(get(&f, NUM_QUEUES, 1), 0);
	assert_int_equal(get(&f, NUM_QUEUES + 1, 2), 0);
	assert_int_equal(get(&f, DEVICE_FEATURE, 2), 0);
	set(&f, STATUS, 4, 0);
	assert_int_equal(f.fake.resets, 0);
	for (unsigned width = 1; width <= 4; width *= 2)
		for (uint32_t at = 56; at < 0x1000; at += width)
			assert_int_equal(get(&f, at, width), 0);
	assert_int_equal(rig_read(&f.rig, NOTIFY, 2), 0);
	stop(&f);
}

/* The window of VIRTIO_PCI_CAP_PCI_CFG reaches the same registers. */
static void registers_are_reached_through_configuration_space(void **state)
{
	struct fixture f;
	unsigned at;

	(void)state;
	start(&f);
	agree(&f);
	at = rig_find_capability(&f.rig, SLOT, PCI_CAP_ID_VENDOR, 4);
	rig_config_write(&f.rig, SLOT, at + 8, 4, STATUS);
	rig_config_write(&f.rig, SLOT, at + 12, 4, 1);
	assert_int_equal(rig_config_read(&f.rig, SLOT, at + 16, 1), ACKNOWLEDGE | DRIVER | FEATURES_OK);
	rig_config_write(&f.rig, SLOT, at + 16, 1, FAILED);
	assert_int_equal(status(&f), ACKNOWLEDGE | DRIVER | FEATURES_OK | FAILED);
	rig_config_write(&f.rig, SLOT, at + 16, 1, 0);
	assert_int_equal(f.fake.resets, 1);
	/* Places that are not there, and widths that do not exist. */
	for (unsigned bar = 0; bar < 256; bar += 5) {
		static const uint32_t offsets[] = { 0, 0x3fff, 0x4000, 0x7fffffff, 0xffffffff };
		static const uint32_t lengths[] = { 0, 1, 2, 3, 4, 5, 8, 0xffffffff };

		rig_config_write(&f.rig, SLOT, at + 4, 1, bar);
		for (unsigned i = 0; i < 5 * 8; i++) {
			rig_config_write(&f.rig, SLOT, at + 8, 4, offsets[i % 5]);
			rig_config_write(&f.rig, SLOT, at + 12, 4, lengths[i / 5]);
			rig_config_read(&f.rig, SLOT, at + 16, 4);
			rig_config_write(&f.rig, SLOT, at + 16, 4, 0xffffffff);
		}
	}
	stop(&f);
}

/* ---- Wrong --------------------------------------------------------------------------------- */

static void features_are_refused(struct fixture *f, uint64_t features, unsigned asked)
{
	set(f, STATUS, 1, 0);
	add_status(f, ACKNOWLEDGE | DRIVER);
	select_features(f, features);
	add_status(f, FEATURES_OK);
	assert_int_equal(status(f), ACKNOWLEDGE | DRIVER);
	assert_int_equal(f->fake.num_set_features, asked);
}

static void features_that_do_not_fit_are_refused(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	set(&f, DEVICE_FEATURE_SELECT, 4, 0);
	assert_int_equal(get(&f, DEVICE_FEATURE, 4), FEATURE_A);
	set(&f, DEVICE_FEATURE_SELECT, 4, 1);
	assert_int_equal(get(&f, DEVICE_FEATURE, 4), (VERSION_1 | FEATURE_B) >> 32);
	set(&f, DEVICE_FEATURE_SELECT, 4, 2);
	assert_int_equal(get(&f, DEVICE_FEATURE, 4), 0);
	features_are_refused(&f, VERSION_1 | FEATURE_B | NOT_THERE, 0);
	features_are_refused(&f, FEATURE_A | FEATURE_B, 0);
	features_are_refused(&f, VERSION_1 | FEATURE_A, 1); /* by the device */
	stop(&f);
}

static void features_do_not_change_once_agreed_on(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	agree(&f);
	select_features(&f, VERSION_1 | FEATURE_A | FEATURE_B);
	add_status(&f, FEATURES_OK);
	set(&f, DRIVER_FEATURE_SELECT, 4, 0);
	assert_int_equal(get(&f, DRIVER_FEATURE, 4), 0);
	assert_int_equal(f.fake.num_set_features, 1);
	stop(&f);
}

static void status_bits_stay_until_a_reset(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	agree(&f);
	set(&f, STATUS, 1, ACKNOWLEDGE);
	assert_int_equal(status(&f), ACKNOWLEDGE | DRIVER | FEATURES_OK);
	set(&f, STATUS, 1, 0x70); /* bits that are not the driver's */
	assert_int_equal(status(&f), ACKNOWLEDGE | DRIVER | FEATURES_OK);
	stop(&f);
}

static void driver_ok_without_features_fails_the_device(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	enable(&f, 0);
	set(&f, STATUS, 1, ACKNOWLEDGE | DRIVER | DRIVER_OK);
	assert_int_equal(status(&f), ACKNOWLEDGE | DRIVER | NEEDS_RESET);
	assert_int_equal(f.fake.starts[0], 0);
	stop(&f);
}

/* A queue that is set up like this fails the device when it is enabled, and is not started. */
static void setup_is_refused(uint16_t size, uint64_t desc, uint64_t avail, uint64_t used)
{
	struct fixture f;

	start(&f);
	agree(&f);
	set(&f, CONFIG_VECTOR, 2, 0);
	set(&f, QUEUE_SIZE, 2, size);
	set_64(&f, QUEUE_DESC, desc);
	set_64(&f, QUEUE_DRIVER, avail);
	set_64(&f, QUEUE_DEVICE, used);
	set(&f, QUEUE_ENABLE, 2, 1);
	assert_int_equal(get(&f, QUEUE_ENABLE, 2), 0);
	assert_int_equal(status(&f), ACKNOWLEDGE | DRIVER | FEATURES_OK | NEEDS_RESET);
	assert_int_equal(rig_messages(&f.rig), 0); /* before DRIVER_OK the driver looks by itself */
	add_status(&f, DRIVER_OK);
	assert_int_equal(f.fake.starts[0], 0);
	stop(&f);
}

static void queues_that_cannot_be_served_fail_the_device(void **state)
{
	static const uint16_t sizes[] = { 0, 3, 6, 255, 512, 0x8000, 0xffff };
	const uint64_t base = RIG_RAM_BASE;
	const uint64_t end = RIG_RAM_END;

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		setup_is_refused(sizes[i], base, base + 0x4000, base + 0x5000);
	setup_is_refused(8, base + 8, base + 0x4000, base + 0x5000);
	setup_is_refused(8, base, base + 0x4001, base + 0x5000);
	setup_is_refused(8, base, base + 0x4000, base + 0x5002);
	setup_is_refused(8, end - 16 * 8 + 16, base + 0x4000, base + 0x5000);
	setup_is_refused(8, base, end - (6 + 2 * 8) + 2, base + 0x5000);
	setup_is_refused(8, base, base + 0x4000, (end - (6 + 8 * 8) + 4) & ~3ull);
	setup_is_refused(8, 0, base + 0x4000, base + 0x5000);
	setup_is_refused(8, base, UINT64_MAX - 1, base + 0x5000);
	setup_is_refused(8, base, base + 0x4000, UINT64_MAX - 3);
	setup_is_refused(8, base + (1ull << 32), base + 0x4000, base + 0x5000);
}

static void an_enabled_queue_does_not_change(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	agree(&f);
	set_up(&f, 0);
	set(&f, QUEUE_ENABLE, 2, 2); /* only a 1 enables */
	set(&f, QUEUE_ENABLE, 2, 0);
	assert_int_equal(get(&f, QUEUE_ENABLE, 2), 0);
	enable(&f, 0);
	set(&f, QUEUE_SIZE, 2, 0);
	set_64(&f, QUEUE_DESC, 0);
	set_64(&f, QUEUE_DRIVER, 0);
	set_64(&f, QUEUE_DEVICE, 0);
	set(&f, QUEUE_ENABLE, 2, 0);
	assert_int_equal(get(&f, QUEUE_ENABLE, 2), 1);
	add_status(&f, DRIVER_OK);
	assert_int_equal(f.fake.setups[0].size, SIZE);
	assert_true(f.fake.setups[0].desc == f.rings[0].desc);
	assert_true(f.fake.setups[0].avail == f.rings[0].avail);
	assert_true(f.fake.setups[0].used == f.rings[0].used);
	stop(&f);
}

static void a_queue_that_does_not_exist_is_nothing(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	agree(&f);
	for (uint32_t index = QUEUES; index < 0x10000; index = index * 2 + 1) {
		set(&f, QUEUE_SELECT, 2, index);
		assert_int_equal(get(&f, QUEUE_SIZE, 2), 0);
		for (uint32_t at = QUEUE_SIZE; at < 56; at += 2)
			set(&f, at, at < QUEUE_DESC ? 2 : 4, 1);
		assert_int_equal(get(&f, QUEUE_ENABLE, 2), 0);
	}
	add_status(&f, DRIVER_OK);
	for (uint32_t at = 0; at < 0x1000; at += 2)
		rig_write(&f.rig, NOTIFY + at, 2, 0);
	assert_int_equal(f.fake.notifications[0] + f.fake.notifications[1] + f.fake.notifications[2], 0);
	assert_int_equal(status(&f) & NEEDS_RESET, 0);
	stop(&f);
}

static void a_failed_device_says_so_once_and_rests(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	run(&f);
	virtio_fail(&f.fake.device, "out of sorts");
	assert_string_equal(rig_last_report(),
			    "a disk for tests: out of sorts: the device has stopped until its driver resets it");
	assert_int_equal(status(&f), ACKNOWLEDGE | DRIVER | FEATURES_OK | DRIVER_OK | NEEDS_RESET);
	assert_true(rig_took(&f.rig, 0));
	virtio_fail(&f.fake.device, "again");
	assert_int_equal(rig_messages(&f.rig), 0);
	notify(&f, 0);
	assert_int_equal(f.fake.notifications[0], 0);
	set(&f, STATUS, 1, 0xff);
	assert_true(status(&f) & NEEDS_RESET);
	set(&f, STATUS, 1, 0);
	run(&f);
	notify(&f, 0);
	assert_int_equal(f.fake.notifications[0], 1);
	virtio_fail(&f.fake.device, "again");
	assert_true(rig_took(&f.rig, 0));
	assert_int_equal(rig_num_reports(), 1); /* a guest could do that for ever */
	stop(&f);
}

static void a_queue_that_does_not_start_fails_the_device(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	f.fake.start_result = -ENOMEM;
	agree(&f);
	for (unsigned i = 0; i < QUEUES; i++)
		enable(&f, i);
	add_status(&f, DRIVER_OK);
	assert_true(status(&f) & NEEDS_RESET);
	assert_int_equal(f.fake.starts[0], 1);
	assert_int_equal(f.fake.starts[1], 0);
	notify(&f, 0);
	assert_int_equal(f.fake.notifications[0], 0);
	stop(&f);
}

static void notifications_need_the_bus(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	run(&f);
	rig_config_write(&f.rig, SLOT, PCI_COMMAND, 2, PCI_COMMAND_MEMORY);
	notify(&f, 0);
	assert_int_equal(f.fake.notifications[0], 0);
	stop(&f);
}

static void a_power_on_reset_clears_function_and_device(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	run(&f);
	virtio_pci_reset(f.transport);
	assert_int_equal(f.fake.resets, 1);
	assert_int_equal(rig_config_read(&f.rig, SLOT, PCI_COMMAND, 2), 0);
	assert_int_equal(rig_config_read(&f.rig, SLOT, PCI_BAR0, 4), 0);
	rig_place_bar(&f.rig, SLOT, 0, REGISTERS);
	rig_config_write(&f.rig, SLOT, PCI_COMMAND, 2, PCI_COMMAND_MEMORY);
	assert_int_equal(status(&f), 0);
	stop(&f);
}

static void a_full_bus_leaves_the_device_to_its_owner(void **state)
{
	static struct fake fakes[PCI_NUM_SLOTS];
	struct virtio_pci *transports[PCI_NUM_SLOTS];
	struct rig rig;

	(void)state;
	rig_start(&rig);
	for (unsigned i = 0; i < PCI_NUM_SLOTS; i++) {
		memset(&fakes[i], 0, sizeof(fakes[i]));
		fakes[i].device = (struct virtio_device){ .ops = &fake_ops, .ram = &rig.ram, .num_queues = 1 };
		assert_int_equal(virtio_pci_create(&rig.host, &fakes[i].device, &transports[i]),
				 i < PCI_NUM_SLOTS - 1 ? 0 : -ENOSPC);
	}
	for (unsigned i = 0; i < PCI_NUM_SLOTS - 1; i++)
		virtio_pci_destroy(transports[i]);
	for (unsigned i = 0; i < PCI_NUM_SLOTS; i++)
		assert_int_equal(fakes[i].destroyed, i < PCI_NUM_SLOTS - 1);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_function_says_what_it_is_and_where),
		cmocka_unit_test(the_device_is_started_in_order),
		cmocka_unit_test(interrupts_come_by_the_vectors),
		cmocka_unit_test(a_call_eventfd_follows_the_vector),
		cmocka_unit_test(a_vector_that_does_not_exist_is_not_mapped),
		cmocka_unit_test(a_reset_forgets_everything),
		cmocka_unit_test(the_configuration_of_the_device_is_bounded),
		cmocka_unit_test(registers_take_their_own_width_only),
		cmocka_unit_test(registers_are_reached_through_configuration_space),
		cmocka_unit_test(features_that_do_not_fit_are_refused),
		cmocka_unit_test(features_do_not_change_once_agreed_on),
		cmocka_unit_test(status_bits_stay_until_a_reset),
		cmocka_unit_test(driver_ok_without_features_fails_the_device),
		cmocka_unit_test(queues_that_cannot_be_served_fail_the_device),
		cmocka_unit_test(an_enabled_queue_does_not_change),
		cmocka_unit_test(a_queue_that_does_not_exist_is_nothing),
		cmocka_unit_test(a_failed_device_says_so_once_and_rests),
		cmocka_unit_test(a_queue_that_does_not_start_fails_the_device),
		cmocka_unit_test(notifications_need_the_bus),
		cmocka_unit_test(a_power_on_reset_clears_function_and_device),
		cmocka_unit_test(a_full_bus_leaves_the_device_to_its_owner),
	};

	return RUN_TESTS("virtio_pci", tests);
}
