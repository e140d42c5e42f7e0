/* SPDX-License-Identifier: MIT */
/*
 * route.pml - routes that change while they are read: transactions, masks, pauses, and
 * lines. Rules R15, R16, R17 and R20 of docs/architecture.md.
 *
 *   here             there: route.c
 *   ---------------  -------------------------------------------------------------
 *   reader           read_entry(), read_changing()
 *   writer           set_staged(), publish(), finish_commit(), take_back(), set_entry()
 *   other_writer     a commit of other entries, between any two steps of a transaction
 *   signaller        vgic_signal_gsi(), leave_event()
 *   unmasker         set_entry(), settle_kept()
 *   resumer          state_resume(), route_resume(), settle_kept()
 *   driver           route_drive()
 *   changer          set_entry(), pin_release()
 *
 * One entry: what a reader gets of it must be what it was, as of the commits, at
 * some moment while it was read. As the commit is one moment for all entries of a
 * transaction, this says that it is seen whole. Sequential consistency.
 *
 *   CHANGES=n    the writer sets the entry so many times, in a transaction or without
 *   COMMITS=n    the other one commits so many times
 *   MASKS        an unmasker; at first it is masked or not
 *   PAUSES=n     a resumer, of so many pauses; there may be one at first
 *                with either of them: a signaller
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
#ifndef PAUSES
#define PAUSES 0
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

/* ---- R16, R20 ---- */

bit masked, paused, kept;
byte num_delivered;

inline take_kept() {
	atomic { taken = kept; kept = 0 }
}

/* An MSI: refused in a pause. */
inline deliver() {
	atomic {
		refused = paused;
		if
		:: refused
		:: else -> num_delivered++
		fi
	}
}

inline leave_event() {
	refused = 1;
	do
	:: refused ->
		kept = 1;
#ifdef BUG_SIGNALLER_DOES_NOT_LOOK_AGAIN
		break
#else
		blocked = masked;
#ifdef BUG_SIGNALLER_DOES_NOT_LOOK_AT_THE_PAUSE_AGAIN
		blocked = blocked || was_paused;
#else
		blocked = blocked || paused;
#endif
		taken = 0;
		if
		:: blocked
		:: else -> take_kept()
		fi;
		if
		:: taken -> deliver()
		:: else -> refused = 0
		fi
#endif
	:: else -> break
	od
}

proctype signaller() {
	bit refused, blocked, taken, was_paused;

	refused = masked;
	if
	:: refused
	:: else -> deliver(); was_paused = refused
	fi;
	if
	:: refused -> leave_event()
	:: else
	fi;
	atomic { refused = 0; blocked = 0; taken = 0; was_paused = 0; num_running-- }
}

/* By who has ended mask or pause. */
inline settle_kept() {
	taken = kept;
	if
	:: taken ->
#ifdef BUG_UNMASK_FORGETS_THE_PAUSE
		blocked = masked;
#else
		blocked = masked;
		blocked = blocked || paused;
#endif
		taken = 0;
		if
		:: blocked
		:: else -> take_kept()
		fi;
		if
		:: taken ->
			deliver();
#ifdef BUG_UNMASK_FORGETS_THE_PAUSE
			skip
#else
			if
			:: refused -> leave_event()
			:: else
			fi
#endif
		:: else
		fi
	:: else
	fi
}

/* Masks, if it is not masked, and unmasks. */
proctype unmasker() {
	bit refused, blocked, taken, was_paused;

	if
	:: masked
	:: else -> acquire(); masked = 1; lock = 0
	fi;
#if defined(BUG_EVENT_IS_TAKEN_FIRST)
	take_kept();
	masked = 0;
	if
	:: taken -> deliver()
	:: else
	fi;
#elif defined(BUG_EVENT_IS_NOT_TAKEN_AT_ONCE)
	/* By a load and a store: two may get it. */
	masked = 0;
	taken = kept;
	kept = 0;
	if
	:: taken -> deliver()
	:: else
	fi;
#elif defined(BUG_ENDS_DO_NOT_LOCK)
	/* Then the store of the word may be late. */
	blocked = paused;
	masked = 0;
	taken = 0;
	if
	:: blocked
	:: else -> take_kept()
	fi;
	if
	:: taken -> deliver()
	:: else
	fi;
#else
	acquire();
	masked = 0;
	settle_kept();
	lock = 0;
#endif
	atomic { refused = 0; blocked = 0; taken = 0; was_paused = 0; num_running-- }
}

/* Ends a pause; there may be others behind it. */
proctype resumer() {
	bit refused, blocked, taken, was_paused;
	byte i;

	do
	:: i < PAUSES ->
		i++;
		paused = 1;
#ifdef BUG_RESUME_LOOKS_FIRST
		acquire();
		settle_kept();
		lock = 0;
		paused = 0
#else
		paused = 0;
#ifdef BUG_ENDS_DO_NOT_LOCK
		settle_kept()
#else
		acquire();
		settle_kept();
		lock = 0
#endif
#endif
	:: else -> break
	od;
	atomic { refused = 0; blocked = 0; taken = 0; was_paused = 0; i = 0; num_running-- }
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
#if defined(MASKS) || PAUSES > 0
		num_running++;
		run signaller();
#endif
#ifdef MASKS
		if
		:: masked = 1
		:: masked = 0
		fi;
		num_running++;
		run unmasker();
#endif
#if PAUSES > 0
		if
		:: paused = 1
		:: paused = 0
		fi;
		num_running++;
		run resumer();
#endif
#ifdef LINES
		num_running = num_running + 3;
		run driver();
		run driver();
		run changer();
#endif
	};
	num_running == 0;
#if defined(MASKS) || PAUSES > 0
	assert(num_delivered == 1 && !kept);
#endif
#ifdef LINES
	assert(!level[0]);
#endif
	assert(word == truth)
}
