import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../tunnel/testing/test-agent-listener.ts'
import { gatewayStarter } from '../testing/test-gateway.ts'
import { message, messages, RawClient } from '../testing/test-raw.ts'

const start = gatewayStarter()

/** What a client sends before it asks, on a terminal whose command runs; the session goes on. */
const earlier: readonly [what: string, payload: (terminal: number) => Buffer][] = [
  ['while its command runs', () => message(messages.ignore, '')],
  ['after the end of its input', (terminal) => message(messages.channelEnd, terminal)],
]
for (const [what, payload] of earlier) {
  test(`each request that wants an answer gets one ${what}, as dropbear's keep-alives do`, async () => {
    const gateway = await start()
    const raw = await RawClient.serving(gateway)
    const [terminal = 0] = raw.answers(messages.channelOpened).map((opened) => opened.readUInt32BE(5))
    raw.send(payload(terminal))
    const isAnswered = (): boolean => raw.answers(messages.channelFailure).length === 3
    for (const type of ['keepalive@openssh.com', 'shell', 'nonsense']) {
      raw.send(message(messages.channelRequest, terminal, type, false))
      raw.send(message(messages.channelRequest, terminal, type, true))
    }
    await until(isAnswered)
    raw.send(message(messages.globalRequest, 'keepalive@openssh.com', true))
    await until(() => raw.answers(messages.requestFailure).length === 1)
    assert.ok(isAnswered(), 'none is answered twice')
    const own = raw.answers(messages.channelFailure).map((refused) => refused.readUInt32BE(1))
    assert.deepEqual(own, [0, 0, 0])
    assert.equal(gateway.endpoints.addresses.length, 1)
    raw.leave()
  })
}

test('a request on a terminal that we have closed is not answered', async () => {
  const gateway = await start()
  const raw = await RawClient.serving(gateway)
  const terminal = await raw.openTerminal(1)
  raw.send(message(messages.channelRequest, terminal, 'exec', false, 'http'))
  await until(() => raw.answers(messages.channelClose).length === 1)
  raw.send(message(messages.channelRequest, terminal, 'keepalive@openssh.com', true))
  raw.send(message(messages.globalRequest, 'keepalive@openssh.com', true))
  await until(() => raw.answers(messages.requestFailure).length === 1)
  assert.equal(raw.answers(messages.channelFailure).length, 0)
  raw.leave()
})
