/* SPDX-License-Identifier: MIT */
/*
 * vgic-vmm's test device ("vgic,testdev" in the device tree): drives the line of
 * any SPI or PPI. Machines without it skip the tests that need it.
 */
#ifndef GUEST_TESTDEV_H
#define GUEST_TESTDEV_H

#include "arch.h"

bool testdev_is_present(void);
void testdev_set_line(uint32_t spi, bool level);
void testdev_pulse(uint32_t spi);
void testdev_set_ppi_line(unsigned cpu, uint32_t ppi, bool level);

/* An MSI, as a device with that DeviceID would write it to GITS_TRANSLATER. */
void testdev_send_msi(uint32_t device, uint32_t event);

/* Every line that was raised and not lowered. */
void testdev_lower_all(void);

#endif
