/* SPDX-License-Identifier: MIT */
/*
 * The interrupt controller of a saved machine. Both of libvgic's ways are here, and
 * both are complete examples of their use: vgic_save() and vgic_restore(), and the
 * attributes that KVM has too (vgic/state.h).
 *
 * With attributes one list says what is saved, and in which order it is restored. It
 * depends on the machine only, so what comes from a file has to match it entry by
 * entry, and nothing but values is taken from there.
 */
#include "snapshot_gic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <vgic/state.h>

#include "machine.h"
#include "snapshot_file.h"
#include "testdev.h"
#include "util.h"

#define IMAGE_TAG      "gic"
#define ATTRIBUTES_TAG "gic-attr"

#define FIRST_SPI 32u

/* Registers, as in the GIC architecture specification (IHI 0069). */
enum {
	GICD_CTLR = 0x0000,
	GICD_TYPER = 0x0004,
	GICD_IIDR = 0x0008,
	GICD_STATUSR = 0x0010,
	GICD_IGROUPR = 0x0080,
	GICD_ISENABLER = 0x0100,
	GICD_ISPENDR = 0x0200,
	GICD_ISACTIVER = 0x0300,
	GICD_IPRIORITYR = 0x0400,
	GICD_ICFGR = 0x0c00,
	GICD_INMIR = 0x0f80,
	GICD_IROUTER = 0x6000,

	GICR_CTLR = 0x0000,
	GICR_STATUSR = 0x0010,
	GICR_WAKER = 0x0014,
	GICR_PROPBASER = 0x0070,
	GICR_PENDBASER = 0x0078,
	GICR_SGI_FRAME = 0x10000,

	GITS_CTLR = 0x0000,
	GITS_IIDR = 0x0004,
	GITS_CBASER = 0x0080,
	GITS_CWRITER = 0x0088,
	GITS_CREADR = 0x0090,
	GITS_BASER = 0x0100,
};

#define NUM_GITS_BASERS 8u

#define TYPER_LINES(typer) ((uint32_t)(typer)&0x1f) /* in 32s, beside the first 32 */

/* ---- The list ------------------------------------------------------------------------- */

struct list {
	struct vgic *vgic;
	struct vgic_attr *attrs;
	size_t num;
	size_t room;
	bool failed; /* no memory */
};

/* What this controller does not have, such as INMIR without NMIs, is left out. */
static void add(struct list *list, uint32_t group, uint64_t attr)
{
	if (list->failed || vgic_attr_has(list->vgic, group, attr))
		return;
	if (list->num == list->room) {
		const size_t room = list->room ? 2 * list->room : 1024;
		struct vgic_attr *attrs = realloc(list->attrs, room * sizeof(*attrs));

		if (!attrs) {
			list->failed = true;
			return;
		}
		list->attrs = attrs;
		list->room = room;
	}
	list->attrs[list->num++] = (struct vgic_attr){ .group = group, .attr = attr };
}

/* The registers that hold @bits bits for each of the INTIDs from @first to below @end. */
static void add_dist_range(struct list *list, uint32_t base, unsigned bits, uint32_t first, uint32_t end)
{
	const uint32_t step = bits == 64 ? 1 : 32 / bits;

	for (uint32_t intid = first; intid < end; intid += step) {
		const uint32_t offset = base + intid * bits / 8;

		add(list, VGIC_GRP_DIST_REGS, VGIC_ATTR_DIST(offset));
		if (bits == 64)
			add(list, VGIC_GRP_DIST_REGS, VGIC_ATTR_DIST(offset + 4));
	}
}

/* ISPENDR comes last: it is the latch of what the other registers have configured. */
static void list_distributor(struct list *list, uint32_t end)
{
	static const uint32_t first[] = { GICD_IIDR, GICD_CTLR, GICD_STATUSR };

	for (unsigned i = 0; i < sizeof(first) / sizeof(first[0]); i++)
		add(list, VGIC_GRP_DIST_REGS, VGIC_ATTR_DIST(first[i]));
	add_dist_range(list, GICD_IGROUPR, 1, FIRST_SPI, end);
	add_dist_range(list, GICD_ICFGR, 2, FIRST_SPI, end);
	add_dist_range(list, GICD_INMIR, 1, FIRST_SPI, end);
	add_dist_range(list, GICD_IPRIORITYR, 8, FIRST_SPI, end);
	add_dist_range(list, GICD_IROUTER, 64, FIRST_SPI, end);
	add_dist_range(list, GICD_ISENABLER, 1, FIRST_SPI, end);
	add_dist_range(list, GICD_ISACTIVER, 1, FIRST_SPI, end);
	add_dist_range(list, GICD_ISPENDR, 1, FIRST_SPI, end);
}

