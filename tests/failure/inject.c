/* SPDX-License-Identifier: MIT */
/*
 * The calls that the library makes and that can fail, wrapped by the linker: libc's,
 * and through callbacks the guest's memory. Calls are counted for one thread at a
 * time, so that the n-th one is the same in every run; what the threads of the
 * library's own call is only interrupted.
 *
 * Memory is counted here too, so that a leak shows without a sanitizer. No locks but
 * one around the table of live pieces.
 */
#include "inject.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include "its_guest.h"
#include "sites.h"

int __real_posix_memalign(void **memory, size_t align, size_t size);
int __wrap_posix_memalign(void **memory, size_t align, size_t size);
void __real_free(void *memory);
void __wrap_free(void *memory);
int __real_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
ssize_t __real_getrandom(void *buffer, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg);
int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);
int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __real_epoll_ctl(int epollfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epollfd, int op, int fd, struct epoll_event *event);
int __real_epoll_wait(int epollfd, struct epoll_event *events, int max, int timeout);
int __wrap_epoll_wait(int epollfd, struct epoll_event *events, int max, int timeout);
int __real_fcntl64(int fd, int cmd, ...);
int __wrap_fcntl64(int fd, int cmd, ...);
ssize_t __real_read(int fd, void *buffer, size_t size);
ssize_t __wrap_read(int fd, void *buffer, size_t size);
ssize_t __real_write(int fd, const void *buffer, size_t size);
ssize_t __wrap_write(int fd, const void *buffer, size_t size);

/* ---- Which calls fail ---------------------------------------------------------------- */

/* The calls that this thread is in, the outermost first. */
static _Thread_local struct {
	struct failure_site *sites[8];
	unsigned depth;
} current;
static _Thread_local bool armed;
static enum inject_mode mode;
static unsigned wanted, num_calls, num_failures;
static _Atomic bool interrupting;
static _Atomic unsigned num_interruptible;

void failure_enter(struct failure_site *site)
{
	site->reached++;
	if (current.depth == sizeof(current.sites) / sizeof(current.sites[0]))
		abort();
	current.sites[current.depth++] = site;
}

void failure_leave(void)
{
	current.depth--;
}

static void note_failure(void)
{
	for (unsigned i = 0; i < current.depth; i++)
		current.sites[i]->failed++;
}

void inject_begin(enum inject_mode new_mode, unsigned n)
{
	mode = new_mode;
	wanted = n;
	num_calls = 0;
	num_failures = 0;
	armed = true;
}

unsigned inject_end(void)
{
	armed = false;
	return num_failures;
}

unsigned inject_failures(void)
{
	return num_failures;
}

bool inject_call_fails(void)
{
	if (!armed)
		return false;
	num_calls++;
	if (!wanted || (mode == INJECT_ONE ? num_calls != wanted : num_calls < wanted))
		return false;
	num_failures++;
	note_failure();
	return true;
}

void inject_interrupts(bool on)
{
	interrupting = on;
}

static bool is_interrupted(void)
{
	if (!interrupting || !current.depth || num_interruptible++ % 2)
		return false;
	note_failure();
	return true;
}

static int fails_with(int err)
{
	errno = err;
	return -1;
}

/* ---- Memory ------------------------------------------------------------------------------ */

#define MAX_LIVE 4096u

static struct piece {
	void *memory;
	size_t size;
} live[MAX_LIVE];
static unsigned num_live;
static size_t live_bytes;
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;

/* The library takes all of its memory by this one call. */
int __wrap_posix_memalign(void **memory, size_t align, size_t size)
{
	int err;

	if (inject_call_fails())
		return ENOMEM;
	err = __real_posix_memalign(memory, align, size);
	if (err)
		return err;
	pthread_mutex_lock(&live_lock);
	if (num_live == MAX_LIVE)
		abort();
	live[num_live++] = (struct piece){ *memory, size };
	live_bytes += size;
	pthread_mutex_unlock(&live_lock);
	return 0;
}

void __wrap_free(void *memory)
{
	pthread_mutex_lock(&live_lock);
	for (unsigned i = num_live; memory && i-- > 0;) {
		if (live[i].memory != memory)
			continue;
		live_bytes -= live[i].size;
		live[i] = live[--num_live];
		break;
	}
	pthread_mutex_unlock(&live_lock);
	__real_free(memory);
}

unsigned inject_live(void)
{
	return num_live;
}

size_t inject_live_bytes(void)
{
	return live_bytes;
}

