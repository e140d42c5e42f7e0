/* SPDX-License-Identifier: MIT */
/*
 * state_save.c - the image of a whole controller: vgic_save().
 *
 * Under config_lock, with MSIs paused and the vCPUs stopped; what was half done is
 * finished first, so that an image needs no place for it.
 *
 * vCPUs are written in order of their ids, and named by their places in that order:
 * an image does not depend on the order in which a VMM creates them.
 */
#include <errno.h>

#include "cpuif.h"
#include "crc32c.h"
#include "gic_regs.h"
#include "its_image.h"
#include "route.h"
#include "state.h"
#include "state_stream.h"
#include "work.h"

struct save {
	struct stream s;
	struct vgic *vgic;
	uint16_t *index_by_place; /* vCPUs in order of their ids */
	uint16_t *place_by_index;
	struct its_order *orders; /* what each ITS has mapped */
	uint32_t num_lpis;        /* that have a record */
};

/* ---- vCPUs by their ids -------------------------------------------------------------------- */

static void sort_vcpus(struct save *save)
{
	struct vgic *vgic = save->vgic;
	uint32_t place = 0;

	for (uint32_t id = 0; id <= vgic->max_id; id++) {
		const struct vgic_vcpu *vcpu = vgic_vcpu_by_id(vgic, id);

		if (!vcpu)
			continue;
		save->index_by_place[place] = (uint16_t)vcpu->index;
		save->place_by_index[vcpu->index] = (uint16_t)place++;
	}
}

static uint16_t place_of(const struct save *save, uint32_t vcpu_index)
{
	return vcpu_index == IRQ_NO_TARGET ? PLACE_NONE : save->place_by_index[vcpu_index];
}

static struct vgic_vcpu *vcpu_at(const struct save *save, uint32_t place)
{
	return save->vgic->vcpus[save->index_by_place[place]];
}

/* ---- Sections --------------------------------------------------------------------------------- */

/* Begin a section; returns where its payload begins. */
static size_t begin_section(struct save *save, uint32_t type)
{
	struct section_header h = { .type = type, .version = 1, .flags = SECTION_REQUIRED };

	stream_section(&save->s, &h);
	return save->s.at;
}

/* The length is known now. Then zeros up to where the next section begins. */
static void end_section(struct save *save, size_t start)
{
	uint64_t length = save->s.at - start;
	const size_t end = save->s.at;
	uint8_t zero = 0;

	save->s.at = start - sizeof(length);
	stream_u64(&save->s, &length);
	save->s.at = end;
	for (size_t n = -end % IMAGE_ALIGNMENT; n; n--)
		stream_u8(&save->s, &zero);
}

static void put_array(struct save *save, uint32_t count, uint32_t record_size)
{
	struct array_header h = { .count = count, .record_size = record_size };

	stream_array(&save->s, &h);
}

static void save_conf(struct save *save)
{
	const struct vgic *vgic = save->vgic;
	const size_t start = begin_section(save, SECTION_CONF);
	struct conf_record r = {
		.profile = vgic->profile,
		.features = vgic->features,
		.num_spis = vgic->num_spis,
		.lpi_id_bits = vgic_has(vgic, VGIC_FEATURE_LPIS) ? vgic->lpi_id_bits : 0,
		.priority_bits = PRIORITY_BITS,
		.kvm_revision = load_relaxed(&vgic->kvm_revision),
		.num_vcpus = vgic->num_vcpus,
		.num_itses = vgic->num_itses,
	};

	stream_conf(&save->s, &r);
	end_section(save, start);
}

static void save_dist(struct save *save)
{
	const struct vgic *vgic = save->vgic;
	const size_t start = begin_section(save, SECTION_DIST);
	struct dist_record r = {
		.ctlr = vgic->dist_ctlr,
		.statusr = vgic->dist_statusr,
		.propbaser = vgic->propbaser,
	};

	stream_dist(&save->s, &r);
	end_section(save, start);
}

/* ---- vCPUs -------------------------------------------------------------------------------------- */

