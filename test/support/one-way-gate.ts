/** A TCP proxy that can lose one direction: bytes and ends in that direction are dropped, the other one still works. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Owner } from './upstream.ts'

export type Direction = 'to server' | 'to agent'

export interface OneWayGate {
  readonly port: number
  /** Affects existing connections only; new ones pass both ways. */
  lose(direction: Direction): void
}

interface Link {
  readonly ends: readonly [near: Socket, far: Socket]
  lost: Direction | undefined
}

/** Opens a gate on loopback in front of the port `target`; it closes with its owner. */
export async function openOneWayGate(owner: Owner, target: number): Promise<OneWayGate> {
  const links = new Set<Link>()
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true })
    const link: Link = { ends: [near, far], lost: undefined }
    links.add(link)
    carry(link, near, far, 'to server')
    carry(link, far, near, 'to agent')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  owner.after(() => {
    server.close()
    for (const { ends } of links) for (const socket of ends) socket.destroy()
  })
  return {
    port: (server.address() as AddressInfo).port,
    lose(direction) {
      for (const link of links) link.lost = direction
    },
  }
}

function carry(link: Link, from: Socket, to: Socket, direction: Direction): void {
  const isLost = (): boolean => link.lost === direction
  from.on('error', () => {})
  from.on('data', (chunk) => {
    if (!isLost()) to.write(chunk)
  })
  from.on('end', () => {
    if (!isLost()) to.end()
  })
  from.on('close', () => {
    if (!isLost()) to.destroy()
  })
}
