import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { Unpacker } from './unpacker.ts'

const pack = {
  gzip: gzipSync,
  'x-gzip': gzipSync,
  deflate: deflateSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
}
const text = Array.from({ length: 20_000 }, (_, i) => `line ${i * 7919} é`).join('\n')
const unpacker = new Unpacker()

for (const [coding, compress] of Object.entries(pack)) {
  describe(coding, () => {
    test('is unpacked', async () => {
      const found = await unpacker.text(compress('{"é":1}'), ` ${coding.toUpperCase()}`)
      assert.deepEqual(found, { coding, content: '{"é":1}', size: 8, isCut: false })
    })

    test('that is incomplete gives its beginning', async () => {
      const packed = compress(text)
      const found = await unpacker.text(packed.subarray(0, packed.length - 100), coding)
      assert.ok(found && found.content.length > 1000 && text.startsWith(found.content))
      assert.equal(found.isCut, true)
    })

    test('that expands without end is cut', async () => {
      const found = await unpacker.text(compress(Buffer.alloc(8 * 1024 * 1024, 'a')), coding)
      assert.deepEqual([found?.size, found?.content.length, found?.isCut], [1024 * 1024, 1024 * 1024, true])
    })

    test('of binary data gives nothing', async () => {
      assert.equal(await unpacker.text(compress(Buffer.of(0xff, 0xfe)), coding), undefined)
      assert.equal(await unpacker.text(Buffer.from('not compressed at all'), coding), undefined)
      assert.equal(await unpacker.text(Buffer.alloc(0), coding), undefined)
    })
  })
}

test('a window that is larger than browsers accept is refused', async () => {
  const params = { [constants.ZSTD_c_windowLog]: 27, [constants.ZSTD_c_contentSizeFlag]: 0 }
  const stream = zstdCompressSync(Buffer.alloc(20 * 1024 * 1024, 'a'), { params })
  assert.equal(await unpacker.text(stream, 'zstd'), undefined)
})

test('unknown codings, or several, give nothing', async () => {
  for (const coding of ['', 'identity', 'compress', 'gzip, gzip', 'constructor']) {
    assert.equal(await unpacker.text(gzipSync('a'), coding), undefined, coding)
  }
})

test('many at once wait for each other, and all get their turn', async () => {
  const packed = Array.from({ length: 50 }, (_, i) => gzipSync(`body ${i}`))
  const found = await Promise.all(packed.map((each) => unpacker.text(each, 'gzip')))
  assert.deepEqual(
    found.map((each) => each?.content),
    packed.map((_, i) => `body ${i}`),
  )
})
