/**
 * Where the conformance suites are aimed: at the server of `POSTERN_CONFORMANCE_URL` with the admin key of
 * `POSTERN_CONFORMANCE_KEY`, or else at a platform of this process, once per store.
 *
 * The suites leave behind what they made, so a server from outside should be one to throw away, with the default TCP
 * ports.
 */
import { randomBytes, randomInt } from 'node:crypto'
import { after, before, describe } from 'node:test'
import { ApiClient } from '../support/api-client.ts'
import { eachStore, type TestStore } from '../support/databases.ts'
import { type Platform, type PlatformOptions, startPlatform } from '../support/platform.ts'

export interface Target {
  /** `sqlite`, `postgres`, or the address of a server from outside. */
  readonly name: string
  /** The base url, without a slash at its end. Known once tests run, not yet while they are defined. */
  readonly url: string
  /** Calls with the key of an admin. Known once tests run. */
  readonly api: ApiClient
  /**
   * The platform behind it, for tests that need more than a key; null for a server from outside. To be called once
   * tests run; whether it is null is known before, so that such tests need not be defined.
   */
  readonly platform: (() => Platform) | null
}

/**
 * Defines the same suite for every target. The options are for the platforms of this process; a server from outside is
 * taken as it is. `stores` is for suites about what comes before the store and cannot differ by it.
 *
 * @example
 * eachTarget((target) => {
 *   test('lists keys', async () => assert.ok((await target.api.get('/api_keys')).keys.length > 0))
 *   const { platform } = target
 *   if (platform) test('a member sees its own', async () => { const { api } = await platform().member() })
 * })
 */
export function eachTarget(
  define: (target: Target) => void,
  { stores, ...options }: PlatformOptions & { readonly stores?: readonly TestStore['name'][] } = {},
): void {
  const { POSTERN_CONFORMANCE_URL: url, POSTERN_CONFORMANCE_KEY: key } = process.env
  if (url) {
    if (!key) throw new Error('POSTERN_CONFORMANCE_URL needs POSTERN_CONFORMANCE_KEY beside it: the token of an admin')
    const base = url.replace(/\/+$/, '')
    describe(base, () => define({ name: base, url: base, api: new ApiClient(base, key), platform: null }))
    return
  }
  eachStore((store) => {
    let running: Platform | undefined
    const platform = () => {
      if (!running) throw new Error('the platform runs only while tests do')
      return running
    }
    before(async () => {
      running = await startPlatform({ ...options, databaseUrl: await store.url() })
    })
    define({
      name: store.name,
      get url() {
        return platform().url
      },
      get api() {
        return platform().admin
      },
      platform,
    })
    after(() => running?.stop())
  }, stores)
}

/** A name nobody else has, such as `edge-3f9a1c0b`: suites share their server. */
export function unique(word: string): string {
  return `${word}-${randomBytes(5).toString('hex')}`
}

/** A hostport that nobody else has, for a TLS or HTTPS edge. */
export function uniqueName(): string {
  return `${unique('host')}.example.com:443`
}

/** A hostport that nobody else has, for a TCP edge of a server with the default TCP ports. */
export function uniqueAddress(): string {
  port = FIRST_TCP_PORT + ((port - FIRST_TCP_PORT + 1) % TCP_PORTS)
  return `tcp.example.com:${port}`
}

const FIRST_TCP_PORT = 20_000
const TCP_PORTS = 1000
let port = FIRST_TCP_PORT + randomInt(TCP_PORTS)
