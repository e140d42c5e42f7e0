/* SPDX-License-Identifier: MIT */
/*
 * delivery.pml - how an interrupt gets from whoever changes its state word to the
 * vCPU that acknowledges it: rules R2 to R6 and R8 of docs/architecture.md, as
 * src/ does them.
 *
 *   here                       there
 *   -------------------------  -------------------------------------------------
 *   change ... settle          irq_change.h: irq_change(), irq_settle()
 *   file, file_in_maps         pending.c: pending_file(), file_in_maps()
 *   withdraw, kick             irq_change.h: irq_withdrawn(); vcpu.c: vcpu_kick()
 *   vcpu, from "evaluate"      vcpu.c: vcpu_evaluate_lines()
 *         from "find"          pending.c: pending_find(), search_level(); pending.h: pending_find_at_once()
 *         from "candidate"     pending.h: pending_claim()
 *   look_once_more, refile...  pending.c: pending_refile()
 *   distributor                dist.c: set_enabled_levels()
 *
 * Two vCPUs, one or two interrupts, two levels: level 0 has the higher rank. Each
 * access to a shared word is a step of its own. A loop of compare-and-swap on a
 * state word is one step: a lost round of it does nothing. Accesses take effect in
 * the order of the program, at once (sequential consistency), but for one that may
 * be late: whether the orders of the C11 accesses suffice for that is not asked here.
 *
 * Left out: the budget of a search and where it begins (words are walked from the
 * first on), counters, and the two things that one_of_n.pml and rwp.pml are about.
 *
 * What happens is chosen by macros (-D), see run-model:
 *
 *   SIGNALS_X=n, SIGNALS_Y=n   n threads that signal the interrupt X (0) or Y (1) once
 *   PENDING_X                  X is pending to begin with, its hint in the slot
 *   PENDING_Y                  so is Y, its hint in the maps
 *   MOVALL                     a thread that moves X, and then Y, to vCPU 1
 *   RETARGET, RETARGET_BACK    threads that route X to vCPU 1, and to vCPU 0
 *   PROMOTE                    a thread that moves X from level 1 to level 0
 *   TOGGLE                     a thread that disables X and enables it again
 *   WITHDRAW                   a thread that clears X's pending latch
 *   DISTRIBUTOR                a thread that closes level 1 for all vCPUs and opens it again
 *   VCPU1_BLOCKED              vCPU 1 is blocked to begin with; else it is about to look
 *   VCPU1_MASKED               vCPU 1 takes nothing: what it has is to be found by its hints, at rest
 *   MASKING                    an acknowledge masks its level and those below, until the EOI
 *   HPPIR                      the vCPU begins by reading ICC_HPPIR: a search that takes nothing, and after
 *                              which the VMM looks at the lines, as after every access to an ICC register
 *   HIDING                     vCPU 0 may take level 1 alone, but level 0 hides it (different
 *                              binary points); X is at level 0 and pending from the beginning
 *   ACTIVE                     X and Y become active and wait for their EOI; without it they are
 *                              like LPIs
 *   SAME_WORD                  X and Y share a word of the leaf
 *   STALE_SLOT                 vCPU 0's slot has a hint of Y to begin with, though Y is not pending
 *   STALE_MAPS                 level 1 of vCPU 0 has its upper bits set to begin with, with nothing below them
 *
 * and what is done wrong by BUG_*: each is a rule left out.
 */
#ifndef SIGNALS_X
#define SIGNALS_X 0
#endif
#ifndef SIGNALS_Y
#define SIGNALS_Y 0
#endif
#if SIGNALS_Y > 0 || defined(STALE_SLOT) || defined(PENDING_Y)
#define NUM_IRQS 2
#else
#define NUM_IRQS 1
#endif

#ifdef SAME_WORD
#define NUM_WORDS 1
#define WORD(i)   0
#else
#define NUM_WORDS NUM_IRQS
#define WORD(i)   (i)
#endif

