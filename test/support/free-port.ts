/** Finds a free port in the TCP range of a platform. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** The default range of a platform. */
const FROM = 20_000
const TO = 20_999

/** The port is free at this moment. Suites that run at the same time try different ports first. */
export async function freeTcpPort(): Promise<number> {
  for (;;) {
    const port = randomInt(FROM, TO + 1)
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
