/* SPDX-License-Identifier: MIT */
/*
 * script.c - parses the scripts: see script.h for what they are.
 *
 * A number is a sum of terms, each a literal or a name: GITS_CBASER@1+4. What a
 * name of a register means depends on the place: an offset in an attribute, an
 * address in an access of the guest.
 */
#include "script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Names -------------------------------------------------------------------------------- */

#define SYSREG(op0, op1, crn, crm, op2) ((op0) << 14 | (op1) << 11 | (crn) << 7 | (crm) << 3 | (op2))

const struct sysreg_name sysregs[NUM_SYSREGS] = {
	[SYSREG_PMR] = { "PMR", SYSREG(3u, 0u, 4u, 6u, 0u) },
	[SYSREG_IAR0] = { "IAR0", SYSREG(3u, 0u, 12u, 8u, 0u) },
	[SYSREG_EOIR0] = { "EOIR0", SYSREG(3u, 0u, 12u, 8u, 1u) },
	[SYSREG_HPPIR0] = { "HPPIR0", SYSREG(3u, 0u, 12u, 8u, 2u) },
	[SYSREG_BPR0] = { "BPR0", SYSREG(3u, 0u, 12u, 8u, 3u) },
	[SYSREG_AP0R0] = { "AP0R0", SYSREG(3u, 0u, 12u, 8u, 4u) },
	[SYSREG_AP0R1] = { "AP0R1", SYSREG(3u, 0u, 12u, 8u, 5u) },
	[SYSREG_AP1R0] = { "AP1R0", SYSREG(3u, 0u, 12u, 9u, 0u) },
	[SYSREG_AP1R1] = { "AP1R1", SYSREG(3u, 0u, 12u, 9u, 1u) },
	[SYSREG_DIR] = { "DIR", SYSREG(3u, 0u, 12u, 11u, 1u) },
	[SYSREG_RPR] = { "RPR", SYSREG(3u, 0u, 12u, 11u, 3u) },
	[SYSREG_SGI1R] = { "SGI1R", SYSREG(3u, 0u, 12u, 11u, 5u) },
	[SYSREG_ASGI1R] = { "ASGI1R", SYSREG(3u, 0u, 12u, 11u, 6u) },
	[SYSREG_SGI0R] = { "SGI0R", SYSREG(3u, 0u, 12u, 11u, 7u) },
	[SYSREG_IAR1] = { "IAR1", SYSREG(3u, 0u, 12u, 12u, 0u) },
	[SYSREG_EOIR1] = { "EOIR1", SYSREG(3u, 0u, 12u, 12u, 1u) },
	[SYSREG_HPPIR1] = { "HPPIR1", SYSREG(3u, 0u, 12u, 12u, 2u) },
	[SYSREG_BPR1] = { "BPR1", SYSREG(3u, 0u, 12u, 12u, 3u) },
	[SYSREG_CTLR] = { "CTLR", SYSREG(3u, 0u, 12u, 12u, 4u) },
	[SYSREG_SRE] = { "SRE", SYSREG(3u, 0u, 12u, 12u, 5u) },
	[SYSREG_IGRPEN0] = { "IGRPEN0", SYSREG(3u, 0u, 12u, 12u, 6u) },
	[SYSREG_IGRPEN1] = { "IGRPEN1", SYSREG(3u, 0u, 12u, 12u, 7u) },
};

/* What the number behind @ selects. */
enum space { SPACE_GICD, SPACE_GICR, SPACE_GITS, SPACE_RAM };

struct name {
	const char *name;
	enum space space;
	uint64_t value;  /* an offset in the frame; in memory an address */
	uint64_t stride; /* in memory: from one to the next */
};

