/* SPDX-License-Identifier: MIT */
/*
 * translation.pml - a signal looks its event up without a lock, while commands of the
 * guest change the translations under it: rules R11 and R12 of docs/architecture.md.
 *
 *   here                    there
 *   ----------------------  ------------------------------------------------------
 *   signaller, from "walk"  its_map.h: its_map_find(), translation_matches();
 *                           its_map.c: its_map_search()
 *             from "found"  its.c: vgic_its_signal(), signal_again();
 *                           lpi_signal.h: lpi_signal()
 *   add, remove             its_map.c: its_map_add(), its_map_remove()
 *   map_lpi, unmap_lpi      lpi.c: lpi_map(), lpi_unmap(); irq.h: irq_lpi_unmap()
 *   mapti, discard, movi    its_cmd.c: map_event(), remap_event(), unmap_event(), cmd_movi()
 *   switch_off              its.c: disable(), run_quiesce(), reading GITS_CTLR until Quiescent
 *
 * One signal of one event against a handful of commands, in any order. Events 1 and 2 are
 * in one bucket, 3 is in another; two LPIs. Whoever holds config_lock is one thread: the
 * commands. Accesses take effect in the order of the program, at once (sequential
 * consistency). Left out: MAX_RESTARTS and MAX_LOOKUPS, the wrap of the generation, and
 * what comes after the CAS, which is delivery.pml's subject.
 *
 *   COMMANDS=n      how many commands are executed
 *   NODES=n         the pool
 *   SHARED          commands may lead several events to one LPI; then the removal of the last
 *                   alone is a barrier, and only wrong LPIs and missed translations are errors
 *   STARTS_SHARED   so it is from the beginning
 *   MOVES           commands may be MOVI and MAPC V=0
 *   ITS_OFF         commands may be Enabled=0, Quiescent=1, Enabled=1
 *
 * BUG_*: each is a part of the rules left out.
 */
#ifndef COMMANDS
#define COMMANDS 3
#endif
#ifndef NODES
#define NODES 2
#endif

#define FREE      0 /* no event */
#define BUCKET(k) ((k) / 3)
#define END(b)    (4 + (b))
#define NOWHERE   2

/* ---- The map: struct its_map ---- */

byte bucket[2];
byte key[NODES];
byte next[NODES];
byte value_lpi[NODES], value_generation[NODES], value_use[NODES];

#ifdef BUG_KEY_STAYS
bit is_free[NODES];
#define IS_FREE(n) is_free[n]
#else
#define IS_FREE(n) (key[n] == FREE)
#endif

/* ---- The state words of the LPIs ---- */

bit is_mapped[2];
byte generation[2];
byte place[2];      /* a vCPU, or NOWHERE */
byte mappings[2];

bit is_enabled = 1; /* GITS_CTLR.Enabled */

/*
 * For the checks only. A mapping has a number, 0 is none: what an event leads to was number
 * before[] until the command that is under way, and is number after[] when it is done. Between commands they are equal.
 */
byte before[4], after[4];
byte value_number[NODES];
byte last_number;
byte lpi_of[3 + COMMANDS]; /* by number */
byte place_before[2], place_after[2];
byte times_quiescent; /* Quiescent has been seen to be 1 so often */
bit is_quiescent;     /* it is, and Enabled=0 */

byte event;           /* the signaller's */
bit led_to[2];        /* the event has been mapped to this LPI at some moment of the signal */
bit was_unmapped;     /* there was a moment of the signal at which the event was not mapped */

inline begins_to_lead(e, l) {
	if :: e == event -> led_to[l] = 1 :: else fi
}

/* ---- Commands ---- */

inline remove(n) {
	/* "link" is what leads to the node: a bucket, or the other one's next. */
	if
	:: bucket[BUCKET(key[n])] == n -> bucket[BUCKET(key[n])] = next[n]
	:: else ->
		m = bucket[BUCKET(key[n])];
		do
		:: next[m] != n -> m = next[m]
		:: else -> break
		od;
		next[m] = next[n]
	fi;
#ifdef BUG_FREED_NODE_IS_CUT_OFF
	next[n] = END(BUCKET(key[n]));
#endif
#ifndef BUG_KEY_STAYS
	key[n] = FREE
#endif
}

inline add(n, e, l, number) {
#ifdef BUG_KEY_BEFORE_VALUE
	key[n] = e;
#endif
	atomic {
		value_lpi[n] = l;
		value_generation[n] = generation[l];
		value_number[n] = number;
#ifndef BUG_USES_ARE_NOT_NUMBERED
		value_use[n]++
#endif
	}
#ifdef BUG_HEAD_BEFORE_NEXT
	m = bucket[BUCKET(e)];
	key[n] = e;
	bucket[BUCKET(e)] = n;
	next[n] = m
#else
	next[n] = bucket[BUCKET(e)];
	key[n] = e;
	bucket[BUCKET(e)] = n
#endif
}

