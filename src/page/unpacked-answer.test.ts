import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deflateSync, gzipSync } from 'node:zlib'
import { withUnpackedAnswer } from './unpacked-answer.ts'

const answer = (packed: Buffer, coding: string, kept = packed.length) => ({
  id: 'x',
  response: {
    headers: [{ name: 'content-Encoding', value: coding }],
    body: { size: packed.length, kept, encoding: 'base64', content: packed.subarray(0, kept).toString('base64') },
  },
})

// biome-ignore lint/suspicious/noExplicitAny: the test looks into it
const bodyOf = async (exchange: Readonly<Record<string, unknown>>): Promise<any> => {
  const { response } = (await withUnpackedAnswer(exchange)) as ReturnType<typeof answer>
  return response.body
}

test('gzip and deflate are unpacked', async () => {
  for (const [packed, coding] of [
    [gzipSync('{"é":1}'), ' GZIP'],
    [deflateSync('{"é":1}'), 'deflate'],
  ] as const) {
    const { encoding, content, unpacked_from, size } = await bodyOf(answer(packed, coding))
    assert.deepEqual([encoding, content, size], ['text', '{"é":1}', packed.length])
    assert.deepEqual(unpacked_from, { coding: coding.trim().toLowerCase(), size: 8, isCut: false })
  }
})

test('of one that was not kept whole there is the beginning, and of one that grows without end as well', async () => {
  const text = Array.from({ length: 20_000 }, (_, i) => `line ${i * 7919} é`).join('\n')
  const packed = gzipSync(text)
  const cut = await bodyOf(answer(packed, 'gzip', packed.length - 1000))
  assert.ok(cut.content.length > 1000 && text.startsWith(cut.content))
  assert.equal(cut.unpacked_from.isCut, true)
  const bomb = await bodyOf(answer(gzipSync(Buffer.alloc(50 * 1024 * 1024, 'a')), 'gzip'))
  assert.deepEqual([bomb.content.length, bomb.unpacked_from.isCut], [1024 * 1024, true])
})

test('anything else stays as it was', async () => {
  for (const exchange of [
    answer(gzipSync(Buffer.of(0xff, 0xfe)), 'gzip'),
    answer(Buffer.from('no gzip at all'), 'gzip'),
    answer(gzipSync('a'), 'gzip, gzip'),
    answer(gzipSync('a'), 'br'),
    answer(gzipSync('a'), 'constructor'),
    { id: 'x', response: null },
  ]) {
    assert.equal(await withUnpackedAnswer(exchange), exchange)
  }
})
