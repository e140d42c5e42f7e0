/* SPDX-License-Identifier: MIT */
/*
 * virtio_blk.c - the block device, whole: a driver that writes registers and rings,
 * a file in memory as the disk. Each test runs with the device served inside of notifications
 * and by threads.
 */
#define _GNU_SOURCE /* memfd_create() */

#include "virtio_blk.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vgic/state.h>

#include "rig.h"
#include "snapshot_file.h"
#include "virtio_pci.h"

#define SLOT    1u
#define QUEUES  2u
#define SIZE    16u
#define SECTOR  512u
#define SECTORS 64u

#define REGISTERS 0x10000000u
#define NOTIFY    (REGISTERS + 0x3000)
#define TABLE     0x10010000u

#define HEADER (RIG_RAM_BASE + 0x10000)
#define DATA   (RIG_RAM_BASE + 0x20000)
#define STATUS (RIG_RAM_BASE + 0x30000)

enum { IN = 0, OUT = 1, FLUSH = 4, GET_ID = 8 };
enum { OK = 0, IOERR = 1, UNSUPP = 2, NOT_WRITTEN = 0x5a };

#define F_FLUSH     (1ull << 9)
#define NEEDS_RESET 0x40u

struct fixture {
	struct rig rig;
	char path[64];
	int fd;
	struct virtio_device *device;
	struct virtio_pci *transport;
	struct ring rings[QUEUES];
	uint32_t written; /* as the last request said */
};

/* ---- A driver ----------------------------------------------------------------------------- */

static void set(struct fixture *f, uint32_t offset, unsigned width, uint32_t value)
{
	rig_write(&f->rig, REGISTERS + offset, width, value);
}

static uint32_t device_status(struct fixture *f)
{
	return rig_read(&f->rig, REGISTERS + 20, 1);
}

static void set_64(struct fixture *f, uint32_t offset, uint64_t value)
{
	set(f, offset, 4, (uint32_t)value);
	set(f, offset + 4, 4, (uint32_t)(value >> 32));
}

static void start_driver(struct fixture *f, uint64_t features)
{
	uint64_t at = RIG_RAM_BASE;

	set(f, 20, 1, 0);
	set(f, 20, 1, 3);
	features |= VIRTIO_F_VERSION_1;
	for (unsigned half = 0; half < 2; half++) {
		set(f, 8, 4, half);
		set(f, 12, 4, (uint32_t)(features >> (32 * half)));
	}
	set(f, 20, 1, 0xb);
	assert_int_equal(device_status(f), 0xb);
	set(f, 16, 2, 0); /* the configuration's vector */
	for (unsigned i = 0; i < QUEUES; i++) {
		at = ring_init(&f->rings[i], &f->rig.ram, at, SIZE);
		set(f, 22, 2, i);
		set(f, 24, 2, SIZE);
		set_64(f, 32, f->rings[i].desc);
		set_64(f, 40, f->rings[i].avail);
		set_64(f, 48, f->rings[i].used);
		set(f, 26, 2, i + 1);
		set(f, 28, 2, 1);
	}
	set(f, 20, 1, 0xf);
	assert_int_equal(device_status(f), 0xf);
}

static void make_disk(struct fixture *f)
{
	unsigned char sector[SECTOR];

	f->fd = memfd_create("disk", MFD_CLOEXEC);
	assert_true(f->fd >= 0);
	snprintf(f->path, sizeof(f->path), "/proc/self/../self/fd/%d", f->fd);
	for (unsigned i = 0; i < SECTORS; i++) {
		memset(sector, (int)i + 1, sizeof(sector));
		assert_int_equal(write(f->fd, sector, sizeof(sector)), sizeof(sector));
	}
}

