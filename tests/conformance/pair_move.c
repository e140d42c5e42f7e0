/* SPDX-License-Identifier: MIT */
/*
 * A guest that goes on in another controller: see pair_move_on() in pair.h.
 *
 * The new controller is made for it as a VMM would that has its own mind: vCPUs in another order, other regions of
 * redistributors, sometimes more vCPUs. One that has less has to refuse the image, and be as it was. The reference is told
 * nothing but where the frames are now, and what KVM's attributes cannot hold. One thread.
 */
#include <errno.h>
#include <gic_arch.h>
#include <inttypes.h>
#include <its_arch.h>
#include <ref_its.h>
#include <stdlib.h>
#include <string.h>
#include <vgic/state.h>

#include "pair.h"

#define MAX_ATTRS  4096u
#define MAX_FRAMES (PAIR_MAX_VCPUS + PAIR_MAX_EXTRA)

/* ---- Random numbers: a move takes one from the test --------------------------------------------- */

static uint32_t draw(uint64_t *random, uint32_t bound)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*random >> 33) % bound;
}

/* ---- The other controller ------------------------------------------------------------------------ */

static void *allocate(size_t size)
{
	void *memory = malloc(size);

	if (!memory)
		abort();
	return memory;
}

/* The guest's vCPUs in a new order; those that it does not know come behind them. */
static void choose_order(struct pair *pair, uint32_t *order, uint32_t num_extra, uint64_t *random)
{
	static const struct vgic_vcpu_config extra[PAIR_MAX_EXTRA] = {
		{ .id = 40000, .affinity = 0xfe0e0a },
		{ .id = 4, .affinity = 0xfd000b },
	};

	for (uint32_t i = 0; i < pair->num_vcpus; i++) {
		const uint32_t at = draw(random, i + 1);

		if (at != i)
			order[i] = order[at];
		order[at] = i;
	}
	for (uint32_t i = 0; i < pair->num_vcpus; i++)
		pair->order[i] = pair->vcpu_configs[order[i]];
	for (uint32_t i = 0; i < num_extra; i++) {
		order[pair->num_vcpus + i] = REF_NO_VCPU;
		pair->order[pair->num_vcpus + i] = extra[i];
	}
	pair->num_extra = num_extra;
	pair->config.vcpus = pair->order;
	pair->config.num_vcpus = pair->num_vcpus + num_extra;
}

/* Two regions for the guest's vCPUs, and a third that it never looks at. */
static void choose_regions(struct pair *pair, uint64_t *random)
{
	const bool extra = pair->num_extra != 0;
	const uint32_t first = 1 + draw(random, extra ? pair->num_vcpus - 1 : pair->num_vcpus);
	const uint32_t rest = pair->num_vcpus - first;

	if (pair->config.num_redist_regions == 0)
		return;
	pair->regions[0].base = 0x80a0000 + 0x10000ull * draw(random, 8);
	pair->regions[0].num_frames = first;
	pair->regions[1].base = 0x4000000000 + 0x10000ull * draw(random, 8);
	/* A frame that nobody has, unless it would be that of a vCPU that the guest does not know. */
	pair->regions[1].num_frames = extra ? rest : rest + 1;
	pair->regions[2].base = 0x5000000000;
	pair->regions[2].num_frames = PAIR_MAX_EXTRA;
	pair->config.num_redist_regions = extra ? 3 : 2;
	pair->config.redist_regions = pair->regions;
}

static struct vgic *create(struct pair *pair)
{
	struct vgic *vgic = NULL;
	const int err = vgic_create(&pair->config, &vgic);

	if (err)
		pair_differ(pair, "the controller to move to cannot be created: %d", err);
	return vgic;
}

