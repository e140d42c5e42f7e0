/* SPDX-License-Identifier: MIT */
/*
 * Failures of what creates and binds: controllers, route tables, irqfds, MSI-X. And
 * the end of a controller at any point of its life.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "world.h"

#define NUM(array) (sizeof(array) / sizeof((array)[0]))

/* ---- Controllers ------------------------------------------------------------------------ */

static void describe_plain(void)
{
	world.m = machine_describe(VGIC_PROFILE_NATIVE, 1);
	world.m->config.features = 0;
}

static void describe_kvm(void)
{
	struct machine *m = world_describe(2, 1);
	const struct vgic_ops ops = m->config.ops;

	vgic_config_init(&m->config, VGIC_PROFILE_KVM);
	m->config.num_vcpus = 2;
	m->config.vcpus = m->vcpus;
	m->config.ops = ops;
	m->config.opaque = m;
	m->config.features |= VGIC_FEATURE_LPIS;
	m->config.lpi_id_bits = 14;
	m->config.num_itses = 1;
	m->config.itses = its_configs;
}

/* Every feature, 40 vCPUs in clusters of 16, their ids with gaps, two regions, three ITSes. */
static void describe_rich(void)
{
	struct machine *m = world_describe(40, 3);

	m->config.features = VGIC_FEATURES_ALL;
	m->config.num_spis = VGIC_MAX_SPIS;
	for (uint32_t v = 0; v < 40; v++) {
		m->vcpus[v].id = 3 * v + 1;
		m->vcpus[v].affinity |= (uint64_t)(v % 3) << 32;
	}
	machine_add_region(m, 0x10000000, 30);
	machine_add_region(m, 0x20000000, 30);
}

static int create(void)
{
	struct vgic *const nothing = (struct vgic *)1;
	struct vgic *vgic = nothing;
	const int err = vgic_create(&world.m->config, &vgic);

	if (err)
		assert_ptr_equal(vgic, nothing);
	else
		world.m->vgic = vgic;
	return err;
}

static void creation_survives_every_failure(void **state)
{
	static const struct scenario scenarios[] = {
		{ "vgic_create, no features", describe_plain, create, { -ENOMEM } },
		{ "vgic_create, KVM's profile", describe_kvm, create, { -ENOMEM } },
		{ "vgic_create, every feature", describe_rich, create, { -ENOMEM } },
	};

	(void)state;
	fail_all(scenarios, NUM(scenarios));
}

/* ---- Route tables and irqfds --------------------------------------------------------------- */

static void boot(void)
{
	world_boot();
}

static int create_routes(void)
{
	return vgic_routes_create(world.m->vgic, WORLD_GSIS, &world.routes);
}

static void boot_with_routes(void)
{
	struct vgic_route msi = { .type = VGIC_ROUTE_MSI };
	struct vgic_route spi = { .type = VGIC_ROUTE_SPI };

	world_boot();
	assert_int_equal(create_routes(), 0);
	msi.to.msi.address = WORLD_DOORBELL;
	msi.to.msi.devid = 1;
	msi.to.msi.msi_flags = VGIC_MSI_VALID_DEVID;
	assert_int_equal(vgic_route_set(world.routes, 0, &msi), 0);
	spi.to.spi.intid = 36;
	spi.to.spi.source = 2;
	irq_set_edge(world.m, 0, 36, false);
	assert_int_equal(vgic_route_set(world.routes, 1, &spi), 0);
}

static int on_watch(void *opaque, int fd, uint64_t token)
{
	(void)opaque;
	(void)fd;
	(void)token;
	return inject_call_fails() ? -EOVERFLOW : 0;
}

static void on_unwatch(void *opaque, int fd, uint64_t token)
{
	(void)opaque;
	(void)fd;
	(void)token;
}

static int on_inject(void *opaque, uint32_t gsi, enum vgic_irqfd_path path)
{
	(void)opaque;
	if (path == VGIC_IRQFD_DIRECT)
		return -EWOULDBLOCK;
	return vgic_signal_gsi(world.routes, gsi);
}

static int create_irqfds(enum vgic_irqfd_door door, enum vgic_irqfd_path path, bool has_inject)
{
	struct vgic_irqfds_config config;

	vgic_irqfds_config_init(&config);
	config.door = door;
	config.path = path;
	config.max_irqfds = 16;
	config.num_threads = 3;
	config.ops.watch = on_watch;
	config.ops.unwatch = on_unwatch;
	config.ops.inject = has_inject ? on_inject : NULL;
	return vgic_irqfds_create(world.routes, &config, &world.irqfds);
}