static void start_disk(struct fixture *f, bool threads, bool read_only)
{
	struct virtio_blk_config config = { .queues = QUEUES, .threads = threads, .read_only = read_only };

	memset(f, 0, sizeof(*f));
	rig_start(&f->rig);
	make_disk(f);
	config.path = f->path;
	assert_int_equal(virtio_blk_create(&config, &f->rig.ram, &f->device), 0);
	assert_int_equal(virtio_pci_create(&f->rig.host, f->device, &f->transport), 0);
	rig_place_bar(&f->rig, SLOT, 0, REGISTERS);
	rig_place_bar(&f->rig, SLOT, 1, TABLE);
	rig_config_write(&f->rig, SLOT, PCI_COMMAND, 2, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	rig_config_write(&f->rig, SLOT, rig_find_capability(&f->rig, SLOT, PCI_CAP_ID_MSIX, 0) + 2, 2, 0x8000);
	for (unsigned i = 0; i <= QUEUES; i++)
		rig_set_vector(&f->rig, TABLE, i, i);
}

static void start(struct fixture *f, bool threads)
{
	start_disk(f, threads, false);
	start_driver(f, F_FLUSH | VIRTIO_F_INDIRECT_DESC);
}

static void stop(struct fixture *f)
{
	virtio_pci_destroy(f->transport);
	close(f->fd);
	rig_stop(&f->rig);
}

static void notify(struct fixture *f, unsigned queue)
{
	rig_write(&f->rig, NOTIFY + 4 * queue, 2, queue);
}

static void put(struct fixture *f, unsigned queue, unsigned index, uint64_t address, uint32_t length, uint16_t flags)
{
	ring_put(&f->rig.ram, f->rings[queue].desc, index, address, length, flags, (uint16_t)(index + 1));
}

static void put_header(struct fixture *f, uint64_t at, uint32_t type, uint64_t sector)
{
	unsigned char *header = rig_at(&f->rig.ram, at);

	memcpy(header, &type, 4);
	memset(header + 4, 0, 4);
	memcpy(header + 8, &sector, 8);
}

/* Offer the chain at 0, and wait until it comes back. The interrupt may come a little later than the entry. */
static void complete(struct fixture *f, unsigned queue)
{
	uint32_t id;

	ring_offer(&f->rings[queue], 0);
	notify(f, queue);
	while (!ring_take(&f->rings[queue], &id, &f->written))
		sched_yield();
	assert_int_equal(id, 0);
	while (!rig_took(&f->rig, queue + 1))
		sched_yield();
}

/* Header, data, status, as most drivers lay it out. Returns the status. */
static int request(struct fixture *f, unsigned queue, uint32_t type, uint64_t sector, uint32_t length)
{
	unsigned char *status = rig_at(&f->rig.ram, STATUS);
	unsigned index = 0;

	put_header(f, HEADER, type, sector);
	put(f, queue, index++, HEADER, 16, DESC_NEXT);
	if (length)
		put(f, queue, index++, DATA, length, type == OUT ? DESC_NEXT : DESC_NEXT | DESC_WRITE);
	put(f, queue, index, STATUS, 1, DESC_WRITE);
	*status = NOT_WRITTEN;
	complete(f, queue);
	return *status;
}

static void *data(struct fixture *f)
{
	return rig_at(&f->rig.ram, DATA);
}

/* Are @count bytes all @value? */
static bool all_are(const void *bytes, size_t count, unsigned char value)
{
	const unsigned char *b = bytes;

	for (size_t i = 0; i < count; i++)
		if (b[i] != value)
			return false;
	return true;
}

static bool disk_has(struct fixture *f, unsigned sector, unsigned char value)
{
	unsigned char bytes[SECTOR];

	return pread(f->fd, bytes, sizeof(bytes), (off_t)sector * SECTOR) == sizeof(bytes) &&
	       all_are(bytes, sizeof(bytes), value);
}

/* Each test takes whether the device has threads from its state. */
static bool with_threads(void **state)
{
	return *state != NULL;
}

/* ---- Right ----------------------------------------------------------------------------------- */

static void the_configuration_describes_the_disk(void **state)
{
	const uint64_t expected = 1ull << 2 | 1ull << 6 | 1ull << 9 | 1ull << 12 | 1ull << 28 | VIRTIO_F_VERSION_1;
	struct fixture f;
	uint64_t features;

	start_disk(&f, with_threads(state), false);
	set(&f, 0, 4, 0);
	features = rig_read(&f.rig, REGISTERS + 4, 4);
	set(&f, 0, 4, 1);
	features |= (uint64_t)rig_read(&f.rig, REGISTERS + 4, 4) << 32;
	assert_true(features == expected);
	assert_int_equal(rig_read(&f.rig, REGISTERS + 0x2000, 4), SECTORS);
	assert_int_equal(rig_read(&f.rig, REGISTERS + 0x2004, 4), 0);
	assert_int_equal(rig_read(&f.rig, REGISTERS + 0x200c, 4), 254); /* seg_max */
	assert_int_equal(rig_read(&f.rig, REGISTERS + 0x2014, 4), 512); /* blk_size */
	assert_int_equal(rig_read(&f.rig, REGISTERS + 0x2022, 2), QUEUES);
	rig_write(&f.rig, REGISTERS + 0x2000, 4, 1);
	assert_int_equal(rig_read(&f.rig, REGISTERS + 0x2000, 4), SECTORS);
	stop(&f);
}

static void sectors_are_read_and_written(void **state)
{
	struct fixture f;

	start(&f, with_threads(state));
	for (unsigned queue = 0; queue < QUEUES; queue++) {
		memset(data(&f), 0, 3 * SECTOR);
		assert_int_equal(request(&f, queue, IN, 7, 3 * SECTOR), OK);
		assert_int_equal(f.written, 3 * SECTOR + 1);
		for (unsigned i = 0; i < 3; i++)
			assert_true(all_are((char *)data(&f) + i * SECTOR, SECTOR, (unsigned char)(8 + i)));
		memset(data(&f), 0xa0 + (int)queue, 2 * SECTOR);
		assert_int_equal(request(&f, queue, OUT, SECTORS - 2, 2 * SECTOR), OK);
		assert_int_equal(f.written, 1);
		assert_true(disk_has(&f, SECTORS - 3, SECTORS - 2));
		assert_true(disk_has(&f, SECTORS - 2, (unsigned char)(0xa0 + queue)));
		assert_true(disk_has(&f, SECTORS - 1, (unsigned char)(0xa0 + queue)));
		assert_int_equal(request(&f, queue, FLUSH, 0, 0), OK);
	}
	assert_int_equal(lseek(f.fd, 0, SEEK_END), SECTORS * SECTOR);
	stop(&f);
}

static void the_name_is_the_end_of_the_path(void **state)
{
	struct fixture f;

	start(&f, with_threads(state));
	assert_int_equal(request(&f, 0, GET_ID, 0, 20), OK);
	assert_int_equal(f.written, 21);
	assert_memory_equal(data(&f), f.path + strlen(f.path) - 20, 20);
	assert_int_equal(request(&f, 0, GET_ID, 0, 19), IOERR);
	stop(&f);
}

/* In place of fdatasync(). */
static atomic_uint num_flushes;
static atomic_int flush_result;

int __wrap_fdatasync(int fd);

int __wrap_fdatasync(int fd)
{
	assert_true(fd >= 0);
	atomic_fetch_add(&num_flushes, 1);
	return atomic_load(&flush_result);
}

static void a_flush_reaches_the_file(void **state)
{
	struct fixture f;

	start(&f, with_threads(state));
	atomic_store(&num_flushes, 0);
	assert_int_equal(request(&f, 0, OUT, 0, SECTOR), OK);
	assert_int_equal(atomic_load(&num_flushes), 0);
	assert_int_equal(request(&f, 0, FLUSH, 0, 0), OK);
	assert_int_equal(atomic_load(&num_flushes), 1);
	atomic_store(&flush_result, -1);
	assert_int_equal(request(&f, 0, FLUSH, 0, 0), IOERR);
	atomic_store(&flush_result, 0);
	stop(&f);
}

/* It relies on writes that last. */
static void a_driver_need_not_flush(void **state)
{
	struct fixture f;

	start_disk(&f, with_threads(state), false);
	start_driver(&f, 0);
	atomic_store(&num_flushes, 0);
	memset(data(&f), 0x77, SECTOR);
	assert_int_equal(request(&f, 0, OUT, 0, SECTOR), OK);
	assert_true(disk_has(&f, 0, 0x77));
	assert_int_equal(atomic_load(&num_flushes), 1);
	assert_int_equal(request(&f, 0, IN, 0, SECTOR), OK);
	assert_int_equal(atomic_load(&num_flushes), 1);
	atomic_store(&flush_result, -1);
	assert_int_equal(request(&f, 0, OUT, 0, SECTOR), IOERR);
	atomic_store(&flush_result, 0);
	stop(&f);
}

/* Drivers lay requests out as they like. */
static void requests_may_be_cut_anywhere(void **state)
{
	struct fixture f;

	start(&f, with_threads(state));
	/* A header in three parts, the last one with data. */
	put_header(&f, HEADER, OUT, 5);
	memset(rig_at(&f.rig.ram, HEADER + 16), 0xee, SECTOR);
	put(&f, 0, 0, HEADER, 1, DESC_NEXT);
	put(&f, 0, 1, HEADER + 1, 11, DESC_NEXT);
	put(&f, 0, 2, HEADER + 12, 4 + 100, DESC_NEXT);
	put(&f, 0, 3, HEADER + 116, SECTOR - 100, DESC_NEXT);
	put(&f, 0, 4, STATUS, 1, DESC_WRITE);
	complete(&f, 0);
	assert_int_equal(*(unsigned char *)rig_at(&f.rig.ram, STATUS), OK);
	assert_true(disk_has(&f, 5, 0xee));
	/* Data in odd parts, the last one with the status behind it. */
	put_header(&f, HEADER, IN, 9);
	put(&f, 0, 0, HEADER, 16, DESC_NEXT);
	put(&f, 0, 1, DATA, 511, DESC_NEXT | DESC_WRITE);
	put(&f, 0, 2, DATA + 511, SECTOR + 1 + 1, DESC_WRITE);
	complete(&f, 0);
	assert_int_equal(f.written, 2 * SECTOR + 1);
	assert_true(all_are(data(&f), SECTOR, 10));
	assert_true(all_are((char *)data(&f) + SECTOR, SECTOR, 11));
	assert_int_equal(((unsigned char *)data(&f))[2 * SECTOR], OK);
	stop(&f);
}

static void an_indirect_request_is_one_too(void **state)
{
	const uint64_t table = RIG_RAM_BASE + 0x40000;
	struct fixture f;

	start(&f, with_threads(state));
	put_header(&f, HEADER, IN, 1);
	ring_put(&f.rig.ram, table, 0, HEADER, 16, DESC_NEXT, 1);
	ring_put(&f.rig.ram, table, 1, DATA, SECTOR, DESC_NEXT | DESC_WRITE, 2);
	ring_put(&f.rig.ram, table, 2, STATUS, 1, DESC_WRITE, 0);
	put(&f, 1, 0, table, 48, DESC_INDIRECT);
	complete(&f, 1);
	assert_int_equal(*(unsigned char *)rig_at(&f.rig.ram, STATUS), OK);
	assert_true(all_are(data(&f), SECTOR, 2));
	stop(&f);
}

static void no_interrupt_comes_that_is_not_wanted(void **state)
{
	struct fixture f;
	uint32_t id;

	start(&f, with_threads(state));
	ring_set_flags(&f.rings[0], 1);
	put_header(&f, HEADER, FLUSH, 0);
	put(&f, 0, 0, HEADER, 16, DESC_NEXT);
	put(&f, 0, 1, STATUS, 1, DESC_WRITE);
	ring_offer(&f.rings[0], 0);
	notify(&f, 0);
	while (!ring_take(&f.rings[0], &id, &f.written))
		sched_yield();
	set(&f, 20, 1, 0); /* the device is at rest behind a reset */
	assert_int_equal(rig_messages(&f.rig), 0);
	stop(&f);
}

/* Requests of both queues at once, each answered once and with its own data. */
static void queues_work_beside_each_other(void **state)
{
	struct fixture f;
	unsigned open = 0;
	unsigned done = 0;
	uint32_t id;
	uint32_t length;

	start(&f, with_threads(state));
	for (unsigned i = 0; i < 2000 || open > 0;) {
		const unsigned queue = i % QUEUES;
		struct ring *ring = &f.rings[queue];
		const unsigned slot = i / QUEUES % (SIZE / 4);
		const uint64_t at = DATA + (queue * SIZE + slot) * 2 * SECTOR;
		const unsigned head = 4 * slot;

		if (i < 2000 && (uint16_t)(ring->offered - ring->taken) < SIZE / 4) {
			put_header(&f, at, IN, i % SECTORS);
			put(&f, queue, head, at, 16, DESC_NEXT);
			put(&f, queue, head + 1, at + 32, SECTOR, DESC_NEXT | DESC_WRITE);
			put(&f, queue, head + 2, at + 16, 1, DESC_WRITE);
			*(unsigned char *)rig_at(&f.rig.ram, at + 16) = NOT_WRITTEN;
			ring_offer(ring, (uint16_t)head);
			notify(&f, queue);
			open++;
			i++;
			continue;
		}
		for (unsigned q = 0; q < QUEUES; q++) {
			while (ring_take(&f.rings[q], &id, &length)) {
				const uint64_t base = DATA + (q * SIZE + id / 4) * 2 * SECTOR;
				uint64_t sector;

				memcpy(&sector, rig_at(&f.rig.ram, base + 8), 8);
				assert_int_equal(*(unsigned char *)rig_at(&f.rig.ram, base + 16), OK);
				assert_int_equal(length, SECTOR + 1);
				assert_true(
					all_are(rig_at(&f.rig.ram, base + 32), SECTOR, (unsigned char)(sector + 1)));
				open--;
				done++;
			}
		}
	}
	assert_int_equal(done, 2000);
	stop(&f);
}

/*
 * The driver switches interrupts off while it takes what is there, and on again before it sleeps, as Linux does; but like a
 * guest whose barriers the emulator has dropped: between the flag and the look at the index there is none. An interrupt
 * that is lost leaves it asleep for ever.
 */
static void a_driver_without_barriers_does_not_oversleep(void **state)
{
	const unsigned total = with_threads(state) && !RIG_TSAN ? 20000 : 1000;
	struct fixture f;
	uint16_t *flags;
	unsigned offered = 0;
	unsigned done = 0;
	uint32_t id;

	start(&f, with_threads(state));
	flags = rig_at(&f.rig.ram, f.rings[0].avail);
	for (unsigned i = 0; i < SIZE / 4; i++) {
		put_header(&f, HEADER + 16 * i, GET_ID, 0);
		put(&f, 0, 4 * i, HEADER + 16 * i, 16, DESC_NEXT);
		put(&f, 0, 4 * i + 1, DATA + 32 * i, 21, DESC_WRITE);
		ring_offer(&f.rings[0], (uint16_t)(4 * i));
		offered++;
	}
	notify(&f, 0);
	while (done < total) {
		while (!rig_took(&f.rig, 1))
			sched_yield();
		do {
			__atomic_store_n(flags, 1, __ATOMIC_RELAXED);
			while (ring_take(&f.rings[0], &id, &f.written)) {
				done++;
				if (offered == total)
					continue;
				offered++;
				ring_offer(&f.rings[0], (uint16_t)id);
				notify(&f, 0);
			}
			__atomic_store_n(flags, 0, __ATOMIC_RELAXED);
		} while (ring_has_more(&f.rings[0]));
	}
	assert_int_equal(done, total);
	stop(&f);
}

/* ---- What the disk cannot do -------------------------------------------------------------------- */

static void a_disk_that_is_read_only_stays_as_it_is(void **state)
{
	struct fixture f;

	start_disk(&f, with_threads(state), true);
	set(&f, 0, 4, 0);
	assert_true(rig_read(&f.rig, REGISTERS + 4, 4) & 1u << 5);
	start_driver(&f, F_FLUSH); /* it did not look */
	memset(data(&f), 0xff, SECTOR);
	assert_int_equal(request(&f, 0, OUT, 3, SECTOR), IOERR);
	assert_true(disk_has(&f, 3, 4));
	assert_int_equal(request(&f, 0, IN, 3, SECTOR), OK);
	assert_int_equal(request(&f, 0, FLUSH, 0, 0), OK);
	stop(&f);
}

static void what_is_not_on_the_disk_is_an_error(void **state)
{
	static const struct {
		uint64_t sector;
		uint32_t length;
	} wrong[] = {
		{ SECTORS, SECTOR },
		{ SECTORS - 1, 2 * SECTOR },
		{ UINT64_MAX, SECTOR },
		{ UINT64_MAX / SECTOR, SECTOR },
		{ UINT64_MAX / SECTOR + 1, SECTOR },
		{ 1ull << 55, SECTOR },
		{ 0, 1 },
		{ 0, SECTOR - 1 },
		{ 0, SECTOR + 1 },
	};
	struct fixture f;

	start(&f, with_threads(state));
	memset(data(&f), 0x99, 2 * SECTOR);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(request(&f, 0, OUT, wrong[i].sector, wrong[i].length), IOERR);
		assert_int_equal(request(&f, 0, IN, wrong[i].sector, wrong[i].length), IOERR);
		assert_int_equal(f.written, 1);
		assert_true(all_are(data(&f), 2 * SECTOR, 0x99));
	}
	for (unsigned i = 0; i < SECTORS; i++)
		assert_true(disk_has(&f, i, (unsigned char)(i + 1)));
	assert_int_equal(lseek(f.fd, 0, SEEK_END), SECTORS * SECTOR);
	assert_int_equal(request(&f, 0, IN, SECTORS, 0), OK); /* nothing of nothing */
	stop(&f);
}

