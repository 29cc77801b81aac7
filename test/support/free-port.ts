/** A TCP port of a platform that nothing listens on. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** The ports of a platform that is not told otherwise. */
const FROM = 20_000
const TO = 20_999

/** Nobody has it at this moment; suites that run beside each other look at different ones first. */
export async function freeTcpPort(): Promise<number> {
  for (;;) {
    const port = randomInt(FROM, TO + 1)
    const server = createServer()
    try {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
      return port
    } catch {
      // Taken; the next one may not be.
    } finally {
      server.close()
    }
  }
}
