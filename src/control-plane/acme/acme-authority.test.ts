import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type AcmeServer, type AcmeStep, startAcmeServer } from '../../../test/support/acme-server.ts'
import { newPrivateKey } from './accounts.ts'
import { type AcmeAuthority, openAuthorityAt } from './acme-authority.ts'
import { AcmeFault } from './order-fault.ts'

let acme: AcmeServer
let accountKey: string

before(async () => {
  acme = await startAcmeServer()
  acme.mood.txt = () => []
  accountKey = await newPrivateKey('ecdsa')
})
after(() => acme.stop())

const open = (directory = acme.directory): Promise<AcmeAuthority> =>
  openAuthorityAt({
    ...{ directory, accountKey, accountUrl: '', email: '', binding: undefined, ca: undefined },
    ...{ now: Date.now, version: 'test' },
  })

/** Runs the calls up to each step. */
const steps: readonly [step: AcmeStep, call: (authority: AcmeAuthority) => Promise<unknown>][] = [
  ['account', (authority) => authority.account()],
  ['order', (authority) => authority.begin('app.example.com')],
  ['look', async (authority) => authority.order((await authority.begin('app.example.com')).url)],
  ['authorization', async (authority) => authority.authorizations(await authority.begin('app.example.com'))],
]

const rubbish: readonly [what: string, body: string][] = [
  ['a giant', `{"status":"valid","pad":"${'x'.repeat(300 * 1024)}"}`],
  ['half an object', '{"status":"val'],
  ['a list', '[]'],
  ['nothing', 'null'],
  ['an empty object', '{}'],
  ['numbers', '{"status":7,"identifier":7,"authorizations":7,"challenges":7}'],
]

for (const [step, call] of steps) {
  for (const [what, body] of rubbish) {
    // The response to a new account is only its address.
    if (step === 'account' && what !== 'a giant') continue
    test(`${what} in place of the response to ${step} is a fault of the authority`, async () => {
      const authority = await open()
      if (step !== 'account') await authority.account()
      acme.mood.instead.set(step, body)
      try {
        await assert.rejects(
          call(authority),
          (error) =>
            error instanceof AcmeFault && error.code === 'AUTHORITY_UNAVAILABLE' && error.message.length < 1000,
        )
      } finally {
        acme.mood.instead.delete(step)
      }
    })
  }
}

test('a token that could lead out of its folder is refused', async () => {
  const authority = await open()
  await authority.account()
  const order = await authority.begin('app.example.com')
  for (const token of ['../../../etc/passwd-and-more', 'short', 'x'.repeat(257), 'with a space and more words']) {
    const challenges = [{ type: 'http-01', url: 'http://127.0.0.1:9/c', token }]
    const identifier = { type: 'dns', value: 'app.example.com' }
    acme.mood.instead.set('authorization', JSON.stringify({ status: 'pending', identifier, challenges }))
    await assert.rejects(authority.authorizations(order), /a challenge that cannot be read/)
  }
  acme.mood.instead.delete('authorization')
})

test('unknown kinds of challenges are skipped', async () => {
  const authority = await open()
  await authority.account()
  const order = await authority.begin('app.example.com')
  const [authorization] = await authority.authorizations(order)
  const token = 'x'.repeat(43)
  const challenges = [{ type: 'dns-persist-01' }, { type: 'http-01', url: 'http://127.0.0.1:9/c', token }]
  const sent = { status: 'pending', identifier: { type: 'dns', value: 'app.example.com' }, challenges }
  acme.mood.instead.set('authorization', JSON.stringify(sent))
  const [odd] = await authority.authorizations(order)
  acme.mood.instead.delete('authorization')
  assert.equal(authorization?.challenges.length, 3)
  assert.deepEqual(
    odd?.challenges.map(({ kind }) => kind),
    ['http-01'],
  )
})

test('an unreachable authority is reported', async () => {
  const gone = await startAcmeServer()
  await gone.stop()
  const authority = await open(gone.directory)
  await assert.rejects(
    authority.account(),
    (error) => error instanceof AcmeFault && error.code === 'AUTHORITY_UNAVAILABLE',
  )
})

test('the time to wait is taken from the response', async () => {
  const authority = await open()
  await authority.account()
  acme.mood.problems.push({ step: 'order', status: 429, type: 'rateLimited', retryAfter: 7200 })
  await assert.rejects(
    authority.begin('app.example.com'),
    (error) => error instanceof AcmeFault && error.code === 'AUTHORITY_RATE_LIMIT' && error.retryAfterMs === 7_200_000,
  )
})

test('whether an order may have been made is known', async () => {
  const authority = await open()
  await authority.account()
  const isUnsure = async () => {
    const error = await authority.begin('app.example.com').catch((each: unknown) => each)
    assert.ok(error instanceof AcmeFault)
    return error.isUnsure
  }
  acme.mood.problems.push({ step: 'order', status: 429, type: 'rateLimited' })
  assert.equal(await isUnsure(), false, 'it was refused')
  acme.mood.problems.push({ step: 'order', status: 503, type: 'serverInternal' })
  assert.equal(await isUnsure(), true, 'a proxy may have given up')
  acme.mood.after = () => {
    throw new Error('the connection breaks')
  }
  assert.equal(await isUnsure(), true)
  acme.mood.after = undefined
  acme.mood.instead.set('order', '{}')
  assert.equal(await isUnsure(), true, 'an answer that says nothing')
  acme.mood.instead.delete('order')
  const gone = await startAcmeServer()
  const late = await open(gone.directory)
  await late.account()
  await gone.stop()
  const error = await late.begin('app.example.com').catch((each: unknown) => each)
  assert.ok(error instanceof AcmeFault && !error.isUnsure, 'nothing was sent')
})

test('an order that was begun is found again, if the authority lists the orders of an account', async () => {
  const authority = await open()
  await authority.account()
  const { url } = await authority.begin('lost.example.com')
  assert.equal(await authority.unfinished('lost.example.com'), undefined)
  acme.mood.listed.add('lost.example.com')
  acme.mood.listed.add('app.example.com')
  assert.equal((await authority.unfinished('lost.example.com'))?.url, url)
  assert.equal(await authority.unfinished('other.example.com'), undefined)
  acme.mood.listed.clear()
})