static void unknown_requests_are_unsupported(void **state)
{
	static const uint32_t types[] = { 2, 3, 5, 7, 9, 11, 13, 0x80000000, UINT32_MAX };
	struct fixture f;

	start(&f, with_threads(state));
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		assert_int_equal(request(&f, 0, types[i], 0, SECTOR), UNSUPP);
	stop(&f);
}

static void a_disk_that_shrinks_is_an_error(void **state)
{
	struct fixture f;

	start(&f, with_threads(state));
	assert_int_equal(ftruncate(f.fd, 10 * SECTOR + 100), 0);
	assert_int_equal(request(&f, 0, IN, 9, SECTOR), OK);
	assert_int_equal(request(&f, 0, IN, 9, 2 * SECTOR), IOERR);
	assert_int_equal(request(&f, 0, IN, 20, SECTOR), IOERR);
	stop(&f);
}

static void a_file_that_is_no_disk_is_refused(void **state)
{
	struct virtio_blk_config config = { .path = "/nonexistent/disk", .queues = 1, .threads = with_threads(state) };
	struct virtio_device *device;
	struct fixture f;

	memset(&f, 0, sizeof(f));
	rig_start(&f.rig);
	assert_int_equal(virtio_blk_create(&config, &f.rig.ram, &device), -ENOENT);
	config.path = "/tmp";
	config.read_only = true;
	assert_int_equal(virtio_blk_create(&config, &f.rig.ram, &device), -EINVAL);
	make_disk(&f);
	config.path = f.path;
	assert_int_equal(ftruncate(f.fd, 1000), 0);
	assert_int_equal(virtio_blk_create(&config, &f.rig.ram, &device), -EINVAL);
	assert_non_null(strstr(rig_last_report(), "1000 bytes"));
	assert_int_equal(ftruncate(f.fd, 0), 0);
	assert_int_equal(virtio_blk_create(&config, &f.rig.ram, &device), -EINVAL);
	assert_int_equal(rig_num_reports(), 4);
	close(f.fd);
	rig_stop(&f.rig);
}

