/* SPDX-License-Identifier: MIT */
/*
 * state_restore.c - a controller takes the state of an image: vgic_restore().
 *
 * Two passes over the image. The first checks everything and changes nothing: the
 * image may come from anywhere. The second cannot fail. Under config_lock, with MSIs
 * paused and the vCPUs stopped.
 *
 * Order of the second pass: a reset; then what decides where interrupts go, CPU
 * interfaces, redistributors and translations; then the interrupts, whose words are
 * set as they were, and are filed at their vCPUs; at last the distributor's enables.
 */
#include <errno.h>
#include <string.h>

#include "cpuif.h"
#include "crc32c.h"
#include "dist.h"
#include "gic_regs.h"
#include "irq_change.h"
#include "its_image.h"
#include "redist.h"
#include "route.h"
#include "state.h"
#include "state_stream.h"
#include "work.h"

/* Where a section's payload is. */
struct section {
	bool is_there;
	size_t start, end;
};

struct restore {
	struct vgic *vgic;
	const uint8_t *image;
	size_t size;
	struct vgic_restore_error *why; /* never NULL */
	struct section conf, dist, vcpu, priv, spis, lpis;
	struct section its[VGIC_MAX_ITSES]; /* by their index */
	struct conf_record config;
	uint16_t *index_by_place;     /* vCPUs of the image, here */
	struct its_image *its_images; /* checks, and collections */
	uint8_t *lpis_seen;           /* one bit for each LPI that has a record */
};

/* An array in a section, while it is read. */
struct array {
	struct stream s;
	struct array_header h;
	uint32_t next;
};

static int refuse(struct restore *r, int err, const char *what, uint64_t in_image, uint64_t here, size_t offset)
{
	r->why->what = what;
	r->why->in_image = in_image;
	r->why->here = here;
	r->why->image_offset = offset;
	return err;
}

static int damaged(struct restore *r, const char *what, uint64_t value, size_t offset)
{
	return refuse(r, -EBADMSG, what, value, 0, offset);
}

static struct stream read_section(const struct restore *r, const struct section *section)
{
	return (struct stream){ .in = r->image, .at = section->start, .end = section->end };
}

/* ---- Arrays ------------------------------------------------------------------------------------- */

/* An array of records of @size bytes or more begins at @s. */
static int open_array(struct restore *r, struct array *a, const struct stream *s, uint32_t size, const char *what)
{
	*a = (struct array){ .s = *s };
	stream_array(&a->s, &a->h);
	if (a->s.ran_out || a->h.record_size < size || (uint64_t)a->h.count * a->h.record_size > a->s.end - a->s.at)
		return damaged(r, what, a->h.count, s->at);
	return 0;
}

/* The next record, @size bytes of it: what this version knows. open_array() has seen that so many are there. */
static inline struct stream next_record(struct array *a, uint32_t size)
{
	const struct stream s = { .in = a->s.in, .at = a->s.at, .end = a->s.at + size };

	a->s.at += a->h.record_size;
	a->next++;
	return s;
}

/* Where the next one begins; before any record is read. */
static size_t end_of_array(const struct array *a)
{
	return a->s.at + (size_t)a->h.count * a->h.record_size;
}

static bool array_goes_on(const struct array *a)
{
	return a->next < a->h.count;
}

/* ---- The frame of an image: header, checksums, sections --------------------------------------------- */

static int check_header(struct restore *r)
{
	struct stream s = { .in = r->image, .end = r->size };
	struct image_header h = { 0 };

	stream_header(&s, &h);
	if (s.ran_out || h.magic != IMAGE_MAGIC)
		return damaged(r, "not an image of a controller", h.magic, 0);
	if (crc32c(r->image, IMAGE_HEADER_SIZE - sizeof(h.header_crc)) != h.header_crc)
		return damaged(r, "checksum of the header", h.header_crc, 0);
	if (h.major != IMAGE_MAJOR)
		return refuse(r, -EPROTONOSUPPORT, "version of the format", h.major, IMAGE_MAJOR, 0);
	if (h.length != r->size)
		return refuse(r, -EBADMSG, "length of the image", h.length, r->size, 0);
	if (crc32c(r->image + IMAGE_HEADER_SIZE, r->size - IMAGE_HEADER_SIZE) != h.crc)
		return damaged(r, "checksum", h.crc, 0);
	return 0;
}

