/** Clients that await the answer to a forward before they send their command. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../tunnel/testing/test-agent-listener.ts'
import { assertPrinted, dial, gatewayStarter } from './testing/test-gateway.ts'

const start = gatewayStarter()

test('a client that awaits the answer to its forward before it sends its command is served', async () => {
  const gateway = await start({ limits: { forwardMs: 20 } })
  const client = await gateway.client().login()
  assert.equal(await client.forward('a.example.test', 443), 443)
  assert.deepEqual(gateway.endpoints.addresses, [], 'nothing is online without a command')
  const run = await client.exec('http')
  await until(() => run.out.includes('https://a.example.test'))
  assert.equal(await client.forward('b.example.test', 80), 80)
  assert.deepEqual(gateway.endpoints.addresses, ['https://a.example.test', 'http://b.example.test'])
})

for (const command of ['http', 'tcp']) {
  test(`its forwards of port 0 for ${command} keep the ports that it was told`, async () => {
    const gateway = await start({ limits: { forwardMs: 20 } })
    const client = await gateway.client().login()
    const ports = [await client.forward('', 0), await client.forward('', 0)]
    assert.equal(new Set(ports).size, 2)
    const run = await client.exec(command)
    await until(() => run.out.split('Forwarding').length === 3)
    const reached: number[] = []
    client.ssh.on('tcp connection', ({ destPort }: { destPort: number }, accept: () => unknown) => {
      reached.push(destPort)
      accept()
    })
    await dial(gateway)
    assert.deepEqual(reached, [ports[0]])
    await client.cancel('', ports[0] ?? 0)
    await until(() => gateway.endpoints.addresses.length === 1)
  })
}

test('a forward that was accepted before its command, and may not be served, ends the session with the reason', async () => {
  const gateway = await start({ limits: { forwardMs: 20 } })
  gateway.admit(['bind:y.example.test'])
  const client = await gateway.client().login()
  await client.forward('x.example.test', 443)
  assertPrinted(await (await client.exec('http')).printed, 316)
  await client.closed
  assert.deepEqual(gateway.endpoints.addresses, [])
})

test('a client whose command never follows its forward is disconnected with the reason', async () => {
  const gateway = await start({ limits: { forwardMs: 20, requestMs: 200 } })
  const client = await gateway.client().login()
  await client.forward('a.example.test', 443)
  await client.closed
  assert.equal(gateway.logged.filter(({ reason }) => String(reason).includes('ERR_NGROK_1111')).length, 1)
})

test('a forward that is cancelled before its command is refused, and the cancellation answered', async () => {
  const gateway = await start({ limits: { forwardMs: 20 } })
  const client = await gateway.client().login()
  const refused = assert.rejects(client.forward('a.example.test', 443))
  await client.cancel('a.example.test', 443)
  await refused
})