/* The tables before GICR_CTLR, whose EnableLPIs uses them. ICC_BPR1 and what it depends on before ICC_CTLR. */
static void list_vcpu(struct list *list, uint64_t affinity)
{
	static const uint32_t redist[] = {
		GICR_STATUSR,
		GICR_WAKER,
		GICR_PROPBASER,
		GICR_PROPBASER + 4,
		GICR_PENDBASER,
		GICR_PENDBASER + 4,
		GICR_CTLR,
		GICR_SGI_FRAME + GICD_IGROUPR,
		GICR_SGI_FRAME + GICD_ICFGR,
		GICR_SGI_FRAME + GICD_ICFGR + 4,
		GICR_SGI_FRAME + GICD_INMIR,
		GICR_SGI_FRAME + GICD_IPRIORITYR,
		GICR_SGI_FRAME + GICD_IPRIORITYR + 4,
		GICR_SGI_FRAME + GICD_IPRIORITYR + 8,
		GICR_SGI_FRAME + GICD_IPRIORITYR + 12,
		GICR_SGI_FRAME + GICD_IPRIORITYR + 16,
		GICR_SGI_FRAME + GICD_IPRIORITYR + 20,
		GICR_SGI_FRAME + GICD_IPRIORITYR + 24,
		GICR_SGI_FRAME + GICD_IPRIORITYR + 28,
		GICR_SGI_FRAME + GICD_ISENABLER,
		GICR_SGI_FRAME + GICD_ISACTIVER,
		GICR_SGI_FRAME + GICD_ISPENDR,
	};
	static const uint32_t icc[] = {
		VGIC_ICC_SRE_EL1,   VGIC_ICC_PMR_EL1,  VGIC_ICC_BPR0_EL1,    VGIC_ICC_BPR1_EL1,    VGIC_ICC_AP0R0_EL1,
		VGIC_ICC_AP1R0_EL1, VGIC_ICC_CTLR_EL1, VGIC_ICC_IGRPEN0_EL1, VGIC_ICC_IGRPEN1_EL1,
	};

	for (unsigned i = 0; i < sizeof(redist) / sizeof(redist[0]); i++)
		add(list, VGIC_GRP_REDIST_REGS, VGIC_ATTR_REDIST(affinity, redist[i]));
	for (unsigned i = 0; i < sizeof(icc) / sizeof(icc[0]); i++)
		add(list, VGIC_GRP_CPU_SYSREGS, VGIC_ATTR_SYSREG(affinity, icc[i]));
	add(list, VGIC_GRP_LEVEL_INFO, VGIC_ATTR_LEVEL(affinity, 0));
}

/* Free list->attrs afterwards. Returns 0 or -ENOMEM. */
static int make_list(const struct machine *machine, struct list *list)
{
	uint64_t typer = 0;
	uint32_t end;

	*list = (struct list){ .vgic = machine->vgic };
	vgic_attr_get(machine->vgic, VGIC_GRP_DIST_REGS, VGIC_ATTR_DIST(GICD_TYPER), &typer);
	end = FIRST_SPI * (TYPER_LINES(typer) + 1);
	list_distributor(list, end);
	for (unsigned i = 0; i < machine->num_vcpus; i++)
		list_vcpu(list, machine->vcpus[i].affinity);
	for (uint32_t intid = FIRST_SPI; intid < end; intid += 32)
		add(list, VGIC_GRP_LEVEL_INFO, VGIC_ATTR_LEVEL(machine->vcpus[0].affinity, intid));
	return list->failed ? -ENOMEM : 0;
}

/* The ITS in its order. The tables are restored before GITS_CTLR, which is the last. */
#define NUM_ITS_ATTRS (5 + NUM_GITS_BASERS)

