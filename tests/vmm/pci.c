/* SPDX-License-Identifier: MIT */
/* pci.c - the PCI host as a guest sees it: configuration space, BARs, MSI-X. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <vgic/state.h>

#include "rig.h"

#define SLOT      1u
#define BAR0_SIZE 0x1000u
#define TABLE_BAR 1u
#define VECTORS   5u

#define BAR0_AT  0x10000000u
#define TABLE_AT 0x10010000u

static const struct pci_identity identity = {
	.vendor = 0x1234,
	.device = 0x5678,
	.subsystem_vendor = 0x9abc,
	.subsystem = 0xdef0,
	.class_code = 0x018000,
	.revision = 7,
};

/* A function whose BAR 0 remembers the last access. */
struct fixture {
	struct rig rig;
	struct pci_function function;
	uint32_t offset;
	unsigned width;
	uint32_t value;
	unsigned reads;
	unsigned writes;
};

static uint32_t bar_read(void *owner, uint32_t offset, unsigned width)
{
	struct fixture *f = owner;

	f->offset = offset;
	f->width = width;
	f->reads++;
	return 0x44332211;
}

static void bar_write(void *owner, uint32_t offset, unsigned width, uint32_t value)
{
	struct fixture *f = owner;

	f->offset = offset;
	f->width = width;
	f->value = value;
	f->writes++;
}

static const struct pci_bar_ops bar_ops = { .read = bar_read, .write = bar_write };

static void start(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	rig_start(&f->rig);
	pci_function_init(&f->function, &identity, NULL, f);
	pci_add_bar(&f->function, 0, BAR0_SIZE, &bar_ops, f);
	assert_int_equal(pci_add_function(&f->rig.host, &f->function), 0);
	assert_int_equal(f->function.slot, SLOT);
	assert_int_equal(pci_add_msix(&f->function, TABLE_BAR, VECTORS), 0);
}

static void stop(struct fixture *f)
{
	pci_remove_function(&f->rig.host, &f->function);
	pci_function_destroy(&f->function);
	rig_stop(&f->rig);
}

static void set_command(struct fixture *f, uint32_t command)
{
	rig_config_write(&f->rig, SLOT, PCI_COMMAND, 2, command);
}

