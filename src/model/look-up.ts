/** The port through which the edge finds out whether another node serves a name. */

/** Names on the TLS listener, and names on the plain one. */
export type Listener = 'secure' | 'plain'

/**
 * Undefined when it is known who serves a name; else resolves when that is known, or cannot be. Never rejects. A
 * visitor that has waited uses what is known then; for any other, nodes are asked before the name counts as offline.
 */
export type LookUp = (
  listener: Listener,
  name: string,
  visitor: { readonly hasWaited: boolean },
) => Promise<void> | undefined
