/* SPDX-License-Identifier: MIT */
/*
 * The world of the failure tests, and the loop that fails each call: see world.h.
 */
#include "world.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of the library, not in its headers: interrupts that are deliverable and that no hint leads to. */
unsigned vgic_check_at_rest(struct vgic *vgic, uint32_t *intid);

struct world world = { .eventfds = { -1, -1, -1, -1, -1, -1, -1, -1 }, .resamplefd = -1 };

/* ---- Life ---------------------------------------------------------------------------- */

struct machine *world_describe(uint32_t num_vcpus, uint32_t num_itses)
{
	struct machine *m = its_describe(num_vcpus, num_itses);

	m->config.has_dist_base = true;
	m->config.dist_base = MACHINE_DIST_BASE;
	m->config.lpi_id_bits = 14;
	for (uint32_t i = 0; i < num_itses; i++) {
		its_configs[i].max_devices = 16;
		its_configs[i].max_translations = 256;
	}
	inject_into_guest_memory(m);
	world.m = m;
	return m;
}

static void map_some(struct machine *m)
{
	map_collection(m, 0, 0);
	map_collection(m, 1, 1);
	for (uint32_t device = 1; device < 4; device++) {
		map_device(m, device, 4);
		for (uint32_t event = 0; event < 6; event++)
			map_event(m, device, 2 * event, 8192 + 100 * device + event, event % 3);
	}
	for (uint32_t event = 0; event < 12; event += 4)
		msi(m, 2, event);
}

