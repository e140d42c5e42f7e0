/* SPDX-License-Identifier: MIT */
/*
 * ledger.h - the account of one edge-triggered interrupt that several devices
 * signal: was every signal answered by an acknowledge that came after it?
 *
 * Edges on a pending interrupt merge, so that counts alone prove little. Each
 * device has a number that it raises before it signals. An acknowledge notes the
 * numbers that it sees. At rest it must have seen the last one of every device:
 * no edge was lost, and what a device wrote before it signalled was visible.
 * Between acknowledge and deactivation nobody else may acknowledge. That is also
 * why what the acknowledges note needs no atomics: ThreadSanitizer checks that one
 * service of the interrupt is ordered before the next.
 */
#ifndef STRESS_LEDGER_H
#define STRESS_LEDGER_H

#include "stress.h"

#define LEDGER_MAX_DEVICES 8

struct ledger {
	_Atomic uint64_t data[LEDGER_MAX_DEVICES]; /* each written by its device */
	_Atomic uint64_t signals;
	_Atomic uint32_t in_service;
	/* Written in service only. */
	uint64_t acknowledges;
	uint64_t seen[LEDGER_MAX_DEVICES];
};

/* @device is about to signal. */
static inline void ledger_note_signal(struct ledger *l, unsigned device)
{
	store_relaxed(&l->data[device], load_relaxed(&l->data[device]) + 1);
	atomic_fetch_add_explicit(&l->signals, 1, memory_order_relaxed);
}

void ledger_note_acknowledge(struct ledger *l, struct run *run, uint32_t intid);
void ledger_note_end(struct ledger *l, struct run *run, uint32_t intid);

/* At rest. */
void ledger_check(const struct ledger *l, struct run *run, uint32_t intid);

#endif /* STRESS_LEDGER_H */
