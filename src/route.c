/* SPDX-License-Identifier: MIT */
/*
 * route.c - the route table: from a GSI to an interrupt.
 *
 * A signaller reads one word and acts on it. A change of one entry stores a new
 * word. A transaction changes many at once, seen by signallers as one:
 *
 *   set     entry.next = the new word; entry.number = NOT_COMMITTED;
 *           entry.word |= CHANGING
 *   commit  entry.number = N, of each entry; then routes.committed = N: this one
 *           store is the commit; then entry.word = entry.next, of each
 *   abort   entry.word without CHANGING, of each
 *   read    word; if CHANGING: number; committed; then next if number <= committed,
 *           else word without CHANGING; and once more from the beginning if word or
 *           number are not the same as before
 *
 * So nobody waits for anybody: who finds an entry that changes has all that it
 * needs to know both words, and it has to look again only if somebody else has got
 * on meanwhile.
 *
 * R15. The order of the stores above is that of the loads, reversed: each store is
 * a release and each load an acquire. Who sees CHANGING sees number and next of
 * that transaction or of a later one. Who sees the commit sees CHANGING in every
 * entry of it, and its number: all of them are new for it. `next` may be taken only
 * if word and number are unchanged behind it: a later transaction that overwrites
 * next has taken CHANGING away before, and has set the number before it sets
 * CHANGING again. Numbers are used once, so that a word that comes back (ABA) is
 * told by its number.
 *
 * R16. Blocked entries: a mask blocks an entry, and a pause (state.h) each that leads
 * to an MSI. A signaller that finds its entry blocked exchanges `kept` for 1 and then
 * reads the entry again; who unmasks publishes the word and then looks at `kept` by a
 * read-modify-write too: whichever comes second sees what the other did before. Who
 * gets the 1, by exchanging it for 0, delivers.
 *
 * R20. The same against the end of a pause, which is not in the word: the signaller
 * exchanges `kept`, then looks at `pause_sequence`; the end of the pause stores that,
 * then looks at every `kept`. All four are seq_cst: one of the two sees what the other
 * did. As an event may wait for both, mask and pause, who ends one leaves it there if
 * it waits for the other: that is decided under the lock, so that the second of the
 * two sees what the first did.
 *
 * R17. Lines: a level has to be taken off the old pin, once nobody can raise it any
 * more. Who drives a line counts itself in `drivers`, then reads the entry; who
 * changes the route publishes it, then waits for `drivers` to be 0 (by a
 * read-modify-write, so that one that counts itself later sees the new route), then
 * lowers the pin. Signallers never wait for this, nor events of MSIs.
 *
 * `lock` guards everything that signallers do not read: what the VMM has set, the
 * owners of pins, transactions. No lock is taken under it; kick() may be called
 * under it.
 *
 * A table is in the list of its controller from creation to destruction, for the end
 * of a pause. The list has a lock of its own, routes_lock of struct vgic: it is held
 * while the tables are gone through, so that none of them is freed meanwhile, and the
 * table's lock is taken under it.
 */
#include "route.h"

#include <errno.h>

#include "irq_change.h"
#include "msi_signal.h"

#define NOT_COMMITTED UINT64_MAX
#define NO_GSI        UINT32_MAX
#define NO_PIN        UINT32_MAX
#define NO_TXN        0u

/* What a signaller reads. */
struct route_entry {
	_Atomic route_word word;
	_Atomic route_word next;  /* after the commit, if word is CHANGING */
	_Atomic uint64_t number;  /* of the commit, or NOT_COMMITTED */
	_Atomic uint32_t kept;    /* 1: an event waits for the end of a mask or of a pause */
	_Atomic uint32_t drivers; /* threads that are driving its line */
};

/* The rest, under the lock. */
struct route_record {
	struct vgic_route route;    /* as the VMM has set it */
	struct vgic_route staged;   /* the same by the transaction */
	uint64_t txn;               /* id of the open transaction that the entry is in, or NO_TXN */
	uint32_t txn_next;          /* next entry of that */
	bool claimed;               /* only who has claimed it changes it: route_claim() */
	_Atomic uint64_t resampler; /* token of the irqfd that resamples the line, or 0; read by anyone */
};

/*
 * A pin is a source of an SPI. It belongs to one GSI: `owner` now, `wanted` when
 * all open transactions are committed. Both are GSI + 1, or 0.
 */
