/* SPDX-License-Identifier: MIT */
/*
 * vgic-vmm, the reference VMM of libvgic: boots arm64 guests on any host, slowly.
 *
 * It shows how libvgic is embedded (gic.c, machine.c) and proves it with a real
 * Linux. The CPUs are Unicorn's (cpu.c); the interrupt controller is libvgic and
 * nothing else.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "cpu.h"
#include "machine.h"
#include "options.h"
#include "trace.h"
#include "util.h"

/* For the exit handler: a terminal in raw mode must not stay behind. */
static struct console console;

static void close_console(void)
{
	console_close(&console);
}

static void on_signal(int number)
{
	signal_received = number;
}

static void on_save_signal(int number)
{
	(void)number;
	save_signal = 1;
}

static void catch_signals(const struct options *options)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action = { .sa_handler = on_signal }; /* without SA_RESTART: it ends a wait for input */

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
	action.sa_handler = on_save_signal;
	if (options->save_to)
		sigaction(SIGUSR1, &action, NULL);
	/* Who reads the output may leave before the guest ends: that is seen as an error of the output. */
	signal(SIGPIPE, SIG_IGN);
}

static int report_end(struct machine *machine, enum machine_end_reason reason)
{
	switch (reason) {
	case END_TIMEOUT:
		message("stopped after %g s (--timeout): the guest had not finished",
			(double)machine->options->timeout_ns / 1e9);
		machine_print_state(machine);
		return EXIT_TIMEOUT;
	case END_RESET:
		message(machine->options->no_reboot ?
				"the guest has reset the machine (--no-reboot)" :
				"the guest has reset the machine: give --kernel beside --load for it to begin anew");
		return EXIT_GUEST_RESET;
	case END_SAVED:
		message("the machine is saved in %s; --load goes on with it", machine->options->save_to);
		return EXIT_DONE;
	case END_OUTPUT_LOST: /* run() says so */
	case END_FAULT:
		return EXIT_FAULT;
	case END_SIGNAL:
		return 128 + signal_received;
	default:
		return EXIT_DONE;
	}
}

static int run(const struct options *options)
{
	struct trace *trace = NULL;
	struct machine machine;
	int status = EXIT_FAULT;

	if (cpu_layer_init())
		return EXIT_FAULT;
	if (options->trace_gic && trace_open(options->trace_gic, &trace))
		return EXIT_FAULT;
	if (machine_create(&machine, options, &console, trace))
		goto out;
	if (console_open(&console, options) == 0) {
		const enum machine_end_reason reason = machine_run(&machine);

		/* What the guest has begun to print is printed on elsewhere. */
		if (reason == END_SAVED)
			console.last = '\n';
		console_close(&console);
		status = report_end(&machine, reason);
	}
	machine_destroy(&machine);
out:
	trace_close(trace);
	if (fflush(stdout) || ferror(stdout)) {
		message("the guest's output cannot be written");
		status = EXIT_FAULT;
	}
	return status;
}

int main(int argc, char **argv)
{
	static struct options options;
	int status = options_parse(&options, argc, argv);

	if (status >= 0)
		return status;
	console.input_fd = -1;
	console.last = '\n';
	atexit(close_console);
	catch_signals(&options);
	status = run(&options);
	if (status > 128) {
		/* End as the signal would have ended us, so that a shell sees it. */
		close_console();
		signal(status - 128, SIG_DFL);
		raise(status - 128);
	}
	return status;
}
