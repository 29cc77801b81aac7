/** How many connections an agent has to its server. */

/** The most connections; `auto`: one to each data plane of a node, and for pooled tunnels the same at a second node. */
export type Connections = number | 'auto'

export const MAX_CONNECTIONS = 16

/** Throws an error whose message continues after the name of the setting. */
export function parseConnections(text: string): Connections {
  if (text === 'auto') return text
  const count = /^\d{1,2}$/.test(text) ? Number(text) : 0
  if (count >= 1 && count <= MAX_CONNECTIONS) return count
  throw new Error(`must be \`auto\` or a number from 1 to ${MAX_CONNECTIONS}`)
}

/** Splits the connections between two sessions; an odd one goes to the first. */
export function shareConnections(connections: Connections): {
  readonly first: Connections
  readonly second: Connections
} {
  if (connections === 'auto') return { first: 'auto', second: 'auto' }
  return { first: Math.ceil(connections / 2), second: Math.floor(connections / 2) }
}