static void make_its_list(struct vgic_attr attrs[NUM_ITS_ATTRS])
{
	unsigned n = 0;

	memset(attrs, 0, NUM_ITS_ATTRS * sizeof(attrs[0]));
	attrs[n++].attr = GITS_CBASER;
	attrs[n++].attr = GITS_CREADR;
	attrs[n++].attr = GITS_CWRITER;
	for (unsigned i = 0; i < NUM_GITS_BASERS; i++)
		attrs[n++].attr = GITS_BASER + 8 * i;
	attrs[n++].attr = GITS_IIDR;
	attrs[n++].attr = GITS_CTLR;
	for (unsigned i = 0; i < NUM_ITS_ATTRS; i++)
		attrs[i].group = VGIC_GRP_ITS_REGS;
}

/* ---- By attributes ---------------------------------------------------------------------- */

static void put_attrs(struct snapshot_out *out, const struct vgic_attr *attrs, size_t num)
{
	put_u32(out, (uint32_t)num);
	for (size_t i = 0; i < num; i++) {
		put_u32(out, attrs[i].group);
		put_u64(out, attrs[i].attr);
		put_u64(out, attrs[i].value);
	}
}

static void get_attrs(struct snapshot_in *in, struct vgic_attr *attrs, size_t num)
{
	expect_u32(in, (uint32_t)num, "it has another number of attributes than this machine");
	for (size_t i = 0; i < num; i++) {
		expect_u32(in, attrs[i].group, "it has another attribute in the place of one of this machine");
		expect_u64(in, attrs[i].attr, "it has another attribute in the place of one of this machine");
		attrs[i].value = get_u64(in);
	}
}

/* Guest memory gets the ITS's tables and the pending tables. */
static int save_attributes(struct machine *machine, struct snapshot_out *out)
{
	struct vgic_its *its = vgic_its_by_index(machine->vgic, 0);
	struct vgic_attr its_attrs[NUM_ITS_ATTRS];
	struct list list;
	int ret;

	ret = make_list(machine, &list);
	make_its_list(its_attrs);
	ret = ret ? ret : vgic_its_attr_set(its, VGIC_GRP_CTRL, VGIC_CTRL_ITS_SAVE_TABLES, 0);
	ret = ret ? ret : vgic_attr_set(machine->vgic, VGIC_GRP_CTRL, VGIC_CTRL_SAVE_PENDING_TABLES, 0);
	ret = ret ? ret : vgic_attr_get_many(machine->vgic, list.attrs, list.num, NULL);
	ret = ret ? ret : vgic_its_attr_get_many(its, its_attrs, NUM_ITS_ATTRS, NULL);
	if (!ret) {
		snapshot_out_begin(out, ATTRIBUTES_TAG, 0);
		put_attrs(out, list.attrs, list.num);
		put_attrs(out, its_attrs, NUM_ITS_ATTRS);
		snapshot_out_end(out);
	}
	free(list.attrs);
	return ret;
}

/* LEVEL_INFO knows one source of a line: give each level to the device that drives it. */
static void drive_lines(struct machine *machine)
{
	for (uint32_t intid = FIRST_SPI; intid < FIRST_SPI * TESTDEV_SPI_WORDS; intid++) {
		const bool level = machine->testdev.spis[intid / 32] >> intid % 32 & 1;

		/* In this order: the line as a whole does not move. */
		vgic_set_spi(machine->vgic, intid, TESTDEV_SOURCE, level);
		vgic_set_spi(machine->vgic, intid, 0, intid == UART_INTID && machine->uart.line);
	}
	for (unsigned i = 0; i < machine->num_vcpus; i++) {
		struct vcpu *vcpu = &machine->vcpus[i];

		for (uint32_t intid = 16; intid < 32; intid++) {
			const bool level = (intid == TIMER_PPI_VIRTUAL && vcpu->timers[TIMER_VIRTUAL].line) ||
					   (intid == TIMER_PPI_PHYSICAL && vcpu->timers[TIMER_PHYSICAL].line);

			vgic_set_ppi(vcpu->gic, intid, TESTDEV_SOURCE, machine->testdev.ppis[i] >> intid & 1);
			vgic_set_ppi(vcpu->gic, intid, 0, level);
		}
	}
}

