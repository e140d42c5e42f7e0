/* SPDX-License-Identifier: MIT */
/*
 * scenarios_core.c - edges, levels, SGIs, and what a guest does to them meanwhile. Each
 * names the ordering rules (docs/architecture.md) that it is about.
 */
#include "rig.h"

#define SPI_A RIG_FIRST_SPI
#define SPI_B (RIG_FIRST_SPI + 1)

/* ---- Devices ---- */

static void pulse_three_times(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 3; i++)
		rig_pulse(rig, SPI_A);
}

static void pulse_another(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 3; i++)
		rig_pulse(rig, SPI_B);
}

static void pulse_in_lockstep(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 4; i++) {
		rig_pulse(rig, SPI_A);
		rig_await(rig, SPI_A);
	}
}

static void pulse_another_in_lockstep(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 4; i++) {
		rig_pulse(rig, SPI_B);
		rig_await(rig, SPI_B);
	}
}

/* As many acknowledges as signals: each device waited for its own. */
static void check_exact(struct rig *rig)
{
	for (const struct account *a = rig->accounts; a->used; a++) {
		if (a->acknowledges != a->accepted)
			rig_fail(rig, "INTID %u: %u signals, %u acknowledges", a->intid, a->accepted, a->acknowledges);
	}
}

/* ---- Edges: R1 to R6 ---- */

/* Nothing comes afterwards that could make up for a lost wake-up. */
static void pulse_once(void *context)
{
	rig_pulse(context, SPI_A);
}

static void pulse_another_once(void *context)
{
	rig_pulse(context, SPI_B);
}

/* A kick for what is gone when the vCPU looks. */
static void set_and_clear(void *context)
{
	struct rig *rig = context;

	account_of(rig, SPI_A)->number = 1;
	rig_spi_bit(rig, GICD_ISPENDR, SPI_A);
	rig_spi_bit(rig, GICD_ICPENDR, SPI_A);
}

static void pulse_with_priority(void *context)
{
	struct rig *rig = context;

	for (uint32_t i = 0; i < RIG_NUM_SPIS; i++)
		rig_pulse(rig, RIG_FIRST_SPI + i);
}

static void set_up_many(struct rig *rig)
{
	/* Other levels, so that hints meet in all parts of the maps. */
	for (uint32_t i = 0; i < RIG_NUM_SPIS; i++)
		rig_spi_priority(rig, RIG_FIRST_SPI + i, (uint8_t)(schedule_draw(2) ? 0x80 : 0x88));
}

/* ---- The CPU interface's mask: R2 ---- */

/* The guest's handler masks everything for a while, and opens again. */
static void mask_and_open(struct rig_vcpu *v, uint32_t intid)
{
	(void)intid;
	rig_icc_write(v, VGIC_ICC_PMR_EL1, 0);
	vgic_poll_lines(v->vcpu);
	rig_icc_write(v, VGIC_ICC_PMR_EL1, 0xff);
}

/* ---- Levels ---- */

/* A device raises its line, and lowers it when it has been served. */
static void raise_and_lower(void *context)
{
	struct rig *rig = context;
	struct account *a = account_of(rig, SPI_A);

	for (int i = 0; i < 3; i++) {
		const unsigned number = account_begin(a);

		vgic_set_spi(rig->vgic, SPI_A, 0, true);
		account_end(a, number, true);
		while (rig->served < number)
			schedule_yield();
	}
}

/* The handler serves the device, which lowers its line. */
static void serve_level(struct rig_vcpu *v, uint32_t intid)
{
	if (intid != SPI_A)
		return;
	vgic_set_spi(v->rig->vgic, SPI_A, 0, false);
	/* If the device has only begun to raise it again, the line is up once more than is needed. */
	v->rig->served = account_of(v->rig, SPI_A)->number;
}

static void set_up_level(struct rig *rig)
{
	rig_spi_level(rig, SPI_A);
	rig->extra = 100;
	/* A rise is served by any acknowledge behind it: its device waits for that. */
	account_of(rig, SPI_A)->not_lasting = true;
}

/* A second source of the line goes up and down by itself. */
static void flicker(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 4; i++)
		vgic_set_spi(rig->vgic, SPI_A, 1, i % 2 == 0);
}

/* ---- SGIs ---- */

static void send_sgis(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 3; i++)
		rig_sgi(&rig->vcpus[0], 1);
}

/* By the registers, as ISPENDR0 of SGIs can be written by anyone. */
static void write_ispendr(void *context)
{
	struct rig *rig = context;
	struct account *a = account_of(rig, RIG_PPI);

	for (int i = 0; i < 3; i++) {
		const unsigned number = account_begin(a);

		rig_redist_write(rig, 0, GICR_ISPENDR0, 1u << RIG_PPI);
		account_end(a, number, true);
	}
}

/* SGIs of a vCPU are sent by its own thread: here one that only sends. */
static void set_up_sgis(struct rig *rig)
{
	rig_redist_write(rig, 0, GICR_ICFGR + 4, 2u << (RIG_PPI - 16) * 2);
}

