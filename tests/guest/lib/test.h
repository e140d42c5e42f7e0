/* SPDX-License-Identifier: MIT */
/* Everything that a test program includes. */
#ifndef GUEST_TEST_H
#define GUEST_TEST_H

#include "arch.h"
#include "exception.h"
#include "gic.h"
#include "gits.h"
#include "psci.h"
#include "sleep.h"
#include "smp.h"
#include "tap.h"
#include "testdev.h"
#include "timer.h"
#include "uart.h"

/* SPIs that no device of these machines is wired to. */
enum {
	SPI_A = 96,
	SPI_B,
	SPI_C,
	SPI_D,
	SPI_E,
	SPI_F,
	SPI_G,
	SPI_H,
};

#endif
