/** A TCP proxy that can fall silent: connections stay open, new ones are accepted, but no byte passes for a while. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Owner } from './upstream.ts'

export interface SilentGate {
  readonly port: number
  silence(): void
  /** Passes on what was sent meanwhile, like a network that recovers. */
  speak(): void
}

/** Opens a gate on loopback in front of the port `target`; it closes with its owner. */
export async function openSilentGate(owner: Owner, target: number): Promise<SilentGate> {
  const sockets = new Set<Socket>()
  let isSilent = false
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('error', () => {})
      from.on('data', (chunk) => to.write(chunk))
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
      if (isSilent) from.pause()
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  owner.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return {
    port: (server.address() as AddressInfo).port,
    silence() {
      isSilent = true
      for (const socket of sockets) socket.pause()
    },
    speak() {
      isSilent = false
      for (const socket of sockets) socket.resume()
    },
  }
}
