/** When certificates are renewed, and when what failed is tried again. */

export interface Life {
  /** In milliseconds since 1970, as is `notAfter`. */
  readonly notBefore: number
  readonly notAfter: number
}

/** The first pause after a failure, in milliseconds. */
const FIRST_PAUSE_MS = 15_000

/** How much longer each pause is: so that an authority that counts failures an hour sees five of them. */
const GROWTH = 4

/** The longest pause, in milliseconds. */
const LONGEST_PAUSE_MS = 6 * 3_600_000

/** Two thirds of a certificate's life, and up to a thirtieth more, so that those issued together do not all come due at once. */
export function renewalTime({ notBefore, notAfter }: Life, random: () => number): number {
  const life = Math.max(notAfter - notBefore, 0)
  return notBefore + (life * 2) / 3 + (random() * life) / 30
}

/**
 * How long to wait after so many failures in a row, in milliseconds. Half of it is random. Certificates that live for
 * minutes cannot wait for hours.
 */
export function retryPause(failures: number, random: () => number, life?: Life): number {
  const bound = life ? Math.max((life.notAfter - life.notBefore) / 10, FIRST_PAUSE_MS) : LONGEST_PAUSE_MS
  const wait = Math.min(FIRST_PAUSE_MS * GROWTH ** Math.max(0, failures - 1), LONGEST_PAUSE_MS, bound)
  return wait / 2 + (random() * wait) / 2
}
