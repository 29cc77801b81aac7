/** A capture keeps the heads and bodies of an edge's exchanges for a while. */

/** A running capture, as data planes know it. */
export interface RunningCapture {
  readonly id: string
  /** The edge, or the agent's endpoint. */
  readonly edgeId: string
  /** Whether bodies are kept, and how much of each, in bytes. */
  readonly bodies: boolean
  readonly maxBodyBytes: number
  /** Whether secrets are kept too. */
  readonly unmask: boolean
  /** In milliseconds since 1970. */
  readonly expiresAt: number
}

/** The most that is kept of one body, in bytes: two of them, written as base64, fit into one call between nodes. */
export const MAX_CAPTURED_BODY = 256 * 1024
