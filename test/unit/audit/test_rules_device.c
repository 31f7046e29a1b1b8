/* test_rules_device.c: rules of PCIe devices, GPUs, interfaces and RDMA ports: each verdict on both sides of its limit. */
#include "rule_kit.h"

#define PCI   "pci@d=d|pci.above@d=b|pci.kind@d=nic|"
#define ETH   "port@m/1=m/1|port.layer@m/1=Ethernet|port.net@m/1=eth1|"
#define IB    "port@m/1=m/1|port.layer@m/1=InfiniBand|"
#define NET   "net@eth1=eth1|"
#define GPU   "gpu.library@g=g|gpu.model@g=A|"
#define GIDS  "port.gids@m/1=0 v1 link, 3 v2 ip4, 13 v2 ip6|"
#define PLACE "port.addresses@m/1=3 10.0.0.1, 13 fd00::1|"

static void test_links_of_pcie(void **state)
{
    static const struct rule_case cases[] = {
        {PASS, "cfg.pcie.width", "d", PCI "pci.width@d=16|pci.width_max@d=16|pci.width_max@b=16",
         "x16"},
        {FAIL, "cfg.pcie.width", "d", PCI "pci.width@d=15|pci.width_max@d=16|pci.width_max@b=16",
         "x15", .expected = "x16"},
        {PASS, "cfg.pcie.width", "d", PCI "pci.width@d=8|pci.width_max@d=8|pci.width_max@b=16",
         .expected = "x8"},
        {PASS, "cfg.pcie.width", "d", PCI "pci.width@d=8|pci.width_max@d=16|pci.width_max@b=8",
         .expected = "x8"},
        {FAIL, "cfg.pcie.width", "d", PCI "pci.width@d=0|pci.width_max@d=1|pci.width_max@b=1",
         "x0"},
        {PASS, "cfg.pcie.width", "d", PCI "pci.width@d=64|pci.width_max@d=64|pci.width_max@b=64"},
        {SKIP, "cfg.pcie.width", "d", PCI "pci.width@d=65|pci.width_max@d=65|pci.width_max@b=65",
         .why = "no link"},
        {SKIP, "cfg.pcie.width", "d", PCI "pci.width@d=0|pci.width_max@d=16|pci.width_max@b=0",
         .why = "no link"},
        {SKIP, "cfg.pcie.width", "d", PCI "pci.width@d=-1|pci.width_max@d=16|pci.width_max@b=16",
         .why = "no link"},
        {SKIP, "cfg.pcie.width", "d", "pci.above@d=pci0000:00|" PCI "pci.width@d=1",
         .why = "root complex"},
        {PASS, "cfg.pcie.speed", "d",
         PCI
         "pci.speed@d=16.0 GT/s PCIe|pci.speed_max@d=32.0 GT/s PCIe|pci.speed_max@b=16.0 GT/s PCIe",
         .expected = "16.0 GT/s"},
        {PASS, "cfg.pcie.speed", "d",
         PCI
         "pci.speed@d=16.0 GT/s PCIe|pci.speed_max@d=16.0 GT/s PCIe|pci.speed_max@b=32.0 GT/s PCIe",
         .expected = "16.0 GT/s"},
        {FAIL, "cfg.pcie.speed", "d",
         PCI
         "pci.speed@d=8.0 GT/s PCIe|pci.speed_max@d=16.0 GT/s PCIe|pci.speed_max@b=32.0 GT/s PCIe",
         "8.0 GT/s PCIe", .expected = "16.0 GT/s"},
        {UNKNOWN, "cfg.pcie.speed", "d",
         "pci.kind@d=gpu|" PCI
         "pci.speed@d=8.0 GT/s PCIe|pci.speed_max@d=16.0 GT/s PCIe|pci.speed_max@b=32.0 GT/s PCIe",
         .why = "not_run"},
        {PASS, "cfg.pcie.speed", "d",
         "pci.kind@d=gpu|" PCI "pci.speed@d=32.0 GT/s PCIe|pci.speed_max@d=16.0 GT/s "
         "PCIe|pci.speed_max@b=16.0 GT/s PCIe"},
        {SKIP, "cfg.pcie.numa", "d", PCI "cpu.packages=1|pci.numa@d=-1", .why = "one socket"},
        {FAIL, "cfg.pcie.numa", "d", PCI "cpu.packages=2|pci.numa@d=-1", "-1"},
        {PASS, "cfg.pcie.numa", "d", PCI "cpu.packages=2|pci.numa@d=0", "0"},
        {PASS, "cfg.pcie.acs", "b", "pci.bridge@b=b|pci.acs@b=0"},
        {FAIL, "cfg.pcie.acs", "b", "pci.bridge@b=b|pci.acs@b=1"},
        {SKIP, "cfg.pcie.acs", "b", "os.virtual=1|pci.bridge@b=b|pci.acs@b=1",
         .why = "a virtual machine"},
        {UNKNOWN, "cfg.pcie.acs", "b", "os.virtual!no_permission|pci.bridge@b=b|pci.acs@b=1",
         .why = "no_permission"},
    };
    (void)state;
    RULES_TRY(cases);
}