static int create_loop(void)
{
	return create_irqfds(VGIC_IRQFD_LOOP, VGIC_IRQFD_DIRECT, false);
}

static int create_loop_with_worker(void)
{
	return create_irqfds(VGIC_IRQFD_LOOP, VGIC_IRQFD_DIRECT, true);
}

static int create_service(void)
{
	return create_irqfds(VGIC_IRQFD_SERVICE, VGIC_IRQFD_DIRECT, false);
}

static int create_service_with_worker(void)
{
	return create_irqfds(VGIC_IRQFD_SERVICE, VGIC_IRQFD_DEFERRED, false);
}

static void tables_and_threads_survive_every_failure(void **state)
{
	static const struct scenario scenarios[] = {
		{ "vgic_routes_create", boot, create_routes, { -ENOMEM } },
		{ "vgic_irqfds_create, the VMM's loop", boot_with_routes, create_loop, { -ENOMEM } },
		{ "vgic_irqfds_create, the VMM's loop and a worker",
		  boot_with_routes,
		  create_loop_with_worker,
		  { -ENOMEM, -EMFILE, -EAGAIN } },
		{ "vgic_irqfds_create, 3 threads",
		  boot_with_routes,
		  create_service,
		  { -ENOMEM, -EMFILE, -ENFILE, -EAGAIN, -ENOSPC } },
		{ "vgic_irqfds_create, 3 threads and a worker",
		  boot_with_routes,
		  create_service_with_worker,
		  { -ENOMEM, -EMFILE, -ENFILE, -EAGAIN, -ENOSPC } },
	};

	(void)state;
	fail_all(scenarios, NUM(scenarios));
}

/* ---- Binding eventfds ------------------------------------------------------------------------ */

static void open_eventfds(void)
{
	for (size_t i = 0; i < NUM(world.eventfds); i++) {
		world.eventfds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		assert_true(world.eventfds[i] >= 0);
	}
	world.resamplefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(world.resamplefd >= 0);
}

static void boot_with_loop(void)
{
	boot_with_routes();
	assert_int_equal(create_loop(), 0);
	open_eventfds();
}

static void boot_with_service(void)
{
	boot_with_routes();
	assert_int_equal(create_service(), 0);
	open_eventfds();
}

static void boot_with_worker(void)
{
	boot_with_routes();
	assert_int_equal(create_service_with_worker(), 0);
	open_eventfds();
}

static int assign_edge(void)
{
	return vgic_irqfd_assign(world.irqfds, 0, world.eventfds[0], VGIC_NO_FD);
}

static int assign_level(void)
{
	return vgic_irqfd_assign(world.irqfds, 1, world.eventfds[1], world.resamplefd);
}

static void boot_with_assigned(void)
{
	boot_with_worker();
	assert_int_equal(assign_edge(), 0);
	assert_int_equal(assign_level(), 0);
}

static int deassign_both(void)
{
	const int err = vgic_irqfd_deassign(world.irqfds, 0, world.eventfds[0]);

	return err ? err : vgic_irqfd_deassign(world.irqfds, 1, world.eventfds[1]);
}

static int create_msix_kind(enum vgic_msix_kind kind)
{
	struct vgic_msix_config config;

	vgic_msix_config_init(&config);
	config.kind = kind;
	config.num_vectors = 8;
	config.routes = world.routes;
	config.first_gsi = 4;
	config.devid = 1;
	config.irqfds = world.irqfds;
	return vgic_msix_create(&config, &world.msix);
}

static int create_msix(void)
{
	return create_msix_kind(VGIC_MSIX);
}

static int create_msi(void)
{
	return create_msix_kind(VGIC_MSI);
}

static void boot_with_msix(void)
{
	boot_with_service();
	assert_int_equal(create_msix(), 0);
}

static int bind_vectors(void)
{
	uint32_t failed = 99;
	const int err = vgic_msix_bind(world.msix, world.eventfds, 8, &failed);

	if (err)
		assert_true(failed < 8);
	return err;
}

static int enable_vectors(void)
{
	struct vgic_msix_vector vectors[8];
	uint32_t failed = 99;
	int err;

	for (uint32_t i = 0; i < 8; i++)
		vectors[i] = (struct vgic_msix_vector){ .address = WORLD_DOORBELL,
							.data = i,
							.control = i == 3 ? VGIC_MSIX_VECTOR_MASKED : 0,
							.eventfd = world.eventfds[i] };
	err = vgic_msix_enable(world.msix, vectors, 8, &failed);
	if (err)
		assert_true(failed < 8);
	return err;
}

