import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { type KeySignal, keysOf } from './keys.ts'

/** A keyboard that records its modes. */
class Input extends EventEmitter {
  isTTY = true
  isRaw = false
  isFlowing = false

  setRawMode(isRaw: boolean): this {
    this.isRaw = isRaw
    return this
  }

  resume(): this {
    this.isFlowing = true
    return this
  }

  pause(): this {
    this.isFlowing = false
    return this
  }

  get state() {
    return { isRaw: this.isRaw, isFlowing: this.isFlowing, listeners: this.listenerCount('data') }
  }
}

const idle = { isRaw: false, isFlowing: false, listeners: 0 }

function keyboard(isForeground = () => true) {
  const input = new Input()
  const heard: KeySignal[] = []
  // Has the few methods that are used, which return what a stream would.
  const keys = keysOf({ input: input as never, isForeground, send() {} })
  return { input, keys, heard, hold: () => keys.hold((signal) => heard.push(signal)) }
}

test('only keys that mean a signal are handled', () => {
  const { input, keys, heard, hold } = keyboard()
  hold()
  hold()
  assert.deepEqual(input.state, { isRaw: true, isFlowing: true, listeners: 1 })
  input.emit('data', Buffer.from('q\x1b[A\x03hello\x1a\x04\x1c'))
  assert.deepEqual(heard, ['SIGINT', 'SIGTSTP', 'SIGQUIT'])
  keys.release()
  keys.release()
  assert.deepEqual(input.state, idle)
  hold()
  assert.equal(input.isRaw, true, 'it can be held again')
})

test('input that is not a keyboard is left alone', () => {
  const { input, hold, keys } = keyboard()
  input.isTTY = false
  hold()
  assert.deepEqual(input.state, idle)
  keys.release()
})

test('a program in the background does not touch the keyboard or its mode', () => {
  let isForeground = false
  const { input, hold, keys } = keyboard(() => isForeground)
  hold()
  assert.deepEqual(input.state, idle)
  isForeground = true
  hold()
  isForeground = false
  keys.release()
  assert.deepEqual(input.state, { isRaw: true, isFlowing: false, listeners: 0 }, 'setting it would stop the program')
})

test('a program is notified when it continues', () => {
  const { keys } = keyboard()
  let continued = 0
  const stop = keys.onContinue(() => continued++)
  process.emit('SIGCONT')
  stop()
  process.emit('SIGCONT')
  assert.equal(continued, 1)
})