/* Uncorrected errors count since boot. Of the others ten an hour are allowed, over 240 hours. Less than an hour counts as one. */
static void test_errors_of_pcie(void **state)
{
    static const struct rule_case cases[] = {
        {PASS, "cfg.pcie.aer", "d",
         PCI "pci.aer_fatal@d=0|pci.aer_nonfatal@d=0|pci.aer_corrected@d=2400",
         "0 fatal, 0 uncorrected since boot, 2400 corrected in 10.0 days since boot",
         .shown = "pci.aer_corrected"},
        {WARN, "cfg.pcie.aer", "d",
         PCI "pci.aer_fatal@d=0|pci.aer_nonfatal@d=0|pci.aer_corrected@d=2401",
         .shown = "pci.aer_corrected"},
        {PASS, "cfg.pcie.aer", "d",
         PCI "pci.aer_fatal@d=0|pci.aer_nonfatal@d=0|pci.aer_corrected@d=10|os.uptime=1800"},
        {WARN, "cfg.pcie.aer", "d",
         PCI "pci.aer_fatal@d=0|pci.aer_nonfatal@d=0|pci.aer_corrected@d=11|os.uptime=1800"},
        {FAIL, "cfg.pcie.aer", "d",
         PCI "pci.aer_fatal@d=1|pci.aer_nonfatal@d=1|pci.aer_corrected@d=0",
         .shown = "pci.aer_fatal"},
        {FAIL, "cfg.pcie.aer", "d",
         PCI "pci.aer_fatal@d=0|pci.aer_nonfatal@d=1|pci.aer_corrected@d=0",
         .shown = "pci.aer_nonfatal"},
        {FAIL, "cfg.pcie.aer", "d",
         PCI "pci.aer_fatal@d=1|pci.aer_nonfatal@d=0|pci.aer_corrected@d=0"},
    };
    (void)state;
    RULES_TRY(cases);
}

