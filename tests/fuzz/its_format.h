/* SPDX-License-Identifier: MIT */
/*
 * The input of the targets "its" and "its_hostile": where things are in guest
 * memory, and what the bytes of numbers and commands mean, for the targets, which
 * read them, and for the program that makes seeds (seeds.c), which writes them.
 *
 * A byte of configuration, then operations, each of a byte that has its kind in
 * the low five bits, the vCPU or the ITS above, and a flag in the highest bit.
 */
#ifndef TESTS_FUZZ_ITS_FORMAT_H
#define TESTS_FUZZ_ITS_FORMAT_H

#include <gic_arch.h>
#include <its_arch.h>
#include <stdint.h>
#include <vgic/vgic.h>

#include "fuzz.h"
#include "its_layout.h"

#define ITS_KIND(op)  ((op)&31u)
#define ITS_WHICH(op) ((op) >> 5 & 3u)
#define ITS_FLAG      0x80u

enum its_kind {
	ITS_COMMAND,      /* a command; the flag: CWRITER moves behind all that were placed */
	ITS_RAW_COMMAND,  /* 32 bytes; the same flag */
	ITS_SIGNAL,       /* device, event */
	ITS_MAPPED,       /* a byte: the signal of some event that is mapped */
	ITS_TAKE,         /* acknowledge; without the flag, end */
	ITS_REDIST_WRITE, /* width, offset, number */
	ITS_REDIST_READ,  /* width, offset */
	ITS_POKE,         /* address, a byte */
	ITS_POKE64,       /* address, number */
	ITS_HOLE,         /* address: no memory in a page; with the flag, no hole */
	ITS_WRITE,        /* width, offset, number */
	ITS_READ,         /* width, offset */
	ITS_ICC_WRITE,    /* u16, number */
	ITS_ICC_READ,     /* u16 */
	ITS_DIST_CTLR,    /* a byte */
	ITS_MOVE,
	ITS_RESET,
	ITS_COMPARE,
	ITS_SET_UP_VCPU, /* as a kernel does; the flag: its pending table is zero */
	ITS_SET_UP,      /* the tables of an ITS; the flag: of two levels */
	ITS_ONLINE,      /* the flag */
	ITS_NUM_KINDS,
};

/* Those of "its_hostile". */
enum hostile_kind {
	HOSTILE_FILL,        /* address, length, bytes */
	HOSTILE_POKE64,      /* address, number */
	HOSTILE_COMMANDS,    /* ITS; number of commands, each as in its_format.h: written to the queue and submitted */
	HOSTILE_RAW_QUEUE,   /* ITS; number of bytes, the bytes: the same */
	HOSTILE_CHANGE,      /* after how many accesses, number: then this is where the access is; the flag: it fails */
	HOSTILE_HOLE,        /* address; the flag: none */
	HOSTILE_ITS_WRITE,   /* ITS; width, offset, number; the flag: the work is done to its end */
	HOSTILE_ITS_READ,    /* ITS; width, offset */
	HOSTILE_REDIST,      /* vCPU; width, offset, number */
	HOSTILE_SIGNAL,      /* ITS; device, event */
	HOSTILE_TAKE,        /* vCPU */
	HOSTILE_WORK,        /* a part; the flag: all */
	HOSTILE_SET_UP,      /* as a kernel does */
	HOSTILE_TABLES,      /* ITS; the flag: restore, else save */
	HOSTILE_MOVE,        /* save and restore */
	HOSTILE_PENDING,     /* save the pending tables */
	HOSTILE_RESET,       /* the flag: of the ITS alone */
	HOSTILE_SIGNAL_ADDR, /* ITS; device, event: by the doorbell's address */
	HOSTILE_NUM_KINDS,
};

/* A byte of configuration: profile, vCPUs, which ITSes, and whether the guest has set everything up already. */
#define ITS_CONFIG_KVM   0x01u
#define ITS_CONFIG_VCPUS 0x06u /* minus one, 3 of them at most */
#define ITS_CONFIG_ITSES 0x18u /* 0 to 2, then 2 of small ids */
#define ITS_NUM_CONFIGS  0x20u /* without the next bit */
#define ITS_CONFIG_BARE  0x80u
#define ITS_MAX_VCPUS    3u
#define ITS_MAX_ITSES    2u
#define ITS_NUM_SPIS     32u
#define ITS_LPI_ID_BITS  14u

