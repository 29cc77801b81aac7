/** The port through which a circuit breaker counts for the whole node: with its twins at the other data planes. */

export interface BreakerTwins {
  /** `key` is the same at all planes. Calls of the twins go to `breaker` until it leaves. */
  join(key: string, breaker: TwinBreaker): TwinLink
}

/** A breaker, as its twins see it. */
export interface TwinBreaker {
  /** Requests that another plane has sent upstream. */
  counted(total: number, failed: number): void
  opened(waitMs: number): void
  closed(): void
  /** How long until a request may be tried, in milliseconds; undefined while the circuit is closed. */
  waitMs(): number | undefined
}

/** The twins of a breaker, as it sees them. */
export interface TwinLink {
  counted(hasFailed: boolean): void
  opened(waitMs: number): void
  closed(): void
  /** Whether this plane may try a request while the circuit is open. Then `opened`, `closed` or `probeOver` must follow. */
  mayProbe(): boolean | Promise<boolean>
  /** The try is over and did not show whether the upstream works. */
  probeOver(): void
  leave(): void
}

/** The link of a breaker without twins. */
export const noTwins: TwinLink = {
  counted() {},
  opened() {},
  closed() {},
  mayProbe: () => true,
  probeOver() {},
  leave() {},
}