inline map_lpi(l) {
	atomic {
		mappings[l]++;
		place[l] = 0;
		is_mapped[l] = 1;
		place_before[l] = 0;
		place_after[l] = 0
	}
}

inline unmap_lpi(l) {
	atomic {
		mappings[l]--;
		if
		:: mappings[l] == 0 ->
			is_mapped[l] = 0;
			place[l] = NOWHERE;
#ifndef BUG_GENERATION_STAYS
			generation[l]++
#endif
		:: else
		fi
	}
}

/* DISCARD; MAPD does it for each event of its device. */
inline discard(n) {
	atomic {
		e = key[n];
		l = value_lpi[n];
		after[e] = 0;
		if :: e == event -> was_unmapped = 1 :: else fi
	}
	remove(n);
	unmap_lpi(l);
	atomic {
		before[e] = 0;
#ifdef BUG_KEY_STAYS
		is_free[n] = 1
#endif
	}
}

inline mapti_new(n, to_e, to_l) {
	atomic {
		e = to_e;
		l = to_l;
		last_number++;
		after[e] = last_number;
		lpi_of[last_number] = l;
		begins_to_lead(e, l);
#ifdef BUG_KEY_STAYS
		is_free[n] = 0
#endif
	}
	map_lpi(l);
	add(n, e, l, last_number);
	atomic { before[e] = after[e]; m = 0 }
}

/* MAPTI of an event that is mapped: the node stays. */
inline mapti_again(n, to_l) {
	atomic {
		e = key[n];
		l = to_l;
		m = value_lpi[n];
		last_number++;
		after[e] = last_number;
		lpi_of[last_number] = l;
		begins_to_lead(e, l)
	}
	map_lpi(l);
	atomic { value_lpi[n] = l; value_generation[n] = generation[l]; value_number[n] = last_number };
	unmap_lpi(m);
	atomic { before[e] = after[e]; m = 0 }
}

/* MOVI; MAPC V=0 and MAPC of another vCPU do it for each LPI of the collection. */
inline move(l, to) {
	place_after[l] = to;
	place[l] = to;
	place_before[l] = to
}

inline switch_off() {
#ifndef BUG_WALK_COMES_FIRST
	is_enabled = 0;
#endif
#ifndef BUG_NOTHING_IS_RENEWED
	atomic { m = 0 };
	do
	:: m == NODES -> break
	:: m < NODES && IS_FREE(m) -> m++
	:: m < NODES && !IS_FREE(m) ->
		l = value_lpi[m];
		if
		:: mappings[l] == 1 ->
			generation[l]++;
			value_generation[m] = generation[l]
		:: else
		fi;
		m++
	od;
#endif
#ifdef BUG_WALK_COMES_FIRST
	is_enabled = 0;
#endif
	/* The guest reads Quiescent=1, and may go on. */
	atomic { times_quiescent++; is_quiescent = 1; m = 0 };
	atomic { is_quiescent = 0; is_enabled = 1 }
}

#ifdef SHARED
#define MAY_MAP(l) 1
#else
#define MAY_MAP(l) (mappings[l] == 0)
#endif

proctype commands() {
	byte left = COMMANDS;
	byte e, l, n, m;

	do
	:: left > 0 ->
		atomic { left--; n = 0; do :: n + 1 < NODES -> n++ :: break od };
		if
		:: !IS_FREE(n) -> discard(n)
		:: IS_FREE(n) && MAY_MAP(0) && before[1] == 0 -> mapti_new(n, 1, 0)
		:: IS_FREE(n) && MAY_MAP(1) && before[1] == 0 -> mapti_new(n, 1, 1)
		:: IS_FREE(n) && MAY_MAP(0) && before[2] == 0 -> mapti_new(n, 2, 0)
		:: IS_FREE(n) && MAY_MAP(1) && before[2] == 0 -> mapti_new(n, 2, 1)
		:: IS_FREE(n) && MAY_MAP(0) && before[3] == 0 -> mapti_new(n, 3, 0)
		:: IS_FREE(n) && MAY_MAP(1) && before[3] == 0 -> mapti_new(n, 3, 1)
		:: !IS_FREE(n) && MAY_MAP(0) && value_lpi[n] == 1 -> mapti_again(n, 0)
		:: !IS_FREE(n) && MAY_MAP(1) && value_lpi[n] == 0 -> mapti_again(n, 1)
#ifdef MOVES
		:: !IS_FREE(n) -> l = value_lpi[n]; move(l, 1)
		:: !IS_FREE(n) -> l = value_lpi[n]; move(l, NOWHERE)
#endif
#ifdef ITS_OFF
		:: switch_off()
#endif
		:: skip /* nothing of these: as if there were fewer commands */
		fi;
		atomic { e = 0; l = 0; n = 0; m = 0 }
	:: else -> break
	od
}