/* Which ITS a section is of: it says so itself. */
static struct section *its_section(struct restore *r, const struct section *found)
{
	struct stream s = read_section(r, found);
	struct its_record record = { 0 };

	stream_its(&s, &record);
	return !s.ran_out && record.index < VGIC_MAX_ITSES ? &r->its[record.index] : NULL;
}

/* Where a section is to be noted; NULL if it is not known. */
static struct section *known_section(struct restore *r, uint32_t type, const struct section *found)
{
	switch (type) {
	case SECTION_CONF:
		return &r->conf;
	case SECTION_DIST:
		return &r->dist;
	case SECTION_VCPU:
		return &r->vcpu;
	case SECTION_PRIV:
		return &r->priv;
	case SECTION_SPIS:
		return &r->spis;
	case SECTION_LPIS:
		return &r->lpis;
	case SECTION_ITS:
		return its_section(r, found);
	default:
		return NULL;
	}
}

static int note_section(struct restore *r, const struct section_header *h, const struct section *found)
{
	struct section *section = known_section(r, h->type, found);

	if (!section && h->type == SECTION_ITS)
		return damaged(r, "index of an ITS", 0, found->start);
	if (!section || h->version != 1) {
		if (h->flags & SECTION_REQUIRED)
			return refuse(r, -EPROTONOSUPPORT, "a section that must be understood", h->type, 0,
				      found->start);
		return 0;
	}
	if (section->is_there)
		return damaged(r, "a section that is there twice", h->type, found->start);
	*section = *found;
	return 0;
}

static int find_sections(struct restore *r)
{
	struct stream s = { .in = r->image, .at = IMAGE_HEADER_SIZE, .end = r->size };
	int err = 0;

	while (!err && s.at < s.end) {
		struct section_header h = { 0 };
		struct section found = { .is_there = true };

		stream_section(&s, &h);
		if (s.ran_out || h.length > s.end - s.at)
			return damaged(r, "length of a section", h.length, s.at);
		found.start = s.at;
		found.end = s.at + h.length;
		err = note_section(r, &h, &found);
		s.at = found.end + -found.end % IMAGE_ALIGNMENT;
	}
	return err;
}

static int check_section(struct restore *r, const struct section *section, const char *what)
{
	return section->is_there ? 0 : damaged(r, what, 0, r->size);
}

static int check_sections(struct restore *r)
{
	int err = check_section(r, &r->conf, "no section CONF");

	err = err ? err : check_section(r, &r->dist, "no section DIST");
	err = err ? err : check_section(r, &r->vcpu, "no section VCPU");
	err = err ? err : check_section(r, &r->priv, "no section PRIV");
	return err ? err : check_section(r, &r->spis, "no section SPIS");
}

/* ---- The controller that the image was made of ---------------------------------------------------------- */

static int check_conf(struct restore *r)
{
	const struct vgic *vgic = r->vgic;
	struct stream s = read_section(r, &r->conf);
	struct conf_record *c = &r->config;
	const size_t at = r->conf.start;

	stream_conf(&s, c);
	if (s.ran_out)
		return damaged(r, "section CONF", 0, at);
	if (c->profile != (uint32_t)vgic->profile)
		return refuse(r, -EOPNOTSUPP, "profile", c->profile, vgic->profile, at);
	if (c->features & ~vgic->features)
		return refuse(r, -EOPNOTSUPP, "features", c->features, vgic->features, at);
	if (c->priority_bits != PRIORITY_BITS)
		return refuse(r, -EOPNOTSUPP, "bits of a priority", c->priority_bits, PRIORITY_BITS, at);
	if (c->kvm_revision < KVM_REVISION_MIN || c->kvm_revision > KVM_REVISION_MAX)
		return refuse(r, -EOPNOTSUPP, "revision of KVM's vGIC", c->kvm_revision, KVM_REVISION_MAX, at);
	if (c->num_spis > vgic->num_spis)
		return refuse(r, -E2BIG, "number of SPIs", c->num_spis, vgic->num_spis, at);
	if (!(c->features & VGIC_FEATURE_LPIS) != !c->lpi_id_bits)
		return damaged(r, "bits of an LPI's INTID", c->lpi_id_bits, at);
	if (c->lpi_id_bits && (c->lpi_id_bits < VGIC_MIN_LPI_BITS || c->lpi_id_bits > vgic->lpi_id_bits))
		return refuse(r, -E2BIG, "bits of an LPI's INTID", c->lpi_id_bits, vgic->lpi_id_bits, at);
	if (c->num_vcpus > vgic->num_vcpus)
		return refuse(r, -E2BIG, "number of vCPUs", c->num_vcpus, vgic->num_vcpus, at);
	if (c->num_itses > vgic->num_itses)
		return refuse(r, -ENODEV, "number of ITSes", c->num_itses, vgic->num_itses, at);
	return 0;
}

