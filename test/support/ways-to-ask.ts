/** The ways in which a visitor can request an address repeatedly, over new and over kept connections. */
import type { ClientHttp2Session } from 'node:http2'
import { Agent, request } from 'node:https'
import { answerOf, askHttp2, dialTcp, exchange, openHttp2, visit } from './visitor.ts'

export interface WayToAsk {
  readonly name: string
  ask(): Promise<{ readonly status: number; readonly text: string }>
  /** Closes the kept connection. */
  close(): void
}

/** Ways over every version of HTTP. */
export function waysToAskWeb(url: string, ca: string): readonly WayToAsk[] {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca })
  const { host, hostname, port } = new URL(url)
  const to = { agent, host: '127.0.0.1', port, servername: hostname, headers: { host } }
  let session: ClientHttp2Session | undefined
  return [
    { name: `new connections to ${url}`, ask: () => visit(url, { ca }), close() {} },
    { name: `a kept connection to ${url}`, ask: () => answerOf(request(to).end()), close: () => agent.destroy() },
    {
      name: `HTTP/2 to ${url}`,
      ask: () => {
        // A server that stops has said that it takes no further requests on it.
        if (!session || session.closed || session.destroyed) session = openHttp2(url, { ca })
        return askHttp2(session, url)
      },
      close: () => session?.destroy(),
    },
  ]
}

/** A way over TCP, where the service echoes `text`. */
export function wayToAskTcp(url: string, text: string): WayToAsk {
  const ask = async () => ({ status: 200, text: await exchange(await dialTcp(url), text) })
  return { name: url, ask, close() {} }
}
