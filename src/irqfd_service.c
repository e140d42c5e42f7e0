/* SPDX-License-Identifier: MIT */
/*
 * irqfd_service.c - threads that wait for eventfds.
 *
 * Each thread has an epoll instance of its own, and each eventfd stays with one
 * thread. Watched edge-triggered, an eventfd that is signalled is reported once
 * for that signal, or for several that came before it was reported, whatever its
 * counter says: so nobody has to read the counter, and one system call brings as
 * many events as there are.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "irqfd.h"

#define MAX_EVENTS 64
#define STOP_TOKEN UINT64_MAX /* its generation is odd, but no slot has that index */

/* ---- Waiting ------------------------------------------------------------------------------ */

/* One system call. Returns the number of events. */
static int wait_once(struct irqfd_thread *t, struct epoll_event *events, int timeout)
{
	int n;

	do {
		irqfd_count(&t->waits);
		n = epoll_wait(t->epollfd, events, MAX_EVENTS, timeout);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		irqfd_count(&t->empty_waits);
	return n;
}

/*
 * Look for up to *@window nanoseconds, then sleep. The window halves when it was in
 * vain; it is as long as it may be again when an event came that it would have seen.
 */
static int wait_spinning(struct irqfd_thread *t, struct epoll_event *events, uint64_t *window)
{
	const uint64_t limit = t->irqfds->config.spin_ns, begin = port_now_ns();
	uint64_t now = begin;
	int n;

	while (now - begin < *window) {
		n = wait_once(t, events, 0);
		if (n > 0)
			return n;
		now = port_now_ns();
	}
	*window /= 2;
	n = wait_once(t, events, -1);
	if (port_now_ns() - begin < limit)
		*window = limit;
	return n;
}

static void *service_main(void *arg)
{
	struct irqfd_thread *t = arg;
	struct epoll_event events[MAX_EVENTS];
	uint64_t window = t->irqfds->config.spin_ns;
	bool stop = false;

	while (!stop) {
		const int n = t->irqfds->config.spin_ns ? wait_spinning(t, events, &window) : wait_once(t, events, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.u64 == STOP_TOKEN)
				stop = true;
			else
				vgic_irqfd_ready(t->irqfds, events[i].data.u64);
		}
	}
	return NULL;
}

/* ---- Which thread waits for what -------------------------------------------------------------- */

/* By the slot's index, which is in the token. */
static int epollfd_of(const struct vgic_irqfds *irqfds, uint64_t token)
{
	return irqfds->threads[(uint32_t)token % irqfds->config.num_threads].epollfd;
}

int irqfd_service_watch(struct vgic_irqfds *irqfds, int fd, uint64_t token)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = token };

	return epoll_ctl(epollfd_of(irqfds, token), EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void irqfd_service_unwatch(struct vgic_irqfds *irqfds, int fd, uint64_t token)
{
	struct epoll_event unused = { .events = 0 };

	epoll_ctl(epollfd_of(irqfds, token), EPOLL_CTL_DEL, fd, &unused);
}

/* ---- Life cycle ---------------------------------------------------------------------------------- */

static int start_thread(struct irqfd_thread *t, int stopfd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = STOP_TOKEN };
	int err;

	t->epollfd = epoll_create1(EPOLL_CLOEXEC);
	if (t->epollfd < 0)
		return -errno;
	err = epoll_ctl(t->epollfd, EPOLL_CTL_ADD, stopfd, &event) ? -errno : 0;
	if (!err)
		err = irqfd_thread_start(&t->thread, service_main, t);
	if (err) {
		close(t->epollfd);
		return err;
	}
	t->running = true;
	return 0;
}

int irqfd_service_start(struct vgic_irqfds *irqfds)
{
	const uint32_t num_threads = irqfds->config.num_threads;
	int err = 0;

	irqfds->threads = port_alloc_zeroed(num_threads * sizeof(*irqfds->threads), CACHE_LINE);
	if (!irqfds->threads)
		return -ENOMEM;
	irqfds->stopfd = eventfd(0, EFD_CLOEXEC);
	if (irqfds->stopfd < 0)
		err = -errno;
	for (uint32_t i = 0; i < num_threads && !err; i++) {
		irqfds->threads[i].irqfds = irqfds;
		err = start_thread(&irqfds->threads[i], irqfds->stopfd);
	}
	if (err)
		irqfd_service_stop(irqfds);
	return err;
}

void irqfd_service_stop(struct vgic_irqfds *irqfds)
{
	const uint64_t one = 1;

	if (!irqfds->threads)
		return;
	/* Level-triggered, and never read: all threads see it. */
	while (irqfds->stopfd >= 0 && write(irqfds->stopfd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	for (uint32_t i = 0; i < irqfds->config.num_threads; i++) {
		if (!irqfds->threads[i].running)
			continue;
		pthread_join(irqfds->threads[i].thread, NULL);
		close(irqfds->threads[i].epollfd);
	}
	if (irqfds->stopfd >= 0)
		close(irqfds->stopfd);
	port_free(irqfds->threads);
	irqfds->threads = NULL;
}
