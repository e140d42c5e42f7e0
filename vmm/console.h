/* SPDX-License-Identifier: MIT */
/*
 * The user's end of the serial line: standard output, and for input the terminal,
 * a file, or nothing.
 */
#ifndef VMM_CONSOLE_H
#define VMM_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#define CONSOLE_QUEUE_SIZE 4096u

struct options;
struct snapshot_in;
struct snapshot_out;

/* A text that the guest may print. */
struct console_text {
	const char *text;
	size_t length;    /* 0: none */
	size_t *fallback; /* for each matched length, the longest shorter one that still matches */
	size_t matched;
	bool seen;
};

struct console {
	int input_fd; /* -1: no more input */
	bool close_input;
	bool terminal; /* input is a terminal in raw mode, with Ctrl-A as its escape */
	bool after_escape;
	bool left; /* Ctrl-A x */
	struct termios saved;

	unsigned char queue[CONSOLE_QUEUE_SIZE]; /* typed, and not yet taken by the guest */
	size_t queue_head;
	size_t queue_tail;

	struct console_text exit_on;
	struct console_text save_at;

	char last; /* last character printed */
	bool unflushed;
	bool output_lost; /* standard output takes no more */
};

/* Open input and output as the options say. Returns 0, or prints a line, negative errno. */
int console_open(struct console *console, const struct options *options);

/* Flush the output and give the terminal back. May be called more than once. */
void console_close(struct console *console);

/* One character from the guest. After the --exit-on text nothing more is printed. */
void console_put(struct console *console, char c);

void console_flush(struct console *console);

/* End the line that the guest has begun, if it has, before something else is said. */
void console_end_line(struct console *console);

/*
 * Wait at most @timeout_ms (-1: for ever) for input and queue it. Returns true if there is any for the guest. A signal of
 * the eventfd @wake_fd ends the wait too, and is taken.
 */
bool console_poll(struct console *console, int wake_fd, int timeout_ms);

/* The next character for the guest, or -1. */
int console_get(struct console *console);

/* To and from a saved machine: what was typed and not yet taken. Loading replaces what is there. */
bool console_has_typed(const struct console *console);
void console_save(const struct console *console, struct snapshot_out *out);
void console_load(struct console *console, struct snapshot_in *in);

/* Can input still arrive, and is there room for it? */
bool console_may_bring_more(const struct console *console);

#endif /* VMM_CONSOLE_H */
