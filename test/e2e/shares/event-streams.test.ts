/** Streams of exchanges: a caller that opens as many as it can keeps nobody else from theirs. */
import assert from 'node:assert/strict'
import { type IncomingMessage, request } from 'node:http'
import { after, before, test } from 'node:test'
import { shared } from '../../../src/model/shared.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'

const { most } = shared.eventStreams
const OTHERS = 3

let platform: Platform
const opened: IncomingMessage[] = []
before(async () => {
  platform = await startPlatform()
})
after(() => {
  for (const each of opened) each.destroy()
  return platform.stop()
})

/** The answer's head. */
function open(token: string): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${token}`, 'service-version': '2' }
  return new Promise((resolve, reject) => {
    const asking = request(`${platform.url}/exchanges/stream`, { headers, agent: false }, (answer) => {
      opened.push(answer)
      answer.on('error', () => {})
      resolve(answer.resume())
    })
    asking.on('error', reject)
    asking.end()
  })
}

const statusesOf = (answers: readonly IncomingMessage[]) => answers.map(({ statusCode }) => statusCode)
const openAmong = (answers: readonly IncomingMessage[]) => answers.filter(({ readableEnded }) => !readableEnded).length

test('all of one caller make room for those of another, and for no more of its own', async () => {
  const [attacker, other] = [await platform.member(), await platform.member()]
  const attacking: IncomingMessage[] = []
  for (let i = 0; i < most; i++) attacking.push(await open(attacker.token))
  assert.deepEqual(new Set(statusesOf(attacking)), new Set([200]))

  const working: IncomingMessage[] = []
  for (let i = 0; i < OTHERS; i++) {
    const refused = await open(attacker.token)
    assert.deepEqual([refused.statusCode, refused.headers['retry-after']], [503, '5'])
    working.push(await open(other.token))
  }
  assert.deepEqual(statusesOf(working), [200, 200, 200])
  await until('as many of the first have ended', () => openAmong(attacking) === most - OTHERS)
  assert.deepEqual(
    attacking.slice(0, OTHERS).map(({ readableEnded }) => readableEnded),
    [true, true, true],
    'the oldest',
  )
  assert.equal(openAmong(working), OTHERS)
})