static void binding_survives_every_failure(void **state)
{
	static const struct scenario scenarios[] = {
		{ "vgic_irqfd_assign, the VMM's loop", boot_with_loop, assign_edge, { -EOVERFLOW, -EBADF } },
		{ "vgic_irqfd_assign, the VMM's loop, level",
		  boot_with_loop,
		  assign_level,
		  { -EOVERFLOW, -EMFILE, -EBADF, -EINVAL } },
		{ "vgic_irqfd_assign, service", boot_with_service, assign_edge, { -ENOSPC, -EMFILE } },
		{ "vgic_irqfd_assign, service, level",
		  boot_with_worker,
		  assign_level,
		  { -ENOSPC, -EMFILE, -EBADF, -EINVAL } },
		{ "vgic_irqfd_deassign", boot_with_assigned, deassign_both, { 0 } },
		{ "vgic_msix_create, MSI-X", boot_with_service, create_msix, { -ENOMEM } },
		{ "vgic_msix_create, MSI", boot_with_service, create_msi, { -ENOMEM } },
		{ "vgic_msix_bind", boot_with_msix, bind_vectors, { -ENOSPC, -EMFILE } },
		{ "vgic_msix_enable", boot_with_msix, enable_vectors, { -ENOSPC, -EMFILE } },
	};

	(void)state;
	fail_all(scenarios, NUM(scenarios));
}

/* Every second call that a signal may interrupt is: nothing is lost, and every thread ends. */
static void interrupted_calls_are_made_again(void **state)
{
	const uint64_t one = 1;
	struct vgic_irqfds_stats stats = { .size = sizeof(stats) };

	(void)state;
	inject_interrupts(true);
	boot_with_assigned();
	for (uint64_t i = 0; i < 20; i++) {
		while (write(world.eventfds[0], &one, sizeof(one)) < 0)
			;
		while (write(world.eventfds[1], &one, sizeof(one)) < 0)
			;
		/* The guest takes what there is: the EOI of SPI 36 signals the resamplefd, or fails to. */
		for (uint32_t v = 0; v < 3; v++)
			while (take(world.m, v) != NO_INTERRUPT ||
			       (ack0(world.m, v) == 36 ? eoi0(world.m, v, 36), 1 : 0))
				;
		do {
			assert_int_equal(vgic_irqfds_get_stats(world.irqfds, &stats), 0);
		} while (stats.deferred + stats.coalesced + stats.dropped < i + 1);
	}
	world_end();
	inject_interrupts(false);
}

/* What the headers say of the memory of each part. */
static void memory_of_the_parts_is_what_the_headers_say(void **state)
{
	size_t before;

	(void)state;
	world_boot();
	before = inject_live_bytes();
	assert_int_equal(create_routes(), 0);
	assert_in_range(inject_live_bytes() - before, 1, 1024 + 120 * WORLD_GSIS + 192 * world.m->config.num_spis);
	assert_int_equal(create_loop(), 0);
	before = inject_live_bytes();
	assert_int_equal(create_msix(), 0);
	assert_in_range(inject_live_bytes() - before, 1, 512 + 64 * 8);
	world_end();
}

/* ---- All at once, and the end at any point ------------------------------------------------------- */

/* The whole life of a machine up to step @steps. Returns false when it has come to its end before. */
static bool live(unsigned steps)
{
	int (*const calls[])(void) = { create_routes, create_service_with_worker,
				       assign_edge,   assign_level,
				       create_msix,   deassign_both,
				       bind_vectors };

	world_boot();
	open_eventfds();
	for (size_t i = 0; i < NUM(calls); i++) {
		if (steps-- == 0)
			return true;
		assert_int_equal(calls[i](), 0);
	}
	return false;
}

static void a_controller_may_be_destroyed_at_any_point(void **state)
{
	bool goes_on = true;

	(void)state;
	for (unsigned steps = 0; goes_on; steps++) {
		goes_on = live(steps);
		world_end();
	}
}

const struct CMUnitTest life_tests[] = {
	cmocka_unit_test(creation_survives_every_failure),
	cmocka_unit_test(tables_and_threads_survive_every_failure),
	cmocka_unit_test(binding_survives_every_failure),
	cmocka_unit_test(interrupted_calls_are_made_again),
	cmocka_unit_test(memory_of_the_parts_is_what_the_headers_say),
	cmocka_unit_test(a_controller_may_be_destroyed_at_any_point),
};
const size_t num_life_tests = NUM(life_tests);
