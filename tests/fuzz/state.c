/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: what comes back from storage, or from an enemy. The first byte says
 * which way.
 *
 * Images: vgic_restore() of the bytes, with checksums that fit or as they are. What is
 * refused has changed nothing. What is accepted can be saved, and restored into a
 * controller whose vCPUs were created in another order; guest and devices then go on
 * with both, and see the same.
 *
 * Attributes: registers in any order, tables in guest memory with any content. What
 * returns an error has changed nothing: a second machine, on which only the other calls
 * are made, stays the same. Tables that were restored can be saved, and restored again to
 * the same state.
 */
#include <errno.h>
#include <its_arch.h>
#include <string.h>

#include "check.h"
#include "state_world.h"

#define MAX_STEPS 64u

/* Bits of the first byte. */
#define MODE_ATTRIBUTES 1u
#define MODE_KVM        2u
#define MODE_AS_IT_IS   4u /* an image whose header is not made to fit */
#define MODE_FROM_EMPTY 8u /* attributes: into a controller that was just reset */
#define MODE_CHANGED    8u /* an image that was saved, and the input says what is changed in it */

struct profile {
	struct world a, b; /* b has its vCPUs the other way round */
	struct image empty, rich;
};

static struct profile profiles[2];

/* ---- Images --------------------------------------------------------------------------- */

#define HEADER_SIZE 32u

static void put(uint8_t *p, uint64_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		p[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *p, unsigned n)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < n; i++)
		value |= (uint64_t)p[i] << (8 * i);
	return value;
}

/* CRC-32C, not the library's. */
static uint32_t crc_of(const uint8_t *p, size_t n)
{
	static uint32_t table[256];
	uint32_t crc = UINT32_MAX;

	for (uint32_t i = 0; i < 256 && !table[255]; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0x82f63b78u : 0);
	}
	for (size_t i = 0; i < n; i++)
		crc = crc >> 8 ^ table[(crc ^ p[i]) & 0xff];
	return ~crc;
}

/* Length and checksums that fit, whatever is there. */
static void seal(uint8_t *bytes, size_t size)
{
	if (size < HEADER_SIZE)
		return;
	put(bytes + 16, size, 8);
	put(bytes + 24, crc_of(bytes + HEADER_SIZE, size - HEADER_SIZE), 4);
	put(bytes + 28, crc_of(bytes, 28), 4);
}

static bool is_refusal(int err)
{
	return err == -EBADMSG || err == -EPROTONOSUPPORT || err == -ENODEV || err == -E2BIG || err == -EOPNOTSUPP;
}

/* Returns false if the image was refused. */
static bool restore_bytes(struct world *w, const uint8_t *bytes, size_t size)
{
	struct vgic_restore_error why = { .size = sizeof(why) };
	const int err = vgic_restore(w->vgic, bytes, size, &why);

	if (!err)
		return true;
	check(is_refusal(err) && why.what && why.image_offset <= size);
	return false;
}

/* Fields of the image are overwritten: a short input, so that it takes fewer mutations to find the one that matters. */
static bool restore_changed(struct world *w, const struct image *image, struct input *input)
{
	uint8_t *copy = malloc(image->size);
	bool accepted;

	check(copy);
	memcpy(copy, image->bytes, image->size);
	for (unsigned left = 1 + input_u8(input) % 4; left > 0; left--) {
		const size_t where = input_u16(input) % image->size;
		const unsigned width = 1u << input_u8(input) % 4;

		put(copy + where, input_uint(input, width),
		    width < image->size - where ? width : (unsigned)(image->size - where));
	}
	seal(copy, image->size);
	accepted = restore_bytes(w, copy, image->size);
	free(copy);
	return accepted;
}

/* A copy of its own, so that AddressSanitizer sees what is read behind its end. */
static bool restore_input(struct world *w, struct input *input, bool as_it_is)
{
	const size_t want = input_u16(input);
	const uint8_t *bytes;
	const size_t size = input_bytes(input, want, &bytes);
	uint8_t *copy = malloc(size + !size);
	bool accepted;

	check(copy);
	memcpy(copy, bytes, size);
	if (!as_it_is)
		seal(copy, size);
	accepted = restore_bytes(w, copy, size);
	free(copy);
	return accepted;
}

