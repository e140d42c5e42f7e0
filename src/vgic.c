/* SPDX-License-Identifier: MIT */
/*
 * vgic.c - life cycle: configuration, creation, reset, destruction.
 *
 * The only place where memory is allocated. A controller is checked completely
 * before anything is made, and is whole before anyone sees it.
 */
#include <errno.h>
#include <string.h>

#include "cpuif.h"
#include "dist.h"
#include "gic_regs.h"
#include "its.h"
#include "lpi.h"
#include "one_of_n.h"
#include "pending.h"
#include "redist.h"
#include "vgic_internal.h"

#define FRAME_ALIGNMENT UINT64_C(0x10000)
#define NO_INDEX        0xffffu

/* What each profile has unless the VMM says otherwise. */
#define NATIVE_FEATURES                                                                                                \
	(VGIC_FEATURE_RSS | VGIC_FEATURE_MBIS | VGIC_FEATURE_ONE_OF_N | VGIC_FEATURE_A3V | VGIC_FEATURE_DPGS |         \
	 VGIC_FEATURE_STATUSR | VGIC_FEATURE_WAKER)
#define KVM_FEATURES 0u

void vgic_config_init(struct vgic_config *config, enum vgic_profile profile)
{
	*config = (struct vgic_config){
		.size = sizeof(*config),
		.profile = profile,
		.features = profile == VGIC_PROFILE_KVM ? KVM_FEATURES : NATIVE_FEATURES,
		.num_spis = 256,
		.priority_bits = PRIORITY_BITS,
		.lpi_id_bits = 16,
		.kvm_revision = 3,
		.ops = { .size = sizeof(config->ops) },
	};
}

/* ---- Checks: nothing is allocated before all of them have passed -------------------- */

static bool is_sane(const struct vgic_config *c)
{
	const bool spis_are_whole_words = c->num_spis % 32 == 0 && c->num_spis >= VGIC_MIN_SPIS && c->num_spis <= 960;

	if (c->size != sizeof(*c) || c->ops.size != sizeof(c->ops))
		return false;
	if (c->profile != VGIC_PROFILE_NATIVE && c->profile != VGIC_PROFILE_KVM)
		return false;
	if (c->features & ~VGIC_FEATURES_ALL)
		return false;
	if ((c->features & VGIC_FEATURE_DPGS) && !(c->features & VGIC_FEATURE_ONE_OF_N))
		return false;
	if (!spis_are_whole_words && c->num_spis != VGIC_MAX_SPIS)
		return false;
	if (c->priority_bits != PRIORITY_BITS)
		return false;
	if (c->lpi_id_bits < VGIC_MIN_LPI_BITS || c->lpi_id_bits > VGIC_MAX_LPI_BITS)
		return false;
	if ((c->features & VGIC_FEATURE_LPIS) && (!c->ops.guest_read || !c->ops.guest_write))
		return false;
	if (c->kvm_revision < KVM_REVISION_MIN || c->kvm_revision > KVM_REVISION_MAX)
		return false;
	return c->num_vcpus >= 1 && c->num_vcpus <= VGIC_MAX_VCPUS && c->vcpus;
}

static bool vcpus_are_sane(const struct vgic_config *c)
{
	const uint64_t aff3 = UINT64_C(0xff) << 32;

	for (uint32_t i = 0; i < c->num_vcpus; i++) {
		const struct vgic_vcpu_config *v = &c->vcpus[i];

		if (v->id > VGIC_MAX_VCPU_ID || (v->affinity & ~AFFINITY_MASK))
			return false;
		if ((v->affinity & aff3) && !(c->features & VGIC_FEATURE_A3V))
			return false;
	}
	return true;
}

/* May a frame of @size bytes begin at @base? */
static bool range_is_sane(uint64_t base, uint64_t size)
{
	return base % FRAME_ALIGNMENT == 0 && base <= UINT64_MAX - size;
}

static bool ranges_overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b + b_size && b < a + a_size;
}

static uint64_t region_size(const struct vgic_redist_region *r)
{
	return (uint64_t)r->num_frames * VGIC_REDIST_FRAME_SIZE;
}

static bool region_is_sane(const struct vgic_config *c, uint32_t index)
{
	const struct vgic_redist_region *r = &c->redist_regions[index];

	if (r->num_frames == 0 || r->reserved != 0 || !range_is_sane(r->base, region_size(r)))
		return false;
	if (c->has_dist_base && ranges_overlap(r->base, region_size(r), c->dist_base, VGIC_DIST_FRAME_SIZE))
		return false;
	for (uint32_t i = 0; i < index; i++) {
		const struct vgic_redist_region *other = &c->redist_regions[i];

		if (ranges_overlap(r->base, region_size(r), other->base, region_size(other)))
			return false;
	}
	return true;
}

