/* SPDX-License-Identifier: MIT */
/*
 * script.h - the language of the scripts: from a line to an operation.
 *
 * One operation a line, words separated by blanks, # begins a comment. README.md
 * has the list. Both programs, for KVM and for libvgic, use this parser.
 */
#ifndef ORACLE_SCRIPT_H
#define ORACLE_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "target.h"

#define MAX_WORDS        24
#define LINE_SIZE        512
#define ITS_COMMAND_SIZE 32u

enum op_kind {
	OP_NONE,    /* an empty line */
	OP_MACHINE, /* a description of the machine */
	OP_GUEST,   /* an access by a vCPU */
	OP_SWEEP,   /* a vCPU reads all words of a range */
	OP_END,     /* a vCPU ends what it has acknowledged last */
	OP_RUN,     /* a vCPU runs in the guest from here... */
	OP_STOP,    /* ...to here */
	OP_TAKE,    /* a vCPU acknowledges and ends all it has */
	OP_ATTR,
	OP_COMMAND, /* an ITS command, through queue and GITS_CWRITER */
	OP_MSI,
	OP_SPI,
	OP_PPI,
	OP_RAM_READ,
	OP_RAM_WRITE,
	OP_RAM_XOR,
	OP_FILL,
	OP_DUMP,
	OP_BOOT,
	OP_MIGRATE,      /* save, and print the state as operations */
	OP_WORDS,        /* so many equal words of memory */
	OP_ACKNOWLEDGED, /* `end` will end this */
};

/* How much OP_BOOT sets up. */
enum boot_extent { BOOT_GIC, BOOT_LPIS, BOOT_ALL };

struct op {
	enum op_kind kind;
	struct machine_description machine;
	uint32_t vcpu; /* index */
	uint32_t its;  /* index */
	struct guest_request guest;
	struct attr_request attr;
	uint64_t command[4];
	uint64_t address;
	uint64_t value;
	uint64_t length;
	unsigned width;
	uint32_t intid;
	bool level;
	uint32_t data, devid, flags;
	enum boot_extent boot;
};

/*
 * Parse a line of a script for a machine; @line is changed. Returns true, or false and the reason. A script that does not
 * parse is a mistake of its author, not a difference.
 */
bool script_parse(char *line, const struct machine_description *machine, struct op *op, char why[RESULT_TEXT]);

/* Where the scripts' tables are: PROP, PEND@v, QUEUE@i, DEVTAB@i, COLTAB@i, ITT@n, L2@n. */
#define PROP_TABLE      (RAM_BASE + 0x100000)
#define PEND_TABLE(v)   (RAM_BASE + 0x200000 + UINT64_C(0x10000) * (v))
#define QUEUE(i)        (RAM_BASE + 0x300000 + UINT64_C(0x100000) * (i))
#define DEVICE_TABLE(i) (RAM_BASE + 0x500000 + UINT64_C(0x100000) * (i))
#define COLLECTIONS(i)  (RAM_BASE + 0x700000 + UINT64_C(0x10000) * (i))
#define LEVEL2(n)       (RAM_BASE + 0x800000 + UINT64_C(0x10000) * (n))
#define ITT(n)          (RAM_BASE + 0x1000000 + UINT64_C(0x80000) * (n))

#endif /* ORACLE_SCRIPT_H */
