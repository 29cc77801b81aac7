/** A TCP proxy that can be shut and opened again at the same port: what lies behind it goes away and comes back. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

export interface TcpGate {
  readonly port: number
  /** Resets every connection and refuses new ones. */
  shut(): Promise<void>
  open(): Promise<void>
}

/** Opens a gate on loopback before the port `target`. */
export async function openGate(target: number): Promise<TcpGate> {
  const sockets = new Set<Socket>()
  let server: Server | undefined
  let port = 0

  const gate = {
    get port() {
      return port
    },
    async open() {
      server = createServer((near) => {
        const far = connect(target, '127.0.0.1')
        for (const [one, other] of [
          [near, far],
          [far, near],
        ] as const) {
          sockets.add(one)
          one.on('error', () => {})
          one.on('close', () => {
            sockets.delete(one)
            other.destroy()
          })
          one.pipe(other)
        }
      }).listen(port, '127.0.0.1')
      await once(server, 'listening')
      port = (server.address() as AddressInfo).port
    },
    async shut() {
      const closed = new Promise((resolve) => server?.close(resolve))
      for (const socket of sockets) socket.resetAndDestroy()
      await closed
    },
  }
  await gate.open()
  return gate
}