static const struct name names[] = {
	{ "GICD_CTLR", SPACE_GICD, 0x0, 0 },
	{ "GICD_TYPER", SPACE_GICD, 0x4, 0 },
	{ "GICD_IIDR", SPACE_GICD, 0x8, 0 },
	{ "GICD_TYPER2", SPACE_GICD, 0xc, 0 },
	{ "GICD_STATUSR", SPACE_GICD, 0x10, 0 },
	{ "GICD_SETSPI_NSR", SPACE_GICD, 0x40, 0 },
	{ "GICD_CLRSPI_NSR", SPACE_GICD, 0x48, 0 },
	{ "GICD_IGROUPR", SPACE_GICD, 0x80, 0 },
	{ "GICD_ISENABLER", SPACE_GICD, 0x100, 0 },
	{ "GICD_ICENABLER", SPACE_GICD, 0x180, 0 },
	{ "GICD_ISPENDR", SPACE_GICD, 0x200, 0 },
	{ "GICD_ICPENDR", SPACE_GICD, 0x280, 0 },
	{ "GICD_ISACTIVER", SPACE_GICD, 0x300, 0 },
	{ "GICD_ICACTIVER", SPACE_GICD, 0x380, 0 },
	{ "GICD_IPRIORITYR", SPACE_GICD, 0x400, 0 },
	{ "GICD_ITARGETSR", SPACE_GICD, 0x800, 0 },
	{ "GICD_ICFGR", SPACE_GICD, 0xc00, 0 },
	{ "GICD_IGRPMODR", SPACE_GICD, 0xd00, 0 },
	{ "GICD_NSACR", SPACE_GICD, 0xe00, 0 },
	{ "GICD_SGIR", SPACE_GICD, 0xf00, 0 },
	{ "GICD_CPENDSGIR", SPACE_GICD, 0xf10, 0 },
	{ "GICD_SPENDSGIR", SPACE_GICD, 0xf20, 0 },
	{ "GICD_IROUTER", SPACE_GICD, 0x6000, 0 },
	{ "GICD_IDS", SPACE_GICD, 0xffd0, 0 },
	{ "GICD", SPACE_GICD, 0, 0 },
	{ "GICR_CTLR", SPACE_GICR, 0x0, 0 },
	{ "GICR_IIDR", SPACE_GICR, 0x4, 0 },
	{ "GICR_TYPER", SPACE_GICR, 0x8, 0 },
	{ "GICR_STATUSR", SPACE_GICR, 0x10, 0 },
	{ "GICR_WAKER", SPACE_GICR, 0x14, 0 },
	{ "GICR_SETLPIR", SPACE_GICR, 0x40, 0 },
	{ "GICR_CLRLPIR", SPACE_GICR, 0x48, 0 },
	{ "GICR_PROPBASER", SPACE_GICR, 0x70, 0 },
	{ "GICR_PENDBASER", SPACE_GICR, 0x78, 0 },
	{ "GICR_INVLPIR", SPACE_GICR, 0xa0, 0 },
	{ "GICR_INVALLR", SPACE_GICR, 0xb0, 0 },
	{ "GICR_SYNCR", SPACE_GICR, 0xc0, 0 },
	{ "GICR_IDS", SPACE_GICR, 0xffd0, 0 },
	{ "GICR_IGROUPR0", SPACE_GICR, 0x10080, 0 },
	{ "GICR_ISENABLER0", SPACE_GICR, 0x10100, 0 },
	{ "GICR_ICENABLER0", SPACE_GICR, 0x10180, 0 },
	{ "GICR_ISPENDR0", SPACE_GICR, 0x10200, 0 },
	{ "GICR_ICPENDR0", SPACE_GICR, 0x10280, 0 },
	{ "GICR_ISACTIVER0", SPACE_GICR, 0x10300, 0 },
	{ "GICR_ICACTIVER0", SPACE_GICR, 0x10380, 0 },
	{ "GICR_IPRIORITYR", SPACE_GICR, 0x10400, 0 },
	{ "GICR_ICFGR", SPACE_GICR, 0x10c00, 0 },
	{ "GICR_IGRPMODR0", SPACE_GICR, 0x10d00, 0 },
	{ "GICR_NSACR", SPACE_GICR, 0x10e00, 0 },
	{ "GICR", SPACE_GICR, 0, 0 },
	{ "GITS_CTLR", SPACE_GITS, 0x0, 0 },
	{ "GITS_IIDR", SPACE_GITS, 0x4, 0 },
	{ "GITS_TYPER", SPACE_GITS, 0x8, 0 },
	{ "GITS_CBASER", SPACE_GITS, 0x80, 0 },
	{ "GITS_CWRITER", SPACE_GITS, 0x88, 0 },
	{ "GITS_CREADR", SPACE_GITS, 0x90, 0 },
	{ "GITS_BASER0", SPACE_GITS, 0x100, 0 },
	{ "GITS_BASER1", SPACE_GITS, 0x108, 0 },
	{ "GITS_BASER2", SPACE_GITS, 0x110, 0 },
	{ "GITS_BASER7", SPACE_GITS, 0x138, 0 },
	{ "GITS_IDS", SPACE_GITS, 0xffd0, 0 },
	{ "GITS_TRANSLATER", SPACE_GITS, 0x10040, 0 },
	{ "GITS", SPACE_GITS, 0, 0 },
	{ "RAM", SPACE_RAM, RAM_BASE, 0 },
	{ "RAM_END", SPACE_RAM, RAM_BASE + RAM_SIZE, 0 },
	{ "PROP", SPACE_RAM, PROP_TABLE, 0 },
	{ "PEND", SPACE_RAM, PEND_TABLE(0), PEND_TABLE(1) - PEND_TABLE(0) },
	{ "QUEUE", SPACE_RAM, QUEUE(0), QUEUE(1) - QUEUE(0) },
	{ "DEVTAB", SPACE_RAM, DEVICE_TABLE(0), DEVICE_TABLE(1) - DEVICE_TABLE(0) },
	{ "COLTAB", SPACE_RAM, COLLECTIONS(0), COLLECTIONS(1) - COLLECTIONS(0) },
	{ "L2", SPACE_RAM, LEVEL2(0), LEVEL2(1) - LEVEL2(0) },
	{ "ITT", SPACE_RAM, ITT(0), ITT(1) - ITT(0) },
};

