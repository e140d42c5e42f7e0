/* SPDX-License-Identifier: MIT */
/*
 * --trace-gic: one line for each thing that happens at the interrupt controller.
 * docs/vgic-vmm.1 describes the lines. Every call may be made with trace NULL.
 */
#ifndef VMM_TRACE_H
#define VMM_TRACE_H

#include <stdbool.h>
#include <stdint.h>

struct machine;
struct trace;
struct vcpu;

/* Write the trace to the file @path, "-" for standard error. Returns 0, or prints a line, negative errno. */
int trace_open(const char *path, struct trace **trace);
void trace_close(struct trace *trace);

/* A register access by @vcpu. The offset is in the distributor, in the ITS, or in the redistributor frame of vCPU @frame. */
void trace_dist(struct trace *trace, const struct vcpu *vcpu, bool is_write, uint32_t offset, unsigned width,
		uint64_t value);
void trace_its(struct trace *trace, const struct vcpu *vcpu, bool is_write, uint32_t offset, unsigned width,
	       uint64_t value);
void trace_redist(struct trace *trace, const struct vcpu *vcpu, unsigned frame, bool is_write, uint32_t offset,
		  unsigned width, uint64_t value);

/* An ICC access; @result as vgic_icc_read() and vgic_icc_write() return it. */
void trace_icc(struct trace *trace, const struct vcpu *vcpu, bool is_write, uint32_t reg, uint64_t value, int result);

/* The lines of @vcpu, as they are driven into the CPU; only changes are written. */
void trace_lines(struct trace *trace, struct vcpu *vcpu, unsigned lines);

/* Anything else, formatted; @vcpu may be NULL. */
void trace_event(struct trace *trace, const struct machine *machine, const struct vcpu *vcpu, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif /* VMM_TRACE_H */
