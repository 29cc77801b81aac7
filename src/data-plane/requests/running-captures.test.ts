import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HeaderList } from '../../lib/http/header-list.ts'
import { messagesOf } from './captured-parts.ts'
import type { RequestHead, ResponseHead } from './http-exchange.ts'
import { RunningCaptures } from './running-captures.ts'

const capture = { id: 'cap_1', edgeId: 'e', bodies: true, maxBodyBytes: 1000, unmask: false, expiresAt: 2000 }

function requestHead(pairs: [string, string][] = []): RequestHead {
  const headers = HeaderList.of(pairs)
  return { method: 'GET', target: '/', authority: 'a.test', headers, version: '1.1', body: 'none', upgrade: undefined }
}

const responseHead: ResponseHead = { status: 200, reason: '', headers: HeaderList.of([['x-a', 'b']]), body: 0 }

function captures({ bytes = 64 * 1024, now = (): number => 1000 } = {}): RunningCaptures {
  const made = new RunningCaptures({ bytes, now })
  made.use([capture])
  return made
}

async function read(from: RunningCaptures, lastPart: number, sizes = { bytesIn: 0, bytesOut: 0 }) {
  const parts = await from.parts.read(lastPart)
  return parts && messagesOf(parts, sizes, { hasBodies: true })
}

test('only running captures keep anything, and only until they end', () => {
  let now = 1000
  const made = captures({ now: () => now })
  assert.equal(made.isOff, false)
  assert.equal(made.begin('other'), undefined)
  assert.equal(made.begin('e')?.captureId, 'cap_1')
  now = 2000
  assert.equal(made.begin('e'), undefined)
  made.use([])
  assert.equal(made.isOff, true)
})

test('parts of exchanges under way at once are kept apart', async () => {
  const made = captures()
  const [one, two] = [made.begin('e'), made.begin('e')]
  assert.ok(one && two)
  one.request(requestHead())
  two.request(requestHead())
  for (const letter of ['a', 'b', 'c']) {
    one.requestBody(Buffer.from(letter))
    two.responseBody(Buffer.from(letter.toUpperCase()))
  }
  two.response(responseHead)
  const first = await read(made, one.lastPart, { bytesIn: 3, bytesOut: 0 })
  assert.deepEqual(first?.request?.body, { size: 3, kept: 3, encoding: 'text', content: 'abc' })
  assert.equal(first?.response, undefined)
  const second = await read(made, two.lastPart)
  assert.equal(second?.response?.body?.content, 'ABC')
})

for (const name of [
  'Authorization',
  'PROXY-authorization',
  'Cookie',
  'Set-Cookie',
  'postern-auth-user-email',
  'Postern_Mtls_Subject',
  'ngrok-auth-user-id',
  'X-Api-Key',
  'X-Auth-Token',
]) {
  test(`${name} is masked when it is written`, async () => {
    const made = captures()
    const one = made.begin('e')
    one?.request(requestHead([[name, 'a secret']]))
    const found = await read(made, one?.lastPart ?? -1)
    assert.deepEqual(found?.request?.headers.at(-1), { name, value: '', isMasked: true })
    assert.ok(!made.parts.dump().includes('a secret'))
  })
}

test('whatever comes, the memory keeps its size, and what is half overwritten is gone', async () => {
  const made = captures({ bytes: 32 * 1024 })
  const slow = made.begin('e')
  slow?.request(requestHead())
  let last = -1
  for (let i = 0; i < 1000; i++) {
    const one = made.begin('e')
    one?.request(requestHead([['x-i', String(i)]]))
    for (let j = 0; j < 20; j++) one?.requestBody(Buffer.alloc(100, 'x'))
    last = one?.lastPart ?? -1
  }
  slow?.requestBody(Buffer.from('late'))
  assert.equal(await read(made, slow?.lastPart ?? -1), undefined)
  const found = await read(made, last, { bytesIn: 2000, bytesOut: 0 })
  assert.deepEqual([found?.request?.body?.size, found?.request?.body?.kept], [2000, 1000])
  assert.ok(made.parts.dump().length <= 32 * 1024)
})

test('a head that is far too long is cut, and a part that never fits is left out', async () => {
  const made = captures({ bytes: 256 * 1024 })
  const one = made.begin('e')
  one?.request(requestHead(Array.from({ length: 1000 }, (_, i) => [`x-${i}`, 'y'.repeat(1000)])))
  const headers = (await read(made, one?.lastPart ?? -1))?.request?.headers ?? []
  assert.ok(headers.length > 50 && headers.length < 70)
  const tiny = captures({ bytes: 20 })
  const two = tiny.begin('e')
  two?.request(requestHead())
  assert.equal(two?.lastPart, -1)
})

test('a text that would fill a call between nodes as JSON is sent as bytes', async () => {
  const made = captures({ bytes: 4 * 1024 * 1024 })
  made.use([{ ...capture, maxBodyBytes: 256 * 1024 }])
  const one = made.begin('e')
  one?.request(requestHead())
  const body = Buffer.alloc(256 * 1024, '\u0001')
  one?.requestBody(body)
  const kept = (await read(made, one?.lastPart ?? -1, { bytesIn: body.length, bytesOut: 0 }))?.request?.body
  assert.deepEqual([kept?.encoding, kept?.kept], ['base64', body.length])
  assert.ok(JSON.stringify(kept).length < 400 * 1024)
})

test('a text that is cut within a character stays a text, and bytes stay bytes', async () => {
  for (const [body, encoding, content] of [
    [Buffer.from(`x${'é'.repeat(600)}`), 'text', `x${'é'.repeat(499)}`],
    [Buffer.alloc(1201, 0xff), 'base64', Buffer.alloc(1000, 0xff).toString('base64')],
  ] as const) {
    const made = captures({ bytes: 64 * 1024 })
    const one = made.begin('e')
    one?.request(requestHead())
    one?.requestBody(body)
    const kept = (await read(made, one?.lastPart ?? -1, { bytesIn: body.length, bytesOut: 0 }))?.request?.body
    assert.deepEqual(kept, { size: 1201, kept: 1000, encoding, content })
  }
})