#define BIT(n)     (1 << (n))
#define ALL_LEVELS 3
#define BEST(set)  (((set) & 1) -> 0 : 1)  /* of a set of levels that is not empty */

/* ---- State words ---- */

bit is_pending[2], is_enabled[2], is_active[2], target[2], level[2];

#define DELIVERABLE(i)            (is_pending[i] && is_enabled[i] && !is_active[i])
#define DELIVERABLE_AT(i, v)      (DELIVERABLE(i) && target[i] == (v))
#define DELIVERABLE_AS(i, v, l)   (DELIVERABLE_AT(i, v) && level[i] == (l))

/* For the checks only: a signal that no acknowledge has consumed yet; X was disabled, and that call has returned. */
bit unconsumed[2];
bit is_off;

/* ---- The vCPUs: struct pending ---- */

byte summary[2];  /* levels */
byte slot[2];     /* 0, or a hint */
byte leaf[4];     /* one bit for each interrupt; two words for each vCPU */
byte l1[4];       /* one bit for each word of the leaf; one word for each level of each vCPU */
bit kicked[2];
byte mask[2];     /* levels that may be signalled: written by the vCPU */
byte dist_mask;   /* the same: written by the distributor */
bit watch[2];
#ifdef BUG_ONE_MASK_WORD
byte both[2];     /* their intersection, computed anew by each writer */
#endif
bit wake[2];      /* the VMM's kick: a semaphore */

#define LEAF(v, w) leaf[(v) * 2 + (w)]
#define L1(v, l)   l1[(v) * 2 + (l)]

#define HINT(i, l)    (1 + (i) * 2 + (l))
#define HINT_IRQ(h)   (((h) - 1) / 2)
#define HINT_LEVEL(h) (((h) - 1) % 2)

byte num_running;  /* threads other than vCPUs that are not done */

/* ---- Filing a hint; "done", "may", "seen" are the thread's own ---- */

inline set_summary(v, l) {
	if
	:: (summary[v] & BIT(l)) == 0 -> summary[v] = summary[v] | BIT(l)
	:: else
	fi
}

inline file_in_maps(i, v, l) {
#ifdef BUG_STOP_AT_A_SET_LEAF_BIT
	d_step { done = (LEAF(v, WORD(i)) & BIT(i)) != 0; LEAF(v, WORD(i)) = LEAF(v, WORD(i)) | BIT(i) };
#else
	LEAF(v, WORD(i)) = LEAF(v, WORD(i)) | BIT(i);
#endif
	if
#ifdef BUG_STOP_AT_A_SET_LEAF_BIT
	:: done -> skip
	:: !done && (L1(v, l) & BIT(WORD(i))) == 0 ->
#else
	:: (L1(v, l) & BIT(WORD(i))) == 0 ->
#endif
		L1(v, l) = L1(v, l) | BIT(WORD(i));
		set_summary(v, l)
	:: else ->
#ifndef BUG_STOP_AT_A_SET_L1_BIT
		set_summary(v, l)
#else
		skip
#endif
	fi
}

inline file(i, v, l) {
#ifdef BUG_MASKS_BEFORE_HINT
	may = (mask[v] & BIT(l)) != 0;
	may = may && (dist_mask & BIT(l));
#endif
#ifdef BUG_KICKED_BEFORE_HINT
	seen = kicked[v];
#endif
	done = 0;
	if
	:: (summary[v] & BIT(l)) == 0 ->
		if
		:: slot[v] == 0 ->
			d_step { if :: slot[v] == 0 -> slot[v] = HINT(i, l); done = 1 :: else fi }
#ifdef BUG_SLOT_HOLDS_IT_ALREADY
		:: slot[v] == HINT(i, l) -> done = 1
#endif
		:: else
		fi
	:: else
	fi;
	if
	:: !done -> file_in_maps(i, v, l)
	:: else
	fi;
#ifndef BUG_KICKED_BEFORE_HINT
	seen = kicked[v];
#endif
	if
	:: seen -> may = 0  /* it will look, and find the hint: what it masks is its own affair */
	:: else ->
#if defined(BUG_ONE_MASK_WORD)
		may = (both[v] & BIT(l)) != 0
#elif defined(BUG_MASKS_BEFORE_HINT)
		skip
#else
		may = (mask[v] & BIT(l)) != 0;
		may = may && (dist_mask & BIT(l))
#endif
	fi
}

