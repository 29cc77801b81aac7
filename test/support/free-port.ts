/** Finds free ports: in the TCP range of a platform, and for servers that are started again. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** The default range of a platform. */
const TCP_RANGE = { from: 20_000, to: 20_999 }

/** Below the ports that systems choose by themselves, which another test could be given while the server is down. */
const KEPT_RANGE = { from: 10_000, to: 19_999 }

/** The port is free at this moment. Suites that run at the same time try different ports first. */
export function freeTcpPort(): Promise<number> {
  return freeIn(TCP_RANGE)
}

/** A port for a server that is stopped and started again at the same address. */
export function portToKeep(): Promise<number> {
  return freeIn(KEPT_RANGE)
}

async function freeIn({ from, to }: { readonly from: number; readonly to: number }): Promise<number> {
  for (;;) {
    const port = randomInt(from, to + 1)
    const server = createServer()
    try {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
      return port
    } catch {
      // Taken; try the next one.
    } finally {
      server.close()
    }
  }
}