struct route_pin {
	_Atomic uint32_t owner; /* read by anyone */
	uint32_t wanted;
};

struct vgic_routes {
	/* Constant. */
	struct vgic *vgic;
	uint32_t num_gsis;
	struct route_entry *entries;
	struct route_record *records;
	struct route_pin *pins; /* VGIC_NUM_LINE_SOURCES for each SPI */
	struct port_lock *lock;

	/* The controller's list, under its routes_lock. */
	struct vgic_routes *next_table;

	/* Under the lock; constant while the table is registered. */
	route_resample_fn resample;
	void *resample_opaque;

	/* The last commit. Written under the lock, read by signallers. */
	_Alignas(CACHE_LINE) _Atomic uint64_t committed;

	/* Under the lock. */
	uint64_t last_id; /* of a transaction */
	uint64_t changes, commits, aborts;
	uint32_t num_routed, num_staged;

	_Alignas(CACHE_LINE) _Atomic uint64_t unrouted;
	_Atomic uint64_t kept;
};

/* ---- Reading: any thread, no lock ------------------------------------------------ */

/* The rest of read_entry(), when a transaction has another word for it. R15. */
static __attribute__((noinline)) route_word read_changing(struct vgic_routes *routes, struct route_entry *e)
{
	for (;;) {
		const route_word word = load_acquire(&e->word);
		route_word value = word & ~ROUTE_CHANGING;
		uint64_t number;

		if (!(word & ROUTE_CHANGING))
			return word;
		number = load_acquire(&e->number);
		if (number <= load_acquire(&routes->committed))
			value = load_acquire(&e->next);
		if (load_acquire(&e->word) == word && load_acquire(&e->number) == number)
			return value;
	}
}

static inline route_word read_entry(struct vgic_routes *routes, struct route_entry *e)
{
	const route_word word = load_acquire(&e->word);

	return __builtin_expect(!(word & ROUTE_CHANGING), 1) ? word : read_changing(routes, e);
}

route_word route_read(struct vgic_routes *routes, uint32_t gsi)
{
	return read_entry(routes, &routes->entries[gsi]);
}

/* ---- Signals: any thread, no lock -------------------------------------------------- */

static int signal_nothing(struct vgic_routes *routes)
{
	atomic_fetch_add_explicit(&routes->unrouted, 1, memory_order_relaxed);
	return -ENOENT;
}

static int deliver(struct vgic_routes *routes, route_word w)
{
	switch (route_kind(w)) {
	case ROUTE_TO_ITS:
		return vgic_its_signal(routes->vgic->itses[route_unit(w)], route_device(w), route_event(w));
	case ROUTE_TO_LINE:
		return vgic_pulse_spi(routes->vgic, route_event(w));
	case ROUTE_TO_SETSPI:
		return spi_signal_message(routes->vgic, route_event(w));
	case ROUTE_TO_NOTHING:
		break;
	}
	return signal_nothing(routes);
}

static bool leads_to_msi(route_word w)
{
	return route_kind(w) == ROUTE_TO_ITS || route_kind(w) == ROUTE_TO_SETSPI;
}

static bool is_blocked(const struct vgic_routes *routes, route_word w)
{
	return (w & ROUTE_MASKED) || (leads_to_msi(w) && (load_seq_cst(&routes->vgic->pause_sequence) & 1));
}

/* Take the event that waits, if there is one. R16. */
static bool take_kept(struct route_entry *e)
{
	return atomic_exchange_explicit(&e->kept, 0, memory_order_acq_rel) != 0;
}

/*
 * R16, R20: leave the event, then look whether what blocks it is still there. Turns more than once only if one pause
 * ends and another begins meanwhile.
 */
static int leave_event(struct vgic_routes *routes, struct route_entry *e)
{
	int result;

	do {
		route_word w;

		atomic_exchange_explicit(&e->kept, 1, memory_order_seq_cst);
		w = read_entry(routes, e);
		if (is_blocked(routes, w) || !take_kept(e))
			return 0;
		result = deliver(routes, w);
	} while (result == -EAGAIN);
	return result;
}

static __attribute__((noinline)) int keep_event(struct vgic_routes *routes, struct route_entry *e)
{
	atomic_fetch_add_explicit(&routes->kept, 1, memory_order_relaxed);
	return leave_event(routes, e);
}