inline kick(v) {
	if
	:: !kicked[v] ->
		d_step { seen = kicked[v]; kicked[v] = 1 };
		if :: !seen -> wake[v] = 1 :: else fi
	:: else
	fi
}

/* ---- Changing a state word ---- */

/*
 * What the compare-and-swap saw, and so what is to be done: file a hint for level l of vCPU v, tell
 * vCPU old_v of a withdrawal. Both belong into the step that makes the change.
 */
#define BEFORE(i) was = DELIVERABLE(i); old_v = target[i]; l = level[i]
#define AFTER(i)                                                          \
	moved = target[i] != old_v || level[i] != l;                       \
	files = DELIVERABLE(i) && (!was || MOVE_FILES(moved));             \
	withdraws = was && (!DELIVERABLE(i) || moved) && TELL_WITHDRAWALS; \
	clears = was && moved && MOVE_CLEARS;                              \
	old_v = (withdraws || clears -> old_v : 0);                        \
	v = (files -> target[i] : 0);                                      \
	l = (files -> level[i] : 0);                                       \
	was = 0;                                                           \
	moved = 0

#ifdef BUG_MOVE_FILES_NOTHING
#define MOVE_FILES(moved) 0
#else
#define MOVE_FILES(moved) moved
#endif
#ifdef BUG_MOVE_CLEARS_THE_OLD_HINT
#define MOVE_CLEARS 1
#else
#define MOVE_CLEARS 0
#endif
#if defined(BUG_WITHDRAWAL_IS_SILENT) || !defined(HIDING)
#define TELL_WITHDRAWALS 0 /* nobody watches */
#else
#define TELL_WITHDRAWALS 1
#endif

inline settle(i) {
	if
	:: files ->
#ifdef BUG_KICK_BEFORE_HINT
		kick(v);
		file(i, v, l)
#else
		file(i, v, l);
		if :: may -> kick(v) :: else fi
#endif
	:: else
	fi;
	if
	:: clears -> LEAF(old_v, WORD(i)) = LEAF(old_v, WORD(i)) & ~BIT(i)
	:: else
	fi;
	if
	:: withdraws ->
		if :: watch[old_v] -> kick(old_v) :: else fi
	:: else
	fi;
	d_step { files = 0; withdraws = 0; clears = 0; v = 0; l = 0; old_v = 0; done = 0; may = 0; seen = 0 }
}

#ifdef BUG_MOVE_IS_NO_COMPARE_AND_SWAP
#define LOCALS bit was, moved, files, withdraws, clears, v, l, old_v, done, may, seen, was_pending
#else
#define LOCALS bit was, moved, files, withdraws, clears, v, l, old_v, done, may, seen
#endif

proctype signaller(bit i) {
	LOCALS;
	atomic {
		BEFORE(i);
		if :: !is_pending[i] -> unconsumed[i] = 1 :: else fi;
		is_pending[i] = 1;
		AFTER(i)
	}
	settle(i);
	num_running--
}

inline move_to(i, to) {
#ifdef BUG_MOVE_IS_NO_COMPARE_AND_SWAP
	was_pending = is_pending[i];
	atomic { BEFORE(i); target[i] = to; is_pending[i] = was_pending; was_pending = 0; AFTER(i) };
#else
	atomic { BEFORE(i); target[i] = to; AFTER(i) }
#endif
	settle(i)
}

proctype retargeter(bit to) {
	LOCALS;
	move_to(0, to);
	num_running--
}