static void test_gpus(void **state)
{
    static const struct rule_case cases[] = {
        {FAIL, "cfg.gpu.ecc", "g", "gpu.ue@g=0|gpu.ecc@g=0", "off"},
        {PASS, "cfg.gpu.ecc", "g", "gpu.ue@g=0|gpu.ecc@g=1", "0 uncorrected"},
        {FAIL, "cfg.gpu.ecc", "g", "gpu.ue@g=1|gpu.ecc@g=1", "1 uncorrected"},
        {PASS, "cfg.gpu.ecc", "g", "gpu.ue@g=0|gpu.ecc@g!absent"},
        {PASS, "cfg.gpu.ecc", "g", "gpu.ue@g=0"},
        {UNKNOWN, "cfg.gpu.ecc", "g", "gpu.ue@g=0|gpu.ecc@g!timeout", .why = "timeout"},
        {PASS, "cfg.gpu.remap", "g", GPU "gpu.remap_pending@g=0|gpu.remap_failed@g=0", "none"},
        {WARN, "cfg.gpu.remap", "g", GPU "gpu.remap_pending@g=1|gpu.remap_failed@g=0",
         "rows wait to be remapped"},
        {FAIL, "cfg.gpu.remap", "g", GPU "gpu.remap_pending@g=1|gpu.remap_failed@g=1",
         "a row could not be remapped"},
        {SKIP, "cfg.gpu.remap", "g", GPU "gpu.remap_pending@g!absent", .why = "does not have it"},
        {UNKNOWN, "cfg.gpu.remap", "g", GPU "gpu.remap_pending@g=0|gpu.remap_failed@g!stuck",
         .why = "stuck"},
        {UNKNOWN, "cfg.gpu.remap", "g", GPU, .why = "no_source"},
        {PASS, "cfg.gpu.throttle", "g", GPU "gpu.throttle@g=0x7", "not slowed"},
        {FAIL, "cfg.gpu.throttle", "g", GPU "gpu.throttle@g=0x8", "slowed by the hardware"},
        {WARN, "cfg.gpu.throttle", "g", GPU "gpu.throttle@g=0x20", "slowed by the driver: hot"},
        {FAIL, "cfg.gpu.throttle", "g", GPU "gpu.throttle@g=0x40", "too hot"},
        {FAIL, "cfg.gpu.throttle", "g", GPU "gpu.throttle@g=0xe8", "power brake"},
        {FAIL, "cfg.gpu.throttle", "g", GPU "gpu.throttle@g=0x28", "slowed by the hardware"},
        {PASS, "cfg.pcie.replay", "g", GPU "gpu.replays@g=2400", "2400 in 10.0 days since boot"},
        {FAIL, "cfg.pcie.replay", "g", GPU "gpu.replays@g=2401"},
        {PASS, "cfg.pcie.replay", "g", GPU "gpu.replays@g=10|os.uptime=1800"},
        {FAIL, "cfg.pcie.replay", "g", GPU "gpu.replays@g=11|os.uptime=1800"},
        {SKIP, "cfg.sw.fabric_manager", "g", GPU "gpu.fabric@g=0", .why = "no NVSwitch fabric"},
        {FAIL, "cfg.sw.fabric_manager", "g", GPU "gpu.fabric@g=1", "registration has not begun"},
        {FAIL, "cfg.sw.fabric_manager", "g", GPU "gpu.fabric@g=2", "registration goes on"},
        {PASS, "cfg.sw.fabric_manager", "g", GPU "gpu.fabric@g=3", "registered"},
        {UNKNOWN, "cfg.sw.fabric_manager", "g", GPU "gpu.fabric@g=4", "state 4", "no_source"},
        {UNKNOWN, "cfg.gpu.power", "g", GPU "gpu.power@g=700000|gpu.clock@g=1980",
         "power 700000, clock 1980", COMPARED},
        {UNKNOWN, "cfg.gpu.power", "g", GPU "gpu.power@g!absent|gpu.clock@g=1980", "clock 1980",
         COMPARED},
        {SKIP, "cfg.gpu.power", "g", GPU "gpu.power@g!absent|gpu.clock@g!absent",
         .why = "does not have it"},
        {UNKNOWN, "cfg.gpu.power", "g", GPU "gpu.power@g=700000|gpu.clock@g!timeout",
         .why = "timeout"},
        {UNKNOWN, "cfg.gpu.power", "g", GPU "gpu.power@g=700000", .why = "no_source"},
        {UNKNOWN, "cfg.sw.gpu_runtime", "", "gpu@g=g|gpu.runtime=12.4", "12.4", COMPARED},
        {PASS, "cfg.sw.gpu_runtime", "", "gpu@g=g|gpu.runtime=12.4", .declared = "12.4",
         .expected = "at least 12.4"},
        {FAIL, "cfg.sw.gpu_runtime", "", "gpu@g=g|gpu.runtime=12.3", .declared = "12.4"},
        {PASS, "cfg.sw.gpu_runtime", "", "gpu@g=g|gpu.runtime=12.10", .declared = "12.4"},
        {PASS, "cfg.sw.gpu_runtime", "", "gpu@g=g|gpu.runtime=13.0", .declared = "12.4"},
        {FAIL, "cfg.sw.gpu_runtime", "", "gpu@g=g|gpu.runtime=11.9", .declared = "12.4"},
        {PASS, "cfg.sw.gpu_runtime", "", "gpu@g=g|gpu.runtime=12.4.1", .declared = "12.4"},
        {FAIL, "cfg.sw.gpu_runtime", "", "gpu@g=g|gpu.runtime=12", .declared = "12.4"},
        {PASS, "cfg.sw.gpu_runtime", "", "gpu@g=g|gpu.runtime=12.4", .declared = "12.4.0"},
        {UNKNOWN, "cfg.sw.gpu_runtime", "", "gpu@g=g|gpu.runtime=12.x", "12.x", "no_source",
         .declared = "12.4"},
        {UNKNOWN, "cfg.sw.gpu_runtime", "", "gpu@g=g|gpu.runtime=12.4", .why = "no_source",
         .declared = "newest"},
    };
    (void)state;
    RULES_TRY(cases);
}