/* ---- Drivers that do wrong ------------------------------------------------------------------------ */

/* The chain at 0 fails the device: nothing comes back, the user is told, and after a reset all is well. */
static void fails(struct fixture *f, const char *why)
{
	uint32_t id;

	ring_offer(&f->rings[0], 0);
	notify(f, 0);
	while (!rig_took(&f->rig, 0)) /* the configuration's vector */
		sched_yield();
	assert_true(device_status(f) & NEEDS_RESET);
	assert_non_null(strstr(rig_last_report(), why));
	/* It rests even if notifications have got past the transport before: behind the reset all that was begun is done. */
	for (unsigned queue = 0; queue < QUEUES; queue++) {
		put_header(f, HEADER, FLUSH, 0);
		put(f, queue, 4, HEADER, 16, DESC_NEXT);
		put(f, queue, 5, STATUS, 1, DESC_WRITE);
		ring_offer(&f->rings[queue], 4);
		f->device->ops->notify_queue(f->device, queue);
	}
	sched_yield();
	set(f, 20, 1, 0);
	for (unsigned queue = 0; queue < QUEUES; queue++)
		assert_false(ring_take(&f->rings[queue], &id, &f->written));
	start_driver(f, F_FLUSH);
	assert_false(rig_took(&f->rig, 1));
	assert_int_equal(request(f, 0, IN, 0, SECTOR), OK);
	assert_int_equal(rig_num_reports(), 1);
	stop(f);
}