/* MOVALL goes through the LPIs and moves those that are at the vCPU. */
proctype move_all() {
	LOCALS;
	if :: target[0] == 0 -> move_to(0, 1) :: else fi;
	if :: target[1] == 0 -> move_to(1, 1) :: else fi;
	num_running--
}

proctype promoter() {
	LOCALS;
	atomic { BEFORE(0); level[0] = 0; AFTER(0) }
	settle(0);
	num_running--
}

proctype toggler() {
	LOCALS;
	atomic { BEFORE(0); is_enabled[0] = 0; is_off = 1; AFTER(0) }
	settle(0);
	atomic { BEFORE(0); is_enabled[0] = 1; is_off = 0; AFTER(0) }
	settle(0);
	num_running--
}

proctype withdrawer() {
	LOCALS;
	atomic { BEFORE(0); is_pending[0] = 0; unconsumed[0] = 0; AFTER(0) }
	settle(0);
	num_running--
}

/* The distributor is neither signaller nor vCPU: it stores its mask, and then looks at everyone. */
proctype distributor() {
	bit seen, v;
	byte hinted;

	dist_mask = BIT(0);
#ifdef BUG_ONE_MASK_WORD
	hinted = mask[0];
	both[0] = hinted & dist_mask;
#endif
	if :: watch[0] -> kick(0) :: else fi;
	if :: watch[1] -> kick(1) :: else fi;
#ifdef BUG_DISTRIBUTOR_LOOKS_FIRST
	hinted = summary[0] | (slot[0] -> BIT(HINT_LEVEL(slot[0])) : 0);
#endif
	dist_mask = ALL_LEVELS;
#ifdef BUG_ONE_MASK_WORD
	hinted = mask[0];
	both[0] = hinted & dist_mask;
#endif
#ifndef BUG_DISTRIBUTOR_LOOKS_AT_NOBODY
	v = 0;
	do
	:: true ->
#ifndef BUG_DISTRIBUTOR_LOOKS_FIRST
		hinted = slot[v];
		hinted = (hinted -> BIT(HINT_LEVEL(hinted)) : 0);
		hinted = hinted | summary[v];
#endif
		if
		:: hinted & mask[v] & BIT(1) -> kick(v)
		:: else
		fi;
		if :: v == 0 -> v = 1 :: else -> break fi
	od;
#endif
	atomic { hinted = 0; v = 0; seen = 0; num_running-- }
}

/* ---- The vCPU ---- */

/* R4: a hint was cleared and its interrupt not taken. Is it wanted here still? Then it is filed again. */
inline look_once_more(i) {
	atomic { here = DELIVERABLE_AT(i, me); other = level[i] }
}

inline refile_if_here(i) {
#ifndef BUG_NOTHING_IS_FILED_AGAIN
	if
	:: here -> file_in_maps(i, me, other); refiled = 1
	:: else
	fi
#else
	here = 0
#endif
}

/* The acknowledge's compare-and-swap has found the interrupt deliverable here, or does not care. */
#ifdef ACTIVE
#define TAKE(i) assert(unconsumed[i] && !(i == 0 && is_off)); unconsumed[i] = 0; is_pending[i] = 0; is_active[i] = 1
#else
#define TAKE(i) assert(unconsumed[i] && !(i == 0 && is_off)); unconsumed[i] = 0; is_pending[i] = 0
#endif

#if defined(HIDING)
#define ELIGIBLE(v) ALL_LEVELS
#elif defined(BUG_MASK_IS_OPENED_LATE)
#define ELIGIBLE(v) (opening -> ALL_LEVELS : mask[v])
#else
#define ELIGIBLE(v) mask[v]
#endif