/* ---- The parser's state ---------------------------------------------------------------------- */

struct parser {
	const struct machine_description *machine;
	const char *words[MAX_WORDS];
	unsigned num_words;
	unsigned at;
	bool as_offset; /* registers' names are offsets in their frames */
	char *why;
	bool failed;
};

/* The first complaint is the one that helps. */
static void complain(struct parser *p, const char *what, const char *word)
{
	if (!p->failed)
		snprintf(p->why, RESULT_TEXT, "%s%s%.80s%s", what, word ? " '" : "", word ? word : "", word ? "'" : "");
	p->failed = true;
}

static const char *next_word(struct parser *p)
{
	if (p->at < p->num_words)
		return p->words[p->at++];
	complain(p, "a word is missing at the end", NULL);
	return "";
}

static bool take_word(struct parser *p, const char *word)
{
	if (p->at >= p->num_words || strcmp(p->words[p->at], word) != 0)
		return false;
	p->at++;
	return true;
}

/* ---- Numbers --------------------------------------------------------------------------------------- */

static bool parse_literal(const char *text, uint64_t *value)
{
	char *end;

	*value = strtoull(text, &end, 0);
	return end != text && *end == '\0';
}

static uint64_t resolve(struct parser *p, const struct name *n, uint64_t which)
{
	if (n->space == SPACE_RAM)
		return n->value + n->stride * which;
	if (p->as_offset)
		return n->value;
	if (n->space == SPACE_GICD)
		return GICD_BASE + n->value;
	if (n->space == SPACE_GITS)
		return GITS_BASE(which) + n->value;
	return GICR_BASE + GICR_SIZE * which + n->value;
}

static uint64_t parse_term(struct parser *p, const char *term)
{
	char name[64];
	uint64_t value, which = 0;
	char *at;

	if (parse_literal(term, &value))
		return value;
	snprintf(name, sizeof(name), "%s", term);
	at = strchr(name, '@');
	if (at) {
		*at = '\0';
		if (!parse_literal(at + 1, &which))
			complain(p, "no number behind @ in", term);
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i].name, name) == 0)
			return resolve(p, &names[i], which);
	}
	complain(p, "neither a number nor a name:", term);
	return 0;
}