/* ---- A disable, and RWP: R3, R10 ---- */

static void close_path(struct rig *rig, uint32_t intid)
{
	account_of(rig, intid)->epoch++;
	schedule_note("the path of %u is closed", intid);
}

static void open_path(struct rig *rig, uint32_t intid)
{
	account_of(rig, intid)->epoch++;
	schedule_note("the path of %u is about to be opened", intid);
}

static void disable_and_enable(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 2; i++) {
		rig_spi_bit(rig, GICD_ICENABLER, SPI_A);
		rig_await_dist(rig);
		close_path(rig, SPI_A);
		schedule_yield();
		open_path(rig, SPI_A);
		rig_spi_bit(rig, GICD_ISENABLER, SPI_A);
	}
}

static void set_up_disable(struct rig *rig)
{
	account_of(rig, SPI_A)->has_rwp = true;
}

static void disable_group_and_enable(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 2; i++) {
		rig_dist_write(rig, GICD_CTLR, 0);
		rig_await_dist(rig);
		close_path(rig, SPI_A);
		schedule_yield();
		open_path(rig, SPI_A);
		rig_dist_write(rig, GICD_CTLR, GICD_CTLR_ENABLE_GRP1);
	}
}

static void set_up_group(struct rig *rig)
{
	account_of(rig, SPI_A)->has_rwp = true;
}

static void disable_private_and_enable(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 2; i++) {
		rig_redist_write(rig, 0, GICR_ICENABLER0, 1u << RIG_PPI);
		rig_await_redist(rig, 0);
		close_path(rig, RIG_PPI);
		schedule_yield();
		open_path(rig, RIG_PPI);
		rig_redist_write(rig, 0, GICR_ISENABLER0, 1u << RIG_PPI);
	}
}

static void set_up_private(struct rig *rig)
{
	rig_redist_write(rig, 0, GICR_ICFGR + 4, 2u << (RIG_PPI - 16) * 2);
	account_of(rig, RIG_PPI)->has_rwp = true;
}

/* Hints of interrupts that are disabled are stale: the owner drops them while others file them anew. */
static void disable_each(void *context)
{
	struct rig *rig = context;

	for (uint32_t i = 0; i < 2 * RIG_NUM_SPIS; i++) {
		rig_spi_bit(rig, GICD_ICENABLER, RIG_FIRST_SPI + i % RIG_NUM_SPIS);
		rig_spi_bit(rig, GICD_ISENABLER, RIG_FIRST_SPI + i % RIG_NUM_SPIS);
	}
}

/* ---- Places that change: R3, R4 ---- */

static void move_to_and_fro(void *context)
{
	struct rig *rig = context;

	for (uint64_t i = 1; i <= 3; i++)
		rig_spi_route(rig, SPI_A, i % 2);
}

static void change_priority(void *context)
{
	struct rig *rig = context;

	for (int i = 0; i < 3; i++)
		rig_spi_priority(rig, SPI_A, i % 2 ? 0xa0 : 0x40);
}

/* ---- 1-of-N: R9 ---- */

static void go_off_and_on(void *context)
{
	struct rig *rig = context;

	vgic_vcpu_set_online(rig->vcpus[1].vcpu, false);
	vgic_vcpu_set_online(rig->vcpus[1].vcpu, true);
	vgic_vcpu_set_online(rig->vcpus[0].vcpu, false);
}

static void set_up_one_of_n(struct rig *rig)
{
	rig_spi_route(rig, SPI_A, GICD_IROUTER_IRM);
}

/* ---- Withdrawal: R8 ---- */

/*
 * SPI_A is of Group 0 and pending at 0xa8; it cannot preempt what is active at 0xa0. SPI_B is of Group 1 at 0xb0, and could,
 * by its binary point, but is not the highest-priority pending interrupt. When SPI_A is disabled, SPI_B comes to light.
 */
#define ACTIVE_SPI (RIG_FIRST_SPI + 2)

static void hide_and_show(void *context)
{
	struct rig *rig = context;

	rig_pulse(rig, ACTIVE_SPI);
	rig_await(rig, ACTIVE_SPI);
	rig_spi_bit(rig, GICD_ISPENDR, SPI_A);
	rig_pulse(rig, SPI_B);
	rig_spi_bit(rig, GICD_ICENABLER, SPI_A);
	rig_await(rig, SPI_B);
}

/* The handler of what is active waits until the hidden one has come. */
static void wait_for_hidden(struct rig_vcpu *v, uint32_t intid)
{
	struct account *hidden = account_of(v->rig, SPI_B);

	if (intid != ACTIVE_SPI)
		return;
	while (!hidden->seen) {
		if (vgic_prepare_wait(v->vcpu) == VGIC_LINE_IRQ) {
			vgic_finish_wait(v->vcpu);
			if (rig_icc_read(v, VGIC_ICC_IAR1_EL1) == SPI_B) {
				hidden->acknowledges++;
				hidden->seen = hidden->number;
				rig_icc_write(v, VGIC_ICC_EOIR1_EL1, SPI_B);
			}
		} else {
			gate_wait(&v->wake);
			vgic_finish_wait(v->vcpu);
		}
	}
}