proctype vcpu(bit me) {
	byte levels, in_maps, hint, bits;
	bit i, l, w, here, other, in_slot, cleared, refiled, done;
#ifdef MASKING
	bit holds;  /* an interrupt is between its acknowledge and its EOI */
	bit opening; /* BUG_MASK_IS_OPENED_LATE: the mask is open in the mind only */
#endif
#ifdef HPPIR
	bit reading;
#endif
#ifdef ACTIVE
	bit was, moved, files, withdraws, clears, v, old_v, may, seen;
#endif

#ifdef VCPU1_BLOCKED
	if :: me == 1 -> goto end_blocked :: else fi;
#endif
#ifdef HPPIR
	levels = dist_mask;
	reading = 1;
	goto find;
#endif
evaluate:
#ifndef BUG_KICK_IS_ANSWERED_LATE
	kicked[me] = 0;
#endif
	levels = dist_mask & ELIGIBLE(me);

find:
	in_maps = summary[me] & levels;
	atomic {
		hint = slot[me];
		if  /* at equal rank the slot goes first: here, either */
		:: hint != 0 && (levels & BIT(HINT_LEVEL(hint))) && (in_maps == 0 || HINT_LEVEL(hint) <= BEST(in_maps)) ->
			i = HINT_IRQ(hint);
			l = HINT_LEVEL(hint);
			hint = 0;
			goto look_at_slot
		:: in_maps != 0 &&
		   (hint == 0 || !(levels & BIT(HINT_LEVEL(hint))) || BEST(in_maps) <= HINT_LEVEL(hint)) ->
			l = BEST(in_maps);
			hint = 0;
			in_maps = 0;
			cleared = 0;
			in_slot = 0;
			goto probe
		:: else -> goto none
		fi
	}

look_at_slot:
	atomic {
		if
		:: DELIVERABLE_AS(i, me, l) -> in_slot = 1; goto candidate
		:: else
		fi
	}
	/* Nothing orders the store before the load: the word may be read before others see that the slot is empty. */
	if
	:: slot[me] = 0; look_once_more(i)
	:: look_once_more(i); slot[me] = 0
	fi;
	refile_if_here(i);
	goto find;

probe:  /* the word behind the interrupt taken last, or the next, upper bits or not */
	if
	:: true -> goto search
	:: LEAF(me, 0) -> atomic { i = ((LEAF(me, 0) & BIT(0)) -> 0 : 1) }
#ifndef SAME_WORD
	:: LEAF(me, 1) -> i = 1
#endif
	fi;
	atomic {
		if
		:: DELIVERABLE_AS(i, me, l) -> goto candidate
		:: else
		fi
	}

search:  /* the whole level, word by word */
	atomic { refiled = 0; w = 0; in_slot = 0 };
word:
	atomic {
		if
		:: (L1(me, l) & BIT(w)) == 0 -> goto next_word
		:: else
		fi
	}
	atomic { bits = LEAF(me, w); i = 0; done = 0 };
irq:
	if
	:: (bits & BIT(i)) == 0 -> goto next_irq
	:: else
	fi;
	atomic { here = DELIVERABLE_AT(i, me); other = level[i] };
	if
	:: here && other == l ->
#ifndef BUG_FOUND_LEVEL_STAYS_CLEARED
		if :: cleared -> summary[me] = summary[me] | BIT(l) :: else fi;
#endif
		goto candidate
	:: here && other != l -> goto next_irq  /* the leaf is shared: the other level leads here too */
	:: else
	fi;
	LEAF(me, w) = LEAF(me, w) & ~BIT(i);
	look_once_more(i);
	refile_if_here(i);
	if :: here -> done = 1 :: else fi;  /* something of this word was filed again: do not tidy it */
next_irq:
	if
	:: i + 1 < NUM_IRQS && !(bits & BIT(i + 1)) -> skip
	:: i + 1 < NUM_IRQS && (bits & BIT(i + 1)) -> i = i + 1; goto irq
	:: else
	fi;
	if
	:: done -> goto next_word
	:: !done -> goto next_word  /* few empty words are tolerated */
	:: !done -> skip
	fi;
	/* Tidy: the upper bit first, then look below it once more. */
	L1(me, l) = L1(me, l) & ~BIT(w);
#ifndef BUG_TIDY_DOES_NOT_LOOK_AGAIN
	atomic { bits = LEAF(me, w); i = 0 };
tidy:
	if
	:: (bits & BIT(i)) && DELIVERABLE_AS(i, me, l) ->
		L1(me, l) = L1(me, l) | BIT(w);
		refiled = 1
	:: else ->
		if :: i + 1 < NUM_IRQS -> i = i + 1; goto tidy :: else fi
	fi;
#endif
next_word:
	if
	:: w + 1 < NUM_WORDS -> w = w + 1; goto word
	:: else
	fi;
	if
	:: !refiled && cleared -> goto find  /* it is empty: on to the next level */
	:: refiled && cleared -> summary[me] = summary[me] | BIT(l); cleared = 0
	:: else
	fi;
	if
	:: !refiled ->
		summary[me] = summary[me] & ~BIT(l);
#ifdef BUG_EMPTY_LEVEL_IS_BELIEVED_AT_ONCE
		goto find;
#endif
		cleared = 1
	:: else
	fi;
	goto search;

candidate:
#ifdef HPPIR
	if :: reading -> goto read :: else fi;
#endif
#ifdef HIDING
	if
	:: (mask[me] & BIT(l)) == 0 -> goto none  /* it hides what is below and cannot preempt itself */
	:: else
	fi;
#endif
#if defined(BUG_CLAIM_BEFORE_CLEARING)
	atomic { here = DELIVERABLE_AS(i, me, l); if :: here -> TAKE(i) :: else fi };
	if :: in_slot -> slot[me] = 0 :: else -> LEAF(me, WORD(i)) = LEAF(me, WORD(i)) & ~BIT(i) fi;
#else
	if :: in_slot -> slot[me] = 0 :: else -> LEAF(me, WORD(i)) = LEAF(me, WORD(i)) & ~BIT(i) fi;
#if defined(BUG_CLAIM_WITHOUT_COMPARING)
	here = 1;
	atomic { TAKE(i) };
#else
	atomic { here = DELIVERABLE_AS(i, me, l); if :: here -> TAKE(i) :: else fi };
#endif
#endif
	if
	:: here ->
#ifdef MASKING
		mask[me] = (1 << l) - 1;
#ifdef BUG_ONE_MASK_WORD
		bits = dist_mask;
		both[me] = bits & mask[me];
#endif
		holds = 1;
#elif defined(ACTIVE)
		atomic { BEFORE(i); is_active[i] = 0; AFTER(i) };
		settle(i);
#endif
		skip
	:: else ->
#ifdef BUG_FAILED_CLAIM_FILES_NOTHING
		skip
#else
		look_once_more(i);
		refile_if_here(i)
#endif
	fi;
	goto evaluate;

none:
#ifdef HPPIR
	if :: !reading -> goto look_no_more :: else fi;
read:
	reading = 0;
#ifndef BUG_VMM_DOES_NOT_LOOK_AFTER_AN_ACCESS
	goto evaluate;
#endif
look_no_more:
#endif
#ifdef MASKING
	/* The handler ends. */
	if
	:: holds ->
		holds = 0;
#ifdef BUG_MASK_IS_OPENED_LATE
		opening = 1;
#else
		mask[me] = ALL_LEVELS;
#endif
#ifdef BUG_ONE_MASK_WORD
		bits = dist_mask;
		both[me] = bits & mask[me];
#endif
		goto evaluate
	:: else
	fi;
#ifdef BUG_MASK_IS_OPENED_LATE
	if :: opening -> opening = 0; mask[me] = ALL_LEVELS :: else fi;
#endif
#endif
#ifdef BUG_KICK_IS_ANSWERED_LATE
	kicked[me] = 0;
#endif
	atomic { levels = 0; in_maps = 0; hint = 0; bits = 0; i = 0; l = 0; w = 0; here = 0; other = 0; in_slot = 0;
		cleared = 0; refiled = 0; done = 0 }
end_blocked:
	atomic { wake[me] -> wake[me] = 0 };
	goto evaluate
}

