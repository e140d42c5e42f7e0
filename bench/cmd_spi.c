/* SPDX-License-Identifier: MIT */
/*
 * cmd_spi.c - `vgic-bench spi`: one edge-triggered SPI, from the device's signal
 * to the guest's end of interrupt.
 */
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "machine.h"

#define INTID     40u
#define NUM_VCPUS 4u

/* Signalled again and again, and never taken. */
BENCH_LOOP static bool loop_spi_pending(void *context, uint64_t iterations)
{
	struct machine *machine = context;
	uint64_t next = 0;
	bool right = true;

	for (uint64_t i = 0; i < iterations; i++)
		right &= vgic_pulse_spi(machine->vgic, INTID) == 1;
	return vgic_icc_read(machine->first, VGIC_ICC_HPPIR1_EL1, &next) == 0 && next == INTID && right;
}

/* Signalled, acknowledged, ended. */
BENCH_LOOP static bool loop_spi_deliver(void *context, uint64_t iterations)
{
	struct machine *machine = context;
	bool right = true;

	for (uint64_t i = 0; i < iterations; i++) {
		vgic_pulse_spi(machine->vgic, INTID);

		const uint32_t intid = machine_acknowledge(machine->first);

		right &= intid == INTID;
		machine_end(machine->first, intid);
	}
	return machine_acknowledge(machine->first) == MACHINE_SPURIOUS && right;
}

/* The same with what is around it: the vCPU is kicked, leaves the guest, enters it again and finds its line high. */
BENCH_LOOP static bool loop_spi_round_trip(void *context, uint64_t iterations)
{
	struct machine *machine = context;
	struct vgic_vcpu *vcpu = machine->first;
	uint32_t last;
	bool right = true;

	machine_drain(vcpu, &last);
	right &= vgic_enter_guest(vcpu) == 0;

	const uint64_t kicks_before = machine->kicks;

	for (uint64_t i = 0; i < iterations; i++) {
		vgic_pulse_spi(machine->vgic, INTID);
		vgic_exit_guest(vcpu);
		right &= vgic_enter_guest(vcpu) == VGIC_LINE_IRQ;

		const uint32_t intid = machine_acknowledge(vcpu);

		right &= intid == INTID;
		machine_end(vcpu, intid);
	}
	right &= machine->kicks - kicks_before == iterations;
	vgic_exit_guest(vcpu);
	return machine_acknowledge(vcpu) == MACHINE_SPURIOUS && right;
}

static void print_json(double rmw, double pending, double deliver, double round_trip)
{
	printf("{\"rmw_ns\":%.2f,\"pending_ns\":%.2f,\"deliver_ns\":%.2f,\"round_trip_ns\":%.2f}\n", rmw, pending,
	       deliver, round_trip);
}

static void print_table(struct summary rmw, struct summary pending, struct summary deliver, struct summary round_trip)
{
	bench_print_header("one edge-triggered SPI");
	bench_print_path("atomic fetch_or", rmw, rmw.median);
	bench_print_path("signal, pending already", pending, rmw.median);
	bench_print_path("signal, acknowledge, EOI", deliver, rmw.median);
	bench_print_path("the same with kick, exit and entry", round_trip, rmw.median);
}

int bench_spi(const struct bench_options *options)
{
	uint64_t affinities[NUM_VCPUS];
	struct machine machine;

	for (uint32_t i = 0; i < NUM_VCPUS; i++)
		affinities[i] = i;

	const int error = machine_init(&machine, affinities, NUM_VCPUS);

	if (error) {
		fprintf(stderr, "vgic-bench: cannot create the controller: %s\n", strerror(-error));
		return 1;
	}

	struct series rmw;
	struct series pending = { .name = "spi pending", .run = loop_spi_pending, .context = &machine };
	struct series deliver = { .name = "spi deliver", .run = loop_spi_deliver, .context = &machine };
	struct series trip = { .name = "spi round trip", .run = loop_spi_round_trip, .context = &machine };
	struct series *const turns[] = { &rmw, &pending, &deliver, &trip };

	measure_init_rmw(&rmw);

	const bool well = bench_measure(turns, 4, options);

	if (well) {
		const struct summary r = measure_summarize(&rmw), p = measure_summarize(&pending),
				     d = measure_summarize(&deliver), t = measure_summarize(&trip);

		if (options->measure.json)
			print_json(r.median, p.median, d.median, t.median);
		else
			print_table(r, p, d, t);
	}
	for (unsigned i = 0; i < 4; i++)
		measure_free(turns[i]);
	machine_destroy(&machine);
	return well ? 0 : 1;
}