static int check_dist(struct restore *r)
{
	struct stream s = read_section(r, &r->dist);
	struct dist_record d = { 0 };

	stream_dist(&s, &d);
	if (s.ran_out || (d.ctlr & ~dist_ctlr_writable(r->vgic)) || (d.statusr & ~STATUSR_ALL) ||
	    (d.propbaser & ~GICR_PROPBASER_WRITABLE))
		return damaged(r, "section DIST", 0, r->dist.start);
	return 0;
}

/* ---- vCPUs ------------------------------------------------------------------------------------------------- */

static struct cpuif_registers icc_registers(const struct vcpu_record *v)
{
	return (struct cpuif_registers){
		.ctlr = v->icc_ctlr,
		.apr = { v->apr[0], v->apr[1] },
		.pmr = v->pmr,
		.bpr = { v->bpr[0], v->bpr[1] },
		.igrpen = { v->igrpen & 1, v->igrpen >> 1 & 1 },
	};
}

static bool vcpu_could_be(const struct restore *r, const struct vcpu_record *v)
{
	const struct cpuif_registers icc = icc_registers(v);

	if ((v->flags & ~VCPU_FLAGS) || (v->igrpen & ~3u) || !cpuif_could_be(&icc))
		return false;
	if (!r->config.lpi_id_bits && (v->pendbaser || (v->flags & (VCPU_ENABLE_LPIS | VCPU_PTZ))))
		return false;
	if ((v->flags & VCPU_ASLEEP) && !(r->config.features & VGIC_FEATURE_WAKER))
		return false;
	if (v->redist_ctlr & ~(r->config.features & VGIC_FEATURE_DPGS ? GICR_CTLR_DPG0 | GICR_CTLR_DPG1NS : 0))
		return false;
	return !(v->redist_statusr & ~STATUSR_ALL) && !(v->pendbaser & ~GICR_PENDBASER_WRITABLE);
}

/* The vCPU of a record has the same id here, and must have the same affinity: the guest knows both. */
static int check_vcpu(struct restore *r, struct stream s, uint32_t place, uint32_t *id)
{
	const size_t at = s.at;
	const struct vgic_vcpu *vcpu;
	struct vcpu_record v = { 0 };

	stream_vcpu(&s, &v);
	if (place && v.id <= *id)
		return damaged(r, "order of the vCPUs", v.id, at);
	*id = v.id;
	vcpu = v.id <= VGIC_MAX_VCPU_ID ? vgic_vcpu_by_id(r->vgic, v.id) : NULL;
	if (!vcpu)
		return refuse(r, -ENODEV, "id of a vCPU", v.id, 0, at);
	if (vcpu->affinity != v.affinity)
		return refuse(r, -ENODEV, "affinity of a vCPU", v.affinity, vcpu->affinity, at);
	if (!vcpu_could_be(r, &v))
		return damaged(r, "state of a vCPU", v.id, at);
	r->index_by_place[place] = (uint16_t)vcpu->index;
	return 0;
}

static int check_vcpus(struct restore *r)
{
	const struct stream s = read_section(r, &r->vcpu);
	struct array a;
	uint32_t id = 0;
	int err = open_array(r, &a, &s, VCPU_RECORD_SIZE, "section VCPU");

	if (!err && (a.h.count != r->config.num_vcpus || !a.h.count))
		err = damaged(r, "number of vCPUs", a.h.count, s.at);
	while (!err && array_goes_on(&a)) {
		const uint32_t place = a.next;

		err = check_vcpu(r, next_record(&a, VCPU_RECORD_SIZE), place, &id);
	}
	return err;
}

