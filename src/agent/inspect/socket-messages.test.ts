import assert from 'node:assert/strict'
import { test } from 'node:test'
import { constants, createDeflateRaw, deflateRawSync } from 'node:zlib'
import type { Sender } from './connection-watch.ts'
import type { InspectedFrame } from './inspected-exchange.ts'
import { SocketMessages } from './socket-messages.ts'

const MASK = Buffer.of(1, 2, 3, 4)
const masked = (bytes: Buffer): Buffer => bytes.map((byte, i) => byte ^ (MASK[i & 3] ?? 0)) as Buffer

/** Compresses messages as one end of a connection does: each refers to those before it. */
function sender() {
  const stream = createDeflateRaw()
  return async (text: string): Promise<Buffer> => {
    stream.write(text)
    const flushed = new Promise<void>((resolve) => stream.flush(constants.Z_SYNC_FLUSH, resolve))
    const parts: Buffer[] = []
    stream.on('data', (part: Buffer) => parts.push(part))
    await flushed
    stream.removeAllListeners('data')
    return Buffer.concat(parts).subarray(0, -4)
  }
}

/** Frames in the order in which they are made. */
function frames() {
  let number = 0
  return (from: Sender, bytes: Buffer, given: Partial<InspectedFrame> = {}): InspectedFrame => {
    const isClient = from === 'client'
    return {
      ...{ number: ++number, time: 0, from, type: 'text', isLast: true, isCompressed: true, size: bytes.length },
      bytes: isClient ? masked(bytes) : bytes,
      mask: isClient ? MASK : undefined,
      ...given,
    }
  }
}

const textOf = async (messages: SocketMessages, frame: InspectedFrame) => (await messages.read(frame))?.toString()
const said = 'the same words again and again'

test('messages that refer to earlier ones are read, separately for each direction, between others and in fragments', async () => {
  const [client, service, frame] = [sender(), sender(), frames()]
  const messages = new SocketMessages('permessage-deflate; client_max_window_bits=15')
  assert.equal(await textOf(messages, frame('client', await client(said))), said)
  assert.equal(await textOf(messages, frame('service', await service(`${said} é`))), `${said} é`)
  assert.equal(await textOf(messages, frame('client', Buffer.from('plain'), { isCompressed: false })), undefined)
  const again = await client(said)
  assert.ok(again.length < said.length / 2, 'it refers to the first')
  const part = { isLast: false }
  assert.equal(await textOf(messages, frame('client', again.subarray(0, 2), part)), undefined)
  assert.equal(
    await textOf(messages, frame('client', Buffer.from('!'), { type: 'ping', isCompressed: false })),
    undefined,
  )
  assert.equal(await textOf(messages, frame('service', await service(said))), said)
  const rest = { type: 'continuation', isCompressed: false } as const
  assert.equal(await textOf(messages, frame('client', again.subarray(2), rest)), said)
})

test('after a missed message, later ones of its direction cannot be decompressed', async () => {
  for (const missed of ['cut', 'gone', 'broken'] as const) {
    const [service, frame] = [sender(), frames()]
    const messages = new SocketMessages('permessage-deflate')
    const first = frame('service', await service(said))
    if (missed === 'cut') await messages.read({ ...first, bytes: first.bytes.subarray(1) })
    if (missed === 'broken') await messages.read({ ...first, bytes: Buffer.alloc(first.size, 0xff) })
    assert.equal(await textOf(messages, frame('service', await service(said))), undefined, missed)
  }
})

test('if each message is compressed independently, a missed one does not affect others', async () => {
  const frame = frames()
  const messages = new SocketMessages('permessage-deflate; server_no_context_takeover')
  const packed = deflateRawSync(said, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4)
  frame('service', packed)
  assert.equal(await textOf(messages, frame('service', packed)), said)
  assert.equal(await textOf(messages, frame('client', packed)), undefined)
})

test('a message that decompresses beyond the limit is given up', async () => {
  const packed = deflateRawSync(Buffer.alloc(8 * 1024 * 1024), { finishFlush: constants.Z_SYNC_FLUSH })
  const frame = frames()
  const messages = new SocketMessages('permessage-deflate')
  assert.equal(await textOf(messages, frame('service', packed)), undefined)
  const parts = { isLast: false, type: 'binary' } as const
  const endless = new SocketMessages('permessage-deflate')
  const more = frames()
  await endless.read(more('service', Buffer.alloc(60_000), parts))
  for (let i = 0; i < 20; i++)
    await endless.read(more('service', Buffer.alloc(60_000), { ...parts, type: 'continuation' }))
  assert.equal(await textOf(endless, more('service', Buffer.alloc(1), { type: 'continuation' })), undefined)
})

test('without the extension, or with another beside it, nothing is read', async () => {
  for (const extensions of ['', 'x-other', 'permessage-deflate, x-other', 'x-other, permessage-deflate']) {
    const packed = await sender()(said)
    assert.equal(await textOf(new SocketMessages(extensions), frames()('service', packed)), undefined, extensions)
  }
})