static void a_request_without_room_for_its_status_fails_the_device(void **state)
{
	struct fixture f;

	start(&f, with_threads(state));
	put_header(&f, HEADER, FLUSH, 0);
	put(&f, 0, 0, HEADER, 16, 0);
	fails(&f, "no room for its status");
}

static void a_request_without_a_header_fails_the_device(void **state)
{
	struct fixture f;

	start(&f, with_threads(state));
	put(&f, 0, 0, HEADER, 15, DESC_NEXT);
	put(&f, 0, 1, STATUS, 1, DESC_WRITE);
	fails(&f, "shorter than its header");
	start(&f, with_threads(state));
	put(&f, 0, 0, STATUS, 1, DESC_WRITE);
	fails(&f, "shorter than its header");
}

static void a_broken_queue_fails_the_device(void **state)
{
	struct fixture f;

	start(&f, with_threads(state));
	put(&f, 0, 0, HEADER, 16, DESC_NEXT);
	put(&f, 0, 1, 0, SECTOR, DESC_WRITE);
	fails(&f, "what is not memory");
}

/*
 * Each notification ends with all requests given back or with a failure; unless the device was told to write over its
 * rings, so that there is an end to this.
 */
static void wait_for_answer(struct fixture *f, unsigned queue)
{
	const uint16_t *used = rig_at(&f->rig.ram, f->rings[queue].used + 2);

	for (unsigned i = 0; i < 200; i++) {
		if (device_status(f) & NEEDS_RESET ||
		    __atomic_load_n(used, __ATOMIC_ACQUIRE) == f->rings[queue].offered)
			return;
		sched_yield();
	}
}