/* The rest of vgic_signal_gsi(), when an MSI is not delivered at once. */
static __attribute__((noinline)) int deliver_or_keep(struct vgic_routes *routes, struct route_entry *e, route_word w)
{
	const int result = deliver(routes, w);

	return result == -EAGAIN ? keep_event(routes, e) : result;
}

/* Apart, so that the way to an ITS has no more registers to save. */
static __attribute__((noinline)) int message_or_keep(struct vgic_routes *routes, struct route_entry *e, route_word w)
{
	const int result = spi_signal_message(routes->vgic, route_event(w));

	return __builtin_expect(result == -EAGAIN, 0) ? keep_event(routes, e) : result;
}

int vgic_signal_gsi(struct vgic_routes *routes, uint32_t gsi)
{
	struct route_entry *e;
	route_word w;
	DELIVERS_WITHOUT_LOCKS;

	if (gsi >= routes->num_gsis)
		return -EINVAL;
	e = &routes->entries[gsi];
	w = read_entry(routes, e);
	if (__builtin_expect(w & ROUTE_MASKED, 0))
		return keep_event(routes, e);
	switch (route_kind(w)) {
	case ROUTE_TO_ITS:
		if (its_signal_at_once(routes->vgic->itses[route_unit(w)],
				       translation_key(route_device(w), route_event(w))))
			return 1;
		break;
	case ROUTE_TO_LINE:
		return vgic_pulse_spi(routes->vgic, route_event(w));
	case ROUTE_TO_SETSPI:
		return message_or_keep(routes, e, w);
	case ROUTE_TO_NOTHING:
		break;
	}
	return deliver_or_keep(routes, e, w);
}

/* R17. */
int route_drive(struct vgic_routes *routes, uint32_t gsi, bool level)
{
	struct route_entry *e = &routes->entries[gsi];
	int result = -ENODEV;
	irq_word before;
	route_word w;

	atomic_fetch_add_explicit(&e->drivers, 1, memory_order_acq_rel);
	w = read_entry(routes, e);
	if (route_kind(w) == ROUTE_TO_LINE) {
		struct irq *irq = &routes->vgic->spis[route_event(w) - FIRST_SPI];

		before = irq_change(routes->vgic, irq, level ? irq_raise : irq_lower, route_unit(w));
		result = (before >> (IRQ_SOURCES_SHIFT + route_unit(w)) & 1) != level;
	}
	atomic_fetch_sub_explicit(&e->drivers, 1, memory_order_release);
	return result;
}

int vgic_set_gsi(struct vgic_routes *routes, uint32_t gsi, bool level)
{
	DELIVERS_WITHOUT_LOCKS;

	if (gsi >= routes->num_gsis)
		return -EINVAL;
	if (route_kind(route_read(routes, gsi)) == ROUTE_TO_LINE) {
		const int changed = route_drive(routes, gsi, level);

		if (changed >= 0)
			return changed;
		/* The route has changed: what it was is over, and what it is takes the event. */
	}
	return level ? vgic_signal_gsi(routes, gsi) : 0;
}

int vgic_gsi_is_pending(struct vgic_routes *routes, uint32_t gsi)
{
	return gsi < routes->num_gsis ? (int)load_acquire(&routes->entries[gsi].kept) : -EINVAL;
}

/* ---- Resampling ------------------------------------------------------------------------ */

/* Ask the device behind a GSI, if there is one to ask. */
static void resample_gsi(struct vgic_routes *routes, uint32_t gsi)
{
	const uint64_t token = load_acquire(&routes->records[gsi].resampler);

	if (token)
		routes->resample(routes->resample_opaque, token);
}

void route_resample(struct vgic *vgic, uint32_t intid, uint32_t sources)
{
	struct vgic_routes *routes;

	/* Count, then look: route_resampler_unregister() takes the table away, then waits for the count. */
	atomic_fetch_add_explicit(&vgic->resampling, 1, memory_order_acq_rel);
	routes = load_acquire(&vgic->resampler);
	for (; routes && sources; sources &= sources - 1) {
		const uint32_t pin = (intid - FIRST_SPI) * VGIC_NUM_LINE_SOURCES + (uint32_t)__builtin_ctz(sources);
		const uint32_t owner = load_acquire(&routes->pins[pin].owner);

		if (owner)
			resample_gsi(routes, owner - 1);
	}
	atomic_fetch_sub_explicit(&vgic->resampling, 1, memory_order_release);
}

