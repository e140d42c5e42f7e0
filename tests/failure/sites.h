/* SPDX-License-Identifier: MIT */
/*
 * Included before each source file of the library when it is built for these tests:
 * every call of something that can fail becomes a *site*, which is known by file and
 * line. All sites that the compiler has seen lie in one section, so that a test can
 * say which of them no scenario has reached.
 *
 * FAILURE_OF_LIBRARY: calls of the port layer and of guest memory. FAILURE_OF_SYSTEM:
 * calls of libc, in the files that make any.
 */
#ifndef TESTS_FAILURE_SITES_H
#define TESTS_FAILURE_SITES_H

struct failure_site {
	const char *file;
	const char *function;
	unsigned line;
	_Atomic unsigned reached; /* calls */
	_Atomic unsigned failed;  /* of these */
};

/* The call that this thread makes now, within another one perhaps: failures are noted at both. */
void failure_enter(struct failure_site *site);
void failure_leave(void);

#define FAILURE_SITE(name, call)                                                                                       \
	({                                                                                                             \
		static struct failure_site site_                                                                       \
			__attribute__((section("failure_sites"), used,                                                 \
				       aligned(8))) = { .file = __FILE__, .function = (name), .line = __LINE__ };      \
		__typeof__(call) result_;                                                                              \
                                                                                                                       \
		failure_enter(&site_);                                                                                 \
		result_ = (call);                                                                                      \
		failure_leave();                                                                                       \
		result_;                                                                                               \
	})

#ifdef FAILURE_OF_LIBRARY
/* Before the names become macros. */
#include "guestmem.h"
#include "port.h"

#define port_alloc_zeroed(...)  FAILURE_SITE("port_alloc_zeroed", port_alloc_zeroed(__VA_ARGS__))
#define port_lock_new(class)    FAILURE_SITE("port_lock_new", port_lock_new(class))
#define guest_read(...)         FAILURE_SITE("guest_read", guest_read(__VA_ARGS__))
#define guest_write(...)        FAILURE_SITE("guest_write", guest_write(__VA_ARGS__))
#define guest_range_exists(...) FAILURE_SITE("guest_range_exists", guest_range_exists(__VA_ARGS__))
#define guest_read_u64(...)     FAILURE_SITE("guest_read_u64", guest_read_u64(__VA_ARGS__))
#endif

#ifdef FAILURE_OF_SYSTEM
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#define posix_memalign(...)     FAILURE_SITE("posix_memalign", posix_memalign(__VA_ARGS__))
#define pthread_mutex_init(...) FAILURE_SITE("pthread_mutex_init", pthread_mutex_init(__VA_ARGS__))
#define getrandom(...)          FAILURE_SITE("getrandom", getrandom(__VA_ARGS__))
#define pthread_create(...)     FAILURE_SITE("pthread_create", pthread_create(__VA_ARGS__))
#define eventfd(...)            FAILURE_SITE("eventfd", eventfd(__VA_ARGS__))
#define epoll_create1(...)      FAILURE_SITE("epoll_create1", epoll_create1(__VA_ARGS__))
#define epoll_ctl(...)          FAILURE_SITE("epoll_ctl", epoll_ctl(__VA_ARGS__))
#define epoll_wait(...)         FAILURE_SITE("epoll_wait", epoll_wait(__VA_ARGS__))
#define fcntl(...)              FAILURE_SITE("fcntl", fcntl(__VA_ARGS__))
#define read(...)               FAILURE_SITE("read", read(__VA_ARGS__))
#define write(...)              FAILURE_SITE("write", write(__VA_ARGS__))
#endif

#endif /* TESTS_FAILURE_SITES_H */
