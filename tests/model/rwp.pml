/* SPDX-License-Identifier: MIT */
/*
 * rwp.pml - a disable is a promise: once RWP reads 0, no acknowledge returns the
 * interrupt. Rule R10 of docs/architecture.md.
 *
 *   here                    there
 *   ----------------------  ------------------------------------------------------
 *   vcpu                    cpuif.c: acknowledge(), group_was_disabled()
 *   disable_interrupt       irq_regs.c: icenabler_write(), then reading RWP until 0
 *   disable_group           dist.c: set_enabled_levels(), then the same
 *   note, wait_for_rwp      vcpu.c: ack_note(), ack_is_over()
 *
 * One vCPU, one interrupt; how it is found is delivery.pml's subject. Sequential
 * consistency, as there, but for one store that may be late.
 *
 *   DISABLES_INTERRUPT, DISABLES_GROUP   threads that disable, wait, and enable again
 *   SIGNALS=n                            threads that signal the interrupt once
 *
 * BUG_*: each is a part of the rule left out.
 */
#ifndef SIGNALS
#define SIGNALS 1
#endif

bit is_pending, is_active;
bit is_enabled = 1;
bit group_mask = 1;
byte ack_sequence;
bit kicked;
byte num_running;

/* For the checks only: it is disabled, and RWP has read 0. */
bit interrupt_is_off, group_is_off;
bit was_returned;

proctype signaller() {
	is_pending = 1;
	kicked = 1;
	num_running--
}

inline note() {
	atomic { noted = ack_sequence; if :: noted % 2 == 0 -> noted = 0 :: else fi }
}

inline wait_for_rwp() {
#ifndef BUG_RWP_DOES_NOT_WAIT
	noted == 0 || ack_sequence != noted
#else
	skip
#endif
}

proctype disable_interrupt() {
	byte noted;

#ifdef BUG_NOTES_BEFORE_DISABLING
	note();
	is_enabled = 0;
#else
	is_enabled = 0;
	note();
#endif
	wait_for_rwp();
	interrupt_is_off = 1;
	atomic { interrupt_is_off = 0; is_enabled = 1 };
	kicked = 1;
	atomic { noted = 0; num_running-- }
}

proctype disable_group() {
	byte noted;

#ifdef BUG_NOTES_BEFORE_DISABLING
	note();
	group_mask = 0;
#else
	group_mask = 0;
	note();
#endif
	wait_for_rwp();
	group_is_off = 1;
	atomic { group_is_off = 0; group_mask = 1 };
	kicked = 1;
	atomic { noted = 0; num_running-- }
}

proctype vcpu() {
	bit taken, seen;

blocked:
	atomic { taken = 0; seen = 0 };
end_blocked:
	atomic { kicked -> kicked = 0 };
acknowledge:
	/*
	 * The search obeys the group's mask as it was when it began. The store before it has no order of its own: it
	 * may become visible after that load, and only the compare-and-swap of the claim brings it out for sure.
	 */
	if
	:: ack_sequence++; seen = group_mask
	:: seen = group_mask; ack_sequence++
	fi;
	if
	:: seen ->
		atomic {
			if
			:: is_pending && is_enabled && !is_active -> is_pending = 0; is_active = 1; taken = 1
			:: else
			fi
		}
	:: else
	fi;
#ifdef BUG_SEQUENCE_ENDS_TOO_EARLY
	ack_sequence++;
#endif
#ifndef BUG_GROUP_IS_NOT_LOOKED_AT_AGAIN
	seen = group_mask;
	if
	:: taken && !seen ->
		/* Take it back; that it is pending again makes a hint and, where it may be signalled, a kick. */
		atomic { is_active = 0; is_pending = 1; taken = 0 };
		kicked = 1
	:: else
	fi;
#endif
	/* What is returned is settled here. */
	atomic {
		assert(!(taken && (interrupt_is_off || group_is_off)));
		if :: taken -> was_returned = 1 :: else fi;
#ifndef BUG_SEQUENCE_ENDS_TOO_EARLY
		ack_sequence++
#endif
	}
	if
	:: taken -> atomic { is_active = 0; taken = 0 }; goto acknowledge  /* EOI, and the next one */
	:: else -> goto blocked
	fi
}

proctype at_rest() {
end_waiting:
	timeout ->
	assert(num_running == 0);
	assert(!is_pending && was_returned)
}

init {
	byte i;

	atomic {
		do :: i < SIGNALS -> run signaller(); num_running++; i++ :: else -> break od;
		i = 0;
#ifdef DISABLES_INTERRUPT
		run disable_interrupt(); num_running++;
#endif
#ifdef DISABLES_GROUP
		run disable_group(); num_running++;
#endif
		run vcpu();
		run at_rest()
	}
}