/* Returns whether it can be told what both are now. */
static bool go_on_with_both(struct profile *p, struct input *input)
{
	for (unsigned i = 0; i < MAX_STEPS && !input_is_empty(input); i++) {
		struct step step;
		uint64_t seen;

		step_read(input, &step, NUM_GUEST_STEPS);
		seen = step_make(&p->a, &step);
		check(seen == step_make(&p->b, &step));
		if (seen == STEP_ENDLESS)
			return false;
	}
	check(memcmp(p->a.ram, p->b.ram, WORLD_RAM_SIZE) == 0);
	return true;
}

static void fuzz_image(struct profile *p, struct input *input, uint8_t mode)
{
	static struct image first, second;
	size_t size = 0;

	world_set(&p->a, &p->rich);
	if (!(mode & MODE_CHANGED ? restore_changed(&p->a, &p->rich, input) :
				    restore_input(&p->a, input, mode & MODE_AS_IT_IS))) {
		check(world_same(&p->a, &p->rich));
		return;
	}
	p->a.is_at = NULL;
	world_save(&p->a, &first);
	check(vgic_save_size(p->a.vgic, &size) == 0 && size == first.size);
	world_set(&p->b, &first);
	p->b.is_at = NULL;
	check(world_same(&p->b, &first));
	if (!go_on_with_both(p, input))
		return;
	world_save(&p->a, &second);
	check(world_same(&p->b, &second));
}

/* ---- Attributes and tables --------------------------------------------------------------- */

struct range {
	uint64_t start, size;
};

#define MAX_RANGES 32u

static bool are_disjoint(const struct range *ranges, unsigned num)
{
	for (unsigned i = 0; i < num; i++) {
		for (unsigned n = i + 1; n < num; n++) {
			if (ranges[i].start < ranges[n].start + ranges[n].size &&
			    ranges[n].start < ranges[i].start + ranges[i].size)
				return false;
		}
	}
	return true;
}

static uint64_t get_attr(struct vgic *vgic, uint32_t group, uint64_t attr)
{
	uint64_t low = 0, high = 0;

	check(vgic_attr_get(vgic, group, attr, &low) == 0);
	check(vgic_attr_get(vgic, group, attr + 4, &high) == 0);
	return low | high << 32;
}

static uint64_t get_its_register(struct vgic_its *its, uint32_t offset)
{
	uint64_t value = 0;

	check(vgic_its_attr_get(its, VGIC_GRP_ITS_REGS, offset, &value) == 0);
	return value;
}

/* The ITTs of an image: its ITS section has the devices behind a record of 64 bytes. */
static unsigned add_itts(const struct image *image, struct range *ranges, unsigned num)
{
	size_t at = HEADER_SIZE;

	while (memcmp(image->bytes + at, "ITS ", 4) != 0)
		at += 16 + (get(image->bytes + at + 8, 8) + 7) / 8 * 8;
	at += 16 + 64;
	for (uint64_t left = get(image->bytes + at, 4); left > 0 && num < MAX_RANGES; left--) {
		const uint8_t *device = image->bytes + at + 8 + 24 * (left - 1);

		ranges[num++] = (struct range){ get(device + 8, 8), 8ull << get(device + 4, 4) };
	}
	return num;
}

/*
 * Is each table of a guest in memory of its own, and has the ITS both tables? Then what is saved in one of them is what
 * will be found there.
 */
static bool tables_are_sound(struct world *w, const struct image *image)
{
	const uint64_t baser0 = get_its_register(w->its, GITS_BASER0), baser1 = get_its_register(w->its, GITS_BASER1);
	const uint64_t address = UINT64_C(0x0000ffffffff0000);
	struct range ranges[MAX_RANGES];
	unsigned num = 0;

	if (!(baser0 & baser1 & GITS_BASER_VALID) || (baser0 & GITS_BASER_INDIRECT))
		return false;
	ranges[num++] = (struct range){ baser0 & address, 8 * 256 };
	ranges[num++] = (struct range){ baser1 & address, GITS_TABLE_PAGE * ((baser1 & 0xff) + 1) };
	for (uint64_t v = 0; v < WORLD_VCPUS; v++)
		ranges[num++] = (struct range){ get_attr(w->vgic, VGIC_GRP_REDIST_REGS, VGIC_ATTR_REDIST(v, 0x78)) &
							UINT64_C(0xfffffffff0000),
						(1u << WORLD_ID_BITS) / 8 };
	ranges[num++] = (struct range){ get_attr(w->vgic, VGIC_GRP_REDIST_REGS, VGIC_ATTR_REDIST(0, 0x70)) &
						UINT64_C(0xffffffffff000),
					(1u << WORLD_ID_BITS) - 8192 };
	return are_disjoint(ranges, add_itts(image, ranges, num));
}

