"""Papers behind the methods, each with the arXiv version whose theorem numbers are cited.

docs/papers.md says how each version was established, and lists the papers whose version is unknown.
"""

AUBINAIS = "Aubinais, Gassiat and Piantanida (2025), arXiv:2310.13786v6"
BALLE_BARTHE = "Balle, Barthe and Gaboardi (2018), arXiv:1807.01647"
BALLE_WANG = "Balle and Wang (2018), arXiv:1805.06530v2"
BUSA_FEKETE = "Busa-Fekete et al. (2024), arXiv:2406.02797v1"
CHUA_BALLS = "Chua et al. (2025), Balls-and-Bins Sampling for DP-SGD, arXiv:2412.16802v2"
CHUA_SHUFFLING = "Chua et al. (2024), How Private are DP-SGD Implementations?, arXiv:2403.17673v2"
CHUA_SCALABLE = "Chua et al. (2024), Scalable DP-SGD, arXiv:2411.04205"
DONG = "Dong, Chen and Ozgur (2025), arXiv:2503.03043v1"
DONG_ROTH = "Dong, Roth and Su (2022), arXiv:1905.02383"
DOROSHENKO = "Doroshenko et al. (2022), arXiv:2207.04380v1"
FELDMAN_MCMILLAN = "Feldman, McMillan and Talwar (2021), arXiv:2012.12803v3"
FELDMAN_SHENFELD = "Feldman and Shenfeld (2025), arXiv:2502.08202v3"
MAHLOUJIFAR = "Mahloujifar, Melis and Chaudhuri (2024), arXiv:2410.22235v1"
MIRONOV = "Mironov, Talwar and Zhang (2019), arXiv:1908.10530v1"
NASR = "Nasr et al. (2023), arXiv:2302.07956v1"
STEINKE = "Steinke, Nasr and Jagielski (2023), arXiv:2305.08846v1"
WU = "Wu et al. (2022), arXiv:2202.12968"
XIANG = "Xiang, Wang, Xiao, Tian and Wang (2025), arXiv:2509.08704v1"
ZHU = "Zhu, Dong and Wang (2022), arXiv:2106.08567"
