import assert from 'node:assert/strict'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { RateLimit } from '../records/api-rate-limit.ts'
import { enter } from './authenticate.ts'

const TOKEN = 'right'
const principal = { id: 'usr_1', role: 'member', keyId: 'ak_1' } as const
const admits = async () => true
const pageKey = async () => undefined
const authenticate = async (token: string) => (token === TOKEN ? principal : undefined)

const cases: [what: string, headers: [name: string, value: string][], code: string | undefined][] = [
  [
    'a key and a version',
    [
      ['Authorization', 'Bearer right'],
      ['Service-Version', '2'],
    ],
    undefined,
  ],
  [
    'a scheme in other letters',
    [
      ['authorization', 'bEARER right'],
      ['service-version', '2'],
    ],
    undefined,
  ],
  [
    'spaces before the token',
    [
      ['Authorization', 'Bearer   right'],
      ['Service-Version', '2'],
    ],
    undefined,
  ],
  [
    'the alias of the version',
    [
      ['Authorization', 'Bearer right'],
      ['Ngrok-Version', '2'],
    ],
    undefined,
  ],
  [
    'both versions',
    [
      ['Authorization', 'Bearer right'],
      ['Ngrok-Version', '2'],
      ['Service-Version', '2'],
    ],
    undefined,
  ],
  ['nothing', [], 'UNAUTHENTICATED'],
  ['no key', [['Service-Version', '2']], 'UNAUTHENTICATED'],
  [
    'another key',
    [
      ['Authorization', 'Bearer wrong'],
      ['Service-Version', '2'],
    ],
    'UNAUTHENTICATED',
  ],
  [
    'an empty key',
    [
      ['Authorization', 'Bearer '],
      ['Service-Version', '2'],
    ],
    'UNAUTHENTICATED',
  ],
  [
    'a key without its scheme',
    [
      ['Authorization', 'right'],
      ['Service-Version', '2'],
    ],
    'UNAUTHENTICATED',
  ],
  [
    'another scheme',
    [
      ['Authorization', 'Basic right'],
      ['Service-Version', '2'],
    ],
    'UNAUTHENTICATED',
  ],
  [
    'a scheme glued to the key',
    [
      ['Authorization', 'Bearerright'],
      ['Service-Version', '2'],
    ],
    'UNAUTHENTICATED',
  ],
  [
    'a tab before the key',
    [
      ['Authorization', 'Bearer\tright'],
      ['Service-Version', '2'],
    ],
    'UNAUTHENTICATED',
  ],
  [
    'a word after the key',
    [
      ['Authorization', 'Bearer right now'],
      ['Service-Version', '2'],
    ],
    'UNAUTHENTICATED',
  ],
  ['two keys in one header', [['Authorization', 'Bearer right, Bearer right']], 'UNAUTHENTICATED'],
  [
    'the right key twice',
    [
      ['Authorization', 'Bearer right'],
      ['Authorization', 'Bearer right'],
    ],
    'UNAUTHENTICATED',
  ],
  [
    'a wrong key and version',
    [
      ['Authorization', 'Bearer wrong'],
      ['Service-Version', '9'],
    ],
    'UNAUTHENTICATED',
  ],
  ['a long blank', [['Authorization', `Bearer ${' '.repeat(15_000)}`]], 'UNAUTHENTICATED'],
  ['no version', [['Authorization', 'Bearer right']], 'VERSION_MISSING'],
  [
    'an empty version',
    [
      ['Authorization', 'Bearer right'],
      ['Service-Version', ''],
    ],
    'VERSION_UNSUPPORTED',
  ],
  [
    'version 0',
    [
      ['Authorization', 'Bearer right'],
      ['Service-Version', '0'],
    ],
    'VERSION_UNSUPPORTED',
  ],
  [
    'version 2.0',
    [
      ['Authorization', 'Bearer right'],
      ['Service-Version', '2.0'],
    ],
    'VERSION_UNSUPPORTED',
  ],
  [
    'the version twice',
    [
      ['Authorization', 'Bearer right'],
      ['Service-Version', '2'],
      ['Service-Version', '2'],
    ],
    'VERSION_UNSUPPORTED',
  ],
  [
    'versions that disagree',
    [
      ['Authorization', 'Bearer right'],
      ['Service-Version', '2'],
      ['Ngrok-Version', '1'],
    ],
    'VERSION_UNSUPPORTED',
  ],
]

for (const [what, headers, code] of cases) {
  test(`${what}: ${code ?? 'may enter'}`, async () => {
    const entering = enter(request(headers), {
      authenticate,
      admits,
      pageKey,
      rateLimit: new RateLimit({ perMinute: 0, now: Date.now }),
    })
    if (code) await assert.rejects(entering, { name: 'Refusal', code })
    else assert.equal(await entering, principal)
  })
}

test('a caller without a valid key is told which scheme to use', async () => {
  const authentication = { authenticate, admits, pageKey, rateLimit: new RateLimit({ perMinute: 0, now: Date.now }) }
  await assert.rejects(enter(request([]), authentication), { headers: { 'www-authenticate': 'Bearer' } })
})

test('IP_NOT_ALLOWED is only told to callers with a valid key', async () => {
  const authentication = {
    authenticate,
    pageKey,
    admits: async () => false,
    rateLimit: new RateLimit({ perMinute: 0, now: Date.now }),
  }
  await assert.rejects(enter(request([]), authentication), { code: 'UNAUTHENTICATED' })
  await assert.rejects(enter(request([['Authorization', 'Bearer right']]), authentication), { code: 'IP_NOT_ALLOWED' })
})

test('a call over the rate limit is refused, whatever its version; calls without a valid key do not count', async () => {
  const authentication = { authenticate, admits, pageKey, rateLimit: new RateLimit({ perMinute: 1, now: () => 1000 }) }
  const known: [string, string][] = [['Authorization', 'Bearer right']]
  await assert.rejects(enter(request([['Authorization', 'Bearer wrong']]), authentication), { code: 'UNAUTHENTICATED' })
  await assert.rejects(enter(request(known), authentication), { code: 'VERSION_MISSING' })
  await assert.rejects(enter(request(known), authentication), {
    code: 'RATE_LIMITED',
    headers: { 'retry-after': '60' },
  })
})

/** A request as Node's parser hands it over. */
function request(headers: readonly [string, string][]): IncomingMessage {
  const message = new IncomingMessage(new Socket())
  message.rawHeaders = headers.flat()
  const byName = Object.groupBy(headers, ([name]) => name.toLowerCase())
  const distinct = Object.entries(byName).map(([name, all]) => [name, all?.map(([, value]) => value)])
  Object.defineProperty(message, 'headersDistinct', { value: Object.fromEntries(distinct) })
  return message
}