static bool its_frame_is_sane(const struct vgic_config *c, uint32_t index)
{
	const uint64_t base = c->itses[index].base, size = VGIC_ITS_FRAME_SIZE;

	if (!c->itses[index].has_base)
		return true;
	if (!range_is_sane(base, size))
		return false;
	if (c->has_dist_base && ranges_overlap(base, size, c->dist_base, VGIC_DIST_FRAME_SIZE))
		return false;
	for (uint32_t i = 0; i < c->num_redist_regions; i++) {
		if (ranges_overlap(base, size, c->redist_regions[i].base, region_size(&c->redist_regions[i])))
			return false;
	}
	for (uint32_t i = 0; i < index; i++) {
		if (c->itses[i].has_base && ranges_overlap(base, size, c->itses[i].base, size))
			return false;
	}
	return true;
}

static bool itses_are_sane(const struct vgic_config *c)
{
	if (c->num_itses == 0)
		return true;
	if (c->num_itses > VGIC_MAX_ITSES || !c->itses || !(c->features & VGIC_FEATURE_LPIS))
		return false;
	for (uint32_t i = 0; i < c->num_itses; i++) {
		if (!its_config_is_sane(&c->itses[i]) || !its_frame_is_sane(c, i))
			return false;
	}
	return true;
}

static bool frames_are_sane(const struct vgic_config *c)
{
	uint64_t frames = 0;

	if (c->has_dist_base && !range_is_sane(c->dist_base, VGIC_DIST_FRAME_SIZE))
		return false;
	if (c->num_redist_regions == 0)
		return true;
	/* A region may stay empty: a machine's map does not depend on its vCPUs. The bound is that of the check for overlaps. */
	if (!c->redist_regions || c->num_redist_regions > VGIC_MAX_VCPUS)
		return false;
	for (uint32_t i = 0; i < c->num_redist_regions; i++) {
		if (!region_is_sane(c, i))
			return false;
		frames += c->redist_regions[i].num_frames;
	}
	return frames >= c->num_vcpus;
}

/* ---- Creation -------------------------------------------------------------------------- */

static void init_irq(struct irq *irq, uint32_t intid, uint32_t number, irq_word word)
{
	irq->intid = intid;
	irq->number = number;
	store_relaxed(&irq->word, word);
}

static int make_spis(struct vgic *vgic)
{
	vgic->spis = port_alloc_zeroed(vgic->num_spis * sizeof(*vgic->spis), CACHE_LINE);
	if (!vgic->spis)
		return -ENOMEM;
	for (uint32_t i = 0; i < vgic->num_spis; i++)
		init_irq(&vgic->spis[i], FIRST_SPI + i, FIRST_SPI + i, irq_set_target(0, IRQ_NO_TARGET));
	return 0;
}

static int make_lpis(struct vgic *vgic)
{
	if (!vgic_has(vgic, VGIC_FEATURE_LPIS))
		return 0;
	vgic->num_lpis = (UINT32_C(1) << vgic->lpi_id_bits) - FIRST_LPI;
	vgic->lpis = port_alloc_zeroed(vgic->num_lpis * sizeof(*vgic->lpis), CACHE_LINE);
	if (!vgic->lpis)
		return -ENOMEM;
	for (uint32_t i = 0; i < vgic->num_lpis; i++)
		init_irq(&vgic->lpis[i], FIRST_LPI + i, FIRST_LPI_NUMBER + i,
			 irq_set_target(IRQ_LPI | IRQ_EDGE | IRQ_GROUP1, IRQ_NO_TARGET));
	return 0;
}

/* How many bits the candidate maps have. */
static uint32_t num_numbers(const struct vgic *vgic)
{
	return vgic->num_lpis ? FIRST_LPI_NUMBER + vgic->num_lpis : FIRST_SPI + vgic->num_spis;
}

static void init_vcpu(struct vgic *vgic, uint32_t index, const struct vgic_vcpu_config *config, void *maps)
{
	struct vgic_vcpu *vcpu = vgic->vcpus[index];

	vcpu->vgic = vgic;
	vcpu->index = index;
	vcpu->id = config->id;
	vcpu->affinity = config->affinity;
	vcpu->user = config->user;
	store_relaxed(&vcpu->online, true);
	pending_init(&vcpu->pending, index, num_numbers(vgic), maps);
	for (uint32_t i = 0; i < NUM_PRIVATE; i++)
		init_irq(&vcpu->private_irqs[i], i, i, irq_set_target(0, index));
}

