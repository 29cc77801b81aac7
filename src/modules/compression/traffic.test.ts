import assert from 'node:assert/strict'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { brotliDecompressSync, createGunzip, gunzipSync, inflateSync } from 'node:zlib'
import fc from 'fast-check'
import type { Incoming } from '../phases.ts'
import { request, response } from '../testing/test-request.ts'
import { chooseCoding } from './accept-encoding.ts'
import { compileCompression } from './traffic.ts'

const decode = { gzip: gunzipSync, br: brotliDecompressSync, deflate: inflateSync }

type Given = NonNullable<Parameters<typeof response>[0]>

function compressed(given: Given, accept: string | undefined = 'gzip', method = 'GET') {
  const incoming = response({ headers: { 'content-type': 'text/html' }, ...given })
  const ctx = request({ method, headers: accept === undefined ? {} : { 'Accept-Encoding': accept } })
  void compileCompression().response?.(incoming, ctx)
  return { incoming, ctx, encoder: incoming.encoders[0] }
}

for (const coding of ['gzip', 'br', 'deflate'] as const) {
  test(`visitors who accept ${coding} can read the body`, async () => {
    const { incoming, ctx, encoder } = compressed({}, coding)
    assert.equal(incoming.headers.get('content-encoding'), coding)
    assert.equal(ctx.found.get('compression.algorithm'), coding)
    assert.ok(encoder)
    const text = Buffer.from('so much the same, '.repeat(5000))
    for (let at = 0; at < text.length; at += 7000) encoder.write(text.subarray(at, at + 7000))
    encoder.end()
    const bytes = await buffer(encoder)
    assert.deepEqual(decode[coding](bytes), text)
    assert.ok(bytes.length < text.length / 10)
  })

  test(`with ${coding} every event is sent as soon as it arrives`, async () => {
    const { encoder } = compressed({ headers: { 'content-type': 'text/event-stream' } }, coding)
    assert.ok(encoder)
    for (const event of ['data: one\n\n', 'data: two\n\n']) {
      const out = new Promise<Buffer>((resolve) => encoder.once('data', resolve))
      encoder.write(event)
      assert.ok((await out).length > 0)
    }
    encoder.destroy()
  })
}

test('an event can be read before the stream ends', async () => {
  const { encoder } = compressed({})
  assert.ok(encoder)
  const reader = encoder.pipe(createGunzip())
  const event = new Promise<Buffer>((resolve) => reader.once('data', resolve))
  encoder.write('data: now\n\n')
  assert.equal((await event).toString(), 'data: now\n\n')
  encoder.destroy()
})

const untouched: Record<string, [given: Given, accept?: string, method?: string]> = {
  'a response that is compressed': [{ headers: { 'content-encoding': 'br' } }],
  'a part of a body': [{ status: 206, headers: { 'content-range': 'bytes 0-9/100' } }],
  'a response that must not be changed': [{ headers: { 'cache-control': 'public, No-Transform' } }],
  'an empty body': [{ bodyLength: 0 }],
  'no content': [{ status: 204 }],
  'not modified': [{ status: 304 }],
  'another protocol': [{ status: 101 }],
  'no body': [{ hasBody: false }],
  'what the edge said itself': [{ isFromUpstream: false }],
  'a HEAD request': [{}, 'gzip', 'HEAD'],
  'a picture': [{ headers: { 'content-type': 'image/png' } }],
  'a call of gRPC': [{ headers: { 'content-type': 'application/grpc+proto' } }],
}

for (const [what, given] of Object.entries(untouched)) {
  test(`leaves alone: ${what}`, () => {
    const before = [...response(given[0]).headers]
    const { incoming, encoder } = compressed({ headers: {}, ...given[0] }, given[1], given[2])
    assert.equal(encoder, undefined)
    assert.deepEqual([...incoming.headers], before)
  })
}

test('compresses small bodies, error pages and types that shrink', () => {
  const bodies: Given[] = [
    // Small bodies hardly shrink, but the vendor's edge compresses them too.
    { bodyLength: 5 },
    { status: 404 },
    { headers: { 'content-type': 'image/svg+xml' } },
    { headers: {} },
  ]
  for (const given of bodies) assert.ok(compressed(given).encoder)
})

test('adds Vary, compressed or not', () => {
  const vary = (headers: Given['headers'] = {}, accept?: string) =>
    compressed({ headers }, accept).incoming.headers.all('vary')
  assert.deepEqual(vary(), ['Accept-Encoding'])
  assert.deepEqual(vary({}, 'identity'), ['Accept-Encoding'])
  assert.deepEqual(vary({ Vary: 'Origin' }), ['Origin', 'Accept-Encoding'])
  assert.deepEqual(vary({ Vary: 'origin, ACCEPT-ENCODING' }), ['origin, ACCEPT-ENCODING'])
  assert.deepEqual(vary({ Vary: '*' }), ['*'])
})

test('removes headers that describe the uncompressed bytes', () => {
  const headers = { ETag: '"abc"', 'Accept-Ranges': 'bytes', 'Content-Digest': 'sha-256=:x:', 'Content-MD5': 'x' }
  const { incoming } = compressed({ headers })
  assert.deepEqual(
    [...incoming.headers],
    [
      ['vary', 'Accept-Encoding'],
      ['content-encoding', 'gzip'],
      ['etag', 'W/"abc"'],
    ],
  )
  assert.equal(compressed({ headers: { etag: 'W/"abc"' } }).incoming.headers.get('etag'), 'W/"abc"')
})

const wishes: readonly [header: string, chosen: string | undefined][] = [
  ['', undefined],
  ['gzip', 'gzip'],
  ['GZIP', 'gzip'],
  ['gzip, deflate, br', 'gzip'],
  ['deflate, br', 'br'],
  ['gzip;q=0.5, deflate;q=0.8', 'deflate'],
  ['gzip;q=0, *', 'br'],
  ['*', 'gzip'],
  ['*;q=0', undefined],
  ['identity', undefined],
  ['gzip;q=0', undefined],
  ['gzip;q=0.000', undefined],
  ['gzip ; q=1.000', 'gzip'],
  ['gzip;q=2', undefined],
  ['gzip;q=', undefined],
  ['zstd, compress', undefined],
  ['x-gzip', 'gzip'],
  [',,;;,gzip', 'gzip'],
]

for (const [header, chosen] of wishes) {
  test(`Accept-Encoding ${JSON.stringify(header)} means ${chosen ?? 'none'}`, () => {
    assert.equal(chooseCoding(header, ['gzip', 'br', 'deflate']), chosen)
  })
}

test('any header is read, and only an offered coding is chosen', () => {
  const soup = fc.array(fc.constantFrom('gzip', 'br', ';', ',', 'q=', '0.5', '1', ' ', '*', 'é')).map((x) => x.join(''))
  fc.assert(
    fc.property(soup, (header) => {
      assert.ok(['gzip', 'br', undefined].includes(chooseCoding(header, ['gzip', 'br'])))
    }),
  )
})

test('a response stays uncompressed when the visitor sent no Accept-Encoding', () => {
  const incoming: Incoming & { encoders: unknown[] } = response()
  void compileCompression().response?.(incoming, request())
  assert.deepEqual([incoming.encoders, incoming.headers.has('content-encoding')], [[], false])
})