static uint64_t parse_sum(struct parser *p, const char *word)
{
	char copy[128], *rest = copy;
	uint64_t sum = 0;

	snprintf(copy, sizeof(copy), "%s", word);
	for (char *term = strsep(&rest, "+"); term; term = strsep(&rest, "+"))
		sum += parse_term(p, term);
	return sum;
}

static uint64_t next_number(struct parser *p)
{
	return parse_sum(p, next_word(p));
}

/* "dev=7": a number with its name in front of it. */
static bool named_number(struct parser *p, const char *name, uint64_t *value)
{
	const size_t length = strlen(name);

	if (p->at >= p->num_words || strncmp(p->words[p->at], name, length) != 0 || p->words[p->at][length] != '=')
		return false;
	*value = parse_sum(p, p->words[p->at++] + length + 1);
	return true;
}

/* "v2", "its1": an index with a letter in front of it. */
static bool parse_index(const char *word, const char *prefix, uint32_t end, uint32_t *index)
{
	uint64_t value;

	if (strncmp(word, prefix, strlen(prefix)) != 0 || !parse_literal(word + strlen(prefix), &value) || value >= end)
		return false;
	*index = (uint32_t)value;
	return true;
}

static uint32_t next_vcpu(struct parser *p)
{
	const char *word = next_word(p);
	uint32_t index = 0;

	if (!parse_index(word, "v", p->machine->num_vcpus, &index))
		complain(p, "no vCPU of this machine:", word);
	return index;
}

static uint32_t next_sysreg(struct parser *p)
{
	const char *word = next_word(p);

	for (uint32_t i = 0; i < NUM_SYSREGS; i++) {
		if (strcmp(sysregs[i].name, word) == 0)
			return i;
	}
	complain(p, "no register of the CPU interface:", word);
	return 0;
}

/* ---- Operations ---------------------------------------------------------------------------------------- */

/* machine vcpus=2,0,1 spis=64 its=1 rev=3 */
static void parse_ids(struct parser *p, const char *list, struct machine_description *m)
{
	char copy[128], *rest = copy;

	snprintf(copy, sizeof(copy), "%s", list);
	m->num_vcpus = 0;
	for (char *id = strsep(&rest, ","); id; id = strsep(&rest, ",")) {
		if (m->num_vcpus == MAX_VCPUS) {
			complain(p, "too many vCPUs", NULL);
			return;
		}
		m->ids[m->num_vcpus++] = (uint32_t)parse_sum(p, id);
	}
}

static void parse_machine(struct parser *p, struct op *op)
{
	struct machine_description *m = &op->machine;
	uint64_t value;

	*m = (struct machine_description){ .num_vcpus = 1, .num_spis = DEFAULT_SPIS, .revision = KVM_REVISION };
	op->kind = OP_MACHINE;
	while (p->at < p->num_words && !p->failed) {
		if (strncmp(p->words[p->at], "vcpus=", 6) == 0)
			parse_ids(p, p->words[p->at++] + 6, m);
		else if (named_number(p, "spis", &value))
			m->num_spis = (uint32_t)value;
		else if (named_number(p, "its", &value) && value <= MAX_ITSES)
			m->num_itses = (uint32_t)value;
		else if (named_number(p, "rev", &value))
			m->revision = (uint32_t)value;
		else
			complain(p, "machine does not know", next_word(p));
	}
}

static unsigned parse_width(const char *digits)
{
	uint64_t bits;

	if (!parse_literal(digits, &bits) || (bits != 8 && bits != 16 && bits != 32 && bits != 64))
		return 0;
	return (unsigned)bits / 8;
}

static void parse_access(struct parser *p, struct op *op, const char *word)
{
	struct guest_request *g = &op->guest;

	g->op = word[0] == 'r' ? GUEST_READ : GUEST_WRITE;
	g->width = parse_width(word + 1);
	if ((word[0] != 'r' && word[0] != 'w') || g->width == 0) {
		complain(p, "a vCPU cannot", word);
		return;
	}
	g->address = next_number(p);
	/* Where the MMU is off this is an alignment fault, and the controller never sees it. */
	if (g->address % g->width != 0)
		complain(p, "not aligned:", p->words[p->at - 1]);
	if (g->op == GUEST_WRITE)
		g->value = next_number(p);
}

