/* SPDX-License-Identifier: MIT */
/*
 * ledger.c - signals against acknowledges.
 */
#include "ledger.h"

#include <inttypes.h>

void ledger_note_acknowledge(struct ledger *l, struct run *run, uint32_t intid)
{
	if (atomic_exchange_explicit(&l->in_service, 1, memory_order_relaxed))
		run_fail(run, "interrupt %u was acknowledged while it was active", intid);
	l->acknowledges++;
	for (unsigned d = 0; d < LEDGER_MAX_DEVICES; d++) {
		const uint64_t data = load_relaxed(&l->data[d]);

		if (data < l->seen[d])
			run_fail(run, "interrupt %u: device %u went back from %" PRIu64 " to %" PRIu64, intid, d,
				 l->seen[d], data);
		l->seen[d] = data;
	}
}

void ledger_note_end(struct ledger *l, struct run *run, uint32_t intid)
{
	if (!atomic_exchange_explicit(&l->in_service, 0, memory_order_relaxed))
		run_fail(run, "interrupt %u ended and was not in service", intid);
}

void ledger_check(const struct ledger *l, struct run *run, uint32_t intid)
{
	const uint64_t signals = load_relaxed(&l->signals);

	for (unsigned d = 0; d < LEDGER_MAX_DEVICES; d++) {
		if (l->seen[d] != load_relaxed(&l->data[d]))
			run_fail(run,
				 "interrupt %u: device %u signalled %" PRIu64
				 " last, the acknowledges have seen %" PRIu64 " (%" PRIu64 " signals, %" PRIu64
				 " acknowledges)",
				 intid, d, load_relaxed(&l->data[d]), l->seen[d], signals, l->acknowledges);
	}
	if (l->acknowledges > signals)
		run_fail(run, "interrupt %u: %" PRIu64 " acknowledges of %" PRIu64 " signals", intid, l->acknowledges,
			 signals);
	if (load_relaxed(&l->in_service))
		run_fail(run, "interrupt %u is still in service", intid);
}