static void test_interfaces(void **state)
{
#define FLAT "net.arp_ignore@eth1=1|net.arp_announce@eth1=2|net.rp_filter@eth1=0"
    static const struct rule_case cases[] = {
        {SKIP, "cfg.kern.arp", "eth1", NET "net.shared@eth1=|" FLAT, .why = "no other interface"},
        {PASS, "cfg.kern.arp", "eth1", NET "net.shared@eth1=eth2|" FLAT,
         "arp_ignore 1, arp_announce 2, rp_filter 0"},
        {PASS, "cfg.kern.arp", "eth1", NET "net.shared@eth1=eth2|net.rp_filter@eth1=2|" FLAT},
        {PASS, "cfg.kern.arp", "eth1", NET "net.shared@eth1=eth2|net.arp_ignore@eth1=2|" FLAT},
        {FAIL, "cfg.kern.arp", "eth1", NET "net.shared@eth1=eth2|net.rp_filter@eth1=1|" FLAT,
         .shown = "net.rp_filter"},
        {FAIL, "cfg.kern.arp", "eth1", NET "net.shared@eth1=eth2|net.arp_ignore@eth1=0|" FLAT,
         .shown = "net.arp_ignore"},
        {FAIL, "cfg.kern.arp", "eth1", NET "net.shared@eth1=eth2|net.arp_announce@eth1=1|" FLAT,
         .expected = "a subnet with eth2", .shown = "net.arp_announce"},
        {PASS, "cfg.kern.irq_numa", "eth1", NET "net.irqs@eth1=8|net.irqs_far@eth1=0",
         "0 of 8 on another node"},
        {FAIL, "cfg.kern.irq_numa", "eth1", NET "net.irqs@eth1=8|net.irqs_far@eth1=1",
         "1 of 8 on another node"},
        /* one a day is a warning, five fail; three more since boot are neither */
        {PASS, "be.link.flaps", "eth1", NET "net.downs@eth1=13",
         "lost its carrier 13 times in 10.0 days since boot"},
        {WARN, "be.link.flaps", "eth1", NET "net.downs@eth1=14",
         .expected = "at most 1 a day, and 3 while booting"},
        {WARN, "be.link.flaps", "eth1", NET "net.downs@eth1=53"},
        {FAIL, "be.link.flaps", "eth1", NET "net.downs@eth1=54"},
        {PASS, "be.link.flaps", "eth1", NET "net.downs@eth1=4|os.uptime=43200"},
        {WARN, "be.link.flaps", "eth1", NET "net.downs@eth1=5|os.uptime=43200"},
        {PASS, "be.link.flaps", "eth1", NET "<net.downs@eth1=10|net.downs@eth1=11"},
        {WARN, "be.link.flaps", "eth1", NET "<net.downs@eth1=10|net.downs@eth1=12",
         .expected = "at most 1 a day"},
        {WARN, "be.link.flaps", "eth1", NET "<net.downs@eth1=10|net.downs@eth1=15"},
        {FAIL, "be.link.flaps", "eth1", NET "<net.downs@eth1=10|net.downs@eth1=16",
         "lost its carrier 6 times in the last 24.0 hours"},
        /* its driver was loaded anew: other counters fell, this one by chance did not */
        {PASS, "be.link.flaps", "eth1",
         NET "<net.downs@eth1=1|<net.rx_bytes@eth1=900|net.downs@eth1=3|net.rx_bytes@eth1=50",
         "lost its carrier 3 times in 24.0 hours, counted anew meanwhile"},
        {WARN, "be.link.flaps", "eth1",
         NET "<net.downs@eth1=1|<net.rx_bytes@eth1=900|net.downs@eth1=3|net.rx_bytes@eth1=950"},
        {PASS, "be.link.optics", "eth1", NET "net.module_alarm@eth1=none"},
        {FAIL, "be.link.optics", "eth1",
         NET "net.module_alarm@eth1=rx power|net.module_rx@eth1=9|net.module@eth1=A", "rx power"},
        {UNKNOWN, "be.link.optics", "eth1",
         NET "net.module_alarm@eth1=none|net.module_rx@eth1=5000|net.module@eth1=A",
         "-3.0 dBm received", COMPARED},
        {PASS, "be.link.optics", "eth1",
         NET "net.module_alarm@eth1=none|net.module_rx@eth1=-1|net.module@eth1=A", "none"},
        {UNKNOWN, "be.link.optics", "eth1",
         NET "net.module_alarm@eth1=none|net.module_rx@eth1!timeout|net.module@eth1=A",
         .why = "timeout"},
        {SKIP, "be.link.optics", "eth1", NET "net.module_alarm@eth1=unsupported",
         .why = "does not have it"},
        {UNKNOWN, "be.link.fec", "eth1", NET "net.fec@eth1=rs", "rs", COMPARED},
        {SKIP, "be.link.fec", "eth1", NET "net.fec@eth1=unsupported", .why = "does not have it"},
        {PASS, "cfg.time.hwstamp", "eth1", NET "net.phc@eth1=ptp0", "ptp0"},
        {WARN, "cfg.time.hwstamp", "eth1", NET "net.phc@eth1=none"},
    };
    (void)state;
    RULES_TRY(cases);
}