static void save_vcpu(struct save *save, const struct vgic_vcpu *vcpu)
{
	struct vcpu_record r = {
		.id = vcpu->id,
		.flags = (load_relaxed(&vcpu->online) ? VCPU_ONLINE : 0) | (vcpu->asleep ? VCPU_ASLEEP : 0) |
			 (load_relaxed(&vcpu->lpis_enabled) ? VCPU_ENABLE_LPIS : 0) |
			 (vcpu->pending_table_is_zero ? VCPU_PTZ : 0),
		.affinity = vcpu->affinity,
		.pendbaser = vcpu->pendbaser,
		.redist_ctlr = vcpu->redist_ctlr,
		.redist_statusr = vcpu->redist_statusr,
	};
	struct cpuif_registers icc;

	cpuif_get(vcpu, &icc);
	r.icc_ctlr = icc.ctlr;
	r.pmr = icc.pmr;
	r.igrpen = (uint8_t)(icc.igrpen[0] | icc.igrpen[1] << 1);
	for (unsigned group = 0; group < 2; group++) {
		r.apr[group] = icc.apr[group];
		r.bpr[group] = icc.bpr[group];
	}
	stream_vcpu(&save->s, &r);
}

static void save_vcpus(struct save *save)
{
	const size_t start = begin_section(save, SECTION_VCPU);

	put_array(save, save->vgic->num_vcpus, VCPU_RECORD_SIZE);
	for (uint32_t place = 0; place < save->vgic->num_vcpus; place++)
		save_vcpu(save, vcpu_at(save, place));
	end_section(save, start);
}

/* ---- SGIs, PPIs, SPIs ----------------------------------------------------------------------------- */

static struct irq_record irq_record(irq_word w)
{
	return (struct irq_record){
		.flags = (uint16_t)((w & IRQ_PENDING ? IRQ_FLAG_PENDING : 0) | (w & IRQ_ACTIVE ? IRQ_FLAG_ACTIVE : 0) |
				    (w & IRQ_ENABLED ? IRQ_FLAG_ENABLED : 0) | (w & IRQ_GROUP1 ? IRQ_FLAG_GROUP1 : 0) |
				    (w & IRQ_EDGE ? IRQ_FLAG_EDGE : 0) | (w & IRQ_ONE_OF_N ? IRQ_FLAG_ONE_OF_N : 0)),
		.priority = irq_priority(w),
		.sources = (uint32_t)(w >> IRQ_SOURCES_SHIFT),
	};
}

static void save_private_irqs(struct save *save)
{
	const size_t start = begin_section(save, SECTION_PRIV);

	put_array(save, save->vgic->num_vcpus * NUM_PRIVATE, IRQ_RECORD_SIZE);
	for (uint32_t place = 0; place < save->vgic->num_vcpus; place++) {
		const struct vgic_vcpu *vcpu = vcpu_at(save, place);

		for (uint32_t i = 0; i < NUM_PRIVATE; i++) {
			struct irq_record r = irq_record(load_acquire(&vcpu->private_irqs[i].word));

			stream_irq(&save->s, &r);
		}
	}
	end_section(save, start);
}

static void save_spis(struct save *save)
{
	const size_t start = begin_section(save, SECTION_SPIS);

	put_array(save, save->vgic->num_spis, SPI_RECORD_SIZE);
	for (uint32_t i = 0; i < save->vgic->num_spis; i++) {
		const struct irq *irq = &save->vgic->spis[i];
		const irq_word w = load_acquire(&irq->word);
		struct spi_record r = {
			.irq = irq_record(w),
			.irouter = load_relaxed(&irq->irouter),
			.place = (w & IRQ_ONE_OF_N) ? place_of(save, irq_target(w)) : PLACE_NONE,
		};

		stream_spi(&save->s, &r);
	}
	end_section(save, start);
}

/* ---- LPIs -------------------------------------------------------------------------------------------- */

/* What an LPI is that is neither mapped nor pending nor anywhere is found out when it is mapped. */
static bool lpi_has_record(irq_word w)
{
	return (w & (IRQ_MAPPED | IRQ_PENDING)) || irq_target(w) != IRQ_NO_TARGET;
}

static void save_lpis(struct save *save)
{
	const struct vgic *vgic = save->vgic;
	const size_t start = begin_section(save, SECTION_LPIS);

	put_array(save, save->num_lpis, LPI_RECORD_SIZE);
	for (uint32_t i = 0; i < vgic->num_lpis; i++) {
		const irq_word w = load_acquire(&vgic->lpis[i].word);
		struct lpi_record r;

		if (!lpi_has_record(w))
			continue;
		r = (struct lpi_record){
			.intid = FIRST_LPI + i,
			.place = place_of(save, irq_target(w)),
			.priority = irq_priority(w),
			.flags = (uint8_t)((w & IRQ_PENDING ? LPI_FLAG_PENDING : 0) |
					   (w & IRQ_ENABLED ? LPI_FLAG_ENABLED : 0)),
		};
		stream_lpi(&save->s, &r);
	}
	end_section(save, start);
}

