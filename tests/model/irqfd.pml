/* SPDX-License-Identifier: MIT */
/*
 * irqfd.pml - events of eventfds against deassign, and the worker's sleep. Rules R18
 * and R19 of docs/architecture.md.
 *
 *   here        there
 *   ----------  --------------------------------------------------------------------
 *   event       irqfd.c: enter(), vgic_irqfd_ready(), irqfd_defer()
 *   other       irqfd_defer(), by an event of another irqfd of the same GSI
 *   deassign    irqfd.c: retire(), irqfd_worker_await_raise(), irqfd_worker_flush(); and the
 *               next assign of that slot
 *   worker      irqfd_worker.c: worker_main(), do_item(), sleep_until_woken()
 *
 * One slot, and events that all bring the token of its first irqfd. Its count and
 * its generation are one word in the code, so that what is done to both is one step.
 * What is wanted of the worker is one word too; the push of its item comes later, by
 * who has wanted something of it first. Sequential consistency.
 *
 *   EVENTS=n   threads that each have one event
 *   DEFERRED   they hand it to the worker
 *   OTHER      and so does the other irqfd, an edge; those of this one raise the line
 *
 * BUG_*: each is a part of a rule left out.
 */
#ifndef EVENTS
#define EVENTS 1
#endif

#define FIRST_GENERATION 1

byte generation = FIRST_GENERATION;
byte users;
byte num_running;

/* The worker: what is wanted of the GSI's item, and is it in the queue? */
bit edge_is_wanted, raise_is_wanted, is_queued, fence_is_queued, is_sleeping, wakefd;

/* For the checks only: deassign has returned. */
bit is_deassigned;

inline wake() {
	if
	:: is_sleeping -> atomic { if :: is_sleeping -> is_sleeping = 0; wakefd = 1 :: else fi }
	:: else
	fi
}

inline deliver() {
	assert(!is_deassigned)
}

/* irqfd_defer(): one word, then the push, if nothing was wanted before. */
inline defer(wanted) {
	atomic {
		is_first = !edge_is_wanted && !raise_is_wanted;
		wanted = 1
	};
	if
	:: is_first ->
#ifdef BUG_SLEEP_IS_LOOKED_AT_FIRST
		wake();
		is_queued = 1
#else
		is_queued = 1;
		wake()
#endif
	:: else
	fi
}

proctype event() {
	bit mine, is_first;

#ifdef BUG_GENERATION_BEFORE_COUNT
	mine = (generation == FIRST_GENERATION);
	users++;
#else
	atomic { users++; mine = (generation == FIRST_GENERATION) };
#endif
	if
	:: mine ->
#if defined(OTHER)
		defer(raise_is_wanted)
#elif defined(DEFERRED)
		defer(edge_is_wanted)
#else
		deliver()
#endif
	:: else
	fi;
	atomic { users--; mine = 0; is_first = 0; num_running-- }
}

proctype other() {
	bit is_first;

	defer(edge_is_wanted);
	atomic { is_first = 0; num_running-- }
}

proctype deassign() {
#ifndef BUG_GENERATION_STAYS
	generation++;
#endif
#ifndef BUG_DEASSIGN_DOES_NOT_WAIT
	users == 0;
#endif
#ifdef DEFERRED
#if defined(OTHER) && !defined(BUG_DEASSIGN_DOES_NOT_AWAIT_THE_RAISE) && !defined(BUG_FLUSH_COMES_FIRST)
	!raise_is_wanted;
#endif
#ifndef BUG_DEASSIGN_DOES_NOT_FLUSH
	fence_is_queued = 1;
	wake();
	!fence_is_queued;
#endif
#if defined(OTHER) && defined(BUG_FLUSH_COMES_FIRST)
	!raise_is_wanted;
#endif
#endif
	is_deassigned = 1;
	/* The slot is another's from here on. */
	generation++;
	num_running--
}

proctype worker() {
	bit fence, edge, raise;

end_idle:
	do
	:: atomic { is_queued || fence_is_queued ->
			fence = fence_is_queued;
			if
			:: is_queued -> is_queued = 0
			:: else -> goto only_fence
			fi
		};
		atomic { edge = edge_is_wanted; raise = raise_is_wanted; edge_is_wanted = 0; raise_is_wanted = 0 };
#ifdef OTHER
		/* An edge is the other irqfd's. */
		atomic { if :: raise -> deliver() :: else fi; edge = 0; raise = 0 };
#else
		atomic { deliver(); edge = 0; raise = 0 };
#endif
only_fence:
		atomic { if :: fence -> fence_is_queued = 0; fence = 0 :: else fi }
	:: else ->
#ifdef BUG_WORKER_LOOKS_BEFORE_IT_SLEEPS
		if
		:: is_queued || fence_is_queued
		:: else ->
			is_sleeping = 1;
end_asleep_early:
			atomic { wakefd -> wakefd = 0 }
		fi
#else
		is_sleeping = 1;
		if
		:: is_queued || fence_is_queued -> is_sleeping = 0
		:: else ->
end_asleep:
			atomic { wakefd -> wakefd = 0 }
		fi
#endif
	od
}

init {
	byte i;

	atomic {
		num_running = EVENTS + 1;
		do
		:: i < EVENTS -> run event(); i++
		:: else -> break
		od;
#ifdef DEFERRED
		run worker();
#endif
#ifdef OTHER
		num_running++;
		run other();
#endif
#ifdef NO_DEASSIGN
		num_running--;
#else
		run deassign();
#endif
	};
	num_running == 0;
	/* Nothing is wanted of a worker that sleeps and that nobody will wake. */
	do
	:: !edge_is_wanted && !raise_is_wanted -> break
	:: timeout -> assert(!edge_is_wanted && !raise_is_wanted)
	od
}