/* One lost block in 16e12 bits is 1e-12. 160,000,000 corrected ones are 1e-5. */
static void test_error_rate(void **state)
{
#define RATE(lost, mended, bytes)                                                                  \
    NET "net.fec_lost@eth1=" lost "|net.fec_corrected@eth1=" mended "|net.rx_bytes@eth1=" bytes
    static const struct rule_case cases[] = {
        {PASS, "be.link.ber", "eth1", RATE("1", "160000000", "2000000000000"),
         "1.0e-05 before and 1.0e-12 after correction, in 10.0 days since boot"},
        {WARN, "be.link.ber", "eth1", RATE("1", "160000001", "2000000000000")},
        {WARN, "be.link.ber", "eth1", RATE("2", "0", "2000000000000"), .why = "chance"},
        {WARN, "be.link.ber", "eth1", RATE("4", "0", "2000000000000"), .why = "chance"},
        {FAIL, "be.link.ber", "eth1", RATE("5", "0", "2000000000000"),
         .expected = "at most 1.0e-05 before and 1.0e-12 after"},
        {PASS, "be.link.ber", "eth1", RATE("0", "0", "1250000000000"),
         "0.0e+00 before and 0.0e+00 after correction, in 10.0 days since boot"},
        /* one block is no rate */
        {PASS, "be.link.ber", "eth1", RATE("1", "0", "1250000000000"),
         "0.0e+00 before and 1.6e-12 after correction, in 10.0 days since boot",
         "chance may be the reason"},
        {SKIP, "be.link.ber", "eth1", RATE("9", "0", "1249999999999"),
         .why = "too little was received"},
        {SKIP, "be.link.ber", "eth1", RATE("-1", "0", "2000000000000"), .why = "does not count it"},
        {PASS, "be.link.ber", "eth1", RATE("0", "-1", "2000000000000")},
        /* by the last day if it had enough bits; else by all since boot */
        {FAIL, "be.link.ber", "eth1",
         "<net.fec_lost@eth1=0|<net.fec_corrected@eth1=0|<net.rx_bytes@eth1=98000000000000|" RATE(
             "5", "0", "100000000000000"),
         "0.0e+00 before and 5.0e-12 after correction, in the last 24.0 hours"},
        {PASS, "be.link.ber", "eth1",
         "<net.fec_lost@eth1=0|<net.fec_corrected@eth1=0|<net.rx_bytes@eth1=99000000000000|" RATE(
             "5", "0", "100000000000000"),
         "0.0e+00 before and 1.0e-13 after correction, in 10.0 days since boot"},
    };
    (void)state;
    RULES_TRY(cases);
}

