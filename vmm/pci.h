/* SPDX-License-Identifier: MIT */
/*
 * A PCI Express host with one bus: configuration space by ECAM, a window for
 * memory BARs, and MSI-X through the ITS. There is no INTx and no I/O space, and
 * every function is function 0 of its slot.
 *
 * The device tree calls it "pci-host-ecam-generic"; its msi-map makes the DeviceID
 * of a function its requester id (pci_devid()).
 *
 * A vector of a function is a GSI of the host's route table (vgic/route.h); what the
 * guest writes into the MSI-X table becomes its route (vgic/msix.h).
 *
 * Threads. The guest's accesses, and everything else here, are made by the thread
 * that runs the vCPUs, with one exception: pci_msix_raise() may be called by any
 * thread, beside everything but pci_function_destroy().
 */
#ifndef VMM_PCI_H
#define VMM_PCI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct machine;
struct snapshot_in;
struct snapshot_out;
struct vgic_irqfds;
struct vgic_msix;
struct vgic_routes;

#define PCI_NUM_SLOTS        32u /* of the one bus; slot 0 stays empty, so that no DeviceID is 0 */
#define PCI_NUM_BARS         6u
#define PCI_CONFIG_SIZE      4096u /* of one function */
#define PCI_MAX_MSIX_VECTORS 2048u

/* The address map. The window is for 32-bit BARs; the guest places them. */
#define PCI_WINDOW_BASE 0x10000000ull
#define PCI_WINDOW_SIZE 0x2eff0000ull
#define PCI_ECAM_BASE   0x3f000000ull
#define PCI_ECAM_SIZE   0x100000ull /* bus 0 */

/* ---- Configuration space: offsets and bits of a type 0 header ------------------- */

#define PCI_VENDOR_ID           0x00u
#define PCI_DEVICE_ID           0x02u
#define PCI_COMMAND             0x04u
#define PCI_COMMAND_MEMORY      0x0002u
#define PCI_COMMAND_MASTER      0x0004u
#define PCI_COMMAND_INTX_OFF    0x0400u
#define PCI_STATUS              0x06u
#define PCI_STATUS_CAP_LIST     0x0010u
#define PCI_REVISION_ID         0x08u
#define PCI_CLASS_CODE          0x09u /* three bytes: interface, sub-class, class */
#define PCI_CACHE_LINE_SIZE     0x0cu
#define PCI_LATENCY_TIMER       0x0du
#define PCI_BAR0                0x10u
#define PCI_SUBSYSTEM_VENDOR_ID 0x2cu
#define PCI_SUBSYSTEM_ID        0x2eu
#define PCI_CAPABILITIES        0x34u
#define PCI_INTERRUPT_LINE      0x3cu
#define PCI_HEADER_END          0x40u
#define PCI_LEGACY_END          0x100u

#define PCI_CAP_ID_VENDOR 0x09u
#define PCI_CAP_ID_MSIX   0x11u

/* ---- A function ----------------------------------------------------------------- */

/* What it is. */
struct pci_identity {
	uint16_t vendor;
	uint16_t device;
	uint16_t subsystem_vendor;
	uint16_t subsystem;
	uint32_t class_code; /* class, sub-class, interface from the top of 24 bits */
	uint8_t revision;
};

/*
 * The registers behind a BAR. @width is 1, 2 or 4 (8 bytes come as two of 4, low half first); @offset + @width is never
 * past the end of the BAR, but need not be aligned.
 */
struct pci_bar_ops {
	uint32_t (*read)(void *owner, uint32_t offset, unsigned width);
	void (*write)(void *owner, uint32_t offset, unsigned width, uint32_t value);
};

struct pci_bar {
	const struct pci_bar_ops *ops; /* NULL: there is no such BAR */
	void *owner;
	uint32_t size; /* a power of two, at least 16 */
};

/* For capabilities that do something. Both may be NULL. */
struct pci_function_ops {
	/* The guest is about to read @width bytes at @offset: bring function->config up to date. */
	void (*before_config_read)(void *owner, unsigned offset, unsigned width);
	/* The guest has written there: function->config has the new bytes, as far as they are writable. */
	void (*after_config_write)(void *owner, unsigned offset, unsigned width);
};

/* MSI-X of one function: the library's table, pending bits and routes, behind a capability and a BAR. */
struct pci_msix {
	struct vgic_msix *msix; /* NULL: the function has no MSI-X */
	unsigned num_vectors;
	unsigned capability; /* its offset in configuration space */
	uint32_t pba_offset; /* in the BAR; the table is at 0 */
	uint32_t first_gsi;  /* vector n is the GSI of that number + n */
};

struct pci_function {
	struct pci_host *host; /* these two are set by pci_add_function() */
	unsigned slot;
	const struct pci_function_ops *ops;
	void *owner;

