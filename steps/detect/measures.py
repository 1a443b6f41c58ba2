"""How sizes, speeds and names are said in a row of the screen."""

from __future__ import annotations

from steps.catalog import guide
from steps.model.hardware import Accelerator, PcieLink

GIB = 1 << 30
MIB = 1 << 20
_SOLD = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 480, 512, 640, 768, 1024, 1152, 1536, 2048, 3072, 4096)
_TRADE_NAMES = ("NVIDIA ", "AMD ", "Intel ", "Corporation ", "GeForce ", "Tesla ", "Quadro ", "Radeon ", "Instinct ")


def memory(size: int) -> str:
    """Return a memory size as it is sold: 62.7 GiB that the kernel left of 64 GB is "64 GB"."""
    gib = size / GIB
    nominal = next((sold for sold in _SOLD if sold >= gib), gib)
    shown = nominal if gib >= nominal * 0.93 else gib
    return f"{shown:.0f} GB" if shown >= 1 else f"{size / MIB:.0f} MB"


def card_memory(size: int) -> str:
    """Return a card's memory: what it shows, rounded, for cards come in all sizes."""
    return f"{size / GIB:.0f} GB" if size >= GIB else f"{size / MIB:.0f} MB"


def storage(size: int) -> str:
    """Return a disk size in decimal units with at most one digit behind the point: "3.8 TB"."""
    tera = size / 1e12
    return f"{tera:.1f}".removesuffix(".0") + " TB" if tera >= 0.95 else f"{size / 1e9:.0f} GB"


def download(size: int) -> str:
    """Return what is to be fetched or laid on a disk, an estimate: "14 GB", "5.9 GB", "320 MB", "21 kB"."""
    if size < 1e6:
        return f"{size / 1e3:.0f} kB"
    if size < 1e9:
        return f"{size / 1e6:.0f} MB"
    return f"{size / 1e9:.0f} GB" if size >= 1e10 else f"{size / 1e9:.1f} GB"


def cache(size: int) -> str:
    """Return a cache size: "64 MB"."""
    return f"{size / MIB:.0f} MB"


def speed(mbps: int) -> str:
    """Return a network speed: "25 Gb/s"."""
    return f"{mbps / 1000:.1f}".removesuffix(".0") + " Gb/s" if mbps >= 1000 else f"{mbps} Mb/s"


def short_name(card: Accelerator) -> str:
    """Return a card's name without makers and trade names; its PCI id where no table names it."""
    return short_text((card.name or card.pci_id or "?").split(" / ")[0])


def short_text(name: str) -> str:
    """Return a name without makers and trade names."""
    for word in _TRADE_NAMES:
        name = name.replace(word, "")
    return name


def cards(found: tuple[Accelerator, ...]) -> str:
    """Return cards of one kind as "4× RTX 4090", cards of several as "2 GPUs"."""
    names = {short_name(card) for card in found}
    if len(names) != 1:
        return f"{len(found)} GPUs"
    name = names.pop()
    return name if len(found) == 1 else f"{len(found)}× {name}"


def card_link(card: Accelerator) -> str | None:
    """Return what joins a card to its processor: its slot, or what stands for one on a shared board."""
    beside = guide.on_board(card.name)
    return link(card.pcie) if beside is None else beside.link


def link(pcie: PcieLink | None) -> str | None:
    """Return what a slot can do at most, "Gen4 ×16"; `None` when neither part is known.

    The width is the one that was negotiated: unlike the generation, it does not fall when the card idles.
    """
    if pcie is None:
        return None
    generation = f"Gen{pcie.max_generation}" if pcie.max_generation else None
    width = pcie.width or pcie.max_width
    parts = (generation, f"×{width}" if width else None)
    return " ".join(part for part in parts if part) or None
