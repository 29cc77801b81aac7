/** Drains visitors when the server stops: no new ones come in, and those present may finish within the drain time. */
import { setTimeout as pause } from 'node:timers/promises'
import { closeWhenIdle, type Movable } from '../../lib/bytes/close-when-idle.ts'

/** Everything that holds connections of visitors, as far as a drain needs it. */
export interface Draining {
  readonly plain: { close(): unknown }
  readonly ports: { closeAll(): void }
  /** The TLS listener; `pending` counts connections whose first bytes are still being read. */
  readonly secure: { close(): unknown; sendAway(): void; readonly pending: number }
  /** Handshakes under way. */
  readonly tls: { readonly pending: number }
  /** Connections that carry requests. */
  readonly front: { readonly open: number; readonly connections: Iterable<Movable>; drain(): void; cut(): void }
  /** Connections of TCP and TLS edges. */
  readonly router: { readonly carried: number; readonly sockets: Iterable<Movable>; cut(): void }
}

/** How often a drain checks whether the last visitor is gone, in milliseconds. */
const CHECK_MS = 20

/** How long a drain leaves idle connections open, in milliseconds: requests may be on their way. */
const IDLE_GRACE_MS = 50

/** Resolves when all are gone: on their own, or cut off shortly after `drainMs`, see `closeWhenIdle`. */
export async function drainVisitors(
  { plain, ports, secure, tls, front, router }: Draining,
  drainMs: number,
): Promise<void> {
  // A monotonic clock: the system's clock may be set back meanwhile.
  const until = performance.now() + drainMs
  plain.close()
  ports.closeAll()
  void secure.close()
  if (front.open > 0) await pause(Math.min(IDLE_GRACE_MS, drainMs))
  front.drain()
  const isBusy = () => front.open + router.carried + secure.pending + tls.pending > 0
  while (performance.now() < until && isBusy()) await pause(CHECK_MS)
  secure.sendAway()
  await closeWhenIdle([...front.connections, ...router.sockets])
  front.cut()
  router.cut()
}
