import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { passLines } from './whole-lines.ts'

function passing() {
  const stream = new EventEmitter()
  const written: string[] = []
  passLines(stream, (lines) => written.push(lines))
  return { say: (text: string | Buffer) => stream.emit('data', Buffer.from(text)), stream, written }
}

test('lines are passed on when they are whole, several at once', () => {
  const { say, written } = passing()
  say('a\nb\nbeg')
  assert.deepEqual(written, ['a\nb\n'])
  say('un')
  say(' here\n')
  assert.deepEqual(written, ['a\nb\n', 'begun here\n'])
})

test('a character that arrives in two pieces stays one', () => {
  const { say, written } = passing()
  const bytes = Buffer.from('é\n')
  say(bytes.subarray(0, 1))
  say(bytes.subarray(1))
  assert.deepEqual(written, ['é\n'])
})

test('an unfinished last line is completed, and one that is too long is split', () => {
  const { say, stream, written } = passing()
  say('last words')
  stream.emit('end')
  assert.deepEqual(written.splice(0), ['last words\n'])
  say('x'.repeat(300 * 1024))
  say('y\n')
  assert.deepEqual(
    written.map((lines) => lines.length),
    [300 * 1024 + 1, 2],
  )
})
