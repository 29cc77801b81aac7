import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fetch, FetchFault } from '../../lib/http/outbound-fetch.ts'
import { testTools } from '../testing/test-tools.ts'
import { identityProvider } from './identity-provider.ts'
import { TestIdp } from './testing/test-idp.ts'

const URL = 'https://idp.example.com/metadata'
const [first, second] = [await TestIdp.make(), await TestIdp.make()]

function setUp() {
  const web = { asked: 0, isDown: false, status: 200, body: first.metadata }
  let now = 0
  const fetch: Fetch = async (url) => {
    assert.equal(url, URL)
    web.asked += 1
    if (web.isDown) throw new FetchFault('unreachable', 'idp.example.com cannot be asked')
    return { status: web.status, headers: new Headers(), body: Buffer.from(web.body) }
  }
  const provider = identityProvider({ idp_metadata: '', idp_metadata_url: URL }, testTools({ fetch, now: () => now }))
  const later = (ms: number): void => {
    now += ms
  }
  /** The cached certificate, while metadata is read again. */
  const certificate = async (): Promise<string | undefined> => {
    const [found] = (await provider()).certificates
    await new Promise((resolve) => setImmediate(resolve))
    return found
  }
  return { web, provider, later, certificate }
}

test('metadata in the settings is read once', async () => {
  const fetch: Fetch = () => assert.fail('nothing is asked for')
  const provider = identityProvider({ idp_metadata: first.metadata, idp_metadata_url: '' }, testTools({ fetch }))
  assert.equal(await provider(), await provider())
})

test('waiting requests share one fetch, and its result is used for a quarter of an hour', async () => {
  const { web, provider, later } = setUp()
  await Promise.all([provider(), provider(), provider()])
  later(15 * 60_000 - 1)
  await provider()
  assert.equal(web.asked, 1)
})

test('after that it is fetched again in the background', async () => {
  const { web, later, certificate } = setUp()
  assert.equal(await certificate(), first.key.certificate)
  web.body = second.metadata
  later(15 * 60_000)
  assert.equal(await certificate(), first.key.certificate)
  assert.equal(await certificate(), second.key.certificate)
  assert.equal(web.asked, 2)
})

test('metadata that cannot be fetched again is used for a day, and no longer', async () => {
  const { web, provider, later } = setUp()
  await provider()
  web.isDown = true
  later(24 * 3_600_000 - 1)
  await provider()
  later(3000)
  await assert.rejects(provider(), { message: /cannot be asked/ })
  web.isDown = false
  later(3000)
  await provider()
})

test('a failure is remembered for a moment', async () => {
  const { web, provider, later } = setUp()
  web.isDown = true
  await assert.rejects(provider())
  await assert.rejects(provider())
  assert.equal(web.asked, 1)
  web.isDown = false
  later(2000)
  await provider()
})

test('invalid metadata is refused with the reason', async () => {
  for (const [answer, message] of [
    [{ status: 404 }, /answered 404/],
    [{ body: '<html/>' }, /EntityDescriptor/],
    [{ body: `<!DOCTYPE x>${first.metadata}` }, /DTD/],
    [{ body: first.metadata + ' '.repeat(256 * 1024) }, /256 KiB/],
  ] as const) {
    const { web, provider } = setUp()
    Object.assign(web, answer)
    await assert.rejects(provider(), { name: 'MetadataFault', message })
  }
})
