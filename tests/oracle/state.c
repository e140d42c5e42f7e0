/* SPDX-License-Identifier: MIT */
/*
 * state.c - prints a machine's state as operations: see state.h.
 *
 * The order is that of KVM's documentation: guest memory, GICD_IIDR and the
 * distributor, each redistributor with its tables before EnableLPIs, each ITS with
 * its tables before Enabled, the CPU interfaces.
 */
#include "state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "script.h"

struct printer {
	FILE *out;
	unsigned line, number;
	struct target *t;
	const struct machine_description *description;
	int err; /* the first one */
};

static __attribute__((format(printf, 2, 3))) void print(struct printer *p, const char *format, ...)
{
	va_list args;

	fprintf(p->out, "%u.%u ", p->line, ++p->number);
	va_start(args, format);
	vfprintf(p->out, format, args);
	va_end(args);
	fputc('\n', p->out);
}

static uint64_t get(struct printer *p, enum attr_device device, unsigned its, uint32_t group, uint64_t attr)
{
	struct attr_request request = { .device = device, .its = its, .group = group, .attr = attr };
	const int err = target_attr(p->t, &request);

	if (err < 0 && p->err == 0)
		p->err = err;
	return err < 0 ? 0 : request.value;
}

/* The upper half of an attribute of one vCPU. */
static uint64_t attr_vcpu(const struct printer *p, uint32_t vcpu)
{
	const uint64_t affinity = target_affinity(p->description->ids[vcpu]);

	return ((affinity & 0xffffff) | (affinity >> 8 & 0xff000000)) << 32;
}

/* ---- Guest memory --------------------------------------------------------------------------- */

static uint64_t ram_word(struct printer *p, uint64_t address)
{
	uint64_t value;

	memcpy(&value, target_ram(p->t) + (address - RAM_BASE), sizeof(value));
	return value;
}

/* What is not zero; equal words in a row at once. */
static void print_ram(struct printer *p, uint64_t address, uint64_t size)
{
	const uint64_t end = address + size;

	while (address < end) {
		const uint64_t value = ram_word(p, address);
		uint64_t count = 1;

		while (address + 8 * count < end && ram_word(p, address + 8 * count) == value)
			count++;
		if (value)
			print(p, "words 0x%" PRIx64 " %" PRIu64 " 0x%" PRIx64, address, count, value);
		address += 8 * count;
	}
}

static void print_tables(struct printer *p)
{
	print_ram(p, PROP_TABLE, 0x10000);
	for (uint32_t v = 0; v < p->description->num_vcpus; v++)
		print_ram(p, PEND_TABLE(v), 0x2000);
	for (uint32_t i = 0; i < p->description->num_itses; i++) {
		print_ram(p, DEVICE_TABLE(i), 0x10000);
		print_ram(p, COLLECTIONS(i), 0x10000);
	}
	for (uint32_t n = 0; n < 8; n++) {
		print_ram(p, LEVEL2(n), 0x10000);
		print_ram(p, ITT(n), 0x1000);
	}
}

/* ---- Registers -------------------------------------------------------------------------------- */

static void print_dist(struct printer *p, uint32_t offset)
{
	print(p, "set dist 0x%x 0x%" PRIx64, offset, get(p, ATTR_VGIC, 0, ATTR_DIST_REGS, offset));
}

/* @bits for each INTID, from the first SPI on. */
static void print_dist_bank(struct printer *p, uint32_t offset, uint32_t bits)
{
	const uint32_t end = NUM_IRQ_FIRST + p->description->num_spis;

	for (uint32_t intid = NUM_IRQ_FIRST; intid < end; intid += 32 / bits)
		print_dist(p, offset + intid * bits / 8);
}

/* The lower half of GICD_IROUTER says it all. */
static void print_routes(struct printer *p)
{
	for (uint32_t intid = NUM_IRQ_FIRST; intid < NUM_IRQ_FIRST + p->description->num_spis; intid++)
		print_dist(p, 0x6000 + 8 * intid);
}

static void print_levels(struct printer *p, uint32_t vcpu, uint32_t intid)
{
	print(p, "set level v%u %u 0x%" PRIx64, vcpu, intid,
	      get(p, ATTR_VGIC, 0, ATTR_LEVEL_INFO, attr_vcpu(p, vcpu) | intid));
}

