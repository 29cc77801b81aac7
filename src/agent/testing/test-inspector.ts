/** For tests: an agent with an inspector and its local API, a service behind it, and visitors. */
import { once } from 'node:events'
import { createServer, type RequestListener, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { Secret } from '../../lib/secrets/secret.ts'
import { OptionReader } from '../../link/options/option-reader.ts'
import { Agent } from '../agent.ts'
import { readTunnel } from '../config/tunnel-options.ts'
import { plainPage } from '../inspect/built-page.ts'
import { startInspectServer } from '../inspect/inspect-server.ts'
import { Inspector } from '../inspect/inspector.ts'
import type { InspectorPage } from '../inspect/local-api.ts'
import { openTunnel } from '../open-tunnel.ts'
import { TestServer } from './test-server.ts'

interface LocalAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it
  readonly json: any
}

interface LocalAsk {
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON, or as it is when it is text. */
  readonly body?: unknown
}

type TestServerIdentity = Parameters<typeof TestServer.start>[0] & { readonly ca: string }

export interface TestOwner {
  after(close: () => unknown): void
}

/** Calls the local API at `url`. */
async function askLocal(url: string, method: string, path: string, ask: LocalAsk = {}): Promise<LocalAnswer> {
  const { headers, body } = ask
  const sent = request(`${url}${path}`, {
    method,
    agent: false,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
  })
  sent.end(body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body))
  const [response] = await once(sent, 'response')
  const text = String(await buffer(response))
  const isJson = /^application\/json/.test(response.headers['content-type'] ?? '')
  return { status: response.statusCode, headers: response.headers, text, json: isJson ? JSON.parse(text) : undefined }
}

/** Answers with `serve`. */
export async function testService(
  owner: TestOwner,
  serve: (...given: Parameters<RequestListener>) => void | Promise<void>,
): Promise<number> {
  const server = createServer((...given) => void serve(...given)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  owner.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port // it listens on a port
}

/** An agent that is online at a door with this identity, and its local API. */
export async function testInspector(
  owner: TestOwner,
  identity: TestServerIdentity,
  { page = plainPage }: { readonly page?: InspectorPage } = {},
) {
  const testServer = await TestServer.start(identity)
  const inspector = new Inspector()
  const agent = new Agent({
    server: { host: '127.0.0.1', port: testServer.port },
    ca: identity.ca,
    authtoken: new Secret('token'),
    version: '1.2.3',
    inspector,
    onEvent: (event) => inspector.event(event),
  })
  await agent.start()
  const address = { host: '127.0.0.1', port: 0, isDefault: false }
  const server = await startInspectServer({ address, agent, inspector, version: '1.2.3', page })
  owner.after(async () => {
    await server.close()
    await agent.close()
    await testServer.close()
  })
  const open = async (name: string, options: Readonly<Record<string, unknown>>) => {
    const plans = readTunnel(new OptionReader(options, []), { name, readText: (text) => text })
    if (!plans) throw new Error('not a tunnel')
    const [tunnel] = await openTunnel(agent, plans)
    if (!tunnel) throw new Error('no tunnel')
    return tunnel
  }
  return {
    agent,
    testServer,
    inspector,
    url: server.url,
    open,
    ask: (method: string, path: string, ask?: LocalAsk) => askLocal(server.url, method, path, ask),
    /** Sends raw bytes as a visitor of the tunnel, and reads until it is over. */
    visit: async (id: string, bytes: string | Buffer) => {
      const stream = testServer.visit(id, { proto: 'https', clientAddr: '192.0.2.7:4711' })
      stream.write(bytes)
      stream.on('end', () => stream.end())
      let got = ''
      stream.on('data', (chunk: Buffer) => {
        got += chunk.toString('latin1')
      })
      // A stream that is refused ends with an error.
      await once(stream, 'close').catch(() => {})
      return got
    },
  }
}
