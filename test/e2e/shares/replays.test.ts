/** Replays: a caller whose replays take long keeps nobody else from one. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, before, test } from 'node:test'
import { shared } from '../../../src/model/shared.ts'
import { until } from '../../support/until.ts'
import { recorder } from '../edges/upstreams.ts'
import { type HttpsEdge, World } from '../edges/world.ts'

const { most } = shared.replays
const MORE = 4

let world: World
let edge: HttpsEdge
/** Replays that the service has not answered. */
const held: ServerResponse[] = []
before(async () => {
  world = await World.start()
  const service = await recorder(world, (request, response) => {
    if (request.url === '/slow' && request.headers['postern-replay'] !== undefined) held.push(response)
    else response.end()
  })
  edge = await world.httpsTo(service)
  await world.api.create('/captures', { edge_id: edge.id, bodies: true })
})
after(() => world.stop())

/** The id of a captured exchange of this path. */
async function captured(path: string): Promise<string> {
  let id = ''
  await until('an exchange is captured', async () => {
    await world.ask(edge.name, { path })
    const { exchanges } = await world.api.get(`/exchanges?edge_id=${edge.id}&path=${path}&limit=1`)
    id = exchanges[0]?.capture_id ? exchanges[0].id : ''
    return id !== ''
  })
  return id
}

test('that take long leave the next turn to another caller', async () => {
  const [attacker, other] = [await world.platform.member(), await world.platform.member()]
  const [slow, quick] = [await captured('/slow'), await captured('/quick')]
  const attacked: number[] = []
  const attack = async () => attacked.push((await attacker.api.send('POST', `/exchanges/${slow}/replay`)).status)
  const attacks = Promise.all(Array.from({ length: most + MORE }, attack))
  await until('all turns are taken', () => held.length === most)

  let answered: number | undefined
  const work = other.api.send('POST', `/exchanges/${quick}/replay`).then(({ status }) => {
    answered = status
  })
  await until('it is answered', () => {
    if (answered === undefined) held.pop()?.end()
    return answered !== undefined
  })
  await work
  assert.equal(answered, 201)

  await until('the rest come in turn', () => {
    for (const response of held.splice(0)) response.end()
    return attacked.length === most + MORE
  })
  await attacks
  assert.deepEqual(new Set(attacked), new Set([201]))
})
