/** How many connections an agent has to its server. */

/** How many a session has at most; `auto`: one to each data plane of the server. */
export type Connections = number | 'auto'

export const MAX_CONNECTIONS = 16

/** Throws an error whose message continues after the name of the setting. */
export function parseConnections(text: string): Connections {
  if (text === 'auto') return text
  const count = /^\d{1,2}$/.test(text) ? Number(text) : 0
  if (count >= 1 && count <= MAX_CONNECTIONS) return count
  throw new Error(`must be \`auto\` or a number from 1 to ${MAX_CONNECTIONS}`)
}