void world_boot(void)
{
	struct machine *m = machine_start(world_describe(3, 2));

	its_set_up(m);
	for (uint32_t intid = 32; intid < 40; intid++)
		irq_set_up(m, intid % 3, intid, intid & 1, (uint8_t)(8 * (intid - 30)));
	irq_set_edge(m, 0, 34, false);
	vgic_set_spi(m->vgic, 34, 1, true);
	vgic_pulse_spi(m->vgic, 35);
	map_some(m);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void world_end(void)
{
	vgic_msix_destroy(world.msix);
	vgic_irqfds_destroy(world.irqfds);
	vgic_routes_destroy(world.routes);
	if (world.m)
		machine_stop(world.m);
	for (size_t i = 0; i < sizeof(world.eventfds) / sizeof(world.eventfds[0]); i++)
		close_fd(&world.eventfds[i]);
	close_fd(&world.resamplefd);
	world = (struct world){ .eventfds = { -1, -1, -1, -1, -1, -1, -1, -1 }, .resamplefd = -1 };
	assert_int_equal(inject_live(), 0);
	assert_int_equal(inject_live_bytes(), 0);
}

/* ---- Pictures --------------------------------------------------------------------------- */

static void add(struct picture *p, const void *bytes, size_t size)
{
	if (p->size + size > p->room) {
		p->room = 2 * (p->size + size);
		p->bytes = realloc(p->bytes, p->room);
		assert_non_null(p->bytes);
	}
	memcpy(p->bytes + p->size, bytes, size);
	p->size += size;
}

static void add_controller(struct picture *p)
{
	uint32_t intid = 0;
	size_t size, used;
	void *image;

	assert_int_equal(vgic_check_at_rest(world.m->vgic, &intid), 0);
	assert_int_equal(vgic_save_size(world.m->vgic, &size), 0);
	image = malloc(size);
	assert_non_null(image);
	assert_int_equal(vgic_save(world.m->vgic, image, size, &used), 0);
	assert_int_equal(used, size);
	add(p, image, size);
	free(image);
}

static void add_routes(struct picture *p)
{
	for (uint32_t gsi = 0; gsi < vgic_routes_num_gsis(world.routes); gsi++) {
		const int pending = vgic_gsi_is_pending(world.routes, gsi);
		struct vgic_route route;

		memset(&route, 0, sizeof(route));
		assert_int_equal(vgic_route_get(world.routes, gsi, &route), 0);
		add(p, &route.type, sizeof(route.type));
		add(p, &route.flags, sizeof(route.flags));
		if (route.type == VGIC_ROUTE_SPI)
			add(p, &route.to.spi, sizeof(route.to.spi));
		if (route.type == VGIC_ROUTE_MSI)
			add(p, &route.to.msi, sizeof(route.to.msi));
		add(p, &pending, sizeof(pending));
	}
}

static void add_irqfds(struct picture *p)
{
	struct vgic_irqfds_stats stats = { .size = sizeof(stats) };

	assert_int_equal(vgic_irqfds_get_stats(world.irqfds, &stats), 0);
	add(p, &stats.num_assigned, sizeof(stats.num_assigned));
}

static void add_msix(struct picture *p)
{
	const uint16_t control = vgic_msix_read_control(world.msix);
	struct vgic_msix_vector vector;

	add(p, &control, sizeof(control));
	for (uint32_t i = 0; vgic_msix_get_vector(world.msix, i, &vector) == 0; i++) {
		add(p, &vector.address, sizeof(vector.address));
		add(p, &vector.data, sizeof(vector.data));
		add(p, &vector.control, sizeof(vector.control));
		add(p, &vector.eventfd, sizeof(vector.eventfd));
	}
}

static void add_guest(struct picture *p, uint64_t address, size_t size)
{
	add(p, ram.bytes + (address - RAM_BASE), size);
}

static void add_tables(struct picture *p)
{
	for (uint32_t v = 0; v < 3; v++)
		add_guest(p, PENDING_TABLE(v), 0x800);
	for (uint32_t i = 0; i < 3; i++) {
		add_guest(p, DEVICE_TABLE(i), 0x1000);
		add_guest(p, COLLECTION_TABLE(i), 0x1000);
		add_guest(p, LEVEL2_TABLE(i), 0x1000);
	}
	for (uint32_t n = 0; n < 4; n++)
		add_guest(p, ITT(n), 0x1000);
}

struct picture world_picture(bool tables)
{
	struct picture p = { .size = 0 };

	if (world.m && world.m->vgic)
		add_controller(&p);
	if (world.routes)
		add_routes(&p);
	if (world.irqfds)
		add_irqfds(&p);
	if (world.msix)
		add_msix(&p);
	if (tables && world.m && world.m->config.num_itses)
		add_tables(&p);
	return p;
}

bool pictures_are_equal(const struct picture *a, const struct picture *b)
{
	return a->size == b->size && (!a->size || memcmp(a->bytes, b->bytes, a->size) == 0);
}

/* ---- Failing each call ---------------------------------------------------------------------- */

static bool may_return(const struct scenario *s, int err)
{
	for (size_t i = 0; i < sizeof(s->errnos) / sizeof(s->errnos[0]) && s->errnos[i]; i++) {
		if (s->errnos[i] == err)
			return true;
	}
	return false;
}

struct holdings {
	unsigned pieces, fds;
	size_t bytes;
};

static struct holdings holdings_now(void)
{
	return (struct holdings){ inject_live(), inject_open_fds(), inject_live_bytes() };
}

static void expect_holdings(const struct holdings *expected)
{
	const struct holdings now = holdings_now();

	assert_int_equal(now.pieces, expected->pieces);
	assert_int_equal(now.bytes, expected->bytes);
	assert_int_equal(now.fds, expected->fds);
}

/* What there is when nothing has failed. */
struct outcome {
	struct picture picture;
	struct holdings holdings;
};

/* It failed, and has changed nothing. */
static void expect_nothing_done(const struct scenario *s, int err, const struct outcome *before)
{
	struct picture after = world_picture(false);

	if (!may_return(s, err))
		fail_msg("%s returned %d, which is not among its errors", s->name, err);
	if (!pictures_are_equal(&before->picture, &after))
		fail_msg("%s returned %d, and has changed something", s->name, err);
	expect_holdings(&before->holdings);
	free(after.bytes);
}

/* Returns how many calls have failed. */
static unsigned fail_call(const struct scenario *s, enum inject_mode mode, unsigned n, const struct outcome *expected)
{
	struct outcome before;
	struct picture after;
	unsigned failures;
	int err;

	s->set_up();
	before = (struct outcome){ world_picture(false), holdings_now() };
	inject_begin(mode, n);
	err = s->call();
	failures = inject_end();
	if (err) {
		assert_true(failures > 0);
		expect_nothing_done(s, err, &before);
		assert_int_equal(s->call(), 0);
	}
	after = world_picture(true);
	if (!pictures_are_equal(&after, &expected->picture))
		fail_msg("%s: with failure %u the state is another in the end", s->name, n);
	expect_holdings(&expected->holdings);
	free(after.bytes);
	free(before.picture.bytes);
	world_end();
	return failures;
}

void fail_each_call(const struct scenario *s)
{
	const unsigned fds = inject_open_fds();
	struct outcome expected;
	unsigned num = 0;

	s->set_up();
	assert_int_equal(s->call(), 0);
	expected = (struct outcome){ world_picture(true), holdings_now() };
	world_end();
	for (unsigned n = 1; fail_call(s, INJECT_ONE, n, &expected); n++)
		num++;
	for (unsigned n = 1; fail_call(s, INJECT_ALL_FROM, n, &expected); n++)
		num++;
	assert_true(num > 0);
	assert_int_equal(inject_open_fds(), fds);
	print_message("# %s: %u runs with failures\n", s->name, num);
	free(expected.picture.bytes);
}

void fail_all(const struct scenario *s, size_t num)
{
	for (size_t i = 0; i < num; i++)
		fail_each_call(&s[i]);
}
