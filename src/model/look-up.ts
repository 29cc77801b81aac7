/** The port through which the edge finds out whether another node serves a name. */

/** Names on the TLS listener, and names on the plain one. */
export type Listener = 'secure' | 'plain'

/**
 * Undefined when it is known who serves a name; else resolves when that is known, or cannot be. Never rejects. A
 * visitor that has waited uses what is known then; for any other, nodes are asked before the name counts as offline.
 * `busy`: nobody knows whether the name is offline, since too many names are being looked up, or the look-up failed.
 */
export type LookUp = (
  listener: Listener,
  name: string,
  visitor: { readonly hasWaited: boolean },
  /** The visitor's address: look-ups are shared out by source. */
  ip: string,
) => Promise<void> | 'busy' | undefined
