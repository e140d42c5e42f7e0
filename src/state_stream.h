/* SPDX-License-Identifier: MIT */
/*
 * state_stream.h - the bytes of an image, in both directions.
 *
 * The layout of each record is one function here, which writes it or reads it: save
 * and restore cannot disagree. docs/state-format.md says what
 * the fields mean. Everything is little-endian.
 */
#ifndef VGIC_STATE_STREAM_H
#define VGIC_STATE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

#define IMAGE_MAGIC         UINT64_C(0x006369677662696c) /* "libvgic" and a zero byte */
#define IMAGE_MAJOR         1u
#define IMAGE_MINOR         0u
#define IMAGE_HEADER_SIZE   32u
#define SECTION_HEADER_SIZE 16u
#define SECTION_REQUIRED    1u /* whoever does not know it cannot take the image */
#define IMAGE_ALIGNMENT     8u

/* Sections: four characters. */
#define SECTION(a, b, c, d) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)
#define SECTION_CONF        SECTION('C', 'O', 'N', 'F')
#define SECTION_DIST        SECTION('D', 'I', 'S', 'T')
#define SECTION_VCPU        SECTION('V', 'C', 'P', 'U')
#define SECTION_PRIV        SECTION('P', 'R', 'I', 'V')
#define SECTION_SPIS        SECTION('S', 'P', 'I', 'S')
#define SECTION_LPIS        SECTION('L', 'P', 'I', 'S')
#define SECTION_ITS         SECTION('I', 'T', 'S', ' ')

/* A vCPU in a record: its place in section VCPU, or this. */
#define PLACE_NONE 0xffffu

struct stream {
	uint8_t *out;      /* writing, or... */
	const uint8_t *in; /* ...reading */
	size_t at, end;
	bool ran_out; /* more was wanted than there is: it has read as zero, or was not written */
};

/*
 * stream_u8(), stream_u16() and so on: the next value. A record that is read from a stream whose direction and room the
 * compiler knows is a few loads, without a question.
 */
#define STREAM_VALUE(bits)                                                                                             \
	static inline void stream_u##bits(struct stream *s, uint##bits##_t *value)                                     \
	{                                                                                                              \
		const size_t at = s->at;                                                                               \
                                                                                                                       \
		if (s->end - at < sizeof(*value)) {                                                                    \
			s->ran_out = true;                                                                             \
			s->at = s->end;                                                                                \
			*value = s->out ? *value : 0;                                                                  \
			return;                                                                                        \
		}                                                                                                      \
		s->at = at + sizeof(*value);                                                                           \
		if (s->out)                                                                                            \
			bytes_put_u##bits(s->out + at, *value);                                                        \
		else                                                                                                   \
			*value = bytes_get_u##bits(s->in + at);                                                        \
	}

STREAM_VALUE(8)
STREAM_VALUE(16)
STREAM_VALUE(32)
STREAM_VALUE(64)

#undef STREAM_VALUE

/* ---- Header and sections ------------------------------------------------------------------- */

struct image_header {
	uint64_t magic;
	uint16_t major, minor;
	uint32_t reserved;
	uint64_t length;     /* of the whole image */
	uint32_t crc;        /* of all that follows the header */
	uint32_t header_crc; /* of the header up to here */
};

static inline void stream_header(struct stream *s, struct image_header *h)
{
	stream_u64(s, &h->magic);
	stream_u16(s, &h->major);
	stream_u16(s, &h->minor);
	stream_u32(s, &h->reserved);
	stream_u64(s, &h->length);
	stream_u32(s, &h->crc);
	stream_u32(s, &h->header_crc);
}

struct section_header {
	uint32_t type;
	uint16_t version;
	uint16_t flags;
	uint64_t length; /* without this header and the padding behind */
};

static inline void stream_section(struct stream *s, struct section_header *h)
{
	stream_u32(s, &h->type);
	stream_u16(s, &h->version);
	stream_u16(s, &h->flags);
	stream_u64(s, &h->length);
}

/* What comes before an array of records. */
struct array_header {
	uint32_t count;
	uint32_t record_size; /* a later version may have appended fields */
};

#define ARRAY_HEADER_SIZE 8u

static inline void stream_array(struct stream *s, struct array_header *h)
{
	stream_u32(s, &h->count);
	stream_u32(s, &h->record_size);
}

/* ---- Records ----------------------------------------------------------------------------------- */

/* The controller that the image was made of. */
struct conf_record {
	uint32_t profile, features, num_spis;
	uint32_t lpi_id_bits; /* 0: no LPIs */
	uint32_t priority_bits, kvm_revision, num_vcpus, num_itses;
};

#define CONF_RECORD_SIZE 32u

static inline void stream_conf(struct stream *s, struct conf_record *r)
{
	stream_u32(s, &r->profile);
	stream_u32(s, &r->features);
	stream_u32(s, &r->num_spis);
	stream_u32(s, &r->lpi_id_bits);
	stream_u32(s, &r->priority_bits);
	stream_u32(s, &r->kvm_revision);
	stream_u32(s, &r->num_vcpus);
	stream_u32(s, &r->num_itses);
}

struct dist_record {
	uint32_t ctlr, statusr;
	uint64_t propbaser;
};

#define DIST_RECORD_SIZE 16u

static inline void stream_dist(struct stream *s, struct dist_record *r)
{
	stream_u32(s, &r->ctlr);
	stream_u32(s, &r->statusr);
	stream_u64(s, &r->propbaser);
}

