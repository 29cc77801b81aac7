/** What is remembered of traffic stays within its memory: the oldest make room, and the latest are complete. */
import assert from 'node:assert/strict'
import { Agent, request } from 'node:https'
import { after, before, test } from 'node:test'
import type { Json } from '../support/api-client.ts'
import { until } from '../support/until.ts'
import { recorder } from './edges/upstreams.ts'
import { type HttpsEdge, World } from './edges/world.ts'

/** A quarter of it is for exchanges, each of which takes more than 200 bytes. */
const MEMORY_KIB = 512
const MOST_EXCHANGES = (MEMORY_KIB * 1024) / 4 / 200

let world: World
let edge: HttpsEdge
before(async () => {
  world = await World.start({ planeCount: 1, flags: { 'exchange-memory': `${MEMORY_KIB}KiB`, 'log-level': 'warn' } })
  const service = await recorder(world, (asked, response) => asked.pipe(response))
  edge = await world.httpsTo(service)
})
after(() => world.stop())

/** Posts bodies on kept connections, several at once. */
async function flood(count: number, body: Buffer): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 8, ca: world.platform.ca, servername: edge.name })
  let next = 0
  const one = (i: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const to = { host: '127.0.0.1', port: world.platform.httpsPort, agent, method: 'POST', path: `/flood/${i}` }
      const asking = request({ ...to, headers: { host: edge.name } }, (response) =>
        response.resume().on('end', resolve),
      )
      asking.on('error', reject).end(body)
    })
  const worker = async (): Promise<void> => {
    while (next < count) await one(next++)
  }
  await Promise.all(Array.from({ length: 8 }, worker))
  agent.destroy()
}

async function all(): Promise<Json[]> {
  const found: Json[] = []
  for (let at: string | null = `/exchanges?edge_id=${edge.id}`; at !== null; ) {
    const page: Json = await world.api.get(at)
    found.push(...page.exchanges)
    at = page.next_page_uri === null ? null : String(page.next_page_uri).slice(world.platform.url.length)
  }
  return found
}

test('a flood that is captured leaves the latest, and no more than fits', async () => {
  await world.api.create('/captures', { edge_id: edge.id, bodies: true })
  await until('it is captured', async () => {
    await flood(1, Buffer.from('first'))
    const [found] = (await world.api.get(`/exchanges?edge_id=${edge.id}&limit=1`)).exchanges
    return found?.capture_id !== null && found !== undefined
  })
  const body = Buffer.alloc(4096, 'a body ')
  await flood(2000, body)
  let latest: Json
  await until('the latest are listed', async () => {
    ;[latest] = (await world.api.get(`/exchanges?edge_id=${edge.id}&limit=1`)).exchanges
    return Number(latest.path.split('/')[2]) >= 1990
  })
  const found = await all()
  assert.ok(found.length > 100 && found.length < MOST_EXCHANGES, `${found.length} exchanges`)
  const whole = await world.api.get(`/exchanges/${latest.id}`)
  assert.equal(whole.request.body.content, body.toString())
  assert.equal(whole.response.body.content, body.toString())
  // Its head and body had to make room for others.
  const oldest = await world.api.get(`/exchanges/${found.at(-1)?.id}`)
  assert.deepEqual([oldest.request, oldest.response], [null, null])
})