/* ---- ITSes -------------------------------------------------------------------------------------------- */

static void save_event(struct stream *s, const struct its_image_event *e)
{
	struct event_record r = {
		.eventid = (uint16_t)e->eventid,
		.icid = e->icid,
		.intid = FIRST_LPI + e->lpi,
	};

	stream_event(s, &r);
}

static void save_device(struct stream *s, const struct its_device *device)
{
	struct device_record r = {
		.devid = device->devid,
		.event_id_bits = (uint32_t)__builtin_ctz(device->num_events),
		.itt = device->itt,
		.num_events = device->num_mapped,
	};

	stream_device(s, &r);
}

/* Two arrays at once: the devices, and behind them all their events. */
static void save_devices(struct save *save, struct its_order *order)
{
	struct stream devices;

	put_array(save, order->num_devices, DEVICE_RECORD_SIZE);
	devices = save->s;
	save->s.at += (size_t)order->num_devices * DEVICE_RECORD_SIZE;
	put_array(save, order->its->map.num_translations, EVENT_RECORD_SIZE);
	for (uint32_t i = 0; i < order->num_devices; i++) {
		const struct its_device *device = its_order_device(order, i);

		save_device(&devices, device);
		for (uint32_t n = 0; n < device->num_mapped; n++) {
			const struct its_image_event e = its_order_event(order, n);

			save_event(&save->s, &e);
		}
	}
}

static uint32_t count_collections(const uint16_t *collections)
{
	uint32_t count = 0;

	for (uint32_t icid = 0; icid < ITS_MAX_COLLECTIONS; icid++)
		count += collections[icid] != IRQ_NO_TARGET;
	return count;
}

static void save_collections(struct save *save, const uint16_t *collections)
{
	put_array(save, count_collections(collections), COLLECTION_RECORD_SIZE);
	for (uint32_t icid = 0; icid < ITS_MAX_COLLECTIONS; icid++) {
		struct collection_record r = { .icid = (uint16_t)icid };

		if (collections[icid] == IRQ_NO_TARGET)
			continue;
		r.place = place_of(save, collections[icid]);
		stream_collection(&save->s, &r);
	}
}

static void save_its(struct save *save, uint32_t index)
{
	const struct vgic_its *its = save->vgic->itses[index];
	const size_t start = begin_section(save, SECTION_ITS);
	struct its_record r = {
		.size = ITS_RECORD_SIZE,
		.index = index,
		.device_id_bits = its->device_id_bits,
		.event_id_bits = its->event_id_bits,
		.flags = its->enable_wanted ? ITS_FLAG_ENABLED : 0,
		.cbaser = its->cbaser,
		.cwriter = its->cwriter,
		.creadr = its->creadr,
		.baser = { its->baser[0], its->baser[1] },
	};

	stream_its(&save->s, &r);
	save_devices(save, &save->orders[index]);
	save_collections(save, its->collections);
	end_section(save, start);
}

/* ---- The image ------------------------------------------------------------------------------------------ */

static void put_header(struct save *save, struct image_header *h)
{
	save->s.at = 0;
	stream_header(&save->s, h);
}

static void write_image(struct save *save, uint8_t *out, size_t size)
{
	struct image_header h = { .magic = IMAGE_MAGIC, .major = IMAGE_MAJOR, .minor = IMAGE_MINOR, .length = size };

	save->s = (struct stream){ .out = out, .end = size };
	stream_header(&save->s, &h);
	save_conf(save);
	save_dist(save);
	save_vcpus(save);
	save_private_irqs(save);
	save_spis(save);
	if (save->vgic->num_lpis)
		save_lpis(save);
	for (uint32_t i = 0; i < save->vgic->num_itses; i++)
		save_its(save, i);
	h.crc = crc32c(out + IMAGE_HEADER_SIZE, size - IMAGE_HEADER_SIZE);
	put_header(save, &h);
	h.header_crc = crc32c(out, IMAGE_HEADER_SIZE - sizeof(h.header_crc));
	put_header(save, &h);
}

/* ---- Its size ----------------------------------------------------------------------------------------------- */

