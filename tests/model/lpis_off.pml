/* SPDX-License-Identifier: MIT */
/*
 * lpis_off.pml - GICR_CTLR.EnableLPIs=0 is a promise: once RWP reads 0, nothing that was on
 * its way is delivered, and all that is pending is in the table. Rule R13 of docs/architecture.md.
 *
 *   here           there
 *   -------------  ---------------------------------------------------------------
 *   signaller      lpi_signal.h: lpi_signal(); lpi.c: lpi_signal_held()
 *   guest          lpi.c: lpi_ctlr_write(), and reading GICR_CTLR until RWP=0
 *   enable_walk    lpi.c: enable_group(), configure_group()
 *   disable_walk   lpi.c: lpi_walk(), disable_group(), finish_disable()
 *   vcpu           cpuif.c: acknowledge()
 *
 * One LPI at one vCPU, mapped and enabled throughout; how it is found and the kick are
 * delivery.pml's subject, rule R10 is rwp.pml's. Who holds config_lock is one thread, the
 * guest: it writes the register, and does the walks that follow or lets the next write
 * overtake them. Sequential consistency, as there.
 *
 *   SIGNALS=n   threads that signal the LPI once
 *   CYCLES=n    how often the guest clears EnableLPIs and sets it again
 *   ENDS_OFF    it clears it once more at the end
 *
 * BUG_*: each is a part of the rule left out.
 */
#ifndef SIGNALS
#define SIGNALS 2
#endif
#ifndef CYCLES
#define CYCLES 1
#endif
#define MAX_SIGNALS 4

bit is_pending, is_held;     /* the state word */
bit table;                   /* the LPI's bit in the pending table */
bit lpis_enabled = 1;
byte early_signals;
byte ack_sequence;
bit kicked;
byte num_running;

/* For the checks only. */
bit is_off;                  /* EnableLPIs is 0 and RWP has read 0 */
bit unconsumed;              /* a signal that was accepted and that no acknowledge has consumed */
bit on_all_along[MAX_SIGNALS]; /* EnableLPIs has been 1 since the signal began */

inline accept() {
	assert(!is_off);
	is_pending = 1;
	unconsumed = 1
}

proctype signaller(byte me) {
	bit seen;

	on_all_along[me] = lpis_enabled;
again:
#ifdef BUG_HELD_IS_NO_PART_OF_THE_WORD
	/* Without a walk that touches every word: EnableLPIs is looked at, and then the latch is set. */
	seen = lpis_enabled;
	if
	:: seen -> atomic { accept() }; kicked = 1
	:: else
	fi;
	goto done;
#endif
	/* The last round of the loop of compare-and-swap. */
	atomic {
		if
		:: !is_held -> accept()
		:: else -> goto held
		fi
	}
	kicked = 1;
	goto done;
held:
#ifdef BUG_EARLY_SIGNALS_ARE_DROPPED
	assert(!on_all_along[me]);
	goto done;
#endif
	seen = lpis_enabled;
	if
	:: !seen -> assert(!on_all_along[me]); goto done
	:: else
	fi;
#ifndef BUG_EARLY_SIGNALS_DO_NOT_COUNT
	early_signals++;
#endif
#ifndef BUG_EARLY_SIGNALS_DO_NOT_LOOK_AGAIN
	seen = lpis_enabled;
#endif
	if
	:: seen ->
		/* The same word, but for the latch? */
		atomic {
			if
			:: is_held -> accept(); seen = 0
			:: else
			fi
		}
	:: else -> assert(!on_all_along[me]); seen = 0
	fi;
#ifndef BUG_EARLY_SIGNALS_DO_NOT_COUNT
	early_signals--;
#endif
	if
	:: seen -> goto again /* the walk has been here */
	:: else
	fi;
done:
	atomic { seen = 0; num_running-- }
}

/* EnableLPIs was set: this is what makes an LPI deliverable again. */
inline enable_walk() {
	if
	:: table -> is_pending = 1
	:: else
	fi;
	is_held = 0;
	if
	:: is_pending -> kicked = 1
	:: else
	fi;
	walk_is_left = 0
}

inline disable_walk() {
#ifndef BUG_WALK_DOES_NOT_WAIT_FOR_EARLY_SIGNALS
	early_signals == 0;
#endif
	/* What the walk of the set before has not read stays in the table. */
#if defined(BUG_TABLE_COUNTS_ALWAYS)
	is_unread = 1;
#elif defined(BUG_UNREAD_TABLE_IS_FORGOTTEN)
	is_unread = 0;
#endif
#ifndef BUG_HELD_IS_NO_PART_OF_THE_WORD
	atomic { taken_along = is_pending; is_pending = 0; is_held = 1 };
#else
	atomic { taken_along = is_pending; is_pending = 0 };
#endif
	table = (table && is_unread) || taken_along;
	/* RWP: an acknowledge that was under way. */
#ifndef BUG_RWP_IGNORES_ACKNOWLEDGES
	atomic { noted = ack_sequence; if :: noted % 2 == 0 -> noted = 0 :: else fi };
	noted == 0 || ack_sequence != noted;
#endif
	atomic { noted = 0; taken_along = 0; is_unread = 0 }
}

inline clear_enable_lpis() {
	atomic {
#ifndef BUG_WALK_COMES_FIRST
		lpis_enabled = 0;
#endif
		is_unread = walk_is_left;
		walk_is_left = 0;
		on_all_along[0] = 0; on_all_along[1] = 0; on_all_along[2] = 0; on_all_along[3] = 0
	}
	disable_walk();
#ifdef BUG_WALK_COMES_FIRST
	lpis_enabled = 0;
#endif
	atomic {
		is_off = 1;
		/* What is pending is in the table, whatever the guest does with that. */
		assert(unconsumed == table && !is_pending)
	}
}

proctype guest() {
	byte left = CYCLES, noted;
	bit walk_is_left, is_unread, taken_along;

	do
	:: left > 0 ->
		left--;
		clear_enable_lpis();
		atomic { is_off = 0; lpis_enabled = 1; walk_is_left = 1 };
		if
		:: enable_walk()
		:: left > 0 -> skip /* overtaken */
#ifdef ENDS_OFF
		:: left == 0 -> skip
#endif
		fi
	:: else -> break
	od;
#ifdef ENDS_OFF
	clear_enable_lpis();
#endif
	atomic { num_running-- }
}

proctype vcpu() {
	bit taken;

end_blocked:
	atomic { kicked -> kicked = 0 };
acknowledge:
	ack_sequence++;
	atomic {
		if
		:: is_pending && !is_held -> assert(unconsumed); is_pending = 0; unconsumed = 0; taken = 1
		:: else
		fi
	}
	/* What is returned is settled here. */
	atomic { assert(!taken || !is_off); ack_sequence++ }
	if
	:: taken -> taken = 0; goto acknowledge
	:: else -> goto end_blocked
	fi
}

proctype at_rest() {
end_waiting:
	timeout ->
	assert(num_running == 0);
	assert(!is_pending);
	assert(unconsumed == (is_off && table))
}

init {
	byte i;

	atomic {
		do :: i < SIGNALS -> run signaller(i); num_running++; i++ :: else -> break od;
		i = 0;
		run guest(); num_running++;
		run vcpu();
		run at_rest()
	}
}
