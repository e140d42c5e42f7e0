/* SPDX-License-Identifier: MIT */
/* What pci.c and pci_msix.c share, and nobody else uses. */
#ifndef VMM_PCI_INTERNAL_H
#define VMM_PCI_INTERNAL_H

#include <stdbool.h>

struct pci_function;
struct snapshot_in;
struct snapshot_out;

void pci_msix_destroy(struct pci_function *function);
void pci_msix_reset(struct pci_function *function);

/* Table, and events that are pending: masked, or come in a pause. Loading: configuration space has been loaded, and is not in effect yet. */
void pci_msix_save(const struct pci_function *function, struct snapshot_out *out);
void pci_msix_load(struct pci_function *function, struct snapshot_in *in);

/* Configuration space was written: is MSI-X on, may it send? */
void pci_msix_config_changed(struct pci_function *function);

#endif /* VMM_PCI_INTERNAL_H */
