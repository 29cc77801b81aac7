/** A proxy in front that is not in `--trusted-proxies`: the log and `postern doctor` name it, and its headers are not believed. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { trafficFindings } from '../../src/cli/doctor/traffic.ts'
import { recorder } from './edges/upstreams.ts'
import { askHttp1, dialled } from './edges/visitor.ts'
import { World } from './edges/world.ts'

/** More than it takes at each data plane, whichever of them gets them. */
const REQUESTS = 150

let world: World
before(async () => {
  world = await World.start()
})
after(() => world.stop())

test('an address that sends forwarding headers all the time is named', async () => {
  const service = await recorder(world)
  const { name } = await world.httpsTo(service)
  const { httpsPort: port, ca } = world.platform
  const socket = await dialled({ name, port, ca }, { from: '127.0.0.9' })
  for (let i = 0; i < REQUESTS; i++) {
    await askHttp1(
      socket,
      { name },
      { headers: { 'x-forwarded-for': `192.0.2.${i}`, 'x-forwarded-host': 'a.example' } },
    )
  }
  socket.destroy()
  assert.equal(service.last.get('x-forwarded-host'), name)
  const lines = world.platform.log.filter((line) => line.includes('add it to --trusted-proxies'))
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).address),
    ['127.0.0.9'],
  )
  const metrics = await (await fetch(world.platform.metricsUrl)).text()
  const [finding] = trafficFindings(metrics).filter(({ check }) => check === 'proxy')
  assert.match(finding?.about ?? '', /^most requests come from 127\.0\.0\.9 /)
})
