/* SPDX-License-Identifier: MIT */
/*
 * A reader of flattened device trees: one walk over the structure block, looking
 * at each node once its properties are complete. It assumes what holds for the
 * machines that run these guests: the devices are children of the root.
 */
#include "fdt.h"

#include <stddef.h>

#define FDT_MAGIC      0xd00dfeedu
#define FDT_BEGIN_NODE 1u
#define FDT_END_NODE   2u
#define FDT_PROP       3u
#define FDT_NOP        4u

struct property {
	const uint32_t *value;
	uint32_t length; /* in bytes; 0 if the node has no such property */
};

/* The properties that are looked at, of the node that is being read. */
struct node {
	struct property compatible;
	struct property device_type;
	struct property reg;
	struct property redist_regions;
};

struct walk {
	struct machine_info *info;
	const char *strings;
	uint32_t address_cells; /* of the root's children */
	uint32_t size_cells;
	unsigned depth;
	bool has_gic;
	struct node node;
};

static uint32_t be32(const uint32_t *p)
{
	return __builtin_bswap32(*p);
}

static bool strings_equal(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/* Is @s one of the strings in the property's list? */
static bool property_has_string(const struct property *p, const char *s)
{
	const char *list = (const char *)p->value;

	for (uint32_t i = 0; i < p->length; i++)
		if ((i == 0 || list[i - 1] == '\0') && strings_equal(&list[i], s))
			return true;
	return false;
}

/* A number of @cells cells at *@p, which is moved behind it. */
static uint64_t take_number(const uint32_t **p, uint32_t cells)
{
	uint64_t value = 0;

	for (; cells; cells--)
		value = value << 32 | be32((*p)++);
	return value;
}

/* reg of a GICv3: the distributor, then the redistributor regions; what follows is for virtualization. */
static void read_gic(struct walk *w)
{
	struct machine_info *info = w->info;
	const uint32_t *p = w->node.reg.value;
	uint32_t regions = w->node.redist_regions.length ? be32(w->node.redist_regions.value) : 1;

	if (regions > MAX_REDIST_REGIONS || w->node.reg.length < (1 + regions) * (w->address_cells + w->size_cells) * 4)
		return;
	info->dist_base = take_number(&p, w->address_cells);
	take_number(&p, w->size_cells);
	for (uint32_t i = 0; i < regions; i++) {
		info->redist_base[i] = take_number(&p, w->address_cells);
		info->redist_size[i] = take_number(&p, w->size_cells);
	}
	info->num_redist_regions = regions;
	w->has_gic = true;
}

static void read_cpu(struct walk *w)
{
	struct machine_info *info = w->info;
	const uint32_t *p = w->node.reg.value;

	if (info->num_cpus < MAX_MACHINE_CPUS && p)
		info->cpu_mpidr[info->num_cpus] = take_number(&p, w->node.reg.length / 4);
	info->num_cpus++;
}

/* All properties of the current node have been seen. */
static void finish_properties(struct walk *w)
{
	const uint32_t *reg = w->node.reg.value;

	if (property_has_string(&w->node.device_type, "cpu"))
		read_cpu(w);
	if (property_has_string(&w->node.compatible, "arm,gic-v3"))
		read_gic(w);
	if (property_has_string(&w->node.compatible, "arm,gic-v3-its") && reg) {
		w->info->its_base = take_number(&reg, w->address_cells);
		w->info->has_its = true;
	}
	if (property_has_string(&w->node.compatible, "vgic,testdev") && reg) {
		w->info->test_device_base = take_number(&reg, w->address_cells);
		w->info->has_test_device = true;
	}
	w->node = (struct node){ 0 };
}

static void read_property(struct walk *w, const char *name, struct property p)
{
	if (strings_equal(name, "compatible"))
		w->node.compatible = p;
	else if (strings_equal(name, "device_type"))
		w->node.device_type = p;
	else if (strings_equal(name, "reg"))
		w->node.reg = p;
	else if (strings_equal(name, "#redistributor-regions"))
		w->node.redist_regions = p;
	else if (w->depth == 1 && strings_equal(name, "#address-cells"))
		w->address_cells = be32(p.value);
	else if (w->depth == 1 && strings_equal(name, "#size-cells"))
		w->size_cells = be32(p.value);
}

/* One token of the structure block. Returns the next one, or NULL at the end. */
static const uint32_t *walk_token(struct walk *w, const uint32_t *p)
{
	const char *name;
	struct property property;

	switch (be32(p++)) {
	case FDT_BEGIN_NODE:
		finish_properties(w);
		w->depth++;
		name = (const char *)p;
		while (*name)
			name++;
		return (const uint32_t *)(((uintptr_t)name + 4) & ~(uintptr_t)3);
	case FDT_END_NODE:
		finish_properties(w);
		w->depth--;
		return p;
	case FDT_PROP:
		property.length = be32(p++);
		name = w->strings + be32(p++);
		property.value = p;
		read_property(w, name, property);
		return p + (property.length + 3) / 4;
	case FDT_NOP:
		return p;
	default:
		return NULL;
	}
}

bool fdt_scan(const void *fdt, struct machine_info *info)
{
	const uint32_t *header = fdt;
	struct walk w = { .info = info, .address_cells = 2, .size_cells = 1 };

	if (!fdt || be32(&header[0]) != FDT_MAGIC)
		return false;
	w.strings = (const char *)fdt + be32(&header[3]);
	for (const uint32_t *p = header + be32(&header[2]) / 4; p;)
		p = walk_token(&w, p);
	return w.has_gic;
}
