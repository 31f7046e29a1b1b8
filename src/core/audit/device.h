/* device.h: what people call a PCI device: a log, a label and a purchase order have the interface, the RDMA device or the
 * slot, and not the address that results are about. */
#pragma once
#include "core/audit/fact.h"

enum { DEVICE_NAME_SIZE = 128 };

/* Of the device or bridge at a PCI address: "eth3, mlx5_2, slot 5", "GPU 3 by address, NVIDIA H100, slot 2", "bridge of eth3,
 * mlx5_2". "": not known, or `subject` is no such address. Cost: some walks over the sheet's lists of devices. */
const char *device_name(const struct sheet *s, const char *subject,
                        char ret_text[static DEVICE_NAME_SIZE]);
