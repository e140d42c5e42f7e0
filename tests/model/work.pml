/* SPDX-License-Identifier: MIT */
/*
 * work.pml - the work of a register write is done in parts, by whoever comes: the write
 * itself, reads of a register that shows progress, the VMM's vgic_run_work(). Nothing of
 * it is lost or done twice. Rule R14 of docs/architecture.md.
 *
 *   here              there
 *   ----------------  ------------------------------------------------------
 *   do_part           work.c: do_part(); its_cmd.c: its_run_queue()
 *   write             work.c: work_finish_write(); its.c: cwriter_write(), ctlr_write()
 *   read              work.c: work_do_some(); its.c: creadr_read(), ctlr_read()
 *   worker            a thread of the VMM, which work_pending() wakes
 *
 * A queue of three commands; each is read in one step and has as many more as LENGTH()
 * says. Sequential consistency; only what config_lock guards is shared.
 *
 *   BUDGET=n        steps of one part: two at least, as going on with a command takes one
 *   POLLS=n         threads of the guest that read GITS_CREADR until the queue is empty
 *   SWITCHES_OFF    a thread that clears GITS_CTLR.Enabled, waits for Quiescent, and enables it again
 *   VMM_CALLS_BACK  the VMM has no thread: it calls vgic_run_work() in work_pending()
 *
 * BUG_*: each is a part of the rule left out.
 */
#ifndef BUDGET
#define BUDGET 2
#endif
#ifndef POLLS
#define POLLS 0
#endif
#define NUM_COMMANDS 3
#define LENGTH(c)    ((c) == 1 -> 5 : (c) / 2)

bit lock;
bit is_enabled = 1;
byte cwriter, creadr;
bit command_is_active;
byte command_at;
bit work_left;
bit announced;   /* the VMM's worker is to run */
byte num_running;

/* For the checks only. */
byte done_of[NUM_COMMANDS]; /* steps of each command */
bit is_quiescent;           /* Enabled is 0 and Quiescent has read 1 */

#ifdef BUG_NO_LOCK
#define ACQUIRE skip
#define RELEASE skip
#else
#define ACQUIRE atomic { !lock -> lock = 1 }
#define RELEASE lock = 0
#endif

/* Three local variables of the caller: steps, all_done, at. */
inline do_part() {
	all_done = 1;
	if
	:: !work_left -> skip
	:: else ->
		steps = BUDGET;
		do
		:: !command_is_active && (!is_enabled || creadr == cwriter) -> break
		:: else ->
			if
			:: steps == 0 -> all_done = 0; break
			:: else
			fi;
			if
			:: !command_is_active -> command_is_active = 1; command_at = 0
			:: else
			fi;
			steps--;
#ifdef BUG_COMMAND_BEGINS_ANEW
			command_at = 0;
#endif
#ifdef BUG_CREADR_MOVES_FIRST
			if :: command_at == 0 -> creadr++ :: else fi;
#define COMMAND (creadr - 1)
#else
#define COMMAND creadr
#endif
			do
			:: command_at == LENGTH(COMMAND) || steps == 0 -> break
			:: else ->
				at = command_at;
				/* Each step once, in order; none of an ITS that says it is quiescent. */
				atomic { assert(COMMAND < NUM_COMMANDS && done_of[COMMAND] == at && !is_quiescent); done_of[COMMAND]++ };
				command_at = at + 1;
				steps--
			od;
			if
			:: command_at < LENGTH(COMMAND) -> all_done = 0; break
			:: else
			fi;
			command_is_active = 0;
#ifndef BUG_CREADR_MOVES_FIRST
			creadr++
#endif
		od;
#ifdef BUG_WORK_LEFT_IS_FORGOTTEN
		work_left = 0
#else
		work_left = !all_done
#endif
	fi;
	atomic { steps = 0; at = 0 }
}

/* The callback: with the lock free, or a VMM that answers at once would wait for itself. */
inline work_pending() {
#ifndef BUG_NOTHING_IS_ANNOUNCED
#ifdef VMM_CALLS_BACK
	do
	:: ACQUIRE; do_part(); RELEASE; if :: all_done -> break :: else fi
	od
#else
	announced = 1
#endif
#endif
	skip
}

/* The end of a register write, behind ACQUIRE. */
inline finish_write() {
	work_left = 1;
	do_part();
#ifdef BUG_ANNOUNCED_UNDER_THE_LOCK
	if :: !all_done -> work_pending() :: else fi;
	RELEASE;
#else
	RELEASE;
	if :: !all_done -> work_pending() :: else fi;
#endif
	all_done = 0
}

inline write_cwriter(value) {
	ACQUIRE;
	cwriter = value;
	finish_write()
}

/* Whoever reads GITS_CREADR past a command may rely on it. */
inline read_creadr() {
	ACQUIRE;
	do_part();
	RELEASE;
	ACQUIRE;
	atomic {
		seen = creadr;
		assert(seen < 1 || done_of[0] == LENGTH(0));
		assert(seen < 2 || done_of[1] == LENGTH(1));
		assert(seen < 3 || done_of[2] == LENGTH(2))
	}
	RELEASE;
	all_done = 0
}

proctype guest() {
	byte steps, at;
	bit all_done;

	write_cwriter(1);
	write_cwriter(NUM_COMMANDS);
	num_running--
}

proctype poller() {
	byte steps, at, seen;
	bit all_done;

	do
	:: seen < NUM_COMMANDS -> read_creadr()
	:: else -> break
	od;
	atomic { seen = 0; num_running-- }
}

proctype switcher() {
	byte steps, at;
	bit all_done, seen;

	ACQUIRE;
	is_enabled = 0;
	finish_write();
	do
	:: !seen ->
		ACQUIRE;
		do_part();
		RELEASE;
		ACQUIRE;
#ifdef BUG_QUIESCENT_IGNORES_THE_COMMAND
		atomic { seen = 1; is_quiescent = 1 };
#else
		atomic { seen = !command_is_active; is_quiescent = seen };
#endif
		RELEASE
	:: else -> break
	od;
	ACQUIRE;
	atomic { is_quiescent = 0; is_enabled = 1 };
	finish_write();
	atomic { seen = 0; num_running-- }
}

proctype worker() {
	byte steps, at;
	bit all_done;

	do
	:: true ->
end_sleeping:
		atomic { announced -> announced = 0 };
		do
		:: true ->
			ACQUIRE;
			do_part();
			RELEASE;
#ifdef BUG_VMM_RUNS_ONE_PART
			break
#else
			if :: all_done -> break :: else fi
#endif
		od;
		all_done = 0
	od
}

proctype at_rest() {
end_waiting:
	timeout ->
	assert(num_running == 0);
	assert(creadr == NUM_COMMANDS && cwriter == NUM_COMMANDS);
	assert(done_of[0] == LENGTH(0) && done_of[1] == LENGTH(1) && done_of[2] == LENGTH(2));
	assert(!command_is_active && !work_left)
}

init {
	byte i;

	atomic {
		run guest(); num_running++;
		do :: i < POLLS -> run poller(); num_running++; i++ :: else -> break od;
		i = 0;
#ifdef SWITCHES_OFF
		run switcher(); num_running++;
#endif
#ifndef VMM_CALLS_BACK
		run worker();
#endif
		run at_rest()
	}
}
