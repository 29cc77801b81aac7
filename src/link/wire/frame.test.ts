import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Batch } from './batch.ts'
import { FIN, FrameDecoder, SYN } from './frame.ts'

/** The events of a decoder for `chunks`, with the pieces of each body joined. */
function decode(chunks: readonly Buffer[]): string[] {
  const said: string[] = []
  let body: Buffer[] = []
  const decoder = new FrameDecoder({
    dataBegins: (id, flags, length) => {
      said.push(`data ${id} ${flags} ${length}`)
      body = []
    },
    dataPiece: (piece) => body.push(Buffer.from(piece)),
    dataEnds: (flags) => said.push(`end ${flags} ${Buffer.concat(body).toString('hex')}`),
    reset: (id, code) => said.push(`reset ${id} ${code}`),
    credit: (id, increment) => said.push(`credit ${id} ${increment}`),
    goAway: (last, code, text) => said.push(`goaway ${last} ${code} ${text}`),
    broken: (error) => said.push(`broken ${error.code}`),
  })
  for (const chunk of chunks) decoder.push(chunk)
  return said
}

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(' ', ''), 'hex')
}

const vectors: { name: string; frame: string; said: string[]; build?: (batch: Batch) => void }[] = [
  {
    name: 'an agent opens its heartbeat',
    frame: '0000 0412 00000003 ffffffff',
    said: ['data 3 2 4', 'end 2 ffffffff'],
    build: (batch) => {
      batch.data(3, SYN, 4)
      batch.body(hex('ffffffff'))
    },
  },
  {
    name: 'a ping',
    frame: '0000 0410 00000003 42ce5613',
    said: ['data 3 0 4', 'end 0 42ce5613'],
    build: (batch) => {
      batch.data(3, 0, 4)
      batch.body(hex('42ce5613'))
    },
  },
  {
    name: 'an agent begins to authenticate',
    frame: '0000 0412 00000005 00000000',
    said: ['data 5 2 4', 'end 2 00000000'],
    build: (batch) => {
      batch.data(5, SYN, 4)
      batch.body(hex('00000000'))
    },
  },
  {
    name: 'an end without data',
    frame: '0000 0011 00000005',
    said: ['data 5 1 0', 'end 1 '],
    build: (batch) => batch.data(5, FIN, 0),
  },
  {
    name: 'credit',
    frame: '0000 0420 00000005 00000020',
    said: ['credit 5 32'],
    build: (batch) => batch.credit(5, 32),
  },
  {
    name: 'a reset for exceeding the window',
    frame: '0000 0400 00000006 00000003',
    said: ['reset 6 3'],
    build: (batch) => batch.reset(6, 3),
  },
  {
    name: 'a GOAWAY, as agents in Go send it',
    frame: '0000 1030 00000000 0000000c 00000000 6e6f206572726f72',
    said: ['goaway 12 0 no error'],
    build: (batch) => batch.goAway(12, 0, Buffer.from('no error')),
  },
  {
    name: 'the frame without effect',
    frame: '00 00 04 20  7f ff ff fe  00 00 00 01',
    said: ['credit 2147483646 1'],
    build: (batch) => batch.credit(0x7ffffffe, 1),
  },
  {
    name: 'an unknown type, which is skipped',
    frame: '000003 40 00000005 aabbcc 000000 11 00000005',
    said: ['data 5 1 0', 'end 1 '],
  },
  { name: 'a reserved bit in the id, which is masked', frame: '000000 11 80000005', said: ['data 5 1 0', 'end 1 '] },
  { name: 'a reserved bit in the credit, which is masked', frame: '000004 20 00000005 80000001', said: ['credit 5 1'] },
  {
    name: 'a GOAWAY that is longer than it says',
    frame: '00000d 30 00000000 00000001 00000001 6162636465 ffff',
    said: ['goaway 1 1 abcde'],
  },
  { name: 'zero credit', frame: '000004 20 00000005 00000000', said: ['broken protocol_error'] },
  { name: 'credit of the wrong size', frame: '000005 20 00000005 0000000001', said: ['broken frame_size_error'] },
  { name: 'a reset of the wrong size', frame: '000000 00 00000005', said: ['broken frame_size_error'] },
  { name: 'a GOAWAY of the wrong size', frame: '000007 30 00000000 00000000000000', said: ['broken frame_size_error'] },
  { name: 'data on stream 0', frame: '000001 10 00000000 00', said: ['broken protocol_error'] },
  { name: 'credit on stream 0', frame: '000004 20 00000000 00000001', said: ['broken protocol_error'] },
]

describe('a frame is read', () => {
  for (const { name, frame, said } of vectors) test(name, () => assert.deepEqual(decode([hex(frame)]), said))
})

describe('a frame is written', () => {
  const nowhere = { open() {}, end() {}, destroy() {} }
  for (const { name, frame, build } of vectors) {
    if (!build) continue
    test(name, () => {
      const batch = new Batch()
      build(batch)
      const sent: string[] = []
      batch.sendTo({ ...nowhere, write: (bytes) => sent.push(bytes.toString('hex')) > 0 })
      assert.deepEqual(sent, [hex(frame).toString('hex')])
    })
  }
})

describe('however the bytes are cut', () => {
  // A GOAWAY is the last frame read, so it comes last; only text that arrives with it is read, so it has none here.
  const legal = vectors.filter(({ said }) => !/goaway|broken/.test(said.join()))
  const bytes = Buffer.concat([...legal.map(({ frame }) => hex(frame)), hex('000008 30 00000000 0000000c 00000000')])
  const whole = decode([bytes])

  test('at one place, the frames are the same', () => {
    assert.equal(whole.at(-1), 'goaway 12 0 ')
    for (let at = 0; at <= bytes.length; at++) {
      assert.deepEqual(decode([bytes.subarray(0, at), bytes.subarray(at)]), whole, `cut at ${at}`)
    }
  })

  test('at every byte, the frames are the same', () => {
    assert.deepEqual(decode([...bytes].map((byte) => Buffer.from([byte]))), whole)
  })
})

test('nothing is read after a frame that breaks the protocol', () => {
  assert.deepEqual(decode([hex('000004 20 00000005 00000000'), hex('000000 11 00000005')]), ['broken protocol_error'])
})

test('a body is passed on as it arrives, without waiting for the rest', () => {
  const pieces: number[] = []
  const ignore = (): void => {}
  const decoder = new FrameDecoder({
    dataBegins: ignore,
    dataPiece: (piece) => pieces.push(piece.length),
    dataEnds: ignore,
    reset: ignore,
    credit: ignore,
    goAway: ignore,
    broken: ignore,
  })
  decoder.push(hex('ffffff 10 00000002 aabb'))
  decoder.push(hex('cc'))
  assert.deepEqual(pieces, [2, 1])
})
