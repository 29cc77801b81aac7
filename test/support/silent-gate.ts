/** A TCP proxy that can fall silent: connections stay, new ones are accepted, and no byte passes until it speaks again. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Owner } from './upstream.ts'

export interface SilentGate {
  readonly port: number
  silence(): void
  /** What was sent meanwhile passes now, as after a network that was away. */
  speak(): void
}

/** Opens a gate on loopback before the port `target`, as long as its owner lives. */
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
