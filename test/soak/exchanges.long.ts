/**
 * `npm run soak -- test/soak/exchanges.long.ts`: a million exchanges with a capture on stay within their memory limit.
 * POSTERN_SOAK_EXCHANGES shortens it.
 */
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { until } from '../support/until.ts'
import { startWatched } from './watched-server.ts'

const EXCHANGES = Number(process.env.POSTERN_SOAK_EXCHANGES ?? 1_000_000)

/** The default of `--exchange-memory`, in bytes. */
const BOUND = 64 * 1024 * 1024

/** How much everything else may grow, such as caches and the heap, in bytes. */
const REST = 48 * 1024 * 1024

const CONNECTIONS = 8
/** Requests that are sent at once on a connection. */
const TOGETHER = 50
const NAME = 'flood.edge.test'

test('a million exchanges with capture on stay within their memory', async (t) => {
  const watched = await startWatched(t, { flags: { workers: '0', 'exchange-memory': '64MiB' } })
  const { api, server } = watched
  const backend = await api.create('/backends/http_response', { body: 'answer '.repeat(30) })
  const { id } = await api.create('/edges/https', { hostports: [`${NAME}:443`] })
  const route = { match_type: 'path_prefix', match: '/', backend: { backend_id: backend.id } }
  await api.create(`/edges/https/${id}/routes`, route)
  const { addresses } = (await (await fetch(`${server.url}/readyz`)).json()) as { addresses: { https: string } }
  const port = Number(String(addresses.https).split(':').at(-1))
  await until('the edge is served', () =>
    flood(port, watched.ca, 50).then(
      () => true,
      () => false,
    ),
  )
  const start = await watched.holdings({ collects: true })

  await api.create('/captures', { edge_id: id, bodies: true, duration: 86_400 })
  await Promise.all(Array.from({ length: CONNECTIONS }, () => flood(port, watched.ca, EXCHANGES / CONNECTIONS)))
  const end = await watched.holdings({ collects: true })
  console.log(
    `rss ${mib(start.rss)} to ${mib(end.rss)} MiB, array buffers ${mib(start.arrayBuffers)} to ${mib(end.arrayBuffers)}`,
  )
  assert.ok(end.arrayBuffers - start.arrayBuffers <= BOUND, 'array buffers')
  assert.ok(end.rss - start.rss <= BOUND + REST, 'resident memory')
  const [latest] = (await api.get(`/exchanges?edge_id=${id}&limit=1`)).exchanges
  const whole = await api.get(`/exchanges/${latest.id}`)
  assert.equal(whole.response.body.content, 'answer '.repeat(30))
})

const mib = (bytes: number): number => Math.round(bytes / 1024 / 1024)

/** Sends `count` requests on one connection, and counts the answers. */
async function flood(port: number, ca: string, count: number): Promise<void> {
  const raw: Socket = connect({ host: '127.0.0.1', port })
  const socket = connectTls({ socket: raw, ca, servername: NAME, ALPNProtocols: ['http/1.1'] })
  const body = 'question '.repeat(20)
  const one = `POST /flood HTTP/1.1\r\nHost: ${NAME}\r\nCookie: a=b\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  await new Promise<void>((resolve, reject) => {
    let left = count
    let waiting = 0
    const send = (): void => {
      waiting = Math.min(TOGETHER, left)
      if (waiting === 0) {
        socket.destroy()
        resolve()
      } else socket.write(one.repeat(waiting))
    }
    socket.setEncoding('latin1')
    let text = ''
    socket.on('data', (chunk: string) => {
      text += chunk
      const answers = text.split('HTTP/1.1 200').length - 1
      if (answers < waiting || !text.endsWith('answer ')) return
      text = ''
      left -= waiting
      send()
    })
    socket.on('error', reject).on('close', () => reject(new Error('the connection ended')))
    socket.on('secureConnect', send)
  })
}