int route_resampler_register(struct vgic_routes *routes, route_resample_fn resample, void *opaque)
{
	struct vgic_routes *none = NULL;

	port_lock_acquire(routes->lock);
	if (routes->resample) {
		port_lock_release(routes->lock);
		return -EBUSY;
	}
	routes->resample = resample;
	routes->resample_opaque = opaque;
	if (!atomic_compare_exchange_strong_explicit(&routes->vgic->resampler, &none, routes, memory_order_acq_rel,
						     memory_order_relaxed))
		routes->resample = NULL;
	port_lock_release(routes->lock);
	return none ? -EBUSY : 0;
}

static void wait_until_zero(_Atomic uint32_t *count)
{
	for (unsigned turn = 0; atomic_fetch_add_explicit(count, 0, memory_order_acq_rel); turn++)
		port_pause(turn);
}

void route_resampler_unregister(struct vgic_routes *routes)
{
	store_release(&routes->vgic->resampler, NULL);
	wait_until_zero(&routes->vgic->resampling);
	port_lock_acquire(routes->lock);
	routes->resample = NULL;
	port_lock_release(routes->lock);
}

/* ---- Pins, under the lock ---------------------------------------------------------------- */

static uint32_t pin_of_word(route_word w)
{
	return route_kind(w) == ROUTE_TO_LINE ? (route_event(w) - FIRST_SPI) * VGIC_NUM_LINE_SOURCES + route_unit(w) :
						NO_PIN;
}

static struct irq *pin_irq(struct vgic_routes *routes, uint32_t pin)
{
	return &routes->vgic->spis[pin / VGIC_NUM_LINE_SOURCES];
}

/*
 * May @gsi lead to a pin? Not while another one does, nor if a transaction wants it
 * for another one. A pin is free only when its level has been taken off it: so one
 * transaction cannot hand it from GSI to GSI.
 */
static bool pin_is_free(const struct vgic_routes *routes, uint32_t pin, uint32_t gsi)
{
	const uint32_t owner = load_relaxed(&routes->pins[pin].owner), wanted = routes->pins[pin].wanted;

	return (!owner || owner == gsi + 1) && (!wanted || wanted == gsi + 1);
}

/* Want a pin for @gsi, and no longer the one that it wanted before. */
static void pin_want(struct vgic_routes *routes, uint32_t gsi, uint32_t old, uint32_t new)
{
	if (old != NO_PIN)
		routes->pins[old].wanted = 0;
	if (new != NO_PIN)
		routes->pins[new].wanted = gsi + 1;
}

/* Before @gsi leads to a pin. */
static void pin_take(struct vgic_routes *routes, uint32_t gsi, uint32_t pin)
{
	if (pin == NO_PIN)
		return;
	store_release(&routes->pins[pin].owner, gsi + 1);
	if (load_relaxed(&routes->records[gsi].resampler))
		atomic_fetch_or_explicit(&pin_irq(routes, pin)->resampled, 1u << pin % VGIC_NUM_LINE_SOURCES,
					 memory_order_release);
}

static void pin_lower(struct vgic_routes *routes, uint32_t pin)
{
	irq_change(routes->vgic, pin_irq(routes, pin), irq_lower, pin % VGIC_NUM_LINE_SOURCES);
}

/*
 * After @gsi has been led elsewhere: take the level off, R17. The device of a line
 * that is resampled is asked whether it has one, whatever became of it: a
 * deactivation may have lowered the old pin just now.
 */
static void pin_release(struct vgic_routes *routes, uint32_t gsi, uint32_t pin)
{
	if (pin == NO_PIN)
		return;
	wait_until_zero(&routes->entries[gsi].drivers);
	atomic_fetch_and_explicit(&pin_irq(routes, pin)->resampled, ~(1u << pin % VGIC_NUM_LINE_SOURCES),
				  memory_order_relaxed);
	pin_lower(routes, pin);
	store_release(&routes->pins[pin].owner, 0);
	resample_gsi(routes, gsi);
}