	/* What the guest reads; and which bits of it the guest may write. */
	uint8_t config[PCI_CONFIG_SIZE];
	uint8_t writable[PCI_CONFIG_SIZE];
	unsigned capabilities_end; /* the first free byte behind the capabilities */
	unsigned last_capability;

	struct pci_bar bars[PCI_NUM_BARS];
	struct pci_msix msix;
};

/*
 * Set up @function with no BARs and no capabilities. Not in a slot yet. Undone by pci_function_destroy(), which may be
 * called once this has been. @ops may be NULL.
 */
void pci_function_init(struct pci_function *function, const struct pci_identity *identity,
		       const struct pci_function_ops *ops, void *owner);
void pci_function_destroy(struct pci_function *function);

/* As after power-on: the BARs are 0, decoding and MSI-X are off, all vectors masked. What can be written is cleared. */
void pci_function_reset(struct pci_function *function);

/*
 * A capability of @size bytes, its header of two bytes included, which is filled in. Bytes are read-only until
 * function->writable says otherwise. Returns its offset in function->config, or -ENOSPC.
 */
int pci_add_capability(struct pci_function *function, uint8_t id, unsigned size);

/* BAR @index, a 32-bit memory BAR of @size bytes: a power of two, at least 16. */
void pci_add_bar(struct pci_function *function, unsigned index, uint32_t size, const struct pci_bar_ops *ops,
		 void *owner);

/*
 * MSI-X with @num_vectors (1 to PCI_MAX_MSIX_VECTORS), table and PBA in BAR @index. The function is on the bus. Returns 0,
 * -ENOSPC or -ENOMEM.
 */
int pci_add_msix(struct pci_function *function, unsigned index, unsigned num_vectors);

/*
 * An event of @vector: send its message, or remember it in the PBA while it is masked or the controller is paused
 * (vgic_pause()). Dropped while MSI-X is off, and for a vector that does not exist. Any thread.
 */
void pci_msix_raise(struct pci_function *function, unsigned vector);

/*
 * What the guest has written, the MSI-X table, and events that are pending. Devices are paused, and the controller too:
 * its resumption sends what is pending and not masked. A function of another kind is found out.
 */
void pci_function_save(const struct pci_function *function, struct snapshot_out *out);
void pci_function_load(struct pci_function *function, struct snapshot_in *in);

/*
 * From now on, or no longer, a signal of @eventfd raises @vector too. No event of it comes after the unbinding has
 * returned. Returns 0; -EINVAL for a vector that does not exist; -ENOTSUP if the host has no irqfds; or what
 * vgic_irqfd_assign() returned.
 */
int pci_msix_bind(struct pci_function *function, unsigned vector, int eventfd);
void pci_msix_unbind(struct pci_function *function, unsigned vector, int eventfd);

/* May it access memory? */
bool pci_is_bus_master(const struct pci_function *function);

/* The requester id, which is the DeviceID at the ITS. */
uint32_t pci_devid(const struct pci_function *function);

/* Little-endian fields of configuration space. */
uint32_t pci_config_get(const struct pci_function *function, unsigned offset, unsigned width);
void pci_config_set(struct pci_function *function, unsigned offset, unsigned width, uint32_t value);
/* Let the guest write the bits of @mask there. */
void pci_config_allow(struct pci_function *function, unsigned offset, unsigned width, uint32_t mask);

/* An access to BAR @index as the guest would make it; false if there is nothing. */
bool pci_bar_read(struct pci_function *function, unsigned index, uint32_t offset, unsigned width, uint32_t *value);
bool pci_bar_write(struct pci_function *function, unsigned index, uint32_t offset, unsigned width, uint32_t value);

/* ---- The host ------------------------------------------------------------------- */

struct pci_host {
	struct machine *machine;
	struct vgic_routes *routes;
	struct vgic_irqfds *irqfds; /* NULL: no eventfds can be bound */
	uint32_t next_gsi;
	struct pci_function *slots[PCI_NUM_SLOTS];
};

/* All GSIs of @routes are for the functions. */
void pci_host_init(struct pci_host *host, struct machine *machine, struct vgic_routes *routes,
		   struct vgic_irqfds *irqfds);

/* Put @function into the next free slot. Returns 0, or -ENOSPC if there is none. */
int pci_add_function(struct pci_host *host, struct pci_function *function);
void pci_remove_function(struct pci_host *host, struct pci_function *function);

/*
 * Register accesses, for cpu_map_mmio(); @host is a struct pci_host. Where nothing is, reads return all ones and writes
 * are lost, as on a real bus.
 */
uint64_t pci_ecam_read(void *host, uint64_t offset, unsigned width);
void pci_ecam_write(void *host, uint64_t offset, unsigned width, uint64_t value);
uint64_t pci_window_read(void *host, uint64_t offset, unsigned width);
void pci_window_write(void *host, uint64_t offset, unsigned width, uint64_t value);

#endif /* VMM_PCI_H */
