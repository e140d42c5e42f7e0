/* SPDX-License-Identifier: MIT */
/*
 * The PCI transport of a virtio 1.x device (no legacy interface).
 *
 * BAR 0 has the virtio structures, a page each:
 *
 *   0x0000  common configuration
 *   0x1000  ISR status
 *   0x2000  the device's own configuration
 *   0x3000  notifications: a 16-bit register for each queue, 4 bytes apart
 *
 * BAR 1 has the MSI-X table and PBA. There is a vector for each queue and one for
 * changes of the configuration, or device->num_vectors; the driver may use fewer.
 */
#ifndef VMM_VIRTIO_PCI_H
#define VMM_VIRTIO_PCI_H

#include "virtio.h"

struct pci_host;
struct snapshot_in;
struct snapshot_out;
struct virtio_pci;

/*
 * Give @device a transport and put it on the bus. The transport owns the device afterwards: virtio_pci_destroy() destroys
 * it. Returns 0, or -ENOMEM or -ENOSPC (no free slot): then the device is the caller's as before.
 */
int virtio_pci_create(struct pci_host *host, struct virtio_device *device, struct virtio_pci **result);
void virtio_pci_destroy(struct virtio_pci *transport);

/* As after power-on. */
void virtio_pci_reset(struct virtio_pci *transport);

/* Can the device behind it be saved? If so: for the others, it is paused. Loading is for one that has been reset. */
bool virtio_pci_can_be_saved(const struct virtio_pci *transport);
void virtio_pci_pause(struct virtio_pci *transport);
void virtio_pci_save(const struct virtio_pci *transport, struct snapshot_out *out);
void virtio_pci_load(struct virtio_pci *transport, struct snapshot_in *in);

void virtio_pci_resume(struct virtio_pci *transport);

#endif /* VMM_VIRTIO_PCI_H */
