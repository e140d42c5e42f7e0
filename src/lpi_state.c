/* SPDX-License-Identifier: MIT */
/*
 * lpi_state.c - the pending state of LPIs, saved into the pending tables in guest
 * memory (VGIC_CTRL_SAVE_PENDING_TABLES).
 *
 * All under config_lock, with the vCPUs stopped. It is restored by setting
 * GICR_CTLR.EnableLPIs (lpi.c), and by VGIC_CTRL_ITS_RESTORE_TABLES (its_state.c).
 *
 * One pass over the LPIs sorts the pending ones by their redistributors; then each
 * table is compared with what it should hold, and written where it differs: linear
 * in LPIs and in redistributors, and no page is made dirty without need.
 */
#include <errno.h>
#include <string.h>

#include "bytes.h"
#include "gic_regs.h"
#include "guestmem.h"
#include "lpi.h"
#include "state.h"

#define PAGE_WORDS 512u /* 64-bit words in 4 KiB */

struct pending_save {
	struct vgic *vgic;
	uint32_t num_lpis; /* those that have a bit in the tables */
	uint32_t *first;   /* by vCPU index: where its LPIs begin in @lpis; one more for the end */
	uint32_t *end;     /* by vCPU index: where they end */
	uint32_t *lpis;    /* pending LPIs, sorted by vCPU */
	uint64_t *bits;    /* the table of one vCPU as it should be, from LPI 8192 on */
	uint64_t page[PAGE_WORDS];
};

/* Is it pending, and at which vCPU? IRQ_NO_TARGET if not, or if it is nowhere: then no table is there for it. */
static uint32_t pending_at(const struct pending_save *s, uint32_t lpi)
{
	const irq_word w = load_acquire(&s->vgic->lpis[lpi].word);

	return (w & IRQ_PENDING) ? irq_target(w) : IRQ_NO_TARGET;
}

/* Count each vCPU's into the place of the next: sort_pending() turns the counts into places. */
static uint32_t count_pending(struct pending_save *s)
{
	uint32_t total = 0;

	for (uint32_t i = 0; i < s->num_lpis; i++) {
		const uint32_t vcpu = pending_at(s, i);

		if (vcpu == IRQ_NO_TARGET)
			continue;
		s->first[vcpu + 1]++;
		total++;
	}
	for (uint32_t v = 0; v < s->vgic->num_vcpus; v++)
		s->first[v + 1] += s->first[v];
	return total;
}

/*
 * A counting sort. A device that signals meanwhile must not make it overflow: an LPI
 * that finds its vCPU's places full is left out, as one that came later.
 */
static int sort_pending(struct pending_save *s, uint32_t total)
{
	s->lpis = port_alloc_zeroed((total + 1) * sizeof(*s->lpis), CACHE_LINE);
	if (!s->lpis)
		return -ENOMEM;
	memcpy(s->end, s->first, s->vgic->num_vcpus * sizeof(*s->end));
	for (uint32_t i = 0; i < s->num_lpis; i++) {
		const uint32_t vcpu = pending_at(s, i);

		if (vcpu != IRQ_NO_TARGET && s->end[vcpu] < s->first[vcpu + 1])
			s->lpis[s->end[vcpu]++] = i;
	}
	return 0;
}

/* Bring @n words of a table, within one page, to what they should be; write from the first to the last that differs. */
static int write_page(struct pending_save *s, uint64_t address, const uint64_t *wanted, uint32_t n, bool keep_others)
{
	uint8_t *const bytes = (uint8_t *)s->page;
	uint32_t from = n, end = 0;

	if (!guest_read(s->vgic, address, bytes, n * 8))
		return -EFAULT;
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t here = bytes_get_u64(bytes + 8 * i);
		const uint64_t word = keep_others ? wanted[i] | here : wanted[i];

		if (word == here)
			continue;
		bytes_put_u64(bytes + 8 * i, word);
		from = i < from ? i : from;
		end = i + 1;
	}
	if (from < end && !guest_write(s->vgic, address + 8 * from, bytes + 8 * from, (end - from) * 8))
		return -EFAULT;
	return 0;
}

/*
 * The table of one vCPU. With EnableLPIs=0 the table has been the truth since it was
 * cleared; only what came here pending since then is added. Whatever the guest said
 * of its content (GICR_PENDBASER.PTZ) is over.
 */
static int save_table(struct pending_save *s, struct vgic_vcpu *vcpu)
{
	const uint64_t base = lpi_pending_address(vcpu, 0);
	const bool enabled = load_relaxed(&vcpu->lpis_enabled);
	const bool keep_others = !enabled && !vcpu->pending_table_is_zero;
	const uint32_t from = s->first[vcpu->index], end = s->end[vcpu->index];
	const uint32_t num_words = s->num_lpis / 64;
	int err = 0;

	if (!enabled && (from == end || !(vcpu->pendbaser & GICR_PENDBASER_ADDRESS)))
		return 0;
	memset(s->bits, 0, num_words * 8);
	for (uint32_t i = from; i < end; i++)
		s->bits[s->lpis[i] / 64] |= UINT64_C(1) << (s->lpis[i] % 64);
	for (uint32_t word = 0, n; !err && word < num_words; word += n) {
		const uint32_t rest_of_page = PAGE_WORDS - (uint32_t)((base + 8 * word) % (8 * PAGE_WORDS)) / 8;

		n = num_words - word < rest_of_page ? num_words - word : rest_of_page;
		err = write_page(s, base + 8 * word, &s->bits[word], n, keep_others);
	}
	if (!err)
		vcpu->pending_table_is_zero = false;
	return err;
}

static int save_tables(struct pending_save *s)
{
	int err = 0;

	for (uint32_t v = 0; !err && v < s->vgic->num_vcpus; v++)
		err = save_table(s, s->vgic->vcpus[v]);
	return err;
}

static int make_room(struct pending_save *s)
{
	s->first = port_alloc_zeroed((s->vgic->num_vcpus + 1) * sizeof(*s->first), CACHE_LINE);
	s->end = port_alloc_zeroed(s->vgic->num_vcpus * sizeof(*s->end), CACHE_LINE);
	s->bits = port_alloc_zeroed(s->num_lpis / 8, CACHE_LINE);
	return s->first && s->end && s->bits ? 0 : -ENOMEM;
}

int lpi_save_pending_tables(struct vgic *vgic)
{
	struct pending_save *s;
	int err;

	if (!vgic->num_lpis || lpi_intid_end(vgic) == FIRST_LPI)
		return 0;
	s = port_alloc_zeroed(sizeof(*s), CACHE_LINE);
	if (!s)
		return -ENOMEM;
	for (uint32_t v = 0; v < vgic->num_vcpus; v++)
		redist_finish_work(vgic->vcpus[v]);
	s->vgic = vgic;
	s->num_lpis = lpi_intid_end(vgic) - FIRST_LPI;
	err = make_room(s);
	err = err ? err : sort_pending(s, count_pending(s));
	err = err ? err : save_tables(s);
	port_free(s->lpis);
	port_free(s->bits);
	port_free(s->end);
	port_free(s->first);
	port_free(s);
	return err;
}
