/* SPDX-License-Identifier: MIT */
/*
 * scenarios_route.c - GSIs whose routes change while they are signalled. Each names the
 * ordering rules (docs/architecture.md) that it is about.
 */
#include "rig.h"

#define GSI   3u
#define LPI   RIG_FIRST_LPI
#define SPI_A RIG_FIRST_SPI
#define SPI_B (RIG_FIRST_SPI + 1)

static struct vgic_route msi_route(uint32_t event, uint32_t flags)
{
	return (struct vgic_route){
		.type = VGIC_ROUTE_MSI,
		.flags = flags,
		.to.msi = { .address = RIG_ITS_BASE + VGIC_ITS_DOORBELL,
			    .data = event,
			    .devid = RIG_DEVICE,
			    .msi_flags = VGIC_MSI_VALID_DEVID },
	};
}

static struct vgic_route spi_route(uint32_t intid)
{
	return (struct vgic_route){ .type = VGIC_ROUTE_SPI, .to.spi = { .intid = intid, .source = 5 } };
}

static void set_route(struct rig *rig, struct vgic_route route)
{
	if (vgic_route_set(rig->routes, GSI, &route) != 0)
		rig_fail(rig, "vgic_route_set() failed");
}

/* ---- MSIs ---- */

/* Events of one GSI, counted in one account whatever the LPI they become: that of the first. */
static void signal_gsi_and_await(struct rig *rig, int least)
{
	for (int i = 0; i < 3; i++) {
		rig->events++;
		if (vgic_signal_gsi(rig->routes, GSI) < least)
			rig_fail(rig, "the event was not accepted");
		while (account_of(rig, LPI)->acknowledges + account_of(rig, LPI + 1)->acknowledges < rig->events)
			schedule_yield();
	}
}

static void signal_gsi(void *context)
{
	signal_gsi_and_await(context, 1);
}

static void check_sum(struct rig *rig)
{
	const unsigned sum = account_of(rig, LPI)->acknowledges + account_of(rig, LPI + 1)->acknowledges;

	if (sum != rig->events)
		rig_fail(rig, "%u events, %u acknowledges", rig->events, sum);
}

static void expect_events(struct rig *rig)
{
	/* Which account each one is in is the route's affair. */
	rig->extra = 100;
}

static void change_target(void *context)
{
	struct rig *rig = context;

	for (uint32_t i = 1; i <= 4; i++)
		set_route(rig, msi_route(i % 2, 0));
}

static void set_up_change(struct rig *rig)
{
	expect_events(rig);
	set_route(rig, msi_route(0, 0));
}

/* A transaction is seen whole: the event never goes to what was staged and given up. */
static void change_by_transaction(void *context)
{
	struct rig *rig = context;

	for (uint32_t i = 0; i < 4; i++) {
		struct vgic_route_txn txn;
		const struct vgic_route route = msi_route(i % 2 ? 2 : 1, 0);

		if (vgic_route_txn_begin(rig->routes, &txn) != 0 || vgic_route_txn_set(&txn, GSI, &route) != 0)
			rig_fail(rig, "the transaction failed");
		if (i % 2)
			vgic_route_txn_abort(&txn);
		else
			vgic_route_txn_commit(&txn);
	}
}

static void set_up_transaction(struct rig *rig)
{
	expect_events(rig);
	account_of(rig, LPI + 2)->epoch = 1;
	set_route(rig, msi_route(0, 0));
}

static void mask_and_unmask(void *context)
{
	struct rig *rig = context;

	for (uint32_t i = 0; i < 4; i++)
		set_route(rig, msi_route(i / 2, i % 2 ? 0 : VGIC_ROUTE_MASKED));
}

/* The event is accepted, or kept behind the mask until that goes. */
static void signal_masked_gsi(void *context)
{
	signal_gsi_and_await(context, 0);
}

static void set_up_mask(struct rig *rig)
{
	expect_events(rig);
	set_route(rig, msi_route(0, 0));
}

/* ---- Pauses: R20 ---- */

static void pause_and_resume(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 3; i++) {
		vgic_pause(rig->vgic);
		vgic_resume(rig->vgic);
	}
}

/* What is kept is delivered by whichever of mask and pause ends last. */
static void set_up_pause(struct rig *rig)
{
	expect_events(rig);
	set_route(rig, msi_route(0, 0));
}

/* ---- Lines: R17 ---- */

/* The line is driven up and down; where it leads changes meanwhile. In the end it is low everywhere. */
static void drive_line(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 4; i++) {
		if (vgic_set_gsi(rig->routes, GSI, i % 2 == 0) < 0)
			rig_fail(rig, "vgic_set_gsi() failed");
	}
}

static void change_pin(void *context)
{
	struct rig *rig = context;

	for (uint32_t i = 1; i <= 3; i++)
		set_route(rig, spi_route(i % 2 ? SPI_B : SPI_A));
}

static void check_lines_are_low(struct rig *rig)
{
	const uint32_t pending = rig_dist_read(rig, GICD_ISPENDR + 4);

	if (pending & (1u << SPI_A % 32 | 1u << SPI_B % 32))
		rig_fail(rig, "a line has stayed high: GICD_ISPENDR1 is 0x%x", pending);
}

static void set_up_lines(struct rig *rig)
{
	rig_spi_level(rig, SPI_A);
	rig_spi_level(rig, SPI_B);
	/* Any number of acknowledges, while the line is high. */
	rig->extra = 1000000;
	set_route(rig, spi_route(SPI_A));
}

const struct rig_scenario scenarios_route[] = {
	{ .name = "route_change",
	  .what = "an MSI route that changes under fire; R15",
	  .config = { .its = true, .routes = true },
	  .set_up = set_up_change,
	  .tasks = { { "device0", signal_gsi }, { "vmm", change_target } },
	  .check = check_sum },
	{ .name = "route_txn",
	  .what = "transactions, some given up; R15",
	  .config = { .its = true, .routes = true },
	  .set_up = set_up_transaction,
	  .tasks = { { "device0", signal_gsi }, { "vmm", change_by_transaction } },
	  .check = check_sum },
	{ .name = "route_mask",
	  .what = "masks that come and go; R16",
	  .config = { .its = true, .routes = true },
	  .set_up = set_up_mask,
	  .tasks = { { "device0", signal_masked_gsi }, { "vmm", mask_and_unmask } },
	  .check = check_sum },
	{ .name = "route_pause",
	  .what = "masks and pauses that come and go; R16, R20",
	  .config = { .its = true, .routes = true },
	  .set_up = set_up_pause,
	  .tasks = { { "device0", signal_masked_gsi }, { "vmm", mask_and_unmask }, { "saver", pause_and_resume } },
	  .check = check_sum },
	{ .name = "route_lines",
	  .what = "a line whose pin changes; R17",
	  .config = { .routes = true },
	  .set_up = set_up_lines,
	  .tasks = { { "device0", drive_line }, { "vmm", change_pin } },
	  .check = check_lines_are_low },
	{ 0 },
};
