/** The list of nodes of a server that is on its own: this one. */
import type { Presence, PresentNode } from '../../model/presence.ts'

/** The facts of a node that are known from its start. */
export type StartedNode = Omit<PresentNode, 'sessions' | 'lease'>

export function onlyNode(node: StartedNode, sessions: () => number): Pick<Presence, 'nodes' | 'node'> {
  const present = (): PresentNode => ({ ...node, sessions: sessions(), lease: null })
  return {
    nodes: async ({ beforeId }) => (beforeId === undefined || node.id < beforeId ? [present()] : []),
    node: async (id) => (id === node.id ? present() : undefined),
  }
}
