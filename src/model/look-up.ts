/** The port through which the edge asks whether another node serves a name. */

/** Names on the TLS listener, and names on the plain one. */
export type Listener = 'secure' | 'plain'

/** Undefined when it is known who serves a name; else resolves when it is, or cannot be known. Never rejects. */
export type LookUp = (listener: Listener, name: string) => Promise<void> | undefined