/* ---- Numbers ---- */

/*
 * Tags: below 0xa0 they are the number, then 32 LPIs, then 32 single bits, then numbers of one byte and more, then what
 * is at the edge of something, then a place in memory with a number that is added.
 */
#define ITS_NUMBER_LPI    0xa0u
#define ITS_NUMBER_BIT    0xc0u
#define ITS_NUMBER_BYTES  0xe0u
#define ITS_NUMBER_EDGES  0xe8u
#define ITS_NUMBER_PLACES 0xf4u

static const uint64_t its_edges[] = { 8191,  8255,       8256,       GITS_TRANSLATER, 16384,      65535,
				      65536, UINT32_MAX, UINT64_MAX, 1ull << 62,      1ull << 63, GIC_PIDR2 };

static const uint64_t its_places[] = {
	PROPERTY_TABLE,  PENDING_TABLE(0), PENDING_TABLE(1),    PENDING_TABLE(2),    QUEUE(0),        QUEUE(1),
	DEVICE_TABLE(0), DEVICE_TABLE(1),  COLLECTION_TABLE(0), COLLECTION_TABLE(1), LEVEL2_TABLE(0), ITT,
};

static inline uint64_t its_read_plain(struct input *input)
{
	const uint8_t tag = input_u8(input);

	if (tag < ITS_NUMBER_LPI)
		return tag;
	if (tag < ITS_NUMBER_BIT)
		return GIC_FIRST_LPI + (tag - ITS_NUMBER_LPI);
	if (tag < ITS_NUMBER_BYTES)
		return 1ull << (tag - ITS_NUMBER_BIT);
	if (tag < ITS_NUMBER_EDGES)
		return input_uint(input, tag - ITS_NUMBER_BYTES + 1u);
	return its_edges[tag % (sizeof(its_edges) / sizeof(its_edges[0]))];
}

static inline uint64_t its_read_number(struct input *input)
{
	uint64_t place;

	if (input->size == 0 || *input->data < ITS_NUMBER_PLACES)
		return its_read_plain(input);
	place = its_places[(input_u8(input) - ITS_NUMBER_PLACES) % (sizeof(its_places) / sizeof(its_places[0]))];
	return place + its_read_plain(input);
}

/* ---- Commands ---- */

#define ITS_COMMAND_VALID 0x80u /* in the byte of the opcode */

/* A byte with opcode and V, then the fields, of which each kind of command has others in its third doubleword. */
static inline void its_read_command(struct input *input, uint64_t *dw)
{
	const uint8_t opcode = input_u8(input);

	dw[0] = (opcode & 0x7f) | its_read_plain(input) << 32;
	dw[1] = (its_read_plain(input) & UINT32_MAX) | its_read_plain(input) << 32;
	dw[3] = 0;
	switch (opcode & 0x7f) {
	case ITS_CMD_MAPD:
		dw[2] = its_read_number(input);
		break;
	case ITS_CMD_MAPC:
		dw[2] = its_read_plain(input);
		dw[2] |= its_read_plain(input) << 16;
		break;
	case ITS_CMD_SYNC:
		dw[2] = its_read_plain(input) << 16;
		break;
	case ITS_CMD_MOVALL:
		dw[2] = its_read_plain(input) << 16;
		dw[3] = its_read_plain(input) << 16;
		break;
	default:
		dw[2] = its_read_plain(input);
		break;
	}
	if (opcode & ITS_COMMAND_VALID)
		dw[2] |= ITS_CMD_VALID;
}

/* 1, 2, 4 or 8; one byte in six is none of these. */
static inline unsigned its_read_width(struct input *input)
{
	const uint8_t byte = input_u8(input);

	return byte < 4 ? 1u << byte : byte % 12u;
}

#endif /* TESTS_FUZZ_ITS_FORMAT_H */
