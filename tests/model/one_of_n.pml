/* SPDX-License-Identifier: MIT */
/*
 * one_of_n.pml - which vCPU gets an interrupt that any one of them may take: rule
 * R9 of docs/architecture.md, as src/one_of_n.c does it.
 *
 *   here             there
 *   ---------------  ------------------------------------------------
 *   select_behind    one_of_n_select()
 *   signaller        irq_change()
 *   look_again       one_of_n_recheck()
 *   joiner, leaver   one_of_n_update()
 *
 * Three vCPUs, one interrupt. Its word is pending and target; hints and kicks are
 * delivery.pml's subject. Sequential consistency, as there.
 *
 *   STARTS=set       vCPUs that take part to begin with, a bit for each
 *   JOINS=v, LEAVES=v, LEAVES_TOO=v, SIGNALS=n, ACKNOWLEDGES
 *
 * BUG_*: each is a part of the rule left out.
 */
#ifndef SIGNALS
#define SIGNALS 1
#endif

#define NUM_VCPUS 3
#define NOBODY    3

bit is_pending;
byte target = NOBODY;
bit takes_part[NUM_VCPUS];
byte num_running;

/* The next participant behind the one that had it last: each vCPU is asked in a step of its own. */
inline select_behind(last) {
	chosen = NOBODY;
	n = 0;
	do
	:: n < NUM_VCPUS && chosen == NOBODY ->
		if
		:: takes_part[(last + 1 + n) % NUM_VCPUS] -> chosen = (last + 1 + n) % NUM_VCPUS
		:: else
		fi;
		n++
	:: else -> break
	od;
	n = 0
}

/* Select anew while the one that has it does not take part. */
inline look_again() {
	do
	:: true ->
		atomic {
			old = target;
			if :: !is_pending -> break :: else fi
		}
		if
		:: old != NOBODY && takes_part[old] -> break
		:: else
		fi;
		select_behind(old);
		if :: chosen == old -> break :: else fi;
		/* The compare-and-swap; it fails if anything has changed meanwhile. */
		atomic {
			if
			:: is_pending && target == old -> target = chosen
			:: else
			fi
		}
	od;
	atomic { old = 0; chosen = 0; n = 0 }
}

proctype signaller() {
	byte old, chosen, n;

	do
	:: true ->
		atomic {
			old = target;
			if :: is_pending -> break :: else fi
		}
		select_behind(old);
		atomic {
			if
			:: !is_pending && target == old -> is_pending = 1; target = chosen; break
			:: else
			fi
		}
	od;
#ifndef BUG_SIGNALLER_DOES_NOT_LOOK_AGAIN
	look_again();
#endif
	num_running--
}

proctype joiner(byte v) {
	byte old, chosen, n;

	takes_part[v] = 1;
#ifndef BUG_JOINER_DOES_NOT_WALK
	look_again();
#endif
	num_running--
}

proctype leaver(byte v) {
	byte old, chosen, n;

#ifdef BUG_LEAVER_WALKS_FIRST
	look_again();
	takes_part[v] = 0;
#else
	takes_part[v] = 0;
	look_again();
#endif
	num_running--
}

/* Whoever has it acknowledges it once, and it may be signalled again. */
proctype acknowledger() {
	atomic { is_pending && target != NOBODY -> is_pending = 0 };
	num_running--
}

proctype at_rest() {
end_waiting:
	timeout ->
#ifndef ACKNOWLEDGES
	assert(num_running == 0);
#endif
	if
	:: is_pending && (takes_part[0] || takes_part[1] || takes_part[2]) ->
		assert(target != NOBODY);
		assert(takes_part[target])
	:: else
	fi
}

init {
	byte i;

	atomic {
		takes_part[0] = (STARTS & 1) != 0;
		takes_part[1] = (STARTS & 2) != 0;
		takes_part[2] = (STARTS & 4) != 0;
		i = 0;
		do :: i < SIGNALS -> run signaller(); num_running++; i++ :: else -> break od;
		i = 0;
#ifdef JOINS
		run joiner(JOINS); num_running++;
#endif
#ifdef LEAVES
		run leaver(LEAVES); num_running++;
#endif
#ifdef LEAVES_TOO
		run leaver(LEAVES_TOO); num_running++;
#endif
#ifdef ACKNOWLEDGES
		run acknowledger(); num_running++;
#endif
		run at_rest()
	}
}