static void print_distributor(struct printer *p)
{
	print_dist(p, 0x8);           /* IIDR */
	print_dist(p, 0x0);           /* CTLR */
	print_dist_bank(p, 0x80, 1);  /* IGROUPR */
	print_dist_bank(p, 0x100, 1); /* ISENABLER */
	print_dist_bank(p, 0x400, 8); /* IPRIORITYR */
	print_dist_bank(p, 0xc00, 2); /* ICFGR */
	print_routes(p);
	print_dist_bank(p, 0x300, 1); /* ISACTIVER */
	print_dist_bank(p, 0x200, 1); /* ISPENDR: latches only */
	for (uint32_t intid = 32; intid < NUM_IRQ_FIRST + p->description->num_spis; intid += 32)
		print_levels(p, 0, intid);
}

static void print_redistributor(struct printer *p, uint32_t vcpu)
{
	static const uint32_t with_lpis[] = { 0x70, 0x74, 0x78, 0x7c, 0x0 }; /* PROPBASER, PENDBASER, CTLR */
	static const uint32_t offsets[] = {
		0x14,                                        /* WAKER */
		0x10080,                                     /* IGROUPR0 */
		0x10100,                                     /* ISENABLER0 */
		0x10400, 0x10404, 0x10408, 0x1040c,          /* IPRIORITYR */
		0x10410, 0x10414, 0x10418, 0x1041c, 0x10c04, /* ICFGR1 */
		0x10300,                                     /* ISACTIVER0 */
		0x10200,                                     /* ISPENDR0 */
	};
	const uint64_t attr = attr_vcpu(p, vcpu);

	for (unsigned i = 0; p->description->num_itses > 0 && i < sizeof(with_lpis) / sizeof(with_lpis[0]); i++)
		print(p, "set redist v%u 0x%x 0x%" PRIx64, vcpu, with_lpis[i],
		      get(p, ATTR_VGIC, 0, ATTR_REDIST_REGS, attr | with_lpis[i]));
	/* SGIs are enabled out of reset. */
	print(p, "set redist v%u 0x10180 0xffffffff", vcpu);
	for (unsigned i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		print(p, "set redist v%u 0x%x 0x%" PRIx64, vcpu, offsets[i],
		      get(p, ATTR_VGIC, 0, ATTR_REDIST_REGS, attr | offsets[i]));
	print_levels(p, vcpu, 0);
}

static void print_its(struct printer *p, uint32_t its)
{
	static const uint32_t offsets[] = {
		0x80, 0x90, 0x88, 0x100, 0x108, 0x4
	}; /* CBASER, CREADR, CWRITER, BASERs, IIDR */

	for (unsigned i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		print(p, "set its%u 0x%x 0x%" PRIx64, its, offsets[i],
		      get(p, ATTR_ITS, its, ATTR_ITS_REGS, offsets[i]));
	print(p, "restore its%u", its);
	print(p, "set its%u 0x0 0x%" PRIx64, its, get(p, ATTR_ITS, its, ATTR_ITS_REGS, 0) & 1);
}

static void print_cpu_interface(struct printer *p, uint32_t vcpu)
{
	static const enum sysreg regs[] = { SYSREG_SRE,     SYSREG_PMR,   SYSREG_BPR0,  SYSREG_BPR1, SYSREG_IGRPEN0,
					    SYSREG_IGRPEN1, SYSREG_AP0R0, SYSREG_AP1R0, SYSREG_CTLR };
	const uint64_t attr = attr_vcpu(p, vcpu);

	for (unsigned i = 0; i < sizeof(regs) / sizeof(regs[0]); i++)
		print(p, "set cpu v%u %s 0x%" PRIx64, vcpu, sysregs[regs[i]].name,
		      get(p, ATTR_VGIC, 0, ATTR_CPU_SYSREGS, attr | sysregs[regs[i]].encoding));
}

int state_print(FILE *out, unsigned line, struct target *t, const struct machine_description *description)
{
	struct printer p = { .out = out, .line = line, .t = t, .description = description };

	print_tables(&p);
	print_distributor(&p);
	for (uint32_t v = 0; v < description->num_vcpus; v++)
		print_redistributor(&p, v);
	for (uint32_t i = 0; i < description->num_itses; i++)
		print_its(&p, i);
	for (uint32_t v = 0; v < description->num_vcpus; v++)
		print_cpu_interface(&p, v);
	return p.err;
}
