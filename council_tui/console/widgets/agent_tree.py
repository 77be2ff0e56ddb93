"""The hierarchy: who spawned whom, and how each one is."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from council_tui.console import keymap
from council_tui.console.glyphs import ATTENTION, TONES, Part
from council_tui.console.widgets.painted import between, width_of
from council_tui.console.widgets.virtual_list import VirtualList
from council_tui.control.swarms import standing
from council_tui.domain.text import counted, span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from council_tui.control.views import AgentView


MOST_OPEN = 12
"""Members of swarms above which a parent's branch begins closed; its row says how they are."""


@dataclass(frozen=True)
class Node:
    """An agent and where it stands in the drawing."""

    agent: AgentView
    guides: str
    """One character per level above: `|` runs on, ` ` has ended."""
    last: bool
    kids: int
    opened: bool
    hit: bool = True


class AgentTree(VirtualList[Node]):
    """One row per agent; ancestors of a match stay."""

    BINDINGS: ClassVar = keymap.bindings("tree")
    EMPTY: ClassVar[str] = "No agents yet: s spawns one."

    def __init__(self, title: str, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(title, id=id)
        self.folded: set[str] = set()
        self._met: set[str] = set()
        """Parents of swarms that were closed once; from then on the person decides."""
        self.agents: list[AgentView] = []

    def show_agents(self, agents: Sequence[AgentView], trouble: str = "") -> None:
        """Take a new fleet."""
        self.agents, self.trouble = list(agents), trouble
        large = {agent.name for agent in agents if sum(swarm.granted for swarm in agent.swarms) > MOST_OPEN}
        self.folded |= large - self._met
        self._met |= large
        self.grow()

    def grow(self) -> None:
        """Walk the tree from its roots."""
        below: dict[str | None, list[AgentView]] = defaultdict(list)
        known = {agent.name for agent in self.agents}
        for agent in self.agents:
            below[agent.parent if agent.parent in known else None].append(agent)
        nodes: list[Node] = []
        # a stack instead of recursion: a drawing must not fail on a deep or crooked tree
        stack = [(agent, "", True) for agent in reversed(below[None])]
        while stack:
            agent, guides, last = stack.pop()
            kids = below.get(agent.name, [])
            # Whoever searches searches in a closed swarm too.
            searched = bool(self.needle or self.only_bad) and agent.name in self._met
            opened = searched or agent.name not in self.folded
            nodes.append(Node(agent, guides, last, len(kids), opened))
            if opened:
                inner = guides + (" " if last else "|") if agent.parent in known else ""
                stack += [(kid, inner, kid is kids[-1]) for kid in reversed(kids)]
        self.items = nodes
        self.regroup()

    def pick(self) -> list[Node]:
        """Matches and all that is above them."""
        hits = {node.agent.name for node in super().pick()}
        if len(hits) == len(self.items):
            return self.items
        keep, parents = set(hits), {node.agent.name: node.agent.parent for node in self.items}
        for name in hits:
            parent = parents.get(name)
            while parent is not None and parent not in keep:
                keep.add(parent)
                parent = parents.get(parent)
        return [
            node if node.agent.name in hits else replace(node, hit=False)
            for node in self.items
            if node.agent.name in keep
        ]

    def regroup(self) -> None:
        """A cursor on a mere ancestor goes to the first match."""
        super().regroup()
        if (self.needle or self.only_bad) and self.selected is not None and not self.selected.hit:
            self.choose(next((self.key(node) for node in self.rows if node.hit), None))

    def key(self, item: Node) -> str:
        """The agent's name."""
        return item.agent.name

    def words(self, item: Node) -> str:
        """Name, card, state and phase."""
        agent = item.agent
        return f"{agent.name} {agent.card or ''} {agent.health} {agent.phase} {agent.status}"

    def is_bad(self, item: Node) -> bool:
        """Late, stalled, orphaned, failed, held or waiting."""
        return item.agent.health in ATTENTION

    def caption(self) -> str:
        """Title and how many agents."""
        return f"{self.title} {len(self.agents):,}" if self.agents else self.title

    def line(self, item: Node, line: int, width: int) -> list[Part]:
        """Guides, name, and on the right what there is room for."""
        agent, glyphs = item.agent, self.glyphs
        left: list[Part] = [(self._branch(item), "p-frame")]
        left.append((self._fold(item), "p-quiet"))
        office = glyphs.office.get(agent.kind, glyphs.dot) if agent.kind not in ("child", "microshark") else ""
        if office:
            left.append((f"{office} ", "p-alive" if item.hit and agent.health != "unknown" else "p-quiet"))
        closed = f" ({item.kids})" if item.kids and not item.opened else ""
        right = self._right(agent, width)
        room = width - width_of(left) - width_of(right) - len(closed) - 1
        name = glyphs.fit_middle(agent.label, room) if len(agent.label) > room else agent.label
        left.append((name, self._tone(item)))
        left.append((closed, "p-quiet"))
        return between(left, right, width, glyphs)

    def _tone(self, item: Node) -> str:
        if not item.hit or item.agent.health in ("ended", "unknown"):
            return "p-ended"
        return "p-strong" if item.agent.kind in self.glyphs.office and item.kids else ""

    def _branch(self, item: Node) -> str:
        if item.agent.parent is None:
            return ""
        glyphs = self.glyphs
        above = "".join(glyphs.pipe if guide == "|" else "  " for guide in item.guides)
        return above + (glyphs.elbow if item.last else glyphs.tee)

    def _fold(self, item: Node) -> str:
        if not item.kids:
            return " " if item.agent.parent is not None else ""
        return (self.glyphs.opened if item.opened else self.glyphs.closed) + " "

    def _right(self, agent: AgentView, width: int) -> list[Part]:
        parts: list[Part] = []
        if width >= 96:
            parts.append((f"  {self.glyphs.fit(self._about(agent), width - 76)}", "p-quiet"))
        elif width >= 74:
            parts.append((f"  {self.glyphs.fit(self._about(agent), 15)}", "p-quiet"))
        if width >= 56:
            parts.append((f" {self.glyphs.sparkline(agent.beats, 16):>16} ", TONES[agent.health]))
        parts.append((f" {self.glyphs.health[agent.health]} {agent.health:<7}", TONES[agent.health]))
        parts.append((f"{span(None if agent.ended else agent.counted_seconds):>4}", TONES[agent.health]))
        return parts

    def _about(self, agent: AgentView) -> str:
        if agent.reason:
            return agent.reason
        if agent.swarms:
            return "; ".join(standing(swarm) for swarm in agent.swarms)
        if agent.ttl_seconds is not None and not agent.ended:
            return f"ttl {span(agent.ttl_seconds)}"
        if agent.children and agent.kind in self.glyphs.office and agent.kind not in ("child", "microshark"):
            return counted(agent.children, "child", "children")
        if agent.ended:
            return agent.phase
        return agent.status or agent.phase

    def fold(self) -> None:
        """Close the branch under the cursor, or go to its parent."""
        node = self.selected
        if node is None:
            return
        if node.kids and node.opened:
            self.folded.add(node.agent.name)
            self.grow()
        else:
            self.choose(node.agent.parent)

    def unfold(self) -> None:
        """Open the branch under the cursor."""
        node = self.selected
        if node is not None and node.agent.name in self.folded:
            self.folded.discard(node.agent.name)
            self.grow()

    def on_resize(self) -> None:
        """Columns come and go with the width."""
        self.refresh()