/* ---- The signal ---- */

proctype signaller() {
	byte i, k, lpi, its_generation, use, number, period, target;
	bit same, found, on;

	atomic {
		if :: event = 1 :: event = 2 :: event = 3 fi;
		was_unmapped = before[event] == 0 || after[event] == 0;
		if :: before[event] != 0 -> led_to[lpi_of[before[event]]] = 1 :: else fi;
		if :: after[event] != 0 -> led_to[lpi_of[after[event]]] = 1 :: else fi
	}
again:
#ifdef BUG_ENABLED_BEFORE_LOOKUP
	atomic { on = is_enabled; period = times_quiescent };
#endif
walk:
	i = bucket[BUCKET(event)];
	do
	:: i >= END(0) -> break
	:: else ->
		atomic {
			lpi = value_lpi[i];
			its_generation = value_generation[i];
			use = value_use[i];
			number = value_number[i]
		}
		k = key[i];
		if
		:: k == event ->
#ifdef BUG_VALUE_IS_NOT_READ_AGAIN
			same = 1;
#else
			atomic {
				same = value_lpi[i] == lpi && value_generation[i] == its_generation && value_use[i] == use
			}
#endif
			if
			:: same -> found = 1; break
			:: else
			fi;
#ifndef BUG_CHANGED_VALUE_IS_PASSED_BY
			k = key[i];
			if
			:: k == event -> goto walk
			:: else
			fi
#endif
		:: else
		fi;
		i = next[i]
	od;
	if
	:: found
#ifdef BUG_ANY_END_WILL_DO
	:: !found
#else
	:: !found && i == END(BUCKET(event))
	:: !found && i != END(BUCKET(event)) -> goto walk
#endif
	fi;
	atomic { i = 0; k = 0; use = 0; same = 0 };
#ifndef BUG_ENABLED_BEFORE_LOOKUP
	atomic { on = is_enabled; period = times_quiescent };
#endif
	if
	:: !on -> goto done
	:: on && !found ->
		/* Reported as an unmapped event: at some moment it was. */
		assert(was_unmapped);
		goto done
	:: else
	fi;
#ifdef BUG_TARGET_IS_READ_EARLY
	target = place[lpi];
#endif
	/* The compare-and-swap on the word: one snapshot. */
	atomic {
		if
		:: is_mapped[lpi] && generation[lpi] == its_generation ->
#ifndef BUG_TARGET_IS_READ_EARLY
			target = place[lpi];
#endif
			assert(led_to[lpi]);
			assert(!is_quiescent && period == times_quiescent);
			assert(target == place_before[lpi] || target == place_after[lpi]);
#ifndef SHARED
			assert(number == before[event] || number == after[event]);
#endif
			goto done
		:: else
		fi
	}
	atomic { found = 0; on = 0; lpi = 0; its_generation = 0; number = 0; period = 0 };
	goto again;
done:
	skip
}

init {
	byte n;

	atomic {
		bucket[0] = END(0); bucket[1] = END(1);
		place[0] = NOWHERE; place[1] = NOWHERE;
		n = 0;
		do
		:: n < NODES -> next[n] = END(0); n++
		:: else -> break
		od;
#ifdef BUG_KEY_STAYS
		n = 0;
		do
		:: n < NODES -> is_free[n] = 1; n++
		:: else -> break
		od;
		is_free[0] = 0; is_free[1] = 0;
#endif
#ifdef STARTS_SHARED
		/* Two events in two chains lead to one LPI. */
		key[0] = 3; value_lpi[0] = 0; value_number[0] = 1; before[3] = 1; after[3] = 1;
		key[1] = 2; value_lpi[1] = 0; value_number[1] = 2; before[2] = 2; after[2] = 2;
		next[0] = END(1); bucket[1] = 0; next[1] = END(0); bucket[0] = 1;
		is_mapped[0] = 1; mappings[0] = 2; place[0] = 0;
		last_number = 2; lpi_of[1] = 0; lpi_of[2] = 0;
#else
		/* Two events in one chain: 2, then 1. */
		key[0] = 1; value_lpi[0] = 0; value_number[0] = 1; before[1] = 1; after[1] = 1;
		key[1] = 2; value_lpi[1] = 1; value_number[1] = 2; before[2] = 2; after[2] = 2;
		next[0] = END(0); next[1] = 0; bucket[0] = 1;
		is_mapped[0] = 1; is_mapped[1] = 1;
		mappings[0] = 1; mappings[1] = 1;
		place[0] = 0; place[1] = 0;
		last_number = 2; lpi_of[1] = 0; lpi_of[2] = 1;
#endif
		n = 0;
		run commands();
		run signaller()
	}
}
