"""Values of *distributed-fpga-framework* (2022), chapter 4, and of *fpga-cloud-performance*.

Machine of the former: Core i7 with 4 cores and 8 threads, Linux 5.18, everything over loopback,
10 s a point. Of its diagrams only what the text states is here.
"""

__all__ = [
    "CONFIGURED",
    "ECHO_GBIT",
    "FOUR_ITEMS",
    "NODE",
    "ONE_ITEM",
    "RATES_MBIT",
    "RATES_MS",
    "SCALE_OUT",
    "SERVER",
    "SOFTWARE_MB",
    "SPEED_UP",
]

#: 4.2.1: largest throughput of the echo server, from 4 KiB on.
ECHO_GBIT = {4096: 16.0, 2 << 30: 16.0}
#: 4.2.2: policy and nodes: best Gb/s, at how many bytes; least ms, at 256 KiB.
SERVER = {
    ("queue", 1): (9.62, 256 << 10, 27.68),
    ("queue", 2): (11.35, 256 << 10, 7.27),
    ("queue", 3): (11.65, 512 << 10, 6.71),
    ("queue", 4): (11.34, 512 << 10, 6.71),
    ("stack", 1): (9.72, 256 << 10, 27.39),
    ("stack", 2): (9.79, 256 << 10, 29.64),
    ("stack", 3): (9.94, 256 << 10, 29.12),
    ("stack", 4): (9.98, 256 << 10, 29.12),
}
#: 4.2.3: bytes and Mb/s of an isolated node without computation.
NODE = (128 << 10, 393.0)
#: 4.4.1: items a message: best MB/s of input.
CONFIGURED = {1: 30.0, 2: 34.0, 3: 34.0, 4: 34.0, 5: 34.0}
#: Tables 4.1 and 4.2: nodes: Mb/s of input, ms.
ONE_ITEM = {
    1: (236.58, 500.8),
    2: (464.2, 345.5),
    4: (951.84, 257.48),
    8: (1970.0, 205.13),
    12: (3050.0, 257.85),
    16: (4090.0, 232.88),
    20: (5070.0, 218.93),
    24: (5490.0, 13.76),
    28: (5560.0, 13.7),
    32: (5620.0, 13.35),
    36: (5500.0, 13.62),
    40: (5210.0, 14.32),
    42: (5020.0, 14.83),
}
FOUR_ITEMS = {
    1: (261.34, 539.16),
    2: (519.64, 389.5),
    4: (1010.0, 315.57),
    8: (2020.0, 282.52),
    12: (3100.0, 265.66),
    16: (4130.0, 256.06),
    20: (5150.0, 226.19),
    24: (6170.0, 205.91),
    28: (7130.0, 15.01),
    32: (8090.0, 12.89),
    36: (8660.0, 11.96),
    40: (8340.0, 12.28),
    44: (8260.0, 12.38),
}
#: Tables 4.3 and 4.4: nodes: values at 1, 2, 5, 10, 50, 100 thousand messages a second.
RATES_MBIT = {
    1: (225, 247, 232, 229, 228, 228),
    2: (222, 419, 466, 473, 470, 456),
    4: (222, 424, 969, 962, 958, 943),
    8: (222, 421, 967, 1700, 1990, 1950),
    12: (220, 421, 955, 1750, 3050, 2990),
    16: (224, 421, 955, 1770, 4090, 4080),
    20: (221, 420, 986, 1780, 5110, 5090),
    24: (221, 416, 957, 1740, 5550, 5240),
    28: (221, 422, 971, 1710, 5720, 5610),
}
RATES_MS = {
    1: (1.42, 494.44, 461.85, 511.06, 521.61, 517.84),
    2: (1.49, 1.47, 273.52, 334.77, 374.08, 351.31),
    4: (1.48, 1.43, 27.91, 248.69, 254.62, 259.24),
    8: (1.5, 1.48, 1.91, 1.34, 213.31, 207.65),
    12: (1.47, 1.47, 1.4, 1.13, 249.46, 174.83),
    16: (1.43, 1.47, 1.27, 1.12, 230.97, 242.53),
    20: (1.5, 1.49, 1.22, 1.12, 201.14, 220.81),
    24: (1.5, 1.51, 1.27, 1.13, 13.16, 14.38),
    28: (1.52, 1.47, 1.24, 1.13, 8.37, 13.63),
}
#: 4.5: MB/s of input of the software on one core; 4.6: nodes: speed-up over it.
SOFTWARE_MB = 96.0
SPEED_UP = {4: 1.3, 8: 2.6, 16: 5.5, 32: 10.7, 36: 11.5}
#: fpga-cloud-performance, figure 3: boards: speed-up over one board.
SCALE_OUT = {
    "digit recognition": {1: 1.0, 2: 1.5, 4: 2.2, 8: 3.0},
    "spam filtering": {1: 1.0, 2: 1.1, 4: 1.2, 8: 1.3},
}