static void test_ports(void **state)
{
    static const struct rule_case cases[] = {
        {PASS, "be.link.initialized", "m/1",
         ETH "port.physical@m/1=5: LinkUp|port.state@m/1=2: INIT", "LinkUp, INIT"},
        {FAIL, "be.link.initialized", "m/1",
         ETH "port.physical@m/1=5: LinkUp|port.state@m/1=1: DOWN", "LinkUp, DOWN"},
        {FAIL, "be.link.initialized", "m/1",
         ETH "port.physical@m/1=4: Training|port.state@m/1=2: INIT"},
        {FAIL, "be.link.initialized", "m/1",
         ETH "port.physical@m/1=6: Recovery|port.state@m/1=4: ACTIVE"},
        {PASS, "be.link.active", "m/1", ETH "port.physical@m/1=5: LinkUp|port.state@m/1=4: ACTIVE",
         "ACTIVE"},
        {FAIL, "be.link.active", "m/1", ETH "port.physical@m/1=5: LinkUp|port.state@m/1=3: ARMED",
         "ARMED"},
        {SKIP, "be.link.active", "m/1", ETH "port.physical@m/1=2: Polling|port.state@m/1=1: DOWN",
         .why = "no link"},
        {PASS, "be.link.symbol", "m/1", IB "port.symbols@m/1=100",
         "100 symbol errors in 10.0 days since boot"},
        {WARN, "be.link.symbol", "m/1", IB "port.symbols@m/1=101"},
        {WARN, "be.link.symbol", "m/1", IB "port.symbols@m/1=28800"},
        {FAIL, "be.link.symbol", "m/1", IB "port.symbols@m/1=28801",
         .expected = "at most 120 an hour"},
        {WARN, "be.link.symbol", "m/1", IB "port.symbols@m/1=120|os.uptime=1800"},
        {FAIL, "be.link.symbol", "m/1", IB "port.symbols@m/1=121|os.uptime=1800"},
        {SKIP, "be.link.symbol", "m/1", ETH "port.symbols@m/1=99999", .why = "no InfiniBand port"},
        {PASS, "be.link.drops", "m/1", ETH "port.discards@m/1=0"},
        {WARN, "be.link.drops", "m/1", ETH "port.discards@m/1=1", .expected = "at most 0"},
        {WARN, "be.link.drops", "m/1", ETH "port.discards@m/1=1000000000000"},
        {FAIL, "be.link.drops", "m/1", ETH "port.discards@m/1=1000000000001",
         .expected = "at most 1000000000000"},
        {FAIL, "be.link.pause", "m/1", ETH "net.pause@eth1=rx on, tx off|net.pfc@eth1=3",
         "rx on, tx off, with priority flow control of 3"},
        {FAIL, "be.link.pause", "m/1", ETH "net.pause@eth1=rx on, tx on|net.pfc@eth1=0"},
        {FAIL, "be.link.pause", "m/1", ETH "net.pause@eth1=rx on, tx on|net.pfc@eth1=7"},
        {UNKNOWN, "be.link.pause", "m/1", ETH "net.pause@eth1=rx on, tx on|net.pfc@eth1=none",
         "rx on, tx on", COMPARED},
        {UNKNOWN, "be.link.pause", "m/1", ETH "net.pause@eth1=rx off, tx off|net.pfc@eth1=3",
         "rx off, tx off", COMPARED},
        {SKIP, "be.link.pause", "m/1", ETH "net.pause@eth1=unsupported|net.pfc@eth1=3",
         .why = "does not have it"},
        {FAIL, "be.ib.sm", "m/1", IB "port.sm@m/1=0x0|port.lid@m/1=0x5"},
        {FAIL, "be.ib.sm", "m/1", IB "port.sm@m/1=0x1|port.lid@m/1=0x0"},
        {PASS, "be.ib.sm", "m/1", IB "port.sm@m/1=0x1|port.lid@m/1=0x5",
         "LID 5, subnet manager at LID 1"},
        {FAIL, "be.ib.pkey", "m/1", IB "port.pkeys@m/1=0x7fff", "0x7fff"},
        {FAIL, "be.ib.pkey", "m/1", IB "port.pkeys@m/1=0x7fff 0x9"},
        {UNKNOWN, "be.ib.pkey", "m/1", IB "port.pkeys@m/1=0x7fff 0x8001", "0x7fff 0x8001",
         COMPARED},
        {UNKNOWN, "be.ib.pkey", "m/1", IB "port.pkeys@m/1=0xffff", .why = COMPARED},
        {UNKNOWN, "cfg.nic.bond", "b", "bond@b=b|bond.down@b=none|bond.mode@b=lacp", "lacp",
         COMPARED},
        {FAIL, "cfg.nic.bond", "b", "bond@b=b|bond.down@b=eth1|bond.mode@b=lacp", "down: eth1"},
        {PASS, "cfg.nic.chardev", "m", "rdma@m=m|rdma.verbs@m=1|rdma.mad@m=0|" ETH,
         "verbs there, management missing", .shown = "rdma.verbs"},
        {FAIL, "cfg.nic.chardev", "m", "rdma@m=m|rdma.verbs@m=0|rdma.mad@m=1|" ETH,
         .expected = "verbs are there", .shown = "rdma.verbs"},
        {FAIL, "cfg.nic.chardev", "m", "rdma@m=m|rdma.verbs@m=1|rdma.mad@m=0|" IB,
         .expected = "both are there", .shown = "rdma.mad"},
        {PASS, "cfg.nic.chardev", "m", "rdma@m=m|rdma.verbs@m=1|rdma.mad@m=1|" IB},
        {UNKNOWN, "cfg.nic.count", "", "rdma!absent", "0", COMPARED},
        {UNKNOWN, "cfg.nic.count", "", "rdma@a=a|rdma@b=b", "2", COMPARED, .shown = "rdma"},
        {UNKNOWN, "cfg.nic.count", "", "rdma@a=a|rdma@b!timeout", .why = "timeout"},
        {UNKNOWN, "cfg.nic.count", "", "", .why = "no_source"},
    };
    (void)state;
    RULES_TRY(cases);
}