static void set_up_hidden(struct rig *rig)
{
	struct rig_vcpu *v = &rig->vcpus[0];

	rig_dist_write(rig, GICD_IGROUPR + 4, ~(1u << SPI_A % 32 | 1u << ACTIVE_SPI % 32));
	rig_dist_write(rig, GICD_CTLR, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
	rig_icc_write(v, VGIC_ICC_IGRPEN0_EL1, 1);
	rig_icc_write(v, VGIC_ICC_BPR0_EL1, 2);
	rig_icc_write(v, VGIC_ICC_BPR1_EL1, 6);
	rig_spi_priority(rig, ACTIVE_SPI, 0xa0);
	rig_spi_priority(rig, SPI_A, 0xa8);
	rig_spi_priority(rig, SPI_B, 0xb0);
}

const struct rig_scenario scenarios_core[] = {
	{ .name = "edges",
	  .what = "two devices on one edge-triggered SPI; R1, R2, R5",
	  .tasks = { { "device0", pulse_three_times }, { "device1", pulse_three_times } } },
	{ .name = "edge_exact",
	  .what = "two that wait for each acknowledge; R2, R4, R5",
	  .tasks = { { "device0", pulse_in_lockstep }, { "device1", pulse_another_in_lockstep } },
	  .check = check_exact },
	{ .name = "edge_pair",
	  .what = "one signal each of two; R2",
	  .tasks = { { "device0", pulse_once }, { "device1", pulse_another_once } },
	  .check = check_exact },
	{ .name = "edge_in_vain",
	  .what = "kicks for what is gone; R2",
	  .tasks = { { "guest", set_and_clear }, { "device1", pulse_another_once } } },
	{ .name = "edge_levels",
	  .what = "hints of several interrupts and priorities; R4, R6",
	  .set_up = set_up_many,
	  .tasks = { { "device0", pulse_with_priority },
		     { "device1", pulse_with_priority },
		     { "device2", pulse_another } } },
	{ .name = "edge_masked",
	  .what = "the handler closes PMR and opens it again; R2",
	  .tasks = { { "device0", pulse_three_times }, { "device1", pulse_three_times } },
	  .taken = mask_and_open },
	{ .name = "level",
	  .what = "a line that is lowered by the handler; R1, R5",
	  .set_up = set_up_level,
	  .tasks = { { "device0", raise_and_lower } },
	  .taken = serve_level },
	{ .name = "level_shared",
	  .what = "the same with a second source",
	  .set_up = set_up_level,
	  .tasks = { { "device0", raise_and_lower }, { "device1", flicker } },
	  .taken = serve_level },
	{ .name = "sgi",
	  .what = "SGIs, and ISPENDR0 of another thread; R2",
	  .set_up = set_up_sgis,
	  .tasks = { { "sender", send_sgis }, { "writer", write_ispendr } } },
	{ .name = "disable_spi",
	  .what = "ICENABLER, RWP, ISENABLER; R3, R10",
	  .set_up = set_up_disable,
	  .tasks = { { "device0", pulse_three_times }, { "device1", pulse_another }, { "guest", disable_and_enable } } },
	{ .name = "disable_ppi",
	  .what = "the same of a redistributor",
	  .set_up = set_up_private,
	  .tasks = { { "writer", write_ispendr }, { "guest", disable_private_and_enable } } },
	{ .name = "disable_group",
	  .what = "GICD_CTLR; R2, R10",
	  .set_up = set_up_group,
	  .tasks = { { "device0", pulse_three_times }, { "guest", disable_group_and_enable } } },
	{ .name = "stale",
	  .what = "several that are disabled and enabled; R4, R6",
	  .tasks = { { "device0", pulse_with_priority },
		     { "device1", pulse_with_priority },
		     { "guest", disable_each } } },
	{ .name = "reroute",
	  .what = "IROUTER between two vCPUs; R3, R4",
	  .config = { .num_vcpus = 2 },
	  .tasks = { { "device0", pulse_in_lockstep }, { "guest", move_to_and_fro } },
	  .check = check_exact },
	{ .name = "priority",
	  .what = "IPRIORITYR of an interrupt that comes; R3, R4",
	  .tasks = { { "device0", pulse_in_lockstep }, { "device1", pulse_another }, { "guest", change_priority } } },
	{ .name = "one_of_n",
	  .what = "1-of-N, and vCPUs that go; R9",
	  .config = { .num_vcpus = 2, .features = VGIC_FEATURE_ONE_OF_N },
	  .set_up = set_up_one_of_n,
	  .tasks = { { "device0", pulse_in_lockstep }, { "host", go_off_and_on } },
	  .check = check_exact },
	{ .name = "hidden",
	  .what = "an interrupt that another has hidden; R8",
	  .set_up = set_up_hidden,
	  .tasks = { { "device0", hide_and_show } },
	  .taken = wait_for_hidden },
	{ 0 },
};
