/** When certificates are renewed, and when what failed is tried again. */

export interface Life {
  /** In milliseconds since 1970, as is `notAfter`. */
  readonly notBefore: number
  readonly notAfter: number
}

/** How long the work on orders waits, in milliseconds. */
export interface OrderTimes {
  /** The first pause after a failure. */
  readonly firstPauseMs: number
  /** How often a node looks for names that are due. */
  readonly lookMs: number
  /** Pauses between two looks at an order; the last one repeats. */
  readonly orderLooksMs: readonly [number, ...number[]]
  /** How often an order is looked at before others get their turn. */
  readonly orderLooks: number
  /** How long an authority is left alone, at least, before it is asked again when to renew a certificate. */
  readonly leastAskMs: number
}

/** An order has two minutes at a time. */
export const orderTimes: OrderTimes = {
  firstPauseMs: 15_000,
  lookMs: 5000,
  orderLooksMs: [250, 500, 1000, 2000, 3000, 5000],
  orderLooks: 28,
  leastAskMs: 60_000,
}

/** How much longer each pause is: so that an authority that counts failures an hour sees five of them. */
const GROWTH = 4

/** The longest pause, in milliseconds. */
const LONGEST_PAUSE_MS = 6 * 3_600_000

/** Two thirds of a certificate's life, and up to a thirtieth more, so that those issued together do not all come due at once. */
export function renewalTime({ notBefore, notAfter }: Life, random: () => number): number {
  const life = Math.max(notAfter - notBefore, 0)
  return notBefore + (life * 2) / 3 + (random() * life) / 30
}

/** How long before its end a renewal waits no more, in milliseconds, at least: an hour's orders may be begun already. */
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