static void test_addresses_of_ports(void **state)
{
    static const struct rule_case cases[] = {
        {FAIL, "be.roce.gid_index", "m/1", ETH "port.gid@m/1=none"},
        {UNKNOWN, "be.roce.gid_index", "m/1", ETH "port.gid@m/1=3 v2 ip4", "3 v2 ip4", COMPARED},
        {SKIP, "be.roce.gid_type", "m/1", ETH "port.gid@m/1=none", .why = "no GID"},
        {PASS, "be.roce.gid_type", "m/1", ETH "port.gid@m/1=3 v2 ip4", "3 v2 ip4"},
        {FAIL, "be.roce.gid_type", "m/1", ETH "port.gid@m/1=1 v1 ip4", "1 v1 ip4"},
        {PASS, "be.roce.gid_job", "m/1",
         ETH GIDS "port.gid@m/1=3 v2 ip4|job.gid@m/1=3 of process 9", "index 3 of process 9"},
        {PASS, "be.roce.gid_job", "m/1", ETH GIDS "job.gid@m/1=3 of process 9, 13 of process 8"},
        {FAIL, "be.roce.gid_job", "m/1", ETH GIDS "job.gid@m/1=3 of process 9, 1 of process 8",
         "index 1 of process 8: empty"},
        {FAIL, "be.roce.gid_job", "m/1",
         ETH GIDS "port.gid@m/1=3 v2 ip4|job.gid@m/1=0 of process 9",
         "index 0 of process 9: RoCE v1"},
        {PASS, "be.roce.gid_job", "m/1",
         ETH GIDS "port.gid@m/1=0 v1 link|job.gid@m/1=0 of process 9"},
        {UNKNOWN, "be.roce.gid_job", "m/1", ETH "job.gid@m/1=3 of process 9", .why = "no_source"},
        {UNKNOWN, "be.roce.gid_job", "m/1", ETH GIDS "job.gid@m/1!no_permission",
         .why = "no_permission"},
        {UNKNOWN, "be.roce.gid_job", "m/1", ETH GIDS "job.gid@m/1!absent|lane.address@eth1!timeout",
         .why = "timeout"},
        {SKIP, "be.roce.gid_job", "m/1", ETH GIDS "job.gid@m/1!absent|lane.address@eth1!absent",
         .why = "no queue pair"},
        {PASS, "be.roce.gid_job", "m/1", ETH PLACE "job.gid@m/1!absent|lane.address@eth1=10.0.0.1",
         "queue pairs use 10.0.0.1"},
        {FAIL, "be.roce.gid_job", "m/1",
         ETH PLACE "job.gid@m/1!absent|lane.address@eth1=10.0.0.1, 10.0.0.11",
         "no RoCE v2 GID is 10.0.0.11, which queue pairs use", .shown = "lane.address"},
        {FAIL, "be.roce.gid_job", "m/1", ETH PLACE "job.gid@m/1!absent|lane.address@eth1=0.0.0.1"},
        {FAIL, "be.roce.gid_job", "m/1",
         ETH GIDS PLACE "job.gid@m/1=7 of process 9|lane.address@eth1=10.0.0.1",
         "index 7 of process 9: empty"},
        {UNKNOWN, "be.roce.mtu", "m/1", ETH "net.mtu@eth1=4200", "4200", COMPARED},
        {FAIL, "be.roce.mtu", "m/1", ETH "net.mtu@eth1=4199", "eth1: 4199",
         .expected = "at least 4200"},
        {FAIL, "be.roce.ecn", "m/1", ETH "port.ecn@m/1=none"},
        {UNKNOWN, "be.roce.ecn", "m/1", ETH "port.ecn@m/1=3", "3", COMPARED},
    };
    (void)state;
    RULES_TRY(cases);
}