/* ---- The system ------------------------------------------------------------------------------ */

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
	return inject_call_fails() ? EAGAIN : __real_pthread_mutex_init(mutex, attr);
}

/* Always the same, so that every run is. */
ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags)
{
	(void)flags;
	if (inject_call_fails())
		return fails_with(ENOSYS);
	memset(buffer, 0x5b, size);
	return (ssize_t)size;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg)
{
	return inject_call_fails() ? EAGAIN : __real_pthread_create(thread, attr, main, arg);
}

int __wrap_eventfd(unsigned count, int flags)
{
	return inject_call_fails() ? fails_with(EMFILE) : __real_eventfd(count, flags);
}

int __wrap_epoll_create1(int flags)
{
	return inject_call_fails() ? fails_with(ENFILE) : __real_epoll_create1(flags);
}

/* EPOLL_CTL_DEL fails if the VMM has closed the descriptor before. */
int __wrap_epoll_ctl(int epollfd, int op, int fd, struct epoll_event *event)
{
	if (!inject_call_fails())
		return __real_epoll_ctl(epollfd, op, fd, event);
	if (op == EPOLL_CTL_DEL)
		__real_epoll_ctl(epollfd, op, fd, event);
	return fails_with(op == EPOLL_CTL_DEL ? EBADF : ENOSPC);
}

int __wrap_epoll_wait(int epollfd, struct epoll_event *events, int max, int timeout)
{
	return is_interrupted() ? fails_with(EINTR) : __real_epoll_wait(epollfd, events, max, timeout);
}

/* With 64-bit offsets, as meson asks for, this is what libc calls it. */
int __wrap_fcntl64(int fd, int cmd, ...)
{
	va_list args;
	int arg;

	va_start(args, cmd);
	arg = va_arg(args, int);
	va_end(args);
	if (current.depth && inject_call_fails())
		return fails_with(cmd == F_DUPFD_CLOEXEC ? EMFILE : EBADF);
	return __real_fcntl64(fd, cmd, arg);
}

/* A read of nothing asks what kind of file it is; that and a write of 0 are done by the caller, and do not sleep. */
ssize_t __wrap_read(int fd, void *buffer, size_t size)
{
	if (size == 0)
		return inject_call_fails() ? fails_with(EIO) : __real_read(fd, buffer, size);
	return is_interrupted() ? fails_with(EINTR) : __real_read(fd, buffer, size);
}

ssize_t __wrap_write(int fd, const void *buffer, size_t size)
{
	uint64_t value = 1;

	if (size == sizeof(value))
		memcpy(&value, buffer, size);
	if (value == 0)
		return inject_call_fails() ? fails_with(EIO) : __real_write(fd, buffer, size);
	return is_interrupted() ? fails_with(EINTR) : __real_write(fd, buffer, size);
}

unsigned inject_open_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += __real_fcntl64(fd, F_GETFD) >= 0;
	return n;
}

/* ---- Guest memory ------------------------------------------------------------------------------ */

static int (*real_guest_read)(void *opaque, uint64_t address, void *buffer, size_t size);
static int (*real_guest_write)(void *opaque, uint64_t address, const void *buffer, size_t size);

/* A read that fails leaves rubbish behind: nobody may look at it. */
static int failing_guest_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	if (!inject_call_fails())
		return real_guest_read(opaque, address, buffer, size);
	memset(buffer, 0xa5, size);
	return -EIO;
}

static int failing_guest_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	return inject_call_fails() ? -EIO : real_guest_write(opaque, address, buffer, size);
}

void inject_into_guest_memory(struct machine *m)
{
	real_guest_read = m->config.ops.guest_read;
	real_guest_write = m->config.ops.guest_write;
	m->config.ops.guest_read = failing_guest_read;
	m->config.ops.guest_write = failing_guest_write;
}

/* ---- Sites ---------------------------------------------------------------------------------------- */

extern struct failure_site __start_failure_sites[], __stop_failure_sites[];

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

unsigned inject_report_sites(unsigned *num_sites)
{
	unsigned num_missed = 0;

	*num_sites = 0;
	for (struct failure_site *s = __start_failure_sites; s < __stop_failure_sites; s++) {
		++*num_sites;
		printf("# src/%s:%u: %s: %u calls, %u failed\n", base_name(s->file), s->line, s->function, s->reached,
		       s->failed);
		if (!s->failed)
			num_missed++;
	}
	return num_missed;
}
