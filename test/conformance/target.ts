/**
 * The server that the conformance suites test: the one at `POSTERN_CONFORMANCE_URL`, with the admin key in
 * `POSTERN_CONFORMANCE_KEY`, or else a platform in this process, once per store.
 *
 * The suites do not delete what they create, so an external server should be a disposable one, with the default TCP ports.
 */
import { randomBytes, randomInt } from 'node:crypto'
import { after, before, describe } from 'node:test'
import { ApiClient } from '../support/api-client.ts'
import { eachStore, type TestStore } from '../support/databases.ts'
import { SHARED_TCP_PORTS } from '../support/free-port.ts'
import { type Platform, type PlatformOptions, startPlatform } from '../support/platform.ts'

export interface Target {
  /** `sqlite`, `postgres`, or the URL of an external server. */
  readonly name: string
  /** The base url, without a trailing slash. Set when tests run, not while they are defined. */
  readonly url: string
  /** A client with the key of an admin. Set when tests run. */
  readonly api: ApiClient
  /**
   * The platform, for tests that need more than a key; null for an external server. Call it only when tests run. Whether it
   * is null is known before, so that such tests need not be defined.
   */
  readonly platform: (() => Platform) | null
}

/**
 * Defines the same suite for every target. The options apply to platforms in this process, not to an external server.
 * `stores` limits the stores, for suites about code that runs before the store is used.
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
    if (!key) throw new Error('POSTERN_CONFORMANCE_URL also needs POSTERN_CONFORMANCE_KEY, the token of an admin')
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

/** A unique name, such as `edge-3f9a1c0b`, since suites share their server. */
export function unique(word: string): string {
  return `${word}-${randomBytes(5).toString('hex')}`
}

/** A unique hostport for a TLS or HTTPS edge. */
export function uniqueName(): string {
  return `${unique('host')}.example.com:443`
}

/** A unique hostport for a TCP edge of a platform with the usual TCP ports. */
export function uniqueAddress(): string {
  port = port === SHARED_TCP_PORTS.to ? SHARED_TCP_PORTS.from : port + 1
  return `tcp.example.com:${port}`
}

let port = randomInt(SHARED_TCP_PORTS.from, SHARED_TCP_PORTS.to + 1)
