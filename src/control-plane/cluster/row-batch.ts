/** The online rows that one transaction writes, and how many. */
import type { Reservation } from '../../link/planes/plane-calls.ts'

export type LocatedReservation = Reservation & { readonly planeId: string }

/** A claim whose agent waits for the answer. */
export interface WaitingReservation {
  readonly reservation: LocatedReservation
  readonly resolve: (isGranted: boolean) => void
  readonly reject: (error: unknown) => void
}

export interface RowBatch {
  /**
   * By id, whether the session or tunnel is new here. One that is only announced again is not taken from a node that has it
   * by now.
   */
  readonly sessions: ReadonlyMap<string, boolean>
  readonly tunnels: ReadonlyMap<string, boolean>
  /** Places whose holder here may have changed, by place. */
  readonly addresses: ReadonlySet<string>
  readonly reservations: readonly WaitingReservation[]
}

/**
 * How many rows of each kind one transaction writes. When thousands of agents come at once, the first agents are online
 * while the claims of the others are written. Neither this process nor the database has to finish with all before the other
 * goes on.
 */
const AT_ONCE = 500

/** Splits a batch into transactions, in its order. All rows of one place are in the same transaction. */
export function piecesOf(batch: RowBatch, atOnce = AT_ONCE): RowBatch[] {
  const reservations = [...Map.groupBy(batch.reservations, ({ reservation }) => reservation.place)]
  const reserved = new Set(reservations.map(([place]) => place))
  const reserving = new Set(batch.reservations.map(({ reservation }) => reservation.sessionId))
  const sessions = [...batch.sessions].filter(([id]) => !reserving.has(id))
  const tunnels = [...batch.tunnels]
  const addresses = [...batch.addresses].filter((place) => !reserved.has(place))
  const pieces: RowBatch[] = []
  const longest = Math.max(sessions.length, tunnels.length, addresses.length, reservations.length)
  for (let i = 0; i < longest; i += atOnce) {
    const here = reservations.slice(i, i + atOnce)
    // Their sessions are written with them: a node that hears that a place has moved must find the session moved, too.
    const theirs = new Set(here.flatMap(([, waiting]) => waiting.map(({ reservation }) => reservation.sessionId)))
    pieces.push({
      sessions: new Map([
        ...[...theirs].flatMap((id) =>
          batch.sessions.has(id) ? [[id, batch.sessions.get(id) === true] as const] : [],
        ),
        ...sessions.slice(i, i + atOnce),
      ]),
      tunnels: new Map(tunnels.slice(i, i + atOnce)),
      addresses: new Set([...addresses.slice(i, i + atOnce), ...here.map(([place]) => place)]),
      reservations: here.flatMap(([, waiting]) => waiting),
    })
  }
  return pieces
}