/* The guest's vCPUs are found by their ids. */
static void switch_to(struct pair *pair, struct vgic *vgic, const uint32_t *order)
{
	struct vgic_stats stats = { .size = sizeof(stats) };

	if (vgic_get_stats(pair->vgic, &stats))
		pair_differ(pair, "vgic_get_stats failed");
	for (int kind = 0; kind < VGIC_NUM_GUEST_ERRORS; kind++)
		pair->before.guest_errors[kind] += stats.guest_errors[kind];
	pair->before.acknowledges += stats.acknowledges;
	pair->before.spurious += stats.spurious;
	vgic_destroy(pair->vgic);
	pair->vgic = vgic;
	for (uint32_t i = 0; i < pair->num_vcpus; i++)
		pair->vcpus[i] = vgic_vcpu_by_id(vgic, pair->vcpu_configs[i].id);
	ref_move_frames(pair->ref, pair->config.redist_regions, pair->config.num_redist_regions, order,
			pair->config.num_vcpus);
}

/* ---- By image ------------------------------------------------------------------------------------- */

struct image {
	void *bytes;
	size_t size;
};

static struct image save(const struct pair *pair, struct vgic *vgic)
{
	struct image image = { 0 };

	if (vgic_save_size(vgic, &image.size))
		pair_differ(pair, "vgic_save_size failed");
	image.bytes = allocate(image.size);
	if (vgic_save(vgic, image.bytes, image.size, &image.size))
		pair_differ(pair, "vgic_save failed");
	return image;
}