/* Rings and tables of random bytes, nearly right ones among them, with resets at any time. */
static void nothing_a_driver_does_reaches_further(void **state)
{
	static const uint64_t addresses[] = { HEADER, DATA, STATUS, RIG_RAM_BASE, RIG_RAM_END - 600, 0, UINT64_MAX };
	static const uint32_t lengths[] = { 16, SECTOR, 1, 0, 20, 2 * SECTOR, 15, UINT32_MAX };
	uint64_t seed = with_threads(state) ? 3 : 2;
	unsigned failures = 0;
	struct fixture f;

	start(&f, with_threads(state));
	for (unsigned round = 0; round < 1000; round++) {
		const unsigned queue = (unsigned)(rig_random(&seed) % QUEUES);

		if (RIG_TSAN) /* no changes under the device's eyes: they are races, which is the point of them */
			start_driver(&f, VIRTIO_F_INDIRECT_DESC);
		put_header(&f, HEADER, (uint32_t)(rig_random(&seed) % 9), rig_random(&seed) % (SECTORS + 4));
		for (unsigned i = 0; i < SIZE; i++) {
			const uint64_t r = rig_random(&seed);
			/* Mostly a header, then anything. */
			const bool first = i % 4 == 0 && r % 16;

			ring_put(&f.rig.ram, f.rings[queue].desc, i, first ? HEADER : addresses[(r >> 8) % 7],
				 first ? 16 : lengths[(r >> 16) % 8],
				 first          ? DESC_NEXT :
				 (r >> 24) % 64 ? (r >> 32) % 4 :
						  4,
				 (uint16_t)(r % 8 ? (i + 1) % SIZE : (r >> 40) % (SIZE + 1)));
		}
		for (unsigned i = 0; i < 3; i++)
			ring_offer(&f.rings[queue], (uint16_t)(rig_random(&seed) % SIZE / 4 * 4));
		notify(&f, queue);
		wait_for_answer(&f, queue);
		if (device_status(&f) & NEEDS_RESET || rig_random(&seed) % 16 == 0) {
			failures += (device_status(&f) & NEEDS_RESET) != 0;
			start_driver(&f, rig_random(&seed) % 2 ? F_FLUSH | VIRTIO_F_INDIRECT_DESC : 0);
		}
	}
	assert_true(failures > 0);
	assert_int_equal(lseek(f.fd, 0, SEEK_END), SECTORS * SECTOR);
	start_driver(&f, F_FLUSH);
	while (rig_took(&f.rig, 1) || rig_took(&f.rig, 2))
		;
	assert_int_equal(request(&f, 0, IN, 0, SECTOR), OK);
	stop(&f);
}

static void a_reset_stops_what_is_under_way(void **state)
{
	struct fixture f;
	unsigned messages;

	start(&f, with_threads(state));
	for (unsigned round = 0; round < 200; round++) {
		for (unsigned i = 0; i < SIZE / 4; i++) {
			put_header(&f, HEADER + 16 * i, OUT, i);
			put(&f, 0, 4 * i, HEADER + 16 * i, 16, DESC_NEXT);
			put(&f, 0, 4 * i + 1, DATA, SECTOR, DESC_NEXT);
			put(&f, 0, 4 * i + 2, STATUS, 1, DESC_WRITE);
			ring_offer(&f.rings[0], (uint16_t)(4 * i));
		}
		notify(&f, 0);
		set(&f, 20, 1, 0);
		/* The memory is the driver's again. */
		messages = rig_messages(&f.rig);
		memset(rig_at(&f.rig.ram, f.rings[0].desc), 0xff, 16 * SIZE);
		memset(rig_at(&f.rig.ram, STATUS), NOT_WRITTEN, 1);
		sched_yield();
		assert_int_equal(*(unsigned char *)rig_at(&f.rig.ram, STATUS), NOT_WRITTEN);
		assert_int_equal(rig_messages(&f.rig), messages);
		start_driver(&f, F_FLUSH);
	}
	assert_int_equal(device_status(&f), 0xf);
	stop(&f);
}