#define VCPU_ONLINE      (1u << 0)
#define VCPU_ASLEEP      (1u << 1)
#define VCPU_ENABLE_LPIS (1u << 2)
#define VCPU_PTZ         (1u << 3) /* the pending table is all zeros, and will be read as such */
#define VCPU_FLAGS       0xfu

/* A vCPU: redistributor, CPU interface, power. */
struct vcpu_record {
	uint32_t id, flags;
	uint64_t affinity;
	uint64_t pendbaser;
	uint32_t redist_ctlr, redist_statusr;
	uint32_t icc_ctlr, apr[2];
	uint8_t pmr, bpr[2], igrpen; /* igrpen: bit 0 Group 0, bit 1 Group 1 */
};

#define VCPU_RECORD_SIZE 48u

static inline void stream_vcpu(struct stream *s, struct vcpu_record *r)
{
	stream_u32(s, &r->id);
	stream_u32(s, &r->flags);
	stream_u64(s, &r->affinity);
	stream_u64(s, &r->pendbaser);
	stream_u32(s, &r->redist_ctlr);
	stream_u32(s, &r->redist_statusr);
	stream_u32(s, &r->icc_ctlr);
	stream_u32(s, &r->apr[0]);
	stream_u32(s, &r->apr[1]);
	stream_u8(s, &r->pmr);
	stream_u8(s, &r->bpr[0]);
	stream_u8(s, &r->bpr[1]);
	stream_u8(s, &r->igrpen);
}

#define IRQ_FLAG_PENDING  (1u << 0) /* the latch */
#define IRQ_FLAG_ACTIVE   (1u << 1)
#define IRQ_FLAG_ENABLED  (1u << 2)
#define IRQ_FLAG_GROUP1   (1u << 3)
#define IRQ_FLAG_EDGE     (1u << 4)
#define IRQ_FLAG_ONE_OF_N (1u << 5)
#define IRQ_FLAGS         0x3fu

/* An SGI or PPI. */
struct irq_record {
	uint16_t flags;
	uint8_t priority, reserved;
	uint32_t sources; /* that drive the line: bit n is source n */
};

#define IRQ_RECORD_SIZE 8u

static inline void stream_irq(struct stream *s, struct irq_record *r)
{
	stream_u16(s, &r->flags);
	stream_u8(s, &r->priority);
	stream_u8(s, &r->reserved);
	stream_u32(s, &r->sources);
}

struct spi_record {
	struct irq_record irq;
	uint64_t irouter;
	uint32_t place; /* 1-of-N: the vCPU that has it, or had it last */
	uint32_t reserved;
};

#define SPI_RECORD_SIZE 24u

static inline void stream_spi(struct stream *s, struct spi_record *r)
{
	stream_irq(s, &r->irq);
	stream_u64(s, &r->irouter);
	stream_u32(s, &r->place);
	stream_u32(s, &r->reserved);
}

#define LPI_FLAG_PENDING (1u << 0)
#define LPI_FLAG_ENABLED (1u << 1)
#define LPI_FLAGS        0x3u

struct lpi_record {
	uint32_t intid;
	uint16_t place; /* where it is delivered */
	uint8_t priority, flags;
};

#define LPI_RECORD_SIZE 8u

static inline void stream_lpi(struct stream *s, struct lpi_record *r)
{
	stream_u32(s, &r->intid);
	stream_u16(s, &r->place);
	stream_u8(s, &r->priority);
	stream_u8(s, &r->flags);
}

#define ITS_FLAG_ENABLED (1u << 0)
#define ITS_FLAGS        0x1u

/* An ITS; its devices, events and collections follow as arrays. */
struct its_record {
	uint32_t size; /* of this record */
	uint32_t index, device_id_bits, event_id_bits;
	uint32_t flags, reserved;
	uint64_t cbaser, cwriter, creadr, baser[2];
};

#define ITS_RECORD_SIZE 64u

static inline void stream_its(struct stream *s, struct its_record *r)
{
	stream_u32(s, &r->size);
	stream_u32(s, &r->index);
	stream_u32(s, &r->device_id_bits);
	stream_u32(s, &r->event_id_bits);
	stream_u32(s, &r->flags);
	stream_u32(s, &r->reserved);
	stream_u64(s, &r->cbaser);
	stream_u64(s, &r->cwriter);
	stream_u64(s, &r->creadr);
	stream_u64(s, &r->baser[0]);
	stream_u64(s, &r->baser[1]);
}

struct device_record {
	uint32_t devid;
	uint32_t event_id_bits;
	uint64_t itt;
	uint32_t num_events; /* in the array of events, behind those of the device before */
	uint32_t reserved;
};

#define DEVICE_RECORD_SIZE 24u

static inline void stream_device(struct stream *s, struct device_record *r)
{
	stream_u32(s, &r->devid);
	stream_u32(s, &r->event_id_bits);
	stream_u64(s, &r->itt);
	stream_u32(s, &r->num_events);
	stream_u32(s, &r->reserved);
}

struct event_record {
	uint16_t eventid, icid;
	uint32_t intid;
};

#define EVENT_RECORD_SIZE 8u

static inline void stream_event(struct stream *s, struct event_record *r)
{
	stream_u16(s, &r->eventid);
	stream_u16(s, &r->icid);
	stream_u32(s, &r->intid);
}

struct collection_record {
	uint16_t icid, place;
};

#define COLLECTION_RECORD_SIZE 4u

static inline void stream_collection(struct stream *s, struct collection_record *r)
{
	stream_u16(s, &r->icid);
	stream_u16(s, &r->place);
}

#endif /* VGIC_STATE_STREAM_H */
