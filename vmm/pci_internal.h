/* SPDX-License-Identifier: MIT */
/* What pci.c and pci_msix.c share, and nobody else uses. */
#ifndef VMM_PCI_INTERNAL_H
#define VMM_PCI_INTERNAL_H

#include <stdbool.h>

struct pci_function;

void pci_msix_destroy(struct pci_function *function);
void pci_msix_reset(struct pci_function *function);

/* Configuration space was written: is MSI-X on, may it send? */
void pci_msix_config_changed(struct pci_function *function);

#endif /* VMM_PCI_INTERNAL_H */