static void place_bars(struct fixture *f)
{
	rig_place_bar(&f->rig, SLOT, 0, BAR0_AT);
	rig_place_bar(&f->rig, SLOT, TABLE_BAR, TABLE_AT);
	set_command(f, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
}

/* ---- Configuration space ------------------------------------------------------------- */

static void the_header_says_what_the_function_is(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	assert_int_equal(rig_config_read(&f.rig, SLOT, 0x00, 4), 0x56781234);
	assert_int_equal(rig_config_read(&f.rig, SLOT, 0x08, 4), 0x01800007);
	assert_int_equal(rig_config_read(&f.rig, SLOT, 0x2c, 4), 0xdef09abc);
	assert_int_equal(rig_config_read(&f.rig, SLOT, 0x0e, 1), 0); /* type 0, one function */
	assert_int_equal(rig_config_read(&f.rig, SLOT, 0x3d, 1), 0); /* no INTx */
	assert_int_equal(rig_config_read(&f.rig, SLOT, 0x02, 1), 0x78);
	assert_int_equal(rig_config_read(&f.rig, SLOT, 0x01, 2), 0x7812); /* not aligned */
	stop(&f);
}

static void what_is_not_there_reads_as_ones(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	assert_int_equal(rig_config_read(&f.rig, 0, 0, 4), 0xffffffff);
	assert_int_equal(rig_config_read(&f.rig, SLOT + 1, 0, 2), 0xffff);
	for (unsigned function = 1; function < 8; function++)
		assert_int_equal(pci_ecam_read(&f.rig.host, (SLOT << 15) + (function << 12), 4), 0xffffffff);
	/* Across the end of a function's space, and behind the bus. */
	assert_int_equal(rig_config_read(&f.rig, SLOT, PCI_CONFIG_SIZE - 2, 4), 0xffffffff);
	assert_int_equal(rig_config_read(&f.rig, SLOT, PCI_CONFIG_SIZE - 4, 4), 0);
	assert_int_equal(pci_ecam_read(&f.rig.host, PCI_ECAM_SIZE - 1, 4), 0xffffffff);
	rig_config_write(&f.rig, SLOT, PCI_CONFIG_SIZE - 1, 4, 0xffffffff);
	pci_ecam_write(&f.rig.host, PCI_ECAM_SIZE - 1, 4, 0xffffffff);
	rig_config_write(&f.rig, SLOT + 1, PCI_COMMAND, 2, 0xffff);
	stop(&f);
}

/* Bits that a guest can set, for all of the space; the rest keeps its value at every width. */
static void only_the_writable_bits_change(void **state)
{
	uint8_t writable[PCI_CONFIG_SIZE] = { 0 };
	uint8_t before[PCI_CONFIG_SIZE];
	struct fixture f;
	unsigned msix;

	(void)state;
	start(&f);
	msix = rig_find_capability(&f.rig, SLOT, PCI_CAP_ID_MSIX, 0);
	writable[PCI_COMMAND] = 0x06;     /* memory, bus master */
	writable[PCI_COMMAND + 1] = 0x04; /* INTx disable */
	writable[PCI_CACHE_LINE_SIZE] = 0xff;
	writable[PCI_INTERRUPT_LINE] = 0xff;
	for (unsigned bar = 0; bar < 2; bar++) {
		writable[PCI_BAR0 + 4 * bar + 1] = 0xf0; /* 4 KiB each */
		writable[PCI_BAR0 + 4 * bar + 2] = 0xff;
		writable[PCI_BAR0 + 4 * bar + 3] = 0xff;
	}
	writable[msix + 3] = 0xc0; /* enable, function mask */
	for (unsigned i = 0; i < PCI_CONFIG_SIZE; i++)
		before[i] = (uint8_t)rig_config_read(&f.rig, SLOT, i, 1);
	for (unsigned width = 1; width <= 4; width *= 2) {
		for (unsigned i = 0; i < PCI_CONFIG_SIZE; i += width)
			rig_config_write(&f.rig, SLOT, i, width, 0xffffffff);
		for (unsigned i = 0; i < PCI_CONFIG_SIZE; i++)
			assert_int_equal(rig_config_read(&f.rig, SLOT, i, 1), before[i] | writable[i]);
		for (unsigned i = 0; i < PCI_CONFIG_SIZE; i += width)
			rig_config_write(&f.rig, SLOT, i, width, 0);
		for (unsigned i = 0; i < PCI_CONFIG_SIZE; i++)
			assert_int_equal(rig_config_read(&f.rig, SLOT, i, 1), before[i] & ~writable[i]);
	}
	stop(&f);
}

static void capabilities_do_not_run_over(void **state)
{
	struct fixture f;
	unsigned number = 1; /* MSI-X */

	(void)state;
	start(&f);
	assert_true(pci_add_capability(&f.function, PCI_CAP_ID_VENDOR, 0x1000) < 0);
	while (pci_add_capability(&f.function, PCI_CAP_ID_VENDOR, 16) > 0)
		number++;
	assert_int_equal(number, 1 + (0x100 - 0x40 - 12) / 16);
	assert_int_equal(rig_find_capability(&f.rig, SLOT, PCI_CAP_ID_VENDOR, number - 2), 0x4c + 16 * (number - 2));
	assert_int_equal(rig_find_capability(&f.rig, SLOT, PCI_CAP_ID_VENDOR, number - 1), 0);
	assert_true(rig_config_read(&f.rig, SLOT, PCI_STATUS, 2) & PCI_STATUS_CAP_LIST);
	stop(&f);
}

static void a_full_bus_takes_no_more(void **state)
{
	static struct pci_function functions[PCI_NUM_SLOTS];
	struct rig rig;

	(void)state;
	rig_start(&rig);
	for (unsigned i = 0; i < PCI_NUM_SLOTS; i++)
		pci_function_init(&functions[i], &identity, NULL, NULL);
	for (unsigned i = 0; i < PCI_NUM_SLOTS - 1; i++) {
		assert_int_equal(pci_add_function(&rig.host, &functions[i]), 0);
		assert_int_equal(pci_devid(&functions[i]), (i + 1) << 3);
	}
	assert_true(pci_add_function(&rig.host, &functions[PCI_NUM_SLOTS - 1]) < 0);
	for (unsigned i = 0; i < PCI_NUM_SLOTS; i++)
		pci_function_destroy(&functions[i]);
	rig_stop(&rig);
}

/* ---- BARs ------------------------------------------------------------------------------- */

static void a_bar_tells_its_size_and_moves(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	rig_place_bar(&f.rig, SLOT, 0, 0xffffffff);
	assert_int_equal(rig_config_read(&f.rig, SLOT, PCI_BAR0, 4), ~(BAR0_SIZE - 1));
	rig_place_bar(&f.rig, SLOT, 2, 0xffffffff);
	assert_int_equal(rig_config_read(&f.rig, SLOT, PCI_BAR0 + 8, 4), 0); /* there is none */
	place_bars(&f);
	assert_int_equal(rig_read(&f.rig, BAR0_AT + 0x123, 2), 0x44332211);
	assert_int_equal(f.offset, 0x123);
	assert_int_equal(f.width, 2);
	rig_write(&f.rig, BAR0_AT + BAR0_SIZE - 4, 4, 0xcafe);
	assert_int_equal(f.offset, BAR0_SIZE - 4);
	assert_int_equal(f.value, 0xcafe);
	rig_place_bar(&f.rig, SLOT, 0, BAR0_AT + 0x5000);
	assert_int_equal(rig_read(&f.rig, BAR0_AT, 4), 0xffffffff);
	rig_read(&f.rig, BAR0_AT + 0x5010, 4);
	assert_int_equal(f.offset, 0x10);
	stop(&f);
}

static void a_bar_answers_only_within_and_when_enabled(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	place_bars(&f);
	assert_int_equal(rig_read(&f.rig, BAR0_AT + BAR0_SIZE, 4), 0xffffffff);
	/* Across its end. */
	assert_int_equal(rig_read(&f.rig, BAR0_AT + BAR0_SIZE - 2, 4), 0xffffffff);
	rig_write(&f.rig, BAR0_AT + BAR0_SIZE - 1, 2, 1);
	assert_int_equal(f.reads + f.writes, 0);
	set_command(&f, PCI_COMMAND_MASTER);
	assert_int_equal(rig_read(&f.rig, BAR0_AT, 1), 0xff);
	rig_write(&f.rig, BAR0_AT, 4, 1);
	assert_int_equal(f.reads + f.writes, 0);
	set_command(&f, PCI_COMMAND_MEMORY);
	rig_read(&f.rig, BAR0_AT, 1);
	assert_int_equal(f.reads, 1);
	stop(&f);
}

static void bars_over_each_other_and_at_the_edges_do_no_harm(void **state)
{
	static const uint32_t places[] = { 0, 0x10000000, 0x3efef000, 0x3efff000, 0x7ffff000, 0xfffff000 };
	struct fixture f;

	(void)state;
	start(&f);
	set_command(&f, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		rig_place_bar(&f.rig, SLOT, 0, places[i]);
		rig_place_bar(&f.rig, SLOT, TABLE_BAR, places[i]);
		for (uint64_t at = 0; at < PCI_WINDOW_SIZE; at += 0x7fff) {
			pci_window_read(&f.rig.host, at, 4);
			pci_window_write(&f.rig.host, at, 4, 0xffffffff);
		}
		pci_window_read(&f.rig.host, PCI_WINDOW_SIZE - 1, 4);
	}
	/* The first one has it. */
	rig_place_bar(&f.rig, SLOT, 0, BAR0_AT);
	rig_place_bar(&f.rig, SLOT, TABLE_BAR, BAR0_AT);
	f.reads = 0;
	assert_int_equal(rig_read(&f.rig, BAR0_AT, 4), 0x44332211);
	assert_int_equal(f.reads, 1);
	stop(&f);
}

/* ---- MSI-X -------------------------------------------------------------------------------- */

#define CONTROL_ENABLE 0x8000u
#define CONTROL_MASK   0x4000u

static void set_control(struct fixture *f, uint32_t control)
{
	rig_config_write(&f->rig, SLOT, rig_find_capability(&f->rig, SLOT, PCI_CAP_ID_MSIX, 0) + 2, 2, control);
}

static uint32_t pba_at(struct fixture *f)
{
	const uint32_t pba =
		rig_config_read(&f->rig, SLOT, rig_find_capability(&f->rig, SLOT, PCI_CAP_ID_MSIX, 0) + 8, 4);

	return TABLE_AT + (pba & ~7u);
}

/* Enabled, each vector with its number as data. */
static void start_msix(struct fixture *f)
{
	start(f);
	place_bars(f);
	for (unsigned i = 0; i < VECTORS; i++)
		rig_set_vector(&f->rig, TABLE_AT, i, i);
	set_control(f, CONTROL_ENABLE);
}

static void the_msix_capability_says_where_and_how_many(void **state)
{
	struct fixture f;
	unsigned at;

	(void)state;
	start(&f);
	at = rig_find_capability(&f.rig, SLOT, PCI_CAP_ID_MSIX, 0);
	assert_int_equal(at, 0x40);
	assert_int_equal(rig_config_read(&f.rig, SLOT, at + 2, 2), VECTORS - 1);
	assert_int_equal(rig_config_read(&f.rig, SLOT, at + 4, 4), TABLE_BAR);
	assert_int_equal(rig_config_read(&f.rig, SLOT, at + 8, 4), 0x800 | TABLE_BAR);
	stop(&f);
}

static void a_vector_sends_its_message(void **state)
{
	struct fixture f;

	(void)state;
	start_msix(&f);
	for (unsigned i = 0; i < VECTORS; i++) {
		pci_msix_raise(&f.function, i);
		for (unsigned j = 0; j < VECTORS; j++)
			assert_int_equal(rig_took(&f.rig, j), i == j);
	}
	pci_msix_raise(&f.function, VECTORS);
	pci_msix_raise(&f.function, UINT32_MAX);
	assert_int_equal(rig_messages(&f.rig), 0);
	stop(&f);
}

static void all_vectors_are_masked_at_first_and_after_a_reset(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	place_bars(&f);
	for (unsigned i = 0; i < VECTORS; i++)
		assert_int_equal(rig_read(&f.rig, TABLE_AT + 16 * i + 12, 4), 1);
	stop(&f);
	start_msix(&f);
	pci_function_reset(&f.function);
	assert_int_equal(rig_config_read(&f.rig, SLOT, PCI_BAR0, 4), 0);
	pci_msix_raise(&f.function, 0);
	place_bars(&f);
	for (unsigned i = 0; i < VECTORS; i++) {
		assert_int_equal(rig_read(&f.rig, TABLE_AT + 16 * i, 4), 0);
		assert_int_equal(rig_read(&f.rig, TABLE_AT + 16 * i + 8, 4), 0);
		assert_int_equal(rig_read(&f.rig, TABLE_AT + 16 * i + 12, 4), 1);
	}
	set_control(&f, CONTROL_ENABLE);
	assert_int_equal(rig_messages(&f.rig), 0);
	stop(&f);
}

static void a_masked_vector_is_pending_until_it_is_unmasked(void **state)
{
	struct fixture f;

	(void)state;
	start_msix(&f);
	rig_write(&f.rig, TABLE_AT + 16 * 3 + 12, 4, 1);
	pci_msix_raise(&f.function, 3);
	pci_msix_raise(&f.function, 3);
	pci_msix_raise(&f.function, 2);
	assert_false(rig_took(&f.rig, 3));
	assert_true(rig_took(&f.rig, 2));
	assert_int_equal(rig_read(&f.rig, pba_at(&f), 4), 1u << 3);
	rig_write(&f.rig, pba_at(&f), 4, 0); /* read-only */
	assert_int_equal(rig_read(&f.rig, pba_at(&f), 4), 1u << 3);
	rig_write(&f.rig, TABLE_AT + 16 * 3 + 12, 4, 0);
	assert_true(rig_took(&f.rig, 3));
	assert_int_equal(rig_read(&f.rig, pba_at(&f), 4), 0);
	stop(&f);
}

static void the_function_mask_holds_all_vectors_back(void **state)
{
	struct fixture f;

	(void)state;
	start_msix(&f);
	set_control(&f, CONTROL_ENABLE | CONTROL_MASK);
	rig_write(&f.rig, TABLE_AT + 16 * 1 + 12, 4, 1);
	for (unsigned i = 0; i < VECTORS; i++)
		pci_msix_raise(&f.function, i);
	assert_int_equal(rig_messages(&f.rig), 0);
	assert_int_equal(rig_read(&f.rig, pba_at(&f), 4), (1u << VECTORS) - 1);
	set_control(&f, CONTROL_ENABLE);
	for (unsigned i = 0; i < VECTORS; i++)
		assert_int_equal(rig_took(&f.rig, i), i != 1); /* that has its own mask too */
	assert_int_equal(rig_read(&f.rig, pba_at(&f), 4), 1u << 1);
	stop(&f);
}

static void an_event_in_a_pause_is_pending_and_sent_when_it_ends(void **state)
{
	struct fixture f;

	(void)state;
	start_msix(&f);
	assert_int_equal(vgic_pause(f.rig.vgic), 0);
	pci_msix_raise(&f.function, 1);
	assert_int_equal(rig_read(&f.rig, pba_at(&f), 4), 1u << 1);
	rig_took(&f.rig, 1); /* a message to an SPI may be there already */
	assert_int_equal(rig_messages(&f.rig), 0);
	assert_int_equal(vgic_resume(f.rig.vgic), 0);
	assert_int_equal(rig_read(&f.rig, pba_at(&f), 4), 0);
	assert_true(rig_took(&f.rig, 1));
	/* A reset drops it. */
	assert_int_equal(vgic_pause(f.rig.vgic), 0);
	pci_msix_raise(&f.function, 1);
	rig_took(&f.rig, 1);
	pci_function_reset(&f.function);
	assert_int_equal(vgic_resume(f.rig.vgic), 0);
	assert_int_equal(rig_messages(&f.rig), 0);
	stop(&f);
}

static void nothing_is_sent_while_msix_is_off_or_the_bus_is_not_mastered(void **state)
{
	struct fixture f;

	(void)state;
	start_msix(&f);
	set_control(&f, 0);
	pci_msix_raise(&f.function, 0);
	set_control(&f, CONTROL_ENABLE);
	set_command(&f, PCI_COMMAND_MEMORY);
	pci_msix_raise(&f.function, 1);
	set_command(&f, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	assert_int_equal(rig_messages(&f.rig), 0);
	pci_msix_raise(&f.function, 2);
	assert_true(rig_took(&f.rig, 2));
	stop(&f);
}

static void the_table_takes_words_only(void **state)
{
	struct fixture f;

	(void)state;
	start_msix(&f);
	rig_write(&f.rig, TABLE_AT + 4, 4, 0x12345678);
	rig_write(&f.rig, TABLE_AT + 4, 1, 0xff);
	rig_write(&f.rig, TABLE_AT + 5, 2, 0xffff);
	rig_write(&f.rig, TABLE_AT + 6, 4, 0xffffffff);
	assert_int_equal(rig_read(&f.rig, TABLE_AT + 4, 4), 0x12345678);
	assert_int_equal(rig_read(&f.rig, TABLE_AT + 8, 4), 32); /* as rig_set_vector() left it */
	rig_write(&f.rig, TABLE_AT + 12, 4, 0xffffffff);
	assert_int_equal(rig_read(&f.rig, TABLE_AT + 12, 4), 1);
	rig_write(&f.rig, TABLE_AT, 4, 0xffffffff);
	assert_int_equal(rig_read(&f.rig, TABLE_AT, 4), 0xfffffffc);
	/* Behind the last entry. */
	rig_write(&f.rig, TABLE_AT + 16 * VECTORS, 4, 0xffffffff);
	assert_int_equal(rig_read(&f.rig, TABLE_AT + 16 * VECTORS, 4), 0);
	for (uint32_t at = 0; at < 0x1000; at++) {
		rig_read(&f.rig, TABLE_AT + at, 4);
		rig_write(&f.rig, TABLE_AT + at, 4, 0xffffffff);
	}
	stop(&f);
}

static void as_many_vectors_as_there_can_be(void **state)
{
	struct fixture f;
	struct pci_function big;

	(void)state;
	start(&f);
	pci_function_init(&big, &identity, NULL, NULL);
	assert_int_equal(pci_add_function(&f.rig.host, &big), 0);
	assert_int_equal(pci_add_msix(&big, 0, PCI_MAX_MSIX_VECTORS), 0);
	rig_place_bar(&f.rig, 2, 0, 0x10100000);
	rig_config_write(&f.rig, 2, PCI_COMMAND, 2, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	rig_config_write(&f.rig, 2, 0x42, 2, CONTROL_ENABLE);
	pci_msix_raise(&big, PCI_MAX_MSIX_VECTORS - 1);
	/* The last bit of the PBA, which is behind 32 KiB of table. */
	assert_int_equal(rig_read(&f.rig, 0x10100000 + 0x8000 + 0xfc, 4), 0x80000000);
	assert_int_equal(rig_read(&f.rig, 0x10100000 + 0x8000 + 0x100, 4), 0);
	rig_set_vector(&f.rig, 0x10100000, PCI_MAX_MSIX_VECTORS - 1, 9);
	assert_true(rig_took(&f.rig, 9));
	pci_function_destroy(&big);
	f.rig.host.slots[2] = NULL;
	stop(&f);
}

/* ---- Eventfds ------------------------------------------------------------------------------ */

static void wait_for(struct fixture *f, unsigned number)
{
	while (!rig_took(&f->rig, number))
		sched_yield();
}

static void an_eventfd_raises_its_vector(void **state)
{
	const int fd = eventfd(0, 0);
	struct fixture f;

	(void)state;
	start_msix(&f);
	assert_int_equal(pci_msix_bind(&f.function, VECTORS, fd), -EINVAL);
	assert_int_equal(pci_msix_bind(&f.function, 2, fd), 0);
	eventfd_write(fd, 1);
	wait_for(&f, 2);
	/* Masked, it is pending. */
	rig_write(&f.rig, TABLE_AT + 16 * 2 + 12, 4, 1);
	eventfd_write(fd, 1);
	while (rig_read(&f.rig, pba_at(&f), 4) != 1u << 2)
		sched_yield();
	assert_int_equal(rig_messages(&f.rig), 0);
	rig_write(&f.rig, TABLE_AT + 16 * 2 + 12, 4, 0);
	assert_true(rig_took(&f.rig, 2));
	/* After the unbinding nothing comes, however long one waits: another eventfd shows that the service is through. */
	pci_msix_unbind(&f.function, 2, fd);
	eventfd_write(fd, 1);
	assert_int_equal(pci_msix_bind(&f.function, 1, fd), 0);
	eventfd_write(fd, 1);
	wait_for(&f, 1);
	assert_int_equal(rig_messages(&f.rig), 0);
	pci_msix_unbind(&f.function, 1, fd);
	f.rig.host.irqfds = NULL;
	assert_int_equal(pci_msix_bind(&f.function, 1, fd), -ENOTSUP);
	f.rig.host.irqfds = f.rig.irqfds;
	stop(&f);
	close(fd);
}

static void gsis_run_out(void **state)
{
	static struct pci_function functions[3];
	struct rig rig;

	(void)state;
	rig_start(&rig);
	for (unsigned i = 0; i < 3; i++) {
		pci_function_init(&functions[i], &identity, NULL, NULL);
		assert_int_equal(pci_add_function(&rig.host, &functions[i]), 0);
		assert_int_equal(pci_add_msix(&functions[i], 0, PCI_MAX_MSIX_VECTORS),
				 i < RIG_GSIS / PCI_MAX_MSIX_VECTORS ? 0 : -ENOSPC);
	}
	for (unsigned i = 0; i < 3; i++)
		pci_function_destroy(&functions[i]);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_header_says_what_the_function_is),
		cmocka_unit_test(what_is_not_there_reads_as_ones),
		cmocka_unit_test(only_the_writable_bits_change),
		cmocka_unit_test(capabilities_do_not_run_over),
		cmocka_unit_test(a_full_bus_takes_no_more),
		cmocka_unit_test(a_bar_tells_its_size_and_moves),
		cmocka_unit_test(a_bar_answers_only_within_and_when_enabled),
		cmocka_unit_test(bars_over_each_other_and_at_the_edges_do_no_harm),
		cmocka_unit_test(the_msix_capability_says_where_and_how_many),
		cmocka_unit_test(a_vector_sends_its_message),
		cmocka_unit_test(all_vectors_are_masked_at_first_and_after_a_reset),
		cmocka_unit_test(a_masked_vector_is_pending_until_it_is_unmasked),
		cmocka_unit_test(the_function_mask_holds_all_vectors_back),
		cmocka_unit_test(an_event_in_a_pause_is_pending_and_sent_when_it_ends),
		cmocka_unit_test(nothing_is_sent_while_msix_is_off_or_the_bus_is_not_mastered),
		cmocka_unit_test(the_table_takes_words_only),
		cmocka_unit_test(as_many_vectors_as_there_can_be),
		cmocka_unit_test(an_eventfd_raises_its_vector),
		cmocka_unit_test(gsis_run_out),
	};

	return RUN_TESTS("pci", tests);
}
