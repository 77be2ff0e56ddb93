"""The tree against a naive reading of RFC 6962 and against pymerkle."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymerkle import InmemoryTree

from council_tui.ledger.merkle import (
    EMPTY_ROOT,
    Tree,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    node_hash,
    root_of,
    verify_consistency,
    verify_inclusion,
)

SIZES = st.integers(1, 70)


def naive(leaves):
    """MTH of RFC 6962, section 2.1, word for word."""
    if not leaves:
        return hashlib.sha256().digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return node_hash(naive(leaves[:split]), naive(leaves[split:]))


def grown(count):
    """(tree, leaves, nodes by name) of a tree with this many leaves."""
    tree, nodes = Tree(), {}
    leaves = [leaf_hash(b"%d" % index) for index in range(count)]
    for leaf in leaves:
        nodes |= {(level, at): value for level, at, value in tree.append(leaf)}
    return tree, leaves, lambda level, at: nodes[level, at]


def test_the_empty_tree_has_the_hash_of_nothing():
    assert Tree().root() == EMPTY_ROOT == root_of([])


def test_every_root_equals_the_naive_one_and_survives_a_resume():
    for count in range(70):
        tree, leaves, node = grown(count)
        assert tree.root() == naive(leaves) == root_of(leaves)
        again = Tree.resume(count, node)
        again.append(leaf_hash(b"more"))
        tree.append(leaf_hash(b"more"))
        assert again.root() == tree.root()


def test_roots_and_inclusion_proofs_equal_those_of_pymerkle():
    other = InmemoryTree(algorithm="sha256")
    for count in range(1, 40):
        other.append_entry(b"%d" % (count - 1))
        tree, _, node = grown(count)
        assert tree.root() == other.get_root()
        theirs = other.prove_inclusion(count // 2 + 1, count).path
        assert inclusion_proof(count // 2, count, node) == theirs[1:]


@settings(deadline=None)
@given(st.data(), SIZES)
def test_an_inclusion_proof_holds_for_its_leaf_place_and_size_only(data, size):
    index = data.draw(st.integers(0, size - 1))
    tree, leaves, node = grown(size)
    proof, root = inclusion_proof(index, size, node), tree.root()
    assert verify_inclusion(leaves[index], index, size, proof, root)
    assert not verify_inclusion(leaf_hash(b"other"), index, size, proof, root)
    assert not verify_inclusion(leaves[index], index, size, [*proof, root], root)
    assert not verify_inclusion(leaves[index], size, size, proof, root)
    for wrong in range(size):
        if wrong != index:
            assert not verify_inclusion(leaves[index], wrong, size, proof, root)
    if proof:
        assert not verify_inclusion(leaves[index], index, size, proof[:-1], root)


@settings(deadline=None)
@given(st.data(), SIZES)
def test_a_consistency_proof_holds_for_a_true_extension_only(data, size):
    old = data.draw(st.integers(1, size))
    tree, leaves, node = grown(size)
    proof, old_root = consistency_proof(old, size, node), root_of(leaves[:old])
    assert verify_consistency(old, old_root, size, tree.root(), proof)
    assert not verify_consistency(old, leaf_hash(b"forged"), size, tree.root(), proof)
    assert not verify_consistency(old, old_root, size, leaf_hash(b"forged"), proof)
    assert not verify_consistency(old, old_root, size, tree.root(), [*proof, old_root])
    if proof:
        assert not verify_consistency(old, old_root, size, tree.root(), proof[:-1])


def test_proofs_about_leaves_that_do_not_exist_are_refused():
    _, _, node = grown(3)
    with pytest.raises(ValueError, match="no leaf 3"):
        inclusion_proof(3, 3, node)
    with pytest.raises(ValueError, match="does not extend"):
        consistency_proof(4, 3, node)
    assert not verify_consistency(0, EMPTY_ROOT, 3, root_of([]), [])