/* ---- SGIs, PPIs, SPIs ----------------------------------------------------------------------------------------- */

static bool irq_could_be(const struct irq_record *i)
{
	return !(i->flags & ~IRQ_FLAGS) && !(i->priority & ~PRIORITY_MASK) && !i->reserved &&
	       !(i->sources >> IRQ_NUM_SOURCES);
}

static bool private_irq_could_be(const struct irq_record *i, uint32_t intid)
{
	if (!irq_could_be(i) || (i->flags & IRQ_FLAG_ONE_OF_N))
		return false;
	return intid >= NUM_SGIS || (!i->sources && (i->flags & IRQ_FLAG_EDGE));
}

static int check_private_irqs(struct restore *r)
{
	const struct stream s = read_section(r, &r->priv);
	struct array a;
	int err = open_array(r, &a, &s, IRQ_RECORD_SIZE, "section PRIV");

	if (!err && a.h.count != r->config.num_vcpus * NUM_PRIVATE)
		err = damaged(r, "number of SGIs and PPIs", a.h.count, s.at);
	while (!err && array_goes_on(&a)) {
		const uint32_t intid = a.next % NUM_PRIVATE;
		struct stream at = next_record(&a, IRQ_RECORD_SIZE);
		const size_t offset = at.at;
		struct irq_record i = { 0 };

		stream_irq(&at, &i);
		if (!private_irq_could_be(&i, intid))
			err = damaged(r, "state of an SGI or PPI", intid, offset);
	}
	return err;
}

static bool spi_could_be(const struct restore *r, const struct spi_record *spi)
{
	const bool any = spi->irouter & GICD_IROUTER_IRM;

	return irq_could_be(&spi->irq) && !(spi->irouter & ~dist_irouter_writable(r->vgic)) &&
	       any == !!(spi->irq.flags & IRQ_FLAG_ONE_OF_N) && !spi->reserved &&
	       (spi->place == PLACE_NONE || (any && spi->place < r->config.num_vcpus));
}

static int check_spis(struct restore *r)
{
	const struct stream s = read_section(r, &r->spis);
	struct array a;
	int err = open_array(r, &a, &s, SPI_RECORD_SIZE, "section SPIS");

	if (!err && a.h.count != r->config.num_spis)
		err = damaged(r, "number of SPIs", a.h.count, s.at);
	while (!err && array_goes_on(&a)) {
		const uint32_t intid = FIRST_SPI + a.next;
		struct stream at = next_record(&a, SPI_RECORD_SIZE);
		const size_t offset = at.at;
		struct spi_record spi = { 0 };

		stream_spi(&at, &spi);
		if (!spi_could_be(r, &spi))
			err = damaged(r, "state of an SPI", intid, offset);
	}
	return err;
}

/* ---- LPIs ---------------------------------------------------------------------------------------------------------- */

static bool lpi_could_be(const struct restore *r, const struct lpi_record *lpi, uint32_t last)
{
	return lpi->intid > last && lpi->intid < UINT32_C(1) << r->config.lpi_id_bits &&
	       (lpi->place == PLACE_NONE || lpi->place < r->config.num_vcpus) && !(lpi->priority & ~PRIORITY_MASK) &&
	       !(lpi->flags & ~LPI_FLAGS);
}

static int check_lpis(struct restore *r)
{
	const struct stream s = read_section(r, &r->lpis);
	uint32_t last = FIRST_LPI - 1;
	struct array a;
	int err;

	if (!r->lpis.is_there)
		return r->config.lpi_id_bits ? damaged(r, "no section LPIS", 0, r->size) : 0;
	if (!r->config.lpi_id_bits)
		return damaged(r, "section LPIS", 0, s.at);
	err = open_array(r, &a, &s, LPI_RECORD_SIZE, "section LPIS");
	while (!err && array_goes_on(&a)) {
		struct stream at = next_record(&a, LPI_RECORD_SIZE);
		const size_t offset = at.at;
		struct lpi_record lpi = { 0 };

		stream_lpi(&at, &lpi);
		if (!lpi_could_be(r, &lpi, last))
			return damaged(r, "state of an LPI", lpi.intid, offset);
		last = lpi.intid;
		r->lpis_seen[(last - FIRST_LPI) / 8] |= (uint8_t)(1u << last % 8);
	}
	return err;
}

