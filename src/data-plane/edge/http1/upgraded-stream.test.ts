import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ByteSink } from '../../../lib/bytes/byte-stream.ts'
import { TestStream } from './testing/test-stream.ts'
import { UpgradedStream } from './upgraded-stream.ts'

class Heard implements ByteSink {
  readonly events: string[] = []
  /** Called with each piece. */
  onData: (() => void) | undefined

  data(chunk: Buffer): void {
    this.events.push(chunk.toString())
    this.onData?.()
  }

  end(): void {
    this.events.push('end')
  }

  drain(): void {
    this.events.push('drain')
  }

  closed(error: Error | undefined): void {
    this.events.push(error ? `lost: ${error.message}` : 'closed')
  }
}

function start(rest?: string, isEnded = false): { stream: TestStream; upgraded: UpgradedStream } {
  const stream = new TestStream()
  const upgraded = new UpgradedStream(stream, { rest: rest === undefined ? undefined : Buffer.from(rest), isEnded })
  return { stream, upgraded }
}

describe('an upgraded stream', () => {
  test('delivers first what arrived first', () => {
    const { stream, upgraded } = start('one')
    stream.feed('two')
    stream.feed('three')
    const heard = new Heard()
    upgraded.attach(heard)
    stream.feed('four')
    assert.deepEqual(heard.events, ['one', 'two', 'three', 'four'])
  })

  test('takes no more than one chunk from the stream without a sink', () => {
    const { stream } = start()
    for (let i = 0; i < 10; i++) stream.feed('x'.repeat(1000))
    assert.ok(stream.unread >= 9000)
  })

  test('stops where its sink pauses', () => {
    const { stream, upgraded } = start('one')
    const heard = new Heard()
    heard.onData = () => upgraded.pause()
    upgraded.attach(heard)
    stream.feed('two')
    stream.feed('three')
    stream.feedEnd()
    assert.deepEqual(heard.events, ['one'])
    upgraded.resume()
    assert.deepEqual(heard.events, ['one', 'two'])
    upgraded.resume()
    upgraded.resume()
    assert.deepEqual(heard.events, ['one', 'two', 'three', 'end'])
  })

  test('keeps the order when the stream delivers although it was paused', () => {
    const { stream, upgraded } = start('one')
    stream.pause = () => {}
    const heard = new Heard()
    heard.onData = () => upgraded.pause()
    upgraded.attach(heard)
    stream.feed('two')
    stream.feed('three')
    assert.deepEqual(heard.events, ['one'])
    heard.onData = undefined
    upgraded.resume()
    assert.deepEqual(heard.events, ['one', 'two', 'three'])
  })

  test('reports an end that came before there was a sink, once', () => {
    const before = start('one', true)
    const heard = new Heard()
    before.upgraded.attach(heard)
    before.stream.feedEnd()
    assert.deepEqual(heard.events, ['one', 'end'])
    before.upgraded.end()
    assert.deepEqual(heard.events, ['one', 'end', 'closed'])
  })

  test('reports a loss that came before there was a sink, and nothing else', () => {
    const { stream, upgraded } = start('one')
    stream.lose(new Error('gone'))
    const heard = new Heard()
    upgraded.attach(heard)
    assert.deepEqual(heard.events, ['lost: gone'])
  })

  test('reports room to a sink that waits for it', () => {
    const { stream, upgraded } = start()
    stream.hasRoom = false
    assert.equal(upgraded.write(Buffer.from('x')), false)
    stream.giveRoom()
    const heard = new Heard()
    upgraded.attach(heard)
    assert.deepEqual(heard.events, ['drain'])
    stream.giveRoom()
    assert.deepEqual(heard.events, ['drain', 'drain'])
  })

  test('can be handed on', () => {
    const { stream, upgraded } = start('one')
    const [first, second] = [new Heard(), new Heard()]
    upgraded.attach(first)
    upgraded.attach(second)
    stream.feed('two')
    assert.deepEqual([first.events, second.events], [['one'], ['two']])
  })

  test('can be reset before there is a sink', () => {
    const { stream, upgraded } = start('one')
    upgraded.reset()
    assert.equal(stream.isReset, true)
    const heard = new Heard()
    upgraded.attach(heard)
    assert.deepEqual(heard.events, ['lost: reset'])
  })
})
