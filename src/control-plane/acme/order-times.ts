/** When certificates are renewed, and when failed orders are retried. */

export interface Life {
  /** In milliseconds since 1970, as is `notAfter`. */
  readonly notBefore: number
  readonly notAfter: number
}

/** The pauses in the work on orders, in milliseconds. */
export interface OrderTimes {
  /** The first pause after a failure. */
  readonly firstPauseMs: number
  /** How often a node looks for names that are due. */
  readonly lookMs: number
  /** Pauses between two checks of an order; the last one repeats. */
  readonly orderLooksMs: readonly [number, ...number[]]
  /** How often an order is checked before others get their turn. */
  readonly orderLooks: number
  /** The least time between two requests for the renewal window of a certificate. */
  readonly leastAskMs: number
}

/** With these, an order gets two minutes at a time. */
export const orderTimes: OrderTimes = {
  firstPauseMs: 15_000,
  lookMs: 5000,
  orderLooksMs: [250, 500, 1000, 2000, 3000, 5000],
  orderLooks: 28,
  leastAskMs: 60_000,
}

/** The growth of pauses: an authority that counts failures per hour sees about five of them. */
const GROWTH = 4

/** The longest pause, in milliseconds. */
const LONGEST_PAUSE_MS = 6 * 3_600_000

/** Two thirds of a certificate's life, and up to a thirtieth more, so that those issued together are not due at the same time. */
export function renewalTime({ notBefore, notAfter }: Life, random: () => number): number {
  const life = Math.max(notAfter - notBefore, 0)
  return notBefore + (life * 2) / 3 + (random() * life) / 30
}

/** The least time before expiry at which a renewal stops waiting, in milliseconds: an hour's orders may be used up already. */
const LEAST_LEFT_MS = 3_600_000

/**
 * From when on a renewal does not wait for its turn: when a tenth of the life is left. Certificates that live for minutes
 * never wait.
 */
export function urgentTime({ notBefore, notAfter }: Life): number {
  return notAfter - Math.max((notAfter - notBefore) / 10, LEAST_LEFT_MS)
}

/**
 * How long to wait after so many failures in a row, in milliseconds. Half of it is random. Certificates that live for
 * minutes cannot wait for hours.
 */
export function retryPause(
  failures: number,
  random: () => number,
  { life, firstPauseMs = orderTimes.firstPauseMs }: { life?: Life | undefined; firstPauseMs?: number } = {},
): number {
  const bound = life ? Math.max((life.notAfter - life.notBefore) / 10, firstPauseMs) : LONGEST_PAUSE_MS
  const wait = Math.min(firstPauseMs * GROWTH ** Math.max(0, failures - 1), LONGEST_PAUSE_MS, bound)
  return wait / 2 + (random() * wait) / 2
}
