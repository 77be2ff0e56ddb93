"""The log's Merkle tree (RFC 6962, section 2; verification as in RFC 9162, section 2.1).

A node is named by level and index: node (k, i) covers the leaves from i * 2**k to (i + 1) * 2**k - 1. Only
complete nodes are ever stored; everything else is folded from them.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    NodeOf = Callable[[int, int], bytes]
    """(level, index) -> hash of a complete node."""

EMPTY_ROOT = hashlib.sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    """SHA-256(0x00 || data)."""
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """SHA-256(0x01 || left || right)."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def root_of(leaves: Iterable[bytes]) -> bytes:
    """The root over leaf hashes."""
    tree = Tree()
    for leaf in leaves:
        tree.append(leaf)
    return tree.root()


class Tree:
    """The right edge of a growing tree: as many hashes as the size has one bits."""

    __slots__ = ("_edge", "size")

    def __init__(self) -> None:
        self.size = 0
        self._edge: list[bytes] = []
        """Complete subtrees from the largest, on the left, to the smallest."""

    @classmethod
    def resume(cls, size: int, node: NodeOf) -> Tree:
        """The tree of this size, from stored complete nodes."""
        tree = cls()
        tree.size = size
        start = 0
        for level in range(size.bit_length() - 1, -1, -1):
            if size >> level & 1:
                tree._edge.append(node(level, start >> level))
                start += 1 << level
        return tree

    def append(self, leaf: bytes) -> list[tuple[int, int, bytes]]:
        """Add a leaf hash; returns the (level, index, hash) of every node it completed, the leaf first."""
        index = self.size
        done = [(0, index, leaf)]
        while index & 1:
            leaf = node_hash(self._edge.pop(), leaf)
            index >>= 1
            done.append((len(done), index, leaf))
        self._edge.append(leaf)
        self.size += 1
        return done

    def root(self) -> bytes:
        """The root hash at this size."""
        if not self._edge:
            return EMPTY_ROOT
        folded = self._edge[-1]
        for left in reversed(self._edge[:-1]):
            folded = node_hash(left, folded)
        return folded


def _split(count: int) -> int:
    """The largest power of two below count."""
    return 1 << (count - 1).bit_length() - 1


def _range(begin: int, end: int, node: NodeOf) -> bytes:
    """Hash over the leaves begin <= i < end, where begin is a multiple of the split."""
    count = end - begin
    if count & (count - 1) == 0:
        level = count.bit_length() - 1
        return node(level, begin >> level)
    middle = begin + _split(count)
    return node_hash(_range(begin, middle, node), _range(middle, end, node))


def inclusion_proof(index: int, size: int, node: NodeOf) -> list[bytes]:
    """The audit path of a leaf in the tree of this size, from the leaf upwards."""
    if not 0 <= index < size:
        raise ValueError(f"there is no leaf {index} in a tree of {size}")
    path: list[bytes] = []
    begin, end = 0, size
    while end - begin > 1:
        middle = begin + _split(end - begin)
        if index < middle:
            path.append(_range(middle, end, node))
            end = middle
        else:
            path.append(_range(begin, middle, node))
            begin = middle
    return path[::-1]


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether the leaf hash stands at this index under this root (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    at, last = index, size - 1
    for sibling in proof:
        if last == 0:
            return False
        if at & 1 or at == last:
            leaf = node_hash(sibling, leaf)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            leaf = node_hash(leaf, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and leaf == root


def consistency_proof(old: int, size: int, node: NodeOf) -> list[bytes]:
    """Proof that the tree of `size` extends the tree of `old` (RFC 6962, 2.1.2)."""
    if not 0 < old <= size:
        raise ValueError(f"a tree of {size} does not extend one of {old}")
    path: list[bytes] = []
    begin, end, known = 0, size, True
    while old != end:
        middle = begin + _split(end - begin)
        if old <= middle:
            path.append(_range(middle, end, node))
            end = middle
        else:
            path.append(_range(begin, middle, node))
            begin, known = middle, False
    if not known:
        path.append(_range(begin, end, node))
    return path[::-1]


def verify_consistency(old: int, old_root: bytes, size: int, root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether the tree of `size` extends the tree of `old` (RFC 9162, 2.1.4.2)."""
    if old == size:
        return not proof and old_root == root
    if not 0 < old < size or not proof:
        return False
    path = list(proof) if old & (old - 1) else [old_root, *proof]
    at, last = old - 1, size - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    first = second = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            first, second = node_hash(sibling, first), node_hash(sibling, second)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            second = node_hash(second, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and first == old_root and second == root