static int control(struct world *w, uint64_t attr)
{
	return vgic_its_attr_set(w->its, VGIC_GRP_CTRL, attr, 0);
}

/* Tables have been restored: saved and restored again, they are the same. */
static void check_fixed_point(struct world *w)
{
	static struct image before;

	world_save(w, &before);
	if (!tables_are_sound(w, &before))
		return;
	if (control(w, VGIC_CTRL_ITS_SAVE_TABLES))
		return;
	check(world_same(w, &before));
	check(control(w, VGIC_CTRL_ITS_RESTORE_TABLES) == 0);
	check(world_same(w, &before));
}

/* Of calls that return errors some may have written to memory: a part of what they had to. */
static bool may_have_written(const struct step *step)
{
	if (step->kind == STEP_TABLES)
		return !(step->value & 1);
	return step->where == VGIC_GRP_CTRL;
}

/*
 * A step of the VMM, made on the first machine; on the second only if it has done something. *restored: tables have
 * been restored.
 */
static void set_on_both(struct profile *p, const struct step *step, bool *restored)
{
	const bool was_running = p->a.in_guest[0] || p->a.in_guest[1];
	int err = step_set(&p->a, step);

	check(err <= 0);
	if (was_running) {
		check(err == -EBUSY);
		world_stop_vcpus(&p->a);
		world_stop_vcpus(&p->b);
		err = step_set(&p->a, step);
	}
	*restored = !err && step->kind == STEP_TABLES && (step->value & 1);
	if (!err || may_have_written(step))
		check(step_set(&p->b, step) == err);
}

/* Reading registers changes nothing: only the first machine is asked. */
static void get_attr_of_step(struct world *w, const struct step *step)
{
	uint64_t value = step->value;

	/* What can be read is said to be there. */
	if (step->kind == STEP_ATTR)
		check(vgic_attr_get(w->vgic, step->where, step->attr, &value) ||
		      !vgic_attr_has(w->vgic, step->where, step->attr));
	else if (step->kind == STEP_ITS_ATTR)
		check(vgic_its_attr_get(w->its, step->where, step->attr, &value) ||
		      !vgic_its_attr_has(w->its, step->where, step->attr));
}

static void fuzz_attributes(struct profile *p, struct input *input, bool from_empty)
{
	static struct image image;
	const struct image *first = from_empty ? &p->empty : &p->rich;

	world_set(&p->a, first);
	world_set(&p->b, first);
	p->a.is_at = NULL;
	p->b.is_at = NULL;
	for (unsigned i = 0; i < MAX_STEPS && !input_is_empty(input); i++) {
		bool restored = false;
		struct step step;
		uint64_t seen;

		step_read(input, &step, NUM_STEPS);
		if (step.kind < STEP_ATTR) {
			seen = step_make(&p->a, &step);
			check(seen == step_make(&p->b, &step));
			if (seen == STEP_ENDLESS)
				return;
			continue;
		}
		set_on_both(p, &step, &restored);
		get_attr_of_step(&p->a, &step);
		if (restored) {
			check_fixed_point(&p->a);
			check_fixed_point(&p->b);
		}
	}
	check(memcmp(p->a.ram, p->b.ram, WORLD_RAM_SIZE) == 0);
	world_save(&p->a, &image);
	check(world_same(&p->b, &image));
}

/* ---- The beginning ------------------------------------------------------------------------- */

static void create_profile(struct profile *p, enum vgic_profile profile)
{
	world_create(&p->a, profile, false);
	world_create(&p->b, profile, true);
	world_save(&p->a, &p->empty);
	world_fill(&p->a);
	world_save(&p->a, &p->rich);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	const uint8_t mode = input_u8(&input);
	struct profile *p = &profiles[mode & MODE_KVM ? 1 : 0];

	if (!profiles[0].a.vgic) {
		create_profile(&profiles[0], VGIC_PROFILE_NATIVE);
		create_profile(&profiles[1], VGIC_PROFILE_KVM);
	}
	if (mode & MODE_ATTRIBUTES)
		fuzz_attributes(p, &input, mode & MODE_FROM_EMPTY);
	else
		fuzz_image(p, &input, mode);
	return 0;
}