/* ---- At rest ---- */

/* The invariant of src/check.c. */
#define IS_REACHABLE(i, v, l)                                                                  \
	(slot[v] == HINT(i, l) || ((summary[v] & BIT(l)) && (L1(v, l) & BIT(WORD(i))) && (LEAF(v, WORD(i)) & BIT(i))))

/* Nothing moves any more: whatever may be signalled has been taken. */
proctype at_rest() {
end_waiting:
	timeout ->
	assert(num_running == 0);
	assert(dist_mask == ALL_LEVELS);
	assert(unconsumed[0] == is_pending[0] && unconsumed[1] == is_pending[1]);
#ifdef HIDING
	assert(!DELIVERABLE_AS(0, 0, 1) && !DELIVERABLE_AS(1, 0, 1) || DELIVERABLE_AS(0, 0, 0));
	assert(!DELIVERABLE_AT(0, 1) && !DELIVERABLE_AT(1, 1))
#elif defined(VCPU1_MASKED)
	assert(!DELIVERABLE_AT(0, 0) && !DELIVERABLE_AT(1, 0));
	assert(!DELIVERABLE_AT(0, 1) || IS_REACHABLE(0, 1, level[0]));
	assert(!DELIVERABLE_AT(1, 1) || IS_REACHABLE(1, 1, level[1]))
#else
	assert(!DELIVERABLE(0) && !DELIVERABLE(1))
#endif
}