/* ---- ITSes ------------------------------------------------------------------------------------------------------------ */

static bool queue_offset_could_be(uint64_t offset, uint64_t queue_size)
{
	return !(offset & ~GITS_CWRITER_OFFSET) && (queue_size ? offset < queue_size : !offset);
}

static bool its_could_be(const struct its_record *i)
{
	const uint64_t queue = its_queue_size_of(i->cbaser);
	const bool could_be_on = queue && (i->baser[0] & GITS_BASER_VALID) && (i->baser[1] & GITS_BASER_VALID);

	if ((i->flags & ~ITS_FLAGS) || ((i->flags & ITS_FLAG_ENABLED) && !could_be_on) || i->reserved)
		return false;
	if ((i->cbaser & ~GITS_CBASER_WRITABLE) || (i->baser[0] & ~its_baser_writable(ITS_TABLE_DEVICES)) ||
	    (i->baser[1] & ~its_baser_writable(ITS_TABLE_COLLECTIONS)))
		return false;
	return queue_offset_could_be(i->cwriter, queue) && queue_offset_could_be(i->creadr, queue);
}

static int check_its_record(struct restore *r, uint32_t index, struct stream *s)
{
	const struct vgic_its *its = r->vgic->itses[index];
	const size_t at = s->at;
	struct its_record i = { 0 };

	stream_its(s, &i);
	if (s->ran_out || i.size < ITS_RECORD_SIZE || i.size > s->end - at || !its_could_be(&i))
		return damaged(r, "state of an ITS", index, at);
	if (i.device_id_bits > its->device_id_bits)
		return refuse(r, -E2BIG, "bits of a DeviceID", i.device_id_bits, its->device_id_bits, at);
	if (i.event_id_bits > its->event_id_bits)
		return refuse(r, -E2BIG, "bits of an EventID", i.event_id_bits, its->event_id_bits, at);
	s->at = at + i.size;
	return 0;
}

/* What struct its_image says of a device or event: too many, or out of range. */
static int judge(struct restore *r, int err, const char *what, uint64_t limit, size_t at)
{
	if (err == -E2BIG)
		return refuse(r, -E2BIG, what, limit + 1, limit, at);
	return err == -EINVAL ? damaged(r, what, 0, at) : err;
}

static int check_events(struct restore *r, uint32_t index, struct array *events, uint32_t num)
{
	const struct vgic_its *its = r->vgic->itses[index];
	int err = 0;

	for (uint32_t i = 0; !err && i < num; i++) {
		struct event_record e = { 0 };
		struct stream s;
		size_t at;

		if (!array_goes_on(events))
			return damaged(r, "number of events", num, events->s.at);
		s = next_record(events, EVENT_RECORD_SIZE);
		at = s.at;
		stream_event(&s, &e);
		/* An INTID below the LPIs wraps, and is out of range. */
		err = its_image_add_event(&r->its_images[index], its, e.eventid, (uint64_t)e.intid - FIRST_LPI, e.icid);
		err = judge(r, err, "events", its->map.max_translations, at);
		if (!err && !(r->lpis_seen[(e.intid - FIRST_LPI) / 8] >> e.intid % 8 & 1))
			err = damaged(r, "an event whose LPI has no state", e.intid, at);
	}
	return err;
}

static int check_devices(struct restore *r, uint32_t index, struct array *devices, struct array *events)
{
	const struct vgic_its *its = r->vgic->itses[index];
	int err = 0;

	while (!err && array_goes_on(devices)) {
		struct stream s = next_record(devices, DEVICE_RECORD_SIZE);
		const size_t at = s.at;
		struct device_record d = { 0 };

		stream_device(&s, &d);
		if (d.reserved || (d.itt & ~ITS_ITT_ADDRESS))
			return damaged(r, "state of a device", d.devid, at);
		err = its_image_add_device(&r->its_images[index], its, d.devid, d.event_id_bits, d.itt);
		err = judge(r, err, "devices", its->map.max_devices, at);
		err = err ? err : check_events(r, index, events, d.num_events);
	}
	if (!err && array_goes_on(events))
		err = damaged(r, "number of events", events->h.count, events->s.at);
	return err;
}

