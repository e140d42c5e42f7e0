/* SPDX-License-Identifier: MIT */
/*
 * route.pml - routes that change while they are read: transactions, masks, and
 * lines. Rules R15, R16 and R17 of docs/architecture.md.
 *
 *   here             there: route.c
 *   ---------------  -------------------------------------------------------------
 *   reader           read_entry(), read_changing()
 *   writer           set_staged(), publish(), finish_commit(), take_back(), set_entry()
 *   other_writer     a commit of other entries, between any two steps of a transaction
 *   signaller        vgic_signal_gsi(), keep_event()
 *   unmasker         set_entry(), settle_change(): take_kept()
 *   driver           route_drive()
 *   changer          set_entry(), pin_release()
 *
 * One entry: what a reader gets of it must be what it was, as of the commits, at
 * some moment while it was read. As the commit is one moment for all entries of a
 * transaction, this says that it is seen whole. Sequential consistency.
 *
 *   CHANGES=n    the writer sets the entry so many times, in a transaction or without
 *   COMMITS=n    the other one commits so many times
 *   MASKS        a signaller and an unmasker
 *   LINES        a driver and a changer
 *
 * BUG_*: each is a part of a rule left out.
 */
#ifndef CHANGES
#define CHANGES 0
#endif
#ifndef COMMITS
#define COMMITS 0
#endif

#define NOT_COMMITTED 255
#define CHANGING      16 /* in the word, beside the value */

byte num_running;

/* ---- R15 ---- */

byte word, next_word, number = NOT_COMMITTED, committed;
bit lock;

/* For the checks only: what the entry is, by the commits; and the values that it had while the reader was at it. */
byte truth;
bit had[4];

inline is_now(v) {
	truth = v;
	had[v] = 1
}

inline acquire() {
	atomic { lock == 0 -> lock = 1 }
}

proctype reader() {
	byte w, n, v;

	atomic { had[0] = 0; had[1] = 0; had[2] = 0; had[3] = 0; had[truth] = 1 };
again:
	w = word;
	if
	:: w < CHANGING -> v = w
	:: else ->
		n = number;
		if
		:: n <= committed -> v = next_word
		:: else -> v = w - CHANGING
		fi;
#ifndef BUG_READER_DOES_NOT_LOOK_AGAIN
		if
		:: word != w -> goto again
		:: else
		fi;
#ifndef BUG_NUMBER_IS_NOT_READ_AGAIN
		if
		:: number != n -> goto again
		:: else
		fi
#else
		skip
#endif
#else
		skip
#endif
	fi;
	atomic { assert(had[v]); num_running-- }
}

inline stage(v) {
	acquire();
#ifdef BUG_CHANGING_COMES_FIRST
	old = word;
	word = old + CHANGING;
	next_word = v;
	number = NOT_COMMITTED;
#else
	next_word = v;
#ifndef BUG_NUMBER_STAYS
	number = NOT_COMMITTED;
#endif
	old = word;
	word = old + CHANGING;
#endif
	lock = 0
}

inline commit(v) {
	acquire();
#ifdef BUG_WORD_BEFORE_COMMIT
	word = v;
	number = committed + 1;
	atomic { committed = committed + 1; is_now(v) };
#else
#ifdef BUG_COMMIT_BEFORE_NUMBER
	atomic { committed = committed + 1; is_now(v) };
	number = committed;
#else
	number = committed + 1;
	atomic { committed = committed + 1; is_now(v) };
#endif
	word = v;
#endif
	lock = 0
}

proctype writer() {
	byte i, v, old;

	do
	:: i < CHANGES ->
		i++;
		if
		:: v = 1
		:: v = 2
		:: v = 3
		fi;
		if
		:: stage(v);
			if
			:: commit(v)
			:: acquire(); word = old; lock = 0
			fi
		:: acquire(); atomic { word = v; is_now(v) }; lock = 0
		fi
	:: else -> break
	od;
	atomic { i = 0; v = 0; old = 0; num_running-- }
}

proctype other_writer() {
	byte i;

	do
	:: i < COMMITS -> i++; acquire(); committed = committed + 1; lock = 0
	:: else -> break
	od;
	atomic { i = 0; num_running-- }
}

/* ---- R16 ---- */

bit masked = 1, kept;
byte num_delivered;

inline take_kept() {
	atomic { taken = kept; kept = 0 }
}

proctype signaller() {
	bit m, taken;

	m = masked;
	if
	:: m ->
		kept = 1;
#ifndef BUG_SIGNALLER_DOES_NOT_LOOK_AGAIN
		m = masked;
		if
		:: m
		:: else ->
			take_kept();
			if
			:: taken -> num_delivered++
			:: else
			fi
		fi
#else
		skip
#endif
	:: else -> num_delivered++
	fi;
	atomic { m = 0; taken = 0; num_running-- }
}

proctype unmasker() {
	bit taken;

#ifdef BUG_EVENT_IS_TAKEN_FIRST
	take_kept();
	masked = 0;
#else
	masked = 0;
#ifdef BUG_EVENT_IS_NOT_TAKEN_AT_ONCE
	/* By a load and a store: two may get it. */
	taken = kept;
	kept = 0;
#else
	take_kept();
#endif
#endif
	if
	:: taken -> num_delivered++
	:: else
	fi;
	atomic { taken = 0; num_running-- }
}

/* ---- R17 ---- */

bit pin; /* where the entry leads */
bit level[2];
byte drivers;

proctype driver() {
	bit p;

#ifdef BUG_ROUTE_IS_READ_BEFORE_COUNTING
	p = pin;
	drivers++;
#else
	drivers++;
	p = pin;
#endif
	level[p] = 1;
	drivers--;
	atomic { p = 0; num_running-- }
}

proctype changer() {
#ifdef BUG_LOWERED_BEFORE_THE_CHANGE
	level[0] = 0;
	pin = 1;
#else
	pin = 1;
#ifndef BUG_CHANGE_DOES_NOT_WAIT
	drivers == 0;
#endif
	level[0] = 0;
#endif
	num_running--
}

init {
	atomic {
		if
		:: CHANGES > 0 -> num_running = 3; run reader(); run writer(); run other_writer()
		:: else
		fi;
#ifdef MASKS
		num_running = num_running + 2;
		run signaller();
		run unmasker();
#endif
#ifdef LINES
		num_running = num_running + 3;
		run driver();
		run driver();
		run changer();
#endif
	};
	num_running == 0;
#ifdef MASKS
	assert(num_delivered == 1 && !kept);
#endif
#ifdef LINES
	assert(!level[0]);
#endif
	assert(word == truth)
}
