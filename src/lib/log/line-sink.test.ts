import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../test/support/until.ts'
import { type LinePort, LineSink } from './line-sink.ts'

type Done = Parameters<LinePort['write']>[1]

/** A port whose writes the test completes. */
class TestPort implements LinePort {
  readonly isTTY = false
  readonly written: string[] = []
  last = ''
  fault: { error: Error; unwritten?: string } | undefined
  isStalled = false
  #stalled: Done | undefined

  write(text: string, done: Done): void {
    if (this.fault) {
      const { error, unwritten } = this.fault
      queueMicrotask(() => (unwritten === undefined ? done(error) : done(error, unwritten)))
      return
    }
    this.written.push(text)
    if (this.isStalled) this.#stalled = done
    else queueMicrotask(() => done())
  }

  writeLast(text: string): void {
    this.last += text
  }

  goOn(): void {
    this.isStalled = false
    this.#stalled?.()
  }

  get text(): string {
    return this.written.join('')
  }
}

const noSpace = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })

function open(port: TestPort, maxWaiting = 1000) {
  return new LineSink({ port, notice: (lost) => `lost ${lost}\n`, maxWaiting, retryMs: 1 })
}

test('lines are written in order, many in one write', async () => {
  const port = new TestPort()
  const sink = open(port)
  for (const line of ['1\n', '2\n', '3\n', '4\n']) sink.write(line)
  await sink.flush(1000)
  assert.deepEqual(port.written, ['1\n', '2\n3\n4\n'])
  assert.deepEqual([sink.lost, sink.waiting], [0, 0])
})

test('no more than the limit waits for a stalled reader, and a notice reports the gap', async () => {
  const port = new TestPort()
  const sink = open(port)
  port.isStalled = true
  for (let i = 0; i < 1000; i++) {
    sink.write(`line ${String(i).padStart(4, '0')}\n`)
    assert.ok(sink.waiting <= 1000)
  }
  assert.equal(sink.lost, 900)
  port.goOn()
  await sink.flush(1000)
  sink.write('more\n')
  await sink.flush(1000)
  const lines = port.text.split('\n')
  assert.deepEqual(lines.slice(98, 103), ['line 0098', 'line 0099', 'lost 900', 'more', ''])
  assert.equal(sink.waiting, 0)
})

test('the loss is reported even if no further line comes', async () => {
  const port = new TestPort()
  const sink = open(port, 10)
  port.isStalled = true
  for (const line of ['123456789\n', 'a\n', 'b\nc\n']) sink.write(line)
  port.goOn()
  await until('the notice', () => port.text.includes('lost 3\n'))
})

test('the limit counts bytes, not characters', () => {
  const port = new TestPort()
  port.isStalled = true
  const sink = open(port, 10)
  sink.write('語語語\n')
  sink.write('a\n')
  assert.deepEqual([sink.waiting, sink.lost], [10, 1])
})

test('on a full disk lines are dropped and counted, and written again when there is space', async () => {
  const port = new TestPort()
  const errors: Error[] = []
  const notice = (lost: number) => `lost ${lost}\n`
  const sink = new LineSink({ port, notice, retryMs: 1, onError: (error) => errors.push(error) })
  port.fault = { error: noSpace }
  sink.write('1\n')
  sink.write('2\n')
  await sink.flush(1000)
  sink.write('3\n')
  assert.deepEqual([sink.lost, sink.waiting, errors], [3, 0, [noSpace]])
  port.fault = undefined
  await until('it can be written again', () => port.text !== '')
  sink.write('4\n')
  await sink.flush(1000)
  assert.equal(port.text, 'lost 3\n4\n')
})

test('a line cut off by a full disk is terminated before the next one', async () => {
  const port = new TestPort()
  const sink = open(port)
  port.fault = { error: noSpace, unwritten: 'cond\nthird\n' }
  sink.write('first\nsecond\nthird\n')
  await sink.flush(1000)
  port.fault = undefined
  await until('it can be written again', () => port.text !== '')
  assert.equal(port.text, '\nlost 2\n')
})

test('waiting lines are written when the process ends', () => {
  const port = new TestPort()
  port.isStalled = true
  const sink = open(port)
  for (const line of ['1\n', '2\n', '3\n']) sink.write(line)
  sink.finish()
  assert.equal(port.last, '2\n3\n')
})

test('a flush does not wait for ever', async () => {
  const port = new TestPort()
  port.isStalled = true
  const sink = open(port)
  sink.write('1\n')
  await sink.flush(1)
})