static int check_collections(struct restore *r, uint32_t index, struct array *a)
{
	uint16_t *collections = r->its_images[index].collections;

	while (array_goes_on(a)) {
		struct stream s = next_record(a, COLLECTION_RECORD_SIZE);
		const size_t at = s.at;
		struct collection_record c = { 0 };

		stream_collection(&s, &c);
		if (c.place >= r->config.num_vcpus || collections[c.icid] != IRQ_NO_TARGET)
			return damaged(r, "a collection", c.icid, at);
		collections[c.icid] = r->index_by_place[c.place];
	}
	return 0;
}

/* A struct its_image checks devices and events, and has the collections. */
static int check_its(struct restore *r, uint32_t index)
{
	struct stream s = read_section(r, &r->its[index]);
	struct array devices, events, collections;
	int err;

	if (!r->its[index].is_there)
		return damaged(r, "no section for an ITS", index, r->size);
	err = check_its_record(r, index, &s);
	err = err ? err : open_array(r, &devices, &s, DEVICE_RECORD_SIZE, "devices of an ITS");
	if (err)
		return err;
	s.at = end_of_array(&devices);
	err = open_array(r, &events, &s, EVENT_RECORD_SIZE, "events of an ITS");
	if (err)
		return err;
	s.at = end_of_array(&events);
	err = open_array(r, &collections, &s, COLLECTION_RECORD_SIZE, "collections of an ITS");
	err = err ? err : its_image_init(&r->its_images[index]);
	r->its_images[index].is_checked_only = true;
	err = err ? err : check_collections(r, index, &collections);
	return err ? err : check_devices(r, index, &devices, &events);
}

static int check_itses(struct restore *r)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < r->config.num_itses; i++)
		err = check_its(r, i);
	for (uint32_t i = r->config.num_itses; !err && i < VGIC_MAX_ITSES; i++) {
		if (r->its[i].is_there)
			err = damaged(r, "index of an ITS", i, r->its[i].start);
	}
	return err;
}

/* ---- Applying: nothing here can fail --------------------------------------------------------------------------------------- */

static void apply_vcpus(struct restore *r)
{
	const struct stream s = read_section(r, &r->vcpu);
	struct array a;

	open_array(r, &a, &s, VCPU_RECORD_SIZE, "");
	while (array_goes_on(&a)) {
		struct vgic_vcpu *vcpu = r->vgic->vcpus[r->index_by_place[a.next]];
		struct stream at = next_record(&a, VCPU_RECORD_SIZE);
		struct cpuif_registers icc;
		struct vcpu_record v = { 0 };

		stream_vcpu(&at, &v);
		vcpu->pendbaser = v.pendbaser;
		vcpu->pending_table_is_zero = v.flags & VCPU_PTZ;
		store_seq_cst(&vcpu->lpis_enabled, !!(v.flags & VCPU_ENABLE_LPIS));
		vcpu->redist_ctlr = v.redist_ctlr;
		vcpu->redist_statusr = v.redist_statusr;
		vcpu->asleep = v.flags & VCPU_ASLEEP;
		store_seq_cst(&vcpu->online, !!(v.flags & VCPU_ONLINE));
		icc = icc_registers(&v);
		cpuif_set(vcpu, &icc);
		one_of_n_set(vcpu);
	}
}

static void apply_devices(struct vgic_its *its, struct array *devices, struct array *events)
{
	while (array_goes_on(devices)) {
		struct stream s = next_record(devices, DEVICE_RECORD_SIZE);
		struct device_record d = { 0 };
		struct its_device *device;

		stream_device(&s, &d);
		device = its_image_map_device(its, d.devid, UINT32_C(1) << d.event_id_bits, d.itt);
		for (uint32_t i = 0; i < d.num_events; i++) {
			struct event_record e = { 0 };
			struct irq *irq;

			s = next_record(events, EVENT_RECORD_SIZE);
			stream_event(&s, &e);
			irq = &its->vgic->lpis[e.intid - FIRST_LPI];
			its_map_add(&its->map, device, e.eventid, lpi_restore_mapping(its->vgic, irq), e.icid);
		}
	}
}