static void parse_many(struct parser *p, struct guest_request *g, enum guest_op op)
{
	uint64_t bytes;

	g->op = op;
	g->address = next_number(p);
	bytes = next_number(p);
	g->count = (uint32_t)(bytes / 4);
	if (g->address % 4 != 0 || bytes % 4 != 0 || bytes / 4 > MAX_SWEEP)
		complain(p, "multiples of 4, and at most 64 KiB", NULL);
}

/* v0 r32 ADDRESS | v0 w32 ADDRESS VALUE | v0 mrs REG | v0 msr REG VALUE | v0 ack | v0 eoi N | v0 dir N | v0 lines | ... */
static void parse_guest(struct parser *p, struct op *op)
{
	struct guest_request *g = &op->guest;
	const char *word = next_word(p);

	op->kind = OP_GUEST;
	if (strcmp(word, "mrs") == 0) {
		g->op = GUEST_MRS;
		g->address = next_sysreg(p);
	} else if (strcmp(word, "msr") == 0) {
		g->op = GUEST_MSR;
		g->address = next_sysreg(p);
		g->value = next_number(p);
	} else if (strcmp(word, "ack") == 0) {
		*g = (struct guest_request){ .op = GUEST_MRS, .address = SYSREG_IAR1 };
	} else if (strcmp(word, "eoi") == 0) {
		*g = (struct guest_request){ .op = GUEST_MSR, .address = SYSREG_EOIR1, .value = next_number(p) };
	} else if (strcmp(word, "dir") == 0) {
		*g = (struct guest_request){ .op = GUEST_MSR, .address = SYSREG_DIR, .value = next_number(p) };
	} else if (strcmp(word, "lines") == 0) {
		g->op = GUEST_LINES;
	} else if (strcmp(word, "end") == 0) {
		op->kind = OP_END;
	} else if (strcmp(word, "take") == 0) {
		op->kind = OP_TAKE;
	} else if (strcmp(word, "run") == 0) {
		op->kind = OP_RUN;
	} else if (strcmp(word, "stop") == 0) {
		op->kind = OP_STOP;
	} else if (strcmp(word, "sweep") == 0) {
		op->kind = OP_SWEEP;
		parse_many(p, g, GUEST_SWEEP);
	} else if (strcmp(word, "flood") == 0) {
		parse_many(p, g, GUEST_FLOOD);
		g->value = next_number(p);
	} else {
		parse_access(p, op, word);
	}
}

/* ---- Attributes ------------------------------------------------------------------------------------------ */

/* The upper half of an attribute of one vCPU: Aff3.Aff2.Aff1.Aff0. */
static uint64_t attr_of_vcpu(struct parser *p)
{
	const uint64_t affinity = target_affinity(p->machine->ids[next_vcpu(p)]);

	return ((affinity & 0xffffff) | (affinity >> 8 & 0xff000000)) << 32;
}

/* get|set dist X | redist v0 X | cpu v0 REG | level v0 INTID | its0 X, then the value of a set. */
static void parse_attr(struct parser *p, struct op *op, bool set)
{
	struct attr_request *a = &op->attr;
	const char *word = next_word(p);

	op->kind = OP_ATTR;
	a->set = set;
	a->device = ATTR_VGIC;
	p->as_offset = true;
	if (strcmp(word, "dist") == 0) {
		a->group = ATTR_DIST_REGS;
		a->attr = next_number(p);
	} else if (strcmp(word, "redist") == 0) {
		a->group = ATTR_REDIST_REGS;
		a->attr = attr_of_vcpu(p);
		a->attr |= next_number(p);
	} else if (strcmp(word, "cpu") == 0) {
		a->group = ATTR_CPU_SYSREGS;
		a->attr = attr_of_vcpu(p);
		a->attr |= sysregs[next_sysreg(p)].encoding;
	} else if (strcmp(word, "level") == 0) {
		a->group = ATTR_LEVEL_INFO;
		a->attr = attr_of_vcpu(p);
		a->attr |= next_number(p);
	} else if (parse_index(word, "its", p->machine->num_itses, &a->its)) {
		a->device = ATTR_ITS;
		a->group = ATTR_ITS_REGS;
		a->attr = next_number(p);
	} else {
		complain(p, "no group of attributes:", word);
	}
	p->as_offset = false;
	if (set)
		a->value = next_number(p);
}

