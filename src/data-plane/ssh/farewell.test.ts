/** What a client is told when its session ends without a fault: a sentence for its user, not a line of our log. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../tunnel/testing/test-agent-listener.ts'
import { gatewayStarter, type TestGateway } from './testing/test-gateway.ts'
import { message, messages, RawClient } from './testing/test-raw.ts'

const start = gatewayStarter()

/** The text of the disconnect, once it has come. */
async function farewell(raw: RawClient): Promise<string> {
  await until(() => raw.answers(messages.disconnect).length > 0)
  const [payload = Buffer.alloc(9)] = raw.answers(messages.disconnect)
  return payload.toString('utf8', 9, 9 + payload.readUInt32BE(5))
}

const reasons = (gateway: TestGateway) =>
  gateway.logged.filter(({ msg }) => msg === 'agent offline').map(({ reason }) => reason)

test('a client that asked for help is told that nothing is forwarded', async () => {
  const gateway = await start()
  const raw = await RawClient.online(gateway)
  const terminal = await raw.openTerminal(0)
  raw.send(message(messages.channelRequest, terminal, 'exec', false, 'http --help'))
  assert.equal(await farewell(raw), 'The help was printed. Nothing is forwarded.')
  assert.deepEqual(reasons(gateway), ['it asked for help'])
})

test('a client that quits is told that its session is over', async () => {
  const gateway = await start()
  const raw = await RawClient.online(gateway)
  const terminal = await raw.openTerminal(0)
  raw.send(message(messages.channelRequest, terminal, 'pty-req', false, 'xterm', 80, 24, 0, 0, ''))
  raw.send(message(messages.channelRequest, terminal, 'exec', false, 'http'))
  raw.send(message(messages.channelData, terminal, '\x03'))
  assert.equal(await farewell(raw), 'You ended the session. Nothing is forwarded any more.')
  assert.deepEqual(reasons(gateway), ['its client left'])
})