static void apply_its(struct restore *r, uint32_t index)
{
	struct vgic_its *its = r->vgic->itses[index];
	struct stream s = read_section(r, &r->its[index]);
	const size_t start = s.at;
	struct its_record i = { 0 };
	struct array devices, events;

	stream_its(&s, &i);
	its->cbaser = i.cbaser;
	its->cwriter = i.cwriter;
	its->creadr = i.creadr;
	its->baser[ITS_TABLE_DEVICES] = i.baser[0];
	its->baser[ITS_TABLE_COLLECTIONS] = i.baser[1];
	its->enable_wanted = i.flags & ITS_FLAG_ENABLED;
	memcpy(its->collections, r->its_images[index].collections, ITS_MAX_COLLECTIONS * sizeof(*its->collections));
	s.at = start + i.size;
	open_array(r, &devices, &s, DEVICE_RECORD_SIZE, "");
	s.at = end_of_array(&devices);
	open_array(r, &events, &s, EVENT_RECORD_SIZE, "");
	apply_devices(its, &devices, &events);
}

static uint32_t index_at(const struct restore *r, uint32_t place)
{
	return place == PLACE_NONE ? IRQ_NO_TARGET : r->index_by_place[place];
}

static void apply_lpis(struct restore *r)
{
	const struct stream s = read_section(r, &r->lpis);
	struct array a;

	if (!r->lpis.is_there)
		return;
	open_array(r, &a, &s, LPI_RECORD_SIZE, "");
	while (array_goes_on(&a)) {
		struct stream at = next_record(&a, LPI_RECORD_SIZE);
		struct lpi_record lpi = { 0 };

		stream_lpi(&at, &lpi);
		lpi_restore(r->vgic, &r->vgic->lpis[lpi.intid - FIRST_LPI], index_at(r, lpi.place), lpi.priority,
			    (lpi.flags & LPI_FLAG_ENABLED ? IRQ_ENABLED : 0) |
				    (lpi.flags & LPI_FLAG_PENDING ? IRQ_PENDING : 0));
	}
}

static irq_word irq_word_of(const struct irq_record *i)
{
	irq_word w = (irq_word)i->sources << IRQ_SOURCES_SHIFT;

	w |= (i->flags & IRQ_FLAG_PENDING ? IRQ_PENDING : 0) | (i->flags & IRQ_FLAG_ACTIVE ? IRQ_ACTIVE : 0) |
	     (i->flags & IRQ_FLAG_ENABLED ? IRQ_ENABLED : 0) | (i->flags & IRQ_FLAG_GROUP1 ? IRQ_GROUP1 : 0) |
	     (i->flags & IRQ_FLAG_EDGE ? IRQ_EDGE : 0) | (i->flags & IRQ_FLAG_ONE_OF_N ? IRQ_ONE_OF_N : 0) |
	     (i->sources ? IRQ_LINE : 0);
	return irq_set_priority(w, i->priority);
}

/* The whole word, the target of 1-of-N included: no other is selected unless that one takes no part. */
static void replace_word(struct vgic *vgic, struct irq *irq, irq_word new)
{
	const irq_word old = atomic_exchange_explicit(&irq->word, new, memory_order_seq_cst);

	irq_settle(vgic, irq, old, new);
	if ((new &IRQ_ONE_OF_N) && irq_is_deliverable(new))
		one_of_n_recheck(vgic, irq);
}

static void apply_private_irqs(struct restore *r)
{
	const struct stream s = read_section(r, &r->priv);
	struct array a;

	open_array(r, &a, &s, IRQ_RECORD_SIZE, "");
	while (array_goes_on(&a)) {
		struct vgic_vcpu *vcpu = r->vgic->vcpus[r->index_by_place[a.next / NUM_PRIVATE]];
		struct irq *irq = &vcpu->private_irqs[a.next % NUM_PRIVATE];
		struct stream at = next_record(&a, IRQ_RECORD_SIZE);
		struct irq_record i = { 0 };

		stream_irq(&at, &i);
		replace_word(r->vgic, irq, irq_set_target(irq_word_of(&i), vcpu->index));
	}
}