/* attr get|set vgic|its0 GROUP ATTR [VALUE]: anything */
static void parse_raw_attr(struct parser *p, struct op *op)
{
	struct attr_request *a = &op->attr;
	const char *word;

	op->kind = OP_ATTR;
	a->set = take_word(p, "set");
	if (!a->set && !take_word(p, "get"))
		complain(p, "attr get or attr set, not", next_word(p));
	word = next_word(p);
	a->device = strcmp(word, "vgic") == 0 ? ATTR_VGIC : ATTR_ITS;
	if (a->device == ATTR_ITS && !parse_index(word, "its", p->machine->num_itses, &a->its))
		complain(p, "no device of this machine:", word);
	a->group = (uint32_t)next_number(p);
	a->attr = next_number(p);
	if (a->set)
		a->value = next_number(p);
}

/* save|restore|reset its0, save pending */
static void parse_ctrl(struct parser *p, struct op *op, uint64_t its_attr)
{
	struct attr_request *a = &op->attr;
	const char *word = next_word(p);

	op->kind = OP_ATTR;
	*a = (struct attr_request){ .device = ATTR_ITS, .group = ATTR_CTRL, .attr = its_attr, .set = true };
	if (its_attr == CTRL_SAVE_TABLES && strcmp(word, "pending") == 0) {
		a->device = ATTR_VGIC;
		a->attr = CTRL_SAVE_PENDING;
	} else if (!parse_index(word, "its", p->machine->num_itses, &a->its)) {
		complain(p, "no ITS of this machine:", word);
	}
}

/* ---- ITS commands -------------------------------------------------------------------------------------------- */

#define VALID (UINT64_C(1) << 63)

static void command_of_event(struct parser *p, uint64_t c[4], unsigned opcode)
{
	c[0] = opcode | next_number(p) << 32;
	c[1] = next_number(p) & UINT32_MAX;
}

static void parse_mapd(struct parser *p, uint64_t c[4])
{
	c[0] = 0x08 | next_number(p) << 32;
	c[2] = VALID | next_number(p);
	c[1] = next_number(p) - 1; /* bits of EventID, less one */
	c[1] &= 0x1f;
}

static void parse_mapc(struct parser *p, uint64_t c[4], uint64_t valid)
{
	c[0] = 0x09;
	c[2] = valid | (next_number(p) & 0xffff);
	if (valid)
		c[2] |= next_number(p) << 16;
}

static void parse_mapti(struct parser *p, uint64_t c[4])
{
	command_of_event(p, c, 0x0a);
	c[1] |= next_number(p) << 32;
	c[2] = next_number(p) & 0xffff;
}

static void parse_event_and_collection(struct parser *p, uint64_t c[4], unsigned opcode)
{
	command_of_event(p, c, opcode);
	c[2] = next_number(p) & 0xffff;
}

