/** Makes a server listen: at an address, or on a listener that is open already. */
import type { AddressInfo, Server } from 'node:net'
import { BACKLOG } from './backlog.ts'
import { EarlyListener } from './early-listener.ts'

/** An address to open, with port 0 for any that is free, or what was opened before. */
export type ListenOn = ListenAddress | EarlyListener

export interface ListenAddress {
  readonly host: string
  readonly port: number
  /** Others of ours listen on it too, and the system spreads connections among us. */
  readonly isShared?: boolean
}

/** Resolves with the address once `server` listens; rejects with the error of the system. `failed` hears of later ones. */
export async function listenOn(
  server: Server,
  on: ListenOn,
  failed: (error: NodeJS.ErrnoException) => void,
): Promise<AddressInfo> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    const listening = (): void => {
      server.off('error', reject)
      // Such as too many open files: the next connection may fare better.
      server.on('error', failed)
      resolve()
    }
    if (on instanceof EarlyListener) on.handTo(server, listening)
    else server.listen({ host: on.host, port: on.port, reusePort: on.isShared ?? false, backlog: BACKLOG }, listening)
  })
  return server.address() as AddressInfo // a server on a host and port has an address of this form
}

/** `host:port`, as it was asked for or as it is. */
export function listenText(on: ListenOn): string {
  return on instanceof EarlyListener ? addressText(on.address) : `${on.host}:${on.port}`
}

/** `host:port`, or `[ipv6]:port`. */
export function addressText({ family, address, port }: AddressInfo): string {
  return `${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
