/* SPDX-License-Identifier: MIT */
/*
 * irqfd.pml - events of eventfds against deassign, and the worker's sleep. Rules R18
 * and R19 of docs/architecture.md.
 *
 *   here        there
 *   ----------  --------------------------------------------------------------------
 *   event       irqfd.c: enter(), vgic_irqfd_ready(), irqfd_defer()
 *   deassign    irqfd.c: retire(), irqfd_worker_flush(); and the next assign of that slot
 *   worker      irqfd_worker.c: worker_main(), sleep_until_woken()
 *
 * One slot, and events that all bring the token of its first irqfd. Its count and
 * its generation are one word in the code, so that what is done to both is one step.
 * Sequential consistency.
 *
 *   EVENTS=n   threads that each have one event
 *   DEFERRED   they hand it to the worker
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

/* The worker. */
bit is_queued, fence_is_queued, is_sleeping, wakefd;

/* For the checks only: deassign has returned. */
bit is_deassigned;
byte num_wanted; /* handed to the worker, and not done */

inline wake() {
	if
	:: is_sleeping -> atomic { if :: is_sleeping -> is_sleeping = 0; wakefd = 1 :: else fi }
	:: else
	fi
}

inline deliver() {
	assert(!is_deassigned)
}

proctype event() {
	bit mine;

#ifdef BUG_GENERATION_BEFORE_COUNT
	mine = (generation == FIRST_GENERATION);
	users++;
#else
	atomic { users++; mine = (generation == FIRST_GENERATION) };
#endif
	if
	:: mine ->
#ifdef DEFERRED
#ifdef BUG_SLEEP_IS_LOOKED_AT_FIRST
		wake();
		atomic { is_queued = 1; num_wanted = 1 }
#else
		atomic { is_queued = 1; num_wanted = 1 };
		wake()
#endif
#else
		deliver()
#endif
	:: else
	fi;
	atomic { users--; mine = 0; num_running-- }
}

proctype deassign() {
#ifndef BUG_GENERATION_STAYS
	generation++;
#endif
#ifndef BUG_DEASSIGN_DOES_NOT_WAIT
	users == 0;
#endif
#ifdef DEFERRED
#ifndef BUG_DEASSIGN_DOES_NOT_FLUSH
	fence_is_queued = 1;
	wake();
	!fence_is_queued;
#endif
#endif
	is_deassigned = 1;
	/* The slot is another's from here on. */
	generation++;
	num_running--
}

proctype worker() {
	bit fence;

end_idle:
	do
	:: atomic { is_queued || fence_is_queued ->
			fence = fence_is_queued;
			if
			:: is_queued -> is_queued = 0
			:: else -> goto only_fence
			fi
		};
		atomic { deliver(); num_wanted = is_queued };
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
#ifdef NO_DEASSIGN
		num_running = EVENTS;
#else
		run deassign();
#endif
	};
	num_running == 0;
	/* Nothing is wanted of a worker that sleeps and that nobody will wake. */
	do
	:: num_wanted == 0 -> break
	:: timeout -> assert(num_wanted == 0)
	od
}