/* its0 mapd DEV ITT BITS | unmapd DEV | mapc ICID RD | unmapc ICID | mapti DEV EV LPI ICID | mapi DEV EV ICID | ... */
static void parse_command(struct parser *p, struct op *op)
{
	const char *word = next_word(p);
	uint64_t *c = op->command;

	op->kind = OP_COMMAND;
	if (strcmp(word, "mapd") == 0) {
		parse_mapd(p, c);
	} else if (strcmp(word, "unmapd") == 0) {
		c[0] = 0x08 | next_number(p) << 32;
	} else if (strcmp(word, "mapc") == 0) {
		parse_mapc(p, c, VALID);
	} else if (strcmp(word, "unmapc") == 0) {
		parse_mapc(p, c, 0);
	} else if (strcmp(word, "mapti") == 0) {
		parse_mapti(p, c);
	} else if (strcmp(word, "mapi") == 0) {
		parse_event_and_collection(p, c, 0x0b);
	} else if (strcmp(word, "movi") == 0) {
		parse_event_and_collection(p, c, 0x01);
	} else if (strcmp(word, "int") == 0) {
		command_of_event(p, c, 0x03);
	} else if (strcmp(word, "clear") == 0) {
		command_of_event(p, c, 0x04);
	} else if (strcmp(word, "inv") == 0) {
		command_of_event(p, c, 0x0c);
	} else if (strcmp(word, "discard") == 0) {
		command_of_event(p, c, 0x0f);
	} else if (strcmp(word, "sync") == 0) {
		c[0] = 0x05;
		c[2] = next_number(p) << 16;
	} else if (strcmp(word, "invall") == 0) {
		c[0] = 0x0d;
		c[2] = next_number(p) & 0xffff;
	} else if (strcmp(word, "movall") == 0) {
		c[0] = 0x0e;
		c[2] = next_number(p) << 16;
		c[3] = next_number(p) << 16;
	} else if (strcmp(word, "raw") == 0) {
		for (unsigned i = 0; i < 4; i++)
			c[i] = next_number(p);
	} else {
		complain(p, "no command of an ITS:", word);
	}
}

/* ---- The rest -------------------------------------------------------------------------------------------------- */

/* msi its0 dev=7 ev=3 | msi ADDRESS DATA DEVID FLAGS */
static void parse_msi(struct parser *p, struct op *op)
{
	const char *word = next_word(p);
	uint64_t device = 0, event = 0;
	uint32_t its;

	op->kind = OP_MSI;
	if (parse_index(word, "its", MAX_ITSES, &its)) {
		if (!named_number(p, "dev", &device) || !named_number(p, "ev", &event))
			complain(p, "an MSI by an ITS has dev=N ev=N", NULL);
		op->address = GITS_BASE(its) + 0x10040;
		op->data = (uint32_t)event;
		op->devid = (uint32_t)device;
		op->flags = 1;
		return;
	}
	op->address = parse_sum(p, word);
	op->data = (uint32_t)next_number(p);
	op->devid = (uint32_t)next_number(p);
	op->flags = (uint32_t)next_number(p);
}

static void check_ram(struct parser *p, const struct op *op, uint64_t length)
{
	if (op->address < RAM_SCRIPTS || length > RAM_SIZE || op->address - RAM_BASE > RAM_SIZE - length)
		complain(p, "not in the memory of the scripts:", p->words[1]);
}

/* ram r64 ADDRESS | ram w64 ADDRESS VALUE | ram x64 ADDRESS VALUE: changes the bits that are set */
static void parse_ram(struct parser *p, struct op *op)
{
	const char *word = next_word(p);

	op->kind = word[0] == 'r' ? OP_RAM_READ : word[0] == 'w' ? OP_RAM_WRITE : OP_RAM_XOR;
	op->width = parse_width(word + 1);
	if (!strchr("rwx", word[0]) || op->width == 0)
		complain(p, "memory cannot", word);
	op->address = next_number(p);
	if (op->kind != OP_RAM_READ)
		op->value = next_number(p);
	check_ram(p, op, op->width);
}

/* fill ADDRESS LENGTH BYTE | dump ADDRESS LENGTH */
static void parse_range(struct parser *p, struct op *op, enum op_kind kind)
{
	op->kind = kind;
	op->address = next_number(p);
	op->length = next_number(p);
	if (kind == OP_FILL)
		op->value = next_number(p);
	check_ram(p, op, op->length);
	if (kind == OP_DUMP && (op->address % 8 != 0 || op->length % 8 != 0))
		complain(p, "dump takes multiples of 8", NULL);
}