init {
	byte n;

	atomic {
		is_enabled[0] = 1; is_enabled[1] = 1;
		level[0] = 1; level[1] = 1;
		mask[0] = ALL_LEVELS; mask[1] = ALL_LEVELS; dist_mask = ALL_LEVELS;
#ifdef BUG_ONE_MASK_WORD
		both[0] = ALL_LEVELS; both[1] = ALL_LEVELS;
#endif
#ifdef STALE_SLOT
		slot[0] = HINT(1, 1);
#endif
#ifdef STALE_MAPS
		summary[0] = BIT(1);
		L1(0, 1) = BIT(0) | BIT(NUM_WORDS - 1);
#endif
#ifdef PENDING_X
		is_pending[0] = 1; unconsumed[0] = 1; slot[0] = HINT(0, 1);
#endif
#ifdef PENDING_Y
		is_pending[1] = 1; unconsumed[1] = 1; LEAF(0, WORD(1)) = BIT(1); L1(0, 1) = BIT(WORD(1)); summary[0] = BIT(1);
#endif
#ifdef VCPU1_MASKED
		mask[1] = 0;
#endif
#ifdef HIDING
		level[0] = 0; is_pending[0] = 1; unconsumed[0] = 1; slot[0] = HINT(0, 0);
		mask[0] = BIT(1); watch[0] = 1;
#endif
		n = 0;
		do :: n < SIGNALS_X -> run signaller(0); num_running++; n++ :: else -> break od;
		n = 0;
		do :: n < SIGNALS_Y -> run signaller(1); num_running++; n++ :: else -> break od;
		n = 0;
#ifdef RETARGET
		run retargeter(1); num_running++;
#endif
#ifdef RETARGET_BACK
		run retargeter(0); num_running++;
#endif
#ifdef MOVALL
		run move_all(); num_running++;
#endif
#ifdef PROMOTE
		run promoter(); num_running++;
#endif
#ifdef TOGGLE
		run toggler(); num_running++;
#endif
#ifdef WITHDRAW
		run withdrawer(); num_running++;
#endif
#ifdef DISTRIBUTOR
		run distributor(); num_running++;
#endif
		run vcpu(0);
#if (defined(RETARGET) || defined(MOVALL)) && !defined(VCPU1_MASKED)
		run vcpu(1);
#endif
		run at_rest()
	}
}
