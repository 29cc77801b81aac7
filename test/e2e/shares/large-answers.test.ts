/** Large answers of the API: a caller that asks for many at once, and reads none of them, keeps nobody else from theirs. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { head } from '../../support/raw-http.ts'
import { until } from '../../support/until.ts'

/** The longest body of a response backend, and enough of them for one page. */
const BODY = 'x'.repeat(255 * 1024)
const ITEMS = 34

const LIST = '/backends/http_response'
const ASKED_AT_ONCE = 12

let platform: Platform
before(async () => {
  platform = await startPlatform()
  for (let i = 0; i < ITEMS; i++) await platform.admin.create(LIST, { body: BODY })
})
after(() => platform.stop())

/** Asks for the list and leaves the answer unread. */
async function askFor(token: string): Promise<{ socket: Socket; isAnswered: boolean }> {
  const { hostname, port, host } = new URL(platform.url)
  const socket = connect({ host: hostname, port: Number(port) })
  await once(socket, 'connect')
  const asked = { socket, isAnswered: false }
  socket.once('readable', () => {
    asked.isAnswered = true
  })
  socket.on('error', () => {})
  const lines = [`GET ${LIST} HTTP/1.1`, `Host: ${host}`, `Authorization: Bearer ${token}`, 'Service-Version: 2']
  socket.write(head(lines))
  return asked
}

test('many at once of one caller come one after the other, while another caller gets all of its own', async (t) => {
  const [attacker, other] = [await platform.member(), await platform.member()]
  const asked = await Promise.all(Array.from({ length: ASKED_AT_ONCE }, () => askFor(attacker.token)))
  t.after(() => {
    for (const { socket } of asked) socket.destroy()
  })
  const answered = () => asked.filter(({ isAnswered }) => isAnswered)
  await until('the first is answered', () => answered().length > 0)
  for (let i = 0; i < 3; i++) assert.equal((await other.api.send('GET', LIST)).status, 200)
  assert.equal(answered().length, 1)

  for (let i = 2; i <= 3; i++) {
    answered().at(-1)?.socket.destroy()
    for (const each of asked) if (each.socket.destroyed) each.isAnswered = false
    await until('the next is answered', () => answered().length === 1)
    const [next] = answered()
    assert.match(String(next?.socket.read(12)), /^HTTP\/1\.1 200/)
  }
  // Those that have left while they waited hold up nobody.
  for (const { socket } of asked) socket.destroy()
  assert.equal((await attacker.api.send('GET', LIST)).status, 200)
})