static size_t section_size(size_t payload)
{
	return SECTION_HEADER_SIZE + (payload + IMAGE_ALIGNMENT - 1) / IMAGE_ALIGNMENT * IMAGE_ALIGNMENT;
}

static size_t array_size(uint32_t count, uint32_t record_size)
{
	return ARRAY_HEADER_SIZE + (size_t)count * record_size;
}

static size_t its_size(const struct vgic_its *its)
{
	return section_size(ITS_RECORD_SIZE + array_size(its->map.num_devices, DEVICE_RECORD_SIZE) +
			    array_size(its->map.num_translations, EVENT_RECORD_SIZE) +
			    array_size(count_collections(its->collections), COLLECTION_RECORD_SIZE));
}

/* MSIs do not change it: they come for LPIs that are mapped. */
static uint32_t count_lpis(const struct vgic *vgic)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < vgic->num_lpis; i++)
		count += lpi_has_record(load_relaxed(&vgic->lpis[i].word));
	return count;
}

static size_t image_size(const struct vgic *vgic, uint32_t num_lpis)
{
	size_t size = IMAGE_HEADER_SIZE + section_size(CONF_RECORD_SIZE) + section_size(DIST_RECORD_SIZE);

	size += section_size(array_size(vgic->num_vcpus, VCPU_RECORD_SIZE));
	size += section_size(array_size(vgic->num_vcpus * NUM_PRIVATE, IRQ_RECORD_SIZE));
	size += section_size(array_size(vgic->num_spis, SPI_RECORD_SIZE));
	if (vgic->num_lpis)
		size += section_size(array_size(num_lpis, LPI_RECORD_SIZE));
	for (uint32_t i = 0; i < vgic->num_itses; i++)
		size += its_size(vgic->itses[i]);
	return size;
}

/* ---- Saving --------------------------------------------------------------------------------------------------- */

/* Nothing is half done, so that the image needs no place for it. */
static void settle(struct vgic *vgic)
{
	for (uint32_t i = 0; i < vgic->num_vcpus && vgic->num_lpis; i++)
		redist_finish_work(vgic->vcpus[i]);
	for (uint32_t i = 0; i < vgic->num_itses; i++)
		its_settle(vgic->itses[i]);
}

static int prepare(struct save *save)
{
	struct vgic *vgic = save->vgic;
	int err = 0;

	save->index_by_place = port_alloc_zeroed(vgic->num_vcpus * sizeof(uint16_t), CACHE_LINE);
	save->place_by_index = port_alloc_zeroed(vgic->num_vcpus * sizeof(uint16_t), CACHE_LINE);
	save->orders = port_alloc_zeroed((vgic->num_itses + 1) * sizeof(*save->orders), CACHE_LINE);
	if (!save->index_by_place || !save->place_by_index || !save->orders)
		return -ENOMEM;
	sort_vcpus(save);
	for (uint32_t i = 0; !err && i < vgic->num_itses; i++)
		err = its_order_begin(&save->orders[i], vgic->itses[i]);
	return err;
}

static void free_prepared(struct save *save)
{
	for (uint32_t i = 0; save->orders && i < save->vgic->num_itses; i++)
		its_order_end(&save->orders[i]);
	port_free(save->orders);
	port_free(save->place_by_index);
	port_free(save->index_by_place);
}

int vgic_save_size(struct vgic *vgic, size_t *size)
{
	int err;

	if (!vgic || !size)
		return -EINVAL;
	err = state_check_stopped(vgic);
	if (err)
		return err;
	config_lock(vgic);
	settle(vgic);
	*size = image_size(vgic, count_lpis(vgic));
	config_unlock(vgic);
	return 0;
}

int vgic_save(struct vgic *vgic, void *image, size_t size, size_t *used)
{
	struct save save = { .vgic = vgic };
	int err;

	if (!vgic || !image || !used)
		return -EINVAL;
	err = state_check_stopped(vgic);
	if (err)
		return err;
	config_lock(vgic);
	state_pause(vgic);
	settle(vgic);
	save.num_lpis = count_lpis(vgic);
	*used = image_size(vgic, save.num_lpis);
	err = *used <= size ? prepare(&save) : -ENOSPC;
	if (!err)
		write_image(&save, image, *used);
	free_prepared(&save);
	state_resume(vgic);
	work_finish_write(vgic);
	route_resume(vgic);
	return err;
}