static bool is_same(const struct image *a, const struct image *b)
{
	return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

/* One vCPU of the image is missing, or has another id, another affinity; or there are fewer SPIs. */
static int lessen(struct vgic_config *config, struct vgic_vcpu_config *vcpus, uint64_t *random)
{
	const uint32_t victim = draw(random, config->num_vcpus);

	switch (draw(random, 4)) {
	case 0:
		if (config->num_vcpus == 1)
			break;
		vcpus[victim] = vcpus[--config->num_vcpus];
		return -E2BIG;
	case 1:
		if (config->num_spis == 32)
			break;
		config->num_spis = (config->num_spis - 1) / 32 * 32;
		return -E2BIG;
	case 2:
		vcpus[victim].affinity ^= 0x400000;
		return -ENODEV;
	default:
		break;
	}
	vcpus[victim].id = 12345;
	return -ENODEV;
}

static void check_refused(const struct pair *pair, const struct vgic_config *of_image, const struct image *image,
			  uint64_t *random)
{
	struct vgic_restore_error why = { .size = sizeof(why) };
	struct vgic_vcpu_config vcpus[MAX_FRAMES];
	struct vgic_config config = *of_image;
	struct image before, after;
	struct vgic *vgic = NULL;
	int expected, err;

	memcpy(vcpus, of_image->vcpus, config.num_vcpus * sizeof(vcpus[0]));
	config.vcpus = vcpus;
	expected = lessen(&config, vcpus, random);
	if (vgic_create(&config, &vgic))
		pair_differ(pair, "a controller with less cannot be created");
	before = save(pair, vgic);
	err = vgic_restore(vgic, image->bytes, image->size, &why);
	if (err != expected || !why.what)
		pair_differ(pair, "a controller with less answered %d to the image (%s), not %d", err,
			    why.what ? why.what : "no reason", expected);
	after = save(pair, vgic);
	if (!is_same(&before, &after))
		pair_differ(pair, "a controller that has refused an image is not as it was");
	free(before.bytes);
	free(after.bytes);
	vgic_destroy(vgic);
}

static void move_image(struct pair *pair, struct vgic *to, const struct image *image, bool same_vcpus)
{
	struct vgic_restore_error why = { .size = sizeof(why) };
	const int err = vgic_restore(to, image->bytes, image->size, &why);
	struct image again;

	if (err)
		pair_differ(pair, "the image was refused: %d, %s", err, why.what ? why.what : "no reason");
	again = save(pair, to);
	if (same_vcpus && !is_same(image, &again))
		pair_differ(pair, "the other controller makes another image of the same state");
	free(again.bytes);
}

/* ---- By attributes ---------------------------------------------------------------------------------- */

struct list {
	const struct pair *pair;
	struct vgic *vgic;
	struct vgic_attr attrs[MAX_ATTRS];
	size_t num;
};

static void add(struct list *list, uint32_t group, uint64_t attr)
{
	if (vgic_attr_has(list->vgic, group, attr))
		return;
	if (list->num == MAX_ATTRS)
		pair_differ(list->pair, "there are more attributes than the test has room for");
	list->attrs[list->num++] = (struct vgic_attr){ .group = group, .attr = attr };
}

static void list_distributor(struct list *list)
{
	static const struct {
		uint32_t base;
		unsigned bits;
	} banks[] = {
		{ GICD_IGROUPR, 1 },   { GICD_ICFGR, 2 },     { GICD_IPRIORITYR, 8 }, { GICD_IROUTER, 64 },
		{ GICD_ISENABLER, 1 }, { GICD_ISACTIVER, 1 }, { GICD_ISPENDR, 1 },
	};
	const uint32_t end = GIC_FIRST_SPI + list->pair->num_spis;

	add(list, VGIC_GRP_DIST_REGS, GICD_IIDR);
	add(list, VGIC_GRP_DIST_REGS, GICD_CTLR);
	add(list, VGIC_GRP_DIST_REGS, GICD_STATUSR);
	for (size_t i = 0; i < sizeof(banks) / sizeof(banks[0]); i++) {
		for (uint32_t at = GIC_FIRST_SPI * banks[i].bits / 8; at < end * banks[i].bits / 8; at += 4)
			add(list, VGIC_GRP_DIST_REGS, banks[i].base + at);
	}
}

static void list_vcpu(struct list *list, uint64_t affinity)
{
	static const uint32_t redist[] = {
		GICR_STATUSR,       GICR_WAKER,      GICR_PROPBASER, GICR_PROPBASER + 4, GICR_PENDBASER,
		GICR_PENDBASER + 4, GICR_CTLR,       GICR_IGROUPR0,  GICR_ICFGR0,        GICR_ICFGR1,
		GICR_ISENABLER0,    GICR_ISACTIVER0, GICR_ISPENDR0,
	};
	static const uint32_t icc[] = {
		VGIC_ICC_SRE_EL1,   VGIC_ICC_PMR_EL1,  VGIC_ICC_BPR0_EL1,    VGIC_ICC_BPR1_EL1,    VGIC_ICC_AP0R0_EL1,
		VGIC_ICC_AP1R0_EL1, VGIC_ICC_CTLR_EL1, VGIC_ICC_IGRPEN0_EL1, VGIC_ICC_IGRPEN1_EL1,
	};

	for (size_t i = 0; i < sizeof(redist) / sizeof(redist[0]); i++)
		add(list, VGIC_GRP_REDIST_REGS, VGIC_ATTR_REDIST(affinity, redist[i]));
	for (uint32_t at = 0; at < GIC_FIRST_SPI; at += 4)
		add(list, VGIC_GRP_REDIST_REGS, VGIC_ATTR_REDIST(affinity, GICR_IPRIORITYR + at));
	for (size_t i = 0; i < sizeof(icc) / sizeof(icc[0]); i++)
		add(list, VGIC_GRP_CPU_SYSREGS, VGIC_ATTR_SYSREG(affinity, icc[i]));
	add(list, VGIC_GRP_LEVEL_INFO, VGIC_ATTR_LEVEL(affinity, 0));
}

static void make_list(struct list *list)
{
	const struct pair *pair = list->pair;

	list_distributor(list);
	for (uint32_t i = 0; i < pair->num_vcpus; i++)
		list_vcpu(list, pair->vcpu_configs[i].affinity);
	for (uint32_t intid = GIC_FIRST_SPI; intid < GIC_FIRST_SPI + pair->num_spis; intid += 32)
		add(list, VGIC_GRP_LEVEL_INFO, VGIC_ATTR_LEVEL(pair->vcpu_configs[0].affinity, intid));
}

static void move_its(const struct pair *pair, struct vgic_its *from, struct vgic_its *to)
{
	static const uint32_t regs[] = { GITS_CBASER, GITS_CREADR, GITS_CWRITER, GITS_BASER0, GITS_BASER1, GITS_IIDR };
	uint64_t value = 0;
	int err = 0;

	for (size_t i = 0; i < sizeof(regs) / sizeof(regs[0]) && !err; i++) {
		err = vgic_its_attr_get(from, VGIC_GRP_ITS_REGS, regs[i], &value);
		err = err ? err : vgic_its_attr_set(to, VGIC_GRP_ITS_REGS, regs[i], value);
	}
	err = err ? err : vgic_its_attr_set(to, VGIC_GRP_CTRL, VGIC_CTRL_ITS_RESTORE_TABLES, 0);
	err = err ? err : vgic_its_attr_get(from, VGIC_GRP_ITS_REGS, GITS_CTLR, &value);
	err = err ? err : vgic_its_attr_set(to, VGIC_GRP_ITS_REGS, GITS_CTLR, value);
	if (err)
		pair_differ(pair, "the ITS cannot be moved by its attributes: %d", err);
}

void pair_save_tables(const struct pair *pair)
{
	int err = 0;

	for (uint32_t i = 0; i < pair->config.num_itses && !err; i++)
		err = vgic_its_attr_set(vgic_its_by_index(pair->vgic, i), VGIC_GRP_CTRL, VGIC_CTRL_ITS_SAVE_TABLES, 0);
	if (!err && (pair->config.features & VGIC_FEATURE_LPIS))
		err = vgic_attr_set(pair->vgic, VGIC_GRP_CTRL, VGIC_CTRL_SAVE_PENDING_TABLES, 0);
	if (err)
		pair_differ(pair, "the tables cannot be saved: %d", err);
}

static void move_attributes(struct pair *pair, struct vgic *to)
{
	struct list *list = allocate(sizeof(*list));
	size_t done = 0;

	list->pair = pair;
	list->vgic = pair->vgic;
	list->num = 0;
	make_list(list);
	pair_save_tables(pair);
	if (vgic_attr_get_many(pair->vgic, list->attrs, list->num, &done))
		pair_differ(pair, "attribute %" PRIx64 " cannot be read", list->attrs[done].attr);
	for (uint32_t i = 0; i < pair->num_vcpus; i++) {
		/* In KVM's profile SGIs begin enabled, and a write of ISENABLER leaves those enabled that are. */
		vgic_attr_set(to, VGIC_GRP_REDIST_REGS,
			      VGIC_ATTR_REDIST(pair->vcpu_configs[i].affinity, GICR_ICENABLER0), UINT32_MAX);
		vgic_vcpu_set_online(vgic_vcpu_by_id(to, pair->vcpu_configs[i].id), !pair->offline[i]);
	}
	if (vgic_attr_set_many(to, list->attrs, list->num, &done))
		pair_differ(pair, "attribute %" PRIx64 " of group %" PRIu32 " does not take %" PRIx64,
			    list->attrs[done].attr, list->attrs[done].group, list->attrs[done].value);
	for (uint32_t i = 0; i < pair->config.num_itses; i++)
		move_its(pair, vgic_its_by_index(pair->vgic, i), vgic_its_by_index(to, i));
	free(list);
}

/* ---- What KVM's attributes do not hold --------------------------------------------------------------- */

static void drive(struct pair *pair, uint32_t vcpu, uint32_t intid, unsigned source, bool level)
{
	if (intid < GIC_FIRST_SPI)
		vgic_set_ppi(pair->vcpus[vcpu], intid, source, level);
	else
		vgic_set_spi(pair->vgic, intid, source, level);
}

static void ref_drive(struct pair *pair, uint32_t vcpu, uint32_t intid, unsigned source, bool level)
{
	if (intid < GIC_FIRST_SPI)
		ref_set_ppi(pair->ref, vcpu, intid, source, level);
	else
		ref_set_spi(pair->ref, intid, source, level);
}

/*
 * KVM has one level of a line, and none of one that is edge-triggered: there the line has to begin low, in KVM's profile.
 * Which of its devices drives a line the VMM knows, and says again without a movement of the line. A level that none of
 * them drives came by GICD_SETSPI_NSR, and is source 0's from here on.
 */
static void move_line(struct pair *pair, uint32_t vcpu, uint32_t intid)
{
	bool edge = false;
	const uint32_t sources = ref_line_sources(pair->ref, vcpu, intid, &edge);
	const uint32_t devices = sources & ((1u << VGIC_NUM_LINE_SOURCES) - 1);
	const bool lost = edge && pair->config.profile == VGIC_PROFILE_KVM;

	for (unsigned source = 0; source < VGIC_NUM_LINE_SOURCES; source++) {
		if (!(devices >> source & 1))
			continue;
		if (lost)
			ref_drive(pair, vcpu, intid, source, false);
		else
			drive(pair, vcpu, intid, source, true);
	}
	if (sources != devices) {
		if (!devices && !lost)
			ref_drive(pair, vcpu, intid, 0, true);
		ref_forget_message(pair->ref, intid);
	} else if (!(devices & 1)) {
		drive(pair, vcpu, intid, 0, false);
	}
	if (devices && !(devices & 1))
		drive(pair, vcpu, intid, 0, false);
}

static void move_lines(struct pair *pair)
{
	for (uint32_t v = 0; v < pair->num_vcpus; v++) {
		for (uint32_t intid = GIC_FIRST_PPI; intid < GIC_FIRST_SPI; intid++)
			move_line(pair, v, intid);
	}
	for (uint32_t intid = GIC_FIRST_SPI; intid < GIC_FIRST_SPI + pair->num_spis; intid++)
		move_line(pair, 0, intid);
}

/* With CBPR=1 ICC_BPR1 shows what BPR0 makes of it, and what is behind that is lost. */
static void lose_hidden_bpr1(struct pair *pair, uint32_t vcpu)
{
	uint64_t ctlr = 0, bpr1 = 0;

	ref_icc_read(pair->ref, vcpu, VGIC_ICC_CTLR_EL1, 0, &ctlr);
	if (!(ctlr & ICC_CTLR_CBPR))
		return;
	ref_icc_read(pair->ref, vcpu, VGIC_ICC_BPR1_EL1, 0, &bpr1);
	ref_icc_write(pair->ref, vcpu, VGIC_ICC_CTLR_EL1, ctlr & ~(uint64_t)ICC_CTLR_CBPR);
	ref_icc_write(pair->ref, vcpu, VGIC_ICC_BPR1_EL1, bpr1);
	ref_icc_write(pair->ref, vcpu, VGIC_ICC_CTLR_EL1, ctlr);
}

static void lose_what_attributes_lack(struct pair *pair)
{
	move_lines(pair);
	for (uint32_t v = 0; v < pair->num_vcpus; v++)
		lose_hidden_bpr1(pair, v);
	if (pair->config.features & VGIC_FEATURE_LPIS)
		ref_lpis_forget(ref_lpis(pair->ref));
}

/* ---- Both ---------------------------------------------------------------------------------------------- */

void pair_move_on(struct pair *pair, enum pair_way way, uint64_t random)
{
	const struct vgic_config old_config = pair->config;
	struct vgic_vcpu_config old_order[MAX_FRAMES];
	struct vgic_redist_region old_regions[3];
	uint32_t order[MAX_FRAMES];
	struct image image = { 0 };
	/* The attributes of the guest's vCPUs are all that is taken; an image has all, and no controller takes a part. */
	const uint32_t least = way == PAIR_BY_IMAGE ? pair->num_extra : 0;
	const bool more = draw(&random, 100) < 30 && pair->num_vcpus > 1;
	uint32_t num_extra = more ? 1 + draw(&random, PAIR_MAX_EXTRA) : 0;
	struct vgic *to;

	if (num_extra < least)
		num_extra = least;
	memcpy(old_order, pair->config.vcpus, pair->config.num_vcpus * sizeof(old_order[0]));
	memcpy(old_regions, pair->regions, sizeof(old_regions));
	if (way == PAIR_BY_IMAGE) {
		struct vgic_config config = old_config;

		config.vcpus = old_order;
		config.redist_regions = old_regions;
		image = save(pair, pair->vgic);
		if (draw(&random, 4) == 0)
			check_refused(pair, &config, &image, &random);
	}
	pair_log_move(pair, image.size);
	choose_order(pair, order, num_extra, &random);
	choose_regions(pair, &random);
	to = create(pair);
	if (way == PAIR_BY_IMAGE)
		move_image(pair, to, &image, num_extra == least);
	else
		move_attributes(pair, to);
	switch_to(pair, to, order);
	if (way == PAIR_BY_ATTRIBUTES)
		lose_what_attributes_lack(pair);
	free(image.bytes);
}