int route_resample_gsi(struct vgic_routes *routes, uint32_t gsi, uint64_t token)
{
	struct route_record *r = &routes->records[gsi];
	int err = -EBUSY;

	port_lock_acquire(routes->lock);
	if (!load_relaxed(&r->resampler)) {
		store_release(&r->resampler, token);
		pin_take(routes, gsi, pin_of_word(load_relaxed(&routes->entries[gsi].word)));
		err = 0;
	}
	port_lock_release(routes->lock);
	return err;
}

void route_forget_gsi(struct vgic_routes *routes, uint32_t gsi)
{
	uint32_t pin;

	port_lock_acquire(routes->lock);
	store_release(&routes->records[gsi].resampler, 0);
	pin = pin_of_word(load_relaxed(&routes->entries[gsi].word));
	if (pin != NO_PIN) {
		atomic_fetch_and_explicit(&pin_irq(routes, pin)->resampled, ~(1u << pin % VGIC_NUM_LINE_SOURCES),
					  memory_order_relaxed);
		pin_lower(routes, pin);
	}
	port_lock_release(routes->lock);
}

/* ---- From what the VMM says to the word ------------------------------------------------------ */

static int resolve_spi(const struct vgic *vgic, const struct vgic_route *route, route_word *word)
{
	const struct vgic_route_spi *spi = &route->to.spi;

	if (route->flags || spi->intid - FIRST_SPI >= vgic->num_spis || spi->source >= VGIC_NUM_LINE_SOURCES)
		return -EINVAL;
	*word = ROUTE_TO_LINE | (uint64_t)spi->source << ROUTE_UNIT_SHIFT | (uint64_t)spi->intid << ROUTE_EVENT_SHIFT;
	return 0;
}

static int resolve_msi(struct vgic *vgic, const struct vgic_route *route, route_word *word)
{
	const struct vgic_route_msi *msi = &route->to.msi;
	const uint64_t event = msi->data < ROUTE_EVENT_MASK ? msi->data : ROUTE_EVENT_MASK;
	struct vgic_its *its;

	if (msi->reserved || (msi->msi_flags & ~VGIC_MSI_VALID_DEVID))
		return -EINVAL;
	*word = event << ROUTE_EVENT_SHIFT | (route->flags & VGIC_ROUTE_MASKED ? ROUTE_MASKED : 0);
	switch (its_find_doorbell(vgic, msi->address, &its)) {
	case DOORBELL_ITS:
		if (!(msi->msi_flags & VGIC_MSI_VALID_DEVID))
			return -EINVAL;
		*word |= ROUTE_TO_ITS | (uint64_t)its->index << ROUTE_UNIT_SHIFT |
			 (uint64_t)msi->devid << ROUTE_DEVICE_SHIFT;
		return 0;
	case DOORBELL_SETSPI:
		*word |= ROUTE_TO_SETSPI;
		return 0;
	case DOORBELL_NONE:
		break;
	}
	return -ENODEV;
}

static int resolve(struct vgic *vgic, const struct vgic_route *route, route_word *word)
{
	if (!route || (route->flags & ~VGIC_ROUTE_MASKED))
		return -EINVAL;
	switch (route->type) {
	case VGIC_ROUTE_NONE:
		*word = ROUTE_TO_NOTHING | (route->flags & VGIC_ROUTE_MASKED ? ROUTE_MASKED : 0);
		return 0;
	case VGIC_ROUTE_SPI:
		return resolve_spi(vgic, route, word);
	case VGIC_ROUTE_MSI:
		return resolve_msi(vgic, route, word);
	}
	return -EINVAL;
}

/* ---- Changes, under the lock -------------------------------------------------------------------- */

static void count_change(struct vgic_routes *routes, route_word old, route_word new)
{
	routes->changes++;
	routes->num_routed += (route_kind(new) != ROUTE_TO_NOTHING) - (route_kind(old) != ROUTE_TO_NOTHING);
}

/*
 * R16, R20: something that may have blocked the entry has gone: deliver what was kept, unless something else blocks it.
 * Looks by a read-modify-write, though nothing changes. Also for an entry that was not blocked before: one that meets
 * mask and unmask one after the other may have left it.
 */
static void settle_kept(struct vgic_routes *routes, struct route_entry *e, route_word w)
{
	if (!atomic_fetch_or_explicit(&e->kept, 0, memory_order_acq_rel) || is_blocked(routes, w) || !take_kept(e))
		return;
	if (deliver(routes, w) == -EAGAIN)
		leave_event(routes, e);
}

