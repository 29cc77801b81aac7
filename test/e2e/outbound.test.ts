/** Policies that send requests to the server itself: its own listeners never answer, whatever `--outbound-allow` says. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { after, before, test } from 'node:test'
import { portsToKeep } from '../support/free-port.ts'
import { World } from './edges/world.ts'
import { listenOn } from './policy-table-services.ts'

let world: World
let ports: Readonly<Record<'api' | 'metrics' | 'agent' | 'ssh' | 'http', number>>

before(async () => {
  const [api, metrics, agent, ssh, http] = await portsToKeep(5)
  ports = { api, metrics, agent, ssh, http } as typeof ports
  const listeners = Object.entries(ports).map(([name, port]) => [`${name}-listen`, `127.0.0.1:${port}`])
  const allowed = ['127.0.0.0/8', ...Object.values(ports).map((port) => `localhost:${port}`)]
  world = await World.start({ flags: { ...Object.fromEntries(listeners), 'outbound-allow': allowed.join() } })
})
after(() => world.stop())

/** What a policy that asks `url` shows its visitors. */
async function shown(url: string): Promise<string> {
  const rules = [
    { actions: [{ type: 'http-request', config: { url } }] },
    {
      actions: [
        {
          type: 'custom-response',
          config: { status_code: 200, body: 'seen: ${actions.ngrok.http_request.res.status_code}' },
        },
      ],
    },
  ]
  const { name } = await world.httpsEdge({
    routes: [{ traffic_policy: { value: JSON.stringify({ on_http_request: rules }) } }],
  })
  const answer = await world.ask(name)
  return answer.text
}

test('a policy reaches a service of this machine that is allowed, and no listener of the server', async () => {
  const service = await listenOn(
    world,
    createServer((_request, response) => response.end('hi')),
  )
  assert.equal(await shown(`http://127.0.0.1:${service}/`), 'seen: 200')
  const { api, metrics } = ports
  for (const url of [
    `http://127.0.0.1:${metrics}/metrics`,
    `http://127.1:${metrics}/metrics`,
    `http://2130706433:${metrics}/metrics`,
    `http://localhost:${metrics}/metrics`,
    `http://localhost:${api}/readyz`,
    `http://127.0.0.1:${ports.http}/`,
  ]) {
    assert.doesNotMatch(await shown(url), /200|404/, url)
  }
})

test('a policy reaches the listener for visitors where that is named with its port', async () => {
  assert.match(await shown(`http://localhost:${ports.http}/`), /seen: \d{3}/)
})