static int refuse_attribute(struct snapshot_in *in, const struct vgic_attr *attr, int err)
{
	return snapshot_file_refuse(in->file, "section \"%s\": group %u attribute 0x%llx does not take 0x%llx: %s",
				    ATTRIBUTES_TAG, attr->group, (unsigned long long)attr->attr,
				    (unsigned long long)attr->value, strerror(-err));
}

static int set_attributes(struct machine *machine, struct snapshot_in *in, const struct list *list,
			  const struct vgic_attr *its_attrs)
{
	struct vgic_its *its = vgic_its_by_index(machine->vgic, 0);
	const unsigned ctlr = NUM_ITS_ATTRS - 1;
	size_t done = 0;
	int ret;

	ret = vgic_attr_set_many(machine->vgic, list->attrs, list->num, &done);
	if (ret)
		return refuse_attribute(in, &list->attrs[done], ret);
	ret = vgic_its_attr_set_many(its, its_attrs, ctlr, &done);
	if (ret)
		return refuse_attribute(in, &its_attrs[done], ret);
	ret = vgic_its_attr_set(its, VGIC_GRP_CTRL, VGIC_CTRL_ITS_RESTORE_TABLES, 0);
	if (ret)
		return snapshot_file_refuse(in->file, "the ITS's tables in its memory are refused: %s", strerror(-ret));
	ret = vgic_its_attr_set_many(its, its_attrs + ctlr, 1, &done);
	return ret ? refuse_attribute(in, &its_attrs[ctlr], ret) : 0;
}

static int load_attributes(struct machine *machine, struct snapshot_in *in)
{
	struct vgic_attr its_attrs[NUM_ITS_ATTRS];
	struct list list;
	int ret = make_list(machine, &list);

	make_its_list(its_attrs);
	if (ret) {
		message("no memory for the interrupt controller's registers");
	} else {
		get_attrs(in, list.attrs, list.num);
		get_attrs(in, its_attrs, NUM_ITS_ATTRS);
		ret = snapshot_in_end(in);
	}
	for (unsigned i = 0; i < machine->num_vcpus && !ret; i++)
		vgic_vcpu_set_online(machine->vcpus[i].gic, machine->vcpus[i].power != VCPU_OFF);
	ret = ret ? ret : set_attributes(machine, in, &list, its_attrs);
	free(list.attrs);
	if (!ret)
		drive_lines(machine);
	return ret;
}

/* ---- As one image -------------------------------------------------------------------------- */

static int save_image(const struct machine *machine, struct snapshot_out *out)
{
	void *image = NULL;
	size_t size = 0;
	size_t used = 0;
	int ret;

	ret = vgic_save_size(machine->vgic, &size);
	if (!ret) {
		image = malloc(size);
		ret = image ? vgic_save(machine->vgic, image, size, &used) : -ENOMEM;
	}
	if (!ret) {
		snapshot_out_begin(out, IMAGE_TAG, 0);
		put_data(out, image, used);
		snapshot_out_end(out);
	}
	free(image);
	return ret;
}

static int load_image(const struct machine *machine, const struct snapshot_in *in)
{
	struct vgic_restore_error why = { .size = sizeof(why) };
	const int ret = vgic_restore(machine->vgic, in->at, in->left, &why);

	if (!ret)
		return 0;
	return snapshot_file_refuse(in->file,
				    "the interrupt controller refuses its image: %s: %s, %llu there, %llu here",
				    strerror(-ret), why.what ? why.what : "no reason given",
				    (unsigned long long)why.in_image, (unsigned long long)why.here);
}

/* ---- Both ------------------------------------------------------------------------------------ */

int snapshot_gic_save(struct machine *machine, struct snapshot_out *out, bool attributes)
{
	const int ret = attributes ? save_attributes(machine, out) : save_image(machine, out);

	if (ret)
		message("the interrupt controller cannot be saved: %s", strerror(-ret));
	return ret;
}

int snapshot_gic_load(struct machine *machine, const struct snapshot_file *file)
{
	struct snapshot_in in;

	if (snapshot_in_try(&in, file, ATTRIBUTES_TAG, 0))
		return load_attributes(machine, &in);
	if (snapshot_in_begin(&in, file, IMAGE_TAG, 0))
		return -EBADMSG;
	return load_image(machine, &in);
}
