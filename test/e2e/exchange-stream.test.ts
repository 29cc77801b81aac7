/** `GET /exchanges/stream`: exchanges as they happen; slow readers miss some and are told; it ends with its key. */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, test } from 'node:test'
import type { Json } from '../support/api-client.ts'
import { until } from '../support/until.ts'
import { type Recorder, recorder } from './edges/upstreams.ts'
import { World } from './edges/world.ts'

let world: World
let service: Recorder
before(async () => {
  world = await World.start({ planeCount: 2 })
  service = await recorder(world)
})
after(() => world.stop())

interface SentEvent {
  readonly event: string
  readonly data: Json
}

interface Stream {
  readonly events: SentEvent[]
  readonly text: () => string
  readonly isEnded: () => boolean
}

/** Opens a stream and reads it, or with `isStalled` never reads. */
async function follow(
  owner: { after(close: () => unknown): void },
  { query = '', token = world.platform.apiKey, isStalled = false } = {},
): Promise<Stream> {
  const events: SentEvent[] = []
  let text = ''
  let isEnded = false
  const asking = request(`${world.platform.url}/exchanges/stream${query}`, {
    headers: { authorization: `Bearer ${token}`, 'service-version': '2' },
  })
  owner.after(() => asking.destroy())
  asking.on('error', () => {})
  await new Promise<void>((resolve) => {
    asking.on('response', (response) => {
      assert.equal(response.statusCode, 200)
      assert.match(response.headers['content-type'] ?? '', /^text\/event-stream/)
      response.on('close', () => {
        isEnded = true
      })
      response.setEncoding('utf8').once('data', resolve)
      if (isStalled) {
        response.once('data', () => response.pause())
        return
      }
      response.on('data', (chunk: string) => {
        text += chunk
        const blocks = text.split('\n\n')
        text = blocks.pop() ?? ''
        for (const block of blocks) {
          const field = (name: string): string | undefined => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1]
          const data = field('data')
          if (data !== undefined) events.push({ event: field('event') ?? '', data: JSON.parse(data) })
        }
      })
    })
    asking.end()
  })
  return { events, text: () => text, isEnded: () => isEnded }
}

const paths = ({ events }: Stream): string[] =>
  events.filter(({ event }) => event === 'exchange').map(({ data }) => data.path)

/** From then on the stream misses nothing. */
async function isFollowing({ events }: Stream): Promise<void> {
  await until('the stream follows', () => events.some(({ event }) => event === 'following'))
}

test('exchanges of all data planes arrive as they are listed, if they pass the filter', async (t) => {
  const [edge, other] = [await world.httpsTo(service), await world.httpsTo(service)]
  const stream = await follow(t, { query: `?edge_id=${edge.id}` })
  await isFollowing(stream)
  for (let i = 0; i < 6; i++) {
    await world.ask(edge.name, { path: `/${i}` })
    await world.ask(other.name, { path: `/other/${i}` })
  }
  await until('all have come', () => paths(stream).length === 6)
  assert.deepEqual(paths(stream).toSorted(), ['/0', '/1', '/2', '/3', '/4', '/5'])
  const last = stream.events.at(-1)?.data
  const listed = (await world.api.get(`/exchanges?edge_id=${edge.id}`)).exchanges
  assert.deepEqual(
    listed.find((each: Json) => each.id === last.id),
    last,
  )
})

test('markup, bidi controls and line ends stay within their event', async (t) => {
  const { name } = await world.httpsTo(service)
  const stream = await follow(t, { query: '?path=/hostile' })
  await isFollowing(stream)
  await world.ask(name, { path: '/hostile/%E2%80%AE<script>%0A%0Aevent:%20missed' })
  await until('it has come', () => paths(stream).some((path) => path.includes('<script>')))
})

test('unread streams delay nothing, and nothing is buffered for them', async (t) => {
  const { name } = await world.httpsTo(service)
  const stalled: Stream[] = []
  for (let i = 0; i < 100; i++) stalled.push(await follow(t, { isStalled: true }))
  const reader = await follow(t, { query: '?path=/read' })
  await isFollowing(reader)
  const long = 'x'.repeat(900)
  for (let i = 0; i < 300; i++) await world.ask(name, { path: `/flood/${i}/${long}` })
  await world.ask(name, { path: '/read/on' })
  await until('the reader gets the next exchange', () => paths(reader).includes('/read/on'))
  assert.ok(stalled.every(({ isEnded }) => !isEnded()))
})

test('a stream ends with its key, and a member sees only its own exchanges', async (t) => {
  const member = await world.platform.member()
  const { name } = await world.httpsTo(service)
  const { id, token } = await member.api.create('/api_keys')
  const stream = await follow(t, { token })
  await isFollowing(stream)
  await world.ask(name, { path: '/nobody', host: 'nobody.edge.test' })
  await world.ask(name, { path: '/after' })
  await until('the next has come', () => paths(stream).includes('/after'))
  assert.ok(!paths(stream).includes('/nobody'))
  await member.api.delete(`/api_keys/${id}`)
  await until('the stream is over', () => stream.isEnded())
})

test('a server that stops ends its streams', async (t) => {
  const short = await World.start()
  t.after(() => short.stop())
  const answer = await fetch(`${short.platform.url}/exchanges/stream`, {
    headers: { authorization: `Bearer ${short.platform.apiKey}`, 'service-version': '2' },
  })
  const read = answer.text()
  await short.platform.stop()
  assert.match(await read, /^: exchanges follow/)
})

test('the head of a stream is sent at once', async () => {
  const answer = await world.api.send('HEAD', '/exchanges/stream')
  assert.equal(answer.status, 200)
})
