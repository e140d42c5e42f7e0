/* SPDX-License-Identifier: MIT */
/* Runs the program's tests and prints the results; the entry of the boot CPU. */
#include "tap.h"

#include "exception.h"
#include "gic.h"
#include "psci.h"
#include "testdev.h"
#include "timer.h"
#include "uart.h"

#define MIN_LOOKS   20000u
#define MIN_WAIT_MS 1000u

struct machine_info machine;

static unsigned test_number;
static const char *test_name;
static bool test_done; /* the running test has printed its result */
static bool test_failed;

void boot_main(const void *fdt);

static const char *base_name(const char *path)
{
	const char *base = path;

	for (; *path; path++)
		if (*path == '/')
			base = path + 1;
	return base;
}

static void begin_failure(const char *file, int line)
{
	uart_printf("not ok %u - %s # %s:%d: ", test_number, test_name, base_name(file), line);
	test_done = true;
	test_failed = true;
}

void tap_fail(const char *file, int line, const char *what)
{
	begin_failure(file, line);
	uart_printf("%s does not hold\n", what);
}

void tap_fail_values(const char *file, int line, const char *what, uint64_t actual, uint64_t expected)
{
	begin_failure(file, line);
	uart_printf("%s is %#lx, expected %#lx\n", what, actual, expected);
}

void tap_skip(const char *reason)
{
	uart_printf("ok %u - %s # SKIP %s\n", test_number, test_name, reason);
	test_done = true;
}

bool tap_has_failed(void)
{
	return test_failed;
}

void tap_bail_out(const char *reason)
{
	uart_printf("Bail out! CPU %u in %s: %s\n", this_cpu()->index, test_name ? test_name : "start", reason);
	psci_system_off();
}

struct deadline deadline_start(void)
{
	uint64_t wait = read_sysreg(cntfrq_el0) * MIN_WAIT_MS / 1000;

	return (struct deadline){ .counter = timer_now() + wait, .looks_left = MIN_LOOKS };
}

bool deadline_passed(struct deadline *deadline)
{
	if (deadline->looks_left) {
		deadline->looks_left--;
		return false;
	}
	return timer_now() >= deadline->counter;
}

static uint64_t reset_this_cpu(uint64_t unused)
{
	(void)unused;
	mask_all();
	timer_stop(VIRTUAL_TIMER);
	timer_stop(PHYSICAL_TIMER);
	gic_init_cpu();
	return 0;
}

/* The state that every test starts from. Sources of interrupts first, so that nothing is pending afterwards. */
static void reset_machine(void)
{
	uart_mask_tx_interrupt(true);
	testdev_lower_all();
	smp_call_all(reset_this_cpu, 0);
	gic_reset();
	reset_interrupt_records();
	gic_enable_distributor();
}

static void run_test(const struct test *test)
{
	test_number++;
	test_name = test->name;
	test_done = false;
	test_failed = false;
	if (num_cpus < test->min_cpus) {
		tap_skip("needs more CPUs");
		return;
	}
	reset_machine();
	test->run();
	mask_all();
	if (!test_done)
		uart_printf("ok %u - %s\n", test_number, test_name);
}

void boot_main(const void *fdt)
{
	uart_init();
	if ((read_sysreg(CurrentEL) >> 2 & 3) != 1)
		tap_bail_out("not started at EL1");
	if (!fdt_scan(fdt, &machine))
		tap_bail_out("no device tree with a GICv3 in x0");
	gic_discover(&machine);
	gic_init_cpu();
	smp_start_all();

	uart_printf("1..%u\n", num_tests);
	uart_printf("# %u of %u CPUs, %s\n", num_cpus, num_redistributors,
		    gic_is_libvgic() ? "libvgic" : "another GIC");
	for (unsigned i = 0; i < num_tests; i++)
		run_test(&tests[i]);
	psci_system_off();
}
