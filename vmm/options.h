/* SPDX-License-Identifier: MIT */
/* The command line. */
#ifndef VMM_OPTIONS_H
#define VMM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_CPUS  512u
#define MAX_DISKS 16u

/* --disk and --vhost-user-blk */
struct disk_option {
	const char *path; /* of the file, or of the socket */
	bool vhost_user;
	unsigned queues;  /* 0: not given */
	unsigned vectors; /* 0: not given */
	bool read_only;
};

struct options {
	const char *kernel;    /* NULL with --load */
	const char *initrd;    /* NULL: none */
	const char *append;    /* never NULL */
	const char *input;     /* NULL: the terminal, if there is one */
	const char *exit_on;   /* NULL: never */
	const char *trace_gic; /* NULL: no trace */
	const char *load;      /* NULL: boot */
	const char *save_to;   /* NULL: cannot be saved */
	const char *save_at;   /* NULL: not at a text */
	uint64_t save_after;   /* guest instructions; 0: not after any number */
	bool save_attributes;  /* the interrupt controller register by register */
	unsigned num_cpus;
	uint64_t memory; /* bytes */
	bool has_load_address;
	uint64_t load_address;
	bool virtual_time;
	bool no_reboot;
	uint64_t timeout_ns;         /* 0: none */
	uint32_t vcpu_ids[MAX_CPUS]; /* one for each CPU */
	struct disk_option disks[MAX_DISKS];
	unsigned num_disks;
};

/*
 * Fill @options from the command line. Returns -1 if the program is to go on, or the exit status: after --help and
 * --version, and after a mistake, which has been reported.
 */
int options_parse(struct options *options, int argc, char **argv);

#endif /* VMM_OPTIONS_H */