/* ---- Saved and loaded ------------------------------------------------------------------------------ */

static void save(struct fixture *f, const char *path)
{
	struct snapshot_out out;

	snapshot_out_open(&out, path);
	snapshot_out_begin(&out, "virtio", 0);
	virtio_pci_save(f->transport, &out);
	snapshot_out_end(&out);
	assert_int_equal(snapshot_out_close(&out, true), 0);
}

/* Another device with the same memory. It does not go on yet. */
static void load(struct fixture *f, const struct fixture *from, bool threads, const char *path)
{
	struct snapshot_file file;
	struct snapshot_in in;

	start_disk(f, threads, false);
	memcpy(f->rig.ram.host, from->rig.ram.host, RIG_RAM_SIZE);
	for (unsigned i = 0; i < QUEUES; i++) {
		f->rings[i] = from->rings[i];
		f->rings[i].ram = &f->rig.ram;
	}
	assert_int_equal(snapshot_file_open(&file, path), 0);
	assert_int_equal(snapshot_in_begin(&in, &file, "virtio", 0), 0);
	vgic_pause(f->rig.vgic);
	virtio_pci_load(f->transport, &in);
	assert_int_equal(snapshot_in_end(&in), 0);
	snapshot_file_close(&file);
}

/* Save @from, and go on in @to with a device of the other kind: served by threads, or not. */
static void move(struct fixture *to, struct fixture *from, bool threads)
{
	char directory[] = "/tmp/vgic-vmm-test-XXXXXX";
	char path[64];

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/state", directory);
	save(from, path);
	load(to, from, !threads, path);
	assert_int_equal(rig_messages(&to->rig), 0);
	vgic_resume(to->rig.vgic);
	virtio_pci_resume(to->transport);
	unlink(path);
	rmdir(directory);
}

static void offer_read(struct fixture *f, uint64_t sector)
{
	put_header(f, HEADER, IN, sector);
	put(f, 0, 0, HEADER, 16, DESC_NEXT);
	put(f, 0, 1, DATA, SECTOR, DESC_NEXT | DESC_WRITE);
	put(f, 0, 2, STATUS, 1, DESC_WRITE);
	ring_offer(&f->rings[0], 0);
	notify(f, 0);
}

static void wait_for_end(struct fixture *f)
{
	uint32_t id;

	while (!ring_take(&f->rings[0], &id, &f->written))
		sched_yield();
}

/* Everything that the driver has set up is there, and works. */
static void a_loaded_disk_goes_on(void **state)
{
	struct fixture from;
	struct fixture to;

	start(&from, with_threads(state));
	assert_int_equal(request(&from, 0, IN, 3, SECTOR), OK);
	virtio_pci_pause(from.transport);
	move(&to, &from, with_threads(state));
	stop(&from);
	assert_int_equal(device_status(&to), 0xf);
	for (unsigned round = 0; round < 2u * SIZE; round++) {
		assert_int_equal(request(&to, round % QUEUES, IN, round, SECTOR), OK);
		assert_true(all_are(data(&to), SECTOR, (unsigned char)(round + 1)));
	}
	stop(&to);
}

#define CONFIG_VECTOR 16u
#define ISR           0x1000u

/* A disk that has stopped stays so, and its driver still sees why. */
static void a_loaded_disk_that_has_failed_is_the_same(void **state)
{
	struct fixture from;
	struct fixture to;

	start(&from, with_threads(state));
	set(&from, CONFIG_VECTOR, 2, 1);
	put(&from, 0, 0, HEADER, 16, DESC_NEXT);
	put(&from, 0, 1, 0, SECTOR, DESC_WRITE);
	ring_offer(&from.rings[0], 0);
	notify(&from, 0);
	while (!(device_status(&from) & NEEDS_RESET))
		sched_yield();
	virtio_pci_pause(from.transport);
	move(&to, &from, with_threads(state));
	stop(&from);
	assert_int_equal(device_status(&to), 0xf | NEEDS_RESET);
	assert_int_equal(rig_read(&to.rig, REGISTERS + CONFIG_VECTOR, 2), 1);
	assert_int_equal(rig_read(&to.rig, REGISTERS + ISR, 1), 2);
	stop(&to);
}

#define SAVED_QUEUE   37u /* bytes of each queue, at the end of what is saved */
#define SAVED_STARTED 29u

/* Nobody could ever notify it. */
static void a_queue_that_was_set_up_must_have_been_started(void **state)
{
	const struct snapshot_file file = { .path = "a test's" };
	const struct snapshot_section section = { .tag = "virtio" };
	struct snapshot_in in = { .file = &file, .section = &section };
	struct snapshot_out out = { 0 };
	struct fixture from;
	struct fixture to;

	start(&from, with_threads(state));
	virtio_pci_pause(from.transport);
	virtio_pci_save(from.transport, &out);
	stop(&from);
	assert_int_equal(out.err, 0);
	assert_int_equal(out.data[out.size - SAVED_QUEUE + SAVED_STARTED], 1);
	out.data[out.size - SAVED_QUEUE + SAVED_STARTED] = 0;
	start_disk(&to, with_threads(state), false);
	in.at = out.data;
	in.left = out.size;
	virtio_pci_load(to.transport, &in);
	assert_string_equal(in.wrong, "a queue was set up and has not been started");
	free(out.data);
	stop(&to);
}