/* All vCPUs in one piece of memory: a vCPU, then its maps. */
static int make_vcpus(struct vgic *vgic, const struct vgic_config *config)
{
	const size_t maps = pending_map_size(num_numbers(vgic));
	const size_t stride = (sizeof(struct vgic_vcpu) + maps + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;

	vgic->vcpus = port_alloc_zeroed(vgic->num_vcpus * sizeof(*vgic->vcpus), CACHE_LINE);
	vgic->vcpu_memory = port_alloc_zeroed(vgic->num_vcpus * stride, CACHE_LINE);
	if (!vgic->vcpus || !vgic->vcpu_memory)
		return -ENOMEM;
	for (uint32_t i = 0; i < vgic->num_vcpus; i++) {
		unsigned char *memory = vgic->vcpu_memory + i * stride;

		vgic->vcpus[i] = (struct vgic_vcpu *)memory;
		init_vcpu(vgic, i, &config->vcpus[i], memory + sizeof(struct vgic_vcpu));
	}
	return 0;
}

static int make_id_table(struct vgic *vgic, const struct vgic_config *config)
{
	vgic->max_id = 0;
	for (uint32_t i = 0; i < vgic->num_vcpus; i++)
		vgic->max_id = config->vcpus[i].id > vgic->max_id ? config->vcpus[i].id : vgic->max_id;
	vgic->index_by_id = port_alloc_zeroed((vgic->max_id + 1) * sizeof(*vgic->index_by_id), CACHE_LINE);
	if (!vgic->index_by_id)
		return -ENOMEM;
	memset(vgic->index_by_id, 0xff, (vgic->max_id + 1) * sizeof(*vgic->index_by_id));
	for (uint32_t i = 0; i < vgic->num_vcpus; i++) {
		if (vgic->index_by_id[config->vcpus[i].id] != NO_INDEX)
			return -EINVAL;
		vgic->index_by_id[config->vcpus[i].id] = (uint16_t)i;
	}
	return 0;
}

static int make_affinity_map(struct vgic *vgic, const struct vgic_config *config)
{
	uint32_t *packed = port_alloc_zeroed(vgic->num_vcpus * sizeof(*packed), CACHE_LINE);
	int err;

	if (!packed)
		return -ENOMEM;
	for (uint32_t i = 0; i < vgic->num_vcpus; i++)
		packed[i] = affinity_pack(config->vcpus[i].affinity);
	err = affinity_map_init(&vgic->affinity, packed, vgic->num_vcpus);
	port_free(packed);
	return err;
}

/* The address of a redistributor; only asked where there are regions. */
static uint64_t redist_address(const struct vgic *vgic, uint32_t index)
{
	uint32_t i = 0;

	while (index - vgic->redist_ranges[i].first_index >= vgic->redist_ranges[i].num_frames)
		i++;
	return vgic->redist_ranges[i].base +
	       (uint64_t)(index - vgic->redist_ranges[i].first_index) * VGIC_REDIST_FRAME_SIZE;
}

/* GICR_TYPER.Last: the last frame that a vCPU fills of each contiguous run of frames. */
static void mark_last_frames(struct vgic *vgic)
{
	for (uint32_t i = 0; i < vgic->num_vcpus; i++) {
		bool last = i + 1 == vgic->num_vcpus;

		if (!last && vgic->num_redist_ranges)
			last = redist_address(vgic, i + 1) != redist_address(vgic, i) + VGIC_REDIST_FRAME_SIZE;
		vgic->vcpus[i]->frame_is_last = last;
	}
}

static int make_frames(struct vgic *vgic, const struct vgic_config *config)
{
	uint32_t first = 0;

	vgic->has_dist_base = config->has_dist_base;
	vgic->dist_base = config->dist_base;
	if (config->num_redist_regions) {
		vgic->redist_ranges =
			port_alloc_zeroed(config->num_redist_regions * sizeof(*vgic->redist_ranges), CACHE_LINE);
		if (!vgic->redist_ranges)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < config->num_redist_regions; i++) {
		vgic->redist_ranges[i] = (struct redist_range){
			.base = config->redist_regions[i].base,
			.num_frames = config->redist_regions[i].num_frames,
			.first_index = first,
		};
		first += config->redist_regions[i].num_frames;
	}
	vgic->num_redist_ranges = config->num_redist_regions;
	mark_last_frames(vgic);
	return 0;
}

static int make_itses(struct vgic *vgic, const struct vgic_config *config)
{
	if (config->num_itses == 0)
		return 0;
	vgic->itses = port_alloc_zeroed(config->num_itses * sizeof(struct vgic_its *), CACHE_LINE);
	if (!vgic->itses)
		return -ENOMEM;
	for (; vgic->num_itses < config->num_itses; vgic->num_itses++) {
		vgic->itses[vgic->num_itses] = its_new(vgic, vgic->num_itses, &config->itses[vgic->num_itses]);
		if (!vgic->itses[vgic->num_itses])
			return -ENOMEM;
	}
	return 0;
}

static int make_parts(struct vgic *vgic, const struct vgic_config *config)
{
	int err;

	vgic->config_lock = port_lock_new(LOCK_CONFIG);
	vgic->routes_lock = port_lock_new(LOCK_ROUTE_LIST);
	if (!vgic->config_lock || !vgic->routes_lock)
		return -ENOMEM;
	err = make_spis(vgic);
	err = err ? err : make_lpis(vgic);
	err = err ? err : make_id_table(vgic, config);
	err = err ? err : make_affinity_map(vgic, config);
	err = err ? err : make_vcpus(vgic, config);
	err = err ? err : make_itses(vgic, config);
	return err ? err : make_frames(vgic, config);
}

void reset_registers(struct vgic *vgic)
{
	for (uint32_t i = 0; i < vgic->num_itses; i++)
		its_reset_with_lpis(vgic->itses[i]);
	lpi_reset(vgic);
	vgic->work_left = false;
	for (uint32_t i = 0; i < vgic->num_vcpus; i++) {
		cpuif_reset(vgic->vcpus[i]);
		redist_reset(vgic->vcpus[i]);
		one_of_n_set(vgic->vcpus[i]);
	}
	dist_reset(vgic);
}

int vgic_create(const struct vgic_config *config, struct vgic **out)
{
	struct vgic *vgic;
	int err;

	if (!config || !out || !is_sane(config) || !vcpus_are_sane(config) || !frames_are_sane(config) ||
	    !itses_are_sane(config))
		return -EINVAL;
	vgic = port_alloc_zeroed(sizeof(*vgic), CACHE_LINE);
	if (!vgic)
		return -ENOMEM;
	vgic->num_vcpus = config->num_vcpus;
	vgic->num_spis = config->num_spis;
	vgic->features = config->features;
	vgic->profile = config->profile;
	store_relaxed(&vgic->kvm_revision, config->kvm_revision);
	vgic->lpi_id_bits = config->lpi_id_bits;
	err = make_parts(vgic, config);
	if (err) {
		vgic_destroy(vgic);
		return err;
	}
	config_lock(vgic);
	reset_registers(vgic);
	config_unlock(vgic);
	/* The callbacks come last: nothing that creation does is told to the VMM. */
	vgic->ops = config->ops;
	vgic->opaque = config->opaque;
	store_relaxed(&vgic->kicks, 0);
	for (uint32_t i = 0; i < vgic->num_vcpus; i++)
		store_relaxed(&vgic->vcpus[i]->pending.watch, vgic->ops.line_changed != NULL);
	*out = vgic;
	return 0;
}

void vgic_destroy(struct vgic *vgic)
{
	if (!vgic)
		return;
	for (uint32_t i = 0; i < vgic->num_itses; i++)
		its_free(vgic->itses[i]);
	port_free(vgic->itses);
	affinity_map_free(&vgic->affinity);
	port_free(vgic->redist_ranges);
	port_free(vgic->index_by_id);
	port_free(vgic->vcpu_memory);
	port_free(vgic->vcpus);
	port_free(vgic->lpis);
	port_free(vgic->spis);
	port_lock_free(vgic->routes_lock);
	port_lock_free(vgic->config_lock);
	port_free(vgic);
}

int vgic_reset(struct vgic *vgic)
{
	for (uint32_t i = 0; i < vgic->num_vcpus; i++) {
		if (load_seq_cst(&vgic->vcpus[i]->run) == RUN_GUEST)
			return -EBUSY;
	}
	/*
	 * Hints stay where they are: a signaller may be filing one, and stale ones do no harm. That is also why nothing but
	 * the per-vCPU calls has to keep away.
	 */
	config_lock(vgic);
	reset_registers(vgic);
	config_unlock(vgic);
	for (uint32_t i = 0; i < vgic->num_vcpus; i++) {
		if (vgic->ops.line_changed)
			vcpu_kick(vgic->vcpus[i]);
	}
	return 0;
}