/* The entry leads to @new now; @old is what it was. */
static void settle_change(struct vgic_routes *routes, uint32_t gsi, route_word old, route_word new)
{
	struct route_entry *e = &routes->entries[gsi];

	count_change(routes, old, new);
	if (pin_of_word(old) != pin_of_word(new))
		pin_release(routes, gsi, pin_of_word(old));
	settle_kept(routes, e, new);
}

static int set_entry(struct vgic_routes *routes, uint32_t gsi, const struct vgic_route *route, route_word new)
{
	struct route_entry *e = &routes->entries[gsi];
	struct route_record *r = &routes->records[gsi];
	const route_word old = load_relaxed(&e->word);
	const uint32_t pin = pin_of_word(new);

	if (r->claimed || r->txn != NO_TXN || (pin != NO_PIN && !pin_is_free(routes, pin, gsi)))
		return -EBUSY;
	pin_want(routes, gsi, pin_of_word(old), pin);
	pin_take(routes, gsi, pin);
	r->route = *route;
	store_release(&e->word, new);
	settle_change(routes, gsi, old, new);
	return 0;
}

int vgic_route_set(struct vgic_routes *routes, uint32_t gsi, const struct vgic_route *route)
{
	route_word word;
	int err;

	if (gsi >= routes->num_gsis)
		return -EINVAL;
	err = resolve(routes->vgic, route, &word);
	if (err)
		return err;
	port_lock_acquire(routes->lock);
	err = set_entry(routes, gsi, route, word);
	port_lock_release(routes->lock);
	return err;
}

int vgic_route_get(struct vgic_routes *routes, uint32_t gsi, struct vgic_route *route)
{
	if (gsi >= routes->num_gsis || !route)
		return -EINVAL;
	port_lock_acquire(routes->lock);
	*route = routes->records[gsi].route;
	port_lock_release(routes->lock);
	return 0;
}

/* ---- Transactions ------------------------------------------------------------------------------------ */

int vgic_route_txn_begin(struct vgic_routes *routes, struct vgic_route_txn *txn)
{
	if (!routes || !txn)
		return -EINVAL;
	port_lock_acquire(routes->lock);
	*txn = (struct vgic_route_txn){ .routes = routes, .id = ++routes->last_id, .first = NO_GSI };
	port_lock_release(routes->lock);
	return 0;
}

/* The first change of an entry in a transaction. */
static void stage_entry(struct vgic_route_txn *txn, uint32_t gsi)
{
	struct route_record *r = &txn->routes->records[gsi];

	r->txn = txn->id;
	r->txn_next = txn->first;
	txn->first = gsi;
	txn->num++;
	txn->routes->num_staged++;
}

static int set_staged(struct vgic_route_txn *txn, uint32_t gsi, const struct vgic_route *route, route_word new)
{
	struct vgic_routes *routes = txn->routes;
	struct route_entry *e = &routes->entries[gsi];
	struct route_record *r = &routes->records[gsi];
	const bool staged = r->txn == txn->id;
	const route_word before = staged ? load_relaxed(&e->next) : load_relaxed(&e->word);
	const uint32_t pin = pin_of_word(new);

	if ((!staged && r->txn != NO_TXN) || (pin != NO_PIN && !pin_is_free(routes, pin, gsi)))
		return -EBUSY;
	pin_want(routes, gsi, pin_of_word(before), pin);
	r->staged = *route;
	/* R15: in this order. */
	store_release(&e->next, new);
	if (staged)
		return 0;
	store_release(&e->number, NOT_COMMITTED);
	store_release(&e->word, before | ROUTE_CHANGING);
	stage_entry(txn, gsi);
	return 0;
}

static int txn_set(struct vgic_route_txn *txn, uint32_t gsi, const struct vgic_route *route, bool claimed)
{
	route_word word;
	int err;

	if (!txn || !txn->routes || gsi >= txn->routes->num_gsis)
		return -EINVAL;
	err = resolve(txn->routes->vgic, route, &word);
	if (err)
		return err;
	port_lock_acquire(txn->routes->lock);
	err = txn->routes->records[gsi].claimed == claimed ? set_staged(txn, gsi, route, word) : -EBUSY;
	port_lock_release(txn->routes->lock);
	return err;
}

int vgic_route_txn_set(struct vgic_route_txn *txn, uint32_t gsi, const struct vgic_route *route)
{
	return txn_set(txn, gsi, route, false);
}

