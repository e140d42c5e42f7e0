/* SPDX-License-Identifier: MIT */
/*
 * Terminal and files of the serial line.
 *
 * On a terminal every key goes to the guest, Ctrl-C too; Ctrl-A x leaves. The
 * terminal is put back by console_close(), whatever way the program ends.
 */
#include "console.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "snapshot_file.h"
#include "util.h"

#define ESCAPE_KEY 1 /* Ctrl-A */

/* ---- Opening and closing -------------------------------------------------------- */

/* The table of Knuth, Morris and Pratt: the guest's output is never looked at twice. */
static int prepare_text(struct console_text *t, const char *text)
{
	size_t length = 0;

	t->text = text;
	t->length = text ? strlen(text) : 0;
	if (t->length == 0)
		return 0;
	t->fallback = calloc(t->length + 1, sizeof(size_t));
	if (!t->fallback)
		return -ENOMEM;
	for (size_t i = 1; i < t->length; i++) {
		while (length > 0 && text[i] != text[length])
			length = t->fallback[length];
		if (text[i] == text[length])
			length++;
		t->fallback[i + 1] = length;
	}
	return 0;
}

static void free_text(struct console_text *t)
{
	free(t->fallback);
	t->fallback = NULL;
	t->length = 0;
}

static int open_input(struct console *console, const struct options *options)
{
	if (options->input && strcmp(options->input, "-") != 0) {
		console->input_fd = open(options->input, O_RDONLY | O_CLOEXEC);
		if (console->input_fd < 0) {
			const int err = errno;

			message("cannot open %s: %s", options->input, strerror(err));
			return -err;
		}
		console->close_input = true;
	} else if (options->input || !options->virtual_time || isatty(STDIN_FILENO)) {
		console->input_fd = STDIN_FILENO;
	}
	return 0;
}

/* Keys come one by one and unchanged; what is printed still gets its carriage returns. */
static void set_raw_mode(struct console *console)
{
	struct termios raw;

	if (console->input_fd < 0 || !isatty(console->input_fd) || tcgetattr(console->input_fd, &console->saved))
		return;
	raw = console->saved;
	cfmakeraw(&raw);
	raw.c_oflag = console->saved.c_oflag;
	if (tcsetattr(console->input_fd, TCSANOW, &raw) == 0)
		console->terminal = true;
}

int console_open(struct console *console, const struct options *options)
{
	int ret;

	memset(console, 0, sizeof(*console));
	console->input_fd = -1;
	console->last = '\n';
	ret = open_input(console, options);
	if (ret)
		return ret;
	ret = prepare_text(&console->exit_on, options->exit_on);
	if (!ret)
		ret = prepare_text(&console->save_at, options->save_at);
	if (ret) {
		message("no memory for the text of --exit-on or --save-at");
		return ret;
	}
	set_raw_mode(console);
	return 0;
}

void console_close(struct console *console)
{
	console_end_line(console);
	if (console->terminal)
		tcsetattr(console->input_fd, TCSANOW, &console->saved);
	console->terminal = false;
	if (console->close_input)
		close(console->input_fd);
	console->close_input = false;
	console->input_fd = -1;
	free_text(&console->exit_on);
	free_text(&console->save_at);
}

/* ---- Output ------------------------------------------------------------------------ */

static void match_text(struct console_text *t, char c)
{
	if (t->length == 0 || t->seen)
		return;
	while (t->matched > 0 && c != t->text[t->matched])
		t->matched = t->fallback[t->matched];
	if (c == t->text[t->matched])
		t->matched++;
	t->seen = t->matched == t->length;
}

void console_put(struct console *console, char c)
{
	if (console->exit_on.seen)
		return;
	putchar(c);
	console->last = c;
	console->unflushed = true;
	match_text(&console->exit_on, c);
	match_text(&console->save_at, c);
}

void console_flush(struct console *console)
{
	if (console->unflushed && fflush(stdout))
		console->output_lost = true;
	console->unflushed = false;
}

void console_end_line(struct console *console)
{
	if (console->last != '\n')
		putchar('\n');
	console->last = '\n';
	fflush(stdout);
	console->unflushed = false;
}

/* ---- Input ------------------------------------------------------------------------- */

static size_t queue_used(const struct console *console)
{
	return console->queue_head - console->queue_tail;
}

static void queue_key(struct console *console, unsigned char key)
{
	console->queue[console->queue_head++ % CONSOLE_QUEUE_SIZE] = key;
}

static void take_key(struct console *console, unsigned char key)
{
	if (console->terminal && !console->after_escape && key == ESCAPE_KEY) {
		console->after_escape = true;
		return;
	}
	if (console->after_escape) {
		console->after_escape = false;
		if (key == 'x' || key == 'X')
			console->left = true;
		if (key != ESCAPE_KEY)
			return; /* other keys after Ctrl-A are kept free */
	}
	queue_key(console, key);
}

bool console_may_bring_more(const struct console *console)
{
	return console->input_fd >= 0 && queue_used(console) < CONSOLE_QUEUE_SIZE;
}

bool console_poll(struct console *console, int wake_fd, int timeout_ms)
{
	const size_t room = CONSOLE_QUEUE_SIZE - queue_used(console);
	/* A negative descriptor is ignored by poll(): it only waits. */
	struct pollfd fds[] = {
		{ .fd = room > 0 ? console->input_fd : -1, .events = POLLIN },
		{ .fd = wake_fd, .events = POLLIN },
	};
	unsigned char keys[256];
	uint64_t wakes;
	ssize_t n;

	console_flush(console);
	if (poll(fds, 2, timeout_ms) <= 0)
		return queue_used(console) > 0;
	if (fds[1].revents && read(wake_fd, &wakes, sizeof(wakes)) < 0)
		wakes = 0; /* it was taken meanwhile: as well */
	if (fds[0].revents) {
		n = read(console->input_fd, keys, room < sizeof(keys) ? room : sizeof(keys));
		if (n <= 0 && !(n < 0 && (errno == EINTR || errno == EAGAIN)) && !console->terminal) {
			if (console->close_input)
				close(console->input_fd);
			console->close_input = false;
			console->input_fd = -1;
		} else if (n <= 0 && console->terminal && errno != EINTR) {
			console->left = true; /* the terminal is gone */
		}
		for (ssize_t i = 0; i < n; i++)
			take_key(console, keys[i]);
	}
	return queue_used(console) > 0;
}

int console_get(struct console *console)
{
	if (queue_used(console) == 0)
		return -1;
	return console->queue[console->queue_tail++ % CONSOLE_QUEUE_SIZE];
}

/* ---- Saved machines ---------------------------------------------------------------- */

bool console_has_typed(const struct console *console)
{
	return queue_used(console) > 0;
}

void console_save(const struct console *console, struct snapshot_out *out)
{
	put_u32(out, (uint32_t)queue_used(console));
	for (size_t i = console->queue_tail; i != console->queue_head; i++)
		put_u8(out, console->queue[i % CONSOLE_QUEUE_SIZE]);
}

void console_load(struct console *console, struct snapshot_in *in)
{
	const uint32_t count = get_u32(in);

	if (count > CONSOLE_QUEUE_SIZE) {
		snapshot_in_wrong(in, "there are more typed characters than are kept");
		return;
	}
	console->queue_tail = 0;
	console->queue_head = count;
	get_data(in, console->queue, count);
}