/* The controller is paused before the disk stops: what ends in between is pending, and signalled by the other. */
static void an_interrupt_that_is_not_accepted_is_sent_after_loading(void **state)
{
	struct fixture from;
	struct fixture to;

	start(&from, with_threads(state));
	vgic_pause(from.rig.vgic);
	offer_read(&from, 5);
	wait_for_end(&from);
	virtio_pci_pause(from.transport);
	move(&to, &from, with_threads(state));
	while (!rig_took(&to.rig, 1))
		sched_yield();
	assert_true(all_are(data(&to), SECTOR, 6));
	/* One whose save has failed sends it itself. */
	rig_took(&from.rig, 1);
	vgic_resume(from.rig.vgic);
	virtio_pci_resume(from.transport);
	assert_true(rig_took(&from.rig, 1));
	/* Once. */
	virtio_pci_pause(from.transport);
	virtio_pci_resume(from.transport);
	assert_false(rig_took(&from.rig, 1));
	stop(&from);
	stop(&to);
}

static void an_interrupt_behind_a_mask_is_saved(void **state)
{
	struct fixture from;
	struct fixture to;

	start(&from, with_threads(state));
	rig_write(&from.rig, TABLE + 16 + 12, 4, 1);
	offer_read(&from, 5);
	wait_for_end(&from);
	virtio_pci_pause(from.transport);
	move(&to, &from, with_threads(state));
	stop(&from);
	assert_int_equal(rig_messages(&to.rig), 0);
	rig_write(&to.rig, TABLE + 16 + 12, 4, 0);
	assert_true(rig_took(&to.rig, 1));
	stop(&to);
}

/* The threads are gone when the driver notifies: the request stays, and is the other's. */
static void a_request_that_was_not_begun_is_done_after_loading(void **state)
{
	struct fixture from;
	struct fixture to;

	(void)state;
	start(&from, true);
	virtio_pci_pause(from.transport);
	offer_read(&from, 5);
	assert_false(ring_has_more(&from.rings[0]));
	move(&to, &from, true);
	wait_for_end(&to);
	assert_true(all_are(data(&to), SECTOR, 6));
	while (!rig_took(&to.rig, 1))
		sched_yield();
	assert_false(ring_has_more(&from.rings[0]));
	/* And if the save has failed, its own. */
	virtio_pci_resume(from.transport);
	wait_for_end(&from);
	stop(&from);
	stop(&to);
}

/* Each test twice. */
#define BOTH_WAYS(test)                                                                                                \
	{ #test, test, NULL, NULL, NULL },                                                                             \
	{                                                                                                              \
#test "_with_threads", test, NULL, NULL, &threads                                                      \
	}

int main(void)
{
	static char threads;
	const struct CMUnitTest tests[] = {
		BOTH_WAYS(the_configuration_describes_the_disk),
		BOTH_WAYS(sectors_are_read_and_written),
		BOTH_WAYS(the_name_is_the_end_of_the_path),
		BOTH_WAYS(a_flush_reaches_the_file),
		BOTH_WAYS(a_driver_need_not_flush),
		BOTH_WAYS(requests_may_be_cut_anywhere),
		BOTH_WAYS(an_indirect_request_is_one_too),
		BOTH_WAYS(no_interrupt_comes_that_is_not_wanted),
		BOTH_WAYS(queues_work_beside_each_other),
		BOTH_WAYS(a_driver_without_barriers_does_not_oversleep),
		BOTH_WAYS(a_disk_that_is_read_only_stays_as_it_is),
		BOTH_WAYS(what_is_not_on_the_disk_is_an_error),
		BOTH_WAYS(unknown_requests_are_unsupported),
		BOTH_WAYS(a_disk_that_shrinks_is_an_error),
		BOTH_WAYS(a_file_that_is_no_disk_is_refused),
		BOTH_WAYS(a_request_without_room_for_its_status_fails_the_device),
		BOTH_WAYS(a_request_without_a_header_fails_the_device),
		BOTH_WAYS(a_broken_queue_fails_the_device),
		BOTH_WAYS(nothing_a_driver_does_reaches_further),
		BOTH_WAYS(a_reset_stops_what_is_under_way),
		BOTH_WAYS(a_loaded_disk_goes_on),
		BOTH_WAYS(a_loaded_disk_that_has_failed_is_the_same),
		BOTH_WAYS(a_queue_that_was_set_up_must_have_been_started),
		BOTH_WAYS(an_interrupt_that_is_not_accepted_is_sent_after_loading),
		BOTH_WAYS(an_interrupt_behind_a_mask_is_saved),
		cmocka_unit_test(a_request_that_was_not_begun_is_done_after_loading),
	};

	return RUN_TESTS("virtio_blk", tests);
}