static void test_front_end(void **state)
{
#define UP "net.route=eth0|net.state@eth0=up|net.carrier@eth0=1|net.mtu@eth0=1500|"
    static const struct rule_case cases[] = {
        {UNKNOWN, "fe.link", "", UP "net.speed@eth0=1", "1 Mbit/s, MTU 1500", COMPARED},
        {UNKNOWN, "fe.link", "", UP "net.speed@eth0=0", "no speed told, MTU 1500", COMPARED},
        {UNKNOWN, "fe.link", "", UP "net.speed@eth0=-1", "no speed told, MTU 1500", COMPARED},
        {FAIL, "fe.link", "", "net.carrier@eth0=0|" UP, "eth0: up, carrier 0"},
        {FAIL, "fe.link", "", "net.state@eth0=down|" UP, "eth0: down, carrier 1"},
        {SKIP, "fe.link", "", "net.route=none", .why = "no default route"},
        {FAIL, "fe.route", "", "net.route=none|net.nameserver=10.0.0.1", .shown = "net.route"},
        {WARN, "fe.route", "", "net.route=eth0|net.nameserver=none", .shown = "net.nameserver"},
        {PASS, "fe.route", "", "net.route=eth0|net.nameserver=10.0.0.1",
         "default route: eth0, name servers: 10.0.0.1"},
    };
    (void)state;
    RULES_TRY(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_links_of_pcie),
                                       cmocka_unit_test(test_errors_of_pcie),
                                       cmocka_unit_test(test_gpus),
                                       cmocka_unit_test(test_interfaces),
                                       cmocka_unit_test(test_error_rate),
                                       cmocka_unit_test(test_ports),
                                       cmocka_unit_test(test_addresses_of_ports),
                                       cmocka_unit_test(test_front_end)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