int route_txn_set_claimed(struct vgic_route_txn *txn, uint32_t gsi, const struct vgic_route *route)
{
	return txn_set(txn, gsi, route, true);
}

/* Is it an entry of this transaction? Not NO_GSI, the end of its list, nor one that a copy of it has closed already. */
static bool is_staged(const struct vgic_routes *routes, const struct vgic_route_txn *txn, uint32_t gsi)
{
	return gsi < routes->num_gsis && routes->records[gsi].txn == txn->id;
}

/* R15: the numbers, the commit, the words. */
static void publish(struct vgic_routes *routes, struct vgic_route_txn *txn)
{
	const uint64_t number = load_relaxed(&routes->committed) + 1;

	for (uint32_t gsi = txn->first; is_staged(routes, txn, gsi); gsi = routes->records[gsi].txn_next) {
		pin_take(routes, gsi, pin_of_word(load_relaxed(&routes->entries[gsi].next)));
		store_release(&routes->entries[gsi].number, number);
	}
	store_release(&routes->committed, number);
}

static void finish_commit(struct vgic_routes *routes, struct vgic_route_txn *txn)
{
	for (uint32_t gsi = txn->first, next; is_staged(routes, txn, gsi); gsi = next) {
		struct route_entry *e = &routes->entries[gsi];
		struct route_record *r = &routes->records[gsi];
		const route_word old = load_relaxed(&e->word) & ~ROUTE_CHANGING, new = load_relaxed(&e->next);

		next = r->txn_next;
		r->txn = NO_TXN;
		routes->num_staged--;
		r->route = r->staged;
		store_release(&e->word, new);
		settle_change(routes, gsi, old, new);
	}
	routes->commits++;
}

void vgic_route_txn_commit(struct vgic_route_txn *txn)
{
	struct vgic_routes *routes;

	if (!txn || !txn->routes)
		return;
	routes = txn->routes;
	port_lock_acquire(routes->lock);
	if (is_staged(routes, txn, txn->first)) {
		publish(routes, txn);
		finish_commit(routes, txn);
	}
	port_lock_release(routes->lock);
	txn->routes = NULL;
}

/* Everything as if it had never been: the words, and who wants which pin. */
static void take_back(struct vgic_routes *routes, struct vgic_route_txn *txn)
{
	for (uint32_t gsi = txn->first; is_staged(routes, txn, gsi); gsi = routes->records[gsi].txn_next)
		pin_want(routes, gsi, pin_of_word(load_relaxed(&routes->entries[gsi].next)), NO_PIN);
	for (uint32_t gsi = txn->first, next; is_staged(routes, txn, gsi); gsi = next) {
		struct route_entry *e = &routes->entries[gsi];
		const route_word old = load_relaxed(&e->word) & ~ROUTE_CHANGING;

		next = routes->records[gsi].txn_next;
		routes->records[gsi].txn = NO_TXN;
		routes->num_staged--;
		pin_want(routes, gsi, NO_PIN, pin_of_word(old));
		store_release(&e->word, old);
	}
	routes->aborts++;
}

void vgic_route_txn_abort(struct vgic_route_txn *txn)
{
	struct vgic_routes *routes;

	if (!txn || !txn->routes)
		return;
	routes = txn->routes;
	port_lock_acquire(routes->lock);
	if (is_staged(routes, txn, txn->first))
		take_back(routes, txn);
	port_lock_release(routes->lock);
	txn->routes = NULL;
}

/* ---- Claims ---------------------------------------------------------------------------------------------- */

/* May it be claimed? It leads nowhere, without a mask, and nobody is about to change that. */
static bool is_nobodys(const struct vgic_routes *routes, uint32_t gsi)
{
	const struct route_record *r = &routes->records[gsi];

	return load_relaxed(&routes->entries[gsi].word) == ROUTE_TO_NOTHING && r->txn == NO_TXN && !r->claimed;
}

int route_claim(struct vgic_routes *routes, uint32_t first, uint32_t num)
{
	int err = 0;

	port_lock_acquire(routes->lock);
	for (uint32_t gsi = first; gsi < first + num && !err; gsi++)
		err = is_nobodys(routes, gsi) ? 0 : -EBUSY;
	for (uint32_t gsi = first; gsi < first + num && !err; gsi++)
		routes->records[gsi].claimed = true;
	port_lock_release(routes->lock);
	return err;
}

