/** The listener of an agent's local API and page: at its address, or at the next free port. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from '../../lib/http/node-http.ts'
import { readBuiltPage } from './built-page.ts'
import type { InspectAddress } from './listen-address.ts'
import { type InspectorPage, localApi } from './local-api.ts'
import type { LocalParts } from './local-request.ts'

/** How many ports are tried, one after the other. */
const PORTS = 100

/** How many connections there may be at once. */
const MAX_CONNECTIONS = 64

/** The longest head of a request, in bytes, and how long head and body may take, in milliseconds. */
const HEAD_BYTES = 16 * 1024
const HEAD_MS = 10_000
const BODY_MS = 30_000

export interface InspectServer {
  /** `http://127.0.0.1:4040`. */
  readonly url: string
  close(): Promise<void>
}

interface InspectServerOptions extends LocalParts {
  readonly address: InspectAddress
  /** Replaces the built page. */
  readonly page?: InspectorPage
}

/** Rejects with the error of the system when no port is available. */
export async function startInspectServer({
  address: { host, port },
  page: given,
  ...parts
}: InspectServerOptions): Promise<InspectServer> {
  const page = given ?? (await readBuiltPage())
  const server = createServer(
    { maxHeaderSize: HEAD_BYTES, headersTimeout: HEAD_MS, requestTimeout: BODY_MS },
    localApi({ ...parts, host, page }),
  )
  server.maxConnections = MAX_CONNECTIONS
  for (let tried = 1; ; tried++) {
    try {
      server.listen({ host, port: port === 0 ? 0 : port + tried - 1, exclusive: true })
      await once(server, 'listening')
      break
    } catch (error) {
      const isTaken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
      if (!isTaken || tried === PORTS || port + tried > 65535) throw error
    }
  }
  // Such as too many open files: the next connection may succeed.
  server.on('error', () => {})
  const { address, family, port: got } = server.address() as AddressInfo // it listens on a port
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${got}`,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
