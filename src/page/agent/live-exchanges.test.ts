import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Rows } from '../all-rows.ts'
import type { CallOutcome } from '../api-caller.ts'
import type { Reading } from '../polling.ts'
import { textIn } from '../text-in.ts'
import type { EventStream } from './followed-events.ts'
import { followExchanges } from './live-exchanges.ts'

type Outcome = CallOutcome<{ readonly exchanges: readonly unknown[] }>

/** A page whose agent and time the test plays. */
function followed() {
  const streams: { tell: (type: string, value?: unknown) => void; isClosed: boolean }[] = []
  const timers: (() => void)[] = []
  const asked: ((outcome: Outcome) => void)[] = []
  const told: Reading<Rows>[] = []
  const open = (): EventStream => {
    const listeners = new Map<string, (event: { data?: unknown }) => void>()
    const stream = {
      tell: (type: string, value?: unknown) => listeners.get(type)?.({ data: JSON.stringify(value) }),
      isClosed: false,
    }
    streams.push(stream)
    return {
      addEventListener: (type, listener) => void listeners.set(type, listener),
      close() {
        stream.isClosed = true
      },
    }
  }
  const stop = followExchanges({
    open,
    load: () => new Promise((resolve) => asked.push(resolve)),
    onChange: (reading) => told.push(reading),
    now: () => 7,
    after: (_ms, then) => {
      timers.push(then)
      return () => void timers.splice(timers.indexOf(then), 1)
    },
  })
  return {
    stop,
    streams,
    timers,
    told,
    shown: () => told.at(-1)?.value?.rows.map(({ id, status }) => `${textIn(id)} ${textIn(status)}`.trim()),
    fault: () => told.at(-1)?.fault?.kind,
    /** The agent answers the oldest question for its list. */
    async answer(...ids: readonly string[]) {
      asked.shift()?.({ ok: true, value: { exchanges: ids.map((id) => ({ id })) } })
      await new Promise((resolve) => setImmediate(resolve))
    },
    async refuse() {
      const fault = { kind: 'refused', text: 'no', code: '', field: '', operation: '' } as const
      asked.shift()?.({ ok: false, fault })
      await new Promise((resolve) => setImmediate(resolve))
    },
    pass() {
      for (const then of timers.splice(0)) then()
    },
  }
}

test('the list comes first, then what is new stands above it, and what changed in its place', async () => {
  const page = followed()
  page.streams[0]?.tell('open')
  await page.answer('2', '1')
  assert.deepEqual(page.shown(), ['2', '1'])
  page.streams[0]?.tell('exchange', { id: '3' })
  page.streams[0]?.tell('exchange', { id: '2', status: 200 })
  page.streams[0]?.tell('removed', { id: '1' })
  assert.deepEqual(page.shown(), ['2', '1'], 'changes are gathered')
  page.pass()
  assert.deepEqual([page.shown(), page.told.length], [['3', '2 200'], 2])
})

test('what comes while the list is read is not lost', async () => {
  const page = followed()
  page.streams[0]?.tell('open')
  page.streams[0]?.tell('exchange', { id: '2', status: 500 })
  await page.answer('2', '1')
  assert.deepEqual(page.shown(), ['2 500', '1'])
})

test('after a break what is shown is called old, and then the list of the new agent replaces it', async () => {
  const page = followed()
  page.streams[0]?.tell('open')
  await page.answer('1')
  page.streams[0]?.tell('error')
  assert.deepEqual([page.fault(), page.shown(), page.streams[0]?.isClosed], ['away', ['1'], true])
  page.pass()
  page.streams[1]?.tell('error')
  page.pass()
  assert.equal(page.fault(), 'away')
  page.streams[2]?.tell('open')
  await page.answer('9')
  assert.deepEqual([page.fault(), page.shown()], [undefined, ['9']])
})

test('a list that was asked for before a break is not shown after it', async () => {
  const page = followed()
  page.streams[0]?.tell('open')
  page.streams[0]?.tell('error')
  await page.answer('1')
  assert.deepEqual([page.fault(), page.shown()], ['away', undefined])
})

test('a refused list is a fault, and is asked for again', async () => {
  const page = followed()
  page.streams[0]?.tell('open')
  await page.refuse()
  assert.equal(page.fault(), 'refused')
  page.pass()
  await page.answer('1')
  assert.deepEqual([page.fault(), page.shown()], [undefined, ['1']])
})

test('the end closes the stream, and nothing comes after it', async () => {
  const page = followed()
  page.streams[0]?.tell('open')
  page.stop()
  await page.answer('1')
  assert.deepEqual([page.streams[0]?.isClosed, page.told, page.timers], [true, [], []])
})
