/** Makes a server listen at an address, or on a listener that is open already. */
import type { AddressInfo, Server } from 'node:net'
import { BACKLOG, EarlyListener, untilListening } from './early-listener.ts'

/** An address to open, with port 0 for any free port, or a listener that is open. */
export type ListenOn = ListenAddress | EarlyListener

interface ListenAddress {
  readonly host: string
  readonly port: number
  /** Whether other processes of ours listen on it too; the system then spreads connections among them. */
  readonly isShared?: boolean
}

/** Resolves with the address once `server` listens; rejects with the system's error. `failed` gets later errors. */
export async function listenOn(
  server: Server,
  on: ListenOn,
  failed: (error: NodeJS.ErrnoException) => void,
): Promise<AddressInfo> {
  await untilListening(server, failed, (listening) => {
    if (on instanceof EarlyListener) on.handTo(server, listening)
    else server.listen({ host: on.host, port: on.port, reusePort: on.isShared ?? false, backlog: BACKLOG }, listening)
  })
  return server.address() as AddressInfo // a server on a host and port has an address of this form
}

/** `host:port`, as requested or, for an open listener, as it is. */
export function listenText(on: ListenOn): string {
  return on instanceof EarlyListener ? addressText(on.address) : `${on.host}:${on.port}`
}

/** `host:port`, or `[ipv6]:port`. */
export function addressText({ family, address, port }: AddressInfo): string {
  return `${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
