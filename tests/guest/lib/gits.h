/* SPDX-License-Identifier: MIT */
/*
 * A driver for LPIs and the ITS, as the tests want one: every command by itself.
 *
 * It owns the tables in memory. A command function puts one command into the
 * queue and waits until the ITS has consumed it. Collection n is mapped to CPU n
 * (an index in cpus[]) unless a test changes that.
 */
#ifndef GUEST_GITS_H
#define GUEST_GITS_H

#include "smp.h"

#define NUM_LPIS 8192u /* 14 bits of INTID */

#define ITS_MAX_DEVICES 8u
#define ITS_MAX_EVENTS  64u
#define ITS_QUEUE_SLOTS 128u

bool its_is_present(void);

/* All LPIs at DEFAULT_PRIORITY and disabled, enabled at every CPU; no mappings but the collections; the ITS is on. */
void its_set_up(void);
void its_enable(bool enable); /* GITS_CTLR.Enabled; switched off, it waits for Quiescent */

/* The configuration table. The redistributors may not know before INV or INVALL. */
void lpi_configure(uint32_t lpi, unsigned priority, bool enable);
/* A CPU's pending table; of use while its LPIs are disabled only. */
uint8_t lpi_pending_byte(unsigned cpu, uint32_t lpi);
void lpi_set_pending_in_table(unsigned cpu, uint32_t lpi);
void lpi_enable_at_cpu(unsigned cpu, bool enable); /* GICR_CTLR.EnableLPIs */

void its_mapd(uint32_t device, bool valid);
void its_mapc(uint32_t collection, unsigned cpu, bool valid);
void its_mapti(uint32_t device, uint32_t event, uint32_t lpi, uint32_t collection);
void its_mapi(uint32_t device, uint32_t lpi, uint32_t collection); /* the EventID is the INTID */
void its_movi(uint32_t device, uint32_t event, uint32_t collection);
void its_movall(unsigned from, unsigned to);
void its_discard(uint32_t device, uint32_t event);
void its_int(uint32_t device, uint32_t event);
void its_clear(uint32_t device, uint32_t event);
void its_inv(uint32_t device, uint32_t event);
void its_invall(uint32_t collection);
void its_sync(unsigned cpu);

/* A number of INTs of one event with one write to GITS_CWRITER; fewer than ITS_QUEUE_SLOTS. */
void its_int_batch(uint32_t device, uint32_t first_event, unsigned count);

#endif
