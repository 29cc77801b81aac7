/** The port through which the edge asks whether another node serves a name. */

/** Names on the TLS listener, and names on the plain one. */
export type Listener = 'secure' | 'plain'

/**
 * Undefined when it is known who serves a name; else resolves when it is, or cannot be known. Never rejects. A visitor who
 * has waited for it goes by what is known then; nobody else is told that nobody is there without a question.
 */
export type LookUp = (
  listener: Listener,
  name: string,
  visitor: { readonly hasWaited: boolean },
) => Promise<void> | undefined
