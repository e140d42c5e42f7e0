# SPDX-License-Identifier: MIT
"""Random scripts for the KVM oracle, the same for the same seed."""


def generate(seed, count):
    return []