static void parse_boot(struct parser *p, struct op *op)
{
	op->kind = OP_BOOT;
	op->boot = BOOT_ALL;
	if (take_word(p, "gic"))
		op->boot = BOOT_GIC;
	else if (take_word(p, "lpis"))
		op->boot = BOOT_LPIS;
}

static void parse_line_level(struct parser *p, struct op *op, enum op_kind kind)
{
	op->kind = kind;
	if (kind == OP_PPI)
		op->vcpu = next_vcpu(p);
	op->intid = (uint32_t)next_number(p);
	op->level = next_number(p) != 0;
}

/* What `migrate` prints beside other operations: words ADDRESS COUNT VALUE | acknowledged v0 INTID */
static void parse_state(struct parser *p, struct op *op, const char *word)
{
	if (strcmp(word, "words") == 0) {
		op->kind = OP_WORDS;
		op->address = next_number(p);
		op->length = 8 * next_number(p);
		op->value = next_number(p);
		check_ram(p, op, op->length);
	} else if (strcmp(word, "acknowledged") == 0) {
		op->kind = OP_ACKNOWLEDGED;
		op->vcpu = next_vcpu(p);
		op->value = next_number(p);
	} else {
		complain(p, "no operation, vCPU or ITS of this machine:", word);
	}
}

static void parse_operation(struct parser *p, struct op *op)
{
	const char *word = next_word(p);

	if (strcmp(word, "machine") == 0)
		parse_machine(p, op);
	else if (strcmp(word, "boot") == 0)
		parse_boot(p, op);
	else if (parse_index(word, "v", p->machine->num_vcpus, &op->vcpu))
		parse_guest(p, op);
	else if (parse_index(word, "its", p->machine->num_itses, &op->its))
		parse_command(p, op);
	else if (strcmp(word, "get") == 0 || strcmp(word, "set") == 0)
		parse_attr(p, op, word[0] == 's');
	else if (strcmp(word, "attr") == 0)
		parse_raw_attr(p, op);
	else if (strcmp(word, "save") == 0)
		parse_ctrl(p, op, CTRL_SAVE_TABLES);
	else if (strcmp(word, "restore") == 0)
		parse_ctrl(p, op, CTRL_RESTORE_TABLES);
	else if (strcmp(word, "reset") == 0)
		parse_ctrl(p, op, CTRL_RESET);
	else if (strcmp(word, "msi") == 0)
		parse_msi(p, op);
	else if (strcmp(word, "spi") == 0)
		parse_line_level(p, op, OP_SPI);
	else if (strcmp(word, "ppi") == 0)
		parse_line_level(p, op, OP_PPI);
	else if (strcmp(word, "ram") == 0)
		parse_ram(p, op);
	else if (strcmp(word, "fill") == 0)
		parse_range(p, op, OP_FILL);
	else if (strcmp(word, "dump") == 0)
		parse_range(p, op, OP_DUMP);
	else if (strcmp(word, "migrate") == 0)
		op->kind = OP_MIGRATE;
	else
		parse_state(p, op, word);
}

static void split(struct parser *p, char *line)
{
	char *comment = strchr(line, '#');

	if (comment)
		*comment = '\0';
	for (char *word = strtok(line, " \t\r\n"); word; word = strtok(NULL, " \t\r\n")) {
		if (p->num_words == MAX_WORDS) {
			complain(p, "too many words", NULL);
			return;
		}
		p->words[p->num_words++] = word;
	}
}

bool script_parse(char *line, const struct machine_description *machine, struct op *op, char why[RESULT_TEXT])
{
	struct parser p = { .machine = machine, .why = why };

	*op = (struct op){ .kind = OP_NONE };
	split(&p, line);
	if (p.num_words == 0)
		return !p.failed;
	parse_operation(&p, op);
	if (p.at < p.num_words)
		complain(&p, "too much:", p.words[p.at]);
	return !p.failed;
}

/* KVM puts 4 bits of the id into Aff0 and 8 into each of the others. */
uint64_t target_affinity(uint32_t id)
{
	return (id & 0xf) | (uint64_t)(id >> 4 & 0xff) << 8 | (uint64_t)(id >> 12 & 0xff) << 16;
}
