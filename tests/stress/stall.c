/* SPDX-License-Identifier: MIT */
/*
 * stall.c - the signal handlers that stop a thread, and who sends the signals.
 */
#include "stall.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define SHAKE_SIGNAL SIGUSR1
#define HOLD_SIGNAL  SIGUSR2

/* A held thread goes on by itself after so many steps: it might hold a lock. */
#define MAX_HELD_STEPS 2000

static _Atomic long stall_ns;
static _Atomic uint32_t hold_entered, hold_released;

static void handle_shake(int signal)
{
	const int saved = errno;
	const struct timespec t = { .tv_nsec = load_relaxed(&stall_ns) };

	(void)signal;
	nanosleep(&t, NULL);
	errno = saved;
}

static void handle_hold(int signal)
{
	const int saved = errno;

	(void)signal;
	atomic_store(&hold_entered, 1);
	for (unsigned n = 0; n < MAX_HELD_STEPS && !atomic_load(&hold_released); n++)
		wait_step(n);
	atomic_store(&hold_entered, 2);
	errno = saved;
}

static void install_handlers(void)
{
	struct sigaction action = { .sa_flags = SA_RESTART };

	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SHAKE_SIGNAL);
	sigaddset(&action.sa_mask, HOLD_SIGNAL);
	action.sa_handler = handle_shake;
	if (sigaction(SHAKE_SIGNAL, &action, NULL) != 0)
		abort();
	action.sa_handler = handle_hold;
	if (sigaction(HOLD_SIGNAL, &action, NULL) != 0)
		abort();
}

static void shake_one(struct shaker *shaker)
{
	pthread_mutex_lock(&shaker->lock);
	if (shaker->num_threads) {
		const unsigned victim = rng_below(&shaker->rng, shaker->num_threads);

		store_relaxed(&stall_ns, (long)rng_below(&shaker->rng, 100000));
		if (shaker->threads[victim].alive)
			pthread_kill(shaker->threads[victim].thread, SHAKE_SIGNAL);
	}
	pthread_mutex_unlock(&shaker->lock);
}

static void *shaker_main(void *arg)
{
	struct shaker *shaker = arg;

	while (!load_relaxed(&shaker->stop)) {
		const struct timespec t = { .tv_nsec = (long)rng_below(&shaker->rng, 50000) };

		shake_one(shaker);
		nanosleep(&t, NULL);
	}
	return NULL;
}

void shaker_start(struct shaker *shaker, uint64_t seed, bool enabled)
{
	*shaker = (struct shaker){ .running = enabled && !STRESS_TSAN };
	pthread_mutex_init(&shaker->lock, NULL);
	rng_init(&shaker->rng, seed, 999);
	install_handlers();
	if (shaker->running && pthread_create(&shaker->thread, NULL, shaker_main, shaker) != 0)
		abort();
}

void shaker_stop(struct shaker *shaker)
{
	store_relaxed(&shaker->stop, true);
	if (shaker->running)
		pthread_join(shaker->thread, NULL);
	pthread_mutex_destroy(&shaker->lock);
}

unsigned shaker_enter(struct shaker *shaker)
{
	unsigned number = 0;

	pthread_mutex_lock(&shaker->lock);
	while (number < shaker->num_threads && shaker->threads[number].alive)
		number++;
	if (number == SHAKER_MAX_THREADS)
		abort();
	if (number == shaker->num_threads)
		shaker->num_threads++;
	shaker->threads[number].thread = pthread_self();
	shaker->threads[number].alive = true;
	pthread_mutex_unlock(&shaker->lock);
	return number;
}

void shaker_leave(struct shaker *shaker, unsigned number)
{
	pthread_mutex_lock(&shaker->lock);
	shaker->threads[number].alive = false;
	pthread_mutex_unlock(&shaker->lock);
}

bool hold_request(pthread_t thread)
{
	if (STRESS_TSAN)
		return false;
	atomic_store(&hold_entered, 0);
	atomic_store(&hold_released, 0);
	return pthread_kill(thread, HOLD_SIGNAL) == 0;
}

bool hold_is_entered(void)
{
	return atomic_load(&hold_entered) != 0;
}

bool hold_thread(pthread_t thread)
{
	if (!hold_request(thread))
		return false;
	for (unsigned n = 0; !hold_is_entered(); n++)
		wait_step(n);
	return true;
}

void release_thread(void)
{
	atomic_store(&hold_released, 1);
	/* It must have gone before the next hold begins. */
	for (unsigned n = 0; atomic_load(&hold_entered) != 2; n++)
		wait_step(n);
}