void route_release(struct vgic_routes *routes, uint32_t first, uint32_t num)
{
	port_lock_acquire(routes->lock);
	for (uint32_t gsi = first; gsi < first + num; gsi++)
		routes->records[gsi].claimed = false;
	port_lock_release(routes->lock);
}

/* ---- The end of a pause ------------------------------------------------------------------------------------ */

static void resume_table(struct vgic_routes *routes)
{
	port_lock_acquire(routes->lock);
	for (uint32_t gsi = 0; gsi < routes->num_gsis; gsi++) {
		struct route_entry *e = &routes->entries[gsi];

		if (load_seq_cst(&e->kept))
			settle_kept(routes, e, read_entry(routes, e));
	}
	port_lock_release(routes->lock);
}

void route_resume(struct vgic *vgic)
{
	port_lock_acquire(vgic->routes_lock);
	for (struct vgic_routes *routes = vgic->routes; routes; routes = routes->next_table)
		resume_table(routes);
	port_lock_release(vgic->routes_lock);
}

static void enter_list(struct vgic_routes *routes)
{
	port_lock_acquire(routes->vgic->routes_lock);
	routes->next_table = routes->vgic->routes;
	routes->vgic->routes = routes;
	port_lock_release(routes->vgic->routes_lock);
}

static void leave_list(struct vgic_routes *routes)
{
	struct vgic_routes **link = &routes->vgic->routes;

	port_lock_acquire(routes->vgic->routes_lock);
	while (*link != routes)
		link = &(*link)->next_table;
	*link = routes->next_table;
	port_lock_release(routes->vgic->routes_lock);
}

/* ---- Life cycle ----------------------------------------------------------------------------------------- */

static void free_table(struct vgic_routes *routes)
{
	port_lock_free(routes->lock);
	port_free(routes->pins);
	port_free(routes->records);
	port_free(routes->entries);
	port_free(routes);
}

int vgic_routes_create(struct vgic *vgic, uint32_t num_gsis, struct vgic_routes **out)
{
	struct vgic_routes *routes;

	if (!vgic || !out || num_gsis == 0 || num_gsis > VGIC_MAX_GSIS)
		return -EINVAL;
	routes = port_alloc_zeroed(sizeof(*routes), CACHE_LINE);
	if (!routes)
		return -ENOMEM;
	routes->vgic = vgic;
	routes->num_gsis = num_gsis;
	routes->entries = port_alloc_zeroed(num_gsis * sizeof(*routes->entries), CACHE_LINE);
	routes->records = port_alloc_zeroed(num_gsis * sizeof(*routes->records), CACHE_LINE);
	routes->pins = port_alloc_zeroed(vgic->num_spis * VGIC_NUM_LINE_SOURCES * sizeof(*routes->pins), CACHE_LINE);
	routes->lock = port_lock_new(LOCK_ROUTES);
	if (!routes->entries || !routes->records || !routes->pins || !routes->lock) {
		free_table(routes);
		return -ENOMEM;
	}
	enter_list(routes);
	*out = routes;
	return 0;
}

void vgic_routes_destroy(struct vgic_routes *routes)
{
	if (!routes)
		return;
	leave_list(routes);
	for (uint32_t pin = 0; pin < routes->vgic->num_spis * VGIC_NUM_LINE_SOURCES; pin++) {
		if (load_relaxed(&routes->pins[pin].owner))
			pin_lower(routes, pin);
	}
	free_table(routes);
}

uint32_t vgic_routes_num_gsis(const struct vgic_routes *routes)
{
	return routes->num_gsis;
}

int vgic_routes_get_stats(struct vgic_routes *routes, struct vgic_routes_stats *stats)
{
	if (!stats || stats->size != sizeof(*stats))
		return -EINVAL;
	port_lock_acquire(routes->lock);
	*stats = (struct vgic_routes_stats){
		.size = sizeof(*stats),
		.changes = routes->changes,
		.commits = routes->commits,
		.aborts = routes->aborts,
		.unrouted = load_relaxed(&routes->unrouted),
		.kept = load_relaxed(&routes->kept),
		.num_routed = routes->num_routed,
		.num_changes = routes->num_staged,
	};
	port_lock_release(routes->lock);
	return 0;
}