static void apply_spis(struct restore *r)
{
	const struct stream s = read_section(r, &r->spis);
	struct vgic *vgic = r->vgic;
	struct array a;

	open_array(r, &a, &s, SPI_RECORD_SIZE, "");
	while (array_goes_on(&a)) {
		struct irq *irq = &vgic->spis[a.next];
		struct stream at = next_record(&a, SPI_RECORD_SIZE);
		struct spi_record spi = { 0 };
		uint32_t target;

		stream_spi(&at, &spi);
		store_relaxed(&irq->irouter, spi.irouter);
		target = spi.irouter & GICD_IROUTER_IRM ? index_at(r, spi.place) : dist_route_target(vgic, spi.irouter);
		replace_word(vgic, irq, irq_set_target(irq_word_of(&spi.irq), target));
	}
}

static void apply_dist(struct restore *r)
{
	struct stream s = read_section(r, &r->dist);
	struct dist_record d = { 0 };

	stream_dist(&s, &d);
	r->vgic->dist_statusr = d.statusr;
	r->vgic->propbaser = d.propbaser;
	dist_set_ctlr(r->vgic, d.ctlr);
}

/* Whatever a vCPU has seen before, it looks anew. */
static void kick_all(struct vgic *vgic)
{
	for (uint32_t i = 0; i < vgic->num_vcpus; i++)
		vcpu_kick(vgic->vcpus[i]);
}

static void apply(struct restore *r)
{
	store_relaxed(&r->vgic->kvm_revision, r->config.kvm_revision);
	apply_vcpus(r);
	for (uint32_t i = 0; i < r->config.num_itses; i++)
		apply_its(r, i);
	apply_lpis(r);
	apply_private_irqs(r);
	apply_spis(r);
	apply_dist(r);
	kick_all(r->vgic);
}

/* ---- Restoring ------------------------------------------------------------------------------------------------------------------ */

static int check(struct restore *r)
{
	int err = check_header(r);

	err = err ? err : find_sections(r);
	err = err ? err : check_sections(r);
	err = err ? err : check_conf(r);
	err = err ? err : check_dist(r);
	err = err ? err : check_vcpus(r);
	err = err ? err : check_private_irqs(r);
	err = err ? err : check_spis(r);
	err = err ? err : check_lpis(r);
	return err ? err : check_itses(r);
}

static struct restore *new_restore(struct vgic *vgic)
{
	struct restore *r = port_alloc_zeroed(sizeof(*r), CACHE_LINE);

	if (!r)
		return NULL;
	r->vgic = vgic;
	r->index_by_place = port_alloc_zeroed(vgic->num_vcpus * sizeof(*r->index_by_place), CACHE_LINE);
	r->its_images = port_alloc_zeroed((vgic->num_itses + 1) * sizeof(*r->its_images), CACHE_LINE);
	r->lpis_seen = port_alloc_zeroed(vgic->num_lpis / 8 + 1, CACHE_LINE);
	return r;
}

static void free_restore(struct restore *r)
{
	for (uint32_t i = 0; r && r->its_images && i < r->vgic->num_itses; i++)
		its_image_free(&r->its_images[i]);
	if (r) {
		port_free(r->its_images);
		port_free(r->index_by_place);
		port_free(r->lpis_seen);
	}
	port_free(r);
}

static int restore(struct restore *r)
{
	struct vgic *vgic = r->vgic;
	int err;

	config_lock(vgic);
	err = check(r);
	if (err) {
		config_unlock(vgic);
		return err;
	}
	state_pause_for_reset(vgic);
	reset_registers(vgic);
	apply(r);
	state_resume(vgic);
	work_finish_write(vgic);
	route_resume(vgic);
	return 0;
}

int vgic_restore(struct vgic *vgic, const void *image, size_t size, struct vgic_restore_error *why)
{
	struct vgic_restore_error nobody;
	struct restore *r;
	int err;

	if (!vgic || !image || (why && why->size != sizeof(*why)))
		return -EINVAL;
	err = state_check_stopped(vgic);
	if (err)
		return err;
	r = new_restore(vgic);
	err = r && r->index_by_place && r->its_images && r->lpis_seen ? 0 : -ENOMEM;
	if (!err) {
		r->image = image;
		r->size = size;
		r->why = why ? why : &nobody;
		err = restore(r);
	}
	free_restore(r);
	return err;
}
